"""Schedules of loops, estimates of models, packing: pure functions of the library."""
from __future__ import annotations

from typing import Any, Iterable, Iterator, NamedTuple

import numpy as np

from . import raw
from ._handle import Handle, Record, fields
from .errors import BudgetError, InvalidArgumentError, NotFoundError
from .plan import Chain
from .sizes import Bytes, parse_bytes

_KINDS = ("done", "store", "restore", "advance", "backward")


class ScheduleAction(NamedTuple):
    """kind: "store", "restore", "advance" or "backward"."""

    kind: str
    snapshot: int
    first: int
    last: int


class Schedule(Handle):
    """Revolve for a loop of `steps` equal steps with `snapshots` snapshots: iterate over it for its actions."""

    _destroy = staticmethod(raw.ckpt_schedule_destroy)

    def __init__(self, steps: int, snapshots: int) -> None:
        _whole(steps=steps, snapshots=snapshots)
        self._handle = raw.ckpt_schedule_revolve(steps, snapshots)
        self._action = raw.ckpt_schedule_action()

    def __iter__(self) -> Iterator[ScheduleAction]:
        return self

    def __next__(self) -> ScheduleAction:
        a = self._action
        raw.ckpt_schedule_next(self._get(), a)
        if a.kind == raw.CKPT_SCHEDULE_DONE:
            raise StopIteration
        return ScheduleAction(_KINDS[a.kind], a.snapshot, a.first, a.last)

    def to_json(self) -> str:
        """In the vocabulary of checkpoint_schedules; the schedule is at its end afterwards."""
        return raw.ckpt_schedule_to_json(self._get())


def _whole(**values: Any) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
            raise InvalidArgumentError(f"{name} is {value!r}, expected a whole number from 0")


def schedule(steps: int, snapshots: int) -> Schedule:
    """The optimal schedule (Revolve) for a loop of equal steps."""
    return Schedule(steps, snapshots)


def revolve_extra_forwards(steps: int, snapshots: int) -> int:
    """Forward steps beyond the first of each that the optimal schedule takes."""
    _whole(steps=steps, snapshots=snapshots)
    return raw.ckpt_revolve_extra_forwards(steps, snapshots)


class Estimate(Record):
    """What ckpt_estimate has: bytes, flops and seconds of one rank."""


_POLICIES = ("none", "attention", "feed_forward", "full", "optimal")
_ENUMS = {"activation": ("gelu", "swiglu"), "attention": ("plain", "flash")}
_MODEL = ("element_bytes", "layers", "hidden", "heads", "kv_heads", "head_size", "ffn", "sequence", "micro_batch", "vocabulary")
_LAYOUT = ("tensor_parallel", "context_parallel", "pipeline", "virtual_pipeline", "micro_batches")


def _request(activation: str, attention: str, dropout: bool, sequence_parallel: bool, flops: float | None, bandwidth: float | None,
             numbers: dict[str, int]) -> tuple[Any, Any, Any]:
    model, layout = raw.ckpt_model_desc(), raw.ckpt_layout_desc()
    for name, value in (("activation", activation), ("attention", attention)):
        if value not in _ENUMS[name]:
            raise InvalidArgumentError(f"{name} is {value!r}, expected one of {_ENUMS[name]}")
        setattr(model, name, _ENUMS[name].index(value))
    model.flags = raw.CKPT_MODEL_DROPOUT if dropout else 0
    layout.flags = raw.CKPT_LAYOUT_SEQUENCE_PARALLEL if sequence_parallel else 0
    for name, number in numbers.items():
        if name not in _MODEL + _LAYOUT:
            raise TypeError(f"unknown argument {name!r}, expected one of {', '.join(_MODEL + _LAYOUT)}")
        _whole(**{name: number})
        setattr(model if name in _MODEL else layout, name, number)
    hardware = None
    if flops is not None or bandwidth is not None:
        hardware = raw.ckpt_hardware_desc()
        hardware.flops_per_second, hardware.bytes_per_second = flops or 0.0, bandwidth or 0.0
    return model, layout, hardware


def estimate(*, policy: str = "none", rank: int = 0, budget: Bytes | None = None, activation: str = "gelu", attention: str = "plain",
             dropout: bool = False, sequence_parallel: bool = False, flops_per_second: float | None = None, bytes_per_second: float | None = None,
             **numbers: int) -> Estimate:
    """Activation memory of one rank of a transformer: estimate(layers=96, hidden=12288, heads=96, sequence=2048, micro_batch=1,
    tensor_parallel=8, policy="optimal", budget="20GiB"). Numbers: those of ckpt_model_desc and ckpt_layout_desc."""
    model, layout, hardware = _request(activation, attention, dropout, sequence_parallel, flops_per_second, bytes_per_second, numbers)
    if policy not in _POLICIES:
        raise NotFoundError(f"policy is {policy!r}, expected one of {', '.join(_POLICIES)}")
    out = raw.ckpt_estimate()
    raw.ckpt_estimate_rank(model, layout, hardware, _POLICIES.index(policy), rank, 0 if budget is None else parse_bytes(budget, "budget"), out)
    return Estimate(**(fields(out) | {"policy": policy}))


def estimate_chain(*, rank: int = 0, chunk: int = 0, alignment: int = 0, activation: str = "gelu", attention: str = "plain", dropout: bool = False,
                   sequence_parallel: bool = False, flops_per_second: float | None = None, bytes_per_second: float | None = None,
                   **numbers: int) -> Chain:
    """The chain of one chunk of layers of one rank; arguments as for estimate."""
    model, layout, hardware = _request(activation, attention, dropout, sequence_parallel, flops_per_second, bytes_per_second, numbers)
    return Chain._of(raw.ckpt_estimate_chain(model, layout, hardware, rank, chunk, alignment))


BUFFER = np.dtype([("lower", "u8"), ("upper", "u8"), ("bytes", "u8")])


class Packing(Record):
    """offsets, height_bytes, lower_bound_bytes, proved, fits, work."""


def pack(buffers: Iterable[tuple[int, int, int]], *, alignment: int = 1, capacity: Bytes | None = None, work_limit: int = 0) -> Packing:
    """Offsets for buffers (lower, upper, bytes) that live in [lower, upper). With a capacity: `fits` says whether it was reached."""
    try:
        table = np.array([tuple(b) for b in buffers], BUFFER)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"buffers: {error}; expected (lower, upper, bytes) of whole numbers from 0") from None
    desc, result = raw.ckpt_pack_desc(), raw.ckpt_pack_result()
    desc.buffer_size, desc.buffers, desc.buffer_count = BUFFER.itemsize, table, len(table)
    desc.alignment_bytes, desc.work_limit = alignment, work_limit
    desc.capacity_bytes = 0 if capacity is None else parse_bytes(capacity, "capacity")
    offsets, fits = np.zeros(len(table), np.uint64), True
    try:
        raw.ckpt_pack(desc, offsets, result)
    except BudgetError:
        fits = False
    return Packing(offsets=offsets, fits=fits, **(fields(result) | {"proved": bool(result.proved)}))
