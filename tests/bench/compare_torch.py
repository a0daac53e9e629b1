"""train_gpt against the same GPT in PyTorch, on the CPU or a GPU: step time and peak memory, without checkpointing and with one checkpoint
a block (torch.utils.checkpoint against every_segment).

    python3 tests/bench/compare_torch.py --train-gpt build/release/examples/train_gpt [--json=FILE] [options]

Both run in turn, a few steps each, several times over; the figures are medians, and the ratio is libckpt / PyTorch. On a machine
that does other work too, take --threads 1 and the ratio of CPU seconds. First it is shown that both are the same model: from the
same parameters and batch, the loss before and after four AdamW steps is the same.

Memory: PyTorch's peak is the most that its CPU allocator had in use in a step, beyond what was in use before (parameters,
gradients and moments are there already); libckpt's is the arena's height. Peak resident memory of a process is given beside it.

With --device cuda [--dtype bfloat16] both run on the GPU: time is wall time with the device waited for, PyTorch's peak is its CUDA
allocator's. PyTorch's parameters, gradients and moments are then in the dtype; libckpt's gradients, moments and master weights are float32.

Where PyTorch cannot be imported this says so and exits with 77 (skipped). --install puts it into build/torch-venv first."""
import argparse
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
LEARNING_RATE, WEIGHT_DECAY, MAX_NORM = 1e-3, 0.1, 1.0
MODES = {"store_all": False, "every_segment": True}


def parse():
    parser = argparse.ArgumentParser(description="train_gpt against PyTorch")
    parser.add_argument("--train-gpt", required=True)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--channels", type=int, default=256)
    parser.add_argument("--sequence", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--attention", choices=["plain", "tiled"], default="plain", help="tiled: scaled_dot_product_attention in PyTorch")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N, as train_gpt's")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3, help="timed steps of each in each round")
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE")
    parser.add_argument("--install", action="store_true", help="install PyTorch into build/torch-venv if it is not there")
    parser.add_argument("--child", choices=sorted(MODES), help=argparse.SUPPRESS)
    return parser.parse_args()


def import_torch(install):
    try:
        import torch
        return torch
    except ImportError as error:
        reason = error
    environment = ROOT / "build" / "torch-venv"
    python = environment / "bin" / "python"
    if install and "CKPT_TORCH_INSTALLED" not in os.environ:
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "torch", "numpy"], check=False)
        os.environ["CKPT_TORCH_INSTALLED"] = "1"
        os.execv(python, [str(python), *sys.argv])
    print(f"skipped: PyTorch cannot be imported ({reason}); --install, or Debian's python3-torch", file=sys.stderr)
    sys.exit(SKIPPED)


OPTIONS = parse()
torch = import_torch(OPTIONS.install)
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402


# ---- the model ----

class Block(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.heads, self.tiled = o.heads, o.attention == "tiled"
        self.ln1, self.qkv, self.proj = nn.LayerNorm(o.channels), nn.Linear(o.channels, 3 * o.channels), nn.Linear(o.channels, o.channels)
        self.ln2, self.fc1, self.fc2 = nn.LayerNorm(o.channels), nn.Linear(o.channels, 4 * o.channels), nn.Linear(4 * o.channels, o.channels)
        self.register_buffer("future", torch.ones(o.sequence, o.sequence, dtype=torch.bool).triu(1), persistent=False)

    def attention(self, x):
        b, t, c = x.shape
        q, k, v = (part.transpose(1, 2) for part in self.qkv(x).view(b, t, 3, self.heads, c // self.heads).unbind(2))
        if self.tiled:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(c // self.heads))
            y = functional.softmax(scores.masked_fill(self.future, float("-inf")), dim=-1) @ v
        return self.proj(y.transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.fc2(functional.gelu(self.fc1(self.ln2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, o.channels), nn.Embedding(o.sequence, o.channels)
        self.blocks = nn.ModuleList(Block(o) for _ in range(o.layers))
        self.norm = nn.LayerNorm(o.channels)

    def forward(self, tokens, targets, checkpointed):
        x = self.tokens(tokens) + self.places.weight
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if checkpointed else block(x)
        logits = self.norm(x) @ self.tokens.weight.T
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))

    def in_file_order(self):
        """As in train_gpt's save file."""
        yield from (self.tokens.weight, self.places.weight)
        for b in self.blocks:
            for layer in (b.ln1, b.qkv, b.proj, b.ln2, b.fc1, b.fc2):
                yield from (layer.weight, layer.bias)
        yield from (self.norm.weight, self.norm.bias)

    def load(self, values):
        with torch.no_grad():
            at = 0
            for parameter in self.in_file_order():
                parameter.copy_(values[at:at + parameter.numel()].view(parameter.shape))
                at += parameter.numel()
        assert at == values.numel(), f"{at} parameters here, {values.numel()} in the save file"


class Trainer:
    def __init__(self, o, values):
        torch.manual_seed(1)
        self.model = Gpt(o)
        self.model.load(values)
        self.model.to(o.device, getattr(torch, o.dtype))
        groups = [{"params": [p for p in self.model.parameters() if p.dim() > 1], "weight_decay": WEIGHT_DECAY},
                  {"params": [p for p in self.model.parameters() if p.dim() == 1], "weight_decay": 0.0}]
        try:
            self.optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE, fused=True)
        except (TypeError, RuntimeError):  # PyTorch 1
            self.optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE)
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)

    def step(self, tokens, targets, checkpointed):
        self.optimizer.zero_grad(set_to_none=False)
        loss = self.model(tokens, targets, checkpointed)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), MAX_NORM)
        self.optimizer.step()
        return loss.item()  # waits for a GPU


class Text:
    def __init__(self, path):
        self.data = torch.tensor(list(path.read_bytes()), dtype=torch.long)
        self.random = random.Random(1)

    def batch(self, o):
        starts = [self.random.randrange(len(self.data) - o.sequence) for _ in range(o.batch)]
        rows = torch.stack([self.data[s:s + o.sequence + 1] for s in starts]).to(o.device)
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


# ---- train_gpt ----

def train_gpt(o, text, steps, strategy, **more):
    options = {"text": text, "steps": steps, "strategy": strategy, "layers": o.layers, "heads": o.heads, "channels": o.channels,
               "sequence": o.sequence, "batch": o.batch, "attention": o.attention, "learning_rate": LEARNING_RATE,
               "weight_decay": WEIGHT_DECAY, "max_norm": MAX_NORM, "device": o.device, "dtype": o.dtype} | more
    if options["device"] == "cpu":
        options["threads"] = o.threads
    command = [o.train_gpt, "--json"] + [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(f"compare_torch.py: {' '.join(command)}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def first_parameters(o, text, folder):
    """What train_gpt starts from: saved after a step that moves nothing."""
    run = train_gpt(o, text, 1, "store_all", learning_rate=1e-12, weight_decay=0, save=folder / "first", device="cpu", dtype="float32", batch=1)
    data = (folder / "first").read_bytes()
    count = run["config"]["parameters"]
    begin = len(data) - 3 * 4 * count - 8  # examples/train_gpt/save.h: a header, three arrays, a checksum
    return torch.frombuffer(bytearray(data[begin:begin + 4 * count]), dtype=torch.float32)


def check_same_model(o, folder):
    """A text of one sequence and one byte makes each row of each batch that sequence."""
    text = folder / "one"
    text.write_bytes(bytes(random.Random(7).randrange(32, 127) for _ in range(o.sequence + 1)))
    values = first_parameters(o, text, folder)
    trainer, corpus = Trainer(o, values), Text(text)
    losses = [trainer.step(*corpus.batch(o), False) for _ in range(5)]
    mine = {steps: train_gpt(o, text, steps, "store_all")["loss"] for steps in (1, 5)}
    narrow = o.dtype != "float32"
    for steps in (1, 5):
        if not math.isclose(mine[steps], losses[steps - 1], rel_tol=(1e-2 if narrow else 2e-4) if steps == 1 else (5e-2 if narrow else 5e-3)):
            sys.exit(f"compare_torch.py: not the same model: loss {mine[steps]} in train_gpt, {losses[steps - 1]} in PyTorch, in step {steps}")
    return {"first_loss": [mine[1], losses[0]], "fifth_loss": [mine[5], losses[4]]}


# ---- memory ----

def storage_of(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()  # PyTorch 1


def saved_bytes(o, trainer, text, checkpointed):
    """What autograd keeps for backward, each storage once, parameters left out."""
    own = {storage_of(p).data_ptr() for p in trainer.model.parameters()}
    seen = {}

    def pack(tensor):
        storage = storage_of(tensor)
        if storage.data_ptr() not in own:
            seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = trainer.model(*text.batch(o), checkpointed)
    kept = sum(seen.values())
    loss.backward()
    return kept


def allocator_peak(o, trainer, text, checkpointed):
    batch = text.batch(o)
    if o.device != "cpu":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        trainer.step(*batch, checkpointed)
        return torch.cuda.max_memory_allocated() - before
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        trainer.step(*batch, checkpointed)
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    events.sort(key=lambda e: e.start_ns() if hasattr(e, "start_ns") else e.start_us())  # PyTorch 1
    live = peak = 0
    for event in events:
        live += event.nbytes()
        peak = max(peak, live)
    return peak


def resident():
    """Not getrusage's: that starts from the peak of the process that started this one."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def child(o):
    """Peak resident memory of one mode, in a process of its own."""
    text = Text(pathlib.Path(__file__))
    trainer = Trainer(o, torch.randn(sum(p.numel() for p in Gpt(o).parameters())) * 0.02)
    before = resident()
    for _ in range(2):
        trainer.step(*text.batch(o), MODES[o.child])
    print(json.dumps({"before": before, "peak": resident()}))


def torch_resident(mode):
    run = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--child", mode], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout)


# ---- time ----

def measure(o, trainer, text, path):
    times = {(who, mode, clock): [] for who in ("libckpt", "torch") for mode in MODES for clock in ("wall", "cpu")}
    last = {}
    for number in range(o.rounds):
        for mode, checkpointed in MODES.items():
            last[mode] = train_gpt(o, path, o.steps + 2, mode)
            times["libckpt", mode, "wall"] += last[mode]["each_step_seconds"][2:]
            times["libckpt", mode, "cpu"] += last[mode]["each_step_cpu_seconds"][2:]
            for k in range(o.steps + 1):
                start, cpu = time.perf_counter(), time.process_time()
                trainer.step(*text.batch(o), checkpointed)
                if k > 0:
                    times["torch", mode, "wall"].append(time.perf_counter() - start)
                    times["torch", mode, "cpu"].append(time.process_time() - cpu)
        print(f"round {number + 1} of {o.rounds}", file=sys.stderr)
    return times, last


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values), "count": len(values)}


def main(o):
    torch.set_num_threads(o.threads)
    if o.device != "cpu" and not torch.cuda.is_available():
        print(f"skipped: --device {o.device}, but PyTorch {torch.__version__} sees no GPU", file=sys.stderr)
        sys.exit(SKIPPED)
    if o.attention == "tiled" and not hasattr(functional, "scaled_dot_product_attention"):
        print(f"skipped: PyTorch {torch.__version__} has no scaled_dot_product_attention for --attention tiled", file=sys.stderr)
        sys.exit(SKIPPED)
    if o.child:
        return child(o)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        same = check_same_model(o, folder)
        path = folder / "text"
        path.write_bytes(b"".join(p.read_bytes() for p in sorted((ROOT / "src").rglob("*.cpp"))))
        text = Text(path)
        trainer = Trainer(o, first_parameters(o, path, folder))
        times, last = measure(o, trainer, text, path)
        rows = []
        for mode, checkpointed in MODES.items():
            mine, theirs = spread(times["libckpt", mode, "wall"]), spread(times["torch", mode, "wall"])
            cpu = [spread(times[who, mode, "cpu"]) for who in ("libckpt", "torch")]
            peak, rss = allocator_peak(o, trainer, text, checkpointed), torch_resident(mode)
            rows.append({"mode": mode, "libckpt_step_seconds": mine, "torch_step_seconds": theirs,
                         "step_time_ratio": mine["median"] / theirs["median"], "best_step_time_ratio": mine["least"] / theirs["least"],
                         "libckpt_cpu_seconds": cpu[0], "torch_cpu_seconds": cpu[1], "cpu_time_ratio": cpu[0]["median"] / cpu[1]["median"],
                         "libckpt_arena_bytes": last[mode]["arena_measured_bytes"], "torch_peak_bytes": peak,
                         "torch_saved_bytes": saved_bytes(o, trainer, text, checkpointed),
                         "memory_ratio": last[mode]["arena_measured_bytes"] / peak,
                         "libckpt_max_rss_bytes": last[mode]["config"]["max_rss_bytes"], "torch_max_rss_bytes": rss["peak"],
                         "torch_rss_before_steps_bytes": rss["before"]})
    config = {key: getattr(o, key) for key in ("layers", "heads", "channels", "sequence", "batch", "attention", "device", "dtype", "threads", "rounds", "steps")}
    config |= {"torch": torch.__version__, "blas": last["store_all"]["config"]["blas"], "isa": last["store_all"]["config"]["isa"]}
    out = {"rows": rows, "same_model": same, "config": config}
    people = sys.stderr if o.json == "-" else sys.stdout
    print(f"{'mode':<14} {'libckpt s':>10} {'torch s':>10} {'ratio':>7} {'of CPU':>7} {'arena MiB':>10} {'torch peak MiB':>15} {'ratio':>7}", file=people)
    for r in rows:
        print(f"{r['mode']:<14} {r['libckpt_step_seconds']['median']:>10.3f} {r['torch_step_seconds']['median']:>10.3f} {r['step_time_ratio']:>7.3f} "
              f"{r['cpu_time_ratio']:>7.3f} "
              f"{r['libckpt_arena_bytes'] / 2**20:>10.1f} {r['torch_peak_bytes'] / 2**20:>15.1f} {r['memory_ratio']:>7.3f}", file=people)
    if o.json == "-":
        print(json.dumps(out))
    elif o.json:
        pathlib.Path(o.json).write_text(json.dumps(out, indent=1) + "\n")
    return None


main(OPTIONS)
