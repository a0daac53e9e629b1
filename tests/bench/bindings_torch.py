"""ckpt.torch.Budgeted against torch.utils.checkpoint on the CPU: a GPT of 12 blocks and a residual CNN of 50, at budgets of 25, 50 and
75 % of what they save.

    PYTHONPATH=BUILD/tests/bindings/python python3 tests/bench/bindings_torch.py [--json=FILE] [options]

All run in turn, a step each, several rounds; times are CPU seconds of a step (one thread), ratios the median of the rounds', so that a machine that
does other work too, or at another speed, measures the same. Peaks are the most that PyTorch's CPU allocator had in use in a step beyond what was in use before. "checkpoint" is
torch.utils.checkpoint around every block; "chunks k" is checkpoint_sequential with k chunks, its time-memory curve. Gradients of
every run are compared bit by bit with those of plain autograd; a difference ends this with status 1."""
import argparse
import ctypes
import json
import pathlib
import statistics
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bindings" / "python"))
try:
    import torch
except ImportError as error:
    print(f"skipped: PyTorch cannot be imported ({error})", file=sys.stderr)
    sys.exit(77)
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import ckpt.torch
import models

warnings.filterwarnings("ignore")


def parse():
    parser = argparse.ArgumentParser(description="ckpt.torch against torch.utils.checkpoint")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", default="gpt,cnn")
    parser.add_argument("--width", type=int, default=128, help="of the GPT")
    parser.add_argument("--channels", type=int, default=16, help="of the CNN, in its first stage")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--chunks", default="all", help="chunk counts of checkpoint_sequential: all, or a list")
    parser.add_argument("--json")
    return parser.parse_args()


def allocator_peak(step):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    events.sort(key=lambda e: e.start_ns() if hasattr(e, "start_ns") else e.start_us())  # PyTorch 1
    live = peak = 0
    for event in events:
        live += event.nbytes()
        peak = max(peak, live)
    return peak


class Case:
    def __init__(self, name, model, x):
        self.name, self.model, self.x = name, model, x
        for p in model.parameters():
            p.grad = torch.zeros_like(p)

    def step(self, run):
        for p in self.model.parameters():
            p.grad.zero_()
        torch.manual_seed(1)
        run(self.x).square().mean().backward()

    def gradients(self, run):
        self.step(run)
        return [p.grad.clone() for p in self.model.parameters()]


def keep_memory():
    """malloc keeps what is given back: else each run pays for pages that the one before, which needed fewer, let go."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        for parameter, value in ((-1, 2**31 - 1), (-3, 32 << 20)):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
            libc.mallopt(parameter, value)


def every_block(model):
    def run(x):
        for block in model:
            x = checkpoint(block, x, use_reentrant=False)
        return x
    return run


def measure(case, o):
    count = len(case.model)
    probe = ckpt.torch.Budgeted(case.model)
    most = probe.plan_for(case.x).plan.arena_bytes
    runs = {"plain": case.model, "checkpoint": every_block(case.model)}
    chunks = range(1, count + 1) if o.chunks == "all" else [int(k) for k in o.chunks.split(",")]
    for k in chunks:
        runs[f"chunks {k}"] = lambda x, k=k: checkpoint_sequential(case.model, k, x, use_reentrant=False)
    budgeted = {}
    for share in (25, 50, 75):
        try:
            runs[f"budget {share} %"] = budgeted[share] = ckpt.torch.Budgeted(case.model, most * share // 100)
            budgeted[share].plan_for(case.x)
        except ckpt.BudgetError as error:
            print(f"{case.name}: {share} %: {error}", file=sys.stderr)
            del runs[f"budget {share} %"], budgeted[share]
    # The fastest plan whose step takes no more memory than one checkpoint a block (but for the hooks' few bytes).
    goal = allocator_peak(lambda: case.step(runs["checkpoint"]))
    points = probe.plan_for(case.x).chain.curve()
    low, high = 0, len(points) - 1
    while low < high:
        middle = (low + high + 1) // 2
        trial = ckpt.torch.Budgeted(case.model, points[middle].budget_bytes)
        trial.plan_for(case.x)
        low, high = (middle, high) if allocator_peak(lambda: case.step(trial)) <= 1.002 * goal else (low, middle - 1)
    runs["equal peak"] = ckpt.torch.Budgeted(case.model, points[low].budget_bytes)
    state = {k: v.clone() for k, v in case.model.state_dict().items()}
    expected = None
    rows = []
    for name, run in runs.items():
        got = case.gradients(run)
        expected = expected or got
        if not all(torch.equal(a, b) for a, b in zip(got, expected)):
            sys.exit(f"{case.name}, {name}: gradients differ from those of plain autograd")
        rows.append({"model": case.name, "run": name, "peak_bytes": allocator_peak(lambda: case.step(run)), "cpu_seconds": [], "seconds": []})
        case.model.load_state_dict(state)
    for number in range(o.rounds):
        for row, run in zip(rows, runs.values()):
            start, cpu = time.perf_counter(), time.process_time()
            case.step(run)
            row["cpu_seconds"].append(time.process_time() - cpu)
            row["seconds"].append(time.perf_counter() - start)
        print(f"{case.name}: round {number + 1} of {o.rounds}", file=sys.stderr)
    for row in rows:
        if row["run"].startswith("budget"):
            timed = budgeted[int(row["run"].split()[1])]
            metered = ckpt.torch.Budgeted(case.model, timed.budget, measure=True)
            metered._planned = timed._planned  # the same plan, its bytes counted
            case.step(metered)
            planned = metered.latest
            row.update(predicted_peak_bytes=planned.predicted_peak_bytes, measured_saved_bytes=planned.measured_peak_bytes, saved_bytes=most)
    return rows


def ratio(a, b):
    """Of times: the median of what each round says, whose runs came one after the other."""
    return statistics.median(x / y for x, y in zip(a["cpu_seconds"], b["cpu_seconds"]))


def report(rows):
    plain, every = rows[0], rows[1]
    curve = [r for r in rows if r["run"].startswith("chunks")]
    print(f"{rows[0]['model']}: {'run':<14} {'CPU s':>8} {'of plain':>9} {'of ckpt':>9} {'peak MiB':>9} {'of ckpt':>9}   saved: predicted, measured MiB; fastest chunks of no higher peak")
    for r in rows:
        more = ""
        if "predicted_peak_bytes" in r:
            within = [c for c in curve if c["peak_bytes"] <= r["peak_bytes"]]
            best = min(within, key=lambda c: ratio(c, plain), default=None)
            r["of_best_chunks"] = best and ratio(r, best)
            more = f"{r['predicted_peak_bytes'] / 2**20:9.2f} {r['measured_saved_bytes'] / 2**20:9.2f}   " + (
                f"{best['run']}: time ratio {r['of_best_chunks']:.3f}" if best else "none")
        elif r["run"].startswith("chunks") and len(curve) > 12 and r not in (curve[0], curve[-1]) and int(r["run"].split()[1]) % 5:
            continue
        r["time_of_plain"], r["time_of_checkpoint"], r["peak_of_checkpoint"] = ratio(r, plain), ratio(r, every), r["peak_bytes"] / every["peak_bytes"]
        print(f"     {r['run']:<14} {statistics.median(r['cpu_seconds']):8.3f} {r['time_of_plain']:9.3f} {r['time_of_checkpoint']:9.3f} {r['peak_bytes'] / 2**20:9.1f} "
              f"{r['peak_of_checkpoint']:9.3f}   {more}")


def main(o):
    keep_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    cases = {"gpt": lambda: Case("GPT of 12 blocks", models.gpt(12, o.width, 4, dropout=0.1), torch.randn(o.batch, 64, o.width)),
             "cnn": lambda: Case("CNN of 50 blocks", models.cnn(50, o.channels), torch.randn(o.batch, o.channels, 32, 32))}
    rows = []
    for name in o.models.split(","):
        found = measure(cases[name](), o)
        report(found)
        rows += found
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps({"rows": rows, "torch": torch.__version__}, indent=1) + "\n")


main(parse())
