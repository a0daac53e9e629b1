"""Segments, tapes and recordings."""
from __future__ import annotations

import contextlib
import math
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from . import _raw, raw
from ._handle import Handle, Record, fields
from .errors import Error, InvalidArgumentError, NotFoundError, StaleError, StateError
from .memory import CPU, Arena, Device, _host, array_of, spec_of
from .plan import Chain, Plan, _patterns
from .sizes import Bytes, parse_bytes

Frame = _raw.Frame
View = _raw.View


def _count(what: str, value: Any) -> int:
    """A number that C has 32 bits for."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 2**32:
        raise InvalidArgumentError(f"{what} is {value!r}, expected a whole number from 0, below 2^32")
    return int(value)


class _Item:
    """What slots and outputs have in common: a name, and a shape with an element type, or bytes."""

    def __init__(self, name: str, shape: Any = None, dtype: Any = "float32", *, bytes: Bytes | None = None, reads: Sequence[str] | None = None,
                 group: int = 0, cost: float | None = None) -> None:
        if (shape is None) == (bytes is None):
            raise InvalidArgumentError(f"{self._kind} {name!r} has {'neither shape nor' if shape is None else 'both shape and'} bytes, expected one of them")
        self.name, self.reads, self.group, self.cost = name, reads, group, cost
        self.shape: Any = None
        self.dtype: Any = None
        if bytes is not None:
            self.bytes = parse_bytes(bytes, f"{self._kind} {name!r}: bytes")
        else:
            self.shape, self.dtype, self.bytes = spec_of(shape, dtype, f"{self._kind} {name!r}")
        _count(f"{self._kind} {name!r}: group", group)

    _kind = "item"

    def spec(self) -> tuple[str, int, Any, Any]:
        return (self.name, self.bytes, self.shape, self.dtype)

    def _reads(self, slots: dict[str, int]) -> tuple[int, ...] | None:
        if self.reads is None:
            return None
        try:
            return tuple(slots[name] if isinstance(name, str) else name for name in ([self.reads] if isinstance(self.reads, str) else self.reads))
        except KeyError as error:
            raise NotFoundError(f"{self._kind} {self.name!r} reads {error}, which is no slot of its segment") from None


class Slot(_Item):
    """An intermediate of a segment. Give shape and dtype, or bytes. reads: names of earlier slots (None: every earlier one; (): the inputs
    alone). Flags as CKPT_SLOT_*."""

    _kind = "slot"

    def __init__(self, name: str, shape: Any = None, dtype: Any = "float32", *, bytes: Bytes | None = None, reads: Sequence[str] | None = None,
                 group: int = 0, cost: float | None = None, transient: bool = False, keep: bool = False, recompute: bool = False,
                 consumed: bool = False, alone: bool = False) -> None:
        super().__init__(name, shape, dtype, bytes=bytes, reads=reads, group=group, cost=cost)
        self.flags = (transient * raw.CKPT_SLOT_TRANSIENT | keep * raw.CKPT_SLOT_KEEP | recompute * raw.CKPT_SLOT_RECOMPUTE
                      | consumed * raw.CKPT_SLOT_CONSUMED | alone * raw.CKPT_SLOT_ALONE | (cost is not None) * raw.CKPT_SLOT_COST_GIVEN)

    def _raw(self, slots: dict[str, int]) -> tuple[Any, ...]:
        return (self.name, self.bytes, self._reads(slots), self.group, self.cost or 0.0, self.flags)


class Output(_Item):
    """An output of a segment. memory: an array of the caller's own that it lives in (loss, logits)."""

    _kind = "output"

    def __init__(self, name: str = "out", shape: Any = None, dtype: Any = "float32", *, bytes: Bytes | None = None, grad_bytes: Bytes = 0,
                 reads: Sequence[str] | None = None, group: int = 0, cost: float | None = None, memory: Any = None, no_grad: bool = False,
                 keep: bool = False, backward_reads: bool = False, in_place_input: int | None = None) -> None:
        if memory is not None and shape is None and bytes is None and isinstance(memory, np.ndarray):
            shape, dtype = memory.shape, memory.dtype
        super().__init__(name, shape, dtype, bytes=bytes, reads=reads, group=group, cost=cost)
        self.grad_bytes = parse_bytes(grad_bytes, f"output {name!r}: grad_bytes")
        self.memory = memory
        self.in_place_input = None if in_place_input is None else _count(f"output {name!r}: in_place_input", in_place_input)
        self.flags = (no_grad * raw.CKPT_OUTPUT_NO_GRAD | keep * raw.CKPT_OUTPUT_KEEP | backward_reads * raw.CKPT_OUTPUT_BACKWARD_READS
                      | (cost is not None) * raw.CKPT_OUTPUT_COST_GIVEN)

    def _raw(self, slots: dict[str, int], address: int | None) -> tuple[Any, ...]:
        return (self.name, self.bytes, self.grad_bytes, self._reads(slots), self.group, address, self.cost or 0.0, self.flags,
                0 if self.in_place_input is None else self.in_place_input + 1)


class Input:
    """How a segment uses an input."""

    def __init__(self, *, backward_ignores: bool = False, no_grad: bool = False, grad_over_output: bool = False) -> None:
        self.flags = (backward_ignores * raw.CKPT_INPUT_BACKWARD_IGNORES | no_grad * raw.CKPT_INPUT_NO_GRAD
                      | grad_over_output * raw.CKPT_INPUT_GRAD_OVER_OUTPUT_0)


class Segment(Handle):
    """A piece of the forward pass that can be replayed. forward(frame) and backward(frame) are plain functions; they return None (or a
    status, an int) and may raise. What they get from the frame is theirs until they return.

    forward None: the segment's code is given to Tape.inline, and cannot be replayed. save_state(user) -> bytes and
    restore_state(user, bytes): host state that forward reads and moves."""

    _destroy = staticmethod(lambda handle: None)  # its own deallocation does

    def __init__(self, name: str, forward: Callable[[Any], Any] | None, backward: Callable[[Any], Any] | None = None, *,
                 slots: Sequence[Slot] = (), outputs: Sequence[Output] | Output = (), inputs: int | Sequence[Input] = 1,
                 forward_scratch: Bytes = 0, backward_scratch: Bytes = 0, save_state: Callable[[Any], Any] | None = None,
                 restore_state: Callable[[Any, bytes], Any] | None = None, state_bytes: int = 0) -> None:
        for what, function in (("forward", forward), ("backward", backward), ("save_state", save_state), ("restore_state", restore_state)):
            if function is not None and not callable(function):
                raise InvalidArgumentError(f"segment {name!r}: {what} is {function!r}, expected a function or None")
        self.name = name
        self.slots = tuple(slots)
        self.outputs = (outputs,) if isinstance(outputs, Output) else tuple(outputs)
        listed = [Input()] * _count(f"segment {name!r}: inputs", inputs) if isinstance(inputs, int) else list(inputs)
        slot_index = {s.name: k for k, s in enumerate(self.slots)}
        memories = [None if o.memory is None else array_of(o.memory, f"output {o.name!r}: memory", _device_of(o.memory), writable=True)
                    for o in self.outputs]
        for o, memory in zip(self.outputs, memories):
            if memory is not None and memory.bytes != o.bytes:
                raise InvalidArgumentError(f"output {o.name!r}: memory has {memory.bytes} bytes, expected {o.bytes}")
        self._handle = _raw.segment_create(
            name, forward, backward, tuple(s._raw(slot_index) for s in self.slots),
            tuple(o._raw(slot_index, m and m.address) for o, m in zip(self.outputs, memories)), tuple(i.flags for i in listed),
            parse_bytes(forward_scratch, "forward_scratch"), parse_bytes(backward_scratch, "backward_scratch"), save_state, restore_state,
            parse_bytes(state_bytes, "state_bytes"), tuple(s.spec() for s in self.slots), tuple(o.spec() for o in self.outputs), slot_index, {o.name: k for k, o in enumerate(self.outputs)}, memories)
        self._output_specs = tuple((o.shape, o.dtype) if o.shape is not None else None for o in self.outputs)

    def _resized(self, items: Sequence[_Item], shapes: Mapping[str, Any]) -> tuple[Any, ...]:
        out = []
        for item in items:
            if item.name not in shapes:
                out.append(item.spec())
                continue
            shape, dtype, count = spec_of(shapes[item.name], "uint8" if item.dtype is None else item.dtype, f"{item._kind} {item.name!r}")
            out.append((item.name, count, None, None) if item.dtype is None else (item.name, count, shape, dtype))
        return tuple(out)

    def __repr__(self) -> str:
        return f"<ckpt.Segment {self.name!r}, {len(self.slots)} slots, {len(self.outputs)} outputs>"


def _device_of(array: Any) -> Any:
    if hasattr(array, "__cuda_array_interface__"):
        return _AnyCuda()
    return _host()


class _AnyCuda:
    type, name = 2, "a CUDA device"


class Buffer:
    """Names a boundary: a tensor that passes between segments. Its memory may come and go; Tape.read gives it."""

    __slots__ = ("id", "spec")

    def __init__(self, number: int, spec: Any) -> None:
        self.id, self.spec = number, spec

    @property
    def shape(self) -> Any:
        return self.spec and self.spec[0]

    @property
    def dtype(self) -> Any:
        return self.spec and self.spec[1]

    def __repr__(self) -> str:
        return f"ckpt.Buffer({self.id:#x}, shape={self.shape}, dtype={self.dtype})"


class TapeStats(Record):
    """What ckpt_tape_stats has, of the latest step."""


_CHECKS = {"determinism": raw.CKPT_CHECK_DETERMINISM, "recompute": raw.CKPT_CHECK_RECOMPUTE, "inputs": raw.CKPT_CHECK_INPUTS}


def _one(what: str, value: str, known: Mapping[str, int]) -> int:
    if value not in known:
        raise InvalidArgumentError(f"{what} is {value!r}, expected one of {', '.join(map(repr, known))}")
    return known[value]


def _buffers(value: Buffer | Sequence[Buffer]) -> list[Buffer]:
    listed = [value] if isinstance(value, Buffer) else list(value)
    for k, one in enumerate(listed):
        if not isinstance(one, Buffer):
            raise InvalidArgumentError(f"outputs[{k}] is {type(one).__name__}, expected a Buffer (what input and run return)")
    return listed


class _Reader:
    """Reading boundaries and running backward: what a tape and a detached recording have in common."""

    _arena: Arena
    _lent: dict[int, list[Any]]
    _held: list[Any]
    _handle: Any

    def _is_idle(self) -> bool:
        """Is nothing recorded?"""
        return False

    _read_raw: Callable[..., int]
    _backward_raw: Callable[..., None]

    def read(self, buffer: Buffer, *, copy: bool | None = None) -> Any:
        """A boundary's data, brought back if need be. The default is a copy on the CPU, and a View (no copy) elsewhere. copy=False: the
        memory itself; all arrays of it must be gone (del) before it is released or backward begins."""
        (one,) = _buffers(buffer)
        in_use = self._held  # here until this call returns, even if a callback closes
        address = type(self)._read_raw(self._get(), one.id)  # type: ignore[attr-defined]
        del in_use
        device = self._arena.device
        if address is None:
            raise StateError("a dry recording has no data")
        shape, dtype = one.spec if one.spec is not None else (None, None)
        if shape is None:
            raise InvalidArgumentError("this boundary was declared by its bytes alone: give its output a shape to read it")
        count = math.prod(shape) * dtype.itemsize  # type: ignore[union-attr]
        view = _raw.view_make(address, count, shape, dtype, 1, self._arena._keeper, f"boundary {one.id:#x}", device.type, device.index, self._arena.stream)
        if device.type == CPU and copy is not False:
            return view.numpy().copy()
        if copy:
            raise InvalidArgumentError("copy is True, expected False on a device: copy with your own framework")
        self._lent.setdefault(one.id, []).append(view)
        return view.numpy() if device.type == CPU else view

    def _end_leases(self, number: int | None = None, *, force: bool = False) -> None:
        """What `read` lent. An array that is still there is an error, and the lease goes on; with force they end all the same."""
        for key in [k for k in self._lent if number is None or k == number]:
            views = self._lent[key]
            lasting = _raw.views_end(views, force)
            if lasting is not None:
                raise StaleError(f"{views[lasting].label}: an array of it outlives it: drop it (del) before it is released or backward begins, or read a copy")
            del self._lent[key]

    def backward(self, outputs: Buffer | Sequence[Buffer], grads: Any = None, *, retain: bool = False) -> None:
        """Runs the recording in reverse. grads: an array (or None) for each output; None: the roots seed themselves."""
        listed = _buffers(outputs)
        if grads is None or not isinstance(grads, (list, tuple)):
            grads = [grads] * (1 if grads is not None else len(listed))
        if len(grads) != len(listed):
            raise InvalidArgumentError(f"{len(grads)} gradients for {len(listed)} outputs, expected one for each")
        handle = self._get()  # type: ignore[attr-defined]
        addresses, held = [], []
        for k, (one, grad) in enumerate(zip(listed, grads)):
            if grad is None:
                addresses.append(0)
                continue
            memory = array_of(grad, f"grads[{k}]", self._arena.device)
            self._check(memory, one, f"grads[{k}]")
            addresses.append(memory.address)
            held.append(memory.keeper)
        self._end_leases()
        ids = np.array([one.id for one in listed], np.uint64)
        in_use = self._held  # here until this call returns, even if a callback closes
        try:
            type(self)._backward_raw(handle, ids, np.array(addresses, np.uint64), len(listed), raw.CKPT_BACKWARD_RETAIN if retain else 0)
        except BaseException:
            if self._is_idle():
                self._held = []
            raise
        if not retain:
            self._held = []
        del in_use

    @staticmethod
    def _check(memory: Any, one: Buffer, name: str) -> None:
        if one.spec is None:
            return
        shape, dtype = one.spec
        if memory.dtype is not None and memory.dtype != dtype:
            raise InvalidArgumentError(f"{name} has elements of type {memory.dtype}, expected {dtype}")
        if memory.bytes != math.prod(shape) * dtype.itemsize:
            raise InvalidArgumentError(f"{name} has shape {memory.shape}, expected {shape}")


class Recording(_Reader, Handle):
    """A finished forward pass, taken off its tape (Tape.detach)."""

    _destroy = staticmethod(raw.ckpt_recording_destroy)
    _read_raw = staticmethod(raw.ckpt_recording_read)
    _backward_raw = staticmethod(raw.ckpt_recording_backward)

    def __init__(self, handle: Any, arena: Arena, held: list[Any]) -> None:
        self._handle, self._arena, self._held, self._lent = handle, arena, held, {}

    def close(self) -> None:
        if self._handle is not None:
            super().close()
            self._held = []
            self._end_leases(force=True)


class Tape(_Reader, Handle):
    """Records segments and runs them in reverse, within a budget.

        with ckpt.Tape(budget="64MiB") as tape:
            y = tape.input(x)
            for layer in layers:
                y = tape.run(segment, y, user=layer)
            tape.backward(y, grad)
    """

    _destroy = staticmethod(raw.ckpt_tape_destroy)
    _read_raw = staticmethod(raw.ckpt_tape_read)
    _backward_raw = staticmethod(raw.ckpt_backward)

    def __init__(self, arena: Arena | Device | str = "cpu", *, budget: Bytes | None = None, seed: int = 0, strategy: str = "auto",
                 keep: Sequence[str] = (), recompute: Sequence[str] = (), checks: Sequence[str] | str = (), in_flight: int = 1,
                 replan: str = "auto") -> None:
        desc = raw.ckpt_tape_desc()
        desc.strategy, desc.strategy_k = raw.ckpt_strategy_parse(strategy)
        desc.budget_bytes = 0 if budget is None else parse_bytes(budget, "budget")
        if budget is not None and desc.budget_bytes == 0:
            raise InvalidArgumentError(f"budget is {budget!r}, expected more than 0 bytes (None: the arena's capacity)")
        for check in [checks] if isinstance(checks, str) else checks:
            desc.checks |= _one("a check", check, _CHECKS)
        desc.replan = _one("replan", replan, {"auto": raw.CKPT_REPLAN_AUTO, "never": raw.CKPT_REPLAN_NEVER})
        desc.seed, desc.in_flight_count = seed, in_flight
        kept, made = _patterns(keep), _patterns(recompute)
        if kept[1]:
            desc.keep_patterns, desc.keep_pattern_count = kept[0], len(kept[1])
        if made[1]:
            desc.recompute_patterns, desc.recompute_pattern_count = made[0], len(made[1])
        self._arena = arena if isinstance(arena, Arena) else Arena(arena)
        desc.arena = self._arena._get()
        self._handle = raw.ckpt_tape_create(desc)
        self._address = int(self._handle)
        self._held, self._lent = [], {}
        self._trace: Any = None
        self._device_type, self._device_index = self._arena.device.type, self._arena.device.index

    @property
    def arena(self) -> Arena:
        return self._arena

    def _is_idle(self) -> bool:
        if self._handle is None:
            return True
        try:
            raw.ckpt_tape_set_step(self._handle, raw.ckpt_tape_get_step(self._handle))  # refused while something is recorded
        except Error:
            return False
        return True

    def close(self) -> None:
        if self._handle is not None:
            if self._trace is not None:
                self.trace(None)
            self._address = 0
            super().close()
            self._held = []
            self._end_leases(force=True)

    # ---- recording ----

    def begin(self, key: int = 0, *, dry: bool = False, backward: bool = True) -> None:
        """Starts a recording; optional. key: which plan to expect. dry: nothing runs. backward=False: a forward pass alone."""
        raw.ckpt_tape_begin(self._get(), key, (raw.CKPT_TAPE_DRY if dry else 0) | (0 if backward else raw.CKPT_TAPE_NO_BACKWARD))
        self._held = []

    @contextlib.contextmanager
    def recording(self, key: int = 0, *, dry: bool = False, backward: bool = True) -> Iterator[Tape]:
        """begin ... reset: what is left of the recording at the end, or when something is raised, goes."""
        self.begin(key, dry=dry, backward=backward)
        try:
            yield self
        finally:
            if not self.closed:
                self.reset()

    def input(self, data: Any = None, grad: Any = None, *, accumulate: bool = False, shape: Any = None, dtype: Any = "float32") -> Buffer:
        """The caller's array as an input; unchanged until the recording ends. grad: an array that its gradient is written to (or added
        to). Dry recordings may give a shape instead of data."""
        desc = raw.ckpt_input_desc()
        device, spec = self._arena.device, None  # type: Device, Any
        if data is None:
            if shape is None:
                raise InvalidArgumentError("data is None, expected an array, or a shape in a dry recording")
            *known, desc.bytes = spec_of(shape, dtype, "data")
            spec = tuple(known)
            keeper = None
        else:
            memory = array_of(data, "data", device)
            desc.data, desc.bytes, keeper = memory.address, memory.bytes, memory.keeper
            spec = (memory.shape, memory.dtype) if memory.dtype is not None else None
        if grad is not None:
            into = array_of(grad, "grad", device, writable=True)
            if spec is not None:
                self._check(into, Buffer(0, spec), "grad")
            desc.grad, desc.grad_bytes = into.address, into.bytes
            keeper = (keeper, into.keeper)
        desc.flags = raw.CKPT_TAPE_INPUT_ACCUMULATE if accumulate else 0
        number = raw.ckpt_tape_input(self._get(), desc)
        self._held.append(keeper)
        return Buffer(number, spec)

    def _run(self, segment: Segment, inputs: tuple[Any, ...], user: Any, shapes: Mapping[str, Any] | None, watch: Mapping[str, Any] | None,
             body: Any) -> Any:
        if self._handle is None or segment._handle is None:
            raise StateError(f"this {'Tape' if self._handle is None else 'Segment'} is closed")
        slots = outputs = watched = None
        for what, named in (("shapes", shapes), ("watch", watch)):
            if named is not None and not hasattr(named, "items"):
                raise InvalidArgumentError(f"{what} is {type(named).__name__}, expected a dict by names")
        specs = segment._output_specs
        if shapes:
            unknown = set(shapes) - {i.name for i in segment.slots} - {i.name for i in segment.outputs}
            if unknown:
                raise NotFoundError(f"segment {segment.name!r} has no slot or output {sorted(unknown)[0]!r}")
            slots, outputs = segment._resized(segment.slots, shapes), segment._resized(segment.outputs, shapes)
            specs = tuple(o[2:] if o[2] is not None else None for o in outputs)
        if watch:
            device = self._arena.device
            watched = tuple((name.encode(), m.address, m.bytes, m.keeper)
                            for name, m in ((name, array_of(array, f"watch {name!r}", device)) for name, array in watch.items()))
        try:
            numbers, given = tuple([b.id for b in inputs]), tuple([b.spec for b in inputs])
        except AttributeError:
            _buffers(inputs)
            raise
        in_use = self._held  # here until this call returns, even if a callback closes
        made = _raw.segment_run(self._address, segment._handle, numbers, given, user, slots, outputs, watched, self._arena._keeper, self._device_type,
                                self._device_index, body)
        del in_use
        if len(made) == 1:
            return Buffer(made[0], specs[0])
        return tuple(Buffer(number, spec) for number, spec in zip(made, specs))

    def run(self, segment: Segment, *inputs: Buffer, user: Any = None, shapes: Mapping[str, Any] | None = None,
            watch: Mapping[str, Any] | None = None) -> Any:
        """Records one use of a segment: its output, or a tuple of them. shapes: of slots and outputs that differ in this call. watch:
        arrays that it reads beside its inputs (checks="inputs")."""
        return self._run(segment, inputs, user, shapes, watch, None)

    def inline(self, segment: Segment, *inputs: Buffer, body: Callable[[Any], Any], user: Any = None, shapes: Mapping[str, Any] | None = None,
               watch: Mapping[str, Any] | None = None) -> Any:
        """As run, with the segment's code given here: body(frame) runs between ckpt_segment_begin and ckpt_segment_end."""
        return self._run(segment, inputs, user, shapes, watch, body)

    def release(self, buffer: Buffer) -> None:
        """No later segment names this boundary, and nobody will read it."""
        self._end_leases(buffer.id)
        raw.ckpt_tape_release(self._get(), buffer.id)

    def reset(self) -> None:
        """Drops what is recorded."""
        raw.ckpt_tape_reset(self._get())
        self._held = []
        self._end_leases(force=True)

    def detach(self) -> Recording:
        """Takes the finished forward pass off the tape."""
        self._end_leases()
        handle = raw.ckpt_tape_detach(self._get())
        held, self._held = self._held, []
        return Recording(handle, self._arena, held)

    # ---- plans ----

    def chain(self, key: int) -> Chain:
        return Chain._of(raw.ckpt_tape_chain(self._get(), key))

    def plan(self, key: int) -> Plan:
        return Plan._of(raw.ckpt_tape_plan(self._get(), key))

    def adopt(self, key: int, plan: Plan) -> None:
        raw.ckpt_tape_adopt(self._get(), key, plan._get())

    def prepare(self, key: int) -> None:
        raw.ckpt_tape_prepare(self._get(), key)

    # ---- the rest ----

    @property
    def step(self) -> int:
        return raw.ckpt_tape_get_step(self._get())

    @step.setter
    def step(self, value: int) -> None:
        raw.ckpt_tape_set_step(self._get(), value)

    @property
    def stats(self) -> TapeStats:
        stats = raw.ckpt_tape_stats()
        raw.ckpt_tape_get_stats(self._get(), stats)
        return TapeStats(**(fields(stats) | {"strategy": raw.ckpt_strategy_name(stats.strategy), "planned": bool(stats.planned)}))

    def trace(self, function: Callable[[int, int, int, bool], Any] | Trace | None) -> None:
        """Calls function(what, index, in_use_bytes, is_recompute) at each change of memory, or records it in a Trace. None ends it."""
        if isinstance(function, Trace):
            raw.ckpt_trace_attach(function._get(), self._get())
        elif function is None:
            raw.ckpt_tape_set_trace(self._get(), None, None)
        else:
            raw.ckpt_tape_set_trace(self._get(), _raw.trace_function, id(function))
        self._trace = function

    def __repr__(self) -> str:
        return f"<ckpt.Tape{', closed' if self.closed else f', budget {self.stats.budget_bytes} bytes, step {self.step}'}>"


class Trace(Handle):
    """Records what a tape does, with times, for Perfetto and chrome://tracing: tape.trace(trace) ... trace.to_json()."""

    _destroy = staticmethod(raw.ckpt_trace_destroy)

    def __init__(self, event_limit: int = 1 << 20) -> None:
        self._handle = raw.ckpt_trace_create(event_limit)

    def clear(self) -> None:
        raw.ckpt_trace_clear(self._get())

    def to_json(self, chain: Chain | None = None) -> str:
        return raw.ckpt_trace_to_json(self._get(), None if chain is None else chain._get())
