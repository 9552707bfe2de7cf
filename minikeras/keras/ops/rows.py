"""Rows of `keras.ops`: functions of this package under Keras's names, with Keras's rules of dtypes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ...core import Tensor, convert_to_tensor
from ...functions import cast, catalogue
from ...types import Axis, TensorLike
from ..promotion import floating, promoted
from ..symbolic.operation import SAME, operation

Takes = Callable[..., Iterable[Tensor]]


def anything(*operands: TensorLike) -> Iterable[Tensor]:
    """The rule of dtypes that leaves every operand its own."""
    return map(convert_to_tensor, operands)


def floats(*operands: TensorLike) -> Iterable[Tensor]:
    """The rule of dtypes by which operands meet in one of floats, or of complex numbers."""
    return map(floating, promoted(*operands) if len(operands) > 1 else operands)


def truths(*operands: TensorLike) -> Iterable[Tensor]:
    """The rule of dtypes by which operands are bools: True where an element is not 0."""
    return [cast(convert_to_tensor(one), "bool") for one in operands]


def row(
    name: str,
    function: Callable[..., Any],
    summary: str,
    example: str,
    /,
    takes: Takes | None = None,
    returns: str = "Tensor",
    types: Mapping[str, str] = MappingProxyType({}),
    **options: Any,
) -> Callable[..., Any]:
    """A function of `keras.ops` from one row.

    Args:
        name: Keras's.
        function: of Tensors; a lambda with the public signature.
        summary, example, returns, types: as in the catalogue.
        takes: the rule of dtypes, which makes the operands Tensors; the function does so itself if None.
        options: those of `operation`.
    """
    made = catalogue.row(name, function, summary, example, returns, types)
    if takes is not None:
        made = _taking(takes, made, inspect.signature(made))
    return _published(made, name, function.__module__, function.__doc__, **options)


def rows_of(
    like: Callable[..., Any], takes: Takes, documentation: str, types: Mapping[str, str] = MappingProxyType({}), **options: Any
) -> Callable[..., Callable[..., Tensor]]:
    """The maker of rows that have one signature.

    Its arguments are Keras's name, a function of the Tensors that `takes` gives and of the further arguments, the summary (that
    of the function if it is left out), and what else the documentation says of this row. A row over a function of `functions/`
    takes the same arguments; `same` names the function otherwise.

    Args:
        like: a lambda with the signature.
        takes, types: as in `row`.
        documentation: where {summary} and {name} stand.
        options: those of `operation`.
    """
    signature = inspect.signature(catalogue.typed(like, types=types))

    def made(name: str, function: Callable[..., Tensor], summary: str = "", same: Any = None, **texts: str) -> Any:
        summary = summary or (inspect.getdoc(function) or "").partition("\n\nArgs:")[0].partition("\n\n>>>")[0]
        text = documentation.format(summary=summary, name=name, **texts)
        home = sys._getframe(1).f_globals["__name__"]
        row = _published(_taking(takes, function, signature), name, home, text, same=same, **options)
        SAME.setdefault(inspect.unwrap(function), row)  # further names of it come later
        return row

    return made


def _published(made: Any, name: str, module: str, documentation: str | None, /, **options: Any) -> Callable[..., Any]:
    step: Callable[..., Any] = operation(**options)(catalogue.name_like_definition(made, name, module, documentation))
    return step


def _taking(takes: Takes, function: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    """A function with a signature, in which a rule of dtypes makes the operands the first arguments of `function`."""
    operands = [key for key, one in signature.parameters.items() if "TensorLike" in str(one.annotation)]
    count, alone = len(operands), len(operands) == len(signature.parameters)
    called: Callable[..., Any]
    convert = {anything: convert_to_tensor, floats: floating}.get(takes, takes)  # of one tensor
    if list(signature.parameters) == ["x"]:  # what is called most often saves 0.8 us by parameters of its own

        def called(x: TensorLike) -> Any:
            return function(convert(x))

    elif list(signature.parameters) == ["x", "axis", "keepdims"]:

        def called(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Any:
            return function(convert(x), axis, keepdims)

    elif list(signature.parameters) == ["x1", "x2"]:

        def called(x1: TensorLike, x2: TensorLike) -> Any:
            return function(*takes(x1, x2))

    else:

        def called(*args: Any, **options: Any) -> Any:
            if len(args) < count:
                args = (*args, *[options.pop(one) for one in operands[len(args) :] if one in options])
            if alone and (options or len(args) > count):
                signature.bind(*args, **options)  # refuses what `function` may take beside its operands
            return function(*takes(*args[:count]), *args[count:], **options)

    made: Any = called
    made.__signature__ = signature
    return made


_DOCUMENTATION = """{{summary}}

Args:
    {arguments}

Returns:
    A Tensor of the {shape}. {dtypes}

>>> tf.keras.ops.{{name}}({example}).shape
(None, 2)
"""


def _elementwise(like: Callable[..., Any], takes: Takes, dtypes: str) -> Callable[..., Callable[..., Tensor]]:
    names = list(inspect.signature(like).parameters)
    arguments = f"{', '.join(names)}: {'tensors that are broadcast' if names[1:] else 'tensor of any shape'}."
    shape = "broadcast shape" if names[1:] else "shape of `x`"
    example = ", ".join(["tf.keras.Input((2,), dtype='int32')"] * len(names))
    return rows_of(like, takes, _DOCUMENTATION.format(arguments=arguments, shape=shape, dtypes=dtypes, example=example))


_MEET = "Different dtypes meet in one that holds both."
of_any = _elementwise(lambda x: ..., anything, "The dtype of `x`, or bool of a question.")
of_floats = _elementwise(lambda x: ..., floats, "Integers and bools become floats.")
of_two = _elementwise(lambda x1, x2: ..., promoted, _MEET)
of_two_floats = _elementwise(lambda x1, x2: ..., floats, "Different dtypes meet in one of floats.")
of_truths = _elementwise(lambda x1, x2: ..., truths, "Bools.")
of_bits = _elementwise(lambda x, y: ..., promoted, _MEET)


def of_floats_and_options(function: Callable[..., Tensor], same: Any = None, **defaults: Any) -> Callable[..., Tensor]:
    """A function of one tensor of floats with options, under its own name and with its documentation.

    Args:
        function: such as one of `keras.activations`.
        same: as `operation` has it.
        defaults: of options, where they are others than those of the function.
    """
    function = inspect.unwrap(function)
    signature = inspect.signature(function)
    parameters = [one.replace(default=defaults.get(name, one.default)) for name, one in signature.parameters.items()]
    signature = signature.replace(parameters=parameters)

    def compute(*args: Any, **options: Any) -> Tensor:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        x, *values = bound.args
        return function(floating(x), *values)

    row: Any = compute
    row.__signature__ = signature
    text = (function.__doc__ or "").replace("keras.activations", "keras.ops")
    return _published(row, function.__name__, sys._getframe(1).f_globals["__name__"], text, same=same)
