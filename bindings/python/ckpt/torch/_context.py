"""What a block's run depends on beside its arguments: generators, autocast, modes, buffers that it updates. Captured at the first run, put
back around each further one, so that a block runs again exactly as it ran."""
from __future__ import annotations

import contextlib
import functools
import threading
import warnings
import weakref
from typing import Any

import torch
from torch import nn

_local = threading.local()
# Of a module's buffer, by its name and the module's mode: whether forward changes it, as it was seen to.
_changing: weakref.WeakKeyDictionary[nn.Module, dict[tuple[str, bool], bool]] = weakref.WeakKeyDictionary()


class Parts:
    """A block that this package makes of others."""

    parts: list[Any]


def modules_of(block: Any) -> list[nn.Module]:
    """As block.modules(), whose making of names takes longer than all else that is done for a block."""
    found: dict[int, nn.Module] = {}
    todo = [block]
    while todo:
        module = todo.pop()
        if isinstance(module, Parts):
            todo.extend(module.parts)
        elif isinstance(module, nn.Module) and id(module) not in found:
            found[id(module)] = module
            todo.extend(child for child in module._modules.values() if child is not None)
    return list(found.values())


_compiling: Any = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)


def _note_module(module: nn.Module, args: Any) -> None:
    if _compiling():  # nothing of this belongs into a graph of torch.compile
        return
    for one in getattr(_local, "inside", ()):
        one.note(module)


def _running(module: nn.Module) -> bool:
    """Running statistics, which change without a new version."""
    return isinstance(module, nn.modules.batchnorm._NormBase) and module.training and module.track_running_stats


def _reads_running(module: nn.Module) -> bool:
    """What PyTorch's own forward computes does not depend on them; a subclass's may."""
    return not type(module).forward.__module__.startswith("torch.nn.modules.")


def _copy(buffer: Any) -> Any:
    return buffer.detach().clone().requires_grad_(buffer.requires_grad)


class ModulesSeen:
    """The modules that run inside, also those that a function only captures, and their buffers as they were before. apart: copies stand in
    for buffers that change, and are gone at the end."""

    _count = 0
    _hook: Any = None
    _lock = threading.Lock()

    def __init__(self, modules: list[nn.Module], apart: bool = False) -> None:
        """modules: those that are known to run; a hook on all modules finds the others."""
        self.apart = apart
        self.modules = {id(m): m for m in modules}
        self.modes = [(m, m.training) for m in modules]
        self._buffers: list[tuple[nn.Module, str, Any, Any, int, Any]] = []  # module, name, the buffer, what is in its place, its version, a copy

    def note(self, module: nn.Module) -> None:
        if id(module) in self.modules:
            return
        self.modules[id(module)] = module
        self.modes.append((module, module.training))
        self._note_buffers(module)

    def _note_buffers(self, module: nn.Module) -> None:
        for name, b in list(module._buffers.items()):
            if b is None:
                continue
            wanted = self.apart or _reads_running(module) if _running(module) else _changing.get(module, {}).get((name, module.training), True)
            copy = _copy(b) if wanted else None
            there: Any = copy if self.apart and copy is not None else b
            module._buffers[name] = there
            self._buffers.append((module, name, b, there, there._version, copy))

    def stand_ins(self) -> list[Any]:
        """What was in the places of the buffers."""
        return [there for _, _, _, there, _, _ in self._buffers]

    def updated(self) -> list[tuple[nn.Module, str, Any]]:
        """Buffers that the run changed, in place or by another tensor, and what they were before; None: it makes no difference."""
        out = []
        for module, name, b, there, version, copy in self._buffers:
            if _running(module):
                out.append((module, name, copy if _reads_running(module) else None))
            elif there._version != version or module._buffers.get(name) is not there:
                if copy is None and there._version != version:
                    warnings.warn(f"{type(module).__name__} changed its buffer {name!r}, which it had not done before: a further run in this step "
                                  "begins from the changed one", stacklevel=2)
                out.append((module, name, b if there._version == version else copy))
        return out

    def read(self) -> list[tuple[dict[str, Any], str, Any, int]]:
        """Parameters, and the buffers that the run left alone: where each is kept, its name, itself, its version."""
        changed = {(id(m), name) for m, name, _ in self.updated()} if self._buffers else ()
        buffers = [(m._buffers, name, b, b._version) for m, name, b, *_ in self._buffers if (id(m), name) not in changed]
        return [(m._parameters, name, p, p._version) for m in self.modules.values() for name, p in m._parameters.items() if p is not None] + buffers

    def _begin_watching(self) -> None:
        with ModulesSeen._lock:
            if ModulesSeen._count == 0:
                ModulesSeen._hook = nn.modules.module.register_module_forward_pre_hook(_note_module)
            ModulesSeen._count += 1
        if not hasattr(_local, "inside"):
            _local.inside = []
        _local.inside.append(self)

    def _end_watching(self) -> None:
        _local.inside.remove(self)
        with ModulesSeen._lock:
            ModulesSeen._count -= 1
            if ModulesSeen._count == 0:
                ModulesSeen._hook.remove()

    def __enter__(self) -> ModulesSeen:
        self._begin_watching()
        for module in list(self.modules.values()):
            if module._buffers:
                self._note_buffers(module)
        return self

    def __exit__(self, kind: object, *unused: object) -> None:
        self._end_watching()
        for module, name, b, there, version, _ in self._buffers:
            if kind is None:
                changed = there._version != version or module._buffers.get(name) is not there
                known = _changing.setdefault(module, {})
                known[name, module.training] = known.get((name, module.training), False) or changed
            if self.apart:
                module._buffers[name] = b


@functools.lru_cache(maxsize=None)
def _has_cuda() -> bool:
    return torch.cuda.is_available()


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
    return (_autocast_state("cpu"), _autocast_state("cuda")) if _has_cuda() else (_autocast_state("cpu"),)


def autocast_as(states: tuple[tuple[Any, ...], ...]) -> contextlib.AbstractContextManager[Any]:
    others = [s for s in states if _autocast_state(s[0]) != s]
    if not others:
        return contextlib.nullcontext()
    stack = contextlib.ExitStack()
    for device, enabled, dtype, cache in others:
        stack.enter_context(torch.autocast(device, dtype=dtype, enabled=enabled, cache_enabled=cache))
    return stack


_ABSENT = object()


class AsItRan:
    """Around a further run: the modules are in their modes of the first one; parameters and buffers that another tensor has replaced since
    (torch.func.functional_call) are in their places again; copies stand in for buffers that the run changes, so that it begins as the first and
    leaves no trace."""

    def __init__(self, modes: list[tuple[nn.Module, bool]], tensors: list[tuple[dict[str, Any], str, Any, int]],
                 buffers: list[tuple[nn.Module, str, Any]]) -> None:
        self.modes, self.tensors, self.buffers = modes, tensors, buffers
        self._modes: list[tuple[nn.Module, bool]] = []
        self._places: list[tuple[dict[str, Any], str, Any]] = []  # where, the name, what was there

    def _put(self, kept: dict[str, Any], name: str, tensor: Any) -> None:
        self._places.append((kept, name, kept.get(name, _ABSENT)))
        kept[name] = tensor

    def __enter__(self) -> None:
        try:
            for m, training in self.modes:
                if m.training != training:
                    self._modes.append((m, m.training))
                    m.training = training
            for kept, name, t, _ in self.tensors:
                if kept.get(name) is not t:
                    self._put(kept, name, t)
            for m, name, before in self.buffers:
                b = m._buffers.get(name)
                if b is not None:
                    self._put(m._buffers, name, _copy(b if before is None else before))
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *unused: object) -> None:
        for kept, name, there in reversed(self._places):
            if there is _ABSENT:
                kept.pop(name, None)
            else:
                kept[name] = there
        for m, training in self._modes:
            m.training = training
