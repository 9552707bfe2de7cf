"""Numbers as NumPy hands them out, `np.float32(0.3)` or `np.array(3)`, where a Python number is expected: constructors and
methods see Python's numbers only, so a configuration can be written as text.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np

from ..boundary import explaining
from ..core.changes import watched

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
    """A class whose constructors, those of its bases in this package included, get `plain` arguments and explain what fails."""
    for owner in kind.__mro__:
        ours = owner.__module__.partition(".")[0] == __name__.partition(".")[0]
        if ours and "__init__" in vars(owner) and owner not in _made_with_numpy:
            owner.__init__ = explaining(takes_numpy(owner.__init__))  # type: ignore[misc]
            _made_with_numpy.add(owner)
    return kind


_made_with_numpy: set[type] = set()


def with_options(thing: Any) -> str:
    """An object as text: its class, and those of its options that are not the default ones.

    >>> from minikeras import keras
    >>> keras.optimizers.SGD(0.5, momentum=0.9), keras.regularizers.L2(0.1)
    (<SGD learning_rate=0.5 momentum=0.9>, <L2 l2=0.1>)
    """
    try:
        config = thing.get_config()
    except (NotImplementedError, AttributeError):  # a subclass that cannot be written down, or is half made
        config = {}
    defaults: dict[str, Any] = {}
    for owner in reversed(type(thing).__mro__[:-1]):
        defaults |= {name: one.default for name, one in inspect.signature(owner).parameters.items()}
    told = {name: value for name, value in config.items() if value is not None and name != "name"}
    other = [f" {name}={_shown(value)}" for name, value in told.items() if value != defaults.get(name)]
    return f"<{type(thing).__name__}{''.join(other)}>"


@watched
class Configured:
    """An object that is its options: attributes with the names of the constructor's arguments."""

    _configured: tuple[str, ...] = ()
    """The names of these arguments."""

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {name: getattr(self, name) for name in self._configured}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """An object from `get_config`."""
        return cls(**config)

    __repr__ = with_options


def _shown(value: Any) -> str:
    """An option as short text: numbers without the noise of float32, objects and functions by their names."""
    if isinstance(value, dict) and "class_name" in value:
        return str(value["class_name"])
    return f"{value:.7g}" if isinstance(value, float) else getattr(value, "__name__", None) or repr(value)


def whole(name: str, value: Any, least: int, optional: bool = False) -> None:
    """Refuse what is no whole number, or too small."""
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, found {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, found {value}.")
