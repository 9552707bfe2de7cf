"""Functions that make tensors, and ask for their shapes: constants, ranges, grids, one-hot rows."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ..core import Tensor, all_values, convert_to_tensor, creation_namespace
from ..core.ops import arithmetic
from ..errors import DTypeError, InvalidArgumentError
from ..types import DType, DTypeLike, ShapeLike, TensorLike, TensorShape, as_dtype
from .catalogue import row
from .elementwise import cast
from .operands import beside, integer, negative_axis, rounded_once, static_shape, tensor, tensors
from .shaping import broadcast_to, expand_dims, reshape, transpose

# Making ----------------------------------------------------------------------------------------------------------


def constant(value: TensorLike, dtype: DTypeLike = None, shape: ShapeLike = None, name: str | None = "Const") -> Tensor:
    """A Tensor from a number, list or array, copied.

    Args:
        value: what to hold; Python floats become float32, ints int32, arrays keep their dtype.
        dtype: another dtype.
        shape: reshape to it, or repeat a single number over it.

    Raises:
        TypeError: if the number of elements does not fit the shape.

    >>> tf.constant([1, 2.5])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1. , 2.5], dtype=float32)>
    """
    result = convert_to_tensor(value, dtype)
    if shape is None:
        return result
    wanted = static_shape(shape)
    if result.array.size == 1:
        return fill(wanted, result)
    if result.array.size != TensorShape(wanted).num_elements():
        raise TypeError(f"constant: {result.array.size} values do not fill the shape {wanted}.")
    return reshape(result, wanted)


def zeros(shape: ShapeLike, dtype: DTypeLike = "float32", name: str | None = None) -> Tensor:
    """Zeros of a shape; of dtype 'string' empty texts.

    >>> print(tf.zeros([2]).numpy())
    [0. 0.]
    """
    kind = as_dtype(dtype)
    if kind.name == "string":
        return Tensor(np.full(static_shape(shape), "", object))
    return Tensor(creation_namespace().zeros(static_shape(shape), dtype=kind.numpy))


def ones(shape: ShapeLike, dtype: DTypeLike = "float32", name: str | None = None) -> Tensor:
    """Ones of a shape.

    >>> print(tf.ones([2]).numpy())
    [1. 1.]
    """
    return Tensor(creation_namespace().ones(static_shape(shape), dtype=as_dtype(dtype).numpy))


def eye(
    num_rows: int,
    num_columns: int | None = None,
    batch_shape: ShapeLike = None,
    dtype: DTypeLike = "float32",
    name: str | None = None,
) -> Tensor:
    """The identity matrix, or a stack of identity matrices.

    >>> print(tf.eye(2).numpy().tolist())
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows = integer(num_rows)
    columns = rows if num_columns is None else integer(num_columns)
    matrix = Tensor(creation_namespace().eye(rows, columns, dtype=as_dtype(dtype).numpy))
    return matrix if batch_shape is None else broadcast_to(matrix, (*static_shape(batch_shape), rows, columns))


def range(
    start: TensorLike, limit: TensorLike = None, delta: TensorLike = 1, dtype: DTypeLike = None, name: str = "range"
) -> Tensor:
    """Numbers from `start` to `limit`, which is left out, in steps of `delta`. With one argument they start at 0.

    Args:
        start, limit, delta: scalars.
        dtype: of the result, and in which their number ceil((limit - start) / delta) is computed. None: the widest of the
            three, where Python ints are int32 and floats float32.

    Raises:
        InvalidArgumentError: if an argument is no scalar, or `delta` is zero.
        DTypeError: if an argument does not fit an integer `dtype`.

    >>> print(tf.range(3).numpy(), tf.range(1.0, 2.0, 0.5).numpy())
    [0 1 2] [1.  1.5]
    """
    if limit is None:
        start, limit = 0, start
    bounds = [np.asarray(value) for value in (start, limit, delta)]
    for which, bound in zip(("start", "limit", "delta"), bounds, strict=True):
        if bound.ndim or as_dtype(bound.dtype).kind not in "iuf":
            raise InvalidArgumentError(f"range: {which} must be a real number, found {bound.dtype}{list(bound.shape)}.")
    given = () if dtype is not None else (start, limit, delta)
    kinds = [as_dtype(value.dtype if hasattr(value, "dtype") else tensor(value).dtype) for value in given]
    wanted = max(kinds, key=lambda one: (one.is_floating, one.size)) if kinds else as_dtype(dtype)
    first, last, step = (bound.astype(wanted.numpy) for bound in bounds)
    if wanted.is_integer and any(one != bound for one, bound in zip((first, last, step), bounds, strict=True)):
        raise DTypeError(f"range: {', '.join(map(str, bounds))} do not all fit into {wanted.name}; give another dtype.")
    if step == 0:
        raise InvalidArgumentError(f"range: delta must not be zero, found {bounds[2]} as {wanted.name}.")
    if wanted.is_integer:
        return convert_to_tensor(np.arange(int(first), int(last), int(step), dtype=wanted.numpy))
    with np.errstate(over="ignore", invalid="ignore"):
        count = np.ceil((last - first) / step)
    if not np.isfinite(count):
        raise InvalidArgumentError(f"range: from {first} to {last} in steps of {step} there is no last number.")
    places = np.arange(max(int(count), 0), dtype="float64")
    return convert_to_tensor((float(first) + places * float(step)).astype(wanted.numpy))


@rounded_once
def linspace(start: TensorLike, stop: TensorLike, num: int, name: str | None = None, axis: int = 0) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, both included; float64 for integers, complex for complex ends.

    >>> print(tf.linspace(0.0, 1.0, 5).numpy())
    [0.   0.25 0.5  0.75 1.  ]
    """
    first, last = tensors(start, stop)
    shape = np.broadcast_shapes(first.shape, last.shape)
    first, last = (broadcast_to(value, shape) for value in (first, last))
    if not first.dtype.is_differentiable:
        first, last = (arithmetic.cast(value, dtype="float64") for value in (first, last))
    if (count := integer(num)) < 0:
        raise InvalidArgumentError(f"linspace: num must not be negative, found {num}.")
    steps = np.linspace(0.0, 1.0, count)
    position = axis if axis >= 0 else axis + first.ndim + 1
    grid = beside(first, steps.reshape((-1,) + (1,) * (first.ndim - position)))
    weight = arithmetic.cast(grid, dtype=first.dtype.name)
    low, high = expand_dims(first, position), expand_dims(last, position)
    inside = low + (high - low) * weight
    return arithmetic.select(weight == 0.0, low, arithmetic.select(weight == 1.0, high, inside))


def meshgrid(*args: TensorLike, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """Coordinate grids from vectors, in 'xy' (columns first) or 'ij' order.

    >>> x, y = tf.meshgrid([1, 2], [3, 4, 5])
    >>> x.shape
    TensorShape([3, 2])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', found {indexing!r}.")
    vectors = [reshape(value, (-1,)) for value in args]
    swap = indexing == "xy" and len(vectors) > 1
    order = [1, 0, *builtins.range(2, len(vectors))] if swap else list(builtins.range(len(vectors)))
    sizes = [vectors[position].shape[0] for position in order]
    grids = []
    for position, vector in enumerate(vectors):
        place = order.index(position)
        shape = [1] * len(vectors)
        shape[place] = vector.shape[0]
        grids.append(broadcast_to(reshape(vector, shape), sizes))
    return grids


def one_hot(
    indices: TensorLike,
    depth: int,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: DTypeLike = None,
    name: str | None = None,
) -> Tensor:
    """Rows that hold `on_value` (1) at the index and `off_value` (0) elsewhere; an index out of range gives no `on_value`.

    Args:
        indices: integer tensor.
        depth: length of a row.
        on_value, off_value: numbers.
        axis: where the rows lie in the result; the last axis by default.
        dtype: of the result. None: that of `on_value` or `off_value`; float32 if neither is given.

    Raises:
        DTypeError: if a value does not fit the dtype.

    >>> print(tf.one_hot([1], 3).numpy())
    [[0. 1. 0.]]
    """
    from ..nn_ops import nn

    given = [value for value in (on_value, off_value) if value is not None]
    kind = as_dtype(dtype if dtype is not None else tensors(*given)[0].dtype if given else "float32")
    on, off = (_number(kind, value, default) for value, default in ((on_value, 1), (off_value, 0)))
    rows = nn.one_hot(tensor(indices), depth=integer(depth), on=on, off=off, dtype=kind.numpy.name)
    if axis in (None, -1):
        return rows
    order = list(builtins.range(rows.ndim - 1))
    order.insert(negative_axis(axis, rows.ndim, "one_hot") + rows.ndim, rows.ndim - 1)
    return transpose(rows, order)


def sequence_mask(lengths: TensorLike, maxlen: Any = None, dtype: DTypeLike = "bool", name: str | None = None) -> Tensor:
    """For each length a row that is true in as many places from the first on: mask[..., j] = j < lengths[...].

    Args:
        lengths: integer tensor.
        maxlen: size of the rows; the largest length if None.
        dtype: of the result.

    >>> print(tf.sequence_mask([1, 3], dtype=tf.int32).numpy().tolist())
    [[1, 0, 0], [1, 1, 1]]
    """
    sizes = tensor(lengths)
    if not sizes.dtype.is_integer and 0 not in sizes.shape:  # an empty list has the dtype of floats
        raise DTypeError(f"sequence_mask: lengths must be integers, found {sizes.dtype.name}. Use tf.cast(lengths, tf.int32).")
    longest = int(all_values(sizes).max(initial=0)) if maxlen is None else integer(maxlen)
    if longest < 0:
        raise InvalidArgumentError(f"sequence_mask: maxlen must be 0 or more, found {longest}.")
    places = beside(sizes, np.arange(longest), "int64")
    return cast(places < expand_dims(arithmetic.cast(sizes, dtype="int64"), -1), dtype)


def _number(dtype: DType, value: TensorLike, default: int) -> Any:
    """A value as a Python number that fits a dtype."""
    return dtype.numpy.type(default).item() if value is None else np.asarray(convert_to_tensor(value, dtype)).item()


# Asking about shapes ---------------------------------------------------------------------------------------------------


# fmt: off
fill = row("fill", lambda dims, value, name=None: broadcast_to(reshape(value, ()), dims), "One value repeated over a shape.",
    "print(tf.fill([2], 7.0).numpy()) -> [7. 7.]")
zeros_like = row("zeros_like",
    lambda input, dtype=None, name=None:
        arithmetic.zeros_like(tensor(input), dtype=None if dtype is None else as_dtype(dtype).name),
    "Zeros of the shape and dtype of a tensor.", "print(tf.zeros_like([1, 2]).numpy()) -> [0 0]")
ones_like = row("ones_like",
    lambda input, dtype=None, name=None:
        arithmetic.ones_like(tensor(input), dtype=None if dtype is None else as_dtype(dtype).name),
    "Ones of the shape and dtype of a tensor.", "print(tf.ones_like([1, 2]).numpy()) -> [1 1]")
shape = row("shape",
    lambda input, out_type="int32", name=None: beside(x := tensor(input), np.asarray(x.shape, dtype=as_dtype(out_type).numpy)),
    "The shape as an integer Tensor.", "print(tf.shape([[1, 2, 3]]).numpy()) -> [1 3]")
size = row("size", lambda input, out_type="int32", name=None: beside(x := tensor(input), x.shape.num_elements(), out_type),
    "The number of elements as an integer Tensor.", "print(tf.size([[1, 2, 3]]).numpy()) -> 3")
rank = row("rank", lambda input, name=None: beside(x := tensor(input), x.ndim, "int32"),
    "The number of axes as an int32 Tensor.", "print(tf.rank([[1, 2, 3]]).numpy()) -> 2")
# fmt: on
