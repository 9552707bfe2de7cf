"""Module: an object that finds its Variables and submodules by walking its attributes.

Key idea: nothing is registered. Attributes, lists, tuples and dicts are walked when asked, in the order in which they were
made, and the dotted path on the way (`hidden.kernel`) is the name of what was found, in messages and in checkpoints.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from .core import Variable
from .core.changes import watched

waiting: weakref.WeakSet[Any] = weakref.WeakSet()
"""Restored checkpoints with values left over; built layers and new attributes are where these may belong."""


@watched
class Module:
    """Base of everything that holds Variables.

    Args:
        name: shown in messages; the class name in snake case by default.

    >>> import minikeras as tf
    >>> class Line(tf.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.slope = tf.Variable(2.0)
    ...     def __call__(self, x):
    ...         return self.slope * x
    >>> [path for path, variable in Line().named_variables()]
    ['slope']
    """

    _deferred: Any
    _unwatched: tuple[str, ...] = ()

    def __init__(self, name: str | None = None) -> None:
        self._name = name or snake_case(type(self).__name__)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if "_deferred" in self.__dict__:  # a checkpoint was restored before this attribute was there
            self._deferred.attribute_set(value)

    @property
    def name(self) -> str:
        """The name given or made up."""
        return self._name

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All Variables within, each once."""
        return tuple(variable for _, variable in self.named_variables())

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The Variables that are trainable."""
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        """The Variables that are not trainable."""
        return tuple(variable for variable in self.variables if not variable.trainable)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """All Modules within, each once, not this one."""
        return tuple(found for _, found in walk(self) if isinstance(found, Module) and found is not self)

    def named_variables(self) -> list[tuple[str, Variable]]:
        """Pairs of dotted path and Variable."""
        return [(path, found) for path, found in walk(self) if isinstance(found, Variable)]


def snake_case(name: str) -> str:
    """'MyBlock2D' as 'my_block2d', with Keras's oddities ('ReLU' is 're_lu').

    >>> snake_case("BatchNormalization"), snake_case("ReLU"), snake_case("_Private")
    ('batch_normalization', 're_lu', 'private__private')
    """
    import re

    text = re.sub(r"\W+", "", name)
    text = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", text)
    text = re.sub("([a-z])([A-Z])", r"\1_\2", text).lower()
    return "private" + text if text.startswith("_") else text


def walk(root: Any) -> Iterator[tuple[str, Any]]:
    """Every Module and Variable reachable from `root` through attributes and containers, each once, with its path."""
    return _visit(root, "", set())


def _visit(value: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """What `walk` yields from `value` on, without what was met before, containers that hold themselves included."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, (Variable, Module)):
        yield path, value
    if not isinstance(value, Variable):
        for key, child in children(value):
            yield from _visit(child, f"{path}.{key}" if path else key, seen)


def children(value: Any) -> Iterator[tuple[str, Any]]:
    """What one object holds: attributes of a Module, elements of a list, tuple or dict."""
    if isinstance(value, Module):
        for name, child in vars(value).items():
            if isinstance(child, (Variable, Module, list, tuple, Mapping)) and not _hidden(value, name):
                yield name.lstrip("_"), child
    elif isinstance(value, Mapping):
        yield from ((str(key), child) for key, child in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((str(position), child) for position, child in enumerate(value))


def _hidden(module: Module, name: str) -> bool:
    """Attributes that a class names as not its own parts, such as a back reference."""
    return name in getattr(type(module), "_not_walked", ())
