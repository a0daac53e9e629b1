"""Runs a chain of blocks by a program of libckpt, inside PyTorch's own autograd graph.

The graph is the one that plain autograd would build; only what its nodes save goes through hooks (torch.autograd.graph.saved_tensors_hooks):
a node holds a Saved, not a tensor. When backward asks for the first Saved of block i, the program runs on up to "backward i": blocks run
again, and what they save again fills the Saved objects. Since it is one ordinary graph, everything that works on graphs works:
captured and shared parameters, hooks, DistributedDataParallel, autograd.grad, several backwards."""
from __future__ import annotations

import contextlib
import threading
import weakref
from typing import Any, Callable, Sequence

import torch
from torch.utils import _pytree as pytree

from ..errors import CheckError, UnsupportedError
from . import _context

OWN, INPUT, OUTPUT, OUTSIDE = range(4)
ROUND = 512  # what PyTorch's CUDA allocator rounds to


def rounded(count: int) -> int:
    return (count + ROUND - 1) // ROUND * ROUND


def storage_of(tensor: Any) -> Any:
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()


def place_of(tensor: Any) -> int:
    """What names a storage: the address of its bytes; 0 where there is none (meta, sparse, wrapper subclasses)."""
    try:
        return storage_of(tensor).data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def is_plain(tensor: Any) -> bool:
    return tensor.layout is torch.strided and place_of(tensor) != 0


def bytes_of(tensors: Sequence[Any]) -> int:
    """Of their storages, each once, rounded up."""
    sizes = {place_of(t): rounded(storage_of(t).nbytes()) for t in tensors if is_plain(t)}
    return sum(sizes.values())


def _refuse_hidden(leaves: Sequence[Any], name: str) -> None:
    """Tensors that are in no container that is known would keep their graph, and be missing when a block runs again."""
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            continue
        inside = [*getattr(leaf, "__dict__", {}).values(), *(getattr(leaf, n, None) for n in getattr(type(leaf), "__slots__", ()))]
        if any(isinstance(t, torch.Tensor) for t in inside):
            raise UnsupportedError(f"{name} gives the next block a {type(leaf).__name__} that holds tensors, expected tensors in containers that "
                                   "torch.utils._pytree knows (register_pytree_node)")


class Boundary:
    """What passes between two blocks, without its graph: nested containers with tensors in them."""

    __slots__ = ("leaves", "spec", "tensors", "versions", "places")
    leaves: list[tuple[Any, Any]]  # a tensor, and whether a gradient goes to it; or None, and what is no tensor
    spec: Any  # None: one tensor by itself

    def __init__(self, value: Any, name: str | None = None) -> None:
        """name: of the block that gives it to the next one."""
        if type(value) is torch.Tensor:  # most often
            tensor = value.detach()
            self.leaves, self.spec, self.tensors, self.versions = [(tensor, value.requires_grad)], None, [tensor], [tensor._version]
            self.places = {place_of(tensor): 0} if is_plain(tensor) else {}
            return
        leaves, self.spec = pytree.tree_flatten(value)
        if name is not None:
            _refuse_hidden(leaves, name)
        self.leaves = [(t.detach(), t.requires_grad) if isinstance(t, torch.Tensor) else (None, t) for t in leaves]
        self.tensors = [t for t, _ in self.leaves if t is not None]
        self.versions = [t._version for t in self.tensors]
        self.places = {place_of(t): k for k, t in reversed(list(enumerate(self.tensors))) if is_plain(t)}

    def value(self) -> Any:
        """For a further run: leaves of a graph of their own."""
        leaves = [other if t is None else t.detach().requires_grad_(other) for t, other in self.leaves]
        return leaves[0] if self.spec is None else pytree.tree_unflatten(leaves, self.spec)

    def check(self, name: str) -> None:
        for k, (t, version) in enumerate(zip(self.tensors, self.versions)):
            if t._version != version:
                raise changed(f"{name} (tensor {k})", t, version)


def changed(what: str, tensor: Any, version: int) -> RuntimeError:
    """In the words that users of PyTorch know."""
    return RuntimeError(f"one of the variables needed for gradient computation has been modified by an inplace operation: {what}: "
                        f"[{tensor.type()} {list(tensor.shape)}] is at version {tensor._version}; expected version {version} instead")


def _geometry(tensor: Any) -> tuple[Any, ...]:
    """How a tensor reads its storage."""
    return tensor.size(), tensor.stride(), tensor.storage_offset(), tensor.dtype, tensor.is_conj(), tensor.is_neg()


class Saved:
    """Stands for a tensor that a node saved, and that is not there all the time."""

    __slots__ = ("run", "block", "kind", "tensor", "version", "index", "geometry", "told", "__weakref__")

    def __init__(self, run: Run, block: int) -> None:
        self.run, self.block, self.kind = run, block, OWN
        self.tensor: Any = None
        self.told: Any = None  # of what is the block's own: shape, type and device that a further run must give

    def hold(self, tensor: Any) -> None:
        self.tensor, self.version = tensor, tensor._version

    def alias(self, kind: int, boundary: Boundary, tensor: Any) -> None:
        """It is (a view of) a tensor of the block's input or output: what the boundary holds, or holds again."""
        self.kind, self.tensor = kind, None
        self.index = boundary.places[place_of(tensor)]
        self.version = tensor._version - boundary.versions[self.index]
        self.geometry = _geometry(tensor)

    def of(self, boundary: Boundary, name: str) -> Any:
        tensor, version = boundary.tensors[self.index], boundary.versions[self.index] + self.version
        if tensor._version != version:
            raise changed(name, tensor, version)
        if _geometry(tensor) == self.geometry:
            return tensor
        size, stride, offset, dtype, conjugated, negated = self.geometry
        with torch.no_grad():
            view = torch.empty(0, dtype=dtype, device=tensor.device).set_(storage_of(tensor), offset, size, stride)
            view = torch._neg_view(view) if negated else view
            return view.conj() if conjugated else view


# What a node has instead where the tensor is there until backward: itself, its version, and how to call it (how, by which block).
Kept = tuple[Any, int, tuple[str, str]]


class _Enough(BaseException):
    """Ends a further run when all that backward reads is there."""


# PyTorch 1 turns what a hook raises into a RuntimeError: there a further run goes to its end.
_MAY_END_EARLY = int(torch.__version__.split(".")[0]) >= 2


def may_end_early(written: list[bool]) -> bool:
    """Whether a further run may end when its last tensor is saved. written: of the last two that are saved, whether they are written by then.
    What no gradient goes to may be written only afterwards: the noise of RReLU. Its kernel must be waited for."""
    return _MAY_END_EARLY and all(written)


class Step:
    """An action of a program: kind, block (or boundary), and what a forward keeps."""

    __slots__ = ("kind", "index", "saves", "output")

    def __init__(self, kind: str, index: int, saves: bool = False, output: bool = False) -> None:
        self.kind, self.index, self.saves, self.output = kind, index, saves, output


class Program:
    """Actions, and where each block's backward stands in them. kinds[i]: what the tensors are that block i saves, as measured; a hint about memory:
    results do not depend on it. None: not known. inner[i]: block i was seen to run a backward of its own."""

    def __init__(self, steps: list[Step], count: int, kinds: list[Any] | None = None, inner: list[bool] | None = None) -> None:
        self.steps = steps
        self.kinds = kinds or [None] * count
        self.inner = inner or [False] * count
        self.first_backward = next(k for k, s in enumerate(steps) if s.kind == "backward")
        self.backward_at = {s.index: k for k, s in enumerate(steps) if s.kind == "backward"}
        self.stays = [self._stays(i) for i in range(count)]
        self.plain = [self.stays[i] and self._keeps_boundaries(i) for i in range(count)]

    def _stays(self, i: int) -> bool:
        """What block i saves is kept from its first run to its backward: its nodes may have the tensors themselves."""
        runs = [s for s in self.steps if s.kind == "forward" and s.index == i]
        dropped = any(s.kind == "drop" and s.index == i for s in self.steps[:self.backward_at[i]])
        return runs[0].saves and not any(s.saves for s in runs[1:]) and not dropped

    def may_read(self, i: int, kind: int) -> bool:
        """Whether the boundary is there when block i's backward begins: one that was not seen to be saved may be gone."""
        kinds = self.kinds[i]
        return kinds is None or kind in kinds

    def _keeps_boundaries(self, i: int) -> bool:
        """And so is what it reads of its boundaries: nothing of it needs a hook."""
        for s in self.steps[:self.backward_at[i]]:
            if s.kind == "free" and s.index in (i, i + 1) and self.may_read(i, INPUT if s.index == i else OUTPUT):
                return False
        return True


class _First:
    """What is remembered of a block's first run."""

    __slots__ = ("generators", "autocast", "modes", "buffers", "tensors", "saved", "inner")
    generators: Any
    autocast: Any
    modes: Any
    buffers: Any
    tensors: Any  # parameters and buffers that it reads
    saved: Any
    inner: bool  # the block runs a backward of its own, over what it saves


class Meter:
    """The most bytes that were live, as the planner counts them: inner boundaries, what blocks saved, gradients of boundaries."""

    def __init__(self) -> None:
        self.peak = 0
        self.backward: Any = None  # the block whose backward was counted last


class Run:
    """One forward pass and its backwards."""

    def __init__(self, blocks: Sequence[Callable[..., Any]], program: Program, names: Sequence[str], *, preserve_rng_state: bool = True,
                 meter: Meter | None = None, grad_bytes: Sequence[int] = (), modules: Sequence[list[Any]] | None = None) -> None:
        """modules: those of each block, where they are known."""
        self.modules = modules or [_context.modules_of(b) for b in blocks]
        self.blocks, self.program, self.names = blocks, program, names
        self.preserve_rng_state, self.meter, self.grad_bytes = preserve_rng_state, meter, grad_bytes
        self.boundaries: dict[int, Boundary] = {}
        self.first: list[_First | None] = [None] * len(blocks)
        self.running: Any = None  # of the block that is in its first run: what is known so far
        self.full = [False] * len(blocks)  # what the block saved is there
        # A meter sees what goes through hooks.
        self.plain, self.stays = (program.plain, program.stays) if meter is None else ([False] * len(blocks),) * 2
        self.at = 0
        self.lock = threading.RLock()

    # ---- the first pass ----

    def forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.boundaries[0] = Boundary((args, kwargs))
        value: Any = None
        for step in self.program.steps[:self.program.first_backward]:
            if step.kind == "forward" and self.first[step.index] is None:
                if step.index:
                    args, kwargs = (value,), {}
                value = None
                value = self._first_run(step, args, kwargs)
                del args, kwargs
            elif step.kind == "forward" and self.first[-1] is not None:
                break  # made again for backward: not before somebody asks for it
            elif step.kind == "forward":
                self._run_again(step)
            else:
                self._release(step)
            self.at += 1
        return value

    def _packing(self, step: Step, first: _First, perhaps_outputs: list[Saved]) -> Callable[[Any], Any]:
        """What a node of this first run keeps in a tensor's place. It is called for each saved tensor, a hundred times a step and more."""
        i = step.index
        kinds, packed, stays = self.program.kinds[i] or (), first.saved, self.stays[i]
        expected, keeps_input = len(kinds), self.program.may_read(i, INPUT)
        outside, inside = ("read by", self.names[i]), ("inside", self.names[i])

        def kept(tensor: Any, what: tuple[str, str]) -> Kept:
            packed.append(None)
            return (tensor if tensor.is_leaf else tensor.detach()), tensor._version, what

        def pack(tensor: Any) -> Any:
            k = len(packed)
            known = kinds[k] if k < expected else None
            if known == OUTSIDE or tensor.is_leaf and tensor.requires_grad:  # parameters, masks: somebody else's memory
                return kept(tensor, outside)
            if known != OWN:
                place = place_of(tensor) if tensor.layout is torch.strided else 0
                inputs = self.boundaries[i]  # here, not outside: nodes keep this function, and what it refers to
                if place and place in inputs.places and keeps_input:
                    saved = Saved(self, i)
                    saved.alias(INPUT, inputs, tensor)
                    packed.append(None)
                    return saved
                if not place:
                    return kept(tensor, outside)
            elif stays:
                return kept(tensor, inside)
            saved = Saved(self, i)
            saved.told = (tensor.shape, tensor.dtype, tensor.device)
            packed.append(weakref.ref(saved))
            if step.saves or first.inner or known == OUTPUT:
                saved.hold(tensor if tensor.is_leaf else tensor.detach())
                if known != OWN:
                    perhaps_outputs.append(saved)
            return saved

        return pack

    def _first_run(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        i = step.index
        first, inputs = _First(), self.boundaries[i]
        first.generators = _context.Generators(_context.cuda_devices(inputs.tensors)) if self.preserve_rng_state else None
        first.autocast, first.inner = _context.autocast_state(), self.program.inner[i]
        first.saved, first.tensors = [], []
        perhaps_outputs: list[Saved] = []  # held until the block is done
        pack = self._packing(step, first, perhaps_outputs)
        block = self.blocks[i]
        with contextlib.nullcontext() if self.plain[i] else torch.autograd.graph.saved_tensors_hooks(pack, _unpack), \
                _context.ModulesSeen(self.modules[i]) as seen:
            first.modes = seen.modes
            self.running = first, seen
            try:
                value = block(*args, **kwargs)
            finally:
                self.running = None
        try:
            inputs.check(f"{self.names[i]} changes its own input")
        except RuntimeError as error:
            raise RuntimeError(f"{error}. It could not run again from it: put a module with inplace=True behind the one that makes its input") from None
        first.buffers = seen.updated()
        first.tensors = seen.read()
        self.first[i], self.full[i] = first, step.saves
        output = Boundary(value, self.names[i] if i + 1 < len(self.blocks) else None)
        reads_output = False
        for saved in perhaps_outputs if self.program.may_read(i, OUTPUT) else ():
            if place_of(saved.tensor) in output.places:
                saved.alias(OUTPUT, output, saved.tensor)
                reads_output = True
        if not step.saves:
            self._empty(i)
        if i + 1 < len(self.blocks) or reads_output:
            self.boundaries[i + 1] = output
        self._measure()
        perhaps_outputs.clear()  # nodes may keep `pack`, and with it what it refers to
        return value

    def _saved(self, i: int) -> list[Saved]:
        first = self.first[i]
        return [s for s in (r() for r in first.saved if r is not None) if s is not None] if first is not None else []

    # ---- further runs ----

    def _run_again(self, step: Step) -> None:
        i = step.index
        first, inputs = self.first[i], self.boundaries[i]
        assert first is not None
        capture, output = step.saves and not self.full[i], step.output and i + 1 not in self.boundaries and i + 1 < len(self.blocks)
        if not capture and not output:
            return
        for _, name, t, version in first.tensors:
            if t._version != version:
                raise changed(f"{name} of {self.names[i]}", t, version)
        count, value = self._replay(i, first, capture, output)
        if count is not None and capture and count != len(first.saved):
            raise CheckError(f"{self.names[i]} saved {count} tensors when it ran again, {len(first.saved)} in its first run: "
                             "its forward must do the same each time")
        self.full[i] = self.full[i] or capture
        if output:
            self.boundaries[i + 1] = Boundary(value)
        self._measure()

    def _replay(self, i: int, first: _First, capture: bool, output: bool) -> tuple[int | None, Any]:
        """Runs block i again, as it ran first: fills what it saved then (capture). (how much it saved, its value); None: it ended early, when
        all was there."""
        inputs = self.boundaries[i]
        inputs.check(f"the input of {self.names[i]}")
        made: list[tuple[Saved, Any, int]] = []
        count, expected = 0, len(first.saved)
        may_end = capture and not output
        written: list[bool] = []  # of the last two

        def pack(tensor: Any) -> Any:
            nonlocal count
            count += 1
            reference = first.saved[count - 1] if capture and count <= expected else None
            saved = reference() if reference is not None else None
            if saved is not None and saved.kind == OWN:
                if saved.told != (tensor.shape, tensor.dtype, tensor.device):
                    raise CheckError(f"{self.names[i]} saved another tensor when it ran again: {_told((tensor.shape, tensor.dtype, tensor.device))} "
                                     f"instead of {_told(saved.told)} (number {count} of {expected}): its forward must do the same each time")
                made.append((saved, tensor.detach(), tensor._version))
            if may_end and expected - 1 <= count <= expected:
                written.append(tensor.requires_grad or place_of(tensor) in self._known_places(i))
                if count == expected and may_end_early(written):
                    raise _Enough
            return tensor.detach() if first.inner else None

        ahead = _context.Generators(_context.cuda_devices(inputs.tensors)) if first.generators is not None else None
        value, complete = None, False
        try:
            if first.generators is not None:
                first.generators.restore()
            with torch.enable_grad(), _context.autocast_as(first.autocast), \
                    _context.AsItRan(first.modes, first.tensors, first.buffers), \
                    torch.autograd.graph.saved_tensors_hooks(pack, _own):
                args, kwargs = inputs.value() if i == 0 else ((inputs.value(),), {})
                value = self.blocks[i](*args, **kwargs)
                complete = True
        except _Enough:
            pass
        finally:
            if ahead is not None:
                ahead.restore()
        for saved, tensor, version in made:
            saved.tensor, saved.version = tensor, version  # as it was saved: what the block changes afterwards is found
        return (count if complete else None), value

    def _known_places(self, i: int) -> set[int]:
        """What was there before block i ran: its input, parameters, buffers."""
        first = self.first[i]
        return {*self.boundaries[i].places, *(place_of(t) for _, _, t, _ in first.tensors)} if first is not None else set()

    def _release(self, step: Step) -> None:
        i = step.index
        if step.kind == "free":
            if i != 0:
                self.boundaries.pop(i, None)
        elif step.kind == "drop":
            self._empty(i)
        else:  # backward
            self._empty(i)
            if i + 1 < len(self.blocks):
                self.boundaries.pop(i + 1, None)

    def _empty(self, i: int) -> None:
        if self.stays[i]:
            return
        for saved in self._saved(i):
            if saved.kind == OWN:
                saved.tensor = None
        self.full[i] = False

    # ---- backward ----

    def _need(self, i: int) -> None:
        """Runs the program on until block i's backward may begin."""
        if self.at > self.program.backward_at[i]:
            self._start_again()
        try:
            while self.at < self.program.backward_at[i]:
                step = self.program.steps[self.at]
                if step.kind == "forward":
                    self._run_again(step)
                else:
                    self._release(step)
                self.at += 1
        except BaseException:
            self._start_again()  # what is half done goes; another backward begins anew
            raise

    def _start_again(self) -> None:
        """For a further backward: the whole program once more, from its input."""
        for i in range(len(self.blocks)):
            self._empty(i)
        self.boundaries = {k: b for k, b in self.boundaries.items() if k in (0, len(self.blocks))}
        self.at = 0

    def tensor_of(self, saved: Saved) -> Any:
        with self.lock:
            i = saved.block
            if self.first[i] is None:
                self._make_now(saved)
            if self.first[i] is None:
                return self._tensor(saved)
            if self.first[-1] is None:
                raise UnsupportedError(f"backward reaches {self.names[i]} from inside a later block, expected a block's own backward to end in the "
                                       "block (detach its input), or to come after the forward pass")
            if self.at != self.program.backward_at[i]:
                self._need(i)
            if self.meter is not None and self.meter.backward is not self.first[i]:
                self.meter.backward = self.first[i]
                self._measure(i)
            return self._tensor(saved)

    def _tensor(self, saved: Saved) -> Any:
        i = saved.block
        if saved.kind == INPUT:
            return saved.of(self.boundaries[i], f"the input of {self.names[i]}")
        if saved.kind == OUTPUT:
            return saved.of(self.boundaries[i + 1], f"the output of {self.names[i]}")
        if saved.tensor is None:
            raise CheckError(f"{self.names[i]} did not save a tensor of {_told(saved.told)} again: its forward must do the same each time")
        if saved.tensor._version != saved.version:
            raise changed(f"inside {self.names[i]}", saved.tensor, saved.version)
        return saved.tensor

    def _make_now(self, saved: Saved) -> None:
        """A block runs a backward of its own, in its first run: what it saved so far is made again, once, and held until the block is done."""
        first, seen = self.running
        first.inner = True
        if saved.kind == OWN and saved.tensor is None:
            first.buffers = seen.updated()
            self._replay(saved.block, first, True, False)

    # ---- measuring ----

    def _measure(self, backward: int | None = None) -> None:
        if self.meter is None:
            return
        last = len(self.blocks)
        outer = {place_of(t) for k in (0, last) if k in self.boundaries for t in self.boundaries[k].tensors}
        tensors = [t for k, b in self.boundaries.items() if 0 < k < last for t in b.tensors]
        tensors += [s.tensor for i in range(last) for s in self._saved(i) if s.kind == OWN and s.tensor is not None]
        live = bytes_of([t for t in tensors if place_of(t) not in outer])
        if self.at >= self.program.first_backward:
            doing = backward if backward is not None else next(s.index for s in self.program.steps[self.at:] if s.kind == "backward")
            live += self.grad_bytes[doing + 1] + (self.grad_bytes[doing] if backward is not None else 0)
        self.meter.peak = max(self.meter.peak, live)


def _told(what: tuple[Any, Any, Any]) -> str:
    shape, dtype, device = what
    return f"{dtype} {list(shape)} on {device}"


def _unpack(saved: Saved | Kept) -> Any:
    if isinstance(saved, tuple):
        tensor, version, what = saved
        if tensor._version != version:
            raise changed(" ".join(what), tensor, version)
        return tensor
    # Most often the program stands at this block's backward already, and what the node saved is there.
    run, tensor = saved.run, saved.tensor
    if tensor is None or run.meter is not None or run.at != run.program.backward_at[saved.block] or tensor._version != saved.version:
        return run.tensor_of(saved)
    return tensor


def _own(tensor: Any) -> Any:
    """A further run's own backward, inside the block."""
    if tensor is None:
        raise CheckError("a block runs a backward of its own when it runs again, and did not in its first run: its forward must do the same each time")
    return tensor
