"""Functions that move elements: reshape, transpose, concatenate, pad, tile. Shapes and axes are checked here."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import BatchedTensor, Tensor, Variable, convert_to_tensor, holds_tensor, read
from ..core.ops import arithmetic, indexing, shaping
from ..errors import DTypeError, ShapeError
from ..types import Axis, ShapeLike, TensorLike, TensorShape
from .catalogue import row
from .operands import beside, integer, negative_axes, negative_axis, static_shape, tensor, tensors

# Moving ----------------------------------------------------------------------------------------------------------------


def reshape(tensor: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """The same elements in row-major order with another shape; one size may be -1, which stands for what is left.

    Where nothing is left to count, because another size is 0, sizes that are not 0 decide: (0, 6) as [0, -1, 3] is (0, 2, 3).

    >>> tf.reshape([1, 2, 3, 4], [2, -1]).shape
    TensorShape([2, 2])
    """
    x, wanted = convert_to_tensor(tensor), static_shape(shape)
    count, known = x.shape.num_elements(), math.prod(length for length in wanted if length != -1)
    if -1 in wanted and known == count == 0:
        count, known = (math.prod(length for length in sizes if length > 0) for sizes in (x.shape, wanted))
    if wanted.count(-1) > 1 or (known != count if -1 not in wanted else known == 0 or count % known):
        raise ShapeError(
            f"reshape: Input to reshape is a tensor with {count} values (shape {x.shape}), but the requested "
            f"shape is {list(wanted)}."
        )
    if -1 in wanted:
        wanted = tuple(count // known if length == -1 else length for length in wanted)
    return shaping.reshape(x, shape=wanted, rank=x.ndim)


def transpose(a: TensorLike, perm: Any = None, conjugate: bool = False, name: str = "transpose") -> Tensor:
    """The axes in another order; reversed by default.

    >>> tf.transpose([[1, 2, 3]]).shape
    TensorShape([3, 1])
    """
    x = tensor(a)
    order = tuple(builtins.range(x.ndim))[::-1] if perm is None else static_shape(perm)
    axes = tuple(negative_axis(axis, x.ndim, "transpose") for axis in order)
    if sorted(axes) != list(builtins.range(-x.ndim, 0)):
        raise ShapeError(
            f"transpose: perm {list(order)} is no permutation of the {x.ndim} axes of a tensor of shape {x.shape}."
        )
    turned = shaping.transpose(x, perm=axes)
    return arithmetic.conj(turned) if conjugate and x.dtype.is_complex else turned


def turned_by_quarters(x: Tensor, quarters: int, axes: Sequence[int]) -> Tensor:
    """The elements turned by quarters from the first of two axes towards the second."""
    first, second = (negative_axis(one, x.ndim, "rot90") + x.ndim for one in axes)
    if first == second:
        raise ShapeError(f"rot90: axes must be two different ones, found {axes}.")
    turns, order = integer(quarters) % 4, list(builtins.range(x.ndim))
    if turns == 2:
        return reverse(x, [first, second])
    order[first], order[second] = second, first
    return x if not turns else reverse(transpose(x, order), [first if turns == 1 else second])


def expand_dims(input: TensorLike, axis: int, name: str | None = None) -> Tensor:
    """A new axis of size 1 at position `axis`.

    >>> tf.expand_dims([1, 2], 0).shape
    TensorShape([1, 2])
    """
    x, places = tensor(input), static_shape(axis)
    if len(places) != 1:
        raise DTypeError(f"expand_dims: axis must be one integer, found {list(places)}; each call adds one axis.")
    place = negative_axis(places[0], x.ndim + 1, "expand_dims") + x.ndim + 1
    return reshape(x, (*x.shape[:place], 1, *x.shape[place:]))


def squeeze(input: TensorLike, axis: Axis = None, name: str | None = None) -> Tensor:
    """The tensor without axes of size 1: all of them, or those named.

    >>> tf.squeeze([[[1], [2]]]).shape
    TensorShape([2])
    """
    x = tensor(input)
    axes = negative_axes(axis, x.ndim, "squeeze")
    if axis is None or axis == []:
        axes = tuple(one for one in builtins.range(-x.ndim, 0) if x.shape[one] == 1)
    for one in axes:
        if x.shape[one] != 1:
            raise ShapeError(f"squeeze: axis {one} of shape {x.shape} has size {x.shape[one]}, only size 1 can go.")
    return reshape(x, [length for i, length in enumerate(x.shape, -x.ndim) if i not in axes])


def _several(name: str, values: TensorLike) -> list[Any]:
    """A list of values as Tensors of one dtype."""
    if not len(values):
        raise ValueError(f"{name}: at least one tensor is needed, found an empty list.")
    return tensors(*values)


def concat(values: TensorLike, axis: int, name: str = "concat") -> Tensor:
    """Tensors joined along an axis that they have.

    >>> print(tf.concat([[1, 2], [3]], axis=0).numpy())
    [1 2 3]
    """
    parts = _several("concat", values) if isinstance(values, (list, tuple)) else [tensor(values)]
    return shaping.concat(*parts, axis=negative_axis(axis, parts[0].ndim, "concat"))


def _of_one_kind(values: list[Any]) -> list[Any]:
    """Python numbers and lists as they would be in one list, where a float makes the others floats; anything else as it is."""
    if holds_tensor(values) or not all(isinstance(value, (int, float, complex, list, tuple)) for value in values):
        return values
    arrays = [np.array(value) for value in values]
    if len({array.dtype for array in arrays}) < 2:
        return values
    return [array.astype(np.result_type(*arrays)).tolist() for array in arrays]


def unstack(value: TensorLike, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """The slices along an axis, without that axis.

    >>> [int(part) for part in tf.unstack([1, 2, 3])]
    [1, 2, 3]
    """
    x = tensor(value)
    place = negative_axis(axis, x.ndim, "unstack")
    if num is not None and num != x.shape[place]:
        raise ShapeError(f"unstack: num={num}, but axis {axis} of {x.shape} has {x.shape[place]} slices.")
    behind = (slice(None),) * (-1 - place)
    return [indexing.strided_slice(x, key=(Ellipsis, i, *behind), shape=tuple(x.shape)) for i in builtins.range(x.shape[place])]


def split(
    value: TensorLike, num_or_size_splits: Any, axis: int = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Pieces along an axis: a number of equal ones, or ones of the given sizes (one may be -1).

    >>> [part.numpy().tolist() for part in tf.split([1, 2, 3, 4], [1, 3])]
    [[1], [2, 3, 4]]
    """
    x = tensor(value)
    place = negative_axis(axis, x.ndim, "split")
    whole = x.shape[place]
    sizes = static_shape(num_or_size_splits)
    if not np.ndim(num_or_size_splits):
        (count,) = sizes
        if count < 1 or whole % count:
            raise ShapeError(f"split: axis {axis} has size {whole}, which {count} does not divide evenly.")
        sizes = (whole // count,) * count
    elif num not in (None, len(sizes)):
        raise ShapeError(f"split: num={num}, but {len(sizes)} sizes are given: {list(sizes)}.")
    if sizes.count(-1) == 1:
        rest = whole - sum(length for length in sizes if length != -1)
        sizes = tuple(rest if length == -1 else length for length in sizes)
    if sum(sizes) != whole or min(sizes, default=0) < 0:
        raise ShapeError(f"split: sizes {list(sizes)} do not add up to the {whole} elements of axis {axis}.")
    stops = np.cumsum(sizes).tolist()
    return [shaping.cut(x, place, stop - length, stop) for length, stop in zip(sizes, stops, strict=True)]


def pad(tensor: TensorLike, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None) -> Tensor:
    """Elements added before and behind along each axis.

    Args:
        tensor: what to pad.
        paddings: for each axis the pair (before, behind).
        mode: 'CONSTANT', 'REFLECT' (mirrored without the edge) or 'SYMMETRIC' (mirrored with it).
        constant_values: the number to pad with.

    >>> print(tf.pad([1, 2], [[1, 0]]).numpy())
    [0 1 2]
    """
    x = convert_to_tensor(tensor)
    listed = np.asarray(paddings)
    pairs = np.asarray([integer(width) for width in listed.ravel()], dtype=int)
    if (listed.shape != (x.ndim, 2) and not listed.size == x.ndim == 0) or (pairs < 0).any():
        raise ShapeError(
            f"pad: paddings {listed.tolist()} for a tensor of shape {x.shape}: one pair of sizes >= 0 for each axis."
        )
    widths = tuple((int(before), int(behind)) for before, behind in pairs.reshape(-1, 2))
    if not widths:
        return x
    if mode.upper() == "CONSTANT":
        if x.dtype.kind == "b" and type(constant_values) is int:
            constant_values = bool(constant_values)  # the default is 0
        return shaping.pad(x, paddings=widths, value=convert_to_tensor(constant_values, x.dtype).numpy().item())
    if mode.upper() not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(f"pad: mode must be CONSTANT, REFLECT or SYMMETRIC, found {mode!r}.")
    for axis, width in enumerate(widths):
        if any(width) and max(width) > (most := x.shape[axis] - (mode.upper() == "REFLECT")):
            raise ShapeError(f"pad: {mode} has {most} elements to mirror along axis {axis} of {x.shape}, asked for {width}.")
        if any(width):
            rows = np.pad(np.arange(x.shape[axis]), width, mode="reflect" if mode.upper() == "REFLECT" else "symmetric")
            x = indexing.gather_rows(x, beside(x, rows.astype("int64")), axis=axis - x.ndim)
    return x


def tile(input: TensorLike, multiples: ShapeLike, name: str | None = None) -> Tensor:
    """The tensor repeated along each axis.

    >>> print(tf.tile([1, 2], [2]).numpy())
    [1 2 1 2]
    """
    x, repeats = tensor(input), static_shape(multiples)
    if len(repeats) != x.ndim:
        raise ShapeError(
            f"tile: {len(repeats)} multiples for a tensor with {x.ndim} axes (shape {x.shape}); give one for each."
        )
    return shaping.tile(x, multiples=repeats)


def repeat(input: TensorLike, repeats: ShapeLike, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each element repeated, along an axis or of the flattened tensor.

    >>> print(tf.repeat([1, 2], 2).numpy())
    [1 1 2 2]
    """
    x = tensor(input)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    place = negative_axis(axis, x.ndim, "repeat")
    counts = [integer(count) for count in np.ravel(repeats)]
    if len(counts) not in (1, x.shape[place]) or min(counts) < 0:
        raise ShapeError(f"repeat: {counts} repeats for {x.shape[place]} elements; give one for all or one for each, >= 0.")
    rows = np.repeat(np.arange(x.shape[place]), counts)
    return indexing.gather_rows(x, beside(x, rows), axis=place)


def depth_to_space(input: TensorLike, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """Channels laid out as blocks of pixels: (batch, h, w, b b c) becomes (batch, h b, w b, c).

    >>> tf.nn.depth_to_space(tf.ones([1, 2, 3, 8]), 2).shape
    TensorShape([1, 4, 6, 2])
    """
    x, b = tensor(input), integer(block_size)
    if data_format == "NCHW":
        return transpose(depth_to_space(transpose(x, [0, 2, 3, 1]), b), [0, 3, 1, 2])
    if data_format != "NHWC" or x.ndim != 4 or b < 2 or x.shape[-1] % (b * b):
        raise ShapeError(
            f"depth_to_space: block_size {b}, data_format {data_format!r} and shape {x.shape}: needs (batch, height, width, "
            "channels) with channels divisible by block_size**2, a block_size of at least 2, and NHWC or NCHW."
        )
    n, height, width, channels = x.shape
    blocks = transpose(reshape(x, (n, height, width, b, b, channels // (b * b))), [0, 1, 3, 2, 4, 5])
    return reshape(blocks, (n, height * b, width * b, channels // (b * b)))


def space_to_depth(input: TensorLike, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """Blocks of pixels laid out as channels, the inverse of `depth_to_space`.

    >>> tf.nn.space_to_depth(tf.ones([1, 4, 6, 2]), 2).shape
    TensorShape([1, 2, 3, 8])
    """
    x, b = tensor(input), integer(block_size)
    if data_format == "NCHW":
        return transpose(space_to_depth(transpose(x, [0, 2, 3, 1]), b), [0, 3, 1, 2])
    if data_format != "NHWC" or x.ndim != 4 or b < 2 or x.shape[1] % b or x.shape[2] % b:
        raise ShapeError(
            f"space_to_depth: block_size {b}, data_format {data_format!r} and shape {x.shape}: needs (batch, height, width, "
            "channels) with sides divisible by block_size, which is at least 2, and NHWC or NCHW."
        )
    n, height, width, channels = x.shape
    blocks = transpose(reshape(x, (n, height // b, b, width // b, b, channels)), [0, 1, 3, 2, 4, 5])
    return reshape(blocks, (n, height // b, width // b, b * b * channels))


def roll(input: TensorLike, shift: Any, axis: Axis, name: str | None = None) -> Tensor:
    """The elements moved along axes; those that leave at one end come in at the other.

    >>> print(tf.roll([1, 2, 3], 1, axis=0).numpy())
    [3 1 2]
    """
    x, shift = tensor(input), read(shift)
    axes = tuple(negative_axis(one, x.ndim, "roll") for one in static_shape(axis))
    if isinstance(shift, BatchedTensor):
        return _roll_of_each(x, reshape(shift, (-1,)), axes)
    steps = static_shape(shift)
    if len(steps) != len(axes):
        raise ShapeError(f"roll: shift and axis must have the same size, found {len(steps)} shifts for {len(axes)} axes.")
    return shaping.roll(x, shift=steps, axis=axes)


def _roll_of_each(x: Tensor, shifts: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Each of many slices, rolled by a distance of its own."""
    if shifts.shape != (len(axes),):
        raise ShapeError(f"roll: {shifts.shape.num_elements()} shifts for {len(axes)} axes; give one for each.")
    for i, axis in enumerate(axes):
        if size := x.shape[axis]:
            rows = (beside(x, np.arange(size), shifts.dtype) - shifts[i]) % size
            x = indexing.gather_rows(x, rows, axis=axis)
    return x


def reverse(tensor: TensorLike, axis: Axis, name: str | None = None) -> Tensor:
    """The order turned around along axes.

    >>> print(tf.reverse([1, 2, 3], [0]).numpy())
    [3 2 1]
    """
    x = convert_to_tensor(tensor)
    axes = negative_axes(axis, x.ndim, "reverse")
    key = tuple(slice(None, None, -1) if i in axes else slice(None) for i in builtins.range(-x.ndim, 0))
    return indexing.strided_slice(x, key=(Ellipsis, *key), shape=tuple(x.shape))


def ensure_shape(x: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """`x` itself, refused if its shape differs; None fits any size, and in place of a shape any shape.

    >>> tf.ensure_shape([1, 2], [None]).shape
    TensorShape([2])
    """
    value = tensor(x)
    if not TensorShape(shape).is_compatible_with(value.shape):
        raise ShapeError(f"ensure_shape: expected {list(shape)}, found {list(value.shape)}.")
    return value


def is_tensor(x: object) -> bool:
    """True for a Tensor or a Variable.

    >>> tf.is_tensor(tf.zeros([])), tf.is_tensor(0.0)
    (True, False)
    """
    return isinstance(x, (Tensor, Variable))


# fmt: off
broadcast_to = row("broadcast_to",
    lambda input, shape, name=None: shaping.broadcast_to(x := tensor(input), shape=static_shape(shape), rank=x.ndim),
    "The tensor repeated to a shape, by NumPy's rules.",
    "print(tf.broadcast_to([1, 2], [2, 2]).numpy().tolist()) -> [[1, 2], [1, 2]]")
stack = row("stack",
    lambda values, axis=0, name="stack":
        shaping.stack(parts := _several("stack", _of_one_kind(list(values))), negative_axis(axis, parts[0].ndim + 1, "stack")),
    "Tensors of one shape joined along a new axis.", "tf.stack([[1, 2], [3, 4], [5, 6]]).shape -> TensorShape([3, 2])",
    types={"axis": "int", "values": "TensorLike"})
# fmt: on
