"""Normalization by statistics of the batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core import Tensor, hook
from ...core.ops.arithmetic import stop_gradient
from ...core.ops.transcendental import rsqrt
from ...errors import ShapeError
from ...functions import broadcast_to, cast, clip_by_value, maximum, reduce_mean, reduce_sum, reshape, sqrt, square
from ...functions.nn import relu
from ...nn_ops.nn import masked_fill
from ...types import ShapeLike, TensorLike
from .inputs import InputSpec, called
from .normalization import ScalingLayer, known_axes, read, wide
from .options import Flag, Initializer, Number, OneAxis


class BatchNormalization(ScalingLayer, described=True):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta.

    In training the mean and the population variance of the batch, over all axes but `axis`; they also enter the moving ones:
    moving = moving * momentum + batch * (1 - momentum). Otherwise, and always if the layer is frozen, the moving ones.

    Args:
        axis: the axis of the features; -1 by default.
        momentum: of the moving averages, in [0, 1].
        epsilon: added to the variance.
        center, scale: whether there are beta and gamma.
        beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer: first values.
        renorm: whether training corrects the batch's statistics toward moving ones, which small batches need: x becomes
            x r + d, with r the ratio of the deviations and d the distance of the means; no gradient passes through them.
        renorm_clipping: limits by name: 'rmin', 'rmax' of r and 'dmax' of the magnitude of d.
        renorm_momentum: of the statistics for that.
        synchronized: whether the statistics are those of the rows of all ranks (see `tf.distribute`), which must all call the
            layer; each call in training then takes one collective operation, and its derivative another one.
        options: `beta_regularizer`, `gamma_regularizer`, `beta_constraint`, `gamma_constraint`; `name`, `dtype`, `trainable`.

    Shapes: output like the input; all weights (features,). A mask of shape (batch, ...) leaves rows out of the statistics.

    Source: Ioffe and Szegedy (2015), algorithm 1; with renorm Ioffe (2017), algorithm 1.

    >>> layer = tf.keras.layers.BatchNormalization()
    >>> print(layer([[0.0], [2.0]], training=True).numpy().round(2).ravel(), layer.moving_mean.numpy().round(2))
    [-1.  1.] [0.01]
    """

    _member_numbers = ("momentum", "epsilon", "renorm_momentum")
    _not_walked = ("renorm_clipping",)

    def __init__(
        self,
        axis: OneAxis = -1,
        momentum: Number = 0.99,
        epsilon: Number = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Initializer = "zeros",
        gamma_initializer: Initializer = "ones",
        moving_mean_initializer: Initializer = "zeros",
        moving_variance_initializer: Initializer = "ones",
        renorm: Flag = False,
        renorm_clipping: Mapping[str, float] | None = None,
        renorm_momentum: Number = 0.99,
        synchronized: Flag = False,
        **options: Any,
    ) -> None:
        super().__init__(center, scale, beta_initializer, gamma_initializer, **options)
        if not 0.0 <= momentum <= 1.0 or not 0.0 <= renorm_momentum <= 1.0 or epsilon <= 0.0:
            raise ValueError(f"BatchNormalization: momentum in [0, 1] and epsilon > 0, found {momentum} and {epsilon}.")
        self.renorm_clipping = _checked_clipping(renorm_clipping)

    def build(self, input_shape: ShapeLike) -> None:
        (place,) = known_axes(self, (self.axis,), input_shape)
        shape = (input_shape[place],)
        self.add_gamma_and_beta(shape)

        def statistic(name: str, initializer: Any) -> Any:
            return self.add_weight(shape, initializer, trainable=False, autocast=False, name=name)

        self.moving_mean = statistic("moving_mean", self.moving_mean_initializer)
        self.moving_variance = statistic("moving_variance", self.moving_variance_initializer)
        if self.renorm:
            deviation = lambda shape, dtype: sqrt(self.moving_variance_initializer(shape, dtype=dtype))
            self.moving_stddev = statistic("moving_stddev", deviation)
            self.renorm_mean = statistic("renorm_mean", self.moving_mean_initializer)
            self.renorm_stddev = statistic("renorm_stddev", deviation)
        axes = {self.axis: input_shape[place]}
        self.input_spec = InputSpec(ndim=len(input_shape), axes=axes, fixed_by=self.moving_mean)

    def call(self, inputs: Tensor, training: bool | None = None, mask: TensorLike = None) -> Tensor:
        x = wide(self, inputs)
        gamma = read(self.gamma, x) if self.scale else None
        beta = read(self.beta, x) if self.center else None
        if training and self.trainable:
            mean, variance = self._batch_statistics(x, mask)
            if self.renorm:
                ratio, distance = self._correction(mean, variance)
                distance = distance if gamma is None else distance * gamma
                gamma = ratio if gamma is None else ratio * gamma
                beta = distance if beta is None else distance + beta
                self._move_renormalized(mean, variance)
            else:
                self._move(self.moving_mean, mean, self.momentum)
                self._move(self.moving_variance, variance, self.momentum)
        else:
            mean, variance = read(self.moving_mean, x), read(self.moving_variance, x)
        factor = rsqrt(variance + self.epsilon)
        if gamma is not None:
            factor = factor * gamma
        shift = -(mean * factor) if beta is None else beta - mean * factor
        if self.axis not in (-1, x.ndim - 1):
            shape = [1] * x.ndim
            shape[self.axis] = -1
            factor, shift = reshape(factor, shape), reshape(shift, shape)
        outputs = x * factor + shift
        return outputs if x is inputs and inputs.array.dtype == self._array_dtype else cast(outputs, self.compute_dtype)

    def _batch_statistics(self, x: Tensor, mask: TensorLike) -> tuple[Tensor, Tensor]:
        """Mean and population variance over all axes but the features'; masked rows do not count."""
        axes = [axis for axis in range(x.ndim) if axis != self.axis % x.ndim]
        of_ranks = hook("moments_of_ranks") if self.synchronized else lambda *given: None
        if mask is None:
            if (found := of_ranks(x, axes)) is not None:
                return reshape(found[1], (-1,)), reshape(found[2], (-1,))
            mean = reduce_mean(x, axes, keepdims=True)
            centred = x - mean
            return reshape(mean, (-1,)), reduce_mean(centred * centred, axes)
        steps, given = tuple(x.shape[:-1]), tuple(mask.shape)
        if len(given) != len(steps) or any(size not in (1, whole) for size, whole in zip(given, steps, strict=True)):
            raise ShapeError(
                f"{called(self)}: the mask must have the input's shape without its last axis, {steps}, or sizes of 1 in it; "
                f"found {given}."
            )
        weights = broadcast_to(reshape(cast(mask, x.dtype), (*given, 1)), x.shape)
        if (found := of_ranks(x, axes, weights)) is not None:
            count, mean, variance = found
            part = count / (count + 1e-7)
            variance = (variance + square(mean - mean * part)) * part
            return reshape(mean * part, (-1,)), reshape(variance, (-1,))
        count = reduce_sum(weights, axes, keepdims=True) + 1e-7
        mean = reduce_sum(masked_fill(weights != 0.0, x), axes, keepdims=True) / count
        centred = x - mean
        variance = reduce_sum(masked_fill(weights != 0.0, centred * centred), axes, keepdims=True) / count
        return reshape(mean, (-1,)), reshape(variance, (-1,))

    def _correction(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
        moving = maximum(read(self.renorm_stddev, mean), self.epsilon**0.5)
        ratio = sqrt(variance + self.epsilon) / moving
        distance = (mean - read(self.renorm_mean, mean)) / moving
        limits = self.renorm_clipping or {}
        ratio = clip_by_value(ratio, limits.get("rmin", -float("inf")), limits.get("rmax", float("inf")))
        reach = limits.get("dmax", float("inf"))
        return stop_gradient(ratio), stop_gradient(clip_by_value(distance, -reach, reach))

    def _move_renormalized(self, mean: Tensor, variance: Tensor) -> None:
        """Let the batch's statistics enter those for renormalization and those for inference."""
        deviation = sqrt(variance + self.epsilon)
        self._move(self.renorm_mean, mean, self.renorm_momentum)
        self._move(self.renorm_stddev, deviation, self.renorm_momentum)
        self._move(self.moving_mean, mean, self.momentum)
        self._move(self.moving_stddev, deviation, self.momentum)
        moved = read(self.moving_stddev, mean)
        self.moving_variance.assign(cast(relu(moved * moved - self.epsilon), self.moving_variance.dtype))

    def _move(self, moving: Any, batch: Tensor, momentum: float) -> None:
        average = read(moving, batch) * momentum + stop_gradient(batch) * (1.0 - momentum)
        moving.assign(cast(average, moving.dtype))


def _checked_clipping(limits: Mapping[str, float] | None) -> dict[str, float] | None:
    """The limits of renormalization, refused if there is no such limit or they contradict each other."""
    if limits is None:
        return None
    known = {name: float(value) for name, value in limits.items() if value is not None}
    if unknown := set(limits) - {"rmin", "rmax", "dmax"}:
        raise ValueError(
            f"Received invalid keys for `renorm_clipping`: {sorted(unknown)}. There are 'rmin', 'rmax' and 'dmax'."
        )
    if known.get("rmin", 0.0) > known.get("rmax", float("inf")) or known.get("dmax", 0.0) < 0.0:
        raise ValueError(f"renorm_clipping: rmin must not exceed rmax, and dmax must not be negative; found {known}.")
    return known
