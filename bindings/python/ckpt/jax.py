"""Activation checkpointing for JAX, planned by libckpt.

    f = ckpt.jax.checkpoint_chain([block0, block1, ...], budget="2GiB")       f(x), or f(x, params) with block(params[i], x)
    g = jax.checkpoint(model, policy=ckpt.jax.policy(chain, plan))            named residuals: those that the plan keeps

checkpoint_chain takes the sizes of each block's residuals from its trace, plans, and writes the plan's program into the gradient: a block
is run again where the plan says so, behind an optimization barrier, so that XLA does not undo it."""
from __future__ import annotations

import functools
import json
from typing import Any, Callable, Sequence

import jax
import jax.numpy as jnp
from jax import tree_util

from .errors import InvalidArgumentError, NotFoundError
from .plan import Chain, Plan
from .sizes import Bytes, parse_bytes

Block = Callable[..., Any]


def _bytes(values: Any) -> int:
    return sum(v.size * v.dtype.itemsize for v in values if hasattr(v, "dtype"))


def _grad_bytes(values: Any) -> int:
    return _bytes([v for v in values if hasattr(v, "dtype") and jnp.issubdtype(v.dtype, jnp.inexact)])


class _Look:
    """A block as its trace shows it."""

    def __init__(self, block: Block, consts: Any, params: Any, x: Any) -> None:
        flat, tree = tree_util.tree_flatten((consts, params, x))
        first_x = len(tree_util.tree_leaves((consts, params)))

        def both(*leaves: Any) -> Any:
            c, p, value = tree_util.tree_unflatten(tree, leaves)
            return jax.vjp(lambda *a: block(*a), c, p, value)

        shapes = [jax.ShapeDtypeStruct(jnp.shape(v), jnp.result_type(v)) for v in flat]
        traced = jax.make_jaxpr(both)(*shapes)
        self.out = jax.eval_shape(lambda *leaves: block(*tree_util.tree_unflatten(tree, leaves)), *shapes)
        count = len(tree_util.tree_leaves(self.out))
        outputs, residuals = traced.jaxpr.outvars[:count], traced.jaxpr.outvars[count:]
        given = {id(v): k for k, v in enumerate(traced.jaxpr.invars)}
        made, self.reads = {}, set()
        for v in residuals:
            if id(v) in given:
                if given[id(v)] >= first_x:
                    self.reads.add("input")
            elif any(v is o for o in outputs):
                self.reads.add("output")
            elif not hasattr(v, "val"):  # literals are no memory
                made[id(v)] = v.aval
        self.saved_bytes = _bytes(made.values())
        self.holds_input = "input" in self.reads  # a pullback owns what it reads: the input stays as long as the rest
        if self.holds_input:
            self.saved_bytes += _bytes(shapes[first_x:])
        leaves = tree_util.tree_leaves(self.out)
        self.output_bytes, self.output_grad_bytes = _bytes(leaves), _grad_bytes(leaves)
        self.seconds = _cost(lambda *a: block(*tree_util.tree_unflatten(tree, a)), shapes)

    def segment(self, name: str, last: bool) -> dict[str, Any]:
        out: dict[str, Any] = {"name": name, "forward_seconds": self.seconds, "backward_seconds": 2 * self.seconds, "saved_bytes": self.saved_bytes,
                               "saved_holds_input": self.holds_input}
        if last or self.output_grad_bytes:
            return {**out, "backward_reads": sorted(self.reads - {"input"}), "output_bytes": self.output_bytes, "grad_bytes": self.output_grad_bytes}
        flags = ["no_grad", *(["backward_reads"] if "output" in self.reads else [])]
        return {**out, "backward_reads": [],
                "outputs": [{"name": "out", "bytes": self.output_bytes, "cost_seconds": self.seconds, "flags": flags}]}


def _cost(function: Callable[..., Any], shapes: Sequence[Any]) -> float:
    """Relative is all that it has to be: by XLA's count of operations and bytes, as on a device of 1e13 a second and 1e12 bytes a second."""
    try:
        told: Any = jax.jit(function).lower(*shapes).cost_analysis()
        told = told[0] if isinstance(told, (list, tuple)) else told
        return max(1e-9, told.get("flops", 0.0) / 1e13, told.get("bytes accessed", 0.0) / 1e12)
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return 1e-6


class PlannedChain:
    """Chain and plan for inputs of certain shapes."""

    def __init__(self, looks: list[_Look], x: Any, budget: int | None, strategy: str) -> None:
        leaves = [jax.ShapeDtypeStruct(jnp.shape(v), jnp.result_type(v)) for v in tree_util.tree_leaves(x)]
        self.chain = Chain({"input": {"bytes": _bytes(leaves), "memory": "caller", "grad": "arena" if _grad_bytes(leaves) else "none"},
                            "output": {"memory": "caller", "grad": "caller"},
                            "segments": [one.segment(str(i), i + 1 == len(looks)) for i, one in enumerate(looks)]})
        self.plan: Plan = self.chain.plan(budget, strategy)
        self.empty = [not one.saved_bytes for one in looks]
        self.actions = self.plan.actions


class CheckpointedChain:
    """What checkpoint_chain returns: f(x) or f(x, params)."""

    def __init__(self, blocks: Sequence[Block], budget: Bytes | None, strategy: str) -> None:
        self.blocks = list(blocks)
        if not self.blocks:
            raise InvalidArgumentError("blocks is empty, expected at least one function")
        for k, block in enumerate(self.blocks):
            if not callable(block):
                raise InvalidArgumentError(f"blocks[{k}] is {type(block).__name__}, expected a function")
        self.budget = None if budget is None else parse_bytes(budget, "budget")
        if self.budget == 0:
            raise InvalidArgumentError(f"budget is {budget!r}, expected more than 0 bytes (None: no budget)")
        self.strategy = strategy
        self._planned: dict[Any, PlannedChain] = {}
        self.latest: PlannedChain | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: plans are made anew."""
        return {**self.__dict__, "_planned": {}, "latest": None}

    def __call__(self, x: Any, params: Sequence[Any] | None = None) -> Any:
        given = [()] * len(self.blocks) if params is None else list(params)
        if len(given) != len(self.blocks):
            raise InvalidArgumentError(f"params has {len(given)} entries, expected {len(self.blocks)}, one for each block")
        converted: list[Block] = []
        consts: list[Any] = []
        value = jax.eval_shape(lambda v: v, x)
        for block, own in zip(self.blocks, given):
            call = (lambda p, v, block=block: block(v)) if params is None else block
            shape_of_own = jax.eval_shape(lambda v: v, own)
            pure, captured = jax.closure_convert(call, shape_of_own, value)  # tracers that it only captures become arguments
            converted.append(lambda c, p, v, pure=pure: pure(p, v, *c))
            consts.append(tuple(captured))
            value = jax.eval_shape(converted[-1], consts[-1], shape_of_own, value)
        planned = self._plan(converted, consts, given, x)
        return _run(tuple(converted), planned, (tuple(consts), tuple(given), x))

    def _plan(self, blocks: list[Block], consts: list[Any], params: list[Any], x: Any) -> PlannedChain:
        leaves, tree = tree_util.tree_flatten((consts, params, x))
        key = (tree, tuple((jnp.shape(v), str(jnp.result_type(v))) for v in leaves))
        if key not in self._planned:
            looks, value = [], x
            for block, c, p in zip(blocks, consts, params):
                looks.append(_Look(block, c, p, value))
                value = looks[-1].out
            self._planned[key] = PlannedChain(looks, x, self.budget, self.strategy)
            while len(self._planned) > 16:
                del self._planned[next(iter(self._planned))]
        self.latest = self._planned[key]
        return self.latest


def checkpoint_chain(blocks: Sequence[Block], budget: Bytes | None = None, *, strategy: str = "auto") -> CheckpointedChain:
    """The composition of blocks, within a budget in bytes for what its gradient keeps: boundaries, residuals, gradients of boundaries;
    parameters, the input and the last output are the caller's. BudgetError says the smallest budget that works."""
    return CheckpointedChain(blocks, budget, strategy)


def _run(blocks: tuple[Block, ...], planned: PlannedChain, args: Any) -> Any:
    @jax.custom_vjp
    def chain(args: Any) -> Any:
        consts, params, value = args
        for block, c, p in zip(blocks, consts, params):
            value = block(c, p, value)
        return value

    chain.defvjp(functools.partial(_forward, blocks, planned), functools.partial(_backward, blocks, planned))
    return chain(args)


def _forward(blocks: tuple[Block, ...], planned: PlannedChain, args: Any) -> Any:
    """The program up to its first backward; what is live then are the residuals."""
    consts, params, x = args
    boundaries, pulls, at, value = {0: x}, {}, 0, x
    seen = 0
    for at, a in enumerate(planned.actions):
        if a.kind == "backward" or a.kind == "forward" and seen == len(blocks):
            break
        if a.kind == "forward":
            i = a.index
            if a.slots or planned.empty[i]:
                boundaries[i + 1], pulls[i] = jax.vjp(blocks[i], consts[i], params[i], boundaries[i])
            else:
                boundaries[i + 1] = blocks[i](consts[i], params[i], boundaries[i])
            if i == seen:
                seen, value = seen + 1, boundaries[i + 1]
        elif a.kind == "free" and a.index:
            boundaries.pop(a.index, None)
        elif a.kind == "drop":
            pulls.pop(a.index, None)
    boundaries.pop(len(blocks), None)
    return value, (consts, params, boundaries, pulls, _Place(at))


@tree_util.register_static
class _Place(int):
    """Where in the program."""


def _backward(blocks: tuple[Block, ...], planned: PlannedChain, kept: Any, grad: Any) -> Any:
    consts, params, boundaries, pulls, at = kept
    boundaries, pulls = dict(boundaries), dict(pulls)
    const_grads: list[Any] = [None] * len(blocks)
    param_grads: list[Any] = [None] * len(blocks)
    for a in planned.actions[at:]:
        i = a.index
        if a.kind == "forward":
            # What is made again waits for the gradient, and is no common subexpression of its first run.
            start, grad = jax.lax.optimization_barrier((boundaries[i], grad))
            if (a.slots or planned.empty[i]) and i not in pulls:
                out, pulls[i] = jax.vjp(blocks[i], consts[i], params[i], start)
            else:
                out = blocks[i](consts[i], params[i], start)
            if a.outputs:
                boundaries[i + 1] = out
        elif a.kind == "backward":
            const_grads[i], param_grads[i], grad = pulls.pop(i)(grad)
            boundaries.pop(i + 1, None)
        elif a.kind == "free" and i:
            boundaries.pop(i, None)
        elif a.kind == "drop":
            pulls.pop(i, None)
    return ((tuple(const_grads), tuple(param_grads), grad),)


def policy(chain: Chain, plan: Plan, *, offload: Sequence[str] = (), offload_src: str = "device", offload_dst: str = "pinned_host") -> Any:
    """A policy for jax.checkpoint: of the names that checkpoint_name gives in the model, those of slots that the plan keeps are saved, the
    others are made again. "block3/act" names a slot of one segment; "act" alone is saved if every segment that has it keeps it. offload:
    names that are kept, but in the host's memory."""
    segments = json.loads(chain.to_json())["segments"]
    kept: dict[str, bool] = {}
    first: dict[int, Any] = {}
    for a in plan.actions:
        if a.kind == "forward":
            first.setdefault(a.index, a)
    for i, segment in enumerate(segments):
        for k, slot in enumerate(segment.get("slots", ())):
            keeps = k in first[i].slots
            kept[f"{segment['name']}/{slot['name']}"] = keeps
            kept[slot["name"]] = kept.get(slot["name"], True) and keeps
    if not kept:
        raise InvalidArgumentError("the chain has no slots with names, expected at least one")
    for name in offload:
        if name not in kept:
            raise NotFoundError(f"offload: the chain has no slot {name!r}")
    saved = [name for name, keeps in kept.items() if keeps and name not in offload]
    moved = [name for name in offload if kept[name]]
    if moved:
        return jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=saved, names_which_can_be_offloaded=moved,
                                                                         offload_src=offload_src, offload_dst=offload_dst)
    return jax.checkpoint_policies.save_only_these_names(*saved)


__all__ = ["CheckpointedChain", "PlannedChain", "checkpoint_chain", "policy"]
