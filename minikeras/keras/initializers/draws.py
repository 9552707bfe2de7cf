"""First values drawn from a distribution, some of a width that keeps the size of signals, and orthogonal matrices.

The seed is drawn when an object is made, so it gives the same values for the same shape each time, and two objects differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core import Tensor
from ...core.arrays import to_device
from ...functions import random
from ...functions.publish import static_shape
from ...nn_ops import draws
from ..seeds import SeedGenerator, default_seed, keys_of
from .initializer import Initializer, catalogue, numpy_dtype


class RandomInitializer(Initializer):
    """Base of the random ones.

    Args:
        seed: an int repeats, None draws one from the global stream, a SeedGenerator advances at each call.

    >>> issubclass(tf.keras.initializers.HeNormal, tf.keras.initializers.RandomInitializer)
    True
    """

    def __init__(self, seed: int | SeedGenerator | None = None) -> None:
        if isinstance(seed, Mapping):  # the configuration of a SeedGenerator
            seed = SeedGenerator(seed.get("config", seed).get("seed"))
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer, SeedGenerator))):
            raise ValueError(f"{type(self).__name__}: seed must be an int, a SeedGenerator or None, found {seed!r}.")
        self._given_seed = seed
        self.seed: Any = default_seed() if seed is None else seed

    def _keys(self) -> random.Keys:
        return keys_of(self.seed)

    def get_config(self) -> dict[str, Any]:
        given = self._given_seed
        seed = given.get_config() if isinstance(given, SeedGenerator) else None if given is None else int(given)
        return {**super().get_config(), "seed": seed}


@catalogue.add("normal")
class RandomNormal(RandomInitializer):
    """Normal distribution. `seed` as in `RandomInitializer`.

    >>> tf.keras.initializers.RandomNormal(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean, self.stddev = mean, stddev
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        return random.normal_by(self._keys(), shape, self.mean, self.stddev, numpy_dtype(dtype))


@catalogue.add()
class TruncatedNormal(RandomInitializer):
    """Normal distribution, redrawn beyond two standard deviations. `seed` as in `RandomInitializer`.

    >>> bool(tf.reduce_all(tf.abs(tf.keras.initializers.TruncatedNormal(seed=1)([100])) <= 0.1))
    True
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean, self.stddev = mean, stddev
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        return random.truncated_normal_by(self._keys(), shape, self.mean, self.stddev, numpy_dtype(dtype))


@catalogue.add("uniform")
class RandomUniform(RandomInitializer):
    """Uniform distribution on [minval, maxval). `seed` as in `RandomInitializer`.

    >>> bool(tf.reduce_all(tf.abs(tf.keras.initializers.RandomUniform(seed=1)([100])) <= 0.05))
    True
    """

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: Any = None) -> None:
        self.minval, self.maxval = minval, maxval
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        return random.uniform_by(self._keys(), shape, self.minval, self.maxval, numpy_dtype(dtype))


@catalogue.add("OrthogonalInitializer")
class Orthogonal(RandomInitializer):
    """`gain` times an orthogonal matrix: Q of the QR decomposition of a normal one, signs fixed by the diagonal of R.

    All axes but the last make the rows. Of a matrix that is not square the shorter side is orthonormal.

    Args:
        gain: factor.
        seed: as in `RandomInitializer`.

    Source: Saxe, McClelland and Ganguli (2014), section 3.

    >>> q = tf.keras.initializers.Orthogonal(seed=1)([3, 3])
    >>> bool(tf.reduce_max(tf.abs(q @ tf.transpose(q) - tf.eye(3))) < 1e-5)
    True
    """

    def __init__(self, gain: float = 1.0, seed: Any = None) -> None:
        self.gain = gain
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        sizes, kind = static_shape(shape), random.floating("orthogonal", numpy_dtype(dtype)).numpy
        if len(sizes) < 2:
            raise ValueError(f"Orthogonal: needs at least two axes, found shape {sizes}.")
        rows, columns = math.prod(sizes[:-1]), sizes[-1]
        sides = max(rows, columns), min(rows, columns)
        q, r = np.linalg.qr(random.drawn(draws.random_normal, self._keys(), sides, "float64", xp=np)._array)
        q = q * np.sign(np.diag(r))
        q = q if rows >= columns else q.T
        return Tensor(to_device((self.gain * q.reshape(sizes)).astype(kind)))


def compute_fans(shape: tuple[int, ...], input_axes: Any = None, output_axes: Any = None) -> tuple[int, int]:
    """Numbers of inputs and outputs that one weight of this shape connects; the products of the axes that are said to be them.

    >>> compute_fans((3, 3, 8, 16)), compute_fans((3, 8, 16), input_axes=[0], output_axes=[1, 2])
    ((72, 144), (3, 128))
    """
    if input_axes is not None and output_axes is not None:
        return math.prod(shape[axis] for axis in input_axes), math.prod(shape[axis] for axis in output_axes)
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
        input_axes, output_axes: axes that count inputs and outputs; None for the last two, and the others as a window.

    Raises:
        ValueError: for an option that does not exist.

    Source: He et al. (2015), equation (10); Glorot and Bengio (2010), equation (16).

    >>> tf.keras.initializers.VarianceScaling(2.0, seed=1)([4, 5]).shape
    TensorShape([4, 5])
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: Any = None,
        input_axes: Any = None,
        output_axes: Any = None,
    ) -> None:
        if scale <= 0:
            raise ValueError(f"VarianceScaling: scale must be positive, found {scale}.")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"VarianceScaling: mode must be 'fan_in', 'fan_out' or 'fan_avg', found {mode!r}.")
        if distribution not in ("truncated_normal", "untruncated_normal", "normal", "uniform"):
            raise ValueError(f"VarianceScaling: unknown distribution {distribution!r}.")
        self.scale, self.mode = scale, mode
        self.input_axes, self.output_axes = input_axes, output_axes
        self.distribution = "truncated_normal" if distribution == "normal" else distribution
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        sizes, kind = static_shape(shape), numpy_dtype(dtype)
        fan_in, fan_out = compute_fans(sizes, self.input_axes, self.output_axes)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return random.uniform_by(self._keys(), sizes, -limit, limit, kind)
        if self.distribution == "untruncated_normal":
            return random.normal_by(self._keys(), sizes, 0.0, math.sqrt(variance), kind)
        # the standard deviation of a unit normal truncated at +-2
        return random.truncated_normal_by(self._keys(), sizes, 0.0, math.sqrt(variance) / 0.87962566103423978, kind)


class _Scaled(VarianceScaling):
    """A VarianceScaling with fixed settings: only the seed and the axes are left to choose."""

    settings: tuple[float, str, str]

    def __init__(self, seed: Any = None, input_axes: Any = None, output_axes: Any = None) -> None:
        super().__init__(*self.settings, seed, input_axes, output_axes)


@catalogue.add()
class GlorotUniform(_Scaled):
    """Uniform with limit sqrt(6 / (fan_in + fan_out)). Source: Glorot and Bengio (2010), equation (16).

    >>> values = tf.keras.initializers.GlorotUniform(seed=1)((300, 200))
    >>> print(abs(values.numpy()).max() <= (6 / (300 + 200)) ** 0.5)
    True
    """

    settings = (1.0, "fan_avg", "uniform")


@catalogue.add()
class GlorotNormal(_Scaled):
    """Truncated normal with variance 2 / (fan_in + fan_out). Source: Glorot and Bengio (2010), equation (12).

    >>> values = tf.keras.initializers.GlorotNormal(seed=1)((300, 200))
    >>> print(values.numpy().var().round(3), 2 / (300 + 200))
    0.004 0.004
    """

    settings = (1.0, "fan_avg", "truncated_normal")


@catalogue.add()
class HeUniform(_Scaled):
    """Uniform with limit sqrt(6 / fan_in). Source: He et al. (2015), equation (10).

    >>> values = tf.keras.initializers.HeUniform(seed=1)((300, 200))
    >>> print(abs(values.numpy()).max() <= (6 / 300) ** 0.5)
    True
    """

    settings = (2.0, "fan_in", "uniform")


@catalogue.add()
class HeNormal(_Scaled):
    """Truncated normal with variance 2 / fan_in. Source: He et al. (2015), equation (10).

    >>> values = tf.keras.initializers.HeNormal(seed=1)((300, 200))
    >>> print(values.numpy().var().round(4), round(2 / 300, 4))
    0.0067 0.0067
    """

    settings = (2.0, "fan_in", "truncated_normal")


@catalogue.add()
class LecunUniform(_Scaled):
    """Uniform with limit sqrt(3 / fan_in). Source: LeCun et al. (1998), Efficient BackProp, equation (16).

    >>> values = tf.keras.initializers.LecunUniform(seed=1)((300, 200))
    >>> print(abs(values.numpy()).max() <= (3 / 300) ** 0.5)
    True
    """

    settings = (1.0, "fan_in", "uniform")


@catalogue.add()
class LecunNormal(_Scaled):
    """Truncated normal with variance 1 / fan_in. Source: LeCun et al. (1998), Efficient BackProp, equation (16).

    >>> values = tf.keras.initializers.LecunNormal(seed=1)((300, 200))
    >>> print(values.numpy().var().round(3), round(1 / 300, 3))
    0.003 0.003
    """

    settings = (1.0, "fan_in", "truncated_normal")
