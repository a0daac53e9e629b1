"""A small perceptron on a tape, for the tests: x + silu(x w1^T) w2^T a layer."""
import numpy as np

import ckpt

ROWS, WIDTH, HIDDEN = 8, 16, 24


class Layer:
    def __init__(self, seed):
        random = np.random.default_rng(seed)
        self.w1 = random.uniform(-0.4, 0.4, (HIDDEN, WIDTH)).astype(np.float32)
        self.w2 = random.uniform(-0.4, 0.4, (WIDTH, HIDDEN)).astype(np.float32)
        self.grads = [np.zeros_like(self.w1), np.zeros_like(self.w2)]
        self.calls = 0


def forward(frame):
    layer, x, pre, act = frame.user, frame.input(), frame.slot("pre"), frame.slot(1)
    layer.calls += 1
    if frame.needs("pre"):
        np.matmul(x, layer.w1.T, out=pre)
    if frame.needs(1):
        np.multiply(pre, 1 / (1 + np.exp(-pre)), out=act)
    if frame.needs_output():
        out = frame.output("out")
        np.matmul(act, layer.w2.T, out=out)
        out += x


def backward(frame):
    layer, x, pre, act, grad = frame.user, frame.input(0), frame.slot("pre"), frame.slot("act"), frame.output_grad(0)
    s = 1 / (1 + np.exp(-pre))
    pre_grad = (grad @ layer.w2) * (s * (1 + pre * (1 - s)))
    layer.grads[1] += grad.T @ act
    layer.grads[0] += pre_grad.T @ x
    into, accumulate = frame.input_grad(0)
    if into is not None:
        value = pre_grad @ layer.w1 + grad
        into[...] = into + value if accumulate else value


def segment(forward=forward, backward=backward, **more):
    return ckpt.Segment("layer", forward, backward, slots=[ckpt.Slot("pre", (ROWS, HIDDEN)), ckpt.Slot("act", (ROWS, HIDDEN), reads=["pre"])],
                        outputs=ckpt.Output("out", (ROWS, WIDTH), reads=["act"]), **more)


def x():
    return np.random.default_rng(0).uniform(-1, 1, (ROWS, WIDTH)).astype(np.float32)


def record(tape, seg, layers, data=None, grad=None):
    y = tape.input(x() if data is None else data, grad)
    for layer in layers:
        y = tape.run(seg, y, user=layer)
    return y


def step(tape, seg, layers, key=1):
    """One step; (output, input's gradient, all gradients) as bytes."""
    grad = np.zeros((ROWS, WIDTH), np.float32)
    for layer in layers:
        for g in layer.grads:
            g.fill(0)
    tape.begin(key)
    y = record(tape, seg, layers, grad=grad)
    out = tape.read(y)
    tape.backward(y, out)
    return out.tobytes(), grad.tobytes(), [g.tobytes() for layer in layers for g in layer.grads]


def by_hand(layers):
    """The same step without the library."""
    data, stored = x(), []
    for layer in layers:
        pre = data @ layer.w1.T
        act = pre * (1 / (1 + np.exp(-pre)))
        stored.append((data, pre, act))
        data = act @ layer.w2.T + data
    grad, grads = data, []
    for layer, (before, pre, act) in zip(reversed(layers), reversed(stored)):
        s = 1 / (1 + np.exp(-pre))
        pre_grad = (grad @ layer.w2) * (s * (1 + pre * (1 - s)))
        grads[:0] = [pre_grad.T @ before, grad.T @ act]
        grad = pre_grad @ layer.w1 + grad
    return data, grad, grads
