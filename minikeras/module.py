"""Module: an object that finds its Variables and submodules by walking its attributes."""

from __future__ import annotations

import functools
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from .core import Variable, name_scope, watched

waiting: weakref.WeakSet[Any] = weakref.WeakSet()
"""Restored checkpoints with values left over; built layers and new attributes are where these may belong."""


@watched
class Module:
    """Base of everything that holds Variables.

    Args:
        name: shown in messages; the class name in snake case by default.

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
    _unwatched: Collection[str] = ()
    _not_walked: Collection[str] = ()
    """Attributes that are no parts of it, such as a back reference; a class has those of its bases too."""
    checkpointed: tuple[str, ...] = ()
    """The attributes in `_not_walked` that files hold nevertheless."""
    checkpoint_names: Mapping[str, str] = {}
    """Attributes that checkpoints hold under the name, and as the value, of a property."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("_not_walked", "_unwatched"):
            setattr(cls, name, frozenset(one for base in cls.__mro__ for one in vars(base).get(name, ())))

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
    def name_scope(self) -> name_scope:
        """A `tf.name_scope` of its name."""
        return name_scope(self._name)

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """A decorator of a method: names of the Variables that it makes begin with the name of the module.

        >>> class Scale(tf.Module):
        ...     @tf.Module.with_name_scope
        ...     def __call__(self, x):
        ...         if not hasattr(self, "factor"):
        ...             self.factor = tf.Variable(2.0, name="factor")
        ...         return x * self.factor
        >>> scale = Scale()
        >>> _ = scale(1.0)
        >>> print(scale.factor.name)
        scale/factor:0
        """

        @functools.wraps(method)
        def scoped(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped

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
        return tuple(found for _, found in self._found(Module))

    def named_variables(self) -> list[tuple[str, Variable]]:
        """Pairs of dotted path and Variable: sorted by attribute, those of submodules last, as in TensorFlow."""
        return self._found(Variable)

    def _found(self, kind: type[Any]) -> list[tuple[str, Any]]:
        """The objects of one kind, each once, with its dotted path, in the order of `named_variables`."""
        return list(_held("", self, kind, {id(self)}))


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


def _held(start: str, module: Module, kind: type[Any], met: set[int]) -> Iterator[tuple[str, Any]]:
    """The objects of one kind that a module holds and that were not met before, then those of the modules in it."""
    modules = []
    for path, value, _ in walk((start, module), children=lambda x: _followed(x, module), separator="."):
        if id(value) not in met:
            met.add(id(value))
            if isinstance(value, kind):
                yield path, value
            if isinstance(value, Module):
                modules.append((path, value))
    for path, inner in modules:
        yield from _held(path, inner, kind, met)


def _followed(value: Any, module: Module) -> Named:
    """The children that may lead to Modules and Variables, sorted; attributes by name, without underscores before it."""
    if value is module:
        found = sorted((name, child) for name, child in attributes(value) if isinstance(child, _FOLLOWED))
        return [(name.lstrip("_"), child) for name, child in found]
    if isinstance(value, Module):
        return ()
    return sorted(elements(value), key=itemgetter(0)) if isinstance(value, Mapping) else elements(value)


_FOLLOWED = (Variable, Module, list, tuple, Mapping)


# The one walk over what objects hold: attributes of Modules, elements of lists, tuples and dicts.
#
# Nothing is registered. Each user (weights of layers, checkpoints, files of models) says what it follows and how that is named.

Named = Iterable[tuple[str, Any]]


def walk(
    *roots: tuple[str, Any], children: Callable[[Any], Named], separator: str, breadth_first: bool = False
) -> Iterator[tuple[str, Any, str | None]]:
    """Some objects, each given with its path, and all that they lead to.

    Yields:
        Path, object, and the path at which this object was met before; None if it was not. It is followed once.
    """
    met: dict[int, tuple[str, Any]] = {}  # the object too: one made on the way, once freed, would leave its id to the next
    waiting = deque(roots)
    while waiting:
        place = path, value = waiting.popleft()
        before = met.setdefault(id(value), place)
        if before is not place:
            yield path, value, before[0]
            continue
        yield path, value, None
        start = f"{path}{separator}" if path else ""
        found = [(start + name, child) for name, child in children(value)]
        if breadth_first:
            waiting.extend(found)
        else:
            waiting.extendleft(reversed(found))


def attributes(owner: Any, also: Collection[str] = ()) -> Named:
    """The attributes of a Module in the order in which they were set, without those that its class names in `_not_walked`."""
    hidden = owner._not_walked
    return [(name, value) for name, value in vars(owner).items() if name not in hidden or name in also]


def elements(container: Any) -> Named:
    """The elements of a list, tuple or dict by number or key; nothing of any other object."""
    if isinstance(container, Mapping):
        return [(str(key), value) for key, value in container.items()]
    return [(str(number), value) for number, value in enumerate(container)] if isinstance(container, (list, tuple)) else ()
