"""Exceptions: one for each status of the library, each also the Python exception that says the same."""
from __future__ import annotations


class Error(Exception):
    """Something of libckpt failed. The text is the library's; `status` its code (positive: a callback's own)."""

    status: int = 0

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        if status is not None:
            self.status = status


class InvalidArgumentError(Error, ValueError):
    status = -1


class StructSizeError(Error):
    status = -2


class OutOfMemoryError(Error, MemoryError):
    status = -3


class BudgetError(Error):
    """The budget is too small: the text says what was wanted, what there was, and the smallest that works."""

    status = -4


class BusyError(Error):
    status = -5


class StaleError(Error):
    """A view, frame or buffer that is used after its time."""

    status = -6


class StateError(Error):
    """A call out of order, or on something that is closed."""

    status = -7


class NotFilledError(Error):
    status = -8


class CheckError(Error):
    status = -9


class SizeOverflowError(Error, OverflowError):
    status = -10


class NotFoundError(Error, LookupError):
    status = -11


class ConflictError(Error):
    status = -12


class DeviceError(Error):
    status = -13


class CaptureError(Error):
    status = -14


class UnsupportedError(Error, NotImplementedError):
    status = -15


class InvalidPlanError(Error, ValueError):
    status = -16


class InternalError(Error):
    status = -17


class CallbackError(Error):
    """A callback returned a status of its own."""


_BY_STATUS = {
    kind.status: kind
    for kind in (InvalidArgumentError, StructSizeError, OutOfMemoryError, BudgetError, BusyError, StaleError, StateError, NotFilledError, CheckError,
                 SizeOverflowError, NotFoundError, ConflictError, DeviceError, CaptureError, UnsupportedError, InvalidPlanError, InternalError)
}


def make(status: int, text: str) -> Error:
    """The exception for a status."""
    return _BY_STATUS.get(status, CallbackError if status > 0 else Error)(text, status)
