"""The weights of a layer: its Variables and sublayers, found among its attributes, and whether they are trained. What was found
is kept until this layer or one within it sets an attribute, or a list or dict on the way has other elements.

A layer makes its weights when it is built: once, within the name scope and random stream of the layer that calls it, and locked
afterwards. So names, paths and first weights follow the structure of the model and not the order in which layers were made.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import operator
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ...boundary import explaining
from ...core import Tensor, Variable, warn_caller
from ...files import limits
from ...functions import cast, static_shape, zeros
from ...module import Module, Named, attributes, elements, waiting, walk
from ...ranks import computing_on
from ...types import DType, ShapeLike, TensorLike
from .. import activations, initializers
from ..calls import context
from ..metrics import Metric
from ..random import SeedGenerator, SeedState, derived_seed, outermost_seed
from ..symbolic import map_shapes, shapes_of, shapes_of_first
from ..weight import CarriedState, Weight
from . import inputs

_versions = itertools.count(1)
_NO_WEIGHTS = SeedState, CarriedState


class Contents(NamedTuple):
    """The Variables, sublayers and metrics of a layer and its sublayers, each once."""

    variables: list[Variable]
    sublayers: list[Any]
    metrics: list[Metric]


Loose = tuple[Any, list[Any]]
"""A container that may change unseen, and the elements that it had."""


class Structure:
    """The walk that a layer keeps, and whether it is still good.

    Attributes:
        version: another number after each change of what the layer, or one within it, may hold.
        owners: the layers that hold this one, by identity: its changes are changes of theirs.
        kept: version and layer of the last walk, what it found, and the containers on its way that may change unseen.
    """

    __slots__ = ("kept", "owners", "version")

    def __init__(self) -> None:
        self.version = 0
        self.owners: weakref.WeakValueDictionary[int, WeightOwner] = weakref.WeakValueDictionary()
        self.kept: tuple[tuple[int, int], Contents, list[Loose]] | None = None

    def changed(self) -> None:
        """Note a change: the layer, and all layers that hold it, walk again when they are next asked for their contents."""
        waiting, seen = [self], {id(self)}
        while waiting:
            structure = waiting.pop()
            structure.version = next(_versions)
            for reference in structure.owners.valuerefs():  # a copy, while other threads add owners
                owner = reference()
                if owner is not None and id(owner._structure) not in seen:
                    seen.add(id(owner._structure))
                    waiting.append(owner._structure)

    def __reduce__(self) -> tuple[Any, ...]:
        return Structure, ()


class LayerState(NamedTuple):
    """The knowledge of a layer about the state that it holds.

    Attributes:
        added: the weights that `add_weight` made; they count whether or not they are kept in an attribute.
        settled: the state that it held when `trainable` was last set; state that comes later is frozen once, if the layer is.
        frozen: keys of frozen state that is trainable by nature and that `add_weight` did not make.
    """

    added: tuple[Weight, ...] = ()
    settled: tuple[Any, ...] = ()
    frozen: frozenset[int] = frozenset()


class LayerPlace(NamedTuple):
    """The place of a layer among others: in the names of weights, and in the tree of random streams.

    Attributes:
        label: its name in that tree.
        scope: the names of the layers around it.
        stream: the seed of its stream; None until the layer around it is known.
        drawn: the number of seeds of each label that its children have been given.
    """

    label: str
    scope: tuple[str, ...] = ()
    stream: int | None = None
    drawn: dict[str, int] = {}  # replaced, never changed


@runtime_checkable
class WeightOwner(Protocol):
    """A layer, as the search for its state, freezing and building see it: it has these attributes."""

    _structure: Structure
    _trainable: bool
    _layer_state: LayerState
    _layer_place: LayerPlace
    _built: bool
    _build_shape: Any

    @property
    def name(self) -> str: ...
    @property
    def built(self) -> bool: ...
    def _restore(self, attributes: dict[str, Any]) -> None: ...


def is_layer(value: object) -> bool:
    """True if a value is a layer or a model."""
    return bool(getattr(type(value), "_is_layer", False))


def forget(layer: WeightOwner, thing: Any) -> None:
    """Forget a value whose attribute is gone."""
    added, settled, frozen = layer._layer_state
    rest = tuple(one for one in settled if one is not thing)
    layer._layer_state = LayerState(tuple(weight for weight in added if weight is not thing), rest, frozen)
    layer._structure.changed()
    layer._structure.kept = None  # it may hold what is to go


def held_by(layer: WeightOwner) -> tuple[list[Any], list[Loose]]:
    """The state and layers held directly or in containers, and those containers that may change unseen."""
    found: list[Any] = []
    loose: list[Loose] = []
    roots = [(name, value) for name, value in attributes(layer) if may_hold_state(value)]
    for _, value, first in walk(*roots, children=_within, separator="."):
        if _is_state(value):
            found.append(value)
        elif first is None and not isinstance(value, tuple):
            loose.append((value, list(_values(value))))
    found += layer._layer_state.added
    return found, loose


def notice_unheld(caller: WeightOwner, layer: WeightOwner) -> None:
    """Warn of weights that a layer has just made in the `call` of this one, if nothing here holds them."""
    if weights_of(layer) and not any(one is layer for one in collect(caller).sublayers):
        warn_caller(
            f"{inputs.called(layer)} made its weights in the `call` of '{caller.name}' "
            f"({type(caller).__name__}), which does not hold it: they are not trained, not saved, and new whenever the "
            "layer is made anew. Make it in `__init__` or `build`, and keep it as an attribute."
        )


def weights_of(layer: WeightOwner) -> list[Any]:
    """The Variables without random state."""
    return [variable for variable in collect(layer).variables if not isinstance(variable, _NO_WEIGHTS)]


def collect(layer: WeightOwner) -> Contents:
    """All that is held by this layer and by those within it, in the order of the attributes."""
    structure = layer._structure
    kept, now = structure.kept, (structure.version, id(layer))  # a shallow copy of a layer has the same structure
    if kept is not None and kept[0] == now and (not kept[2] or all(_are(_values(one), before) for one, before in kept[2])):
        return kept[1]
    contents = Contents([], [], [])
    loose = gather(layer, contents, {id(layer)})
    contents = Contents(_distinct(contents.variables), contents.sublayers, _distinct(contents.metrics))
    structure.kept = now, contents, loose
    return contents


def gather(layer: WeightOwner, contents: Contents, seen: set[int]) -> list[Loose]:
    """Add what this layer and those within it hold; the containers that may change unseen."""
    own, loose = held_by(layer)
    if not layer._trainable:
        _freeze_newcomers(layer, own)
    contents.variables.extend(in_order(layer, own))
    contents.variables.extend(thing.state for thing in own if isinstance(thing, SeedGenerator))
    contents.metrics.extend(thing for thing in own if isinstance(thing, Metric))
    for thing in own:
        if is_layer(thing):
            thing._structure.owners[id(layer)] = layer
        if is_layer(thing) and id(thing) not in seen:
            seen.add(id(thing))
            contents.sublayers.append(thing)
            loose += gather(thing, contents, seen)
    return loose


def in_order(layer: WeightOwner, own: list[Any]) -> list[Variable]:
    """The Variables among what is held: trainable by nature first, then in the order in which they were made."""
    held = [thing for thing in own if isinstance(thing, Variable)]
    return sorted(held, key=lambda variable: (not learns(layer, variable), variable.key))


def own_variables(layer: WeightOwner) -> list[Variable]:
    """The Variables of this layer itself, each once, without random state: what a file holds of it."""
    return _distinct([one for one in in_order(layer, held_by(layer)[0]) if not isinstance(one, _NO_WEIGHTS)])


def learns(layer: WeightOwner, variable: Variable) -> bool:
    """Trainable by its nature, frozen or not."""
    return variable.learns if isinstance(variable, Weight) else variable._trainable or variable.key in layer._layer_state.frozen


def set_trainable(layer: WeightOwner, value: bool) -> None:
    """Make the weights of a layer and of all within it trainable, or freeze them; nothing has to be compiled again."""
    for one in (layer, *collect(layer).sublayers):
        set_trainable_alone(one, value)
        for thing in held_by(one)[0]:
            if isinstance(thing, Weight):
                thing.freeze(not value)
            elif isinstance(thing, Variable) and value and thing.key in one._layer_state.frozen:
                _note(one, frozen=one._layer_state.frozen - {thing.key})
                thing.trainable = True
            elif isinstance(thing, Variable) and not value:
                freeze(one, thing)


def set_trainable_alone(layer: WeightOwner, value: bool) -> None:
    """Set `trainable` for this layer and for what it will hold, not for what it holds now."""
    object.__setattr__(layer, "_trainable", bool(value))
    _note(layer, settled=tuple([thing for thing in held_by(layer)[0] if isinstance(thing, Variable) or is_layer(thing)]))


def _note(layer: WeightOwner, **changes: Any) -> None:
    """Change what a layer knows of its state: what it holds, and so the structure, stays."""
    object.__setattr__(layer, "_layer_state", layer._layer_state._replace(**changes))


def _freeze_newcomers(layer: WeightOwner, own: list[Any]) -> None:
    """Freeze what has joined this layer since it was frozen."""
    held = tuple([thing for thing in own if isinstance(thing, Variable) or is_layer(thing)])
    if _are(held, layer._layer_state.settled):
        return
    settled = {id(thing) for thing in layer._layer_state.settled}
    _note(layer, settled=held)
    for thing in held:
        if id(thing) in settled:
            continue
        if is_layer(thing):
            thing.trainable = False
        elif not isinstance(thing, Weight):  # a Weight is made frozen, unless the user sets it otherwise
            freeze(layer, thing)


def freeze(layer: WeightOwner, variable: Variable) -> None:
    """Stop training a Variable that was not made by `add_weight`, and remember that it was trained."""
    if variable.trainable:
        _note(layer, frozen=layer._layer_state.frozen | {variable.key})
        variable.trainable = False


def load_own_variables(layer: WeightOwner, store: Mapping[str, Any]) -> None:
    """Read what `save_own_variables` wrote.

    Raises:
        ValueError: if the numbers of Variables differ; nothing has changed then.
        ShapeError: if a shape differs.
    """
    held = own_variables(layer)
    if len(store) != len(held):
        hint = " The layer is not built; call it on data, or give it a `build`." if not layer.built else ""
        raise ValueError(
            f"Layer '{layer.name}' was expecting {len(held)} variables, but received {len(store)} variables during loading. "
            f"Expected: {[variable.name for variable in held]}.{hint}"
        )
    for number, variable in enumerate(held):
        variable.assign(store[str(number)])


@explaining
def set_weights(layer: WeightOwner, weights: list[Any]) -> None:
    """Assign all weights, in the order of `weights`; nothing changes if a number or shape is wrong."""
    held = weights_of(layer)
    if len(weights) != len(held):
        raise ValueError(
            f"You called `set_weights(weights)` on layer '{layer.name}' with a weight list of length {len(weights)}, "
            f"but the layer was expecting {len(held)} weights."
        )
    arrays = [weight.convert(value) for weight, value in zip(held, weights, strict=True)]
    for weight, array in zip(held, arrays, strict=True):
        if tuple(array.shape) != tuple(weight.shape):
            raise ValueError(
                f"Layer {layer.name} weight shape {tuple(weight.shape)} ('{getattr(weight, 'path', weight.name)}') is not "
                f"compatible with provided weight shape {tuple(array.shape)}."
            )
    for weight, array in zip(held, arrays, strict=True):
        weight.assign(Tensor(array))


def may_hold_state(value: object) -> bool:
    """True if a value is state, or may lead to some."""
    return isinstance(value, (Variable, Module, SeedGenerator, Metric, Mapping, list, tuple))


def _is_state(value: object) -> bool:
    """True if a value is state or a layer. What such a value holds in its turn is not searched."""
    return isinstance(value, (Variable, SeedGenerator, Metric)) or is_layer(value)


def _within(value: Any) -> Named:
    """The children of a container, or of a Module that is no layer, that are state or may lead to some."""
    if _is_state(value):
        return ()
    held = attributes(value) if isinstance(value, Module) else elements(value)
    return [(name, child) for name, child in held if may_hold_state(child)]


def _values(container: Any) -> Collection[Any]:
    if isinstance(container, Module):
        return vars(container).values()
    return container.values() if isinstance(container, Mapping) else container


def _are(things: Collection[Any], others: Collection[Any]) -> bool:
    return len(things) == len(others) and all(map(operator.is_, things, others))


def _distinct(items: list[Any]) -> list[Any]:
    return list({id(item): item for item in items}.values())


def holds_state(value: object) -> bool:
    """True for a Variable, a layer, or a container with one inside."""
    if isinstance(value, Variable) or is_layer(value):
        return True
    return isinstance(value, (list, tuple, Mapping)) and any(holds_state(child) for _, child in elements(value))


def locked(name: str, what: str) -> str:
    return (
        f"You cannot add new elements of state (variables or sub-layers) to a layer that is already built ('{name}', "
        f"{what}). Make them in `__init__` or in `build`."
    )


# Building --------------------------------------------------------------------------------------------------------------


ABSENT = ("lora_rank", "lora_alpha", "quantization_config", "overwrite_with_gradient")


def refuse_absent(layer: Module, options: dict[str, Any]) -> None:
    """Take out the options of Keras that are deliberately absent here; anything but None for them is an error."""
    for name in ABSENT:
        if options.pop(name, None) is not None:
            raise NotImplementedError(
                f"{type(layer).__name__}: {name} is not available: there is no low-rank adaptation and no quantization here. "
                "Leave it out; to train few weights, freeze layers with layer.trainable = False."
            )


def activated(activation: Callable[..., Any] | None, y: TensorLike) -> Any:
    """The activation of a tensor. A `call` gives `self.activation`, so that compiled steps know that it is read."""
    return y if activation is None or activation is activations.linear else activation(y)


def _shapes_of(build: Callable[..., Any]) -> list[inspect.Parameter]:
    """The arguments of a `build` that stand for shapes: not `self`, `*args` or `**kwargs`."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one for one in list(inspect.signature(build).parameters.values())[1:] if one.kind not in variadic]


def within_scope(build: Callable[..., None]) -> Callable[..., None]:
    """`build` within the name scope of its layer; afterwards the layer is built, or as it was if `build` raised."""
    names = [one.name for one in _shapes_of(build)]

    @functools.wraps(build)
    def building(self: WeightOwner, *arguments: Any, **named: Any) -> None:
        if context.built is self:  # `super().build()` within the `build` of a subclass
            return build(self, *arguments, **named)
        before = dict(self.__dict__)
        caller, outer = context.caller, context.built
        drawn = None if caller is None else caller._layer_place.drawn
        if caller is not None or context.names():
            around = () if caller is None else (*caller._layer_place.scope, caller.name)
            self._layer_place = self._layer_place._replace(scope=(*around, *context.names()))
        settle_stream(self)
        context.caller = context.built = self
        try:
            with computing_on(None):  # weights are no rows
                build(self, *arguments, **named)
            for thing in held_by(self)[0]:
                if isinstance(thing, SeedGenerator):
                    thing.follow(seed_for(self, "seed_generator"))
        except BaseException:
            self._restore(before)
            if caller is not None:
                caller._layer_place = caller._layer_place._replace(drawn=drawn)
            raise
        finally:
            context.caller, context.built = caller, outer
        shapes = (*arguments, *named.values())
        self._built = True
        self._build_shape = shapes[0] if len(shapes) == 1 else dict(zip(names, arguments, strict=False)) | named
        for restoration in list(waiting):  # a checkpoint may have values for the new weights
            restoration.revisit()

    return building


def initialized(initializer: Any, shape: ShapeLike, kind: DType, name: str, seed: Callable[[], int]) -> Any:
    """The first value of a weight; an initializer of random numbers without a seed is given one."""
    if isinstance(shape, str):
        raise ValueError(f"add_weight: the first argument is the shape, found {shape!r}. Write name={shape!r}.")
    if initializer is None:
        initializer = "glorot_uniform" if kind.is_floating else "zeros"
    sizes = static_shape(shape if shape is not None else ())
    limits.spend_weights(sizes, kind.numpy.itemsize, f"a weight {name!r}")
    make = initializers.get(initializer)
    if isinstance(make, initializers.RandomInitializer):
        make = make._seeded(seed)
    value = make(sizes, dtype=kind.name)
    same = getattr(value, "dtype", kind) == kind  # NumPy takes a bfloat16 times a Python number to float32
    return value if same else cast(value, kind)


def settle_stream(layer: WeightOwner) -> None:
    """Find the place of this layer in the tree of random streams: below the layer that calls it, or on its own."""
    if layer._layer_place.stream is None:
        caller, label = context.caller, layer._layer_place.label
        seed = outermost_seed(label) if caller is None else seed_for(caller, label)
        layer._layer_place = layer._layer_place._replace(stream=seed)


def seed_for(layer: WeightOwner, label: str) -> int:
    """The next seed of this name below this layer: for a weight, a generator or a sublayer."""
    settle_stream(layer)
    origin = layer._layer_place
    number = origin.drawn.get(label, 0)
    layer._layer_place = origin._replace(drawn={**origin.drawn, label: number + 1})
    return derived_seed(origin.stream, label, number)


def build_arguments(
    layer: Module, build: Callable[..., Any], call_names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a layer's `build` at its first call: shapes of the arguments that `call` takes under these names."""
    parameters = _shapes_of(build)
    names = [one.name for one in parameters]
    if len(inspect.signature(build).parameters) == 1:  # self
        return (), {}
    if len(names) < 2:
        told = shapes_of_first(args, kwargs)
        if told is None and args:
            raise ValueError(inputs.called_on_none(layer))
        return (told,), {}
    known = [f"{name}_shape" for name in call_names]
    needed = [one.name for one in parameters if one.default is inspect.Parameter.empty]
    if wrong := [name for name in needed if name not in known]:
        raise ValueError(
            f"Layer '{layer.name}': `build` takes {names}, and {wrong} are no shapes of what `call` takes. With several "
            f"arguments each needs the name of one of `call` and '_shape': {known}."
        )
    given = dict(zip(call_names, args, strict=False)) | kwargs
    told = {name: given.get(name.removesuffix("_shape")) for name in names}
    if missing := [name.removesuffix("_shape") for name in needed if told[name] is None]:
        raise TypeError(f"{inputs.called(layer)}: the call takes {list(call_names)}, and lacks {missing}.")
    return (), {name: shapes_of(value) for name, value in told.items() if value is not None}


def get_build_config(layer: WeightOwner) -> dict[str, Any] | None:
    """The shapes that the layer was built for, with None for the batch axis; None if it is not built."""
    shape = layer._build_shape
    if shape is None:
        return None
    if isinstance(shape, dict):
        return {"shapes_dict": {name: _any_batch(one) for name, one in shape.items()}}
    return {"input_shape": _any_batch(shape)}


def _any_batch(shapes: Any) -> Any:
    """A shape, or a nest of them, with None for the batch axis."""
    return map_shapes(lambda shape: (None, *shape[1:]) if shape else (), shapes)


def zero_inputs(shapes: Any, dtype: str) -> Any:
    """Zeros of a shape, or a nest of them; one row where the batch size is open."""

    def made(shape: ShapeLike) -> Any:
        sizes = [1 if size is None else size for size in shape]
        limits.check_temporary(8 * math.prod(sizes), "an input to build a layer on")
        return zeros(sizes, dtype)

    return map_shapes(made, shapes)
