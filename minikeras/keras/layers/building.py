"""Building: a layer makes its weights, with the options that it keeps for each.

A layer is built once, within the name scope and random stream of the layer that calls it, and locked afterwards. So names,
paths and first weights follow the structure of the model and not the order in which layers were made.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ...distribute.replica import computing_on
from ...files import limits
from ...functions.creation import zeros
from ...functions.elementwise import cast
from ...functions.operands import static_shape
from ...module import Module, waiting
from ...types import DType
from .. import activations, constraints, initializers, regularizers
from ..calls import context
from ..seeds import SeedGenerator, derived_seed, outermost_seed
from ..symbolic.shapes import map_shapes, shapes_of, shapes_of_first
from ..weight import Weight
from . import inputs
from .weight_discovery import WeightOwner, held_by


class Buildable(WeightOwner, Protocol):
    """A layer, as it is built within a scope of names and a tree of random streams.

    Attributes:
        _stream: the seed of its stream; None until its parent is known. The parent calls it `_label`.
        _labels: the number of seeds of each name that its children have been given.
    """

    _stream: int | None
    _label: str
    _labels: dict[str, int]
    _scope: tuple[str, ...]
    _building: bool
    _built: bool
    _build_shape: Any

    def _restore(self, attributes: dict[str, Any]) -> None: ...


ABSENT = ("lora_rank", "lora_alpha", "quantization_config", "overwrite_with_gradient")


def keep(layer: Module, name: str, initializer: Any, regularizer: Any = None, constraint: Any = None) -> None:
    """Keep the options of the weight of that name, in attributes such as `kernel_initializer`."""
    setattr(layer, f"{name}_initializer", initializers.get(initializer))
    setattr(layer, f"{name}_regularizer", regularizers.get(regularizer))
    setattr(layer, f"{name}_constraint", constraints.get(constraint))


def add(layer: Any, kept: str, shape: tuple[int, ...], autocast: bool = True, name: str | None = None) -> Weight:
    """Make a weight with the options that `keep` kept under a name, which is also that of the weight unless `name` is given."""
    initializer, regularizer, constraint = (
        getattr(layer, f"{kept}_{option}") for option in ("initializer", "regularizer", "constraint")
    )
    return layer.add_weight(
        shape, initializer, autocast=autocast, regularizer=regularizer, constraint=constraint, name=name or kept
    )


def activated(layer: Any, y: Any) -> Any:
    """The activation of a tensor, as `layer.activation` is now: an attribute that may be set at any time."""
    activation = layer.activation
    return y if activation is None or activation is activations.linear else activation(y)


def without_absent(layer: Module, options: dict[str, Any]) -> dict[str, Any]:
    """The options without those of Keras that are deliberately absent here; anything but None for them is an error."""
    for name in ABSENT:
        if options.get(name) is not None:
            raise NotImplementedError(
                f"{type(layer).__name__}: {name} is not available: there is no low-rank adaptation and no quantization here. "
                "Leave it out; to train few weights, freeze layers with layer.trainable = False."
            )
    return {name: value for name, value in options.items() if name not in ABSENT}


def _shapes_of(build: Callable[..., Any]) -> list[inspect.Parameter]:
    """The arguments of a `build` that stand for shapes: not `self`, `*args` or `**kwargs`."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one for one in list(inspect.signature(build).parameters.values())[1:] if one.kind not in variadic]


def within_scope(build: Callable[..., None]) -> Callable[..., None]:
    """`build` within the name scope of its layer; afterwards the layer is built, or as it was if `build` raised."""
    names = [one.name for one in _shapes_of(build)]

    @functools.wraps(build)
    def building(self: Buildable, *arguments: Any, **named: Any) -> None:
        if self._building:  # `super().build()` within the `build` of a subclass
            return build(self, *arguments, **named)
        before = dict(self.__dict__)
        caller = context.caller
        labels = None if caller is None else caller._labels
        if caller is not None or context.names():
            self._scope = (*(() if caller is None else (*caller._scope, caller.name)), *context.names())
        settle_stream(self)
        self._building = True
        context.caller = self
        try:
            with computing_on(None):  # weights are no rows
                build(self, *arguments, **named)
            for thing in held_by(self)[0]:
                if isinstance(thing, SeedGenerator):
                    thing.follow(seed_for(self, "seed_generator"))
        except BaseException:
            self._restore(before)
            if caller is not None:
                caller._labels = labels
            raise
        finally:
            context.caller = caller
        shapes = (*arguments, *named.values())
        self._building, self._built = False, True
        self._build_shape = shapes[0] if len(shapes) == 1 else dict(zip(names, arguments, strict=False)) | named
        for restoration in list(waiting):  # a checkpoint may have values for the new weights
            restoration.revisit()

    return building


def initialized(initializer: Any, shape: Any, kind: DType, name: str, seed: Callable[[], int]) -> Any:
    """The first value of a weight; an initializer of random numbers without a seed is given one."""
    if isinstance(shape, str):
        raise ValueError(f"add_weight: the first argument is the shape, found {shape!r}. Write name={shape!r}.")
    if initializer is None:
        initializer = "glorot_uniform" if kind.is_floating else "zeros"
    sizes = static_shape(shape if shape is not None else ())
    limits.spend_weights(sizes, kind.numpy.itemsize, f"a weight {name!r}")
    make = initializers.get(initializer)
    if isinstance(make, initializers.RandomInitializer) and make._given_seed is None:
        make = copy.copy(make)
        make.seed = seed()
    value = make(sizes, dtype=kind.name)
    same = getattr(value, "dtype", kind) == kind  # NumPy takes a bfloat16 times a Python number to float32
    return value if same else cast(value, kind)


def settle_stream(layer: Buildable) -> None:
    """Find the place of this layer in the tree of random streams: below the layer that calls it, or on its own."""
    if layer._stream is None:
        caller = context.caller
        layer._stream = outermost_seed(layer._label) if caller is None else seed_for(caller, layer._label)


def seed_for(layer: Buildable, label: str) -> int:
    """The next seed of this name below this layer: for a weight, a generator or a sublayer."""
    settle_stream(layer)
    number = layer._labels.get(label, 0)
    layer._labels = {**layer._labels, label: number + 1}
    return derived_seed(layer._stream, label, number)


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
    return (), {name: shapes_of(value) for name, value in told.items() if value is not None}


def build_config(shape: Any) -> dict[str, Any] | None:
    """The shapes that a layer was built for, with None for the batch axis."""
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

    def made(shape: Any) -> Any:
        sizes = [1 if size is None else size for size in shape]
        limits.check_temporary(8 * math.prod(sizes), "an input to build a layer on")
        return zeros(sizes, dtype)

    return map_shapes(made, shapes)
