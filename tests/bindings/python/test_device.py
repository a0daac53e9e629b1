"""Device memory through the Python package: on the double of CUDA (CKPT_PLUGIN_PATH), or on a GPU if there is one."""
import os
import sys
import unittest

import numpy as np

import ckpt

try:
    device = ckpt.Device("cuda")
except ckpt.Error as error:
    print(f"skipped: {error}")
    sys.exit(77)
print(f"device: {device.info.name}, plugin {os.environ.get('CKPT_PLUGIN_PATH')}")


class OnDevice(unittest.TestCase):
    def setUp(self):
        self.stream = device.stream()
        self.arena = ckpt.Arena(device, stream=self.stream)

    def tearDown(self):
        self.arena.close()
        device.synchronize(self.stream)
        self.stream.close()

    def host(self, view):
        out = np.empty(view.shape, view.dtype)
        device.copy(out, view, stream=self.stream)
        device.synchronize(self.stream)
        return out

    def test_protocols(self):
        with self.arena.alloc((2, 3), "float32") as block:
            view = block.array
            self.assertIs(type(view), ckpt.View)
            told = view.__cuda_array_interface__
            self.assertEqual((told["shape"], told["typestr"], told["data"], told["stream"], told["version"]),
                             ((2, 3), "<f4", (view.address, False), self.stream.address, 3))
            self.assertEqual(view.__dlpack_device__(), (2, 0))
            self.assertIn("dltensor", repr(view.__dlpack__(stream=self.stream.address)))
            self.assertIn("dltensor_versioned", repr(view.__dlpack__(stream=-1, max_version=(1, 0))))
            with self.assertRaisesRegex(BufferError, "asked for on stream 1, but its work is on stream"):
                view.__dlpack__(stream=1)
            for use in (lambda: memoryview(view), view.numpy):
                with self.assertRaisesRegex(BufferError, "CUDA device"):
                    use()
            data = np.arange(6, dtype=np.float32).reshape(2, 3)
            device.copy(view, data, stream=self.stream)
            self.assertTrue(np.array_equal(self.host(view), data))
            with self.assertRaisesRegex(ValueError, "expected equal sizes"):
                device.copy(view, data[0], stream=self.stream)
            with self.assertRaisesRegex(ValueError, "both on the host"):
                device.copy(data, data, stream=self.stream)
            del told, view, use

    def test_a_step(self):
        kept = []

        def forward(frame):
            self.assertEqual(frame.stream, self.stream.address)
            scratch = frame.scratch((2, 8), "int16")
            self.assertEqual((scratch.shape, scratch.dtype.name, scratch.nbytes), ((2, 8), "int16", 32))
            self.assertEqual(frame.scratch().nbytes, 64)
            with self.assertRaisesRegex(ckpt.InvalidArgumentError, "64 bytes of scratch here, 68 asked for"):
                frame.scratch(17)
            del scratch
            if frame.needs("copy"):
                device.copy(frame.slot("copy"), frame.input(), stream=frame.stream)
            if frame.needs_output():
                device.copy(frame.output(), frame.slot("copy"), stream=frame.stream)
            if kept is not None and getattr(self, "leak", False):
                kept.append(frame.slot("copy"))

        def backward(frame):
            self.assertTrue(frame.input().readonly)
            into, _ = frame.input_grad()
            frame.slot("copy")
            device.copy(into, frame.output_grad(), stream=frame.stream)

        segment = ckpt.Segment("copy", forward, backward, slots=[ckpt.Slot("copy", (8,))], outputs=ckpt.Output("out", (8,)), forward_scratch=64)
        with self.arena.alloc((8,), "float32") as x, self.arena.alloc((8,), "float32") as grad, \
                ckpt.Tape(ckpt.Arena(device, stream=self.stream), strategy="every_segment") as tape:
            data = np.arange(8, dtype=np.float32)
            device.copy(x.view, data, stream=self.stream)
            for self.leak in (False, True, False):
                try:
                    y = tape.input(x.view, grad.view)
                    for _ in range(3):
                        y = tape.run(segment, y)
                    out = tape.read(y)
                    self.assertEqual(self.host(out).tolist(), data.tolist())
                    del out
                    tape.backward(y, x.view)
                    self.assertEqual(self.host(grad.view).tolist(), data.tolist())
                    self.assertFalse(self.leak)
                except ckpt.StaleError as error:
                    self.assertTrue(self.leak)
                    self.assertRegex(str(error), r"segment 'copy' \(number 0\): slot 'copy'")
                    with self.assertRaisesRegex(ckpt.StaleError, "slot 'copy'"):
                        kept[0].__cuda_array_interface__
                    kept.clear()
            with self.assertRaisesRegex(ValueError, "memory of the CPU, expected memory of cuda"):
                tape.input(data)
            with self.assertRaisesRegex(ValueError, "memory of a CUDA device"), ckpt.Tape() as other:
                other.input(x.view)


if __name__ == "__main__":
    unittest.main()
