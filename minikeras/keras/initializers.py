# mypy: implicit-reexport
"""First values of weights: zeros, ones and other constants, Fourier's waves, and numbers drawn from distributions.

The seed of random ones is drawn when an object is made: it gives the same values for the same shape each time, and two
objects differ.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..absent import hide_imports
from ..core import Operand, Tensor, creation_namespace, to_device, to_numpy
from ..functions import random, static_shape
from ..nn_ops import draws
from ..types import DTypeLike, ShapeLike, as_dtype
from . import random as seeds
from .arguments import Catalogue, Configured
from .config import floatx
from .random import default_seed, keys_of

catalogue = Catalogue("initializer")
serialize, deserialize = catalogue.serialize, catalogue.deserialize


class Initializer(Configured):
    """Base: a function from shape and dtype to a Tensor.

    >>> class Halves(tf.keras.initializers.Initializer):
    ...     def __call__(self, shape, dtype=None):
    ...         return tf.fill(shape, 0.5)
    >>> print(Halves()([2]).numpy())
    [0.5 0.5]
    """

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None, **options: Any) -> Tensor:
        """Values of a shape and dtype (the default float dtype if None)."""
        raise NotImplementedError(f"{type(self).__name__} must implement __call__(shape, dtype).")

    def clone(self) -> Initializer:
        """Another one of the same configuration; without a seed it draws other values."""
        return type(self).from_config(self.get_config())


def _numpy_dtype(dtype: DTypeLike) -> Any:
    return as_dtype(dtype or floatx()).numpy


@catalogue.add("zero")
class Zeros(Initializer):
    """All zeros.

    >>> print(tf.keras.initializers.Zeros()([2]).numpy())
    [0. 0.]
    """

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None, **options: Any) -> Tensor:
        return Tensor(creation_namespace().zeros(static_shape(shape), dtype=_numpy_dtype(dtype)))


@catalogue.add("one")
class Ones(Initializer):
    """All ones.

    >>> print(tf.keras.initializers.Ones()([2]).numpy())
    [1. 1.]
    """

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None, **options: Any) -> Tensor:
        return Tensor(creation_namespace().ones(static_shape(shape), dtype=_numpy_dtype(dtype)))


@catalogue.add()
class Constant(Initializer):
    """One value everywhere, or an array repeated to the shape.

    Args:
        value: a number, or an array that can be broadcast to the shape.

    >>> print(tf.keras.initializers.Constant(3.0)([2]).numpy())
    [3. 3.]
    """

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None, **options: Any) -> Tensor:
        held = to_numpy(self.value.array) if isinstance(self.value, Operand) else self.value
        value, sizes = np.asarray(held, dtype=_numpy_dtype(dtype)), static_shape(shape)
        try:
            spread = np.broadcast_to(value, sizes)
        except ValueError:
            raise ValueError(f"Constant: a value of shape {value.shape} cannot be broadcast to the shape {sizes}.") from None
        return Tensor(to_device(np.array(spread)))


@catalogue.add("IdentityInitializer")
class Identity(Initializer):
    """`gain` times the identity matrix; ones on the diagonal of one that is not square.

    >>> print(tf.keras.initializers.Identity(2.0)([2, 2]).numpy().tolist())
    [[2.0, 0.0], [0.0, 2.0]]
    """

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None, **options: Any) -> Tensor:
        sizes = static_shape(shape)
        if len(sizes) != 2:
            raise ValueError(f"Identity matrix initializer can only be used for 2D matrices. Received: shape={sizes}.")
        return Tensor(to_device(self.gain * np.eye(*sizes, dtype=_numpy_dtype(dtype))))


def get(identifier: Any) -> Any:
    """The initializer for a name, a configuration, a class, an object or a function; an array or Tensor is the values.

    >>> print(tf.keras.initializers.get(tf.constant([1.0, 2.0]))([2]).numpy())
    [1. 2.]
    """
    if hasattr(identifier, "shape") and hasattr(identifier, "dtype"):
        return Constant(identifier)
    return catalogue.get(identifier)


_WINDOWS: dict[str, Callable[[int], Any]] = {
    "boxcar": np.ones,
    "bartlett": np.bartlett,
    "blackman": np.blackman,
    "hamming": np.hamming,
    "hann": np.hanning,
}


@catalogue.add("STFTInitializer")
class STFT(Initializer):
    """Kernels of a short-time Fourier transform: window times cos(-2 pi t k / n), or sin, for the frequencies k.

    A convolution with it gives the real or imaginary part of the spectrum of each frame. Its shape is (frame length, input
    channels, n / 2 + 1).

    Args:
        side: 'real' or 'imag'.
        window: 'hann', 'hamming', 'blackman', 'bartlett', 'boxcar', an array of the frame length, or None for none.
        scaling: 'density' divides by the window's root sum of squares, 'spectrum' by its sum, None by nothing.
        periodic: whether a named window is one period of a periodic one; else it is symmetric.

    Raises:
        ValueError: for an option that does not exist, or a shape that does not fit.

    >>> print(tf.keras.initializers.STFT("real", window=None)([2, 1, 2]).numpy().round(4)[:, 0].tolist())
    [[1.0, 1.0], [1.0, -1.0]]
    """

    def __init__(
        self, side: str = "real", window: Any = "hann", scaling: str | None = "density", periodic: bool = False
    ) -> None:
        if side not in ("real", "imag"):
            raise ValueError(f"STFT: side should be 'real' or 'imag', not {side!r}.")
        if isinstance(window, str) and window not in _WINDOWS:
            raise ValueError(f"STFT: unknown window {window!r}. There are {sorted(_WINDOWS)}; others can be given as arrays.")
        if scaling not in (None, "density", "spectrum"):
            raise ValueError(f"STFT: scaling must be None, 'density' or 'spectrum', found {scaling!r}.")
        self.side, self.window, self.scaling, self.periodic = side, window, scaling, periodic

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None, **options: Any) -> Tensor:
        sizes = static_shape(shape)
        if len(sizes) != 3 or sizes[2] < 2:
            raise ValueError(f"STFT: the shape must be (frame length, input channels, n / 2 + 1), found {sizes}.")
        frame, channels, frequencies = sizes
        angles = -2.0 * np.pi * np.outer(np.arange(frame), np.arange(frequencies)) / (2 * (frequencies - 1))
        kernel = (np.cos(angles) if self.side == "real" else np.sin(angles)) * self._weights(frame)[:, None]
        return Tensor(to_device(np.repeat(kernel[:, None], channels, 1).astype(_numpy_dtype(dtype))))

    def _weights(self, frame: int) -> Any:
        if self.window is None:
            return np.ones(frame)
        named = isinstance(self.window, str)
        window = _WINDOWS[self.window](frame + self.periodic)[:frame] if named else np.asarray(self.window, dtype="float64")
        if window.shape != (frame,):
            raise ValueError(f"STFT: the window has shape {window.shape}, the frame has {frame} values.")
        scale = {None: 1.0, "density": np.sqrt((window**2).sum()), "spectrum": np.abs(window).sum()}[self.scaling]
        return window / scale


class RandomInitializer(Initializer):
    """Base of the random ones.

    Args:
        seed: an int repeats, None draws one from the global stream, a SeedGenerator advances at each call.

    >>> issubclass(tf.keras.initializers.HeNormal, tf.keras.initializers.RandomInitializer)
    True
    """

    def __init__(self, seed: int | seeds.SeedGenerator | None = None) -> None:
        if isinstance(seed, Mapping):  # the configuration of a SeedGenerator
            seed = seeds.SeedGenerator(seed.get("config", seed).get("seed"))
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer, seeds.SeedGenerator))):
            raise ValueError(f"{type(self).__name__}: seed must be an int, a SeedGenerator or None, found {seed!r}.")
        self._given_seed = seed
        self.seed: Any = default_seed() if seed is None else seed

    def _keys(self) -> random.Keys:
        return keys_of(self.seed)

    def _seeded(self, seed: Callable[[], int]) -> RandomInitializer:
        """This initializer, or a copy with a seed if it was given none."""
        if self._given_seed is not None:
            return self
        made = copy.copy(self)
        made.seed = seed()
        return made

    def get_config(self) -> dict[str, Any]:
        given = self._given_seed
        seed = given.get_config() if isinstance(given, seeds.SeedGenerator) else None if given is None else int(given)
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

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None, **options: Any) -> Tensor:
        return random.normal_by(self._keys(), shape, self.mean, self.stddev, _numpy_dtype(dtype))


@catalogue.add()
class TruncatedNormal(RandomInitializer):
    """Normal distribution, redrawn beyond two standard deviations. `seed` as in `RandomInitializer`.

    >>> bool(tf.reduce_all(tf.abs(tf.keras.initializers.TruncatedNormal(seed=1)([100])) <= 0.1))
    True
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean, self.stddev = mean, stddev
        super().__init__(seed)

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None, **options: Any) -> Tensor:
        return random.truncated_normal_by(self._keys(), shape, self.mean, self.stddev, _numpy_dtype(dtype))


@catalogue.add("uniform")
class RandomUniform(RandomInitializer):
    """Uniform distribution on [minval, maxval). `seed` as in `RandomInitializer`.

    >>> bool(tf.reduce_all(tf.abs(tf.keras.initializers.RandomUniform(seed=1)([100])) <= 0.05))
    True
    """

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: Any = None) -> None:
        self.minval, self.maxval = minval, maxval
        super().__init__(seed)

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None, **options: Any) -> Tensor:
        return random.uniform_by(self._keys(), shape, self.minval, self.maxval, _numpy_dtype(dtype))


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

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None, **options: Any) -> Tensor:
        sizes, kind = static_shape(shape), random.floating("orthogonal", _numpy_dtype(dtype)).numpy
        if len(sizes) < 2:
            raise ValueError(f"Orthogonal: needs at least two axes, found shape {sizes}.")
        rows, columns = math.prod(sizes[:-1]), sizes[-1]
        sides = max(rows, columns), min(rows, columns)
        q, r = np.linalg.qr(random.drawn(draws.random_normal, self._keys(), sides, "float64", xp=np).array)
        q = q * np.sign(np.diag(r))
        q = q if rows >= columns else q.T
        return Tensor(to_device((self.gain * q.reshape(sizes)).astype(kind)))


def compute_fans(shape: tuple[int, ...], input_axes: Any = None, output_axes: Any = None) -> tuple[int, int]:
    """The fan-in and the fan-out of a weight of this shape: the products of the sizes along the axes that are given for each.

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

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None, **options: Any) -> Tensor:
        sizes, kind = static_shape(shape), _numpy_dtype(dtype)
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


# Keras's second names of the classes.
IdentityInitializer, OrthogonalInitializer, STFTInitializer = Identity, Orthogonal, STFT
zeros, ones, constant, identity, stft = Zeros, Ones, Constant, Identity, STFT
random_normal, random_uniform, truncated_normal, orthogonal = RandomNormal, RandomUniform, TruncatedNormal, Orthogonal
glorot_normal, glorot_uniform, variance_scaling = GlorotNormal, GlorotUniform, VarianceScaling
he_normal, he_uniform, lecun_normal, lecun_uniform = HeNormal, HeUniform, LecunNormal, LecunUniform

hide_imports(globals())
globals()["__all__"] += ["deserialize", "serialize"]
