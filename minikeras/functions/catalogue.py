"""The catalogue: how a definition becomes a public function, and a public name a row.

A function of one primitive is a row of `unary` or `binary`: primitive, name, formula, derivative and one worked value. Any
other one is written out or a row of `row`. `facades.py` makes modules of such definitions: TensorFlow's names by the file that
defines them. Rows of `keras.ops` are made by the same means, and are steps of functional models too.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, cast

from ..core import Primitive, Tensor, bind, convert_to_tensor, hook, perform
from ..types import TensorLike
from .operands import WANTED, SymbolicOperand, inexact, tensor, tensors

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


@functools.cache
def takes_symbols(function: F, step: Callable[..., Any] | None = None) -> F:
    """The function, made to take symbolic tensors too.

    Where it is given tensors, nothing is looked at: 0.1 us.

    Args:
        step: called instead, with the same arguments, if one is symbolic; None for a step that calls the function.
    """

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except SymbolicOperand:
            pass  # what follows is no part of a failure
        if step is not None:
            return step(*args, **options)
        return hook("call_on_symbols")(called, args, options)

    return cast(F, called)


def unary(
    primitive: Primitive, name: str, formula: str, derivative: str, example: str, kinds: str = "fc", **params: Any
) -> OfOne:
    """The public function of one tensor over a primitive.

    Args:
        primitive: the operation that it calls.
        name: the public name.
        formula: 'y = ...' in words of mathematics.
        derivative: dy/dx, or 'none'.
        example: an expression and its printed value, separated by ' -> '.
        kinds: dtype kinds that are accepted.
        params: options of the primitive.
    """
    refuse = kinds in WANTED

    def function(x: TensorLike, name: str | None = None) -> Tensor:
        try:
            x = x if type(x) is Tensor else convert_to_tensor(x)
        except SymbolicOperand:
            return hook("call_on_symbols")(function, (x,), {})
        if refuse and x.array.dtype.kind not in kinds:
            inexact(function.__name__, x, kinds)
        return perform(primitive, (x,), params)

    result = "bool" if "bool" in derivative else "dtype of `x`"
    _describe(function, name, formula, derivative.replace(" (bool)", ""), example, "x: tensor of any shape.", result, kinds)
    return function


def binary(primitive: Primitive, name: str, formula: str, derivative: str, example: str, kinds: str = "any") -> OfTwo:
    """The public function of two tensors, broadcast against one another, over a primitive. Arguments as in `unary`."""
    refuse = kinds in WANTED

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

    return cast(F, name_like_definition(called, name, function.__module__, _in_one_line(summary, example)))


_OPERANDS = """a abs_ alpha angle b beta chol delta depthwise_kernel elements features fill_value filters image images indices
    input inputs kernel key lam logits matrix maxval mean minval pointwise_kernel q rhs stddev t tensor updates value
    variable x x1 x2 y"""
_TYPES = (
    dict.fromkeys(_OPERANDS.split(), "TensorLike")
    | dict.fromkeys(["axis", "axes"], "Axis")
    | dict.fromkeys(["dtype", "out_type", "output_type"], "DTypeLike")
    | dict.fromkeys(["dims", "shape", "newshape", "size", "repeats", "output_size"], "ShapeLike")
    | {"xs": "Sequence[TensorLike]", "name": "str | None", "initial": "float | None", "num_samples": "int"}
    | dict.fromkeys(["k", "n", "N"], "int")
    | {"M": "int | None", "data_format": "str | None"}
    | dict.fromkeys(["strides", "dilation_rate"], "Any")
    | dict.fromkeys(["lower", "upper", "max_delta"], "float")
)
"""The types of parameters by their names, which are the same in all rows."""


def row(
    name: str,
    function: Callable[..., Any],
    summary: str,
    example: str,
    returns: str = "Tensor",
    types: Mapping[str, str] = MappingProxyType({}),
) -> Callable[..., Any]:
    """A public function from one row.

    Args:
        name: the public name.
        function: a lambda with the public signature.
        summary: its documentation but for the example.
        example: an expression and its printed value, separated by ' -> '.
        returns: type of the result.
        types: types of parameters that do not follow from their names and defaults.
    """
    inner = inspect.unwrap(typed(function, returns, types))
    for each in (inner, function):
        name_like_definition(each, name, inner.__module__, _in_one_line(summary, example))
    return function


def typed(function: F, returns: str = "Tensor", types: Mapping[str, str] = MappingProxyType({})) -> F:
    """The function, annotated by the names and defaults of its parameters. Arguments as in `row`."""
    inner = inspect.unwrap(function)
    defaults = {key: one.default for key, one in inspect.signature(inner).parameters.items()}
    of_default = {key: type(one).__name__ if type(one) in (bool, int, float, str) else "Any" for key, one in defaults.items()}
    known = {key: types.get(key) or _TYPES.get(key) or of_default[key] for key in defaults}
    for each in (inner, function):
        each.__annotations__ = known | {"return": returns}
    return function


def _in_one_line(summary: str, example: str) -> str:
    expression, _, expected = example.partition(" -> ")
    return f"{summary}\n\n>>> {expression}\n{expected}\n"


def name_like_definition(function: Callable[..., Any], name: str, module: str, documentation: str | None = None) -> Any:
    """A function that another one has made, found by its name in a module, as pickle needs it, and documented."""
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = module, documentation or function.__doc__
    return function


def _describe(
    function: Any, name: str, formula: str, derivative: str, example: str, arguments: str, result: str, kinds: str
) -> None:
    expression, _, expected = example.partition(" -> ")
    function.takes_symbols = True
    summary, _, equation = formula.partition(": ")
    text = _DOCUMENTATION.format(
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
    name_like_definition(function, name, sys._getframe(2).f_globals["__name__"], text)
