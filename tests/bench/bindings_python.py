"""Host cost of a segment from Python, beside the same from C: forward and backward of a chain of segments that do nothing but ask their frame.

    PYTHONPATH=BUILD/tests/bindings/python CKPT_BUILD=BUILD python3 tests/bench/bindings_python.py

Both run in turn in this process: the C callbacks are those of a small library that is compiled here and called through ckpt.raw.
Time is that of the process, one thread; the least of several rounds."""
import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import tempfile
import time

import numpy as np

import ckpt

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = r"""
#include <ckpt/ckpt.h>
static ckpt_status forward(void *user, ckpt_frame *f) {
  (void)user;
  if (!ckpt_frame_input(f, 0) && ckpt_frame_bytes(f, CKPT_FRAME_INPUT, 0)) return 1;
  ckpt_frame_slot(f, 0);
  ckpt_frame_slot(f, 1);
  ckpt_frame_output(f, 0);
  return ckpt_frame_needs(f, 0) + ckpt_frame_needs(f, 1) + ckpt_frame_needs_output(f, 0) < 0;
}
static ckpt_status backward(void *user, ckpt_frame *f) {
  int accumulate;
  (void)user;
  ckpt_frame_slot(f, 0);
  ckpt_frame_slot(f, 1);
  ckpt_frame_input(f, 0);
  ckpt_frame_output_grad(f, 0);
  ckpt_frame_input_grad(f, 0, &accumulate);
  return 0;
}
static const uint32_t none[1] = {0};
int steps(ckpt_tape *tape, int count, int segments, const float *x, float *x_grad, const float *y_grad) {
  ckpt_slot slots[2] = {{0}, {0}};
  ckpt_output output = {0};
  ckpt_segment_desc desc = CKPT_SEGMENT_DESC_INIT;
  ckpt_segment *segment;
  slots[0].name = "a"; slots[0].bytes = 256; slots[0].reads = none;
  slots[1].name = "b"; slots[1].bytes = 256;
  output.name = "out"; output.bytes = 256;
  desc.name = "nothing"; desc.forward = forward; desc.backward = backward; desc.slots = slots; desc.slot_count = 2;
  desc.outputs = &output; desc.output_count = 1; desc.input_count = 1;
  if (ckpt_segment_create(&desc, &segment)) return 1;
  for (int k = 0; k < count; ++k) {
    ckpt_input_desc input = CKPT_INPUT_DESC_INIT;
    ckpt_buffer y;
    const void *grads[1] = {y_grad};
    if (ckpt_tape_begin(tape, 1, 0)) return 2;
    input.data = x; input.bytes = 256; input.grad = x_grad;
    if (ckpt_tape_input(tape, &input, &y)) return 3;
    for (int i = 0; i < segments; ++i) {
      ckpt_call call = CKPT_CALL_INIT;
      const ckpt_buffer in = y;
      call.inputs = &in; call.input_count = 1;
      if (ckpt_segment_run(tape, segment, &call, &y)) return 4;
    }
    if (ckpt_backward(tape, &y, grads, 1, 0)) return 5;
  }
  ckpt_segment_destroy(segment);
  return 0;
}
"""


def forward(frame):
    frame.input(), frame.slot(0), frame.slot(1), frame.output()
    frame.needs(0), frame.needs(1), frame.needs_output()


def backward(frame):
    frame.slot(0), frame.slot(1), frame.input(), frame.output_grad(), frame.input_grad()


def main():
    parser = argparse.ArgumentParser(description="host cost of a segment, Python beside C")
    parser.add_argument("--segments", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json")
    o = parser.parse_args()
    x, grad = np.zeros(64, np.float32), np.zeros(64, np.float32)
    build = pathlib.Path(os.environ.get("CKPT_BUILD", SOURCE / "build" / "release"))
    library = next(build.rglob("libckpt.so")).parent
    segment = ckpt.Segment("nothing", forward, backward, slots=[ckpt.Slot("a", (64,), reads=()), ckpt.Slot("b", (64,))], outputs=ckpt.Output("out", (64,)))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "steps.c")
        path.write_text(PROGRAM)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-I", SOURCE / "include", path, "-o", f"{folder}/steps.so", "-L", library, "-lckpt",
                        f"-Wl,-rpath,{library}"], check=True)
        in_c = ctypes.CDLL(f"{folder}/steps.so")
        for strategy in ("store_all", "every_segment"):
            with ckpt.Tape(strategy=strategy, replan="never") as tape, ckpt.Tape(strategy=strategy, replan="never") as other:
                def python_step():
                    tape.begin(1)
                    y = tape.input(x, grad)
                    for _ in range(o.segments):
                        y = tape.run(segment, y)
                    tape.backward(y, x)

                def c_steps(count):
                    status = in_c.steps(ctypes.c_void_p(int(other._handle)), count, o.segments, x.ctypes.data_as(ctypes.c_void_p),
                                        grad.ctypes.data_as(ctypes.c_void_p), x.ctypes.data_as(ctypes.c_void_p))
                    assert status == 0, (status, ckpt.raw.ckpt_last_error())

                for _ in range(5):
                    python_step()
                c_steps(5)
                best = {"python": 1e9, "c": 1e9}
                for _ in range(o.rounds):
                    start = time.process_time()
                    python_step()
                    best["python"] = min(best["python"], time.process_time() - start)
                    start = time.process_time()
                    c_steps(20)
                    best["c"] = min(best["c"], (time.process_time() - start) / 20)
                callbacks = tape.stats.forward_count + tape.stats.recompute_count + tape.stats.backward_done
                one = {k: 1e6 * v / o.segments for k, v in best.items()}
                rows.append({"strategy": strategy, "python_us": one["python"], "c_us": one["c"], "over_us": one["python"] - one["c"],
                             "callbacks": callbacks / o.segments, "over_us_per_callback": (one["python"] - one["c"]) * o.segments / callbacks})
                print("{strategy:<14} a segment's step: Python {python_us:6.2f} us, C {c_us:5.2f} us, over C {over_us:6.2f} us; "
                      "{over_us_per_callback:.2f} us for each of {callbacks:.0f} callbacks".format(**rows[-1]))
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps({"rows": rows}, indent=1) + "\n")


main()
