"""A budget for what loading a file costs: memory and work, counted, or refused by a LoadError, before things are made.

A configuration of a few bytes can ask for a weight of many gigabytes, or for a hundred thousand layers.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Iterator, Sequence

from ..errors import LoadError
from . import MEGABYTE

OBJECT, CALL = 100, 400
"""Work of making an object, and of calling a layer on symbols: about as many microseconds."""

MOST_WORK = 3_000_000
"""For a file of any size: 30,000 objects, or 6,000 layers; more if the caller allows more bytes than `DEFAULT_BYTES`."""

DEFAULT_BYTES = 128 * MEGABYTE


class Budget:
    """The rest of a budget: bytes for weights, whose values the file holds, bytes for other state, work in microseconds."""

    def __init__(self, weights: float, state: float, work: float) -> None:
        self.weights, self.state, self.work = weights, state, work

    @classmethod
    def of_file(cls, weights: int, file_size: int, max_bytes: int | None) -> Budget:
        """The budget for a file with that many bytes of weights; the caller may allow more, or less, state and work."""
        state = max(DEFAULT_BYTES, 8 * file_size) if max_bytes is None else int(max_bytes)
        return cls(weights, state, MOST_WORK * max(1, state // DEFAULT_BYTES))


_UNLIMITED = Budget(math.inf, math.inf, math.inf)
_current = contextvars.ContextVar("loading_budget", default=_UNLIMITED)


@contextlib.contextmanager
def loading(budget: Budget) -> Iterator[None]:
    """Within the block, objects that are made count against this budget."""
    token = _current.set(budget)
    try:
        yield
    finally:
        _current.reset(token)


def is_loading() -> bool:
    """True if objects are being made for a file."""
    return _current.get() is not _UNLIMITED


def spend_weights(shape: Sequence[int], itemsize: int, what: str) -> None:
    """Account for a weight that is about to be made; as the others, this does nothing unless a file is being loaded."""
    if not is_loading():
        return
    budget, wanted = _current.get(), math.prod(shape) * itemsize
    if wanted > budget.weights:
        raise LoadError(
            f"the configuration asks for {what} of shape {tuple(shape)}, {wanted} bytes; the file has weights for "
            f"{budget.weights}"
        )
    budget.weights -= wanted


def spend_state(shape: Sequence[int], itemsize: int, what: str) -> None:
    """Account for state that is about to be made and stays."""
    if not is_loading():
        return
    wanted = math.prod(shape) * itemsize
    check_temporary(wanted, what)
    _current.get().state -= wanted


def check_temporary(size: int, what: str) -> None:
    """Refuse arrays of `size` bytes that are needed for a moment only, if they are too large."""
    left = _current.get().state
    if size > left:
        raise LoadError(f"the configuration asks for {what} of {size} bytes, {left} are left; max_bytes= allows more")


def spend_work(units: int, what: str) -> None:
    """Account for work in the units of `OBJECT`."""
    budget = _current.get()
    budget.work -= units
    if budget.work < 0:
        raise LoadError(f"the configuration asks for more work than a file of this size may ({what}); max_bytes= allows more")
