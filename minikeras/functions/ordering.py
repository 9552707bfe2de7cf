"""Sorting, ranking and counting: an order is found as indices and elements are gathered, so gradients go back to them."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from ..core import Primitive, Tensor, convert_to_tensor, current, namespace, notify
from ..core.batch import BatchedTensor, all_values, check_values, own_values
from ..core.ops import indexing, reductions
from ..errors import InvalidArgumentError, ShapeError
from ..nn_ops import segments
from ..types import DTypeLike, TensorLike, as_dtype
from .creation import ones_like, zeros_like
from .elementwise import cast, is_finite, logical_and, stop_gradient, where
from .indexing import scatter_nd
from .operands import beside, integer, negative_axis, tensor, tensors
from .reductions import reduce_all, reduce_sum
from .shaping import reshape, stack


def argsort(
    values: TensorLike, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """Indices (int32) that sort along an axis; always stable.

    >>> print(tf.argsort([3.0, 1.0, 2.0]).numpy())
    [1 2 0]
    """
    x = tensor(values)
    descending = _is_descending("argsort", direction)
    return reductions.argsort(x, axis=negative_axis(axis, x.ndim, "argsort"), descending=descending)


def sort(values: TensorLike, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """The elements in order along an axis. Gradients go back to where each element came from.

    >>> print(tf.sort([3.0, 1.0, 2.0]).numpy())
    [1. 2. 3.]
    """
    x = tensor(values)
    descending = _is_descending("sort", direction)
    return reductions.sort(x, axis=negative_axis(axis, x.ndim, "sort"), descending=descending)


def _is_descending(name: str, direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"{name}: direction must be 'ASCENDING' or 'DESCENDING', found {direction!r}.")
    return direction == "DESCENDING"


class TopK(NamedTuple):
    """The largest elements, and where they stood."""

    values: Tensor
    indices: Tensor


def top_k(input: TensorLike, k: int = 1, sorted: bool = True, index_type: DTypeLike = "int32", name: str | None = None) -> TopK:
    """The `k` largest elements along the last axis, and their indices; the lower index first at a tie.

    >>> largest = tf.math.top_k([1.0, 3.0, 2.0], k=2)
    >>> print(largest.values.numpy(), largest.indices.numpy())
    [3. 2.] [1 2]
    """
    x = tensor(input)
    count = integer(k)
    if not x.ndim or not 0 <= count <= x.shape[-1]:
        raise ShapeError(f"top_k: k={count} but the last axis of {list(x.shape)} has {x.shape[-1] if x.ndim else 0} elements.")
    on_host = namespace(x.array) is np
    order = reductions.largest_places(x, k=count) if on_host else argsort(x, -1, "DESCENDING")[..., :count]
    return TopK(indexing.take_along(x, order, axis=-1), cast(order, index_type))


def in_top_k(targets: TensorLike, predictions: TensorLike, k: int, name: str | None = None) -> Tensor:
    """True where the prediction for a target is among the `k` largest of its row, or equals the last of them.

    Args:
        targets: integers (batch,), the class of each row.
        predictions: floats (batch, classes).
        k: how many count.

    Returns:
        bool (batch,); False where the target is no class, or a prediction is not finite.

    >>> print(tf.math.in_top_k([1, 2], [[0.1, 0.5, 0.3], [0.6, 0.3, 0.1]], k=2).numpy())
    [ True False]
    """
    x = stop_gradient(predictions)
    wanted = beside(x, targets)
    if x.ndim != 2 or tuple(wanted.shape) != (x.shape[0],) or not wanted.dtype.is_integer:
        raise ShapeError(
            f"in_top_k: needs integer targets (batch,) and predictions (batch, classes), found {wanted.dtype.name}"
            f"{list(wanted.shape)} and {x.shape}."
        )
    known = logical_and(wanted >= 0, wanted < x.shape[1])
    chosen = indexing.take_along(x, reshape(where(known, wanted, 0), (-1, 1)), axis=-1)
    larger = reduce_sum(cast(x > chosen, "int32"), -1)
    return logical_and(logical_and(known, larger < integer(k)), reduce_all(is_finite(x), -1))


def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
    """The permutation that undoes one: y[x[i]] = i.

    >>> print(tf.math.invert_permutation([2, 0, 1]).numpy())
    [1 2 0]

    Raises:
        InvalidArgumentError: if it is no permutation of 0, 1, ...
    """
    order = tensor(x)

    def complete(values: np.ndarray[Any, Any]) -> None:
        if order.ndim != 1 or (np.sort(values, -1) != np.arange(values.shape[-1])).any():
            raise InvalidArgumentError(f"invert_permutation: needs each of 0, 1, ... n-1 once, found {values.tolist()!r:.80}.")

    check_values(order, complete)
    return cast(argsort(order), order.dtype)


def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: int | None = None,
    weights: TensorLike = None,
    dtype: DTypeLike = "int32",
    name: str | None = None,
) -> Tensor:
    """Counts of label i (row) predicted as j (column).

    Args:
        labels, predictions: vectors of classes.
        num_classes: one more than the largest class that occurs, if None.
        weights: what each prediction counts; 1 if None.
        dtype: of the result.

    Returns:
        (num_classes, num_classes).

    Raises:
        InvalidArgumentError: for a class outside [0, num_classes).

    >>> print(tf.math.confusion_matrix([1, 2, 1], [1, 2, 0]).numpy().tolist())
    [[0, 0, 0], [1, 1, 0], [0, 0, 1]]
    """
    true, predicted = cast(labels, "int64"), cast(predictions, "int64")
    pairs = stack([reshape(true, (-1,)), reshape(predicted, (-1,))], -1)
    classes = int(all_values(pairs).max(initial=-1)) + 1 if num_classes is None else integer(num_classes)
    amounts = ones_like(pairs[:, 0], dtype) if weights is None else cast(reshape(tensor(weights), (-1,)), dtype)
    return scatter_nd(pairs, amounts, (classes, classes))


class Unique(NamedTuple):
    """The distinct elements, and for each element its position among them."""

    y: Tensor
    idx: Tensor


def unique(x: TensorLike, out_idx: DTypeLike = "int32", name: str | None = None) -> Unique:
    """The distinct elements of a vector in order of appearance, and for each element its position among them.

    Raises:
        ShapeError: if `x` is no vector.

    >>> found = tf.unique([5, 7, 5])
    >>> print(found.y.numpy(), found.idx.numpy())
    [5 7] [0 1 0]
    """
    vector = tensor(x)
    if vector.ndim != 1:
        raise ShapeError(f"unique: expects a vector, found shape {vector.shape}. Flatten it: tf.reshape(x, [-1]).")
    array = own_values(vector)
    values, first, positions = np.unique(array, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.argsort(order, kind="stable")
    results = Unique(beside(vector, values[order]), beside(vector, rank[positions].astype(as_dtype(out_idx).numpy)))
    notify(current(), _unique, (vector,), {}, tuple(results))
    return results


class UniqueWithCounts(NamedTuple):
    """The distinct elements, for each element its position among them, and how often each occurs."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]  # of a tuple it is a method


def unique_with_counts(x: TensorLike, out_idx: DTypeLike = "int32", name: str | None = None) -> UniqueWithCounts:
    """As `unique`, and how often each element occurs.

    >>> print(tf.unique_with_counts([5, 7, 5]).count.numpy())
    [2 1]
    """
    values, positions = unique(x, out_idx)
    return UniqueWithCounts(values, positions, bincount(positions, minlength=values.shape[0], dtype=out_idx))


def histogram_fixed_width(
    values: TensorLike, value_range: TensorLike, nbins: int = 100, dtype: DTypeLike = "int32", name: str | None = None
) -> Tensor:
    """Counts of values in each of `nbins` bins of equal width; those beyond the range count in the first or last one.

    Args:
        values: tensor of any shape.
        value_range: two numbers, where the first bin begins and where the last one ends.
        nbins: number of bins.
        dtype: of the counts, int32 or int64.

    Raises:
        InvalidArgumentError: if the range is empty, or there are no bins.

    >>> print(tf.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5).numpy())
    [2 1 1 0 2]
    """
    x = tensor(values)
    low, high = np.ravel(own_values(beside(x, value_range, x.dtype))).tolist()
    if not low < high or nbins < 1:
        raise InvalidArgumentError(
            f"histogram_fixed_width: value_range [{low}, {high}] in {nbins} bins; the range must rise, and there must be a bin."
        )
    counts = segments.histogram(x, low=low, high=high, bins=int(nbins), rank=x.ndim)
    return counts if counts.dtype == dtype else cast(counts, dtype)


# As in TensorFlow no gradient is registered for it. The stack is notified of it, no kernel computes it:
# the shape of its result depends on values.
_unique = Primitive("Unique", lambda xp: np.unique, registered=False)


def searchsorted(
    sorted_sequence: TensorLike,
    values: TensorLike,
    side: Literal["left", "right"] = "left",
    out_type: DTypeLike = "int32",
    name: str | None = None,
) -> Tensor:
    """Indices at which to insert each value so that the sorted sequence (last axis) stays sorted.

    >>> print(tf.searchsorted([1.0, 3.0, 5.0], [2.0, 5.0]).numpy())
    [1 2]
    """
    ordered, looked_up = tensors(sorted_sequence, values)
    return cast(reductions.searchsorted(ordered, looked_up, side=side), out_type)


def bincount(
    arr: TensorLike,
    weights: TensorLike = None,
    minlength: int | None = None,
    maxlength: int | None = None,
    dtype: DTypeLike = "int32",
    name: str | None = None,
    axis: int | None = None,
    binary_output: bool = False,
) -> Tensor:
    """Counts of each non-negative integer: in all of `arr`, or with `axis=-1` in each of its rows.

    With `binary_output` 1 for what occurs at all. Inside `vectorized_map` every slice must give as many counts; `minlength` and
    `maxlength` see to it.

    >>> print(tf.math.bincount([0, 2, 2]).numpy())
    [1 0 2]
    """
    integers = tensor(arr) if hasattr(arr, "dtype") else convert_to_tensor(arr, "int32")
    weights = None if weights is None else tensor(weights)
    if axis not in (None, 0, -1) or (binary_output and weights is not None):
        raise InvalidArgumentError(f"bincount: axis must be 0 or -1, and binary_output stand without weights; found {axis=}.")
    if isinstance(integers, BatchedTensor) or isinstance(weights, BatchedTensor):
        if axis == -1 or binary_output:
            raise InvalidArgumentError("bincount: inside vectorized_map there are neither axis=-1 nor binary_output.")
        return _bincount_of_each(integers, weights, minlength or 0, maxlength, dtype)
    *lead, size = integers.shape if axis == -1 else [integers.shape.num_elements()]
    rows = own_values(integers).reshape(math.prod(lead), size).astype("int64", casting="same_kind")
    if rows.min(initial=0) < 0:
        raise InvalidArgumentError(f"bincount: needs integers from 0 on, found {rows.min()}.")
    bins = max(minlength or 0, int(rows.max(initial=-1)) + 1)
    places = rows + bins * np.arange(len(rows))[:, None]
    weighted = None if weights is None else own_values(weights).reshape(-1)
    counts = np.bincount(places.reshape(-1), weighted, bins * len(rows)).reshape(*lead, bins)[..., :maxlength]
    if weighted is not None:
        return beside(integers, counts.astype(weighted.dtype))
    return cast(beside(integers, np.minimum(counts, 1) if binary_output else counts), dtype)


def _bincount_of_each(
    integers: Tensor, weights: Tensor | None, minlength: int, maxlength: int | None, dtype: DTypeLike
) -> Tensor:
    """The counts of many slices at once, by adding ones or weights up at the places that the integers name."""
    found = all_values(integers)
    lengths = found.reshape(*found.shape[: found.ndim - integers.ndim], -1).max(-1, initial=-1) + 1
    lengths = np.unique(np.clip(lengths, minlength, maxlength))
    if len(lengths) != 1:
        raise InvalidArgumentError(
            f"bincount: slices give {', '.join(map(str, lengths))} counts, no common shape. Give minlength and maxlength."
        )
    bins = int(lengths[0])
    amounts = ones_like(integers, dtype) if weights is None else stop_gradient(weights)
    counted = integers < bins
    places = reshape(where(counted, integers, 0), (-1, 1))
    return scatter_nd(places, reshape(where(counted, amounts, zeros_like(amounts)), (-1,)), (bins,))
