"""From 'relu', a configuration or an object to the object: the lookup behind every `get(identifier)`, in one closed table for
each kind of thing. Nothing is imported by name.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..module import snake_case
from .arguments import made_with_numpy
from .saving.objects import deserialize_keras_object, serialize_keras_object
from .saving.registry import get_registered_object

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
