"""Moments and normalization by them, with scale and offset as arguments."""

from __future__ import annotations

from typing import Any

from ....core import Tensor, convert_to_tensor
from ....distribute.functions import moments_of_all_ranks
from ....distribute.world import world
from ....errors import ShapeError
from ....functions import nn
from ....functions.elementwise import cast, maximum, minimum, rsqrt, saturate_cast, square
from ....functions.publish import negative_axes, negative_axis, rounded_once
from ....functions.reductions import norm, reduce_mean, reduce_sum
from ....functions.shaping import reshape, squeeze
from ....types import TensorLike
from ... import config
from ...promotion import floating
from ...symbolic.operation import operation

__all__ = ["batch_normalization", "layer_normalization", "moments", "normalize", "rms_normalization"]


@operation
def moments(x: TensorLike, axes: Any, keepdims: bool = False, synchronized: bool = False) -> tuple[Tensor, Tensor]:
    """Mean and population variance along axes; those of 16-bit floats are computed in float32 and moved into their range.

    Args:
        x: the values.
        axes: over which to take them: an int, or several.
        keepdims: whether these axes are kept, of size 1.
        synchronized: whether the values are those of all ranks (see `tf.distribute`), which must all call it.

    >>> mean, variance = tf.keras.ops.moments([1.0, 3.0], axes=0)
    >>> print(mean.numpy(), variance.numpy())
    2.0 1.0
    """
    x = floating(x)
    wide = x if x.dtype.size > 2 else cast(x, "float32")
    if synchronized and world().size > 1:
        listed = negative_axes(axes, x.ndim, "moments")
        _, mean, variance = moments_of_all_ranks(wide, listed)
        mean, variance = (mean, variance) if keepdims else (squeeze(mean, listed), squeeze(variance, listed))
    else:
        mean, variance = nn.moments(wide, axes, keepdims=keepdims)
    return (mean, variance) if wide is x else (saturate_cast(mean, x.dtype), saturate_cast(variance, x.dtype))


@operation(name="BatchNorm")
def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    axis: int,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    epsilon: float = 1e-3,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, with one number of each along an axis.

    >>> print(tf.keras.ops.batch_normalization([[4.0]], [2.0], [1.0], axis=-1, epsilon=0.0).numpy())
    [[2.]]
    """
    x = floating(x)
    shape = (-1, *[1] * (-1 - negative_axis(axis, x.ndim, "batch_normalization")))
    center, spread, shift, factor = [_shaped(one, shape) for one in (mean, variance, offset, scale)]
    return nn.batch_normalization(x, center, spread, shift, factor, epsilon)


@operation(name="LayerNorm")
@rounded_once
def layer_normalization(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: Any = -1,
    epsilon: float | None = None,
    rms_scaling: bool = False,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, with the moments along one axis or several.

    Args:
        x: tensor of any shape.
        gamma, beta: of the shape of these axes, or None.
        epsilon: `keras.config.epsilon()` if None.
        rms_scaling: divide by the deviation only: no mean is taken away and `beta` is ignored.

    >>> print(tf.keras.ops.layer_normalization([[0.0, 2.0]], epsilon=0.0).numpy())
    [[-1.  1.]]
    """
    x = floating(x)
    shape, centered = _beside(x, axis), x - reduce_mean(x, axis, keepdims=True)
    scale = rsqrt(reduce_mean(square(centered), axis, keepdims=True) + _positive(epsilon))
    if gamma is not None:
        scale = scale * cast(_shaped(gamma, shape), x.dtype)
    if rms_scaling:
        return x * scale
    return centered * scale if beta is None else centered * scale + cast(_shaped(beta, shape), x.dtype)


@operation(name="RMSNorm", named="scale")
@rounded_once
def rms_normalization(x: TensorLike, scale: TensorLike | None = None, axis: Any = -1, epsilon: float | None = None) -> Tensor:
    """x / sqrt(mean(x**2) + epsilon) * scale, with the mean along one axis or several.

    Args:
        x: tensor of any shape.
        scale: whatever can be broadcast to it, or None.
        epsilon: `keras.config.epsilon()` if None.

    Source: Zhang and Sennrich (2019), Root Mean Square Layer Normalization, equation (4).

    >>> print(tf.keras.ops.rms_normalization([[1.0, 7.0]], epsilon=0.0).numpy())
    [[0.2 1.4]]
    """
    x = floating(x)
    result = x * rsqrt(reduce_mean(square(x), axis, keepdims=True) + _positive(epsilon))
    return result if scale is None else result * cast(convert_to_tensor(scale), x.dtype)


@operation
@rounded_once
def normalize(x: TensorLike, axis: Any = -1, order: int = 2, epsilon: float | None = None) -> Tensor:
    """x divided by its norm along an axis, which counts as `epsilon` at least.

    Args:
        x: tensor of any shape.
        order: of the norm, 1 or more.
        epsilon: `keras.config.epsilon()` if None.

    >>> print(tf.keras.ops.normalize([3.0, 4.0]).numpy())
    [0.6 0.8]
    """
    if not isinstance(order, int) or order < 1:
        raise ValueError(f"normalize: order must be an int >= 1, found {order!r}.")
    x = floating(x)
    x = x if x.ndim else reshape(x, (1,))
    if order == 2:
        return x * minimum(rsqrt(reduce_sum(square(x), axis, keepdims=True)), 1.0 / _positive(epsilon))
    return x / maximum(norm(x, order, axis, True), _positive(epsilon))


def _shaped(value: TensorLike | None, shape: tuple[int, ...]) -> Any:
    return None if value is None else reshape(convert_to_tensor(value), shape)


def _positive(epsilon: float | None) -> float:
    return config.epsilon() if epsilon is None else epsilon


def _beside(x: Tensor, axis: Any) -> tuple[int, ...]:
    """The shape of x with 1 for what is not among the axes, from the first of these on."""
    axes = negative_axes(axis, x.ndim, "layer_normalization")
    if not axes:
        raise ShapeError("layer_normalization: no axis was given.")
    return tuple([x.shape[place] if place in axes else 1 for place in range(axes[0], 0)])
