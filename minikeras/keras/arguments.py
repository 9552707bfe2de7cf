"""Numbers as NumPy hands them out, `np.float32(0.3)` or `np.array(3)`, where a Python number is expected.

Key idea: constructors and methods see Python's numbers only, so each checks and keeps its arguments as if there were no others,
and a configuration can be written as text.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
K = TypeVar("K", bound=type)


def plain(value: Any) -> Any:
    """A NumPy number or an array without axes as a Python number, also within lists and tuples; anything else as it is.

    >>> import numpy as np
    >>> plain(np.int64(3)), plain((np.array(0.5), None)), plain(np.bool_(True))
    (3, (0.5, None), True)
    """
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item()
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    return value


def takes_numpy(function: F) -> F:
    """A function that is handed `plain` arguments."""

    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        return function(*map(plain, arguments), **{name: plain(value) for name, value in options.items()})

    return called  # type: ignore[return-value]


def made_with_numpy(kind: K) -> K:
    """A class whose constructors, those of its bases in this package included, are handed `plain` arguments."""
    for owner in kind.__mro__:
        ours = owner.__module__.partition(".")[0] == __name__.partition(".")[0]
        if ours and "__init__" in vars(owner) and owner not in _made_with_numpy:
            owner.__init__ = takes_numpy(owner.__init__)  # type: ignore[misc]
            _made_with_numpy.add(owner)
    return kind


_made_with_numpy: set[type] = set()


def whole(name: str, value: Any, least: int, optional: bool = False) -> None:
    """Refuse what is no whole number, or too small.

    Raises:
        TypeError: for a number with a fraction, or no number.
        ValueError: for one that is too small.
    """
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, found {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, found {value}.")
