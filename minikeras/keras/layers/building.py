"""How a layer gets its weights: built once, in the name scope of the layers around it, and locked afterwards.

Key idea: scope and random stream come from the layer that is calling at that moment, so names, paths and first weights follow
the structure of the model and not the order in which layers were made. Next: `layer.py`, which calls.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from ...files import limits
from ...functions.creation import zeros
from ...functions.elementwise import cast
from ...functions.publish import static_shape
from ...module import waiting
from ...types import as_dtype
from .. import constraints, initializers, regularizers
from ..calls import context
from ..names import auto_name
from ..seeds import SeedGenerator, derived_seed, outermost_seed
from ..weight import CastWeight, Weight
from . import inputs
from .contents import Holder, locked


def _shapes_of(build: Callable[..., Any]) -> list[inspect.Parameter]:
    """The arguments of a `build` that stand for shapes: not `self`, `*args` or `**kwargs`."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one for one in list(inspect.signature(build).parameters.values())[1:] if one.kind not in variadic]


def _within_scope(build: Callable[..., None]) -> Callable[..., None]:
    """`build` within the name scope of its layer; afterwards the layer is built, or as it was if `build` raised."""
    names = [one.name for one in _shapes_of(build)]

    @functools.wraps(build)
    def building(self: Builder, *arguments: Any, **named: Any) -> None:
        if self._building:  # `super().build()` within the `build` of a subclass
            return build(self, *arguments, **named)
        before = dict(self.__dict__)
        caller = context.caller
        labels = None if caller is None else caller._labels
        if caller is not None:
            self._scope = (*caller._scope, caller.name)
        self._settle_stream()
        self._building = True
        context.caller = self
        try:
            build(self, *arguments, **named)
            for thing in self._own()[0]:
                if isinstance(thing, SeedGenerator):
                    thing.follow(self._seed_for("seed_generator"))
        except BaseException:
            self._restore(before)
            if caller is not None:
                caller._labels = labels
            raise
        finally:
            context.caller = caller
        told = dict(zip(names, arguments, strict=False)) | named
        self._building, self._built = False, True
        self._build_shape = next(iter(told.values()), None) if len(told) < 2 else told
        for restoration in list(waiting):  # a checkpoint may have values for the new weights
            restoration.revisit()

    return building


class Builder(Holder):
    """The part of `Layer` that makes weights."""

    _building: bool
    _scope: tuple[str, ...]
    _label: str
    _stream: int | None
    _labels: dict[str, int]
    _build_shape: Any
    _call_names: tuple[str, ...] = ()
    _makes_nothing = False
    """Whether it has neither weights nor sublayers, so that there is nothing to build. A subclass may have some."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._makes_nothing = False
        if "build" in cls.__dict__:
            cls.build = _within_scope(cls.build)  # type: ignore[method-assign]

    @property
    def built(self) -> bool:
        """Whether the weights exist: at once if there are none to make."""
        return self._built or self._makes_nothing

    @built.setter
    def built(self, value: bool) -> None:
        self._built = bool(value)

    @property
    def path(self) -> str:
        """The names of the layers around it and its own, joined by '/'."""
        return "/".join((*self._scope, self.name))

    @property
    def variable_dtype(self) -> str:
        """The dtype of weights as they are kept."""
        return self._policy.variable_dtype

    # Weights -----------------------------------------------------------------------------------------------------------

    def add_weight(
        self,
        shape: Any = None,
        initializer: Any = None,
        dtype: Any = None,
        trainable: bool = True,
        autocast: bool = True,
        regularizer: Any = None,
        constraint: Any = None,
        aggregation: str = "none",
        overwrite_with_gradient: bool = False,
        name: str | None = None,
    ) -> Weight:
        """A new weight of this layer.

        Args:
            shape: its shape; () by default.
            initializer: by name or object; Glorot's uniform distribution for floats and zeros for others by default. One
                without a seed of its own draws from the stream of this layer.
            dtype: the layer's by default.
            trainable: whether an optimizer changes it.
            autocast: whether `call` reads it in the compute dtype.
            regularizer: penalty added to the losses while it is trained.
            constraint: projection after each step.
            aggregation, overwrite_with_gradient: accepted for compatibility.
            name: within the layer; 'variable' with a number by default.

        Raises:
            ValueError: if a name is given where the shape belongs, or the layer is built.
        """
        if self._built:
            raise ValueError(locked(self, f"weight {name!r}"))
        if isinstance(shape, str):
            raise ValueError(f"add_weight: the first argument is the shape, found {shape!r}. Write name={shape!r}.")
        kind = as_dtype(dtype or self.variable_dtype)
        if initializer is None:
            initializer = "glorot_uniform" if kind.is_floating else "zeros"
        limits.spend_weights(static_shape(shape if shape is not None else ()), kind.numpy.itemsize, f"a weight {name or ''!r}")
        make = initializers.get(initializer)
        if isinstance(make, initializers.RandomInitializer) and make._given_seed is None:
            make = copy.copy(make)
            make.seed = self._seed_for(name or "variable")
        value = make(static_shape(shape if shape is not None else ()), dtype=kind.name)
        if getattr(value, "dtype", kind) != kind:  # NumPy takes a bfloat16 times a Python number to float32
            value = cast(value, kind)
        name = name or auto_name("variable")
        penalty, projection = regularizers.get(regularizer), constraints.get(constraint)
        cast_on_read = autocast and kind.is_floating and kind != self._dtype
        cls = CastWeight if cast_on_read else Weight
        weight = cls(value, name, f"{self.path}/{name}", trainable, penalty, projection)
        weight.freeze(not self._trainable)
        self._added = (*self._added, weight)
        return weight

    add_variable = add_weight

    _not_walked: tuple[str, ...] = (
        *("_losses", "_collected", "_build_shape", "_scope", "_input_shape_given", "_input_spec", "_accepted", "_labels"),
        *("_added", "_settled", "_given"),
    )

    def _settle_stream(self) -> None:
        """Find the place of this layer in the tree of random streams: below the layer that calls it, or on its own."""
        if self._stream is None:
            caller = context.caller
            self._stream = outermost_seed(self._label) if caller is None else caller._seed_for(self._label)

    def _seed_for(self, label: str) -> int:
        """The next seed of this name below this layer: for a weight, a generator or a sublayer."""
        self._settle_stream()
        number = self._labels.get(label, 0)
        self._labels = {**self._labels, label: number + 1}
        return derived_seed(self._stream, label, number)

    # Building ------------------------------------------------------------------------------------------------------------

    @_within_scope
    def build(self, input_shape: Any) -> None:
        """Make the weights. Override it; the default builds the sublayers, by calling on zeros."""
        if input_shape is not None and any(not layer._built for layer in self._collect().sublayers):
            self.call(_zeros(input_shape, self._dtype))

    @_within_scope
    def _become_built(self, input_shape: Any) -> None:
        """Be built without making anything: the call that follows builds the sublayers."""

    def _build_on_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Build for the inputs of the first call."""
        build = type(self).build
        names = [one.name for one in _shapes_of(build)]
        if build is Builder.build:
            self._become_built(inputs.shapes(args, kwargs))
        elif len(names) < 2:
            told = inputs.shapes(args, kwargs)
            if told is None and args:
                raise ValueError(inputs.called_on_none(self))
            self.build(told)
        else:
            known = [f"{name}_shape" for name in self._call_names]
            needed = [one.name for one in _shapes_of(build) if one.default is inspect.Parameter.empty]
            if wrong := [name for name in needed if name not in known]:
                raise ValueError(
                    f"Layer '{self.name}': `build` takes {names}, and {wrong} are no shapes of what `call` takes. With several "
                    f"arguments each needs the name of one of `call` and '_shape': {known}."
                )
            given = dict(zip(self._call_names, args, strict=False)) | kwargs
            told = {name: given.get(name.removesuffix("_shape")) for name in names}
            self.build(**{name: inputs.shapes_of(value) for name, value in told.items() if value is not None})

    def get_build_config(self) -> dict[str, Any] | None:
        """The shapes that the layer was built for, with None for the batch axis; None if it is not built."""
        if self._build_shape is None:
            return None
        if isinstance(self._build_shape, dict):
            return {"shapes_dict": {name: _any_batch(shape) for name, shape in self._build_shape.items()}}
        return {"input_shape": _any_batch(self._build_shape)}

    def build_from_config(self, config: dict[str, Any] | None) -> None:
        """Build for the shapes of `get_build_config`."""
        if config and not self._built:
            self.build(**config["shapes_dict"]) if "shapes_dict" in config else self.build(config["input_shape"])


def _any_batch(shape: Any) -> Any:
    """A shape, or a nest of them, with None for the batch axis."""
    if isinstance(shape, (list, tuple)) and all(size is None or isinstance(size, int) for size in shape):
        return (None, *shape[1:]) if shape else ()
    return (
        {key: _any_batch(one) for key, one in shape.items()} if isinstance(shape, dict) else [_any_batch(one) for one in shape]
    )


def _zeros(shape: Any, dtype: str) -> Any:
    """Zeros of a shape, or a nest of them; one row where the batch size is open."""
    if isinstance(shape, (list, tuple)) and all(size is None or isinstance(size, int) for size in shape):
        sizes = [1 if size is None else size for size in shape]
        limits.check_temporary(8 * math.prod(sizes), "an input to build a layer on")
        return zeros(sizes, dtype)
    return (
        {key: _zeros(one, dtype) for key, one in shape.items()}
        if isinstance(shape, dict)
        else [_zeros(s, dtype) for s in shape]
    )
