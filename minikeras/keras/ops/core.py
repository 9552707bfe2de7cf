"""Conversions, parts of tensors, loops and branches, under Keras's names."""

from __future__ import annotations

import builtins
import math as _math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import nest
from ...core import Tensor, only_shapes
from ...core import convert_to_tensor as to_tensor
from ...core import custom_gradient as _custom_gradient
from ...errors import ShapeError
from ...functions import control_flow, creation, indexing, shaping
from ...functions import elementwise as tf
from ...functions.catalogue import row as plain_row
from ...functions.catalogue import takes_symbols
from ...functions.creation import range as numbers
from ...nn_ops.scan import counted_loop
from ...nn_ops.scan import scan as repeated
from ...types import DTypeLike, ShapeLike, TensorLike, as_dtype
from .. import config
from ..symbolic import KerasTensor
from ..symbolic.operation import operation
from ..symbolic.trial import check_size
from .rows import row

# Conversions -----------------------------------------------------------------------------------------------------------


def convert_to_tensor(x: TensorLike, dtype: DTypeLike = None, sparse: bool | None = None, ragged: bool | None = None) -> Any:
    """The value as a Tensor of a dtype, cast to it if it has another one; a KerasTensor as a KerasTensor.

    Raises:
        ValueError: for sparse=True or ragged=True: tensors are dense here.

    >>> tf.keras.ops.convert_to_tensor([1, 2], "float32").dtype
    tf.float32
    """
    if sparse or ragged:
        raise ValueError("convert_to_tensor: tensors are dense here; leave out sparse= and ragged=.")
    if not isinstance(x, KerasTensor):
        x = to_tensor(x)
    return x if dtype is None or x.dtype == as_dtype(dtype) else cast(x, dtype)


def convert_to_numpy(x: TensorLike) -> np.ndarray:
    """The value as an array of NumPy.

    >>> tf.keras.ops.convert_to_numpy(tf.constant([1, 2]))
    array([1, 2], dtype=int32)
    """
    return np.asarray(to_tensor(x).numpy())


def shape(x: TensorLike) -> tuple[Any, ...]:
    """The sizes of the axes as a tuple; of a KerasTensor with scalar KerasTensors where any size fits, which equal None.

    >>> tf.keras.ops.shape(tf.zeros([2, 3])), tf.keras.ops.shape(tf.keras.Input((3,))) == (None, 3)
    ((2, 3), True)
    """
    if not isinstance(x, KerasTensor):
        return tuple(to_tensor(x).shape)
    measured = takes_symbols(creation.shape)(x) if None in x.shape else ()
    return tuple([measured[axis] if size is None else size for axis, size in enumerate(x.shape)])


# Parts -----------------------------------------------------------------------------------------------------------------


@operation(cost=lambda shapes, given: (_math.prod(given[-1]["shape"]), 0), same=indexing.scatter_nd)
def scatter(indices: TensorLike, values: TensorLike, shape: ShapeLike) -> Tensor:
    """A tensor of a shape that is 0 but for values at some places; values at one place add up.

    Args:
        indices: integers (..., k), the first k coordinates of each place.
        values: (..., *shape[k:]).
        shape: of the result.

    >>> print(tf.keras.ops.scatter([[0], [2]], [1.0, 2.0], [3]).numpy())
    [1. 0. 2.]
    """
    return indexing.scatter_nd(indices, to_tensor(values), shape)


_SCATTERED = {
    None: indexing.tensor_scatter_nd_update,
    "add": indexing.tensor_scatter_nd_add,
    "max": indexing.tensor_scatter_nd_max,
    "min": indexing.tensor_scatter_nd_min,
}


@operation
def scatter_update(inputs: TensorLike, indices: TensorLike, updates: TensorLike, reduction: str | None = None) -> Tensor:
    """A tensor with other values at some places.

    Args:
        inputs: tensor of any shape.
        indices: integers (n, k), the first k coordinates of each place.
        updates: (n, *shape[k:]).
        reduction: how values meet those that were there: 'add', 'max', 'min' or 'mul'; None replaces them.

    >>> print(tf.keras.ops.scatter_update([1.0, 1.0, 1.0], [[0], [2]], [5.0, 6.0]).numpy())
    [5. 1. 6.]
    """
    x = to_tensor(inputs)
    values = tf.cast(to_tensor(updates), x.dtype)
    if reduction == "mul":
        where = to_tensor(indices)
        depth = where.shape[-1]
        strides = np.cumprod((1, *x.shape[1:depth][::-1]))[::-1].tolist()
        flat = sum(where[..., axis] * stride for axis, stride in enumerate(strides))
        factors = indexing.unsorted_segment_prod(values, flat, _math.prod(x.shape[:depth]))
        return x * shaping.reshape(factors, x.shape)
    if reduction not in _SCATTERED:
        raise ValueError(f"scatter_update: reduction must be None, 'add', 'max', 'min' or 'mul', found {reduction!r}.")
    return _SCATTERED[reduction](x, indices, values)


def _starts(x: Tensor, start_indices: TensorLike, shape: Sequence[int]) -> list[Tensor]:
    """The start of a block of a shape along each axis, moved so that the block lies within x."""
    starts = tf.cast(to_tensor(start_indices), "int32")
    if len(shape) != x.ndim or tuple(starts.shape) != (x.ndim,) or any(k > n for k, n in zip(shape, x.shape, strict=False)):
        raise ShapeError(
            f"slice: needs one start and one size that fits for each axis of {x.shape}, found sizes {list(shape)}."
        )
    return [tf.clip_by_value(starts[i], 0, n - k) for i, (n, k) in enumerate(zip(x.shape, shape, strict=True))]


def _block(x: Tensor, starts: list[Tensor], shape: Sequence[int]) -> Tensor:
    """The flat numbers of the elements of a block."""
    flat, rank = to_tensor(0), len(shape)
    for axis, (start, size) in enumerate(zip(starts, shape, strict=True)):
        flat = flat * x.shape[axis] + shaping.reshape(start + numbers(int(size)), (size, *[1] * (rank - axis - 1)))
    return flat


@operation
def slice(inputs: TensorLike, start_indices: TensorLike, shape: ShapeLike) -> Tensor:
    """The block of a shape from some place on; the place is moved so that the block lies within the tensor.

    Args:
        inputs: tensor of any shape.
        start_indices: where the block begins, one integer for each axis.
        shape: sizes of the block; -1 for all that is left of an axis, with starts that are known.

    >>> print(tf.keras.ops.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [2, 2]).numpy().tolist())
    [[2, 3], [5, 6]]
    """
    x = to_tensor(inputs)
    if -1 in shape:
        known = np.asarray(to_tensor(start_indices).numpy()).tolist()
        shape = [n - start if k == -1 else k for n, k, start in zip(x.shape, shape, known, strict=True)]
    starts = _starts(x, start_indices, shape)
    return indexing.gather(shaping.reshape(x, (-1,)), _block(x, starts, shape))


@operation
def slice_update(inputs: TensorLike, start_indices: TensorLike, updates: TensorLike) -> Tensor:
    """A tensor in which a block from some place on is replaced. Arguments as in `slice`.

    >>> print(tf.keras.ops.slice_update([1, 2, 3, 4], [2], [7, 8]).numpy())
    [1 2 7 8]
    """
    x = to_tensor(inputs)
    values = tf.cast(to_tensor(updates), x.dtype)
    flat = shaping.reshape(_block(x, _starts(x, start_indices, values.shape), values.shape), (-1, 1))
    result = indexing.tensor_scatter_nd_update(shaping.reshape(x, (-1,)), flat, shaping.reshape(values, (-1,)))
    return shaping.reshape(result, x.shape)


@operation(same=shaping.unstack)
def unstack(x: TensorLike, num: int | None = None, axis: int = 0) -> list[Tensor]:
    """The slices along an axis, as a list.

    Args:
        num: how many there are; as many as the axis has if None.

    >>> [part.numpy().tolist() for part in tf.keras.ops.unstack([[1, 2], [3, 4]], axis=1)]
    [[1, 3], [2, 4]]
    """
    x = to_tensor(x)
    check_size(1000 * sum(x.shape[axis:][:1]), "slices")
    return shaping.unstack(x, num, axis)


# Loops and branches ----------------------------------------------------------------------------------------------------


@operation(given="true_fn false_fn")
def cond(pred: TensorLike, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """Result of one of two functions, by a bool.

    Raises:
        ValueError: if the bool is a KerasTensor and the functions give other structures, shapes or dtypes.

    >>> tf.keras.ops.cond(True, lambda: 1, lambda: 2)
    1
    """
    if only_shapes() and not isinstance(pred, (bool, int)):
        chosen, other = true_fn(), false_fn()
        kind = lambda x: x if x is None else f"{dtype(x)}{list(to_tensor(x).shape)}"
        first, second = (nest.map_structure(kind, one) for one in (chosen, other))
        if first != second:
            raise ValueError(
                f"cond: true_fn and false_fn should give the same structure, shapes and dtypes, found {first} and {second}."
            )
        return chosen
    return control_flow.cond(pred, true_fn, false_fn)


@operation(given="branches")
def switch(index: TensorLike, branches: Sequence[Callable[..., Any]], *operands: TensorLike) -> Any:
    """Result of the function of a number for the operands; the number is moved into the range of those that exist.

    >>> print(tf.keras.ops.switch(1, [lambda x: x, lambda x: -x], 3.0).numpy())
    -3.0
    """
    number = tf.clip_by_value(to_tensor(index), 0, len(branches) - 1)
    values = [to_tensor(one) for one in operands]
    return control_flow.switch_case(number, [lambda branch=branch: branch(*values) for branch in branches])


@operation
def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: TensorLike, maximum_iterations: int | None = None
) -> Any:
    """Apply `body` to the loop variables as long as `cond` of them holds.

    Args:
        loop_vars: a list or tuple of tensors, or one tensor.
        maximum_iterations: an upper bound on the number of steps.

    >>> print(tf.keras.ops.while_loop(lambda x: x < 5, lambda x: x + 2, tf.constant(0)).numpy())
    6
    """
    several = isinstance(loop_vars, (list, tuple))
    start = nest.map_structure(to_tensor, tuple(loop_vars) if several else (loop_vars,))
    found = control_flow.while_loop(cond, body, start, maximum_iterations=maximum_iterations)
    return found if several else found[0]


@operation
def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: TensorLike) -> Any:
    """`body_fun(i, value)` applied for each i from `lower` to `upper`, without that one; within a `tf.function` one operation.

    >>> print(tf.keras.ops.fori_loop(0, 4, lambda i, total: total + i, tf.constant(0)).numpy())
    6
    """
    value = nest.map_structure(to_tensor, init_val)
    start, stop = int(lower), int(upper)

    def turn(leaves: list[Any]) -> tuple[list[Any], Any]:
        i, *rest = leaves
        return [i + 1, *nest.flatten(body_fun(i, nest.pack(value, rest)))], i < stop

    found = counted_loop(turn, [start, *nest.flatten(value)]) if start < stop else None
    if found is not None:
        return nest.pack(value, found[1:])
    for i in builtins.range(start, stop):
        value = body_fun(i, value)
    return value


@operation(given="f")
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: TensorLike,
    xs: TensorLike | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: Any = 1,
) -> tuple[Any, Any]:
    """A loop that carries a value: `carry, y = f(carry, x)` for each slice x; the last carry, and all y stacked.

    Args:
        f: of the carry and a slice of `xs`, or None.
        init: the first carry, a tensor or a nest.
        xs: tensor or nest with one size of the first axis.
        length: number of steps where there is no `xs`.
        reverse: begin with the last slice; what it gives stands last.
        unroll: accepted for compatibility, ignored.

    Raises:
        ValueError: without `xs` and `length`, or if they are of different lengths.

    >>> total, sums = tf.keras.ops.scan(lambda s, x: (s + x, s + x), tf.constant(0.0), tf.constant([1.0, 2.0, 3.0]))
    >>> print(total.numpy(), sums.numpy())
    6.0 [1. 3. 6.]
    """
    leaves = [to_tensor(leaf) for leaf in nest.flatten(xs)] if xs is not None else []
    lengths = {leaf.shape[0] for leaf in leaves} | {int(one) for one in (length,) if one is not None}
    if len(lengths) != 1:
        raise ValueError(f"scan: needs xs or length=, and one length of both; found {sorted(lengths) or 'neither'}.")
    count = lengths.pop()
    carry = nest.map_structure(to_tensor, init)
    structure: list[Any] = []

    def step(carried: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
        found, y = f(nest.pack(carry, carried), None if xs is None else nest.pack(xs, slices))
        structure[:] = [y]
        return nest.flatten(found), [] if y is None else nest.flatten(y)

    if not count:
        return carry, None
    last, rows = repeated(step, nest.flatten(carry), leaves, count, reverse)
    return nest.pack(carry, last), nest.pack(structure[0], rows) if rows else None


@operation(given="f")
def associative_scan(f: Callable[[Any, Any], Any], elems: TensorLike, reverse: bool = False, axis: int = 0) -> Any:
    """All running results x_0, f(x_0, x_1), f(f(x_0, x_1), x_2) and so on of an associative function along an axis.

    Args:
        f: of two tensors (or nests) with many elements along the axis, for each pair of them.
        elems: tensor or nest of tensors.
        reverse: run from the last element to the first.

    Source: Hillis and Steele (1986), Data Parallel Algorithms: as many calls of `f` as the length has binary digits.

    >>> print(tf.keras.ops.associative_scan(lambda a, b: a + b, tf.constant([1.0, 2.0, 3.0])).numpy())
    [1. 3. 6.]
    """

    def part(x: TensorLike, start: int, stop: int | None) -> Any:
        return nest.map_structure(
            lambda one: one[(*[builtins.slice(None)] * (axis % one.ndim), builtins.slice(start, stop))], x
        )

    def turned(x: TensorLike) -> Any:
        return nest.map_structure(lambda one: shaping.reverse(one, [axis % one.ndim]) if reverse else one, x)

    x = turned(nest.map_structure(to_tensor, elems))
    count, step = nest.flatten(x)[0].shape[axis], 1
    while step < count:
        later = f(part(x, 0, count - step), part(x, step, None))
        pairs = nest.pair(part(x, 0, step), later)
        x = nest.pack(later, [shaping.concat([first, rest], axis) for first, rest in pairs])
        step *= 2
    return turned(x)


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a gradient of its own: `f` returns its result and a function of the gradient from above.

    >>> @tf.keras.ops.custom_gradient
    ... def clipped(x):
    ...     return x, lambda upstream: tf.keras.ops.clip(upstream, -1.0, 1.0)
    >>> print(clipped(tf.constant(3.0)).numpy())
    3.0
    """
    return _custom_gradient(f)


# fmt: off
cast = row("cast", lambda x, dtype: tf.cast(to_tensor(x), dtype),
    "The elements as another dtype. Derivative: 1 between floats.",
    'tf.keras.ops.cast([1, 0], "bool").numpy() -> array([ True, False])', same=tf.cast)
saturate_cast = row("saturate_cast", lambda x, dtype: tf.saturate_cast(to_tensor(x), dtype or config.floatx()),
    "The elements as another dtype, moved into its range first.",
    'print(tf.keras.ops.saturate_cast([300, -5], "uint8").numpy()) -> [255   0]', same=tf.saturate_cast)
stop_gradient = row("stop_gradient", lambda variable: tf.stop_gradient(to_tensor(variable)),
    "The same values, through which no gradient flows.", "tf.keras.ops.stop_gradient(2.0).numpy() -> np.float32(2.0)",
    same=tf.stop_gradient)
map = row("map", lambda f, xs: control_flow.map_fn(f, nest.map_structure(to_tensor, xs)),
    "`f` of each slice along the first axis, stacked.",
    "print(tf.keras.ops.map(lambda x: x * x, tf.constant([1.0, 2.0])).numpy()) -> [1. 4.]",
    returns="Any", types={"f": "Callable[[Any], Any]", "xs": "TensorLike"}, given="f")
vectorized_map = row("vectorized_map", lambda function, elements: control_flow.vectorized_map(function, elements),
    "`function` of each slice along the first axis, stacked, computed for all slices at once.",
    "print(tf.keras.ops.vectorized_map(lambda x: x * x, tf.constant([1.0, 2.0])).numpy()) -> [1. 4.]",
    returns="Any", types={"function": "Callable[[Any], Any]"})
is_tensor = plain_row("is_tensor", lambda x: shaping.is_tensor(x), "True for a Tensor or a Variable.",
    "tf.keras.ops.is_tensor(tf.constant(1.0)), tf.keras.ops.is_tensor([1.0]) -> (True, False)",
    returns="bool", types={"x": "object"})
dtype = plain_row("dtype", lambda x: (x if isinstance(x, KerasTensor) else to_tensor(x)).dtype.name, "The name of the dtype.",
    "tf.keras.ops.dtype([1.0]) -> 'float32'", returns="str")
# fmt: on
