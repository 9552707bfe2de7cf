"""Layers around functions and around layers: for each step of a series, with a kernel of bounded norm, and several in turn."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

from ... import nest
from ...core import Tensor, Variable
from ...errors import LoadError, ShapeError, UnknownObjectError
from ...functions import cast, l2_normalize, matmul, reduce_all, reshape, stack, where
from ...types import ShapeLike, TensorLike, as_dtype
from ..initializers import TruncatedNormal
from ..saving import registry
from ..saving.objects import deserialize_keras_object, serialize_keras_object
from ..symbolic import KerasTensor, Spec, map_shapes, shapes_of
from .batch_normalization import BatchNormalization
from .inputs import InputSpec, called, marked
from .layer import Layer
from .options import Kept


class Lambda(Layer, described=True):
    """A function as a layer, for what has no weights.

    Args:
        function: called with the inputs, with `arguments`, and with `mask` and `training` if it takes arguments of these names.
        output_shape: the shape of the output without the batch axis, or a function of the input's shape; found by a trial if
            None.
        mask: the mask of the output, or a function of inputs and mask that gives it; None for no mask.
        arguments: further arguments by name, as a dict.

    A Python lambda is code, which no file holds: a model with one is saved with a mark in its place, and loaded with
    `custom_objects={"__lambda__": function}`. A named function is saved by its name, and found if it was registered with
    `keras.saving.register_keras_serializable` or is in `custom_objects`. Variables that the function uses are not those of the
    layer: write a subclass of `Layer` for them.

    >>> print(tf.keras.layers.Lambda(lambda x, power: x**power, arguments={"power": 2})([3.0]).numpy())
    [9.]
    """

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: ShapeLike = None,
        mask: TensorLike = None,
        arguments: Any = None,
        **options: Any,
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

    def call(self, inputs: TensorLike, mask: TensorLike = None, training: bool | None = None) -> Any:
        known = {"mask": mask, "training": training}
        return self.function(inputs, **self.arguments, **{name: known[name] for name in self._named})

    def compute_mask(self, inputs: TensorLike, mask: TensorLike = None) -> Any:
        """The option `mask`, or its result if it is a function."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def compute_output_shape(self, input_shape: ShapeLike) -> Any:
        """The shape that the option `output_shape` gives, with the batch axis; else the shape that a trial finds."""
        if self._output_shape is None:
            return super().compute_output_shape(input_shape)
        if callable(self._output_shape):
            return self._output_shape(input_shape)
        batch = nest.flatten(input_shape)[0]
        return map_shapes(lambda shape: (batch, *shape), self._output_shape)

    def output_spec(self, x: TensorLike) -> Spec | None:
        """The spec of the output if `output_shape` gives it; the function is not tried then."""
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


class LayerOfLayers(Layer):
    """Base of layers that are made of others, built with them so that their weights have its path, and saved within them."""

    _made_of: tuple[str, ...]
    """Names of the arguments that are layers, or lists of them."""

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        for name in self._made_of:
            config[name] = serialize_keras_object(getattr(self, name))
            for one in config[name] if isinstance(config[name], list) else [config[name]]:
                one.pop("build_config", None)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        given = {name: config[name] for name in cls._made_of if config.get(name) is not None}
        return cls(**{**config, **{name: deserialize_keras_object(one, custom_objects) for name, one in given.items()}})


class Wrapper(LayerOfLayers, described=True):
    """Base of layers around another one, which is built with it and saved within it.

    Args:
        layer: the layer, in the attribute `layer`.

    >>> class Twice(tf.keras.layers.Wrapper):
    ...     def call(self, x):
    ...         return self.layer(self.layer(x))
    >>> Twice(tf.keras.layers.Rescaling(3.0))([1.0]).numpy()
    array([9.], dtype=float32)
    """

    _made_of = ("layer",)

    def __init__(self, layer: Any, **options: Any) -> None:
        if not isinstance(layer, Layer):
            raise ValueError(f"{type(self).__name__} needs a keras.layers.Layer object, found {layer!r:.80}.")
        super().__init__(**options)
        self.layer = layer
        self.gives_floats = layer.gives_floats

    def build(self, input_shape: ShapeLike = None) -> None:
        if not self.layer.built:
            self.layer.build(input_shape)


class TimeDistributed(Wrapper, described=True, takes_one_tensor=True):
    """A layer on each step of a series, with the same weights.

    Args:
        layer: what works on (batch, ...).

    Shapes: input (batch, steps, ...), output (batch, steps, ...) with what the layer gives for each step. A mask (batch, steps)
    is handed to a layer that takes one, step by step, and passed on.

    >>> layer = tf.keras.layers.TimeDistributed(tf.keras.layers.Conv1D(4, 2))
    >>> layer(tf.ones([5, 3, 8, 2])).shape
    TensorShape([5, 3, 7, 4])
    """

    supports_masking = True

    def build(self, input_shape: ShapeLike = None) -> None:
        super().build(self._step(input_shape))

    def call(self, inputs: Tensor, training: bool | None = None, mask: TensorLike = None) -> Tensor:
        batch, steps, *rest = self._checked(tuple(inputs.shape), mask)
        layer = self.layer
        joins_rows = isinstance(layer, (BatchNormalization, Lambda)) or layer.activity_regularizer is not None
        if layer.is_described and not joins_rows and not layer.collect_contents().sublayers:  # then all steps may be one batch
            flat = {} if mask is None else {"mask": reshape(mask, (batch * steps, *mask.shape[2:]))}
            y = self._on_step(reshape(inputs, (batch * steps, *rest)), training, flat)
            return reshape(y, (batch, steps, *y.shape[1:]))
        masks = [{} if mask is None else {"mask": mask[:, step]} for step in range(steps)]
        return stack([self._on_step(inputs[:, step], training, masks[step]) for step in range(steps)], 1)

    def output_spec(self, x: KerasTensor) -> Spec:
        """The spec of the output, by the rule of the layer: a trial would call it for each of many steps."""
        floating = x.dtype.is_floating or self.gives_floats
        return Spec(self.compute_output_shape(x.shape), as_dtype(self.compute_dtype) if floating else x.dtype)

    def _on_step(self, x: Tensor, training: bool | None, mask: dict[str, Any]) -> Tensor:
        given = mask if self.layer.call_spec.takes_mask else {}
        y = self.layer(x, training=training, **given)
        return cast(y, self.compute_dtype) if y.dtype.is_floating else y

    def _checked(self, shape: tuple[Any, ...], mask: TensorLike = None) -> tuple[Any, ...]:
        if len(shape) < 3:
            raise ShapeError(f"{called(self)} should be passed an `input_shape` with at least 3 dimensions, found {shape}.")
        if mask is not None and tuple(mask.shape[:2]) != shape[:2]:
            raise ShapeError(
                f"{called(self)}: the mask must begin with the batch and the steps of the input, found mask "
                f"{tuple(mask.shape)} and input {shape}."
            )
        return shape

    def _step(self, shape: ShapeLike) -> tuple[Any, ...]:
        batch, _, *rest = self._checked(tuple(shape))
        return (batch, *rest)

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """The output's of the layer, with the steps behind the batch."""
        batch, *rest = self.layer.compute_output_shape(self._step(input_shape))
        return (batch, input_shape[1], *rest)


class SpectralNormalization(Wrapper, described=True):
    """A layer whose kernel is divided by its largest singular value in each call in training.

    Args:
        layer: with a `kernel` or `embeddings`, taken as a matrix with the columns of its last axis.
        power_iterations: how often the singular vector, kept as the weight `vector_u`, is improved in a call.

    The kernel itself is assigned, as in Keras with TensorFlow: gradients are those of the new one.

    Source: Miyato et al. (2018), algorithm 1.

    >>> layer = tf.keras.layers.SpectralNormalization(tf.keras.layers.Dense(2, use_bias=False), power_iterations=20)
    >>> y = layer(tf.ones([1, 3]), training=True)
    >>> bool(abs(tf.norm(layer.layer.kernel, 2, axis=[0, 1]) - 1.0) < 1e-3)
    True
    """

    def __init__(self, layer: Any, power_iterations: Kept[int] = 1, **options: Any) -> None:
        super().__init__(layer, **options)
        if isinstance(power_iterations, bool) or not isinstance(power_iterations, int) or power_iterations < 1:
            raise ValueError(f"`power_iterations` should be an int greater than zero. Received: {power_iterations!r}.")

    def build(self, input_shape: ShapeLike = None) -> None:
        super().build(input_shape)
        self.input_spec = InputSpec(min_ndim=1, axes={-1: input_shape[-1]})
        found = [getattr(self.layer, name, None) for name in ("kernel", "embeddings")]
        self.kernel: Any = found[1] if found[0] is None else found[0]
        if self.kernel is None:
            raise ValueError(f"SpectralNormalization: {type(self.layer).__name__} has neither `kernel` nor `embeddings`.")
        columns = self.kernel.shape[-1]
        first = TruncatedNormal(stddev=0.02)
        self.vector_u = self.add_weight((1, columns), first, self.kernel.dtype, trainable=False, name="vector_u")

    def call(self, inputs: Tensor, training: bool | None = False) -> Tensor:
        if training:
            self._normalize()
        y = self.layer(inputs)
        return cast(y, inputs.dtype) if inputs.dtype.is_floating else y

    def _normalize(self) -> None:
        """Assign the kernel divided by its norm, and the better vector; a kernel of zeros stays."""
        # In their own dtype, whatever that of the call is: in 16 bits a kernel would lose what small steps have added.
        kernel, before = Variable.read_value(self.kernel), Variable.read_value(self.vector_u)
        u = before
        matrix = reshape(kernel, (-1, kernel.shape[-1]))
        for _ in range(self.power_iterations):
            v = l2_normalize(matmul(u, matrix, transpose_b=True))
            u = l2_normalize(matmul(v, matrix))
        norm = matmul(matmul(v, matrix), u, transpose_b=True)
        is_zero = reduce_all(kernel == 0.0)
        self.vector_u.assign(where(is_zero, before, u))
        self.kernel.assign(where(is_zero, kernel, kernel / where(is_zero, 1.0, norm[0, 0])))

    def compute_output_shape(self, input_shape: ShapeLike) -> Any:
        """The layer's."""
        return self.layer.compute_output_shape(input_shape)


class Pipeline(Layer, described=True):
    """Layers in turn, as a layer that is no model; in training unless the call says otherwise.

    Args:
        layers: a list of layers.
        name: as in `Layer`.

    >>> twice = tf.keras.layers.Pipeline([tf.keras.layers.Rescaling(2.0), tf.keras.layers.Rescaling(3.0)])
    >>> print(twice([1.0]).numpy())
    [6.]
    """

    def __init__(self, layers: Any, name: str | None = None) -> None:
        super().__init__(name=name)
        self._pipeline_layers = list(layers)

    @property
    def layers(self) -> list[Layer]:
        """The layers."""
        return self._pipeline_layers

    def call(self, inputs: TensorLike, training: bool | None = True, mask: TensorLike = None) -> Any:
        inputs = marked(inputs, mask)
        for layer in self._pipeline_layers:
            inputs = layer(inputs, training=training)
        return inputs  # with the mask that the last layer has left

    def compute_output_shape(self, input_shape: ShapeLike) -> Any:
        """The last layer's."""
        for layer in self._pipeline_layers:
            input_shape = layer.compute_output_shape(input_shape)
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {"layers": serialize_keras_object(self._pipeline_layers), "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Pipeline:
        if not isinstance(config.get("layers"), list):
            raise LoadError(f"Pipeline: the configuration needs a list of layers, found {config!r:.100}.")
        return cls(**{**config, "layers": deserialize_keras_object(config["layers"])})
