"""A function of `keras.ops` from one row: a function of this package under Keras's name, with Keras's rules of dtypes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

from ...core import Tensor, convert_to_tensor
from ...functions import catalogue
from ...functions.elementwise import cast
from ...types import TensorLike
from ..promotion import floating, promoted
from ..symbolic.operation import operation

_DOCUMENTATION = """{summary}

Args:
    {arguments}

Returns:
    A Tensor of the {shape}. {dtypes}

>>> tf.keras.ops.{name}({example}).shape
(None, 2)
"""


def row(
    name: str, function: Callable[..., Any], summary: str, example: str, /, returns: str = "Tensor", **options: Any
) -> Callable[..., Any]:
    """A function that converts its operands itself; `options` are those of `operation`, the others as in the catalogue."""
    made: Callable[..., Any] = operation(**options)(catalogue.row(name, function, summary, example, returns))
    return made


def _of_one(prepare: Callable[[TensorLike], Tensor], dtypes: str) -> Callable[..., Callable[[TensorLike], Tensor]]:
    """The makers of functions of one tensor.

    Their arguments are Keras's name, a function of a Tensor that `prepare` gives, and what it computes, which is what the
    function says of itself if it is left out.
    """

    def made(name: str, function: Callable[..., Tensor], summary: str | None = None) -> Callable[[TensorLike], Tensor]:
        def row(x: TensorLike) -> Tensor:
            return function(prepare(x))

        return _published(row, name, function, summary, dtypes)

    return made


def _of_two(prepare: Callable[..., Iterable[Tensor]], dtypes: str) -> Callable[..., Callable[[TensorLike, TensorLike], Tensor]]:
    """The makers of functions of two tensors; arguments as in `_of_one`."""

    def made(
        name: str, function: Callable[..., Tensor], summary: str | None = None
    ) -> Callable[[TensorLike, TensorLike], Tensor]:
        def row(x1: TensorLike, x2: TensorLike) -> Tensor:
            return function(*prepare(x1, x2))

        return _published(row, name, function, summary, dtypes)

    return made


def truth(x: TensorLike) -> Tensor:
    """True where an element is not 0."""
    return cast(convert_to_tensor(x), "bool")


_MEET = "Different dtypes meet in one that holds both."
of_any = _of_one(convert_to_tensor, "The dtype of `x`, or bool of a question.")
of_floats = _of_one(floating, "Integers and bools become floats.")
of_two = _of_two(promoted, _MEET)
of_two_floats = _of_two(lambda *x: map(floating, promoted(*x)), "Different dtypes meet in one of floats.")
of_truths = _of_two(lambda *x: map(truth, x), "Bools.")


def of_bits(name: str, function: Callable[..., Tensor]) -> Callable[[TensorLike, TensorLike], Tensor]:
    """A function of the bits of two tensors of integers, which are called x and y."""

    def row(x: TensorLike, y: TensorLike) -> Tensor:
        return function(*promoted(x, y))

    return _published(row, name, function, None, _MEET)


def of_floats_and_options(function: Callable[..., Tensor], **defaults: Any) -> Callable[..., Tensor]:
    """A function of one tensor of floats with options, under its own name and with its documentation.

    Args:
        function: such as one of `keras.activations`.
        defaults: of options, where they are others than those of the function.
    """
    function = inspect.unwrap(function)
    parameters = [
        one.replace(default=defaults.get(name, one.default)) for name, one in inspect.signature(function).parameters.items()
    ]

    signature = inspect.signature(function).replace(parameters=parameters)

    def row(*args: Any, **options: Any) -> Tensor:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        x, *values = bound.args
        return function(floating(x), *values)

    row.__signature__ = signature  # type: ignore[attr-defined]
    row.__name__ = row.__qualname__ = function.__name__
    row.__module__ = sys._getframe(1).f_globals["__name__"]
    row.__doc__ = (function.__doc__ or "").replace("keras.activations", "keras.ops")
    return operation(row)


def _published(row: Any, name: str, function: Callable[..., Tensor], summary: str | None, dtypes: str) -> Any:
    """The row as a public function of the module that holds it."""
    row.__name__ = row.__qualname__ = name
    row.__module__ = sys._getframe(2).f_globals["__name__"]
    operands = list(inspect.signature(row).parameters)
    row.__doc__ = _DOCUMENTATION.format(
        summary=summary or (inspect.getdoc(function) or "").partition("\n\nArgs:")[0].partition("\n\n>>>")[0],
        arguments=f"{', '.join(operands)}: {'tensors that are broadcast' if len(operands) > 1 else 'tensor of any shape'}.",
        shape="broadcast shape" if len(operands) > 1 else "shape of `x`",
        dtypes=dtypes,
        name=name,
        example=", ".join(["tf.keras.Input((2,), dtype='int32')"] * len(operands)),
    )
    return operation(row)
