"""ckpt.ops: what a recording uses stays, and bad input is refused before it is read."""
import gc
import sys
import unittest

import numpy as np

import ckpt

try:
    import ckpt.ops as layers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

ROWS, WIDTH = 64, 1024


class Lifetime(unittest.TestCase):
    def setUp(self):
        self.ops = layers.Ops(1)

    def test_parameters_of_a_layer_that_is_gone(self):
        def record(tape, x, grad):
            layer = layers.linear(self.ops, ROWS, WIDTH, WIDTH)
            parameters = np.ones(layer.parameter_count, np.float32)
            layer.bind(parameters, np.zeros_like(parameters))
            return layer.run(tape, tape.input(x, grad))

        x, grad = np.ones((ROWS, WIDTH), np.float32), np.zeros((ROWS, WIDTH), np.float32)
        with ckpt.Tape() as tape:
            y = record(tape, x, grad)
            gc.collect()
            tape.backward(y, x)
        self.assertTrue((grad == WIDTH).all())

    def test_parameters_of_a_model_that_is_gone(self):
        tokens = np.zeros((2, 4), np.int32)

        def record(tape):
            gpt = layers.Gpt(self.ops, layers=1, heads=2, channels=256, sequence=4, batch=2, vocabulary=11)
            parameters = np.zeros(gpt.parameter_count, np.float32)
            gpt.bind(parameters, np.zeros_like(parameters))
            gpt.init(1)
            loss = gpt.record(tape, tokens, tokens)
            gpt.close()
            return loss

        with ckpt.Tape() as tape:
            y = record(tape)
            gc.collect()
            self.assertTrue(0 < tape.read(y) < 10)
            tape.backward(y)


class BadInput(unittest.TestCase):
    def setUp(self):
        self.ops = layers.Ops(1)

    def test_inputs_of_a_layer(self):
        layer = layers.linear(self.ops, ROWS, WIDTH, WIDTH)
        parameters = np.ones(layer.parameter_count, np.float32)
        with self.assertRaisesRegex(ckpt.StateError, "no parameters bound"), ckpt.Tape() as tape:
            layer.run(tape, tape.input(np.ones((ROWS, WIDTH), np.float32)))
        layer.bind(parameters)
        for x in (np.ones(1, np.float32), np.ones((ROWS, WIDTH)), np.ones((ROWS, WIDTH), np.int32)):
            with self.assertRaisesRegex(ValueError, r"input 0 has shape .*expected \(64, 1024\) and float32"), ckpt.Tape() as tape:
                layer.run(tape, tape.input(x))
        with ckpt.Tape() as tape:
            with self.assertRaisesRegex(ValueError, "expected a Buffer"):
                layer.run(tape, parameters)
            with self.assertRaisesRegex(ValueError, "input_count is 0, expected 1"):
                layer.run(tape)
        head = layers.head(self.ops, rows=4, channels=8, vocabulary=16)
        head.bind(np.ones(head.parameter_count, np.float32))
        with self.assertRaisesRegex(ValueError, "input 1 .*int64, expected .* int32"), ckpt.Tape() as tape:
            head.run(tape, tape.input(np.ones((4, 8), np.float32)), tape.input(np.zeros(4, np.int64)))

    def test_a_tied_head(self):
        head = layers.head(self.ops, rows=4, channels=8, vocabulary=16, tied=True)
        for weight, pattern in ((np.zeros((16, 8), np.int8), "int8, expected float32"), (np.zeros(3, np.float32), "expected 128 values")):
            with self.assertRaisesRegex(ValueError, pattern):
                head.bind_tied(weight)
            with self.assertRaisesRegex(ValueError, pattern):
                head.bind_tied(np.zeros((16, 8), np.float32), weight)
        frozen = np.zeros((16, 8), np.float32)
        frozen.flags.writeable = False
        head.bind_tied(frozen)
        with self.assertRaisesRegex(ckpt.StateError, "weight of its own"):
            layers.head(self.ops, rows=4, channels=8, vocabulary=16).bind_tied(frozen)

    def test_names_of_values(self):
        with self.assertRaisesRegex(TypeError, "unknown argument 'nosuch', expected one of .*vocabulary"):
            layers.head(self.ops, rows=1, channels=1, vocabulary=1, nosuch=3)
        with self.assertRaisesRegex(TypeError, "unknown argument 'learning_rat'.*learning_rate"):
            layers.adamw_desc(learning_rat=1e-3)


if __name__ == "__main__":
    unittest.main()
