"""First values of weights.

Key idea: a random initializer is a distribution and a seed. The seed is drawn when the object is made, so one object gives the
same values for the same shape each time, and two objects differ. Next: `layers/layer.py`, where weights are made.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays import creation_namespace, to_device
from ..arrays import random as streams
from ..core import Tensor
from ..functions.publish import static_shape
from ..types import as_dtype
from .catalogue import Catalogue
from .config import floatx
from .seeds import SeedGenerator, default_seed

catalogue = Catalogue("initializer")
get = catalogue.get


class Initializer:
    """Base: a function from shape and dtype to a Tensor."""

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        """Values of a shape and dtype (the default float dtype if None)."""
        raise NotImplementedError(f"{type(self).__name__} must implement __call__(shape, dtype).")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """An initializer from `get_config`."""
        return cls(**config)


def _numpy_dtype(dtype: Any) -> Any:
    return as_dtype(dtype or floatx()).numpy


@catalogue.add("zero")
class Zeros(Initializer):
    """All zeros.

    >>> import minikeras as tf
    >>> print(tf.keras.initializers.Zeros()([2]).numpy())
    [0. 0.]
    """

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        return Tensor(creation_namespace().zeros(static_shape(shape), dtype=_numpy_dtype(dtype)))


@catalogue.add("one")
class Ones(Initializer):
    """All ones.

    >>> import minikeras as tf
    >>> print(tf.keras.initializers.Ones()([2]).numpy())
    [1. 1.]
    """

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        return Tensor(creation_namespace().ones(static_shape(shape), dtype=_numpy_dtype(dtype)))


@catalogue.add()
class Constant(Initializer):
    """One value everywhere.

    >>> import minikeras as tf
    >>> print(tf.keras.initializers.Constant(3.0)([2]).numpy())
    [3. 3.]
    """

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        values = np.broadcast_to(np.asarray(self.value, dtype=_numpy_dtype(dtype)), static_shape(shape))
        return Tensor(to_device(np.array(values)))

    def get_config(self) -> dict[str, Any]:
        return {"value": self.value}


@catalogue.add("IdentityInitializer")
class Identity(Initializer):
    """`gain` times the identity matrix.

    >>> import minikeras as tf
    >>> print(tf.keras.initializers.Identity(2.0)([2, 2]).numpy().tolist())
    [[2.0, 0.0], [0.0, 2.0]]
    """

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        sizes = static_shape(shape)
        if len(sizes) != 2:
            raise ValueError(f"Identity matrix initializer can only be used for 2D matrices. Received: shape={sizes}.")
        return Tensor(to_device(self.gain * np.eye(*sizes, dtype=_numpy_dtype(dtype))))

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain}


class RandomInitializer(Initializer):
    """Base of the random ones.

    Args:
        seed: an int repeats, None draws one from the global stream, a SeedGenerator advances at each call.
    """

    def __init__(self, seed: int | SeedGenerator | None = None) -> None:
        self._given_seed = seed
        self.seed: Any = default_seed() if seed is None else seed

    def _generator(self) -> Any:
        if isinstance(self.seed, SeedGenerator):
            return self.seed.generator()
        return streams.generator_at(int(self.seed), 0)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self._given_seed if isinstance(self._given_seed, int) else None}


def _normal(generator: Any, shape: tuple[int, ...], dtype: Any, mean: float, stddev: float) -> Tensor:
    return Tensor(streams.normal(generator, shape, dtype) * stddev + mean)


def _truncated(generator: Any, shape: tuple[int, ...], dtype: Any, mean: float, stddev: float) -> Tensor:
    return Tensor(streams.truncated_normal(generator, shape, dtype) * stddev + mean)


def _uniform(generator: Any, shape: tuple[int, ...], dtype: Any, low: float, high: float) -> Tensor:
    return Tensor(streams.uniform(generator, shape, dtype) * (high - low) + low)


@catalogue.add("normal")
class RandomNormal(RandomInitializer):
    """Normal distribution.

    >>> import minikeras as tf
    >>> tf.keras.initializers.RandomNormal(seed=1)([2, 3]).shape
    TensorShape([2, 3])
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean, self.stddev = mean, stddev
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        return _normal(self._generator(), static_shape(shape), _numpy_dtype(dtype), self.mean, self.stddev)

    def get_config(self) -> dict[str, Any]:
        return {"mean": self.mean, "stddev": self.stddev, **super().get_config()}


@catalogue.add()
class TruncatedNormal(RandomInitializer):
    """Normal distribution, redrawn beyond two standard deviations.

    >>> import minikeras as tf
    >>> bool(tf.reduce_all(tf.abs(tf.keras.initializers.TruncatedNormal(seed=1)([100])) <= 0.1))
    True
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean, self.stddev = mean, stddev
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        return _truncated(self._generator(), static_shape(shape), _numpy_dtype(dtype), self.mean, self.stddev)

    def get_config(self) -> dict[str, Any]:
        return {"mean": self.mean, "stddev": self.stddev, **super().get_config()}


@catalogue.add("uniform")
class RandomUniform(RandomInitializer):
    """Uniform distribution on [minval, maxval).

    >>> import minikeras as tf
    >>> bool(tf.reduce_all(tf.abs(tf.keras.initializers.RandomUniform(seed=1)([100])) <= 0.05))
    True
    """

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: Any = None) -> None:
        self.minval, self.maxval = minval, maxval
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        return _uniform(self._generator(), static_shape(shape), _numpy_dtype(dtype), self.minval, self.maxval)

    def get_config(self) -> dict[str, Any]:
        return {"minval": self.minval, "maxval": self.maxval, **super().get_config()}


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

    Source: He et al. (2015), equation (10); Glorot and Bengio (2010), equation (16).

    >>> import minikeras as tf
    >>> tf.keras.initializers.VarianceScaling(2.0, seed=1)([4, 5]).shape
    TensorShape([4, 5])
    """

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
        sizes, kind = static_shape(shape), _numpy_dtype(dtype)
        fan_in, fan_out = compute_fans(sizes)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return _uniform(self._generator(), sizes, kind, -limit, limit)
        if self.distribution == "untruncated_normal":
            return _normal(self._generator(), sizes, kind, 0.0, math.sqrt(variance))
        # the standard deviation of a unit normal truncated at +-2
        return _truncated(self._generator(), sizes, kind, 0.0, math.sqrt(variance) / 0.87962566103423978)

    def get_config(self) -> dict[str, Any]:
        own = {"scale": self.scale, "mode": self.mode, "distribution": self.distribution}
        return {**own, **super().get_config()}


class _Scaled(VarianceScaling):
    """A VarianceScaling with fixed settings: only the seed is left to choose."""

    settings: tuple[float, str, str]

    def __init__(self, seed: Any = None) -> None:
        super().__init__(*self.settings, seed=seed)

    def get_config(self) -> dict[str, Any]:
        return RandomInitializer.get_config(self)


@catalogue.add()
class GlorotUniform(_Scaled):
    """Uniform with limit sqrt(6 / (fan_in + fan_out)). Source: Glorot and Bengio (2010), equation (16).

    >>> import minikeras as tf
    >>> bool(tf.reduce_max(tf.abs(tf.keras.initializers.GlorotUniform(seed=1)([3, 3]))) <= 1.0)
    True
    """

    settings = (1.0, "fan_avg", "uniform")


@catalogue.add()
class GlorotNormal(_Scaled):
    """Truncated normal with variance 2 / (fan_in + fan_out)."""

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
    """Uniform with limit sqrt(3 / fan_in)."""

    settings = (1.0, "fan_in", "uniform")


@catalogue.add()
class LecunNormal(_Scaled):
    """Truncated normal with variance 1 / fan_in."""

    settings = (1.0, "fan_in", "truncated_normal")


@catalogue.add("OrthogonalInitializer")
class Orthogonal(RandomInitializer):
    """`gain` times an orthogonal matrix: Q of the QR decomposition of a normal one, signs fixed by the diagonal of R.

    Source: Saxe, McClelland and Ganguli (2014), section 3.

    >>> import minikeras as tf
    >>> q = tf.keras.initializers.Orthogonal(seed=1)([3, 3])
    >>> bool(tf.reduce_max(tf.abs(q @ tf.transpose(q) - tf.eye(3))) < 1e-5)
    True
    """

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
        return Tensor(to_device((self.gain * q.reshape(sizes)).astype(_numpy_dtype(dtype))))

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, **super().get_config()}
