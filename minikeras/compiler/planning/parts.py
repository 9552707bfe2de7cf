"""Passes over flat arrays that know where one array ends and the next begins: bodies read numbers of parts, and are summed.

So a norm of each gradient, or of all, needs no pass over memory for each of them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from ...core import Primitive
from ...layout import Layout
from ...types import Array
from ..loops import Body


class Sum(StrEnum):
    """What elements are added up over."""

    PART = "part"
    ALL = "all"


def _loop_of_parts(xp: Any, *values: Array, body: Body, layout: Layout, sums: Sum | None) -> tuple[Array, ...]:
    numbers = np.zeros(layout.size, np.intp)
    for number, part in enumerate(layout.slices):
        numbers[part] = number
    given = [x[numbers, 0] if getattr(x, "ndim", 0) == 2 else x for x in values]
    results = body(*given)
    if sums is None:
        return results
    totals = [xp.stack([y[part].sum() for part in layout.slices]).reshape(-1, 1) for y in results]
    return tuple(totals if sums is Sum.PART else [total.sum() for total in totals])


loop_of_parts = Primitive(
    "loop_of_parts", lambda xp: functools.partial(_loop_of_parts, xp), differentiable=False, uniform=False, registered=False
)
"""A body for all elements of flat arrays of one `layout`. Operands of shape (parts, 1) have a number for each part, those
without axes one for all. With `sums` results are added up: over each part, of shape (parts, 1), or over all, without axes."""


def sums_shape(layout: Layout, sums: Sum) -> tuple[int, ...]:
    """The shape of such a sum."""
    return (len(layout.shapes), 1) if sums is Sum.PART else ()


def is_of_parts(shape: Sequence[int] | None) -> bool:
    """Whether an operand has a number for each part."""
    return shape is not None and len(shape) == 2
