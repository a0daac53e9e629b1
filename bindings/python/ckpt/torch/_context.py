"""What a block's run depends on beside its arguments: generators, autocast, modes, buffers that it updates. Captured at the first run, put
back around each further one, so that a block runs again exactly as it ran."""
from __future__ import annotations

import contextlib
import threading
import warnings
import weakref
from typing import Any, Iterator

import torch
from torch import nn

_local = threading.local()
# Of a module's buffer, by its name and the module's mode: whether forward changes it, as it was seen to.
_changing: weakref.WeakKeyDictionary[nn.Module, dict[tuple[str, bool], bool]] = weakref.WeakKeyDictionary()


def _note_module(module: nn.Module, args: Any) -> None:
    for one in getattr(_local, "inside", ()):
        one.note(module)


def _running(module: nn.Module) -> bool:
    """Running statistics, which what it computes does not read."""
    return isinstance(module, nn.modules.batchnorm._NormBase) and module.training and module.track_running_stats


class ModulesSeen:
    """The modules that run inside, also those that a function only captures, and their buffers as they were before. apart: copies stand in
    for buffers that change, and are gone at the end."""

    _count = 0
    _hook: Any = None
    _lock = threading.Lock()

    def __init__(self, block: Any, apart: bool = False) -> None:
        self.block, self.apart = block, apart
        self.modules: dict[int, nn.Module] = {}
        self.modes: list[tuple[nn.Module, bool]] = []
        self._buffers: list[tuple[nn.Module, str, Any, Any, int, Any]] = []  # module, name, the buffer, what is in its place, its version, a copy

    def note(self, module: nn.Module) -> None:
        if id(module) in self.modules:
            return
        self.modules[id(module)] = module
        self.modes.append((module, module.training))
        for name, b in list(module._buffers.items()):
            if b is None:
                continue
            wanted = self.apart if _running(module) else _changing.get(module, {}).get((name, module.training), True)
            copy = b.detach().clone() if wanted else None
            there: Any = copy if self.apart and copy is not None else b
            module._buffers[name] = there
            self._buffers.append((module, name, b, there, there._version, copy))

    def updated(self) -> list[tuple[nn.Module, str, Any]]:
        """Buffers that the run changed, in place or by another tensor, and what they were before; None: it makes no difference."""
        out = []
        for module, name, b, there, version, copy in self._buffers:
            if _running(module):
                out.append((module, name, None))
            elif there._version != version or module._buffers.get(name) is not there:
                if copy is None and there._version != version:
                    warnings.warn(f"{type(module).__name__} changed its buffer {name!r}, which it had not done before: a further run in this step "
                                  "begins from the changed one", stacklevel=2)
                out.append((module, name, b if there._version == version else copy))
        return out

    def read(self) -> list[tuple[dict[str, Any], str, Any, int]]:
        """Parameters, and the buffers that the run left alone: where each is kept, its name, itself, its version."""
        changed = {(id(m), name) for m, name, _ in self.updated()}
        buffers = [(m._buffers, name, b, b._version) for m, name, b, *_ in self._buffers if (id(m), name) not in changed]
        return [(m._parameters, name, p, p._version) for m in self.modules.values() for name, p in m._parameters.items() if p is not None] + buffers

    def __enter__(self) -> ModulesSeen:
        with ModulesSeen._lock:
            if ModulesSeen._count == 0:
                ModulesSeen._hook = nn.modules.module.register_module_forward_pre_hook(_note_module)
            ModulesSeen._count += 1
        if not hasattr(_local, "inside"):
            _local.inside = []
        _local.inside.append(self)
        if isinstance(self.block, nn.Module):
            for module in self.block.modules():
                self.note(module)
        return self

    def __exit__(self, kind: object, *unused: object) -> None:
        _local.inside.remove(self)
        with ModulesSeen._lock:
            ModulesSeen._count -= 1
            if ModulesSeen._count == 0:
                ModulesSeen._hook.remove()
        for module, name, b, there, version, _ in self._buffers:
            if kind is None:
                changed = there._version != version or module._buffers.get(name) is not there
                known = _changing.setdefault(module, {})
                known[name, module.training] = known.get((name, module.training), False) or changed
            if self.apart:
                module._buffers[name] = b


def inside_transform() -> bool:
    """Of torch.func."""
    peek: Any = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", None)
    return peek is not None and peek() is not None


def cuda_devices(tensors: list[Any]) -> list[int]:
    return sorted({t.get_device() for t in tensors if t.device.type == "cuda"})


class Generators:
    """States of the CPU's generator and of those of some CUDA devices."""

    __slots__ = ("cpu", "cuda")

    def __init__(self, devices: list[int]) -> None:
        self.cpu = torch.get_rng_state()
        self.cuda = [(k, torch.cuda.get_rng_state(k)) for k in devices]

    def restore(self) -> None:
        torch.set_rng_state(self.cpu)
        for k, state in self.cuda:
            torch.cuda.set_rng_state(state, k)


def _autocast_state(device: str) -> tuple[Any, ...]:
    if hasattr(torch, "get_autocast_dtype"):
        return (device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device), torch.is_autocast_cache_enabled())
    if device == "cuda":
        return (device, torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype(), torch.is_autocast_cache_enabled())
    return (device, torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype(), torch.is_autocast_cache_enabled())


def autocast_state() -> tuple[tuple[Any, ...], ...]:
    return (_autocast_state("cpu"), _autocast_state("cuda")) if torch.cuda.is_available() else (_autocast_state("cpu"),)


@contextlib.contextmanager
def autocast_as(states: tuple[tuple[Any, ...], ...]) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for device, enabled, dtype, cache in states:
            if _autocast_state(device) != (device, enabled, dtype, cache):
                stack.enter_context(torch.autocast(device, dtype=dtype, enabled=enabled, cache_enabled=cache))
        yield


@contextlib.contextmanager
def modes_as(modes: list[tuple[nn.Module, bool]]) -> Iterator[None]:
    """Training or evaluation, as each module was."""
    others = [(m, m.training) for m, training in modes if m.training != training]
    try:
        for m, now in others:
            m.training = not now
        yield
    finally:
        for m, now in others:
            m.training = now


_ABSENT = object()


@contextlib.contextmanager
def tensors_as(which: list[tuple[dict[str, Any], str, Any, int]]) -> Iterator[None]:
    """Parameters and buffers that another tensor has replaced since (torch.func.functional_call) are in their places again."""
    others = [(kept, name, kept.get(name, _ABSENT), t) for kept, name, t, _ in which if kept.get(name) is not t]
    try:
        for kept, name, _, t in others:
            kept[name] = t
        yield
    finally:
        for kept, name, there, _ in others:
            if there is _ABSENT:
                del kept[name]
            else:
                kept[name] = there


@contextlib.contextmanager
def buffers_apart(which: list[tuple[nn.Module, str, Any]]) -> Iterator[None]:
    """Copies of what these buffers were stand in for them: a further run begins as the first, and leaves no trace."""
    originals: list[tuple[nn.Module, str, Any, Any]] = [(m, name, m._buffers[name], before) for m, name, before in which if m._buffers.get(name) is not None]
    try:
        for m, name, b, before in originals:
            m._buffers[name] = (b if before is None else before).detach().clone()
        yield
    finally:
        for m, name, b, _ in originals:
            m._buffers[name] = b
