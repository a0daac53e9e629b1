"""The same programs in C and in Python: the loss after 20 steps has the same bits."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import ckpt

SOURCE = pathlib.Path(os.environ.get("CKPT_SOURCE", pathlib.Path(__file__).resolve().parents[3]))
BUILD = os.environ.get("CKPT_BUILD")
STEPS, F = 20, np.float32
sys.path.insert(0, str(SOURCE / "bindings" / "python" / "examples"))
import minimal  # noqa: E402


class Minimal(unittest.TestCase):
    @unittest.skipUnless(BUILD and shutil.which("cc"), "needs the build folder and a C compiler")
    def test_loss_after_20_steps(self):
        library = next(pathlib.Path(BUILD).rglob("libckpt.so")).parent
        with tempfile.TemporaryDirectory() as folder:
            program = f"{folder}/minimal"
            subprocess.run(["cc", "-std=c99", "-O2", "-ffp-contract=off", "-I", SOURCE / "include", SOURCE / "tests/bindings/minimal_bits.c", "-o", program,
                            "-L", library, "-lckpt", "-lm", f"-Wl,-rpath,{library}"], check=True)
            told = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
        expected = told.split("loss bits ")[1].split()[0]
        loss, stats = minimal.train(None)
        self.assertEqual(struct.pack(">f", loss).hex(), expected)
        again, smaller = minimal.train(stats.arena_measured_bytes // 2)
        self.assertEqual(struct.pack(">f", again).hex(), expected)
        self.assertGreater(smaller.recompute_count, 0)


class Gpt(unittest.TestCase):
    def setUp(self):
        try:
            import ckpt.ops
        except ImportError as error:
            self.skipTest(str(error))

    @unittest.skipUnless(BUILD and list(pathlib.Path(BUILD).rglob("train_gpt")), "needs the build folder with train_gpt")
    def test_loss_after_20_steps(self):
        command = next(p for p in pathlib.Path(BUILD).rglob("train_gpt") if p.is_file())
        shape = {"layers": 2, "heads": 2, "channels": 32, "sequence": 16, "batch": 2}
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder, "text")
            text.write_bytes(b"".join(p.read_bytes() for p in sorted((SOURCE / "include" / "ckpt").glob("*.h"))))
            options = {"text": text, "steps": STEPS, "threads": 1, "dropout": 0.1, "strategy": "store_all", **shape}
            told = subprocess.run([command, "--json", *(f"--{k}={v}" for k, v in options.items())], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(told.returncode, 0, told.stderr)
            expected = json.loads(told.stdout)["loss"]
            data = np.frombuffer(text.read_bytes(), np.uint8)
        import train_gpt
        loss, stats = train_gpt.train(data, steps=STEPS, threads=1, **shape)
        self.assertEqual(struct.pack("<f", loss), struct.pack("<f", expected))
        budget = int(0.6 * stats.arena_measured_bytes)
        again, smaller = train_gpt.train(data, steps=STEPS, threads=1, budget=budget, **shape)
        self.assertEqual(again, loss)
        self.assertGreater(smaller.recompute_count, 0)
        self.assertLessEqual(smaller.arena_measured_bytes, budget)

    def test_layers_on_a_tape(self):
        import ckpt.ops
        with ckpt.ops.Ops(threads=1) as ops, ckpt.Tape() as tape:
            layer = ckpt.ops.linear(ops, 3, 4, 5)
            self.assertEqual([t.name for t in layer.tensors][0].split(".")[-1], "weight")
            parameters, gradients = np.zeros(layer.parameter_count, F), np.zeros(layer.parameter_count, F)
            layer.bind(parameters, gradients)
            layer.init(3)
            x, grad = np.ones((3, 4), F), np.zeros((3, 4), F)
            y = layer.run(tape, tape.input(x, grad))
            self.assertEqual(y.shape, (3, 5))
            weight, bias = parameters[:20].reshape(5, 4), parameters[20:]
            self.assertTrue(np.allclose(tape.read(y), x @ weight.T + bias))
            tape.backward(y, np.ones((3, 5), F))
            self.assertTrue(np.allclose(grad, np.ones((3, 5), F) @ weight))
            self.assertTrue(np.allclose(gradients[20:], 3))
            for bad, pattern in ((np.zeros(3, F), "expected 25 values"), (np.zeros(25), "float64"), (np.zeros(50, F)[::2], "contiguous")):
                with self.assertRaisesRegex(ValueError, pattern):
                    layer.bind(bad, gradients)
            with self.assertRaisesRegex(ValueError, "isa is 'x'"):
                ckpt.ops.Ops(isa="x")
            with self.assertRaisesRegex(ckpt.InvalidArgumentError, "heads"):
                ckpt.ops.Gpt(ops, layers=1, heads=3, channels=32, sequence=4, batch=1, vocabulary=8)
            gpt = ckpt.ops.Gpt(ops, layers=1, heads=2, channels=32, sequence=4, batch=1, vocabulary=8)
            gpt.bind(np.zeros(gpt.parameter_count, F), np.zeros(gpt.parameter_count, F))
            with self.assertRaisesRegex(ValueError, "tokens has shape .*int64"):
                gpt.record(tape, np.zeros((1, 4), np.int64), np.zeros((1, 4), np.int32))


if __name__ == "__main__":
    unittest.main()
