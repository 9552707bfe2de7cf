"""Sums, means, extrema and products of segments: of slices that share a number, sorted or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import Tensor
from ..core.batch import all_values, check_values
from ..core.ops import arithmetic, indexing, transcendental
from ..errors import InvalidArgumentError, ShapeError
from ..nn_ops import segments
from ..types import TensorLike
from .catalogue import name_like_definition
from .elementwise import cast
from .operands import beside, inexact, integer, rounded_once, tensor
from .shaping import reshape

_DOCUMENTATION = """{summary} of each segment: of the slices along the first axes whose number is the same.

Args:
    data: tensor of at least the rank of `segment_ids`.
    segment_ids: {ids}

Returns:
    A Tensor (number of segments, ...). Derivative: {derivative}. A segment without slices gives {empty}.

Raises:
    InvalidArgumentError: if a number {wrong}.
    ShapeError: if there is not one number for each slice.

>>> print(tf.math.{name}([1.0, 2.0, 3.0], [0, 0, 1]{argument}).numpy())
{expected}
"""


def _sum(x: Tensor, ids: Tensor, axis: int, size: int) -> Tensor:
    return indexing.add_rows(x, ids, axis=axis, size=size)


def _counts(x: Tensor, ids: Tensor, axis: int, size: int) -> Tensor:
    """The number of slices in each segment, beside its results."""
    counts = _sum(beside(x, np.ones(tuple(ids.shape), "int32")), ids, axis=-1, size=size)
    return reshape(counts, (size, *(1,) * (-1 - axis)))


def _divisor(x: Tensor, ids: Tensor, axis: int, size: int) -> Tensor:
    return cast(arithmetic.maximum(_counts(x, ids, axis, size), 1), x.dtype)


@rounded_once
def _mean(x: Tensor, ids: Tensor, axis: int, size: int) -> Tensor:
    """The mean of each segment; of integers it is float64, as any quotient."""
    return arithmetic.divide(_sum(x, ids, axis, size), _divisor(x, ids, axis, size))


def _sorted_mean(x: Tensor, ids: Tensor, axis: int, size: int) -> Tensor:
    """The mean of each segment; of integers it is an integer, rounded toward zero."""
    mean = _mean(x, ids, axis, size)
    return cast(mean, x.dtype) if x.dtype.is_integer else mean


@rounded_once
def _sqrt_n(x: Tensor, ids: Tensor, axis: int, size: int) -> Tensor:
    inexact("unsorted_segment_sqrt_n", x)
    return _sum(x, ids, axis, size) / transcendental.sqrt(_divisor(x, ids, axis, size))


_Reduce = Callable[..., Tensor]


def _checked(name: str, data: TensorLike, segment_ids: TensorLike) -> tuple[Tensor, Tensor]:
    """The slices and their numbers, one for each."""
    x = tensor(data)
    ids = beside(x, segment_ids)
    if not ids.dtype.is_integer or tuple(x.shape[: ids.ndim]) != tuple(ids.shape):
        raise ShapeError(
            f"{name}: needs integers as segment_ids, one for each slice of data {x.shape} along the first axes, found "
            f"{ids.dtype.name}{list(ids.shape)}."
        )
    return x, ids


def _unsorted(reduce: _Reduce, name: str, summary: str, derivative: str, empty: str, expected: str) -> Callable[..., Tensor]:
    """The public function for numbers in any order, of a given number of segments."""

    def function(data: TensorLike, segment_ids: TensorLike, num_segments: Any, name: str | None = None) -> Tensor:
        x, ids = _checked(function.__name__, data, segment_ids)
        size = integer(num_segments)

        def below(values: np.ndarray[Any, Any]) -> None:
            if values.size and values.max() >= size:
                raise InvalidArgumentError(
                    f"{function.__name__}: segment_ids = {values.max()} is not in [0, {size}). Give a larger num_segments."
                )

        check_values(ids, below)
        ids = arithmetic.select(ids < 0, size, ids)  # what belongs nowhere goes into one more segment, which is left out
        return reduce(x, ids, axis=ids.ndim - x.ndim - 1, size=size + 1)[:size]

    name_like_definition(function, name, __name__)
    function.__doc__ = _DOCUMENTATION.format(
        summary=summary,
        ids="numbers in [0, num_segments), of the first axes of `data`, in any order. Slices with a negative one count nowhere."
        "\n    num_segments: how many segments there are.",
        derivative=derivative,
        empty=empty,
        wrong="is num_segments or more",
        name=name,
        argument=", 2",
        expected=expected,
    )
    return function


def _sorted(reduce: _Reduce, name: str, summary: str, derivative: str, empty: str, expected: str) -> Callable[..., Tensor]:
    """The public function for numbers that rise; the last one says how many segments there are."""

    def function(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
        x, ids = _checked(function.__name__, data, segment_ids)
        values = all_values(ids)
        if ids.ndim != 1 or (np.diff(values) < 0).any() or (values < 0).any():
            raise InvalidArgumentError(
                f"{function.__name__}: segment_ids must be a vector of numbers >= 0 that never fall, found {values!r:.80}. "
                f"For any other use tf.math.unsorted_{function.__name__}."
            )
        size = int(values.max(initial=-1)) + 1
        result = reduce(x, ids, axis=-x.ndim, size=size)
        if reduce not in (segments.segment_max, segments.segment_min):
            return result
        return arithmetic.select(_counts(x, ids, -x.ndim, size) > 0, result, 0)

    name_like_definition(function, name, __name__)
    function.__doc__ = _DOCUMENTATION.format(
        summary=summary,
        ids="a vector of numbers that never fall, one for each slice along the first axis.",
        derivative=derivative,
        empty=empty,
        wrong="is negative, or less than the one before",
        name=name,
        argument="",
        expected=expected,
    )
    return function


_TIE, _OTHERS = "1, shared evenly at a tie", "the product of the others, exact with zeros"
# A table: one row for each function.
# fmt: off
unsorted_segment_sum = _unsorted(_sum, "unsorted_segment_sum", "Sum", "1", "0", "[3. 3.]")
unsorted_segment_mean = _unsorted(_mean, "unsorted_segment_mean", "Mean", "1/n", "0", "[1.5 3. ]")
unsorted_segment_sqrt_n = _unsorted(_sqrt_n, "unsorted_segment_sqrt_n", "Sum/sqrt(n)", "n**-0.5", "0", "[2.1213205 3.       ]")
unsorted_segment_max = _unsorted(segments.segment_max, "unsorted_segment_max", "Maximum", _TIE, "the least number", "[2. 3.]")
unsorted_segment_min = _unsorted(segments.segment_min, "unsorted_segment_min", "Minimum", _TIE, "the largest number", "[1. 3.]")
unsorted_segment_prod = _unsorted(segments.segment_prod, "unsorted_segment_prod", "Product", _OTHERS, "1", "[2. 3.]")
segment_sum = _sorted(_sum, "segment_sum", "Sum", "1", "0", "[3. 3.]")
segment_mean = _sorted(_sorted_mean, "segment_mean", "Mean", "1/n", "0", "[1.5 3. ]")
segment_max = _sorted(segments.segment_max, "segment_max", "Maximum", _TIE, "0", "[2. 3.]")
segment_min = _sorted(segments.segment_min, "segment_min", "Minimum", _TIE, "0", "[1. 3.]")
segment_prod = _sorted(segments.segment_prod, "segment_prod", "Product", _OTHERS, "1", "[2. 3.]")
# fmt: on
