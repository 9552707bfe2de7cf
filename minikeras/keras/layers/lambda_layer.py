"""Lambda: a function as a layer."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

from ... import nest
from ...errors import UnknownObjectError
from ...types import as_dtype
from ..saving import registry
from ..saving.objects import deserialize_keras_object
from ..symbolic.keras_tensor import Spec
from ..symbolic.shapes import map_shapes, shapes_of
from .layer import Layer


class Lambda(Layer, described=True):
    """A function as a layer, for what has no weights.

    Args:
        function: called with the inputs, with `arguments`, and with `mask` and `training` if it takes arguments of these names.
        output_shape: the shape of the output without the batch axis, or a function of the input's shape; found by a trial if
            None.
        mask: the mask of the output, or a function of inputs and mask that gives it; None for no mask.
        arguments: further arguments by name, as a dict.
        options: `name`, `dtype`, as in `Layer`.

    A Python lambda is code, which no file holds: a model with one is saved with a mark in its place, and loaded with
    `custom_objects={"__lambda__": function}`. A named function is saved by its name, and found if it was registered with
    `keras.saving.register_keras_serializable` or is in `custom_objects`. Variables that the function uses are not those of the
    layer: write a subclass of `Layer` for them.

    >>> print(tf.keras.layers.Lambda(lambda x, power: x**power, arguments={"power": 2})([3.0]).numpy())
    [9.]
    """

    def __init__(
        self, function: Callable[..., Any], output_shape: Any = None, mask: Any = None, arguments: Any = None, **options: Any
    ) -> None:
        super().__init__(**options)
        if not callable(function):
            raise TypeError(f"Lambda: expected a function, found {function!r:.80}.")
        if output_shape is not None and not callable(output_shape) and not isinstance(output_shape, (list, tuple, dict)):
            raise TypeError(f"Lambda: output_shape must be a tuple, a function or None, found {output_shape!r:.80}.")
        self.function, self.mask, self.arguments = function, mask, dict(arguments or {})
        self._output_shape = output_shape
        self.supports_masking = mask is not None
        try:
            taken = list(inspect.signature(function).parameters)
        except ValueError:  # some builtin functions have none
            taken = []
        self._named = [name for name in ("mask", "training") if name in taken]

    def call(self, inputs: Any, mask: Any = None, training: bool | None = None) -> Any:
        known = {"mask": mask, "training": training}
        return self.function(inputs, **self.arguments, **{name: known[name] for name in self._named})

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """What `mask` is or gives."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        """What `output_shape` is or gives."""
        if self._output_shape is None:
            return super().compute_output_shape(input_shape)
        if callable(self._output_shape):
            return self._output_shape(input_shape)
        batch = nest.flatten(input_shape)[0]
        return map_shapes(lambda shape: (batch, *shape), self._output_shape)

    def output_spec(self, x: Any) -> Spec | None:
        """What comes out where `output_shape` says so; the function is not tried then."""
        shape = None if self._output_shape is None else self.compute_output_shape(shapes_of(x))
        return Spec(tuple(shape), as_dtype(self.compute_dtype)) if shape and not isinstance(shape[0], (list, tuple)) else None

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments; functions as they are."""
        own = {"function": self.function, "output_shape": self._output_shape, "mask": self.mask, "arguments": self.arguments}
        return {"name": self.name, "trainable": self._trainable, "dtype": self._policy.name, **own}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None, safe_mode: bool | None = None) -> Lambda:
        """A Lambda from `get_config`; `safe_mode` makes no difference: no code of a configuration is ever run."""
        if not isinstance(config["function"], dict) and not callable(config["function"]):
            raise UnknownObjectError(registry.unknown("Lambda", "keras.layers"))  # code, as Keras 2 wrote it
        read = {name: _read(config.get(name), custom_objects) for name in ("function", "output_shape", "mask")}
        read["arguments"] = deserialize_keras_object(config.get("arguments"), custom_objects)
        return cls(**{**config, **read})


def _read(value: Any, custom_objects: Any) -> Any:
    """A function or value of a configuration; functions that it names are those of the user, known by name, and activations."""
    if not isinstance(value, dict):
        return tuple(value) if isinstance(value, list) else value
    found = deserialize_keras_object(value, custom_objects)
    place = registry.place_of(found) if isinstance(found, types.FunctionType) else None
    if place is not None and place[0] != "keras.activations":
        raise UnknownObjectError(f"Lambda: {'.'.join(place)} is no function that a file may name; register one of your own.")
    return found
