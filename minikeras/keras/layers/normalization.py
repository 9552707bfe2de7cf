"""Normalization by statistics of the batch."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...errors import ShapeError
from ...functions.elementwise import cast
from ...functions.reductions import reduce_mean, reduce_sum
from ...functions.shaping import reshape
from ...ops.arithmetic import stop_gradient
from ...ops.nn import masked_fill
from ...ops.transcendental import rsqrt
from .. import constraints, initializers, regularizers
from .layer import Layer, described


class BatchNormalization(Layer):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta.

    In training the mean and the population variance of the batch, over all axes but `axis`; they also enter the moving ones:
    moving = moving * momentum + batch * (1 - momentum). Otherwise, and always if the layer is frozen, the moving ones.

    Args:
        axis: the axis of the features; -1 by default.
        momentum: of the moving averages.
        epsilon: added to the variance.
        center, scale: whether there are beta and gamma.
        beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer: first values.
        beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint: as in `Dense`.
        synchronized: statistics over several devices; not available yet.
        options: `name`, `dtype`, `trainable`, as in `Layer`.

    Shapes: output like the input; all weights (features,). A mask of shape (batch, ...) leaves rows out of the statistics.

    Source: Ioffe and Szegedy (2015), algorithm 1.

    >>> import minikeras as tf
    >>> layer = tf.keras.layers.BatchNormalization()
    >>> print(layer([[0.0], [2.0]], training=True).numpy().round(2).ravel(), layer.moving_mean.numpy().round(2))
    [-1.  1.] [0.01]
    """

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        moving_mean_initializer: Any = "zeros",
        moving_variance_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        synchronized: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if synchronized:
            raise NotImplementedError("BatchNormalization(synchronized=True) is not available yet; use synchronized=False.")
        if not isinstance(axis, int):
            raise ValueError(f"BatchNormalization: axis must be an int, found {axis!r}.")
        if not 0.0 <= momentum <= 1.0 or epsilon <= 0.0:
            raise ValueError(f"BatchNormalization: momentum in [0, 1] and epsilon > 0, found {momentum} and {epsilon}.")
        self.axis, self.momentum, self.epsilon = axis, float(momentum), float(epsilon)
        self.center, self.scale = center, scale
        self.beta_initializer = initializers.get(beta_initializer)
        self.gamma_initializer = initializers.get(gamma_initializer)
        self.moving_mean_initializer = initializers.get(moving_mean_initializer)
        self.moving_variance_initializer = initializers.get(moving_variance_initializer)
        self.beta_regularizer = regularizers.get(beta_regularizer)
        self.gamma_regularizer = regularizers.get(gamma_regularizer)
        self.beta_constraint = constraints.get(beta_constraint)
        self.gamma_constraint = constraints.get(gamma_constraint)
        self.gamma: Any = None
        self.beta: Any = None
        self.moving_mean: Any = None
        self.moving_variance: Any = None

    def build(self, input_shape: Any) -> None:
        rank = len(input_shape)
        if not -rank <= self.axis < rank or input_shape[self.axis] is None:
            raise ShapeError(
                f"Layer '{self.name}' (BatchNormalization): axis {self.axis} of input shape {input_shape} is unknown."
            )
        shape = (input_shape[self.axis],)
        if self.scale:
            self.gamma = self.add_weight(
                shape,
                self.gamma_initializer,
                regularizer=self.gamma_regularizer,
                constraint=self.gamma_constraint,
                name="gamma",
            )
        if self.center:
            self.beta = self.add_weight(
                shape,
                self.beta_initializer,
                regularizer=self.beta_regularizer,
                constraint=self.beta_constraint,
                name="beta",
            )
        self.moving_mean = self.add_weight(shape, self.moving_mean_initializer, trainable=False, name="moving_mean")
        self.moving_variance = self.add_weight(shape, self.moving_variance_initializer, trainable=False, name="moving_variance")

    def call(self, inputs: Tensor, training: bool | None = None, mask: Any = None) -> Tensor:
        features = self.moving_mean._array.shape[0]
        rank = inputs.ndim
        if not -rank <= self.axis < rank or inputs.shape[self.axis] != features:
            raise ShapeError(
                f"Layer '{self.name}' ({self.path}) was built for {features} features along axis {self.axis} (weight "
                f"'{self.moving_mean.path}'), found inputs of shape {inputs.shape}."
            )
        half = inputs.dtype.size < 4
        x = cast(inputs, "float32") if half else inputs
        shape = [1] * rank
        shape[self.axis] = features
        if training and self.trainable:
            mean, variance = self._batch_statistics(x, mask)
            self._move(mean, variance)
        else:
            mean, variance = _read(self.moving_mean, x), _read(self.moving_variance, x)
        factor = rsqrt(variance + self.epsilon)
        if self.gamma is not None:
            factor = factor * _read(self.gamma, x)
        shift = -mean * factor if self.beta is None else _read(self.beta, x) - mean * factor
        if self.axis not in (-1, rank - 1):
            factor, shift = reshape(factor, shape), reshape(shift, shape)
        outputs = x * factor + shift
        return cast(outputs, inputs.dtype) if half else outputs

    def _batch_statistics(self, x: Tensor, mask: Any) -> tuple[Tensor, Tensor]:
        """Mean and population variance over all axes but the features'; masked rows do not count."""
        axes = [axis for axis in range(x.ndim) if axis != self.axis % x.ndim]
        if mask is None:
            mean = reduce_mean(x, axes, keepdims=True)
            centred = x - mean
            return reshape(mean, (-1,)), reduce_mean(centred * centred, axes)
        weights = cast(mask, x.dtype)
        weights = reshape(weights, (*weights.shape, *[1] * (x.ndim - weights.ndim)))
        count = reduce_sum(weights, axes, keepdims=True) + 1e-7
        mean = reduce_sum(masked_fill(weights != 0.0, x), axes, keepdims=True) / count
        centred = x - mean
        variance = reduce_sum(masked_fill(weights != 0.0, centred * centred), axes, keepdims=True) / count
        return reshape(mean, (-1,)), reshape(variance, (-1,))

    def _move(self, mean: Tensor, variance: Tensor) -> None:
        """Let the batch's statistics enter the moving ones."""
        for moving, batch in ((self.moving_mean, mean), (self.moving_variance, variance)):
            average = _read(moving, batch) * self.momentum + stop_gradient(batch) * (1.0 - self.momentum)
            moving.assign(cast(average, moving.dtype))

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """The input's."""
        return tuple(input_shape)

    def get_config(self) -> dict[str, Any]:
        names = (
            "beta_initializer",
            "gamma_initializer",
            "moving_mean_initializer",
            "moving_variance_initializer",
            "beta_regularizer",
            "gamma_regularizer",
            "beta_constraint",
            "gamma_constraint",
        )
        own = {
            "axis": self.axis,
            "momentum": self.momentum,
            "epsilon": self.epsilon,
            "center": self.center,
            "scale": self.scale,
        }
        return {**super().get_config(), **own, **{name: described(getattr(self, name)) for name in names}}


def _read(weight: Any, like: Tensor) -> Tensor:
    """The value of a weight, in the dtype of what it stands beside: single precision for inputs of half precision."""
    value: Tensor = weight.read_value()
    return value if value._array.dtype == like._array.dtype else cast(value, like.dtype)
