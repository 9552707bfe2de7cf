"""Segments, the largest elements, distances, special functions, and complex numbers as pairs."""

from __future__ import annotations

import math as _math
import sys
from collections.abc import Callable
from typing import Any

from ....absent import hide_imports
from ....core import Tensor, convert_to_tensor
from ....errors import ShapeError
from ....functions import elementwise as tf
from ....functions import linalg as _linalg
from ....functions import ordering, segments
from ....functions.indexing import take_along_axis
from ....functions.reductions import norm, reduce_logsumexp, reduce_sum
from ....functions.shaping import expand_dims, stack
from ....types import TensorLike
from ...promotion import floating, promoted
from ...symbolic.operation import operation
from ...symbolic.rules import cost_of_operands
from ..rows import anything, floats, of_floats, row
from ..windows import elements, read

erf = of_floats("erf", tf.erf)
erfc = of_floats("erfc", tf.erfc)
erfinv = of_floats("erfinv", tf.erfinv)
rsqrt = of_floats("rsqrt", tf.rsqrt)


def _cost_of_segments(shapes: list[tuple[int, ...]], given: Any) -> tuple[int, int]:
    result = _math.prod(shapes[0][1:]) * max(1, int(given[-1].get("num_segments") or 1))
    return result, result


_SEGMENTS = """{summary} of each segment: of the slices along the first axis whose number is the same.

Args:
    data: tensor of at least one axis.
    segment_ids: integers, one for each slice, in any order. Slices with a negative number count nowhere.
    num_segments: how many segments there are; as many as the largest number says if None, which is read from its values.
    sorted: accepted for compatibility, ignored.

Returns:
    A Tensor (num_segments, ...). A segment without slices gives {empty}.

Raises:
    InvalidArgumentError: if a number is num_segments or more.

>>> print(tf.keras.ops.{name}([1.0, 2.0, 3.0], [0, 0, 1], num_segments=2).numpy())
{expected}
"""


def _segments(reduce: Callable[..., Tensor], summary: str, empty: str, expected: str) -> Callable[..., Tensor]:
    """The function of Keras for an unsorted one of TensorFlow."""

    def row(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None, sorted: bool = False) -> Tensor:
        ids = convert_to_tensor(segment_ids)
        if ids.ndim != 1:
            raise ShapeError(f"{row.__name__}: segment_ids must be a vector, found shape {ids.shape}. Flatten both.")
        count = max(int(tf.cast(ids, "int64").numpy().max(initial=-1)) + 1, 0) if num_segments is None else num_segments
        return reduce(convert_to_tensor(data), ids, count)

    name = reduce.__name__.removeprefix("unsorted_")
    row.__name__ = row.__qualname__ = name
    row.__module__ = sys._getframe(0).f_globals["__name__"]
    row.__doc__ = _SEGMENTS.format(summary=summary, empty=empty, name=name, expected=expected)
    return operation(cost=_cost_of_segments, counts=True)(row)


segment_sum = _segments(segments.unsorted_segment_sum, "Sum", "0", "[3. 3.]")
segment_max = _segments(segments.unsorted_segment_max, "Maximum", "the least number", "[2. 3.]")
segment_min = _segments(segments.unsorted_segment_min, "Minimum", "the largest number", "[1. 3.]")
segment_prod = _segments(segments.unsorted_segment_prod, "Product", "1", "[2. 3.]")


@operation
def in_top_k(targets: TensorLike, predictions: TensorLike, k: int) -> Tensor:
    """True where fewer than k predictions of a row are larger than that for its target.

    Args:
        targets: integers (...), the class of each row.
        predictions: (..., classes); NaN is larger than nothing.

    >>> print(tf.keras.ops.in_top_k([1, 2], [[0.1, 0.5, 0.3], [0.6, 0.3, 0.1]], k=2).numpy())
    [ True False]
    """
    x, wanted = convert_to_tensor(predictions), convert_to_tensor(targets)
    chosen = take_along_axis(x, expand_dims(wanted, -1), -1)
    least = tf.cast(float("-inf"), x.dtype)
    chosen = tf.where(tf.is_nan(chosen), least, chosen)
    return reduce_sum(tf.cast(x > chosen, "int32"), -1) < k


@operation(name="CDist", cost=lambda shapes, given: (_math.prod(shapes[0]) * _math.prod(shapes[-1][-2:-1]),) * 2)
def cdist(x: TensorLike, y: TensorLike) -> Tensor:
    """The distance |x_i - y_j| of each row of x (..., n, size) to each row of y (..., m, size): (..., n, m).

    >>> print(tf.keras.ops.cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]]).numpy())
    [[5. 1.]]
    """
    a, b = map(floating, promoted(x, y))
    if min(a.ndim, b.ndim) < 2 or a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"cdist: needs (..., n, size) and (..., m, size), found {a.shape} and {b.shape}.")
    return norm(expand_dims(a, -2) - expand_dims(b, -3), axis=-1)


@operation(cost=cost_of_operands)
def extract_sequences(x: TensorLike, sequence_length: int, sequence_stride: int) -> Tensor:
    """Windows along the last axis: (..., length) to (..., windows, sequence_length).

    >>> print(tf.keras.ops.extract_sequences([1, 2, 3, 4], 3, 1).numpy())
    [[1 2 3]
     [2 3 4]]
    """
    x = convert_to_tensor(x)
    return read(x, elements(x.shape[-1:], sequence_length, sequence_stride), -1)


@operation
def view_as_complex(x: TensorLike) -> Tensor:
    """Complex numbers from pairs (..., 2) of a real and an imaginary part.

    >>> print(tf.keras.ops.view_as_complex([1.0, 2.0]).numpy())
    (1+2j)
    """
    x = floating(x)
    if not x.ndim or x.shape[-1] != 2:
        raise ShapeError(f"view_as_complex: the last axis must hold two numbers, found shape {x.shape}.")
    return tf.complex(x[..., 0], x[..., 1])


# fmt: off
logsumexp = row("logsumexp", lambda x, axis=None, keepdims=False: reduce_logsumexp(x, axis, keepdims),
    "ln(sum(exp(x))) along axes, without overflow.",
    "print(tf.keras.ops.logsumexp([1000.0, 0.0]).numpy()) -> 1000.0", takes=floats)
logdet = row("logdet", lambda x: _linalg.slogdet(x)[1], "Logarithm of the absolute value of the determinant of each matrix.",
    'print(f"{tf.keras.ops.logdet([[2.0, 0.0], [0.0, 4.0]]):.4f}") -> 2.0794', takes=floats)
view_as_real = row("view_as_real", lambda x: stack([tf.real(x), tf.imag(x)], -1),
    "The real and the imaginary part of each number as pairs (..., 2).",
    "print(tf.keras.ops.view_as_real([1.0 + 2.0j]).numpy()) -> [[1. 2.]]", takes=anything)
top_k = row("top_k", lambda x, k, sorted=True: ordering.top_k(x, k, sorted),
    "The k largest elements of each row, the largest first, and their positions.",
    "[one.numpy().tolist() for one in tf.keras.ops.top_k([1.0, 3.0, 2.0], 2)] -> [[3.0, 2.0], [1, 2]]",
    takes=anything, returns="tuple[Tensor, Tensor]")
# fmt: on

hide_imports(globals())
