"""What all objects that own a handle of the library have in common."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from .errors import StateError


class Handle:
    """Owns a handle: `close` gives it back, `with` closes at the end, and so does the collector."""

    _handle: Any = None
    _destroy: Callable[[Any], None]

    def _get(self) -> Any:
        handle = self._handle
        if handle is None:
            raise StateError(f"this {type(self).__name__} is closed")
        return handle

    @property
    def closed(self) -> bool:
        return self._handle is None

    def close(self) -> None:
        """Gives the handle back; what others still use stays. Twice is fine."""
        handle, self._handle = self._handle, None
        if handle is not None:
            type(self)._destroy(handle)

    def __enter__(self) -> Any:
        self._get()
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: it owns a handle")

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # the interpreter is going down: modules may be gone already
            pass


def fields(struct: Any, skip: tuple[str, ...] = ("struct_size", "reserved", "this", "thisown")) -> dict[str, Any]:
    """The fields of a raw struct as a dict."""
    return {name: getattr(struct, name) for name in _names(type(struct)) if name not in skip}


_NAMES: dict[type, tuple[str, ...]] = {}


def _names(kind: type) -> tuple[str, ...]:
    if kind not in _NAMES:
        _NAMES[kind] = tuple(name for name, value in vars(kind).items() if isinstance(value, property))
    return _NAMES[kind]


class Record:
    """A value with named fields, as a struct of the library gave them."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)
