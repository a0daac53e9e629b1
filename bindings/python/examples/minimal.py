"""examples/minimal.c in Python, product by product in the same order: its losses have the same bits.

    python3 minimal.py

A user's own kernels are whole-array ones: see ckpt.demo()."""
import ctypes
import ctypes.util

import numpy as np

import ckpt

LAYERS, ROWS, WIDTH, HIDDEN, STEPS, KEY = 8, 64, 32, 64, 20, 1
F = np.float32

LIBM = ctypes.CDLL(ctypes.util.find_library("m"))  # NumPy's exp has other last bits
for name in ("expf", "sinf"):
    function = getattr(LIBM, name)
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float]


def each(function, values):
    return np.fromiter((function(float(v)) for v in values.ravel()), np.float32, values.size).reshape(values.shape)


def linear(out, x, weight):
    """In the order of minimal.c: one product after the other, each rounded."""
    out[...] = 0
    for i in range(x.shape[1]):
        out += x[:, i:i + 1] * weight[:, i]


def linear_backward(x_grad, weight_grad, x, weight, out_grad):
    if x_grad is not None:
        x_grad[...] = 0
        for o in range(weight.shape[0]):
            x_grad += out_grad[:, o:o + 1] * weight[o]
    for r in range(x.shape[0]):
        weight_grad += out_grad[r][:, None] * x[r]


def sigmoid(x):
    return F(1) / (F(1) + each(LIBM.expf, -x))


class Layer:
    def __init__(self):
        self.w1, self.w2 = np.empty((HIDDEN, WIDTH), F), np.empty((WIDTH, HIDDEN), F)
        self.grad1, self.grad2 = np.zeros_like(self.w1), np.zeros_like(self.w2)


def forward(frame):
    layer, x, pre, act = frame.user, frame.input(), frame.slot("pre"), frame.slot("act")
    if frame.needs("pre"):
        linear(pre, x, layer.w1)
    if frame.needs("act"):
        act[...] = pre * sigmoid(pre)
    if frame.needs_output():
        out = frame.output()
        linear(out, act, layer.w2)
        out += x


def backward(frame):
    layer, x, pre, act, out_grad = frame.user, frame.input(), frame.slot("pre"), frame.slot("act"), frame.output_grad()
    pre_grad = frame.scratch((ROWS, HIDDEN), F)
    x_grad, _ = frame.input_grad()
    linear_backward(pre_grad, layer.grad2, act, layer.w2, out_grad)
    s = sigmoid(pre)
    pre_grad *= s * (F(1) + pre * (F(1) - s))
    linear_backward(x_grad, layer.grad1, x, layer.w1, pre_grad)
    if x_grad is not None:
        x_grad += out_grad


class Uniform:
    def __init__(self):
        self.state = 1

    def __call__(self):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return F(F(self.state >> 8) / F(8388608) - F(1))


def train(budget):
    random = Uniform()
    x = np.array([random() for _ in range(ROWS * WIDTH)], F).reshape(ROWS, WIDTH)
    target = each(LIBM.sinf, F(3) * x)
    layers = [Layer() for _ in range(LAYERS)]
    for layer in layers:
        for i in range(HIDDEN * WIDTH):
            layer.w1.flat[i] = random() * F(0.2)
            layer.w2.flat[i] = random() * F(0.05)
    segment = ckpt.Segment("layer", forward, backward, slots=[ckpt.Slot("pre", (ROWS, HIDDEN)), ckpt.Slot("act", (ROWS, HIDDEN), reads=["pre"])],
                           outputs=ckpt.Output("out", (ROWS, WIDTH), reads=["act"]), backward_scratch=4 * ROWS * HIDDEN)
    with ckpt.Tape(budget=budget) as tape:
        for step in range(-1, STEPS):
            tape.begin(KEY, dry=step < 0)
            y = tape.input(x)
            for layer in layers:
                y = tape.run(segment, y, user=layer)
            if step < 0:
                tape.backward(y, x)
                continue
            difference = tape.read(y) - target
            loss = F(0)
            for part in (difference * difference / F(ROWS * WIDTH)).ravel():
                loss += part
            tape.backward(y, F(2) * difference / F(ROWS * WIDTH))
            for layer in layers:
                layer.w1 -= F(2) * layer.grad1
                layer.w2 -= F(2) * layer.grad2
                layer.grad1.fill(0)
                layer.grad2.fill(0)
        return loss, tape.stats


def main():
    print("no budget: everything is stored")
    loss, stats = train(None)
    print(f"  loss {loss:.6f}, arena {stats.arena_measured_bytes} bytes")
    budget = stats.arena_measured_bytes // 2
    print(f"budget {budget} bytes, half of that (the smallest that works is {stats.minimum_budget_bytes})")
    again, stats = train(budget)
    print(f"  loss {again:.6f}, arena {stats.arena_measured_bytes} bytes, {stats.recompute_count} of {stats.forward_count} forwards run again")
    print(f"loss after {STEPS} steps bitwise equal: {'yes' if loss == again else 'no'}")


if __name__ == "__main__":
    main()
