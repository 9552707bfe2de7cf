"""First values drawn from a distribution, and orthogonal matrices.

The seed is drawn when an object is made, so it gives the same values for the same shape each time, and two objects differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...arrays import random as streams
from ...arrays import to_device
from ...core import Tensor
from ...functions.publish import static_shape
from ..seeds import SeedGenerator, default_seed
from .initializer import Initializer, catalogue, numpy_dtype


class RandomInitializer(Initializer):
    """Base of the random ones.

    Args:
        seed: an int repeats, None draws one from the global stream, a SeedGenerator advances at each call.
    """

    def __init__(self, seed: int | SeedGenerator | None = None) -> None:
        if isinstance(seed, Mapping):  # the configuration of a SeedGenerator
            seed = SeedGenerator(seed.get("config", seed).get("seed"))
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer, SeedGenerator))):
            raise ValueError(f"{type(self).__name__}: seed must be an int, a SeedGenerator or None, found {seed!r}.")
        self._given_seed = seed
        self.seed: Any = default_seed() if seed is None else seed

    def _generator(self) -> Any:
        if isinstance(self.seed, SeedGenerator):
            return self.seed.generator()
        return streams.generator_at(int(self.seed), 0)

    def get_config(self) -> dict[str, Any]:
        given = self._given_seed
        seed = given.get_config() if isinstance(given, SeedGenerator) else None if given is None else int(given)
        return {**super().get_config(), "seed": seed}


def normal(generator: Any, shape: tuple[int, ...], dtype: Any, mean: float, stddev: float) -> Tensor:
    """Draws from a normal distribution."""
    return Tensor(streams.normal(generator, shape, dtype) * stddev + mean)


def truncated(generator: Any, shape: tuple[int, ...], dtype: Any, mean: float, stddev: float) -> Tensor:
    """Draws from a normal distribution cut at two standard deviations."""
    return Tensor(streams.truncated_normal(generator, shape, dtype) * stddev + mean)


def uniform(generator: Any, shape: tuple[int, ...], dtype: Any, low: float, high: float) -> Tensor:
    """Draws from [low, high)."""
    return Tensor(streams.uniform(generator, shape, dtype) * (high - low) + low)


@catalogue.add("normal")
class RandomNormal(RandomInitializer):
    """Normal distribution. `seed` as in `RandomInitializer`.

    >>> import minikeras as tf
    >>> tf.keras.initializers.RandomNormal(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """

    _configured = ("mean", "stddev")

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean, self.stddev = mean, stddev
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        return normal(self._generator(), static_shape(shape), numpy_dtype(dtype), self.mean, self.stddev)


@catalogue.add()
class TruncatedNormal(RandomInitializer):
    """Normal distribution, redrawn beyond two standard deviations. `seed` as in `RandomInitializer`.

    >>> import minikeras as tf
    >>> bool(tf.reduce_all(tf.abs(tf.keras.initializers.TruncatedNormal(seed=1)([100])) <= 0.1))
    True
    """

    _configured = ("mean", "stddev")

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean, self.stddev = mean, stddev
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        return truncated(self._generator(), static_shape(shape), numpy_dtype(dtype), self.mean, self.stddev)


@catalogue.add("uniform")
class RandomUniform(RandomInitializer):
    """Uniform distribution on [minval, maxval). `seed` as in `RandomInitializer`.

    >>> import minikeras as tf
    >>> bool(tf.reduce_all(tf.abs(tf.keras.initializers.RandomUniform(seed=1)([100])) <= 0.05))
    True
    """

    _configured = ("minval", "maxval")

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: Any = None) -> None:
        self.minval, self.maxval = minval, maxval
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        return uniform(self._generator(), static_shape(shape), numpy_dtype(dtype), self.minval, self.maxval)


@catalogue.add("OrthogonalInitializer")
class Orthogonal(RandomInitializer):
    """`gain` times an orthogonal matrix: Q of the QR decomposition of a normal one, signs fixed by the diagonal of R.

    All axes but the last make the rows. Of a matrix that is not square the shorter side is orthonormal.

    Args:
        gain: factor.
        seed: as in `RandomInitializer`.

    Source: Saxe, McClelland and Ganguli (2014), section 3.

    >>> import minikeras as tf
    >>> q = tf.keras.initializers.Orthogonal(seed=1)([3, 3])
    >>> bool(tf.reduce_max(tf.abs(q @ tf.transpose(q) - tf.eye(3))) < 1e-5)
    True
    """

    _configured = ("gain",)

    def __init__(self, gain: float = 1.0, seed: Any = None) -> None:
        self.gain = gain
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        sizes = static_shape(shape)
        if len(sizes) < 2:
            raise ValueError(f"Orthogonal: needs at least two axes, found shape {sizes}.")
        rows, columns = math.prod(sizes[:-1]), sizes[-1]
        unit = self._generator().standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(unit)
        q = q * np.sign(np.diag(r))
        q = q if rows >= columns else q.T
        return Tensor(to_device((self.gain * q.reshape(sizes)).astype(numpy_dtype(dtype))))
