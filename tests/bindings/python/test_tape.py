"""Tapes, segments, frames, leases and faults of callbacks through the Python package."""
import gc
import os
import subprocess
import sys
import threading
import unittest

import numpy as np

import ckpt
import toy


class Laws(unittest.TestCase):
    def setUp(self):
        self.layers = [toy.Layer(k) for k in range(6)]
        self.segment = toy.segment()

    def test_gradients_are_those_of_numpy(self):
        out, grad, grads = toy.by_hand(self.layers)
        with ckpt.Tape() as tape:
            got = toy.step(tape, self.segment, self.layers)
        self.assertTrue(np.allclose(np.frombuffer(got[0], np.float32), out.ravel(), rtol=1e-5, atol=1e-6))
        self.assertTrue(np.allclose(np.frombuffer(got[1], np.float32), grad.ravel(), rtol=1e-4, atol=1e-5))
        for mine, theirs in zip(got[2], grads):
            self.assertTrue(np.allclose(np.frombuffer(mine, np.float32), theirs.ravel(), rtol=1e-4, atol=1e-5))

    def test_every_strategy_and_budget_gives_the_same_bits_and_the_predicted_bytes(self):
        with ckpt.Tape(strategy="store_all") as tape:
            expected = toy.step(tape, self.segment, self.layers)
            full = tape.stats.arena_measured_bytes
        for strategy in ("every_segment", "sqrt", "uniform:2", "block:3", "full", "auto"):
            with self.subTest(strategy), ckpt.Tape(strategy=strategy) as tape:
                for _ in range(3):
                    self.assertEqual(toy.step(tape, self.segment, self.layers), expected)
                stats = tape.stats
                self.assertEqual(stats.peak_predicted_bytes, stats.peak_measured_bytes)
                self.assertEqual(stats.arena_predicted_bytes, stats.arena_measured_bytes)
        with ckpt.Tape(budget=full) as tape:
            with tape.recording(1, dry=True):
                tape.backward(toy.record(tape, self.segment, self.layers), np.zeros((toy.ROWS, toy.WIDTH), np.float32))
            toy.step(tape, self.segment, self.layers)
            least = tape.stats.minimum_budget_bytes
        self.assertLess(least, full)
        for budget in (full, (full + least) // 2, least):
            with self.subTest(budget=budget), ckpt.Tape(budget=budget) as tape:
                tape.begin(1, dry=True)
                tape.backward(toy.record(tape, self.segment, self.layers, grad=np.zeros((toy.ROWS, toy.WIDTH), np.float32)), toy.x())
                for _ in range(2):
                    self.assertEqual(toy.step(tape, self.segment, self.layers), expected)
                self.assertLessEqual(tape.stats.arena_measured_bytes, budget)
        with ckpt.Tape(budget=1024) as tape:
            tape.begin(1, dry=True)
            with self.assertRaisesRegex(ckpt.BudgetError, "smallest|budget"):
                tape.backward(toy.record(tape, self.segment, self.layers), toy.x())

    def test_2000_steps_do_not_grow(self):
        def resident():
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        with ckpt.Tape(strategy="every_segment") as tape:
            for k in range(2000):
                toy.step(tape, self.segment, self.layers[:2])
                if k % 7 == 3:
                    tape.reset()
                if k == 200:
                    gc.collect()
                    before, objects = resident(), len(gc.get_objects())
            gc.collect()
            self.assertEqual(tape.step, 2000)
            self.assertEqual(tape.arena.stats.in_use_bytes, 0)
            self.assertLess(resident() - before, 4 << 20)
            self.assertLess(abs(len(gc.get_objects()) - objects), 200)

    def test_step_and_random_draws(self):
        seen = []

        def forward(frame):
            draws = frame.random(3)
            seen.append((frame.index, frame.step, draws, frame.is_recompute, frame.is_backward, frame.segment))
            frame.slot(0)
            draws.uniform(out=frame.slot(0))
            out = frame.output()
            if frame.needs_output():
                out[...] = frame.slot(0)

        def backward(frame):
            self.assertEqual(frame.random(3), ckpt.Philox(9, step=frame.step, segment=frame.index, site=3))
            self.assertTrue(frame.is_backward)
            into, _ = frame.input_grad()
            if into is not None:
                into.fill(0)

        segment = ckpt.Segment("draw", forward, backward, slots=[ckpt.Slot("mask", (64,), recompute=True)], outputs=ckpt.Output("out", (64,)))
        with ckpt.Tape(seed=9) as tape:
            tape.step = 5
            y = tape.input(np.zeros(64, np.float32))
            y = tape.run(segment, y)
            out = tape.read(y)
            tape.backward(y, out)
            self.assertEqual(tape.step, 6)
        self.assertTrue(np.array_equal(out, ckpt.Philox(9, step=5, site=3).uniform(64)))
        self.assertEqual({s[:3] for s in seen}, {(0, 5, ckpt.Philox(9, step=5, site=3))})
        self.assertEqual([s[3] for s in seen], [False, True])

    def test_detached_recordings(self):
        with ckpt.Tape(in_flight=2) as tape:
            first = toy.record(tape, self.segment, self.layers)
            one = tape.detach()
            second = toy.record(tape, self.segment, self.layers)
            two = tape.detach()
            with one, two:
                out = one.read(first)
                self.assertTrue(np.array_equal(out, two.read(second)))
                one.backward(first, out)
                two.backward(second, out)
        self.assertEqual(tape.closed, True)
        with self.assertRaisesRegex(ckpt.StateError, "closed"):
            tape.begin()

    def test_inline_code_and_sizes_of_a_call(self):
        segment = ckpt.Segment("scale", None, lambda f: f.input_grad()[0].__setitem__(..., f.output_grad() * f.slot("factor")[0]),
                               slots=[ckpt.Slot("factor", (1,))], outputs=ckpt.Output("out", (4,)))

        def body(frame):
            frame.slot(0)[0] = 3
            frame.output()[...] = frame.input() * 3

        with ckpt.Tape() as tape:
            data, grad = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
            y = tape.inline(segment, tape.input(data, grad), body=body, shapes={"out": (6,)})
            self.assertEqual(y.shape, (6,))
            self.assertTrue(np.array_equal(tape.read(y), data * 3))
            tape.backward(y, np.ones(6, np.float32))
            self.assertTrue(np.array_equal(grad, np.full(6, 3, np.float32)))
            with self.assertRaisesRegex(ckpt.NotFoundError, "'nosuch'"):
                tape.inline(segment, tape.input(data), body=body, shapes={"nosuch": (6,)})

    def test_host_state_is_replayed(self):
        state = {"draws": 0, "log": []}

        def forward(frame):
            value = state["draws"]
            state["draws"] += 1
            if frame.needs(0):
                frame.slot(0).fill(value)
            if frame.needs_output():
                frame.output()[...] = frame.slot(0)

        def backward(frame):
            state["log"].append(float(frame.slot(0)[0]))
            into, _ = frame.input_grad()
            if into is not None:
                into.fill(0)

        segment = ckpt.Segment("host", forward, backward, slots=[ckpt.Slot("s", (2,), recompute=True)], outputs=ckpt.Output("out", (2,)),
                               save_state=lambda user: state["draws"].to_bytes(8, "little"),
                               restore_state=lambda user, data: state.__setitem__("draws", int.from_bytes(data, "little")), state_bytes=8)
        with ckpt.Tape(checks="determinism") as tape:
            y = tape.input(np.zeros(2, np.float32))
            for _ in range(3):
                y = tape.run(segment, y)
            tape.backward(y, np.zeros(2, np.float32))
        self.assertEqual((state["draws"], state["log"]), (3, [2.0, 1.0, 0.0]))

    def test_plan_chain_and_trace_of_a_tape(self):
        events = []
        with ckpt.Tape(strategy="every_segment") as tape, ckpt.Trace(1000) as trace:
            tape.trace(lambda *event: events.append(event))
            toy.step(tape, self.segment, self.layers)
            tape.trace(trace)
            toy.step(tape, self.segment, self.layers)
            chain, plan = tape.chain(1), tape.plan(1)
            self.assertIn("traceEvents", trace.to_json(chain))
            tape.trace(None)
            self.assertEqual(plan.strategy, "every_segment")
            self.assertEqual(chain.segment_count, 6)
            other = chain.plan(strategy="store_all")
            tape.adopt(1, other)
            tape.prepare(1)
            toy.step(tape, self.segment, self.layers)
            self.assertEqual(tape.stats.recompute_count, 0)
            self.assertEqual(tape.plan(1).hash, other.hash)
        self.assertTrue(events and all(isinstance(e[3], bool) for e in events))


class Raise(Exception):
    pass


class Faults(unittest.TestCase):
    """What goes wrong in a callback comes back as itself; the next step is right."""

    def setUp(self):
        self.layers = [toy.Layer(k) for k in range(4)]
        with ckpt.Tape(strategy="every_segment") as tape:
            self.expected = toy.step(tape, toy.segment(), self.layers)

    def check(self, break_it, kind, pattern=""):
        """break_it(frame, when) may raise; `when` counts callbacks."""
        count = [0]
        armed = [None]

        def guard(function):
            def run(frame):
                count[0] += 1
                if armed[0] == count[0]:
                    result = break_it(frame)
                    if result is not None:
                        return result
                return function(frame)
            return run

        segment = toy.segment(guard(toy.forward), guard(toy.backward))
        with ckpt.Tape(strategy="every_segment") as tape:
            self.assertEqual(toy.step(tape, segment, self.layers), self.expected)
            total = count[0]
            self.assertGreaterEqual(total, 12)  # forward, recompute and backward of four layers
            for when in range(1, total + 1):
                count[0], armed[0] = 0, when
                before = tape.step
                with self.assertRaisesRegex(kind, pattern):
                    toy.step(tape, segment, self.layers)
                armed[0] = None
                self.assertEqual((tape.step, tape.arena.stats.in_use_bytes), (before, 0))
                self.assertEqual(toy.step(tape, segment, self.layers), self.expected)

    def test_exception(self):
        error = Raise("mine")

        def raise_it(frame):
            raise error

        self.check(raise_it, Raise, "mine")
        try:
            with ckpt.Tape() as tape:
                toy.record(tape, toy.segment(raise_it), self.layers)
        except Raise as caught:
            self.assertIs(caught, error)
            self.assertIn("raise_it", [f.name for f in __import__("traceback").extract_tb(caught.__traceback__)])

    def test_exit_and_interrupt(self):
        def interrupt(frame):
            raise KeyboardInterrupt

        self.check(interrupt, KeyboardInterrupt)

    def test_status(self):
        self.check(lambda frame: frame.fail(7, "cublas 13"), ckpt.CallbackError, "cublas 13")
        self.check(lambda frame: 4, ckpt.CallbackError)
        for beyond in (1 << 32, -1 << 31 << 1, 1 << 80):
            self.check(lambda frame: beyond, OverflowError, "expected a status of 32 bits")

    def test_wrong_result(self):
        self.check(lambda frame: "yes", TypeError, "returned str")

    def test_view_that_outlives_its_frame(self):
        kept = []

        def keep(frame):
            view = frame.slot("act") if frame.is_backward else frame.input()
            kept.append(view[1:2])

        self.check(keep, ckpt.StaleError, r"segment 'layer' \(number \d\): (slot 'act'|input '0')")

    def test_other_ways_to_keep_a_view(self):
        kept = []
        for way in (np.from_dlpack, memoryview, lambda a: a.T, lambda a: a.base, lambda a: np.asarray(a).reshape(-1).view("i4"), lambda a: [a]):
            def keep(frame):
                kept.append(way(frame.slot(0)))

            with ckpt.Tape() as tape, self.assertRaisesRegex(ckpt.StaleError, "slot 'pre'"):
                toy.record(tape, toy.segment(keep), self.layers)
            self.assertEqual(len(kept), 1)
            kept.clear()

    def test_view_after_its_lease(self):
        views = []

        def keep(frame):
            views.append(frame.slot(0).base)

        with ckpt.Tape() as tape, self.assertRaises(ckpt.StaleError):
            toy.record(tape, toy.segment(keep), self.layers)
        (view,) = views
        self.assertFalse(view.live)
        for use in (lambda: memoryview(view), lambda: view.__dlpack__(), lambda: view.numpy(), lambda: view.address, lambda: np.frombuffer(view, "u1")):
            with self.assertRaisesRegex(ckpt.StaleError, "segment 'layer' .*slot 'pre'"):
                use()
        with self.assertRaisesRegex(ckpt.StaleError, "lease"):
            ckpt.raw.ckpt_philox_uniform(ckpt.Philox()._raw, 0, 1, view)

    def test_copies_and_cycles_are_no_leak(self):
        kept = []

        def forward(frame):
            kept.append(frame.input().copy())
            view = frame.input()
            loop = [view]
            loop.append(loop)  # only the collector frees it
            return toy.forward(frame)

        with ckpt.Tape() as tape:
            toy.step(tape, toy.segment(forward), self.layers)
        self.assertEqual(len(kept), 4)

    def test_frame_after_its_callback(self):
        frames = []

        def forward(frame):
            frames.append(frame)
            return toy.forward(frame)

        with ckpt.Tape() as tape:
            toy.record(tape, toy.segment(forward), self.layers)
        for use in (lambda f: f.needs(0), lambda f: f.slot(0), lambda f: f.input(), lambda f: f.index, lambda f: f.random(), lambda f: f.scratch(),
                    lambda f: f.output(), lambda f: f.input_grad(0), lambda f: f.fail(1, "x")):
            with self.assertRaisesRegex(ckpt.StaleError, "over"):
                use(frames[0])

    def test_forgotten_slot(self):
        def forward(frame):
            frame.output()[...] = 0

        with ckpt.Tape() as tape, self.assertRaisesRegex(ckpt.NotFilledError, "pre"):
            toy.record(tape, toy.segment(forward), self.layers)

    def test_wrong_numbers_and_names(self):
        for ask, kind, pattern in ((lambda f: f.slot("nosuch"), ckpt.NotFoundError, "'nosuch'"), (lambda f: f.slot(2), ckpt.InvalidArgumentError, "slot 2"),
                                   (lambda f: f.input(1), ckpt.InvalidArgumentError, "input 1"), (lambda f: f.needs(-1), ckpt.InvalidArgumentError, "-1"),
                                   (lambda f: f.slot(1.5), TypeError, ""), (lambda f: f.output(0, 1), TypeError, "at most one"),
                                   (lambda f: f.random(65536), ckpt.SizeOverflowError, "65536")):
            with ckpt.Tape() as tape, self.assertRaisesRegex(kind, pattern):
                toy.record(tape, toy.segment(lambda frame: ask(frame) and None), self.layers)

    def test_inputs_are_read_only(self):
        def forward(frame):
            frame.input()[0] = 1

        with ckpt.Tape() as tape, self.assertRaisesRegex(ValueError, "read-only"):
            toy.record(tape, toy.segment(forward), self.layers)

    def test_reads_that_last(self):
        with ckpt.Tape() as tape:
            y = toy.record(tape, toy.segment(), self.layers)
            view = tape.read(y, copy=False)
            again = tape.read(y)
            self.assertTrue(np.array_equal(view, again))
            for _ in range(2):
                with self.assertRaisesRegex(ckpt.StaleError, "boundary"):
                    tape.backward(y, again)
            self.assertTrue(np.array_equal(view, again))
            del view
            tape.backward(y, again)
            y = toy.record(tape, toy.segment(), self.layers)
            view = tape.read(y, copy=False)
            del view
            tape.backward(y, again)
            y = toy.record(tape, toy.segment(), self.layers)
            view = tape.read(y, copy=False)
            base = view.base
            tape.reset()
            self.assertFalse(base.live)

    def test_closed_inside_a_callback_and_from_another_thread(self):
        tape = ckpt.Tape()

        def forward(frame):
            thread = threading.Thread(target=tape.close)
            thread.start()
            thread.join()
            return toy.forward(frame)

        try:
            toy.record(tape, toy.segment(forward), self.layers[:1])
        except ckpt.Error:
            pass
        self.assertTrue(tape.closed)

    def test_calls_of_the_tape_inside_its_callbacks(self):
        """They are refused, or change nothing; what the recording uses stays, though nobody else refers to it."""
        expected, y, busy = self.expected, [], ckpt.BusyError
        for act, kind in ((lambda t: t.backward(y, toy.x()), busy), (lambda t: t.reset(), busy), (lambda t: t.begin(), busy), (lambda t: t.read(y[0]), busy),
                          (lambda t: t.detach(), busy), (lambda t: t.release(y[0]), busy), (lambda t: t.run(toy.segment(), *y, user=toy.Layer(0)), busy),
                          (lambda t: t.arena.close(), None), (lambda t: gc.collect(), None), (lambda t: t.close(), None)):
            for when in range(1, 13):
                count = [0]

                def guard(function):
                    def run(frame):
                        count[0] += 1
                        if count[0] == when and kind is None:
                            act(tape)
                        elif count[0] == when:
                            with self.assertRaises(kind):
                                act(tape)
                        gone = [np.full((toy.ROWS, toy.WIDTH), np.nan, np.float32) for _ in range(4)]  # takes the place of what is freed
                        del gone
                        return function(frame)
                    return run

                tape, named = ckpt.Tape(strategy="every_segment"), ckpt.Tape.input
                tape.input = lambda *args: y.__setitem__(slice(None), [named(tape, *args)]) or y[0]
                try:
                    self.assertEqual(toy.step(tape, toy.segment(guard(toy.forward), guard(toy.backward)), self.layers), expected)
                except ckpt.StateError:
                    self.assertTrue(tape.closed)
                if not tape.closed and not tape.arena.closed:
                    self.assertEqual(toy.step(tape, toy.segment(), self.layers), expected)

    def test_another_thread_runs_while_the_library_works(self):
        """The GIL is free inside the library: a long fill in one thread, Python in the other."""
        values = np.empty(1 << 25, np.float32)
        ticks, done = [0], threading.Event()

        def fill():
            ckpt.Philox(1).normal(out=values)
            done.set()

        before = sys.getswitchinterval()
        sys.setswitchinterval(1000)  # nobody takes the GIL from who has it
        try:
            thread = threading.Thread(target=fill)
            thread.start()
            while not done.is_set():
                ticks[0] += 1
                done.wait(0.001)
            thread.join()
        finally:
            sys.setswitchinterval(before)
        self.assertGreater(ticks[0], 1)

    def test_same_tape_in_two_threads_is_busy(self):
        caught = []
        with ckpt.Tape() as tape:
            def forward(frame):
                def other():
                    try:
                        tape.input(toy.x())
                    except ckpt.Error as error:
                        caught.append(error)
                thread = threading.Thread(target=other)
                thread.start()
                thread.join()
                return toy.forward(frame)

            toy.record(tape, toy.segment(forward), self.layers[:1])
        self.assertIsInstance(caught[0], ckpt.BusyError)

    def test_cycles_through_segments_are_collected(self):
        import weakref

        class Owner:
            def __init__(self):
                self.segment = ckpt.Segment("own", self.forward, outputs=ckpt.Output("out", (1,)))

            def forward(self, frame):
                pass

        ref = weakref.ref(Owner())
        gc.collect()
        self.assertIsNone(ref())


    def test_memory_of_an_output_of_a_segment_that_is_gone(self):
        def forward(frame):
            frame.output()[...] = frame.input()

        x = np.arange(1 << 20, dtype=np.float32)

        def record(tape):
            return tape.run(ckpt.Segment("copy", forward, lambda frame: None, outputs=ckpt.Output(memory=np.zeros_like(x))), tape.input(x))

        with ckpt.Tape() as tape:
            y = record(tape)
            gc.collect()
            others = [np.full_like(x, 7) for _ in range(3)]
            self.assertTrue(np.array_equal(tape.read(y), x))
            del others

    def test_scratch(self):
        seen = []

        def forward(frame):
            scratch = frame.scratch((2, 4))
            self.assertEqual((scratch.shape, scratch.dtype.name), ((2, 4), "float32"))
            scratch[...] = 3
            self.assertEqual(frame.scratch().view("f4").tolist(), [3] * 8)  # the memory itself
            self.assertEqual(frame.scratch(2, "int16").nbytes, 4)
            for shape, dtype, pattern in (((3, 4), None, "32 bytes of scratch here, 48 asked for"), (-1, "u1", "no negative"), (2, object, "plain bits"),
                                          ((1 << 40, 1 << 40), "u1", "at most")):
                with self.assertRaisesRegex(ckpt.InvalidArgumentError, pattern):
                    frame.scratch(shape, dtype)
            frame.output()[...] = 0
            seen.append(frame.index)

        with ckpt.Tape() as tape:
            tape.run(ckpt.Segment("s", forward, outputs=ckpt.Output("out", (1,)), forward_scratch=32), tape.input(toy.x()))
        self.assertEqual(seen, [0])

    def test_watched_views(self):
        with ckpt.Arena() as arena, ckpt.Tape(arena, checks="inputs") as tape, arena.alloc((8,), "float32") as block:
            for change in (0, 1):
                block.array.fill(1)
                y = tape.run(toy.segment(), tape.input(toy.x()), user=toy.Layer(0), watch={"w": block.view})
                block.array[3] += change
                if change:
                    with self.assertRaisesRegex(ckpt.CheckError, "watched memory 'w'"):
                        tape.backward(y, toy.x())
                else:
                    tape.backward(y, toy.x())
            for watch, kind, pattern in (({"w": None}, TypeError, "watch 'w' is NoneType"), ({"w": 4096}, TypeError, "watch 'w' is int"),
                                         (["w"], ValueError, "watch is list, expected a dict")):
                with self.assertRaisesRegex(kind, pattern):
                    tape.run(toy.segment(), tape.input(toy.x()), user=toy.Layer(0), watch=watch)
                tape.reset()


class Processes(unittest.TestCase):
    def run_apart(self, code):
        done = subprocess.run([sys.executable, "-c", "import ckpt, os, sys, threading, time, toy\nlayers = [toy.Layer(k) for k in range(4)]\n" + code],
                              cwd=os.path.dirname(os.path.abspath(__file__)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return done.returncode, done.stderr

    def test_exit_while_daemon_threads_step(self):
        self.assertEqual(self.run_apart("""
started = [threading.Event() for _ in range(3)]
def go(event):
    tape, segment = ckpt.Tape(), toy.segment()
    while True:
        toy.step(tape, segment, layers)
        event.set()
for event in started:
    threading.Thread(target=go, args=(event,), daemon=True).start()
for event in started:
    event.wait()
"""), (0, ""))

    def test_exit_from_a_callback_and_with_open_recordings(self):
        self.assertEqual(self.run_apart("tape = ckpt.Tape()\ntoy.record(tape, toy.segment(lambda frame: sys.exit(5)), layers)"), (5, ""))
        self.assertEqual(self.run_apart("tape = ckpt.Tape()\ny = toy.record(tape, toy.segment(), layers)\nkept = tape.read(y, copy=False)"), (0, ""))

    @unittest.skipUnless(hasattr(os, "fork"), "fork")
    def test_a_forked_child_goes_on(self):
        self.assertEqual(self.run_apart("""
tape, segment = ckpt.Tape(), toy.segment()
expected = toy.step(tape, segment, layers)
child = os.fork()
same = toy.step(tape, segment, layers) == expected
if not child:
    os._exit(3 if same else 4)
sys.exit(os.waitpid(child, 0)[1] >> 8 if same else 5)
"""), (3, ""))


if __name__ == "__main__":
    unittest.main()
