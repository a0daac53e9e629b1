"""Trains a byte-level GPT through the layers library, as examples/train_gpt.c does: losses have the same bits.

    python3 train_gpt.py FILE [--budget 2MiB] [--steps 20]"""
import argparse

import numpy as np

import ckpt
import ckpt.ops

TEXT_SEGMENT, KEY = 2**28 - 1, 1


def batch(data, step, seed, rows, sequence):
    """Rows that begin where Philox says: (tokens, targets)."""
    words = ckpt.Philox(seed, step=step, segment=TEXT_SEGMENT).u32(2 * rows).tolist()
    starts = [(words[2 * k] << 32 | words[2 * k + 1]) % (len(data) - sequence) for k in range(rows)]
    both = np.stack([data[s:s + sequence + 1] for s in starts]).astype(np.int32)
    return np.ascontiguousarray(both[:, :-1]), np.ascontiguousarray(both[:, 1:])


def train(data, steps=20, budget=None, seed=1, threads=0, dropout=0.1, report=None, **shape):
    """The last loss and the tape's statistics. shape: layers, heads, channels, sequence, batch."""
    with ckpt.ops.Ops(threads) as ops, ckpt.ops.Gpt(ops, vocabulary=256, dropout=dropout, **shape) as gpt, ckpt.Tape(budget=budget, seed=seed) as tape:
        parameters, gradients, first, second = (np.zeros(gpt.parameter_count, np.float32) for _ in range(4))
        gpt.bind(parameters, gradients)
        gpt.init(seed)
        one = np.ones((), np.float32)  # the loss's gradient
        tape.begin(KEY, dry=True)  # the plan, or its refusal, before anything runs
        tape.backward(gpt.record(tape), one)
        for step in range(steps):
            tokens, targets = batch(data, step, seed, shape["batch"], shape["sequence"])
            tape.step = step
            tape.begin(KEY)
            tape.backward(gpt.record(tape, tokens, targets), one)
            loss = gpt.loss
            gpt.update(first, second, learning_rate=1e-3, weight_decay=0.1, max_norm=1.0, step=step + 1)
            gradients.fill(0)
            if report:
                report(step, loss, tape.stats)
        return loss, tape.stats


def main():
    parser = argparse.ArgumentParser(description="trains a byte-level GPT within a budget")
    parser.add_argument("text")
    parser.add_argument("--budget")
    for name, value in (("steps", 20), ("layers", 4), ("heads", 4), ("channels", 64), ("sequence", 64), ("batch", 4)):
        parser.add_argument(f"--{name}", type=int, default=value)
    o = vars(parser.parse_args())
    with open(o.pop("text"), "rb") as file:
        data = np.frombuffer(file.read(), np.uint8)

    def report(step, loss, stats):
        print(f"step {step + 1:3}  loss {loss:.4f}  arena predicted {stats.arena_predicted_bytes}, measured {stats.arena_measured_bytes} bytes; "
              f"{stats.recompute_count} of {stats.forward_count} forwards run again")
    train(data, report=report, **o)


if __name__ == "__main__":
    main()
