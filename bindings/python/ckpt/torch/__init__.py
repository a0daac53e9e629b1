"""Activation checkpointing for PyTorch, planned by libckpt.

    y = ckpt.torch.checkpoint(block, x)                                       as torch.utils.checkpoint.checkpoint
    y = ckpt.torch.checkpoint_sequential(model, x, budget="2GiB")             or segments=4
    model = ckpt.torch.Budgeted(model, budget="2GiB")                         an nn.Module

Budgeted looks at each block once, plans for the budget (bytes of what is kept for backward: boundaries, saved tensors, gradients of
boundaries; parameters, the input and the last output are the caller's), and runs the plan: of each block, what it saved stays, or
goes and is made again, once or several times. Gradients are bitwise those of plain autograd."""
from __future__ import annotations

import collections
import weakref
from typing import Any, Callable, Iterator, Sequence

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..errors import InvalidArgumentError, UnsupportedError
from ..plan import Chain, Plan
from ..sizes import Bytes, parse_bytes
from . import _context
from ._measure import Look, look_all
from ._run import ROUND, Meter, Program, Run, Step, rounded


# What may give its input itself, or a view of it.
_PASSING = (nn.Identity, nn.Flatten, nn.Unflatten, nn.Dropout, nn.AlphaDropout, nn.FeatureAlphaDropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


def _leaves(block: Any) -> Iterator[Any]:
    """The modules that a block is made of, in their order."""
    children = block.parts if isinstance(block, _Together) else list(block.children()) if isinstance(block, nn.Module) else []
    if not children:
        yield block
    for child in children:
        yield from _leaves(child)


class _Together(_context.Parts):
    """Blocks that run as one."""

    def __init__(self, parts: Sequence[Callable[..., Any]]) -> None:
        self.parts: list[Callable[..., Any]] = [one for part in parts for one in (part.parts if isinstance(part, _Together) else [part])]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        value = self.parts[0](*args, **kwargs)
        for part in self.parts[1:]:
            value = part(value)
        return value


class _OnCopy(_context.Parts):
    """A block that changes its input in place, on a copy of it."""

    def __init__(self, block: Callable[..., Any]) -> None:
        self.parts = [block]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = pytree.tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, (args, kwargs))
        return self.parts[0](*args, **kwargs)


def _in_place(block: Any) -> bool:
    """Whether it begins with a module that changes its input: at once, or what is a view of it."""
    changing = next((leaf for leaf in _leaves(block) if getattr(leaf, "inplace", False) or not isinstance(leaf, _PASSING)), None)
    return bool(getattr(changing, "inplace", False))


def _joined(blocks: Sequence[Callable[..., Any]]) -> list[Callable[..., Any]]:
    """A block that begins in place goes with the one before it: its input would be gone."""
    out: list[Callable[..., Any]] = []
    for block in reversed(blocks):
        if out and _in_place(out[-1]):
            block = _Together([block, out.pop()])
        out.append(block)
    out.reverse()
    if _in_place(out[0]):
        out[0] = _OnCopy(out[0])
    return out


def _name(i: int, block: Any) -> str:
    parts = block.parts if isinstance(block, _Together) else [block]
    return f"block {i} ({'+'.join(getattr(p, '__name__', type(p).__name__) for p in parts)})"


def _names(blocks: Sequence[Any]) -> list[str]:
    return [_name(i, b) for i, b in enumerate(blocks)]


def _blocks_of(modules: Any) -> list[Callable[..., Any]]:
    if isinstance(modules, nn.Module) and not isinstance(modules, (nn.Sequential, nn.ModuleList)) or not hasattr(modules, "__iter__"):
        raise InvalidArgumentError(f"modules is {type(modules).__name__}, expected an nn.Sequential or a list of blocks")
    blocks = list(modules)
    if not blocks:
        raise InvalidArgumentError("modules is empty, expected at least one block")
    for k, block in enumerate(blocks):
        if not callable(block):
            raise InvalidArgumentError(f"modules[{k}] is {type(block).__name__}, expected a function or module")
    return blocks


_ONCE = Program([Step("forward", 0, False, True), Step("forward", 0, True, False), Step("backward", 0)], 1)


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True,
               determinism_check: str = "default", **kwargs: Any) -> Any:
    """Runs function(*args, **kwargs) and keeps nothing of it but its arguments; its backward runs it again. A drop-in for
    torch.utils.checkpoint.checkpoint(..., use_reentrant=False)."""
    if use_reentrant:
        raise UnsupportedError("use_reentrant is True, expected False: this checkpoint is a part of the one graph")
    if determinism_check != "default":
        raise UnsupportedError(f"determinism_check is {determinism_check!r}, expected 'default': shapes are always compared")
    for name in ("context_fn", "debug", "early_stop"):
        if name in kwargs:
            raise UnsupportedError(f"argument {name} of torch.utils.checkpoint is not known here")
    if not callable(function):
        raise InvalidArgumentError(f"function is {type(function).__name__}, expected a function or module")
    if not torch.is_grad_enabled():
        return function(*args, **kwargs)
    block = _OnCopy(function) if _in_place(function) else function
    return Run([block], _ONCE, [_name(0, function)], preserve_rng_state=preserve_rng_state).forward(args, kwargs)


def _segments_program(count: int) -> Program:
    """Each segment but the last keeps its input alone, as in torch.utils.checkpoint.checkpoint_sequential."""
    steps = [Step("forward", i, i == count - 1, True) for i in range(count)] + [Step("backward", count - 1)]
    for i in reversed(range(count - 1)):
        steps += [Step("forward", i, True, False), Step("backward", i)]
    return Program(steps, count)


class Planned:
    """A plan for blocks and inputs of certain shapes: `chain`, `plan`, and after steps `measured_peak_bytes`."""

    def __init__(self, blocks: list[Callable[..., Any]], looks: list[Look], start: Any, budget: int | None, strategy: str) -> None:
        wants = any(needs for t, needs in start.leaves if t is not None)
        size = sum(rounded(t.numel() * t.element_size()) for t in start.tensors)
        self.grad_bytes = [size if wants else 0, *(one.output_grad_bytes for one in looks)]
        self.grad_bytes[-1] = 0  # the caller's
        self.chain = Chain({"input": {"bytes": size, "memory": "caller", "grad": "arena" if wants else "none"},
                            "output": {"memory": "caller", "grad": "caller"},
                            "segments": [one.segment(str(i), i + 1 == len(looks)) for i, one in enumerate(looks)]}, alignment=ROUND)
        self.plan: Plan = self.chain.plan(budget, strategy)
        steps = [Step(a.kind, a.index, bool(a.slots) or not looks[a.index].saved_bytes, bool(a.outputs)) if a.kind == "forward" else Step(a.kind, a.index)
                 for a in self.plan.actions]
        self.program = Program(steps, len(blocks), [one.kinds for one in looks], [one.inner for one in looks])
        self.meter = Meter()

    @property
    def predicted_peak_bytes(self) -> int:
        return self.plan.summary.peak_bytes

    @property
    def measured_peak_bytes(self) -> int:
        return self.meter.peak


def _signature(args: Any, kwargs: Any) -> tuple[Any, ...]:
    leaves, spec = pytree.tree_flatten((args, kwargs))
    told = tuple((t.shape, t.dtype, t.device, t.requires_grad, t.stride()) if isinstance(t, torch.Tensor) else _plain_value(t) for t in leaves)
    return (told, str(spec), _context.autocast_state())


def _plain_value(value: Any) -> Any:
    return value if isinstance(value, (int, float, bool, str, bytes, type(None))) else type(value)


class Budgeted(nn.Module):
    """An nn.Sequential, or a list of blocks, that runs within `budget`. The first step of each new shape looks at the blocks (two extra
    forward passes) and plans; BudgetError says the smallest budget that works. A block that runs again for what it saves alone ends when
    that is there, and plans count on it; modules of one class that save the same shapes count as equally fast. budget None: everything is stored. Costs are measured, so
    plans may differ between processes: blocks with collectives (SyncBatchNorm) want checkpoint_sequential(segments=...) instead."""

    def __init__(self, module: Any, budget: Bytes | None = None, *, strategy: str = "auto", preserve_rng_state: bool = True, measure: bool = False) -> None:
        super().__init__()
        blocks = _blocks_of(module)
        self.module = module if isinstance(module, nn.Module) else nn.ModuleList([b for b in blocks if isinstance(b, nn.Module)])
        self._functions = None if isinstance(module, nn.Module) else blocks
        self.budget = None if budget is None else parse_bytes(budget, "budget")
        if self.budget == 0:
            raise InvalidArgumentError(f"budget is {budget!r}, expected more than 0 bytes (None: no budget)")
        self.strategy, self.preserve_rng_state, self.measure = strategy, preserve_rng_state, measure
        self._planned: collections.OrderedDict[Any, Planned] = collections.OrderedDict()
        self.latest: Planned | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: plans are made anew."""
        return {**self.__dict__, "_planned": collections.OrderedDict(), "latest": None}

    def _blocks(self) -> list[Callable[..., Any]]:
        return _joined(self._functions if self._functions is not None else list(self.module))  # type: ignore[call-overload]

    def plan_for(self, *args: Any, **kwargs: Any) -> Planned:
        """The plan for inputs of these shapes; made if it is not known."""
        blocks = self._blocks()
        return self._plan_for(blocks, [_context.modules_of(b) for b in blocks], args, kwargs)

    def _plan_for(self, blocks: list[Callable[..., Any]], modules: list[list[nn.Module]], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Planned:
        if _context.inside_transform():
            raise UnsupportedError("Budgeted is inside a transform of torch.func (grad, vmap, jvp), expected autograd alone")
        modes = (tuple([m.training for one in modules for m in one]),
                 tuple([p.requires_grad for one in modules for m in one for p in m._parameters.values() if p is not None]))
        key = (_signature(args, kwargs), modes, self.budget, self.strategy, len(blocks))
        found = self._planned.get(key)
        if found is None:
            looks, start = look_all(blocks, _names(blocks), args, kwargs)
            found = self._planned[key] = Planned(blocks, looks, start, self.budget, self.strategy)
            while len(self._planned) > 16:
                self._planned.popitem(last=False)
        self._planned.move_to_end(key)
        return found

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        blocks = self._blocks()
        if not torch.is_grad_enabled():
            return _Together(blocks)(*args, **kwargs)
        modules = [_context.modules_of(b) for b in blocks]
        self.latest = planned = self._plan_for(blocks, modules, args, kwargs)
        run = Run(blocks, planned.program, _names(blocks), preserve_rng_state=self.preserve_rng_state, meter=planned.meter if self.measure else None,
                  grad_bytes=planned.grad_bytes, modules=modules)
        return run.forward(args, kwargs)

    def extra_repr(self) -> str:
        return f"budget={self.budget}, strategy={self.strategy!r}"


_known: collections.OrderedDict[Any, tuple[list[Any], Any]] = collections.OrderedDict()


def _budgeted(blocks: list[Callable[..., Any]], budget: Bytes, preserve_rng_state: bool) -> Budgeted:
    """A Budgeted for these blocks. What was measured and planned for them is remembered as long as they live; they are not kept alive."""
    made = Budgeted(blocks, budget, preserve_rng_state=preserve_rng_state)
    key = (tuple(id(b) for b in blocks), made.budget)
    found = _known.get(key)
    if found is None or any(r() != b for r, b in zip(found[0], blocks)):
        try:
            references = [weakref.WeakMethod(b) if hasattr(b, "__self__") and hasattr(b, "__func__") else weakref.ref(b) for b in blocks]
        except TypeError:  # something that has no weak references: measured each time
            return made
        found = _known[key] = (references, made._planned)
        while len(_known) > 8:
            _known.popitem(last=False)
    _known.move_to_end(key)
    made._planned = found[1]
    return made


def checkpoint_sequential(modules: Any, x: Any, budget: Bytes | None = None, *, segments: int | None = None, preserve_rng_state: bool = True,
                          use_reentrant: bool | None = None) -> Any:
    """Runs modules (an nn.Sequential or a list) one after the other on x: within a budget by libckpt's plan, or in `segments` parts of
    which all but the last are run again in backward (as torch.utils.checkpoint.checkpoint_sequential)."""
    if use_reentrant:
        raise UnsupportedError("use_reentrant is True, expected False: this checkpoint is a part of the one graph")
    blocks = _blocks_of(modules)
    if (budget is None) == (segments is None):
        raise InvalidArgumentError(f"budget is {budget!r} and segments is {segments!r}, expected one of them")
    if budget is not None:
        return _budgeted(blocks, budget, preserve_rng_state)(x)
    if isinstance(segments, bool) or not isinstance(segments, int) or not 1 <= segments <= len(blocks):
        raise InvalidArgumentError(f"segments is {segments!r}, expected 1 to {len(blocks)}, the number of blocks")
    if not torch.is_grad_enabled():
        return _Together(blocks)(x)
    size = len(blocks) // segments
    starts = [k * size for k in range(segments)]
    parts = _joined([_Together(blocks[a:b]) for a, b in zip(starts, [*starts[1:], len(blocks)])])
    return Run(parts, _segments_program(len(parts)), _names(parts), preserve_rng_state=preserve_rng_state).forward((x,), {})


__all__ = ["Budgeted", "Planned", "checkpoint", "checkpoint_sequential"]
