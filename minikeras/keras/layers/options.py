"""Options of layers: the annotation of a constructor's argument says what it may be, and what the layer keeps of it in an
attribute of the same name. `filters: Positive` refuses anything but a positive int; `kernel_initializer: Initializer` keeps the
initializer of a name. To type checkers they are plain types. Read for classes with `described=True` and their bases.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, SupportsFloat, SupportsIndex, TypeVar

from .. import activations, constraints, initializers, regularizers
from ..arguments import whole
from ..config import checked_format

T = TypeVar("T")


class Option(NamedTuple):
    """The value that a layer keeps of an argument: `kept(layer, name, value)`, which refuses other values."""

    kept: Callable[[Any, str, Any], Any]


def keep(constructor: Callable[..., Any], arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Check the options of a layer, `arguments[0]`, before its constructor runs; `Layer.__init__` sets them as attributes."""
    layer, (names, options) = arguments[0], _options_of(constructor)
    if not options:  # also the constructor of Module, which others than layers have too
        return
    given = {**dict(zip(names, arguments, strict=False)), **named}
    found = layer.__dict__.setdefault("_options", {})
    for name, (option, default) in options.items():
        value = given.get(name, default)
        if value is not inspect.Parameter.empty:  # the constructor says what is missing
            found[name] = option.kept(layer, name, value)
    if "_name" in layer.__dict__:
        set_options(layer)


def set_options(layer: Any) -> None:
    """Set the options that were kept for a layer; `Layer.__init__` calls it once setters can ask what layers have."""
    options, kind = layer.__dict__.pop("_options", {}), type(layer)
    for name, value in options.items():
        if kind.is_plain and not hasattr(kind, name):  # half of the microseconds
            layer.__dict__[name] = value
        else:
            setattr(layer, name, value)


@functools.cache
def _options_of(constructor: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, tuple[Option, Any]]]:
    """The names of a constructor's arguments, and those that are options, with their defaults."""
    parameters, hints = inspect.signature(constructor).parameters, typing.get_type_hints(constructor, include_extras=True)
    marks = {name: getattr(hints.get(name), "__metadata__", ()) for name in parameters}
    options = {
        name: mark[0] if mark[0] is not AS_IT_IS else _of_kind(hints[name].__origin__) for name, mark in marks.items() if mark
    }
    return tuple(parameters), {name: (option, parameters[name].default) for name, option in options.items()}


_KINDS = {int: "a whole number", float: "a number", str: "a text", bool: "a truth value", type(None): "None"}


def _of_kind(annotation: Any) -> Option:
    """An option that is kept as it is; if its annotation is `int`, `float | None` or the like, it has to be that."""
    kinds = typing.get_args(annotation) or (annotation,)
    if not all(kind in _KINDS for kind in kinds):
        return AS_IT_IS
    allowed = tuple({int: SupportsIndex, float: SupportsFloat}.get(kind, kind) for kind in kinds)  # a Tensor is a number too
    fits = lambda value: type(value) in kinds or (not isinstance(value, bool) and isinstance(value, allowed))
    return _that(fits, " or ".join([_KINDS[kind] for kind in kinds]), TypeError)


def _that(fits: Callable[[Any], bool], wanted: str, error: type[Exception] = ValueError) -> Option:
    """An option that is kept as it is if it fits."""

    def checked(layer: Any, name: str, value: Any) -> Any:
        if not fits(value):
            raise error(f"{type(layer).__name__}: {name} must be {wanted}, found {value!r}.")
        return value

    return Option(checked)


def one_of(*choices: Any) -> Option:
    """An option that is one of some values."""
    return _that(choices.__contains__, f"one of {choices}")


_ARGS = re.compile(r"^( *)Args:\n(?:\1 .*\n)*", re.MULTILINE)


def with_common_words(cls: Any, makes_nothing: bool) -> str:
    """The docstring of a layer's class, with the arguments that many layers share added to its `Args:`."""
    words = {
        "data_format": "'channels_last' (default) or 'channels_first'.",
        "sparse": "not available; False.",
        "options": f"`name`, `dtype`,{'' if makes_nothing else ' `trainable`,'} as in `Layer`.",
    }
    text, taken = cls.__doc__ or "", cls.__init__.__annotations__
    if found := _ARGS.search(text):
        missing = [name for name in words if name in taken and not re.search(rf"\b{name}\b", found[0])]
        more = "".join([f"{found[1]}    {name}: {words[name]}\n" for name in missing])
        text = text[: found.end()] + more + text[found.end() :]
    return text


# Checks ----------------------------------------------------------------------------------------------------------------


def check_positive(layer: Any, name: str, number: Any) -> int:
    """Refuse what is no positive int."""
    if not isinstance(number, int) or isinstance(number, bool) or number <= 0:
        raise ValueError(
            f"{type(layer).__name__}: Received an invalid value for `{name}`, expected a positive integer. "
            f"Received: {name}={number!r}."
        )
    return number


def one_for_each(layer: Any, name: str, value: Any, rank: int, least: int = 1) -> tuple[int, ...]:
    """Ints of at least so much, one for each axis, from one for all or a sequence."""
    found = (value,) * rank if isinstance(value, int) else tuple(value) if isinstance(value, (list, tuple)) else ()
    if len(found) != rank or any(not isinstance(n, int) or isinstance(n, bool) or n < least for n in found):
        kind = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{type(layer).__name__}: `{name}` must be {kind} or a tuple of {rank}. Received: {name}={value!r}.")
    return found


def _rank_of(layer: Any) -> int:
    """The rank of a layer, which may be an option that was kept just before."""
    return layer.__dict__["_options"].get("rank") or layer.rank


def checked_padding(layer: Any, name: str, padding: Any) -> str:
    """'valid', 'same' or, where it is allowed, 'causal'."""
    allowed = ("valid", "same", "causal")[: 3 if layer.may_be_causal else 2]
    if not isinstance(padding, str) or padding.lower() not in allowed:
        raise ValueError(f"{type(layer).__name__}: {name} must be one of {allowed}, found {padding!r}.")
    return padding.lower()


def checked_rate(layer: Any, name: str, rate: Any) -> float:
    """A probability."""
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 <= rate <= 1:
        raise ValueError(
            f"Invalid value received for argument `{name}`. Expected a float value between 0 and 1. Received: {name}={rate!r}."
        )
    return float(rate)


def checked_size(layer: Any, name: str, size: Any) -> int:
    """Refuse what is no whole number of at least 1."""
    whole(f"{type(layer).__name__}: {name}", size, 1)
    return int(size)


def _made_by(make: Callable[[Any], Any]) -> Option:
    return Option(lambda layer, name, value: make(value))


AS_IT_IS, _NUMBER = _made_by(lambda value: value), _of_kind(float)
Kept = Annotated[T, AS_IT_IS]
"""An option that is kept as it is, and checked if it is a number or a text: `Kept[int | None]`."""
Flag = Annotated[bool, _made_by(bool)]
Number = Annotated[float, Option(lambda layer, name, value: float(_NUMBER.kept(layer, name, value)))]
Positive = Annotated[int, Option(check_positive)]
Rate = Annotated[float, Option(checked_rate)]
OneAxis = Annotated[int, _that(lambda axis: isinstance(axis, int) and not isinstance(axis, bool), "an int")]
Size = Annotated[int, Option(checked_size)]
PerAxis = Annotated[int | Sequence[int], Option(lambda layer, name, value: one_for_each(layer, name, value, _rank_of(layer)))]
Padding = Annotated[str, Option(checked_padding)]
DataFormat = Annotated[str | None, Option(lambda layer, _, value: checked_format(value, f"{type(layer).__name__}: "))]
ActivationLike = Annotated[str | Callable[..., Any] | None, _made_by(activations.get)]
Initializer = Annotated[str | Mapping[str, Any] | Callable[..., Any] | None, _made_by(initializers.get)]
Regularizer = Annotated[str | Mapping[str, Any] | Callable[..., Any] | None, _made_by(regularizers.get)]
Constraint = Annotated[str | Mapping[str, Any] | Callable[..., Any] | None, _made_by(constraints.get)]
