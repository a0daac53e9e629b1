"""libckpt: spend compute instead of memory, within a budget in bytes.

A Tape records Segments within a budget and runs them in reverse; a chain is planned on paper (`chain(...).plan(budget="2GiB")`);
`ckpt.torch` and `ckpt.jax` do it for models of these frameworks; `python -m ckpt` is the command; `ckpt.raw` is the C API as it is."""
from . import _raw
from .errors import (BudgetError, BusyError, CallbackError, CaptureError, CheckError, ConflictError, DeviceError, Error, InternalError,
                     InvalidArgumentError, InvalidPlanError, NotFilledError, NotFoundError, OutOfMemoryError, SizeOverflowError, StaleError,
                     StateError, StructSizeError, UnsupportedError, make as _make)

_raw.set_error_maker(_make)

from . import raw  # noqa: E402
from .memory import Arena, ArenaStats, Block, Device, DeviceInfo, Stream  # noqa: E402
from .philox import Philox, Rng, philox_block  # noqa: E402
from .plan import Action, Chain, CurvePoint, Explanation, Placement, Plan, PlanSummary, chain  # noqa: E402
from .sizes import format_bytes, parse_bytes  # noqa: E402
from .tape import Buffer, Frame, Input, Output, Recording, Segment, Slot, Tape, TapeStats, Trace, View  # noqa: E402
from .tools import (Estimate, Packing, Schedule, ScheduleAction, estimate, estimate_chain, pack, revolve_extra_forwards,  # noqa: E402
                    schedule)

__version__: str = raw.ckpt_version_string()


def demo() -> None:
    """Trains a small perceptron with everything stored, and again in half of that memory, and compares the bits."""
    from ._demo import main

    main()


__all__ = [name for name in globals() if not name.startswith("_") and name not in ("annotations",)]
