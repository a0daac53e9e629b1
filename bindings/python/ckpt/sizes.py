"""Sizes as people write them."""
from __future__ import annotations

import operator
import re
from typing import Union

from .errors import InvalidArgumentError

Bytes = Union[int, str]

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40,
          "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
MOST_BYTES = 2**60


def parse_bytes(value: Bytes, what: str = "size") -> int:
    """Bytes from an int or a text: 4096, "512MiB", "1.5 GiB", "2GB". K, M, G, T alone are powers of 1024."""
    if isinstance(value, str):
        match = _FORM.fullmatch(value)
        unit = _UNITS.get(match[2].upper()) if match else None
        if match is None or unit is None:
            raise InvalidArgumentError(f"{what} is {value!r}, expected a number of bytes, or one with a unit: '512MiB', '2GiB', '1.5GB'")
        whole, _, fraction = match[1].partition(".")
        count = int(whole) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
    else:
        if isinstance(value, bool):
            raise InvalidArgumentError(f"{what} is {value!r}, expected a number of bytes")
        try:
            count = operator.index(value)
        except TypeError:
            raise InvalidArgumentError(f"{what} is {value!r}, expected a whole number of bytes or a text as '512MiB'") from None
    if not 0 <= count <= MOST_BYTES:
        raise InvalidArgumentError(f"{what} is {value!r}, expected 0 to 2^60 bytes")
    return count


def format_bytes(count: int) -> str:
    """"1.5 GiB"; whole bytes below 1024."""
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{count} bytes" if unit == "bytes" else f"{value:.2f} {unit}"
        value /= 1024
    raise AssertionError
