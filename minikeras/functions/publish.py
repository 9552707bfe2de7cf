"""From a primitive to a public function: arguments converted, dtypes checked, documentation from one row of facts."""

from __future__ import annotations

import functools
import inspect
import operator
import sys
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ..core import Primitive, Tensor, bind, convert_to_tensor
from ..core.arrays import namespace, to_device
from ..core.convert import holds_tensor, read
from ..core.precision import is_short
from ..core.registry import hook, operations
from ..core.stack import perform
from ..errors import DTypeError, ShapeError
from ..types import Axis, DTypeLike, ShapeLike, TensorLike, TensorShape, as_dtype
from .symbols import SymbolicOperand

F = TypeVar("F", bound=Callable[..., Any])

_DOCUMENTATION = """{summary}

    {formula}

Args:
    {arguments}

Returns:
    A Tensor of the {shape} and {result}. Derivative: {derivative}.

Raises:
    DTypeError: {refusal}.

>>> {example}
{expected}
"""
_INEXACT = "fc"
_WANTED = {
    "fc": "a float or complex tensor",
    "f": "a float tensor",
    "if": "a tensor of signed real numbers",
    "iuf": "a tensor of real numbers",
}
"""Names, for messages, of the kinds of dtypes that a function takes."""
_REFUSALS = {
    "fc": "for integers and bools; cast them first",
    "f": "for all but floats; cast integers first",
    "iuf": "for complex numbers and bools",
}


class OfOne(Protocol):
    """A function of one tensor."""

    def __call__(self, x: TensorLike, name: str | None = None) -> Tensor: ...


class OfTwo(Protocol):
    """A function of two tensors."""

    def __call__(self, x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor: ...


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
    array = to_device(other._array, namespace(x._array))
    return other if array is other._array else Tensor(array)


def inexact(name: str, x: Tensor, kinds: str = _INEXACT) -> Tensor:
    """`x`, refused if its dtype is not of these kinds: floats and complex numbers by default."""
    if x.dtype.kind not in kinds:
        way = "Take tf.abs(x), tf.math.real(x) or tf.math.imag(x)" if x.dtype.is_complex else "Use tf.cast(x, 'float32')"
        raise DTypeError(f"{name}: needs {_WANTED[kinds]}, found {x.dtype.name}{list(x.shape)}. {way}.")
    return x


def unary(
    primitive: Primitive, name: str, formula: str, derivative: str, example: str, kinds: str = _INEXACT, **params: Any
) -> OfOne:
    """The public function of one tensor over a primitive.

    Args:
        primitive: what it calls.
        name: the public name.
        formula: 'y = ...' in words of mathematics.
        derivative: dy/dx, or 'none'.
        example: an expression and its printed value, separated by ' -> '.
        kinds: dtype kinds that are accepted.
        params: options of the primitive.
    """
    refuse = kinds in _WANTED

    def function(x: TensorLike, name: str | None = None) -> Tensor:
        try:
            x = x if type(x) is Tensor else convert_to_tensor(x)
        except SymbolicOperand:
            return hook("call_on_symbols")(function, (x,), {})
        if refuse and x._array.dtype.kind not in kinds:
            inexact(function.__name__, x, kinds)
        return perform(primitive, (x,), params)

    result = "bool" if "bool" in derivative else "dtype of `x`"
    _describe(function, name, formula, derivative.replace(" (bool)", ""), example, "x: tensor of any shape.", result, kinds)
    return function


def binary(primitive: Primitive, name: str, formula: str, derivative: str, example: str, kinds: str = "any") -> OfTwo:
    """The public function of two tensors, broadcast against one another, over a primitive. Arguments as in `unary`."""
    refuse = kinds in _WANTED

    def function(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
        try:
            if type(x) is not Tensor and type(y) is not Tensor:
                x, y = tensors(x, y)
            if refuse:
                inexact(function.__name__, tensor(y if type(y) is Tensor else x), kinds)
            return bind(primitive, (x, y), {})
        except SymbolicOperand:
            return hook("call_on_symbols")(function, (x, y), {})

    arguments = "x, y: tensors of one dtype whose shapes can be broadcast; numbers and arrays follow the tensor."
    result = "bool" if "bool" in derivative else "the common dtype"
    _describe(function, name, formula, derivative.replace(" (bool)", ""), example, arguments, result, kinds)
    return function


def named(function: F, name: str, summary: str, example: str) -> F:
    """The same function under another name; `example` is an expression and its printed value, separated by ' -> '."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        return function(*args, **options)

    name_like_definition(called, name, function.__module__)
    called.__doc__ = _in_one_line(summary, example)
    return called  # type: ignore[return-value]


_OPERANDS = """a alpha b beta chol delta depthwise_kernel elements fill_value filters image images indices input inputs kernel
    key lam logits matrix maxval mean minval pointwise_kernel q rhs stddev tensor updates value variable x x1 x2 y"""
_TYPES = (
    dict.fromkeys(_OPERANDS.split(), "TensorLike")
    | dict.fromkeys(["axis", "axes"], "Axis")
    | dict.fromkeys(["dtype", "output_type"], "DTypeLike")
    | dict.fromkeys(["shape", "newshape", "size", "repeats"], "ShapeLike")
    | {"xs": "Sequence[TensorLike]", "name": "str | None", "initial": "float | None", "num_samples": "int"}
    | dict.fromkeys(["lower", "upper", "max_delta"], "float")
)
"""The types of parameters by their names, which are the same in all rows."""


def row(name: str, function: Callable[..., Any], summary: str, example: str, returns: str = "Tensor") -> Callable[..., Any]:
    """A public function from one row.

    Args:
        name: the public name.
        function: a lambda with the public signature; the types of its parameters follow from their names and defaults.
        summary: its documentation but for the example.
        example: an expression and its printed value, separated by ' -> '.
        returns: type of the result.
    """
    inner = inspect.unwrap(function)
    types = {key: _TYPES.get(key) or _type_of(one.default) for key, one in inspect.signature(inner).parameters.items()}
    for each in (inner, function):
        name_like_definition(each, name, inner.__module__)
        each.__annotations__ = types | {"return": returns}
        each.__doc__ = _in_one_line(summary, example)
    return function


def _type_of(default: Any) -> str:
    return type(default).__name__ if type(default) in (bool, int, float, str) else "Any"


def _in_one_line(summary: str, example: str) -> str:
    expression, _, expected = example.partition(" -> ")
    return f"{summary}\n\n>>> {expression}\n{expected}\n"


def name_like_definition(function: Any, name: str, module: str) -> None:
    """Let a function that another one has made be found by its name in a module, as pickle needs it."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = module


def _describe(
    function: Any, name: str, formula: str, derivative: str, example: str, arguments: str, result: str, kinds: str
) -> None:
    expression, _, expected = example.partition(" -> ")
    name_like_definition(function, name, sys._getframe(2).f_globals["__name__"])
    function.takes_symbols = True
    summary, _, equation = formula.partition(": ")
    function.__doc__ = _DOCUMENTATION.format(
        summary=summary + ".",
        formula=equation,
        arguments=arguments,
        shape="shape of `x`" if arguments.startswith("x:") else "broadcast shape",
        result=result,
        derivative=derivative,
        refusal=_REFUSALS.get(kinds, "if two tensors differ in dtype"),
        example=expression,
        expected=expected,
    )


def rounded_once(function: F) -> F:
    """The same function of tensors; of 16-bit floats it is computed in float32 as a whole, and the results are rounded once."""

    @functools.wraps(function)
    def accurate(*args: Any, **options: Any) -> Any:
        tensors = [x for x in _leaves((*args, *options.values())) if hasattr(x, "_array")]
        short = next((x.dtype for x in tensors if is_short(x._array.dtype)), None)
        if short is None:
            return function(*args, **options)
        return _each(function(*_each(args, short, "float32"), **_each(options, short, "float32")), "float32", short)

    return accurate  # type: ignore[return-value]


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
    found = hasattr(values, "_array") and values.dtype == source
    return operations.cast(values, dtype=as_dtype(target).name) if found else values


# Axes and shapes -------------------------------------------------------------------------------------------------------


def integer(value: Any) -> int:
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
