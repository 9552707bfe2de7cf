"""Distributions whose width follows the number of inputs and outputs of a weight, so that signals keep their size."""

from __future__ import annotations

import math
from typing import Any

from ...core import Tensor
from ...functions.publish import static_shape
from .draws import RandomInitializer, normal, truncated, uniform
from .initializer import catalogue, numpy_dtype


def compute_fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Numbers of inputs and outputs that one weight of this shape connects.

    >>> compute_fans((3, 3, 8, 16))
    (72, 144)
    """
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


@catalogue.add()
class VarianceScaling(RandomInitializer):
    """Variance scale / n, with n the fan-in, fan-out or their mean.

    Normal distributions are truncated at two standard deviations, with the standard deviation widened to keep the variance;
    uniform ones have the limit sqrt(3 scale / n).

    Args:
        scale: > 0.
        mode: n is 'fan_in', 'fan_out' or 'fan_avg', the mean of both.
        distribution: 'truncated_normal' (or 'normal'), 'untruncated_normal' or 'uniform'.
        seed: as in `RandomInitializer`.

    Raises:
        ValueError: for an option that does not exist.

    Source: He et al. (2015), equation (10); Glorot and Bengio (2010), equation (16).

    >>> import minikeras as tf
    >>> tf.keras.initializers.VarianceScaling(2.0, seed=1)([4, 5]).shape
    TensorShape([4, 5])
    """

    _configured: tuple[str, ...] = ("scale", "mode", "distribution")

    def __init__(
        self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal", seed: Any = None
    ) -> None:
        if scale <= 0:
            raise ValueError(f"VarianceScaling: scale must be positive, found {scale}.")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"VarianceScaling: mode must be 'fan_in', 'fan_out' or 'fan_avg', found {mode!r}.")
        if distribution not in ("truncated_normal", "untruncated_normal", "normal", "uniform"):
            raise ValueError(f"VarianceScaling: unknown distribution {distribution!r}.")
        self.scale, self.mode = scale, mode
        self.distribution = "truncated_normal" if distribution == "normal" else distribution
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        sizes, kind = static_shape(shape), numpy_dtype(dtype)
        fan_in, fan_out = compute_fans(sizes)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return uniform(self._generator(), sizes, kind, -limit, limit)
        if self.distribution == "untruncated_normal":
            return normal(self._generator(), sizes, kind, 0.0, math.sqrt(variance))
        # the standard deviation of a unit normal truncated at +-2
        return truncated(self._generator(), sizes, kind, 0.0, math.sqrt(variance) / 0.87962566103423978)


class _Scaled(VarianceScaling):
    """A VarianceScaling with fixed settings: only the seed is left to choose."""

    _configured = ()
    settings: tuple[float, str, str]

    def __init__(self, seed: Any = None) -> None:
        super().__init__(*self.settings, seed=seed)


@catalogue.add()
class GlorotUniform(_Scaled):
    """Uniform with limit sqrt(6 / (fan_in + fan_out)). Source: Glorot and Bengio (2010), equation (16)."""

    settings = (1.0, "fan_avg", "uniform")


@catalogue.add()
class GlorotNormal(_Scaled):
    """Truncated normal with variance 2 / (fan_in + fan_out). Source: Glorot and Bengio (2010), equation (12)."""

    settings = (1.0, "fan_avg", "truncated_normal")


@catalogue.add()
class HeUniform(_Scaled):
    """Uniform with limit sqrt(6 / fan_in). Source: He et al. (2015), equation (10)."""

    settings = (2.0, "fan_in", "uniform")


@catalogue.add()
class HeNormal(_Scaled):
    """Truncated normal with variance 2 / fan_in. Source: He et al. (2015), equation (10)."""

    settings = (2.0, "fan_in", "truncated_normal")


@catalogue.add()
class LecunUniform(_Scaled):
    """Uniform with limit sqrt(3 / fan_in). Source: LeCun et al. (1998), Efficient BackProp, equation (16)."""

    settings = (1.0, "fan_in", "uniform")


@catalogue.add()
class LecunNormal(_Scaled):
    """Truncated normal with variance 1 / fan_in. Source: LeCun et al. (1998), Efficient BackProp, equation (16)."""

    settings = (1.0, "fan_in", "truncated_normal")
