"""What a layer holds: its Variables and sublayers, found by walking attributes, and whether they are trained.

Key idea: nothing is registered. Attributes, lists, tuples and dicts are walked when asked, in the order in which they were
set; the walk is kept until some layer sets an attribute or a list or dict on the way has other elements. Next: `layer.py`,
which builds and calls.
"""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Collection, Mapping, MutableMapping
from typing import Any, NamedTuple

from ...boundary import explaining
from ...core import Tensor, Variable
from ...core.changes import clock
from ...module import Module, children
from ..metrics import Metric
from ..seeds import SeedGenerator, SeedState
from ..weight import Weight

_structure = {"version": 0}


class Contents(NamedTuple):
    """What a layer holds, sublayers included, each thing once."""

    variables: list[Variable]
    sublayers: list[Holder]
    metrics: list[Metric]


Loose = tuple[Any, list[Any]]
"""A container that may change unseen, and the elements that it had."""


class Holder(Module):
    """The part of `Layer` that finds, freezes, reads and sets weights."""

    _built: bool
    _open = False  # whether further state may be added after building
    _trainable: bool
    _scope: tuple[str, ...]
    _stream: int | None

    def __init__(self, name: str, trainable: bool) -> None:
        super().__init__(name)
        self._trainable = bool(trainable)
        self._frozen: set[int] = set()
        self._added: tuple[Weight, ...] = ()
        """The weights that `add_weight` made: they count whether or not they are kept in an attribute."""
        self._settled: list[Any] = []
        """What it held when `trainable` was last set. What comes later is frozen if it is, once."""
        self._collected: tuple[int, Contents, list[Loose]] | None = None

    _passing: tuple[str, ...] = ("_collected",)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_name" in self.__dict__ and name not in self._not_walked and _holds_state(value):
            if self._built and not self._open and self.__dict__.get(name) is not value:
                raise ValueError(locked(self, f"attribute '{name}'"))
            if isinstance(value, Variable) and not isinstance(value, Weight) and not self._trainable:
                self._freeze(value)
        if name not in self._passing and (_leads_on(value) or _leads_on(self.__dict__.get(name))):
            _structure["version"] += 1
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        gone = self.__dict__.get(name)
        super().__delattr__(name)
        self._added = tuple(weight for weight in self._added if weight is not gone)
        self._settled = [thing for thing in self._settled if thing is not gone]
        _structure["version"] += 1
        object.__setattr__(self, "_collected", None)  # it may hold what is to go

    def __getattr__(self, name: str) -> Any:
        if "_name" not in self.__dict__ and not name.startswith("__"):
            raise RuntimeError(_forgotten(self))
        return object.__getattribute__(self, name)  # raises once more, in the words of the property if it is one

    def _restore(self, attributes: dict[str, Any]) -> None:
        """Have exactly these attributes again; but a random stream that belongs to no other layer, once found, is kept."""
        stream = None if self._scope else self._stream
        self.__dict__.clear()
        self.__dict__.update(attributes)
        if "_deferred" in attributes:
            self._deferred.taken_back(self)
        if stream is not None:
            self.__dict__["_stream"] = stream
        _structure["version"] += 1
        clock.tick()

    # Finding -----------------------------------------------------------------------------------------------------------

    def _own(self) -> tuple[list[Any], list[Loose]]:
        """What is held directly or in containers, and those of them that may change unseen."""
        found: list[Any] = []
        loose: list[Loose] = []
        seen: set[int] = set()
        for name, value in self.__dict__.items():
            if name not in self._not_walked:
                _visit(value, found, loose, seen)
        found += self._added
        return found, loose

    def _notice_unheld(self, layer: Holder) -> None:
        """Warn of weights that a layer has just made in the `call` of this one, if nothing here holds them."""
        if layer._collect().variables and not any(one is layer for one in self._collect().sublayers):
            warnings.warn(
                f"Layer '{layer.name}' ({type(layer).__name__}) made its weights in the `call` of '{self.name}' "
                f"({type(self).__name__}), which does not hold it: they are not trained, not saved, and new whenever the "
                "layer is made anew. Make it in `__init__` or `build`, and keep it as an attribute.",
                stacklevel=3,
            )

    def _collect(self) -> Contents:
        """All that is held by this layer and by those within it, in the order of the attributes.

        The walk is kept until some layer sets an attribute, or a list or dict on the way has other elements.
        """
        kept = self._collected
        if kept is not None and kept[0] == _structure["version"] and all(itertools.starmap(_has, kept[2])):
            return kept[1]
        contents = Contents([], [], [])
        loose = self._gather(contents, {id(self)})
        contents = Contents(_distinct(contents.variables), contents.sublayers, _distinct(contents.metrics))
        object.__setattr__(self, "_collected", (_structure["version"], contents, loose))
        return contents

    def _gather(self, contents: Contents, seen: set[int]) -> list[Loose]:
        """Add what this layer and those within it hold; the containers that may change unseen."""
        own, loose = self._own()
        if not self._trainable:
            self._freeze_newcomers(own)
        contents.variables.extend(self._in_order(own))
        contents.variables.extend(thing.state for thing in own if isinstance(thing, SeedGenerator))
        contents.metrics.extend(thing for thing in own if isinstance(thing, Metric))
        for thing in own:
            if isinstance(thing, Holder) and id(thing) not in seen:
                seen.add(id(thing))
                contents.sublayers.append(thing)
                loose += thing._gather(contents, seen)
        return loose

    def _in_order(self, own: list[Any]) -> list[Variable]:
        """The Variables among what is held: trainable by nature first, then in the order in which they were made."""
        held = [thing for thing in own if isinstance(thing, Variable)]
        return sorted(held, key=lambda variable: (not self._learns(variable), variable.key))

    def _own_variables(self) -> list[Variable]:
        """The Variables of this layer itself, each once, without random state: what a file holds of it."""
        return _distinct([one for one in self._in_order(self._own()[0]) if not isinstance(one, SeedState)])

    def _learns(self, variable: Variable) -> bool:
        """Trainable by its nature, frozen or not."""
        return variable.learns if isinstance(variable, Weight) else variable._trainable or variable.key in self._frozen

    @property
    def variables(self) -> Any:
        """All Variables: own trainable ones, own others, random state, then those of the sublayers."""
        return list(self._collect().variables)

    @property
    def weights(self) -> list[Any]:
        """The Variables without random state."""
        return [variable for variable in self._collect().variables if not isinstance(variable, SeedState)]

    @property
    def trainable_variables(self) -> Any:
        """The Variables that an optimizer changes."""
        return [variable for variable in self._collect().variables if variable._trainable]

    @property
    def non_trainable_variables(self) -> Any:
        """The Variables that an optimizer leaves alone."""
        return [variable for variable in self._collect().variables if not variable._trainable]

    @property
    def trainable_weights(self) -> list[Any]:
        """The weights that an optimizer changes."""
        return [weight for weight in self.weights if weight._trainable]

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The weights that an optimizer leaves alone."""
        return [weight for weight in self.weights if not weight._trainable]

    @property
    def trainable(self) -> bool:
        """Whether the weights are trained. Setting it reaches all sublayers; nothing has to be compiled again."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        for layer in (self, *self._collect().sublayers):
            layer._set_trainable_alone(value)
            for thing in layer._own()[0]:
                if isinstance(thing, Weight):
                    thing.freeze(not value)
                elif isinstance(thing, Variable) and value and thing.key in layer._frozen:
                    layer._frozen.remove(thing.key)
                    thing.trainable = True
                elif isinstance(thing, Variable) and not value:
                    layer._freeze(thing)

    def _set_trainable_alone(self, value: bool) -> None:
        """Set it for this layer and for what it will hold, but for nothing that it holds now."""
        object.__setattr__(self, "_trainable", bool(value))
        object.__setattr__(self, "_settled", [thing for thing in self._own()[0] if isinstance(thing, (Holder, Variable))])

    def _freeze_newcomers(self, own: list[Any]) -> None:
        """Freeze what has joined this layer since it was frozen."""
        held = [thing for thing in own if isinstance(thing, (Holder, Variable))]
        if len(held) == len(self._settled) and all(map(operator.is_, held, self._settled)):
            return
        settled = {id(thing) for thing in self._settled}
        object.__setattr__(self, "_settled", held)
        for thing in held:
            if id(thing) in settled:
                continue
            if isinstance(thing, Holder):
                thing.trainable = False
            elif not isinstance(thing, Weight):  # a Weight is made frozen, unless somebody wants it otherwise
                self._freeze(thing)

    def _freeze(self, variable: Variable) -> None:
        """Stop training a Variable that was not made by `add_weight`, and remember that it was trained."""
        if variable.trainable:
            self._frozen.add(variable.key)
            variable.trainable = False

    def save_own_variables(self, store: MutableMapping[str, Any]) -> None:
        """Write what this layer itself holds to a mapping, by position: '0', '1' and so on; called when a model is saved.

        Override it, and `load_own_variables`, to keep another state.

        Args:
            store: takes arrays by name.

        >>> import minikeras as tf
        >>> layer, store = tf.keras.layers.Dense(2), {}
        >>> layer.build((None, 3))
        >>> layer.save_own_variables(store)
        >>> [(name, array.shape) for name, array in store.items()]
        [('0', (3, 2)), ('1', (2,))]
        """
        for number, variable in enumerate(self._own_variables()):
            store[str(number)] = variable.numpy()

    def load_own_variables(self, store: Mapping[str, Any]) -> None:
        """Have what `save_own_variables` wrote.

        Raises:
            ValueError: if the numbers of Variables differ; nothing has changed then.
            ShapeError: if a shape differs.
        """
        own = self._own_variables()
        if len(store) != len(own):
            hint = " The layer is not built; call it on data, or give it a `build`." if not self.built else ""
            raise ValueError(
                f"Layer '{self.name}' was expecting {len(own)} variables, but received {len(store)} variables during loading. "
                f"Expected: {[variable.name for variable in own]}.{hint}"
            )
        for number, variable in enumerate(own):
            variable.assign(store[str(number)])

    def count_params(self) -> int:
        """The number of elements of all weights.

        Raises:
            ValueError: if the layer is not built yet.
        """
        if not self.built:
            raise ValueError(f"count_params: layer '{self.name}' is not built; call it on data or build(input_shape) first.")
        return sum(weight.shape.num_elements() for weight in self.weights)

    def get_weights(self) -> list[Any]:
        """The values of the weights as NumPy arrays."""
        return [weight.numpy() for weight in self.weights]

    @explaining
    def set_weights(self, weights: list[Any]) -> None:
        """Assign all weights, in the order of `weights`; nothing changes if a number or shape is wrong."""
        own = self.weights
        if len(weights) != len(own):
            raise ValueError(
                f"You called `set_weights(weights)` on layer '{self.name}' with a weight list of length {len(weights)}, "
                f"but the layer was expecting {len(own)} weights."
            )
        arrays = [weight._convert(value) for weight, value in zip(own, weights, strict=True)]
        for weight, array in zip(own, arrays, strict=True):
            if tuple(array.shape) != tuple(weight.shape):
                raise ValueError(
                    f"Layer {self.name} weight shape {tuple(weight.shape)} ('{getattr(weight, 'path', weight.name)}') is not "
                    f"compatible with provided weight shape {tuple(array.shape)}."
                )
        for weight, array in zip(own, arrays, strict=True):
            weight.assign(Tensor(array))


def _leads_on(value: Any) -> bool:
    """Whether `_visit` would look at a value."""
    return isinstance(value, (Variable, Module, SeedGenerator, Metric, Mapping, list, tuple))


def _visit(value: Any, found: list[Any], loose: list[Loose], seen: set[int]) -> None:
    """Append the state that a value is or holds, and the containers that may change unseen."""
    if isinstance(value, (Variable, Holder, SeedGenerator, Metric)):
        found.append(value)
    elif isinstance(value, (Module, Mapping, list, tuple)):
        if not isinstance(value, tuple):
            if id(value) in seen:  # a list may hold itself
                return
            seen.add(id(value))
            loose.append((value, list(_elements(value))))
        for _, child in children(value):
            _visit(child, found, loose, seen)


def _elements(container: Any) -> Collection[Any]:
    """Attributes of a Module, elements of a list or dict."""
    if isinstance(container, Module):
        return vars(container).values()
    return container.values() if isinstance(container, Mapping) else container


def _has(container: Any, elements: list[Any]) -> bool:
    """Whether these are the elements of a container."""
    now = _elements(container)
    return len(now) == len(elements) and all(map(operator.is_, now, elements))


def _distinct(items: list[Any]) -> list[Any]:
    """The items without repetitions, compared by identity."""
    return list({id(item): item for item in items}.values())


def _holds_state(value: Any) -> bool:
    """True for a Variable, a layer, or a container with one inside."""
    if isinstance(value, (Variable, Holder)):
        return True
    return isinstance(value, (list, tuple, Mapping)) and any(_holds_state(child) for _, child in children(value))


def _forgotten(layer: Any) -> str:
    name = type(layer).__name__
    return f"In layer {name}, you forgot to call `super().__init__()` as the first statement in `__init__()`. Go add it!"


def locked(layer: Any, what: str) -> str:
    return (
        f"You cannot add new elements of state (variables or sub-layers) to a layer that is already built ('{layer.name}', "
        f"{what}). Make them in `__init__` or in `build`."
    )
