"""The boundary to users: where an argument makes Python fail deep inside, the error names the call and the argument.

Errors that were raised on purpose, and those of foreign code, pass as they are. Where nothing fails, nothing is looked at.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import reprlib
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
K = TypeVar("K", bound=type)

FAILURES = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)
"""The errors that Python's operations raise for arguments that they cannot use."""

_OURS = (__package__, "numpy")


def explaining(function: F) -> F:
    """A function that explains failures of Python by its arguments.

    Raises:
        ValueError: for a failure that is a ValueError.
        TypeError: for any other.

    >>> @explaining
    ... def halves(count: int) -> list[float]:
    ...     return [0.5] * count
    >>> halves(2)
    [0.5, 0.5]
    """

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except FAILURES as error:
            if not is_failure(error) or (said := _complaint(function, args, options, error)) is None:
                raise
            raise (ValueError if isinstance(error, ValueError) else TypeError)(said) from error

    return cast(F, called)


def explaining_methods(kind: K) -> K:
    """A class whose public methods, those that it defines itself, explain failures of Python by their arguments."""
    for name, value in list(vars(kind).items()):
        if not name.startswith("_") and isinstance(value, types.FunctionType):
            setattr(kind, name, explaining(value))
        elif not name.startswith("_") and isinstance(value, (staticmethod, classmethod)):
            setattr(kind, name, type(value)(explaining(value.__func__)))
    return kind


def is_failure(error: BaseException) -> bool:
    """True if an operation of this package failed, in NumPy or Python too; False for errors that we or a user's code raised."""
    if isinstance(error, AttributeError) and error.name is None:
        return False  # of an assignment: Python names attribute and class
    trace, package, last = error.__traceback__, "", None
    while trace is not None:
        package = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in _OURS and package not in sys.stdlib_module_names:
            return False
        last, trace = trace, trace.tb_next
    if last is None or package != __package__:
        return last is not None
    line = linecache.getline(last.tb_frame.f_code.co_filename, last.tb_lineno, last.tb_frame.f_globals)
    return not line.lstrip().startswith("raise")


def shown(value: Any) -> str:
    """A value in short; of arrays and tensors, alone or in a nest, class and shape."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {shown(one)}" for key, one in value.items()) + "}"
    if type(value) in (list, tuple):
        return f"{type(value).__name__} of {', '.join(map(shown, value[:4]))}" if len(value) else repr(value)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    return value.__qualname__ if isinstance(value, type) else reprlib.repr(value)


def _complaint(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], error: Exception) -> str | None:
    """The message: the call, the arguments that do not fit their annotations or else all of them, and Python's error; None
    where an argument is missing or unknown, as Python's own message says well enough.
    """
    function = inspect.unwrap(function)
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*args, **options).arguments
    except TypeError:
        return None
    name = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
    defaults = {key: parameter.default for key, parameter in signature.parameters.items()}
    given = {key: one for key, one in bound.items() if key not in ("self", "cls") and one is not defaults[key]}
    try:
        hints = typing.get_type_hints(function)
    except NameError:  # of a module that is imported for type checkers only
        hints = {}
    wrong = {key: value for key, value in given.items() if not _fits(value, hints.get(key, Any))}
    told = [f"{key} should be {inspect.formatannotation(hints[key])}, found {shown(value)}" for key, value in wrong.items()]
    if not told:
        told = [f"cannot work with {', '.join(f'{key}={shown(value)}' for key, value in given.items()) or 'nothing'}"]
    return f"{name}: {'; '.join(told)} ({type(error).__name__}: {error}). See help({name}) for what it takes."


def _fits(value: Any, hint: Any) -> bool:
    """True if a value is of an annotated class, and for annotations that say more than a class."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return any(_fits(value, one) for one in typing.get_args(hint))
    kind = typing.get_origin(hint) or hint
    if kind is Any or not isinstance(kind, type):
        return True
    return isinstance(value, (int, float) if kind is float else kind)
