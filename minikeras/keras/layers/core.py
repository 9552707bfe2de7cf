"""Dense, Activation and Flatten.

Next: `normalization.py` and `regularization.py`.
"""

from __future__ import annotations

import math
from typing import Any

from ...core import Tensor
from ...errors import ShapeError
from ...ops.arithmetic import cast
from ...ops.contractions import affine, matrix_product
from ...ops.shaping import reshape
from .. import activations, constraints, initializers, regularizers
from .layer import Layer, described


class Dense(Layer):
    """A fully connected layer: activation(x @ kernel + bias).

    Args:
        units: number of outputs, a positive int.
        activation: by name or as a function of a Tensor; None for none.
        use_bias: whether there is a bias.
        kernel_initializer, bias_initializer: first values, by name or object.
        kernel_regularizer, bias_regularizer, activity_regularizer: penalties added to the losses.
        kernel_constraint, bias_constraint: projections after each step.
        options: `name`, `dtype`, `trainable`, as in `Layer`.

    Shapes: input (batch, ..., features), output (batch, ..., units); kernel (features, units), bias (units,).

    Raises:
        ValueError: if `units` is no positive int.
        ShapeError: if the last axis of an input is not the one it was built for.

    >>> import minikeras as tf
    >>> layer = tf.keras.layers.Dense(3, activation="relu")
    >>> layer(tf.ones([2, 4])).shape
    TensorShape([2, 3])
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **options)
        if not isinstance(units, int) or isinstance(units, bool) or units <= 0:
            raise ValueError(f"Received an invalid value for `units`, expected a positive integer. Received: units={units!r}.")
        self.units = units
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        self.kernel: Any = None
        self.bias: Any = None
        self._activate = None if self.activation is activations.linear else self.activation

    def build(self, input_shape: Any) -> None:
        if len(input_shape) < 2 or input_shape[-1] is None:
            raise ShapeError(
                f"Layer '{self.name}' (Dense) needs inputs with at least two axes (batch, features), found shape "
                f"{tuple(input_shape)}. Add the missing axis, for example tf.expand_dims(x, 0) for a single row."
            )
        self.kernel = self.add_weight(
            (input_shape[-1], self.units),
            self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            name="kernel",
        )
        if self.use_bias:
            self.bias = self.add_weight(
                (self.units,),
                self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
                name="bias",
            )

    def call(self, inputs: Tensor) -> Tensor:
        shape = inputs._array.shape
        kernel = self.kernel.read_value()
        if len(shape) < 2 or shape[-1] != kernel._array.shape[0]:
            raise ShapeError(self._mismatch(shape))
        x = inputs if inputs._array.dtype.kind == "f" else cast(inputs, dtype=self.dtype)
        rows = x if len(shape) == 2 else reshape(x, shape=(math.prod(shape[:-1]), shape[-1]), rank=len(shape))
        y = affine(rows, kernel, self.bias.read_value()) if self.use_bias else matrix_product(rows, kernel)
        if len(shape) != 2:
            y = reshape(y, shape=(*shape[:-1], self.units), rank=2)
        return y if self._activate is None else self._activate(y)

    def _mismatch(self, shape: tuple[int, ...]) -> str:
        features = self.kernel.shape[0]
        hint = f" A single row needs the batch axis: shape (1, {features})." if shape == (features,) else ""
        return (
            f"Layer '{self.name}' ({self.path}) was built for {features} features (weight '{self.kernel.path}' has shape "
            f"{tuple(self.kernel.shape)}); it expected inputs of shape (batch, ..., {features}) and found {tuple(shape)}.{hint}"
        )

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """(batch, ..., units)."""
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        own = {
            "units": self.units,
            "activation": activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": described(self.kernel_initializer),
            "bias_initializer": described(self.bias_initializer),
            "kernel_regularizer": described(self.kernel_regularizer),
            "bias_regularizer": described(self.bias_regularizer),
            "kernel_constraint": described(self.kernel_constraint),
            "bias_constraint": described(self.bias_constraint),
        }
        return {**super().get_config(), **own}


class Activation(Layer):
    """An activation function as a layer.

    Args:
        activation: by name or as a function of a Tensor.
        options: `name`, `dtype`, as in `Layer`.

    >>> import minikeras as tf
    >>> print(tf.keras.layers.Activation("relu")([-1.0, 2.0]).numpy())
    [0. 2.]
    """

    def __init__(self, activation: Any, **options: Any) -> None:
        super().__init__(**options)
        self.activation = activations.get(activation)

    def call(self, inputs: Tensor) -> Tensor:
        return self.activation(inputs)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """The input's."""
        return tuple(input_shape)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "activation": activations.serialize(self.activation)}


class Flatten(Layer):
    """All axes but the batch axis as one; a batch of scalars becomes (batch, 1).

    Args:
        data_format: 'channels_last' (default) or 'channels_first', which moves the channels behind first.
        options: `name`, `dtype`, as in `Layer`.

    >>> import minikeras as tf
    >>> tf.keras.layers.Flatten()(tf.ones([2, 3, 4])).shape
    TensorShape([2, 12])
    """

    def __init__(self, data_format: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        if data_format not in (None, "channels_last", "channels_first"):
            raise ValueError(f"Flatten: data_format must be 'channels_last' or 'channels_first', found {data_format!r}.")
        self.data_format = data_format or "channels_last"

    def call(self, inputs: Tensor) -> Tensor:
        from ...functions.shaping import transpose

        shape = inputs._array.shape
        if not shape:
            raise ShapeError(f"Layer '{self.name}' (Flatten) needs a batch axis, found a scalar.")
        x = inputs
        if self.data_format == "channels_first" and len(shape) > 2:
            x = transpose(inputs, [0, *range(2, len(shape)), 1])
        return reshape(x, shape=(shape[0], math.prod(shape[1:])), rank=len(shape))  # type: ignore[no-any-return]

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """(batch, product of the others)."""
        rest = input_shape[1:]
        return (input_shape[0], None if None in rest else math.prod(rest))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "data_format": self.data_format}


class InputLayer(Layer):
    """The shape and dtype of the data at the entrance of a model; `keras.Input` makes one.

    >>> import minikeras as tf
    >>> model = tf.keras.Sequential([tf.keras.Input(shape=(4,)), tf.keras.layers.Dense(2)])
    >>> model.built, model.count_params()
    (True, 10)
    """

    def __init__(
        self,
        shape: Any = None,
        batch_size: int | None = None,
        dtype: Any = None,
        batch_shape: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(dtype=dtype, **options)
        if batch_shape is None:
            if shape is None:
                raise ValueError("Input: give shape=(...), without the batch axis, or batch_shape=(batch, ...).")
            batch_shape = (batch_size, *((shape,) if isinstance(shape, int) else shape))
        self.batch_shape = tuple(None if size is None else int(size) for size in batch_shape)
        self._built = True

    def call(self, inputs: Tensor) -> Tensor:
        return inputs

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """The shape that was given."""
        return self.batch_shape

    def get_config(self) -> dict[str, Any]:
        return {"batch_shape": self.batch_shape, "dtype": self.dtype, "name": self.name}


def Input(
    shape: Any = None,
    batch_size: int | None = None,
    dtype: Any = None,
    batch_shape: Any = None,
    name: str | None = None,
) -> InputLayer:
    """The entrance of a Sequential model: its first element.

    Args:
        shape: of one row, without the batch axis.
        batch_size: a fixed batch size, or None.
        dtype: of the data.
        batch_shape: the shape with the batch axis, instead of the two above.
        name: of the layer.

    >>> import minikeras as tf
    >>> tf.keras.Input(shape=(4,)).batch_shape
    (None, 4)
    """
    return InputLayer(shape, batch_size, dtype, batch_shape, name=name)
