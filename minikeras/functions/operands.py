"""Operands of functions, checked and converted: tensors on one device, axes, shapes, 16-bit floats."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ..core import Operand, Tensor, convert_to_tensor, holds_tensor, is_short, namespace, operations, read, to_device
from ..errors import DTypeError, ShapeError
from ..types import Axis, DTypeLike, ShapeLike, TensorLike, TensorShape, as_dtype

F = TypeVar("F", bound=Callable[..., Any])

WANTED = {
    "fc": "a float or complex tensor",
    "f": "a float tensor",
    "if": "a tensor of signed real numbers",
    "iuf": "a tensor of real numbers",
}
"""Names, for messages, of the kinds of dtypes that a function takes."""


class SymbolicOperand(TypeError, ValueError):
    """A function needs the values of a symbolic tensor, which has none."""


def tensor(value: TensorLike) -> Tensor:
    """The value as a Tensor, quickly if it is one."""
    return value if type(value) is Tensor else convert_to_tensor(value)


def tensors(*values: TensorLike) -> list[Any]:
    """The values as Tensors of one dtype and on one device: the first Tensor's, else the first value's."""
    given = [read(value) for value in values]
    anchor = next((value for value in given if isinstance(value, Tensor)), None)
    if anchor is None:
        anchor = given[0] = convert_to_tensor(given[0])
    return [value if isinstance(value, Tensor) else beside(anchor, value, anchor.dtype) for value in given]


def beside(x: Tensor, value: TensorLike, dtype: DTypeLike = None) -> Tensor:
    """The value as a Tensor; if it is none yet, on the device of `x`, whatever the current device is."""
    if holds_tensor(value):
        return convert_to_tensor(value, dtype)
    other = convert_to_tensor(value, dtype)
    array = to_device(other.array, namespace(x.array))
    return other if array is other.array else Tensor(array)


def inexact(name: str, x: Tensor, kinds: str = "fc") -> Tensor:
    """`x`, refused if its dtype is not of these kinds: floats and complex numbers by default."""
    if x.dtype.kind not in kinds:
        way = "Take tf.abs(x), tf.math.real(x) or tf.math.imag(x)" if x.dtype.is_complex else "Use tf.cast(x, 'float32')"
        raise DTypeError(f"{name}: needs {WANTED[kinds]}, found {x.dtype.name}{list(x.shape)}. {way}.")
    return x


def rounded_once(function: F) -> F:
    """The same function of tensors; of 16-bit floats it is computed in float32 as a whole, and the results are rounded once."""

    @functools.wraps(function)
    def accurate(*args: Any, **options: Any) -> Any:
        tensors = [x for x in _leaves((*args, *options.values())) if isinstance(x, Operand)]
        short = next((x.dtype for x in tensors if is_short(x.array.dtype)), None)
        if short is None:
            return function(*args, **options)
        return _each(function(*_each(args, short, "float32"), **_each(options, short, "float32")), "float32", short)

    return cast(F, accurate)


def _leaves(values: Any) -> Any:
    for value in values:
        yield from value if isinstance(value, (list, tuple)) else (value,)


def _each(values: Any, source: Any, target: Any) -> Any:
    """The tensors of one dtype among the values in another one."""
    if isinstance(values, dict):
        return {name: _each(value, source, target) for name, value in values.items()}
    if isinstance(values, (list, tuple)):
        each = [_each(value, source, target) for value in values]
        return type(values)(*each) if hasattr(values, "_fields") else type(values)(each)
    found = isinstance(values, Operand) and values.dtype == source
    return operations.cast(values, dtype=as_dtype(target).name) if found else values


# Axes and shapes -------------------------------------------------------------------------------------------------------


def integer(value: TensorLike) -> int:
    """An axis, size or count as an int.

    Raises:
        DTypeError: for a float, which int() would cut off, and for anything else that is no single integer.
    """
    try:
        return operator.index(value)
    except SymbolicOperand:
        raise
    except TypeError:
        raise DTypeError(
            f"an axis, a size or a count must be one integer, found {value!r:.60}. Write n // 2 for n / 2, or int(n)."
        ) from None


def negative_axis(axis: Axis, rank: int, name: str) -> int:
    """One axis counted from the last, checked.

    Raises:
        DTypeError: if it is not one integer.
        ShapeError: if the tensor has no such axis.
    """
    position = integer(axis)
    if not -rank <= position < rank:
        raise ShapeError(f"{name}: axis {position} is out of range for a tensor with {rank} axes ([{-rank}, {rank - 1}]).")
    return position if position < 0 else position - rank


def negative_axes(axis: Any, rank: int, name: str) -> tuple[int, ...]:
    """Axes counted from the last, sorted; None stands for all."""
    if axis is None:
        return tuple(range(-rank, 0))
    if hasattr(axis, "numpy"):
        axis = axis.numpy().tolist()
    listed = list(axis) if isinstance(axis, (list, tuple, range)) or getattr(axis, "ndim", None) else [axis]
    axes = sorted(negative_axis(one, rank, name) for one in listed)
    if len(set(axes)) < len(axes):
        raise ShapeError(f"{name}: axis {axis} names one axis twice.")
    return tuple(axes)


def static_shape(shape: ShapeLike) -> tuple[int, ...]:
    """A shape given as int, list, TensorShape, or integer tensor, as a tuple of ints."""
    if isinstance(shape, TensorShape):
        return tuple(shape)
    if hasattr(shape, "numpy") and not isinstance(shape, (list, tuple)):
        shape = shape.numpy()
    if hasattr(shape, "tolist"):
        shape = shape.tolist()
    if isinstance(shape, (list, tuple, range)):
        return tuple(integer(size) for size in shape)
    return (integer(shape),)
