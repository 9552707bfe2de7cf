"""Dense, Identity, Masking."""

from __future__ import annotations

import math
from typing import Any

from ...core import Tensor
from ...core.ops.arithmetic import cast
from ...core.ops.contractions import affine, matrix_product
from ...core.ops.shaping import reshape
from ...errors import ShapeError
from ...functions.creation import ones_like
from ...functions.elementwise import not_equal
from ...functions.publish import tensor
from ...functions.reductions import reduce_any
from ...functions.symbols import takes_symbols
from ...nn_ops.nn import masked_fill
from .. import activations
from ..symbolic.keras_tensor import KerasTensor
from . import weight_options
from .inputs import InputSpec, attach
from .layer import Layer, SameShape
from .weight_options import activated, without_absent


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

    >>> layer = tf.keras.layers.Dense(3, activation="relu")
    >>> layer(tf.ones([2, 4])).shape
    TensorShape([2, 3])
    """

    supports_masking = True
    _takes_one_tensor = True
    _gives_floats = True

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
        super().__init__(activity_regularizer=activity_regularizer, **without_absent(self, options))
        if not isinstance(units, int) or isinstance(units, bool) or units <= 0:
            raise ValueError(f"Received an invalid value for `units`, expected a positive integer. Received: units={units!r}.")
        self.units = units
        self.activation, self.use_bias = activations.get(activation), bool(use_bias)
        weight_options.keep(self, "kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        weight_options.keep(self, "bias", bias_initializer, bias_regularizer, bias_constraint)
        self.kernel: Any = None
        self.bias: Any = None
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        if len(input_shape) < 2 or input_shape[-1] is None:
            raise ShapeError(f"Layer '{self.name}' (Dense) needs a known number of features, found shape {tuple(input_shape)}.")
        features = input_shape[-1]
        self.kernel = weight_options.add(self, "kernel", (features, self.units))
        if self.use_bias:
            self.bias = weight_options.add(self, "bias", (self.units,))
        self.input_spec = InputSpec(min_ndim=2, axes={-1: features}, fixed_by=self.kernel)

    def call(self, inputs: Tensor) -> Tensor:
        x, shape = inputs, inputs._array.shape
        if x._array.dtype.kind in "iub":
            x = cast(x, dtype=self.compute_dtype)
        if len(shape) != 2:
            x = reshape(x, shape=(math.prod(shape[:-1]), shape[-1]), rank=len(shape))
        kernel = self.kernel.read_value()
        y = affine(x, kernel, self.bias.read_value()) if self.use_bias else matrix_product(x, kernel)
        if len(shape) != 2:
            y = reshape(y, shape=(*shape[:-1], self.units), rank=2)
        return activated(self, y)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """(batch, ..., units)."""
        return (*input_shape[:-1], self.units)


class Identity(SameShape):
    """The input as it is.

    >>> print(tf.keras.layers.Identity()([1.0, 2.0]).numpy())
    [1. 2.]
    """

    _takes_one_tensor = False

    def call(self, inputs: Any) -> Any:
        return inputs


class Masking(SameShape):
    """Leave out the steps whose features all equal a value: they become 0, and the layers after it see the mask.

    Args:
        mask_value: what marks a step to be left out.
        options: `name`, `dtype`, as in `Layer`.

    Shapes: input (batch, steps, ..., features); the mask lacks the last axis and is true where a step counts.

    >>> y = tf.keras.layers.Masking(mask_value=-1.0)([[[2.0], [-1.0]]])
    >>> y._keras_mask.numpy(), y.numpy().ravel()
    (array([[ True, False]]), array([2., 0.], dtype=float32))
    """

    def __init__(self, mask_value: float = 0.0, **options: Any) -> None:
        super().__init__(**options)
        self.mask_value = mask_value

    def call(self, inputs: Tensor) -> Tensor:
        counts = self._counts(inputs)
        outputs = masked_fill(reduce_any(counts, -1, keepdims=True), inputs)
        attach(reduce_any(counts, -1), outputs)
        return outputs

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """True where some feature is not the value."""
        return takes_symbols(reduce_any)(self._counts(inputs), -1)

    def _counts(self, inputs: Any) -> Tensor:
        """Which features are not the value; integers and bools never equal a value that is not whole."""
        x = inputs if isinstance(inputs, KerasTensor) else tensor(inputs)
        if x.dtype.is_floating:
            return not_equal(x, self.mask_value)
        x = cast(x, dtype="uint8") if x.dtype.is_bool else x
        whole = int(self.mask_value)
        return not_equal(x, whole) if whole == self.mask_value else ones_like(x, dtype="bool")
