"""Looks at each block once, before the first step: its time, its sizes, and what the tensors are that it saves. Leaves no trace: buffers,
generators and gradients are as before."""
from __future__ import annotations

import time
from typing import Any, Callable, Sequence

import torch
from torch.utils import _pytree as pytree

from . import _context
from ._run import INPUT, OUTPUT, OUTSIDE, OWN, ROUND, Boundary, bytes_of, is_plain, place_of, rounded


class Look:
    """One block as the planner sees it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.saved_bytes = 0
        self.output_bytes = 0
        self.output_grad_bytes = 0
        self.forward_scratch = 0
        self.backward_scratch = 0
        self.kinds: list[int] = []
        self.inner = False  # it runs a backward of its own
        self.closed = False  # it runs no modules but its own

    def segment(self, name: str, last: bool) -> dict[str, Any]:
        """As chain.json has it. backward reads what it saved of the boundaries too, from where they are: they are no part of saved_bytes."""
        reads = [what for what, kind in (("input", INPUT), ("output", OUTPUT)) if kind in self.kinds]
        out: dict[str, Any] = {"name": name, "forward_seconds": self.seconds, "backward_seconds": 2 * self.seconds, "saved_bytes": self.saved_bytes,
                               "forward_scratch_bytes": self.forward_scratch, "backward_scratch_bytes": self.backward_scratch}
        if last or self.output_grad_bytes:
            return {**out, "backward_reads": reads, "output_bytes": self.output_bytes, "grad_bytes": self.output_grad_bytes}
        flags = ["no_grad", *(["backward_reads"] if "output" in reads else [])]
        return {**out, "backward_reads": [r for r in reads if r == "input"],
                "outputs": [{"name": "out", "bytes": self.output_bytes, "cost_seconds": self.seconds, "flags": flags}]}


def _grad_bytes(boundary: Boundary) -> int:
    return sum(rounded(t.numel() * t.element_size()) for t, needs in boundary.leaves if t is not None and needs)


def _cuda_of(boundary: Boundary) -> int | None:
    return next((t.get_device() for t in boundary.tensors if t.device.type == "cuda"), None)


def _go(block: Callable[..., Any], boundary: Boundary, first: bool, look: Look) -> tuple[list[Any], Any, float]:
    """(what was saved, value, seconds) of one run."""
    saved: list[Any] = []

    def pack(tensor: Any) -> Any:
        saved.append(tensor if tensor.is_leaf else tensor.detach())  # a node that held its own output would never go
        return saved[-1]

    def unpack(tensor: Any) -> Any:
        look.inner = True
        return tensor

    args, kwargs = boundary.value() if first else ((boundary.value(),), {})
    device = _cuda_of(boundary)
    if device is not None:
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        value = block(*args, **kwargs)
    if device is not None:
        torch.cuda.synchronize(device)
    return saved, value, time.perf_counter() - start


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


def look(block: Callable[..., Any], boundary: Boundary, start: Boundary, name: str | None = None) -> tuple[Look, Boundary]:
    """Two runs: the second is timed warm, and what is the same memory in both is not the block's. start: what the first block gets, the caller's."""
    first = boundary is start
    out = Look()
    generators = _context.Generators(_context.cuda_devices(boundary.tensors))
    device = _cuda_of(boundary)
    with torch.enable_grad(), _context.ModulesSeen(_context.modules_of(block), apart=True) as seen:
        earlier, value, one = _go(block, boundary, first, out)
        generators.restore()
        before = 0
        if device is not None:
            torch.cuda.reset_peak_memory_stats(device)
            before = torch.cuda.memory_allocated(device)
        saved, value, two = _go(block, boundary, first, out)
        after = Boundary(value, name)
        places = {place_of(t) for t in earlier if is_plain(t)} if len(earlier) == len(saved) else set()
        own = []
        for t in saved:
            place = place_of(t)
            if is_plain(t) and place in boundary.places:
                out.kinds.append(INPUT)
            elif not is_plain(t) or t.is_leaf and t.requires_grad or place in places:
                out.kinds.append(OUTSIDE)
            elif place in after.places:
                out.kinds.append(OUTPUT)
            else:
                out.kinds.append(OWN)
                own.append(t)
        out.seconds = max(min(one, two), 1e-9)
        out.saved_bytes = bytes_of(own)
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
        out.inner, out.closed = inner, not seen.others
    generators.restore()
    del saved, own, value
    boundary.check("a block changes its own input")
    return out, after


def look_all(blocks: Sequence[Callable[..., Any]], names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Look], Boundary]:
    """All blocks, one after the other; only one block's tensors are there at a time."""
    boundary = start = Boundary((args, kwargs))
    looks = []
    for block, name in zip(blocks, [*names[:-1], None]):
        one, boundary = look(block, boundary, start, name)
        looks.append(one)
    return looks, start
