"""Devices, arenas, and what an array of anybody's is to this library."""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import _raw, raw
from ._handle import Handle, Record, fields
from .errors import InvalidArgumentError, StaleError, StateError
from .sizes import MOST_BYTES, Bytes, parse_bytes

CPU, CUDA = 1, 2  # as in DLPack


class DeviceInfo(Record):
    """Name, kind, index, thread_count, total_bytes, available_bytes."""


class Device(Handle):
    """Memory, streams and events of one kind: "cpu", "cuda", "cuda:1"."""

    _destroy = staticmethod(raw.ckpt_device_close)

    def __init__(self, name: str = "cpu") -> None:
        self.name = name
        self._handle = raw.ckpt_device_open(name)
        kind = self.info.kind
        self.type = CPU if kind == raw.CKPT_DEVICE_KIND_CPU else CUDA
        self.index: int = self.info.index

    @property
    def info(self) -> DeviceInfo:
        info = raw.ckpt_device_info()
        raw.ckpt_device_get_info(self._get(), info)
        return DeviceInfo(**fields(info))

    def stream(self) -> Stream:
        """A stream that waits for no other; its `address` is 0 on the CPU."""
        return Stream(self)

    def synchronize(self, stream: int | Stream = 0) -> None:
        """Waits for the stream's work."""
        raw.ckpt_device_synchronize(self._get(), _stream_address(stream) or None)

    def copy(self, to: Any, source: Any, *, stream: int | Stream = 0) -> None:
        """Copies an array to one of the same size, in the stream's order; each on this device or on the host. On a device, host memory must
        stay until the stream has done it (synchronize)."""
        sides = []
        for name, array, writable in (("to", to, True), ("source", source, False)):
            here = self.type == CPU or not _on_host(array)
            sides.append((array_of(array, name, self if here else _host(), writable=writable), here))
        (one, at), (two, was) = sides
        if one.bytes != two.bytes:
            raise InvalidArgumentError(f"to has {one.bytes} bytes and source {two.bytes}, expected equal sizes")
        kind = raw.CKPT_COPY_DEVICE_TO_DEVICE if at and was else raw.CKPT_COPY_HOST_TO_DEVICE if at else raw.CKPT_COPY_DEVICE_TO_HOST
        if not at and not was:
            raise InvalidArgumentError(f"to and source are both on the host, expected one of them on {self.name}")
        raw.ckpt_device_copy(self._get(), _stream_address(stream) or None, one.address, two.address, one.bytes, kind)

    def __repr__(self) -> str:
        return f"ckpt.Device({self.name!r})"


class Stream(Handle):
    """A stream of a device: what Arena(stream=...) takes."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.address: int = raw.ckpt_device_stream_create(device._get()) or 0
        self._handle = (device, device._get(), self.address)

    @staticmethod
    def _destroy(handle: Any) -> None:
        raw.ckpt_device_stream_destroy(handle[1], handle[2] or None)

    def __index__(self) -> int:
        self._get()
        return self.address


def _stream_address(stream: int | Stream) -> int:
    return stream.__index__()


def _on_host(array: Any) -> bool:
    if isinstance(array, raw_view):
        return array.__dlpack_device__()[0] == CPU
    return not hasattr(array, "__cuda_array_interface__")


_HOST: list[Device] = []


def _host() -> Device:
    if not _HOST:
        _HOST.append(Device("cpu"))
    return _HOST[0]


class ArenaStats(Record):
    """in_use_bytes, peak_in_use_bytes, height_bytes, capacity_bytes, largest_free_bytes, and counts."""


class Arena(Handle):
    """One slab of device memory and a placer. `slab`: memory of your own (an array), else the library takes its own.
    capacity 0: bounded by the device's memory alone."""

    _destroy = staticmethod(lambda handle: None)  # the keeper does: views hold it too

    def __init__(self, device: Device | str = "cpu", capacity: Bytes = 0, *, alignment: int = 0, guard: bool = False, poison: bool = False,
                 slab: Any = None, stream: int | Stream = 0) -> None:
        self.device = device if isinstance(device, Device) else Device(device)
        desc = raw.ckpt_arena_desc()
        desc.flags = (raw.CKPT_ARENA_GUARD if guard else 0) | (raw.CKPT_ARENA_POISON if poison else 0)
        desc.capacity_bytes = parse_bytes(capacity, "capacity")
        desc.alignment_bytes = alignment
        desc.stream = _stream_address(stream) or None
        if slab is not None:
            memory = array_of(slab, "slab", self.device, writable=True)
            if desc.capacity_bytes > memory.bytes:
                raise InvalidArgumentError(f"capacity is {desc.capacity_bytes} bytes, expected at most the slab's {memory.bytes}")
            desc.capacity_bytes = desc.capacity_bytes or memory.bytes
            desc.slab = memory.address
            desc.user = _raw.keep(memory.keeper)
            desc.release = _raw.release_object
        self._handle = raw.ckpt_arena_create(self.device._get(), desc)
        self._address = int(self._handle)
        self._keeper: Any = _raw.arena_keeper(self._address)
        self.stream = _stream_address(stream)
        self._stream = stream  # it must live as long as the arena

    def close(self) -> None:
        super().close()
        self._keeper = None

    @property
    def stats(self) -> ArenaStats:
        stats = raw.ckpt_arena_stats()
        raw.ckpt_arena_get_stats(self._get(), stats)
        return ArenaStats(**fields(stats))

    def reset_stats(self) -> None:
        raw.ckpt_arena_reset_stats(self._get())

    def check(self) -> None:
        """Verifies the guards of all blocks (guard=True)."""
        raw.ckpt_arena_check(self._get())

    def alloc(self, shape: Any, dtype: Any = "uint8", *, high: bool = False) -> Block:
        """A block for an array of this shape."""
        shape, dtype, count = spec_of(shape, dtype, "the block")
        address = raw.ckpt_arena_alloc(self._get(), count, raw.CKPT_ARENA_HIGH if high else 0)
        if address is None:
            _raw.raise_last("ckpt_arena_alloc")
        view = _raw.view_make(address, count, shape, dtype, 0, self._keeper, f"block of {count} bytes", self.device.type, self.device.index, self.stream)
        made = Block(self, address, view)
        del view
        return made

    def __repr__(self) -> str:
        return f"ckpt.Arena({self.device.name!r}{', closed' if self.closed else ''})"


class Block:
    """A block of an arena: `array` (NumPy on the CPU, a View elsewhere) until `free`."""

    def __init__(self, arena: Arena, address: int, view: Any) -> None:
        self._arena, self._address, self._views = arena, address, [view]

    @property
    def view(self) -> Any:
        if not self._views:
            raise StateError("this block is freed")
        return self._views[0]

    @property
    def array(self) -> Any:
        return self.view.numpy() if self._arena.device.type == CPU else self.view

    def free(self) -> None:
        """Gives the block back. Arrays of it must be gone; else StaleError, and the block stays."""
        label = self.view.label
        if _raw.views_end(self._views, False) is not None:
            raise StaleError(f"{label}: arrays of it are still there: drop them (del) before it is freed")
        self._views.clear()
        raw.ckpt_arena_free(self._arena._get(), self._address)

    def __enter__(self) -> Block:
        return self

    def __exit__(self, kind: object, *unused: object) -> None:
        if not self._views or self._arena.closed:
            return
        try:
            self.free()
        except StaleError:
            if kind is None:  # else what was raised says more, and its traceback has the arrays
                raise


class Memory(NamedTuple):
    """Where an array is."""

    address: int
    bytes: int
    shape: tuple[int, ...]
    dtype: Any
    keeper: Any


def shape_of(shape: Any) -> tuple[int, ...]:
    try:
        out = tuple(int(n) for n in shape) if np.iterable(shape) else (int(shape),)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"shape is {shape!r}, expected whole numbers") from None
    if any(n < 0 for n in out):
        raise InvalidArgumentError(f"shape is {shape!r}, expected no negative number")
    return out


def spec_of(shape: Any, dtype: Any, name: str) -> tuple[tuple[int, ...], Any, int]:
    """Shape, element type (None: float32) and bytes of an array of plain bits."""
    shape, kind = shape_of(shape), np.dtype("float32" if dtype is None else dtype)
    if kind.hasobject:
        raise InvalidArgumentError(f"{name} has elements of type {kind}, expected plain bits")
    count = math.prod(shape) * kind.itemsize
    if count > MOST_BYTES:
        raise InvalidArgumentError(f"{name} has shape {shape}: {count} bytes, expected at most 2^60")
    return shape, kind, count


def _is_plain(array: Any) -> bool:
    return type(array) is np.ndarray


def array_of(array: Any, name: str, device: Device, *, writable: bool = False) -> Memory:
    """Address, size, shape and element type of an array in C order: NumPy, CuPy, PyTorch, JAX, or anything with the buffer protocol,
    __cuda_array_interface__ or DLPack. Nothing is copied. It must be on `device`."""
    if not _is_plain(array) and device.type == CPU and not hasattr(array, "__cuda_array_interface__") and hasattr(array, "__dlpack__") \
            and not isinstance(array, raw_view):
        array = _from_dlpack(array, name, device)
    info = _raw.array_info(array, writable, name)
    if info[0] != device.type:
        raise InvalidArgumentError(f"{name} is memory of {'a CUDA device' if info[0] == CUDA else 'the CPU'}, expected memory of {device.name}")
    if info[0] == CPU:
        _, address, count, view = info
        if isinstance(array, np.ndarray):
            if array.dtype.hasobject:
                raise InvalidArgumentError(f"{name} has elements of type {array.dtype}, expected plain bits")
            return Memory(address, count, array.shape, array.dtype, view)
        return Memory(address, count, view.shape or (), _dtype_of(view), view)
    interface = info[1]
    address, readonly = interface["data"]
    if interface.get("strides") is not None:
        raise InvalidArgumentError(f"{name} has strides, expected an array in C order")
    if writable and readonly:
        raise InvalidArgumentError(f"{name} is read-only, expected an array that can be written")
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    return Memory(address, int(np.prod(shape, dtype=object)) * dtype.itemsize, shape, dtype, array)


def _from_dlpack(array: Any, name: str, device: Device) -> Any:
    kind = array.__dlpack_device__()[0]
    if kind != CPU:
        raise InvalidArgumentError(f"{name} is on a device (DLPack type {int(kind)}), expected memory of {device.name}")
    contiguous = getattr(array, "is_contiguous", None)
    if contiguous is not None and not contiguous():
        raise InvalidArgumentError(f"{name} is not contiguous, expected an array in C order")
    if getattr(array, "requires_grad", False):
        array = array.detach()
    try:
        return np.from_dlpack(array)
    except (TypeError, BufferError, RuntimeError) as error:
        raise InvalidArgumentError(f"{name}: DLPack: {error}") from error


def _dtype_of(view: memoryview) -> Any:
    try:
        return np.dtype(view.format)
    except TypeError:
        return None


raw_view = _raw.View
_raw.set_spec_of(spec_of)
