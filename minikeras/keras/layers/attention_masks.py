"""Which steps may attend to which: the masks of the inputs, their order and a window, joined into one of bools."""

from __future__ import annotations

import functools
from typing import Any

from ...core import Tensor
from ...functions.creation import ones
from ...functions.elementwise import abs, cast, identity, logical_and
from ...functions.publish import tensor
from ...functions.reductions import cumsum
from ...functions.shaping import expand_dims
from .inputs import mask_of


def order(rows: int, columns: int, causal: bool, window: int | None = None) -> Tensor | None:
    """(rows, columns), true where a step may attend to another by their positions; None if each may to all.

    Args:
        rows, columns: numbers of steps.
        causal: whether only to those up to its own.
        window: whether only to those fewer than so many steps away.
    """
    if not causal and window is None:
        return None
    counts = ones([rows, columns], "int32")  # positions are sums of ones: so a graph that is exported has any number of steps
    row, column = cumsum(counts, 0), cumsum(counts, 1)
    masks = [row >= column if causal else None, abs(row - column) < window if window is not None else None]
    return joined(masks)


def joined(masks: list[Any]) -> Tensor | None:
    """True where all of the masks are; None without any."""
    bools = [cast(tensor(mask), "bool") for mask in masks if mask is not None]
    return functools.reduce(logical_and, bools) if bools else None


def of_rows(mask: Any) -> Any:
    """A mask of the steps that attend, as a column."""
    return None if mask is None else expand_dims(tensor(mask), -1)


def of_columns(mask: Any) -> Any:
    """A mask of the steps that are attended to, as a row."""
    return None if mask is None else expand_dims(tensor(mask), -2)


def unmarked(x: Any) -> Any:
    """A tensor without the mask that it carries."""
    return x if mask_of(x) is None else identity(x)
