"""Arenas, their blocks and views, and bad input through the Python package."""
import gc
import sys
import unittest

import numpy as np

import ckpt
import toy


class BadInput(unittest.TestCase):
    def test_arrays(self):
        good = np.zeros((toy.ROWS, toy.WIDTH), np.float32)
        with ckpt.Tape() as tape:
            with self.assertRaisesRegex(ValueError, "not contiguous"):
                tape.input(np.zeros((4, 4), np.float32)[:, ::2])
            with self.assertRaisesRegex(TypeError, "data is list"):
                tape.input([1.0])
            with self.assertRaisesRegex(ValueError, "grad.* float64, expected float32"):
                tape.input(good, np.zeros((toy.ROWS, toy.WIDTH)))
            with self.assertRaisesRegex(ValueError, "grad has shape"):
                tape.input(good, np.zeros(3, np.float32))
            frozen = good.copy()
            frozen.flags.writeable = False
            with self.assertRaisesRegex(ValueError, "read-only"):
                tape.input(good, frozen)
            with self.assertRaisesRegex(ValueError, "None, expected an array"):
                tape.input(None)
            released = memoryview(bytearray(16))
            released.release()
            with self.assertRaises(ValueError):
                tape.input(released)

            class Cuda:
                __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3}

            with self.assertRaisesRegex(ValueError, "memory of a CUDA device, expected memory of cpu"):
                tape.input(Cuda())
            y = toy.record(tape, toy.segment(), [toy.Layer(0)])
            with self.assertRaisesRegex(ValueError, r"grads\[0\] has shape \(3,\), expected \(8, 16\)"):
                tape.backward(y, np.zeros(3, np.float32))
            with self.assertRaisesRegex(ValueError, "float64"):
                tape.backward(y, np.zeros((toy.ROWS, toy.WIDTH)))
            with self.assertRaisesRegex(ValueError, "one for each"):
                tape.backward([y], [None, None])
            with self.assertRaisesRegex(ValueError, "expected a Buffer"):
                tape.backward([good])
            with self.assertRaisesRegex(ValueError, "expected a Buffer"):
                tape.run(toy.segment(), good)
            with self.assertRaisesRegex(TypeError, "has 1 input"):
                tape.run(toy.segment())
            tape.reset()
            with self.assertRaises(ckpt.StaleError):
                tape.run(toy.segment(), y, user=toy.Layer(0))

    def test_budgets(self):
        for text in ("2 gigs", "", "-1", "1e9", "GiB", "5PiB"):
            with self.subTest(text), self.assertRaisesRegex(ValueError, "budget is .*expected"):
                ckpt.Tape(budget=text)
        for value in (0, -5, 1.5, True, 2**61):
            with self.subTest(value), self.assertRaisesRegex(ValueError, "budget is"):
                ckpt.Tape(budget=value)
        for text, count in (("2GiB", 2 << 30), ("512 MiB", 512 << 20), ("1.5K", 1536), ("3GB", 3 * 10**9), ("17", 17), (17, 17), ("0.5gib", 1 << 29)):
            self.assertEqual(ckpt.parse_bytes(text), count)

    def test_names(self):
        with self.assertRaisesRegex(ckpt.NotFoundError, "nosuch.*auto"):
            ckpt.Tape(strategy="nosuch")
        with self.assertRaisesRegex(ValueError, "'nosuch'.*'determinism'"):
            ckpt.Tape(checks="nosuch")
        with self.assertRaisesRegex(ValueError, "replan"):
            ckpt.Tape(replan="maybe")
        with self.assertRaises(ckpt.InvalidArgumentError):
            ckpt.Device("gpu!")
        with self.assertRaises(ckpt.Error):
            ckpt.Device("cuda:77")

    def test_segments(self):
        with self.assertRaisesRegex(ValueError, "neither shape nor bytes"):
            ckpt.Slot("a")
        with self.assertRaisesRegex(ValueError, "both shape and bytes"):
            ckpt.Slot("a", (1,), bytes=4)
        with self.assertRaisesRegex(ckpt.NotFoundError, "'b'"):
            ckpt.Segment("s", print, slots=[ckpt.Slot("a", (1,), reads=["b"])])
        with self.assertRaisesRegex(ValueError, "forward is 3"):
            ckpt.Segment("s", 3)
        with self.assertRaises(ckpt.InvalidArgumentError):
            ckpt.Segment("s", print, slots=[ckpt.Slot("a", (1,)), ckpt.Slot("a", (1,))])
        with self.assertRaisesRegex(ValueError, "expected no negative"):
            ckpt.Slot("a", (-1,))
        with self.assertRaisesRegex(ValueError, "plain bits"):
            ckpt.Slot("a", (1,), object)
        with self.assertRaisesRegex(ValueError, r"slot 'a' has shape .* at most 2\^60"):
            ckpt.Slot("a", (1 << 40, 1 << 40))
        for number in (-1, 1 << 32, 1.5, True):
            for what, make in (("group", lambda: ckpt.Slot("a", (1,), group=number)), ("in_place_input", lambda: ckpt.Output("a", (1,), in_place_input=number)),
                               ("inputs|'float'", lambda: ckpt.Segment("s", print, inputs=number)),
                               ("", lambda: ckpt.Segment("s", print, slots=[ckpt.Slot("a", (1,), reads=[number])]))):
                with self.subTest(what, number=number), self.assertRaisesRegex((ValueError, TypeError, OverflowError), what):
                    make()
        with self.assertRaisesRegex(ValueError, "state_bytes is -1"):
            ckpt.Segment("s", print, state_bytes=-1)
        with self.assertRaisesRegex(ValueError, "without a NUL"):
            ckpt.Segment("a\0b", print)
        with self.assertRaises(UnicodeEncodeError):
            ckpt.Segment("\ud800", print)
        with self.assertRaisesRegex(ValueError, "shapes is list, expected a dict"), ckpt.Tape() as tape:
            tape.run(toy.segment(), tape.input(toy.x()), shapes=["pre"])
        with self.assertRaisesRegex(ValueError, "plain bits"), ckpt.Tape() as tape:
            tape.input(np.array([None]))

    def test_use_after_close(self):
        for thing in (ckpt.Device(), ckpt.Arena(), ckpt.Tape(), ckpt.Rng(1), ckpt.schedule(3, 2), ckpt.Trace(3), toy.segment(),
                      ckpt.chain([{"name": "a", "forward_seconds": 1, "backward_seconds": 1, "output_bytes": 4, "slots": []}])):
            thing.close()
            thing.close()
            self.assertTrue(thing.closed)
            with self.assertRaisesRegex(ckpt.StateError, "closed"):
                thing._get()
        arena = ckpt.Arena()
        arena.close()
        with self.assertRaisesRegex(ckpt.StateError, "closed"):
            ckpt.Tape(arena)


class Arenas(unittest.TestCase):
    def test_blocks(self):
        with ckpt.Arena(capacity="1MiB", guard=True, poison=True) as arena:
            with arena.alloc((3, 4), "float32") as block:
                array = block.array
                self.assertTrue(np.isnan(array).all())
                array[...] = 1
                arena.check()
                with self.assertRaisesRegex(ckpt.StaleError, "still there"):
                    block.free()
                self.assertEqual(array.sum(), 12)
                self.assertGreater(arena.stats.in_use_bytes, 48)
                del array
            self.assertEqual(arena.stats.in_use_bytes, 0)
            with self.assertRaisesRegex(ckpt.StateError, "freed"):
                block.array
            with self.assertRaisesRegex(ckpt.BudgetError, "2097152"):
                arena.alloc(2 << 20)

    def test_views_keep_a_closed_arena(self):
        arena = ckpt.Arena()
        block = arena.alloc(4096)
        array = block.array
        arena.close()
        array.fill(3)
        self.assertEqual(int(array.sum()), 3 * 4096)

    def test_own_slab(self):
        slab = np.zeros(1 << 20, np.uint8)
        start = slab.ctypes.data % 4096 and 4096 - slab.ctypes.data % 4096
        part = slab[start:start + (1 << 19)]
        count = sys.getrefcount(part)
        arena = ckpt.Arena(slab=part)
        with arena.alloc(64) as block:
            block.array.fill(7)
        self.assertEqual(int(slab.sum(dtype=np.int64)), 7 * 64)
        self.assertEqual(arena.stats.capacity_bytes, 1 << 19)
        arena.close()
        gc.collect()
        self.assertEqual(sys.getrefcount(part), count)
        with self.assertRaisesRegex(ValueError, "at most the slab's"):
            ckpt.Arena(slab=part, capacity="1MiB")

    def test_dlpack_and_read_only(self):
        with ckpt.Arena() as arena, arena.alloc((2, 3), "int16") as block:
            array = np.from_dlpack(block.view)
            self.assertEqual((array.shape, array.dtype.name), ((2, 3), "int16"))
            array[...] = [[1, 2, 3], [4, 5, 6]]
            self.assertEqual(block.array.tolist(), array.tolist())
            self.assertEqual(block.view.__dlpack_device__(), (1, 0))
            self.assertFalse(hasattr(block.view, "__cuda_array_interface__"))
            with self.assertRaisesRegex(BufferError, "copy=True"):
                block.view.__dlpack__(copy=True)
            with self.assertRaisesRegex(BufferError, "DLPack device"):
                block.view.__dlpack__(dl_device=(2, 0))
            del array


if __name__ == "__main__":
    unittest.main()
