"""Random numbers as pure functions of (seed, step, segment, site, element)."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import _raw, raw
from ._handle import Handle
from .errors import InvalidArgumentError
from .memory import shape_of


class Philox:
    """A snapshot of Philox 4x32-10, a plain value: the same draws whenever asked. `first` is the first element's number."""

    __slots__ = ("_raw",)

    def __init__(self, seed: int = 0, *, step: int = 0, segment: int = 0, site: int = 0) -> None:
        self._raw = raw.ckpt_philox()
        try:
            raw.ckpt_philox_pack(seed, step, segment, site, self._raw)
        except OverflowError as error:
            if hasattr(error, "status"):
                raise
            raise InvalidArgumentError(f"seed, step, segment and site are {seed}, {step}, {segment}, {site}, expected whole numbers from 0") from None

    @classmethod
    def at(cls, seed: int, subsequence: int, offset: int) -> Philox:
        """As curand_init(seed, subsequence, offset) starts."""
        self = cls.__new__(cls)
        self._raw = made = raw.ckpt_philox()
        made.seed, made.subsequence, made.offset = seed, subsequence, offset
        return self

    seed = property(lambda self: self._raw.seed)
    subsequence = property(lambda self: self._raw.subsequence)
    offset = property(lambda self: self._raw.offset)

    def _fill(self, function: Any, shape: Any, dtype: str, first: int, out: Any, *more: Any) -> Any:
        if out is None:
            out = np.empty(shape_of(shape), dtype)
        elif not isinstance(out, np.ndarray) or out.dtype != np.dtype(dtype) or not out.flags.c_contiguous or not out.flags.writeable:
            raise InvalidArgumentError(f"out is {_told(out)}, expected a writable array of {dtype} in C order")
        elif shape is not None and shape_of(shape) != out.shape:
            raise InvalidArgumentError(f"out has shape {out.shape}, expected {shape_of(shape)}")
        function(self._raw, first, out.size, *more, out)
        return out

    def u32(self, shape: Any = None, *, first: int = 0, out: Any = None) -> Any:
        return self._fill(raw.ckpt_philox_u32, shape, "uint32", first, out)

    def uniform(self, shape: Any = None, *, first: int = 0, out: Any = None) -> Any:
        """float32 in (0, 1]."""
        return self._fill(raw.ckpt_philox_uniform, shape, "float32", first, out)

    def normal(self, shape: Any = None, *, mean: float = 0.0, stddev: float = 1.0, first: int = 0, out: Any = None) -> Any:
        return self._fill(raw.ckpt_philox_normal, shape, "float32", first, out, mean, stddev)

    def bernoulli(self, shape: Any = None, *, probability: float = 0.5, first: int = 0, out: Any = None) -> Any:
        """uint8: 1 with this probability."""
        return self._fill(raw.ckpt_philox_bernoulli, shape, "uint8", first, out, probability)

    def __reduce__(self) -> Any:
        return Philox.at, (self.seed, self.subsequence, self.offset)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Philox) and (self.seed, self.subsequence, self.offset) == (other.seed, other.subsequence, other.offset)

    def __hash__(self) -> int:
        return hash((self.seed, self.subsequence, self.offset))

    def __repr__(self) -> str:
        return f"ckpt.Philox.at({self.seed}, {self.subsequence}, {self.offset})"


def _told(out: Any) -> str:
    return f"an array of {out.dtype}{'' if out.flags.c_contiguous else ', not in C order'}" if isinstance(out, np.ndarray) else type(out).__name__


def philox_block(counter: Any, key: Any) -> Any:
    """One block: four words from a counter of four and a key of two."""
    counter, key = (np.ascontiguousarray(a, dtype=np.uint32) for a in (counter, key))
    if counter.shape != (4,) or key.shape != (2,):
        raise InvalidArgumentError(f"counter and key have shapes {counter.shape} and {key.shape}, expected (4,) and (2,)")
    out = np.empty(4, np.uint32)
    raw.ckpt_philox_block(counter, key, out)
    return out


class Rng(Handle):
    """A generator with a position, for interplay with cuRAND's and PyTorch's."""

    _destroy = staticmethod(raw.ckpt_rng_destroy)

    def __init__(self, seed: int, subsequence: int = 0, offset: int = 0) -> None:
        self._handle = raw.ckpt_rng_create(seed, subsequence, offset)

    def snapshot(self) -> Philox:
        made = raw.ckpt_philox()
        raw.ckpt_rng_snapshot(self._get(), made)
        return Philox.at(made.seed, made.subsequence, made.offset)

    def restore(self, philox: Philox) -> None:
        raw.ckpt_rng_restore(self._get(), philox._raw)

    def advance(self, words: int, *, round_up_to_4: bool = False) -> None:
        raw.ckpt_rng_advance(self._get(), words, int(round_up_to_4))


_raw.set_philox_maker(Philox.at)
