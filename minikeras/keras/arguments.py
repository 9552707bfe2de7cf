"""Numbers as NumPy hands them out, `np.float32(0.3)` or `np.array(3)`, where a Python number is expected: constructors and
methods see Python's numbers only, so a configuration can be written as text.

Catalogue: from 'relu', a configuration or an object to the object, the lookup behind every `get(identifier)`, in a closed table
for each kind of thing. Nothing is imported by name.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeVar, cast

import numpy as np

from ..boundary import explaining
from ..core.effects import watched
from ..module import snake_case
from .config import floatx
from .names import is_auto_name
from .saving.objects import described, deserialize_keras_object, serialize_keras_object
from .saving.registry import get_registered_object

F = TypeVar("F", bound=Callable[..., Any])
K = TypeVar("K", bound=type)


def unrecognized(made: object, unknown: Mapping[str, Any], common: Iterable[str]) -> ValueError:
    """The error for arguments that the class of an object does not take; `common` are names that its kin take."""
    kind = type(made).__name__
    near = difflib.get_close_matches(next(iter(unknown)), {*inspect.signature(type(made)).parameters, *common}, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"help({kind}) says what it takes."
    return ValueError(f"Unrecognized keyword arguments passed to {kind}: {unknown}. {hint}")


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


def takes_numpy(function: F, before: Callable[..., None] | None = None) -> F:
    """A function that is handed `plain` arguments; `before` is called first, with the function and the same arguments."""

    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        arguments, options = tuple(map(plain, arguments)), {name: plain(value) for name, value in options.items()}
        if before is not None:
            before(function, arguments, options)
        return function(*arguments, **options)

    return cast(F, called)


def made_with_numpy(kind: K, before: Callable[..., None] | None = None) -> K:
    """A class whose constructors, those of its bases included, are handed `plain` arguments and explain what fails."""
    for owner in kind.__mro__:
        if isinstance(vars(owner).get("__init__"), types.FunctionType) and owner not in _made_with_numpy:
            owner.__init__ = explaining(takes_numpy(owner.__init__, before))  # type: ignore[misc]
            _made_with_numpy.add(owner)
    return kind


_made_with_numpy: set[type] = set()


_LONGEST = 1000
"""Characters of an argument, such as an array as a list of numbers."""


def as_call(thing: Any, **held: Any) -> str:
    """An object as the call that makes another one like it: with arguments that have no default, and those that differ from it.

    Args:
        thing: what has a `get_config`, or else attributes with the names of the arguments.
        held: values in the place of what the configuration says.

    >>> from minikeras import keras
    >>> keras.regularizers.L2(), keras.regularizers.L2(0.1), keras.losses.MeanSquaredError(reduction=None)
    (L2(), L2(l2=0.1), MeanSquaredError(reduction=None))
    """
    try:
        config = thing.get_config() if hasattr(thing, "get_config") else vars(thing)
    except (NotImplementedError, AttributeError):  # a subclass that cannot be written down, or is half made
        config = {}
    defaults: dict[str, Any] = {}
    for owner in reversed(type(thing).__mro__[:-1]):
        defaults |= {name: one.default for name, one in inspect.signature(owner).parameters.items()}
    told = {name: value for name, value in (config | held).items() if name in defaults or name in held}
    kind, function, dtype = type(thing).__name__, told.get("fn"), told.pop("dtype", None)
    usual = (None, defaults.get("name"), kind, *(getattr(function, key, None) for key in ("name", "__name__")))
    label = told.pop("name", None)
    other = {name: value for name, value in told.items() if name in held or as_text(value) != as_text(defaults[name])}
    other |= {"dtype": dtype} if dtype not in (None, floatx()) else {}
    other |= {"name": label} if label not in usual and not is_auto_name(str(label), snake_case(kind)) else {}
    return f"{kind}({', '.join(f'{name}={as_text(value)[:_LONGEST]}' for name, value in other.items())})"


def as_text(value: Any) -> str:
    """An argument as Python writes it: floats that float32 holds with its digits, functions and classes by their names,
    paths as texts.

    >>> as_text(float(np.float32(0.1))), as_text(0.1), as_text([len, "a"])
    ('0.1', '0.1', "[len, 'a']")
    """
    if isinstance(value, float):
        return str(np.float32(value)) if float(np.float32(value)) == value else repr(value)
    if type(value) in (list, tuple):
        inner = ", ".join(map(as_text, value))
        return f"[{inner}]" if type(value) is list else f"({inner}{',' * (len(value) == 1)})"
    if type(value) is dict:
        return "{" + ", ".join(f"{as_text(key)}: {as_text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, os.PathLike):
        return repr(os.fspath(value))
    return value.__name__ if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)) else repr(value)


@watched
class Configured:
    """An object that is its options: attributes with the names of the constructor's arguments."""

    _configured: tuple[str, ...] = ()
    """The names of these arguments."""

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments; arrays as lists, objects by their configurations."""
        return {name: described(getattr(self, name)) for name in self._configured}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """An object from `get_config`."""
        return cls(**config)

    __repr__ = as_call


def whole(name: str, value: Any, least: int, optional: bool = False) -> None:
    """Refuse what is no whole number, or too small."""
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, found {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, found {value}.")


# Catalogues ------------------------------------------------------------------------------------------------------------

_OF_BASES = ("name", "dtype", "seed")

T = TypeVar("T")


class Catalogue:
    """The named classes and functions of one `kind`, as messages call it."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._entries: dict[str, Any] = {}

    def add(self, *names: str) -> Callable[[T], T]:
        """A decorator that enters a class or function under its own name, in snake case, and under further names.

        The configuration of a class holds the arguments of its constructor, unless `_configured` says otherwise; its base adds
        name, dtype and seed.
        """

        def enter(entry: T) -> T:
            if isinstance(entry, type):
                if hasattr(entry, "_configured") and "_configured" not in vars(entry):
                    entry._configured = tuple(name for name in inspect.signature(entry).parameters if name not in _OF_BASES)
                made_with_numpy(entry)
            own = getattr(entry, "__name__", "")
            self._entries |= dict.fromkeys((own, snake_case(own), *names), entry)
            return entry

        return enter

    def get(self, identifier: Any) -> Any:
        """The object for None, a name, {'class_name': ..., 'config': ...}, a class, or an object itself.

        Raises:
            ValueError: if there is no entry of that name, with the nearest ones.

        >>> type(tf.keras.regularizers.get("l2")).__name__, tf.keras.constraints.get(None)
        ('L2', None)
        """
        if isinstance(identifier, str):
            entry = self.entry(identifier)
            return entry() if isinstance(entry, type) else entry
        if isinstance(identifier, Mapping):
            return self.deserialize(identifier)
        if isinstance(identifier, type):
            return identifier()
        if identifier is None or callable(identifier) or hasattr(identifier, "get_config"):
            return identifier
        raise ValueError(f"Could not interpret {self._kind} identifier: {identifier!r}. Give a name, an object or a function.")

    def names(self) -> list[str]:
        """All names, each of which is one way to ask for an entry."""
        return list(self._entries)

    def name_of(self, thing: Any) -> str | None:
        """The first name that a class or function was entered under; None if it was not."""
        return next((name for name, entry in self._entries.items() if entry is thing), None)

    def serialize(self, thing: Any) -> Any:
        """The configuration of an object, as plain data that `deserialize` reads.

        >>> tf.keras.optimizers.serialize(tf.keras.optimizers.SGD(0.5))["config"]["learning_rate"]
        0.5
        """
        return serialize_keras_object(thing)

    def deserialize(self, config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
        """The object for a name or a configuration.

        Args:
            config: a name, or what `serialize` gives.
            custom_objects: further classes and functions by name.

        Raises:
            ValueError: if the name or class is not known.

        >>> tf.keras.initializers.deserialize({"class_name": "Constant", "config": {"value": 2.0}}).value
        2.0
        """
        found = deserialize_keras_object(config, custom_objects, module_objects=self._entries)
        if isinstance(found, Mapping):
            raise ValueError(
                f"Could not interpret {self._kind} configuration: {config!r:.200} has no 'class_name' and 'config'."
            )
        return self.get(found)

    def entry(self, name: str) -> Any:
        """The class or function of that name, registered ones first.

        Raises:
            ValueError: if there is none, with the nearest names.
        """
        custom = get_registered_object(name)
        if custom is not None:
            return custom
        if name not in self._entries:
            near = difflib.get_close_matches(name, self._entries, n=3)
            hint = f" Did you mean {', '.join(near)}?" if near else f" There are: {', '.join(sorted(self._entries))}."
            raise ValueError(f"Unknown {self._kind}: '{name}'.{hint}")
        return self._entries[name]
