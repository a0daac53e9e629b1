"""Looks at each block once, before the first step: its time, its sizes, and what the tensors are that it saves. Leaves no trace: buffers,
generators and gradients are as before."""
from __future__ import annotations

import time
from typing import Any, Callable, Sequence

import torch
from torch.utils import _pytree as pytree

from . import _context
from ._run import INPUT, OUTPUT, OUTSIDE, OWN, ROUND, Boundary, bytes_of, is_plain, may_end_early, place_of, rounded


WORTH_ENDING = 0.98  # a further run for what is saved alone is told apart from a whole one if it takes less than this part of it


class Look:
    """One block as the planner sees it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.enough_seconds = 0.0  # until all that it saves is there; a further run for that alone ends then
        self.saved_bytes = 0
        self.output_bytes = 0
        self.output_grad_bytes = 0
        self.forward_scratch = 0
        self.backward_scratch = 0
        self.kinds: list[int] = []
        self.inner = False  # it runs a backward of its own
        self.alike: Any = None  # equal for blocks that do the same work

    def segment(self, name: str, last: bool) -> dict[str, Any]:
        """As chain.json has it. backward reads what it saved of the boundaries too, from where they are: they are no part of saved_bytes."""
        reads = [what for what, kind in (("input", INPUT), ("output", OUTPUT)) if kind in self.kinds]
        out: dict[str, Any] = {"name": name, "forward_seconds": self.seconds, "backward_seconds": 2 * self.seconds,
                               "forward_scratch_bytes": self.forward_scratch, "backward_scratch_bytes": self.backward_scratch}
        early = not last and self.saved_bytes > 0 and self.enough_seconds < WORTH_ENDING * self.seconds
        if not early:
            out["saved_bytes"] = self.saved_bytes
        if not early and (last or self.output_grad_bytes):
            return {**out, "backward_reads": reads, "output_bytes": self.output_bytes, "grad_bytes": self.output_grad_bytes}
        output: dict[str, Any] = {"name": "out", "bytes": self.output_bytes, "cost_seconds": self.seconds, "flags": ["backward_reads"] if "output" in reads else []}
        if early:
            # One kernel makes what is saved and the output, for what a whole run takes, whatever is there; the first can also be made by itself.
            out["slots"] = [{"name": "saved", "bytes": self.saved_bytes, "cost_seconds": self.enough_seconds, "group": 1, "alone": True}]
            output.update(group=1, reads=[])
        if last or self.output_grad_bytes:
            output["grad_bytes"] = self.output_grad_bytes
        else:
            output["flags"].append("no_grad")
        return {**out, "backward_reads": [r for r in reads if r == "input"], "outputs": [output]}


def _grad_bytes(boundary: Boundary) -> int:
    return sum(rounded(t.numel() * t.element_size()) for t, needs in boundary.leaves if t is not None and needs)


def _cuda_of(boundary: Boundary) -> int | None:
    return next((t.get_device() for t in boundary.tensors if t.device.type == "cuda"), None)


class _Clock:
    """Seconds since its making; on CUDA those of the device."""

    def __init__(self, device: int | None) -> None:
        self.device = device
        if device is not None:
            torch.cuda.synchronize(device)
        self.start = self.now()

    def now(self) -> Any:
        if self.device is None:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self.device))
        return event

    def seconds(self, mark: Any) -> float:
        if self.device is None:
            return mark - self.start
        mark.synchronize()
        return self.start.elapsed_time(mark) / 1e3


class _Went:
    """One run of a block."""

    def __init__(self) -> None:
        self.saved: list[Any] = []
        self.wrote: list[bool] = []  # of each: whether a gradient goes to it, and so whether it is written before it is saved
        self.value: Any = None
        self.seconds = 0.0
        self.enough_seconds = 0.0


def _go(block: Callable[..., Any], boundary: Boundary, first: bool, look: Look) -> _Went:
    went = _Went()
    mark, saved, wrote = None, went.saved, went.wrote  # nodes keep `pack`: it must not know their end

    def pack(tensor: Any) -> Any:
        nonlocal mark
        mark = clock.now()
        wrote.append(tensor.requires_grad)
        saved.append(tensor if tensor.is_leaf else tensor.detach())  # a node that held its own output would never go
        return saved[-1]

    def unpack(tensor: Any) -> Any:
        look.inner = True
        return tensor

    args, kwargs = boundary.value() if first else ((boundary.value(),), {})
    clock = _Clock(_cuda_of(boundary))
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        went.value = block(*args, **kwargs)
    went.seconds = clock.seconds(clock.now())
    went.enough_seconds = clock.seconds(mark) if mark is not None else 0.0
    return went


def _backward_scratch(value: Any, device: int) -> int:
    """What a backward takes beyond gradients of boundaries, by CUDA's own counters."""
    leaves = [t for t in pytree.tree_flatten(value)[0] if isinstance(t, torch.Tensor) and t.requires_grad]
    if not leaves:
        return 0
    grads = [torch.ones_like(t) for t in leaves]
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    ends = [e[0] for e in _leaf_ends(leaves)]
    made = torch.autograd.grad(leaves, ends, grads, allow_unused=True) if ends else ()
    torch.cuda.synchronize(device)
    peak = torch.cuda.max_memory_allocated(device) - before
    kept = bytes_of([g for g in made if g is not None])
    return max(0, peak - kept)


def _leaf_ends(leaves: Sequence[Any]) -> list[tuple[Any]]:
    """The leaf tensors of a graph that want a gradient."""
    seen, out, todo = set(), [], [t.grad_fn for t in leaves if t.grad_fn is not None]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            out.append((node.variable,))
        todo += [n for n, _ in node.next_functions if n is not None]
    return out


def _kind(tensor: Any, inputs: Boundary, outputs: Boundary, same: set[int]) -> int:
    """same: the memory that two runs have in common."""
    place = place_of(tensor)
    if is_plain(tensor) and place in inputs.places:
        return INPUT
    if not is_plain(tensor) or tensor.is_leaf and tensor.requires_grad or place in same:
        return OUTSIDE
    return OUTPUT if place in outputs.places else OWN


def look(block: Callable[..., Any], boundary: Boundary, start: Boundary, name: str | None = None) -> tuple[Look, Boundary]:
    """Two runs: the second is timed warm, and what is the same memory in both is not the block's. start: what the first block gets, the caller's."""
    first = boundary is start
    out = Look()
    generators = _context.Generators(_context.cuda_devices(boundary.tensors))
    device = _cuda_of(boundary)
    with torch.enable_grad(), _context.ModulesSeen(_context.modules_of(block), apart=True) as seen:
        earlier = _go(block, boundary, first, out)
        earlier.value = None
        generators.restore()
        before = 0
        if device is not None:
            torch.cuda.reset_peak_memory_stats(device)
            before = torch.cuda.memory_allocated(device)
        went = _go(block, boundary, first, out)
        value = went.value
        after = Boundary(value, name)
        same = {place_of(t) for t in earlier.saved if is_plain(t)} if len(earlier.saved) == len(went.saved) else set()
        out.kinds = [_kind(t, boundary, after, same) for t in went.saved]
        out.saved_bytes = bytes_of([t for t, kind in zip(went.saved, out.kinds) if kind == OWN])
        out.seconds = max(min(earlier.seconds, went.seconds), 1e-9)
        out.enough_seconds = min(earlier.enough_seconds, went.enough_seconds)
        known = {*boundary.places, *(place_of(t) for _, _, t, _ in seen.read()), *(place_of(t) for t in seen.stand_ins())}
        if out.inner or not may_end_early([wrote or place_of(t) in known for wrote, t in zip(went.wrote[-2:], went.saved[-2:])]):
            out.enough_seconds = out.seconds
        if isinstance(block, torch.nn.Module):
            out.alike = (type(block), tuple((t.shape, t.dtype) for t in went.saved), tuple(t.shape for t in after.tensors), _grad_bytes(after))
        inner = out.inner  # before a backward that measures
        # An output that is (a view of) an inner boundary counts again: it keeps that memory when the boundary is freed.
        out.output_bytes = bytes_of([t for t in after.tensors if place_of(t) not in start.places])
        out.output_grad_bytes = _grad_bytes(after)
        if device is not None:
            live = out.saved_bytes + out.output_bytes
            out.forward_scratch = max(0, torch.cuda.max_memory_allocated(device) - before - live) // ROUND * ROUND
            del earlier
            out.backward_scratch = _backward_scratch(value, device) // ROUND * ROUND
        if inner:  # while it runs, all that it saves is there
            out.forward_scratch = max(out.forward_scratch, out.saved_bytes)
        out.inner = inner
    generators.restore()
    del value, went
    boundary.check("a block changes its own input")
    return out, after


def look_all(blocks: Sequence[Callable[..., Any]], names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Look], Boundary]:
    """All blocks, one after the other; only one block's tensors are there at a time."""
    boundary = start = Boundary((args, kwargs))
    looks = []
    for block, name in zip(blocks, [*names[:-1], None]):
        one, boundary = look(block, boundary, start, name)
        looks.append(one)
    _share_times(looks)
    return looks, start


def _share_times(looks: list[Look]) -> None:
    """Blocks that do the same work take the same time: the least that was measured. A plan should not follow the clock's noise."""
    least: dict[Any, tuple[float, float]] = {}
    for one in looks:
        seconds, enough = least.get(one.alike, (one.seconds, one.enough_seconds))
        least[one.alike] = min(one.seconds, seconds), min(one.enough_seconds, enough)
    for one in looks:
        if one.alike is not None:
            one.seconds, one.enough_seconds = least[one.alike]
