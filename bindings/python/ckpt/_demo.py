"""The smallest whole program in Python: examples/minimal.c with NumPy's kernels instead of plain loops."""
from __future__ import annotations

from typing import Any

import numpy as np

from .memory import Arena
from .sizes import format_bytes
from .tape import Output, Segment, Slot, Tape

LAYERS, ROWS, WIDTH, HIDDEN, STEPS, KEY = 8, 64, 32, 64, 20, 1
LEARNING_RATE = np.float32(2.0)


class Layer:
    """x + silu(x w1^T) w2^T."""

    def __init__(self, w1: Any, w2: Any) -> None:
        self.w1, self.w2 = w1, w2
        self.grad1, self.grad2 = np.zeros_like(w1), np.zeros_like(w2)


def sigmoid(x: Any) -> Any:
    return np.float32(1) / (np.float32(1) + np.exp(-x))


def forward(frame: Any) -> None:
    """One function for the first run, a full and a partial recomputation: it asks what is needed now."""
    layer, x, pre, act = frame.user, frame.input(), frame.slot("pre"), frame.slot("act")
    if frame.needs("pre"):
        np.matmul(x, layer.w1.T, out=pre)
    if frame.needs("act"):
        np.multiply(pre, sigmoid(pre), out=act)
    if frame.needs_output():
        out = frame.output()
        np.matmul(act, layer.w2.T, out=out)
        out += x


def backward(frame: Any) -> None:
    layer, x, pre, act, grad = frame.user, frame.input(), frame.slot("pre"), frame.slot("act"), frame.output_grad()
    s = sigmoid(pre)
    pre_grad = (grad @ layer.w2) * (s * (np.float32(1) + pre * (np.float32(1) - s)))
    layer.grad2 += grad.T @ act
    layer.grad1 += pre_grad.T @ x
    into, accumulate = frame.input_grad()
    if into is not None:
        into[...] = pre_grad @ layer.w1 + grad + (into if accumulate else np.float32(0))


def train(budget: int | None, report: bool) -> tuple[list[bytes], Any]:
    """Loss and gradients of each step, as bytes, and the last step's statistics."""
    random = np.random.default_rng(1)
    x = random.uniform(-1, 1, (ROWS, WIDTH)).astype(np.float32)
    target = np.sin(3 * x)
    layers = [Layer(random.uniform(-0.2, 0.2, (HIDDEN, WIDTH)).astype(np.float32), random.uniform(-0.05, 0.05, (WIDTH, HIDDEN)).astype(np.float32))
              for _ in range(LAYERS)]
    segment = Segment("layer", forward, backward, slots=[Slot("pre", (ROWS, HIDDEN)), Slot("act", (ROWS, HIDDEN), reads=["pre"])],
                      outputs=Output("out", (ROWS, WIDTH), reads=["act"]))
    trail = []
    with Arena("cpu") as arena, Tape(arena, budget=budget) as tape:
        for step in range(-1, STEPS):  # first a dry recording: the plan, or its refusal, before anything runs
            tape.begin(KEY, dry=step < 0)
            y = tape.input(x)
            for layer in layers:
                y = tape.run(segment, y, user=layer)
            if step < 0:
                tape.backward(y, np.zeros_like(x))
                continue
            difference = tape.read(y) - target
            loss = np.mean(difference * difference)
            tape.backward(y, difference * np.float32(2 / difference.size))
            for layer in layers:
                for weight, grad in ((layer.w1, layer.grad1), (layer.w2, layer.grad2)):
                    trail.append(grad.tobytes())
                    weight -= LEARNING_RATE * grad
                    grad.fill(0)
            trail.append(loss.tobytes())
            stats = tape.stats
            if report and (step % 5 == 0 or step == STEPS - 1):
                print(f"  step {step:2}  loss {loss:.6f}  arena predicted {stats.arena_predicted_bytes}, measured {stats.arena_measured_bytes} bytes; "
                      f"{stats.recompute_count} of {stats.forward_count} forwards run again")
    return trail, stats


def main() -> None:
    print("no budget: everything is stored")
    stored, stats = train(None, True)
    budget = stats.arena_measured_bytes // 2
    print(f"budget {budget} bytes ({format_bytes(budget)}), half of that (the smallest that works is {stats.minimum_budget_bytes})")
    budgeted, stats = train(budget, True)
    if stats.arena_predicted_bytes != stats.arena_measured_bytes or stats.peak_predicted_bytes != stats.peak_measured_bytes:
        raise AssertionError(f"the prediction was wrong: {stats}")
    print(f"loss and gradients of all steps bitwise equal: {'yes' if stored == budgeted else 'no'}")
    if stored != budgeted:
        raise AssertionError("recomputed steps differ from stored ones")
