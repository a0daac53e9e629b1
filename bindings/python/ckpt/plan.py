"""Chains, plans and the questions about them."""
from __future__ import annotations

import json
from typing import Any, Iterable, Mapping, Sequence

import numpy as np

from . import raw
from ._handle import Handle, Record, fields
from .errors import InvalidArgumentError
from .sizes import Bytes, parse_bytes

ACTION = np.dtype([("kind", "u4"), ("index", "u4"), ("slots", "u8", 4), ("outputs", "u8", 4)])
PLACEMENT = np.dtype([("what", "u4"), ("index", "u4"), ("item", "u4"), ("is_recompute", "u4"), ("first_action", "u4"), ("end_action", "u4"),
                      ("bytes", "u8"), ("offset", "u8")])
CURVE_POINT = np.dtype([("budget_bytes", "u8"), ("peak_bytes", "u8"), ("seconds", "f8"), ("recompute_seconds", "f8"), ("class_gap_seconds", "f8"),
                        ("universal_gap_seconds", "f8"), ("status", "u4"), ("reserved", "u4")])
EXPLANATION = np.dtype([("what", "u4"), ("index", "u4"), ("item", "u4"), ("kept", "u4"), ("because", "u4"), ("reserved", "u4"), ("bytes", "u8"),
                        ("seconds_change", "f8"), ("peak_change", "i8")])

FORWARD, BACKWARD, FREE, DROP = range(4)
_KINDS = ("forward", "backward", "free", "drop")
_PLACED = ("slot", "output", "input", "grad", "scratch")
_BECAUSE = ("marked", "unused", "already", "faster", "budget", "no_gain", "search")


class Action(Record):
    """kind ("forward", "backward", "free", "drop"), index (segment; free: boundary), slots and outputs (tuples of numbers)."""

    kind: str
    index: int
    slots: tuple[int, ...]
    outputs: tuple[int, ...]


class PlanSummary(Record):
    """What ckpt_plan_summary has."""


class Placement(Record):
    """One block of a plan's step: what, index, item, is_recompute, first_action, end_action, bytes, offset."""


class CurvePoint(Record):
    """budget_bytes, peak_bytes, seconds, recompute_seconds, gaps, status."""


class Explanation(Record):
    """One slot or boundary: kept or not, because, and what the opposite choice would do."""


def _mask_numbers(words: Any) -> tuple[int, ...]:
    mask = 0
    for k, word in enumerate(words):
        mask |= int(word) << (64 * k)
    out = []
    while mask:
        low = mask & -mask
        out.append(low.bit_length() - 1)
        mask ^= low
    return tuple(out)


def _mask_words(numbers: Iterable[int]) -> list[int]:
    mask = 0
    for k in numbers:
        if not 0 <= k < 256:
            raise InvalidArgumentError(f"a slot's or output's number is {k}, expected 0 to 255")
        mask |= 1 << k
    return [(mask >> (64 * k)) & (2**64 - 1) for k in range(4)]


def _patterns(patterns: Sequence[str] | str) -> tuple[Any, list[bytes]]:
    names = [patterns] if isinstance(patterns, str) else list(patterns)
    texts = [name.encode() + b"\0" for name in names]
    return np.array([np.frombuffer(t, np.uint8).__array_interface__["data"][0] for t in texts], np.uint64), texts


class _Request:
    """A ckpt_plan_desc and what it points to."""

    def __init__(self, budget: Bytes | None, strategy: str, plan_class: str | None, keep: Sequence[str], recompute: Sequence[str], in_flight: int,
                 work_limit: int) -> None:
        desc = self.desc = raw.ckpt_plan_desc()
        desc.strategy, desc.k = raw.ckpt_strategy_parse(strategy)
        desc.in_flight_count = in_flight
        desc.budget_bytes = 0 if budget is None else parse_bytes(budget, "budget")
        if budget is not None and desc.budget_bytes == 0:
            raise InvalidArgumentError(f"budget is {budget!r}, expected more than 0 bytes (None: no budget)")
        desc.work_limit = work_limit
        if plan_class is not None:
            desc.plan_class = raw.ckpt_class_parse(plan_class)
        self.held = [_patterns(keep), _patterns(recompute)]
        if len(self.held[0][0]):
            desc.keep_patterns, desc.keep_pattern_count = self.held[0][0], len(self.held[0][0])
        if len(self.held[1][0]):
            desc.recompute_patterns, desc.recompute_pattern_count = self.held[1][0], len(self.held[1][0])


class Chain(Handle):
    """The cost model of a recording: segments with slots, boundaries, sizes and seconds. Immutable."""

    _destroy = staticmethod(raw.ckpt_chain_destroy)

    def __init__(self, source: Any, *, alignment: int = 0, name: str = "chain") -> None:
        """source: chain.json as a text, or the same as a dict, or a list of its segments."""
        if isinstance(source, str):
            text = source
        else:
            if not isinstance(source, Mapping):
                source = {"input": {"bytes": 0, "memory": "caller"}, "segments": list(source)}
            try:
                text = json.dumps(source)
            except (TypeError, ValueError) as error:
                raise InvalidArgumentError(f"{name}: {error}") from None
        data = text.encode()
        self._handle = raw.ckpt_chain_from_json(data, len(data), alignment, name)

    @classmethod
    def _of(cls, handle: Any) -> Chain:
        self = cls.__new__(cls)
        self._handle = handle
        return self

    @property
    def hash(self) -> int:
        return raw.ckpt_chain_hash(self._get())

    @property
    def segment_count(self) -> int:
        return raw.ckpt_chain_segment_count(self._get())

    def to_json(self) -> str:
        return raw.ckpt_chain_to_json(self._get())

    def plan(self, budget: Bytes | None = None, strategy: str = "auto", *, plan_class: str | None = None, keep: Sequence[str] = (),
             recompute: Sequence[str] = (), in_flight: int = 1, work_limit: int = 0) -> Plan:
        """The fastest program that fits `budget`, or what a strategy makes. BudgetError says the smallest budget that works."""
        request = _Request(budget, strategy, plan_class, keep, recompute, in_flight, work_limit)
        return Plan._of(raw.ckpt_plan_create(self._get(), request.desc))

    def minimum_budget(self, strategy: str = "auto", *, plan_class: str | None = None, keep: Sequence[str] = (), recompute: Sequence[str] = (),
                       in_flight: int = 1, work_limit: int = 0) -> int:
        request = _Request(None, strategy, plan_class, keep, recompute, in_flight, work_limit)
        return raw.ckpt_plan_minimum_budget(self._get(), request.desc)

    def curve(self, capacity: int = 64, strategy: str = "auto", *, plan_class: str | None = None, keep: Sequence[str] = (),
              recompute: Sequence[str] = (), in_flight: int = 1, work_limit: int = 0) -> list[CurvePoint]:
        """Time over budget: at most `capacity` plans."""
        request = _Request(None, strategy, plan_class, keep, recompute, in_flight, work_limit)
        points = np.zeros(capacity, CURVE_POINT)
        count = raw.ckpt_plan_curve(self._get(), request.desc, capacity, CURVE_POINT.itemsize, points)
        return [CurvePoint(**_values(p, "reserved")) for p in points[:count]]

    def verify(self, actions: Iterable[Action]) -> tuple[int, float, float]:
        """(peak bytes, seconds, recompute seconds) of a program; InvalidPlanError names the rule that it breaks."""
        table = _table(actions)
        return raw.ckpt_program_verify(self._get(), table, len(table), ACTION.itemsize)


def _values(row: Any, *skip: str) -> dict[str, Any]:
    return {name: row[name].item() for name in row.dtype.names if name not in skip}


def _table(actions: Iterable[Action]) -> Any:
    listed = list(actions)
    table = np.zeros(len(listed), ACTION)
    for row, action in zip(table, listed):
        if action.kind not in _KINDS:
            raise InvalidArgumentError(f"an action's kind is {action.kind!r}, expected one of {_KINDS}")
        row["kind"], row["index"] = _KINDS.index(action.kind), action.index
        row["slots"], row["outputs"] = _mask_words(getattr(action, "slots", ())), _mask_words(getattr(action, "outputs", ()))
    return table


class Plan(Handle):
    """A program with its predicted peak, placement and time. Immutable, independent of its chain."""

    _destroy = staticmethod(raw.ckpt_plan_destroy)
    _summary: PlanSummary | None = None

    def __init__(self, chain: Chain, actions: Iterable[Action], *, budget: Bytes | None = None, in_flight: int = 1) -> None:
        """From a program of any origin: verified, predicted and placed."""
        table = _table(actions)
        self._handle = raw.ckpt_plan_from_actions(chain._get(), table, len(table), ACTION.itemsize, in_flight,
                                                  0 if budget is None else parse_bytes(budget, "budget"))

    @classmethod
    def _of(cls, handle: Any) -> Plan:
        self = cls.__new__(cls)
        self._handle = handle
        return self

    @classmethod
    def from_json(cls, text: str, chain: Chain, *, name: str = "plan") -> Plan:
        data = text.encode()
        return cls._of(raw.ckpt_plan_from_json(data, len(data), name, chain._get()))

    def to_json(self) -> str:
        return raw.ckpt_plan_to_json(self._get())

    def to_schedule_json(self) -> str:
        """In the vocabulary of checkpoint_schedules."""
        return raw.ckpt_plan_to_schedule_json(self._get())

    def to_trace_json(self) -> str:
        """Chrome's trace events of the predicted step."""
        return raw.ckpt_plan_to_trace_json(self._get())

    @property
    def hash(self) -> int:
        return raw.ckpt_plan_hash(self._get())

    @property
    def summary(self) -> PlanSummary:
        if self._summary is None:
            summary = raw.ckpt_plan_summary()
            raw.ckpt_plan_get_summary(self._get(), summary)
            values = fields(summary)
            values["strategy"] = raw.ckpt_strategy_name(values["strategy"])
            values["plan_class"] = raw.ckpt_class_name(values["plan_class"]) if values["plan_class"] else None
            values["status"] = "optimal" if values["status"] == raw.CKPT_PLAN_OPTIMAL else "gap"
            self._summary = PlanSummary(**values)
        return self._summary

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return getattr(self.summary, name)
        except AttributeError:
            raise AttributeError(f"a Plan has no {name!r}") from None

    @property
    def action_table(self) -> Any:
        """The actions as a NumPy array of records."""
        table = np.zeros(self.summary.action_count, ACTION)
        raw.ckpt_plan_get_actions(self._get(), 0, len(table), ACTION.itemsize, table)
        return table

    @property
    def actions(self) -> list[Action]:
        return [Action(kind=_KINDS[row["kind"]], index=int(row["index"]), slots=_mask_numbers(row["slots"]), outputs=_mask_numbers(row["outputs"]))
                for row in self.action_table]

    @property
    def placements(self) -> list[Placement]:
        table = np.zeros(self.summary.placement_count, PLACEMENT)
        raw.ckpt_plan_get_placements(self._get(), 0, len(table), PLACEMENT.itemsize, table)
        return [Placement(**(_values(row) | {"what": _PLACED[row["what"]]})) for row in table]

    def explain(self, chain: Chain) -> list[Explanation]:
        """Why each slot and boundary is kept or not."""
        none = np.zeros(0, EXPLANATION)
        count = raw.ckpt_plan_explain(chain._get(), self._get(), 0, 0, EXPLANATION.itemsize, none)
        table = np.zeros(count, EXPLANATION)
        raw.ckpt_plan_explain(chain._get(), self._get(), 0, count, EXPLANATION.itemsize, table)
        return [Explanation(**(_values(row, "reserved") | {"what": _PLACED[row["what"]], "because": _BECAUSE[row["because"]], "kept": bool(row["kept"])}))
                for row in table]

    def __repr__(self) -> str:
        if self.closed:
            return "<ckpt.Plan, closed>"
        s = self.summary
        return f"<ckpt.Plan {s.strategy}, arena {s.arena_bytes} bytes, recomputes {s.recompute_seconds:.3g} s of {s.forward_seconds:.3g} s>"


def chain(source: Any, *, alignment: int = 0, name: str = "chain") -> Chain:
    """A chain from chain.json (text or dict) or a list of its segments."""
    return Chain(source, alignment=alignment, name=name)
