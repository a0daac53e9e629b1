"""The layers library (libckpt_ops): ready segments and a GPT made of them, with arrays of NumPy on the CPU."""
from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np

from . import _raw, raw
from ._handle import Handle, Record, fields
from .errors import InvalidArgumentError, StateError
from .memory import Device, _host, array_of
from .tape import Buffer, Tape, _buffers

if not hasattr(raw, "ckpt_ops_create"):
    raise ImportError("this package was built without the layers library: install a CBLAS (Debian: libopenblas-pthread-dev) and build it again")

_ISA = {"best": raw.CKPT_ISA_BEST, "generic": raw.CKPT_ISA_GENERIC, "avx2": raw.CKPT_ISA_AVX2, "avx512": raw.CKPT_ISA_AVX512}
_ATTENTION = {"plain": raw.CKPT_ATTENTION_PLAIN, "tiled": raw.CKPT_ATTENTION_TILED}


def _known(what: str, value: str, table: dict[str, int]) -> int:
    if value not in table:
        raise InvalidArgumentError(f"{what} is {value!r}, expected one of {', '.join(map(repr, table))}")
    return table[value]


class OpsInfo(Record):
    """thread_count, isa, blas."""


class Ops(Handle):
    """The kernels' threads and instruction set. threads 0: all that this process may use."""

    _destroy = staticmethod(raw.ckpt_ops_destroy)

    def __init__(self, threads: int = 0, *, isa: str = "best") -> None:
        desc = raw.ckpt_ops_desc()
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 0:
            raise InvalidArgumentError(f"threads is {threads!r}, expected a whole number from 0")
        desc.thread_count, desc.isa = threads, _known("isa", isa, _ISA)
        self._handle = raw.ckpt_ops_create(desc)

    @property
    def info(self) -> OpsInfo:
        info = raw.ckpt_ops_info()
        raw.ckpt_ops_get_info(self._get(), info)
        return OpsInfo(**fields(info))


class Tensor(Record):
    """A parameter tensor: name, offset, count, rows, columns, decays, init_mean, init_stddev."""


def _floats(array: Any, name: str, device: Device, count: int, *, writable: bool = True) -> Any:
    memory = array_of(array, name, device, writable=writable)
    if memory.dtype != np.dtype("float32"):
        raise InvalidArgumentError(f"{name} has elements of type {memory.dtype}, expected float32")
    if memory.bytes != 4 * count:
        raise InvalidArgumentError(f"{name} has shape {memory.shape}, expected {count} values")
    return memory


class _Bound(Handle):
    """What layers and models share: parameters in flat arrays of the caller's."""

    _prefix = ""
    _held: tuple[Any, ...] = ()

    def _call(self, name: str, *args: Any) -> Any:
        return getattr(raw, f"{self._prefix}_{name}")(self._get(), *args)

    @property
    def parameter_count(self) -> int:
        return self._call("parameter_count")

    @property
    def tensors(self) -> list[Tensor]:
        out = []
        for k in range(self._call("tensor_count")):
            info = raw.ckpt_tensor_info()
            self._call("get_tensor", k, info)
            out.append(Tensor(**(fields(info) | {"decays": bool(info.decays)})))
        return out

    def bind(self, parameters: Any, gradients: Any = None) -> None:
        """Flat float32 arrays of parameter_count values, kept until bound anew. Each backward adds to gradients once."""
        device, count = _host(), self.parameter_count
        one = _floats(parameters, "parameters", device, count)
        two = None if gradients is None else _floats(gradients, "gradients", device, count)
        self._call("bind", one.address or None, two and (two.address or None))
        self._held = (one.keeper, two and two.keeper)


class Layer(_Bound):
    """A layer as a ready segment; made by linear, layernorm, gelu, dropout, embedding, block and head."""

    _prefix = "ckpt_layer"
    _destroy = staticmethod(raw.ckpt_layer_destroy)

    def __init__(self, handle: Any, inputs: Sequence[tuple[Any, Any]], shape: tuple[int, ...], tied_count: int = 0) -> None:
        self._handle, self._inputs, self._shape, self._tied_count = handle, inputs, shape, tied_count

    def init(self, seed: int, first_tensor: int = 0) -> None:
        self._call("init", seed, first_tensor)

    def bind_tied(self, weight: Any, weight_grad: Any = None) -> None:
        """A tied head's weight: another layer's token table."""
        if not self._tied_count:
            raise StateError("this layer has a weight of its own, expected a head made with tied=True")
        one = _floats(weight, "weight", _host(), self._tied_count, writable=False)
        two = None if weight_grad is None else _floats(weight_grad, "weight_grad", _host(), self._tied_count)
        self._call("bind_tied", one.address, two and two.address)
        self._tied = (one.keeper, two and two.keeper)

    def run(self, tape: Tape, *inputs: Buffer, evaluate: bool = False) -> Buffer:
        for k, (one, (shape, dtype)) in enumerate(zip(_buffers(inputs), self._inputs)):
            if one.spec is None or one.dtype != dtype or math.prod(one.shape) != math.prod(shape):
                raise InvalidArgumentError(f"input {k} has shape {one.shape} and type {one.dtype}, expected {shape} and {dtype}")
        ids = np.array([b.id for b in inputs], np.uint64)
        in_use = tape._held  # here until this call returns, even if a callback closes the tape
        number = raw.ckpt_layer_run(self._get(), tape._get(), ids, len(ids), raw.CKPT_LAYER_EVALUATE if evaluate else 0)
        del in_use
        tape._held.append(self)  # what it is bound to is read and written in backward
        return Buffer(number, (self._shape, np.dtype("float32")))

    @property
    def loss(self) -> float:
        """A head's latest loss."""
        return _value(raw.ckpt_layer_loss(self._get()))


def _value(address: int | None) -> float:
    if address is None:
        raise StateError("this layer has no loss")
    view = _raw.view_make(address, 4, (), np.dtype("float32"), 1, None, "loss", 1, 0, 0)
    return float(view.numpy())


def _desc(kind: Any, **values: Any) -> Any:
    desc = kind()
    for name, value in values.items():
        if not isinstance(getattr(kind, name, None), property):
            raise TypeError(f"unknown argument {name!r}, expected one of {', '.join(n for n in fields(desc) if n != 'flags')}")
        setattr(desc, name, value)
    return desc


def _floats_of(*shape: int) -> tuple[Any, Any]:
    return shape, np.dtype("float32")


def linear(ops: Ops, rows: int, inputs: int, outputs: int, *, bias: bool = True) -> Layer:
    return Layer(raw.ckpt_layer_linear_create(ops._get(), rows, inputs, outputs, int(bias)), [_floats_of(rows, inputs)], (rows, outputs))


def layernorm(ops: Ops, rows: int, channels: int, *, epsilon: float = 0.0) -> Layer:
    return Layer(raw.ckpt_layer_layernorm_create(ops._get(), rows, channels, epsilon), [_floats_of(rows, channels)], (rows, channels))


def gelu(ops: Ops, count: int) -> Layer:
    return Layer(raw.ckpt_layer_gelu_create(ops._get(), count), [_floats_of(count)], (count,))


def dropout(ops: Ops, count: int, probability: float) -> Layer:
    return Layer(raw.ckpt_layer_dropout_create(ops._get(), count, probability), [_floats_of(count)], (count,))


def embedding(ops: Ops, *, batch: int, sequence: int, channels: int, vocabulary: int, dropout: float = 0.0) -> Layer:
    desc = _desc(raw.ckpt_layer_embedding_desc, batch=batch, sequence=sequence, channels=channels, vocabulary=vocabulary, dropout_probability=dropout)
    return Layer(raw.ckpt_layer_embedding_create(ops._get(), desc), [((batch, sequence), np.dtype("int32"))], (batch, sequence, channels))


def block(ops: Ops, *, batch: int, sequence: int, channels: int, heads: int, attention: str = "plain", **values: float) -> Layer:
    """values: hidden, dropout_probability, attention_dropout_probability, epsilon, residual_stddev."""
    desc = _desc(raw.ckpt_layer_block_desc, batch=batch, sequence=sequence, channels=channels, heads=heads,
                 attention=_known("attention", attention, _ATTENTION), **values)
    shape = (batch, sequence, channels)
    return Layer(raw.ckpt_layer_block_create(ops._get(), desc), [_floats_of(*shape)], shape)


def head(ops: Ops, *, rows: int, channels: int, vocabulary: int, **values: float) -> Layer:
    """values: tied, chunk_rows, ignore_index, epsilon."""
    desc = _desc(raw.ckpt_layer_head_desc, rows=rows, channels=channels, vocabulary=vocabulary, **({"ignore_index": -1} | values))
    inputs = [_floats_of(rows, channels), ((rows,), np.dtype("int32"))]
    return Layer(raw.ckpt_layer_head_create(ops._get(), desc), inputs, (), vocabulary * channels if desc.tied else 0)


def adamw_desc(**values: float) -> Any:
    """A ckpt_adamw_desc: learning_rate, beta1, beta2, epsilon, weight_decay, max_norm, grad_scale, step."""
    return _desc(raw.ckpt_adamw_desc, **values)


class Gpt(_Bound):
    """A GPT: embedding, blocks, head. Parameters, gradients and moments are flat arrays of the caller's."""

    _prefix = "ckpt_gpt"
    _destroy = staticmethod(raw.ckpt_gpt_destroy)

    def __init__(self, ops: Ops, *, layers: int, heads: int, channels: int, sequence: int, batch: int, vocabulary: int, attention: str = "plain",
                 dropout: float = 0.0, head_chunk_rows: int = 0, untied: bool = False) -> None:
        desc = _desc(raw.ckpt_gpt_desc, layers=layers, heads=heads, channels=channels, sequence=sequence, batch=batch, vocabulary=vocabulary,
                     attention=_known("attention", attention, _ATTENTION), dropout_probability=dropout, head_chunk_rows=head_chunk_rows, untied=int(untied))
        self._handle = raw.ckpt_gpt_create(ops._get(), desc)
        self.batch_shape = (batch, sequence)

    def init(self, seed: int) -> None:
        self._call("init", seed)

    def record(self, tape: Tape, tokens: Sequence[Any] | Any = None, targets: Any = None, *, evaluate: bool = False) -> Buffer:
        """One forward pass; the loss as a boundary. tokens and targets: int32 [batch, sequence]; None in a dry recording."""
        addresses: list[Any] = []
        held: list[Any] = [self]  # what it is bound to is read and written in backward
        for name, array in (("tokens", tokens), ("targets", targets)):
            if array is None:
                addresses.append(None)
                continue
            memory = array_of(array, name, tape.arena.device)
            if memory.dtype != np.dtype("int32") or memory.bytes != 4 * self.batch_shape[0] * self.batch_shape[1]:
                raise InvalidArgumentError(f"{name} has shape {memory.shape} and type {memory.dtype}, expected {self.batch_shape} and int32")
            addresses.append(memory.address)
            held.append(memory.keeper)
        in_use = tape._held  # here until this call returns, even if a callback closes the tape
        number = raw.ckpt_gpt_record(self._get(), tape._get(), *addresses, raw.CKPT_LAYER_EVALUATE if evaluate else 0)
        del in_use
        tape._held += held
        return Buffer(number, ((), np.dtype("float32")))

    @property
    def loss(self) -> float:
        return _value(raw.ckpt_gpt_loss(self._get()))

    def update(self, first_moment: Any, second_moment: Any, **values: float) -> float:
        """AdamW over the bound arrays; values as for adamw_desc. The gradients' norm."""
        one, two = (_floats(m, name, _host(), self.parameter_count) for m, name in ((first_moment, "first_moment"), (second_moment, "second_moment")))
        return raw.ckpt_gpt_update(self._get(), adamw_desc(**values), one.address, two.address)


__all__ = ["Gpt", "Layer", "Ops", "OpsInfo", "Tensor", "adamw_desc", "block", "dropout", "embedding", "gelu", "head", "layernorm", "linear"]
