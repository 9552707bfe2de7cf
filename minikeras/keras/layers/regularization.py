"""Layers that add noise in training and nothing otherwise, from a random stream whose state is a variable but no weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...absent import hide_imports
from ...core import Tensor, namespace
from ...errors import ShapeError
from ...functions import cast, inexact, nn
from ...nn_ops import draws
from ...ranks import rows_here
from .. import regularizers
from ..random import SeedGenerator
from .core import SameShape
from .inputs import called
from .options import DataFormat, Kept, Number, Rate
from .windows import SpatialLayer

Keys = Callable[[], Tensor]
"""Gives the keys of draws, another one each time."""


class Noise(SameShape):
    """Base of layers that do something in training only, with random numbers of their own."""

    rate = 0.0
    """The amount of noise; at 0 there is no random stream either."""

    def __init__(self, seed: Kept[int | None] = None, **options: Any) -> None:
        super().__init__(**options)
        self.seed_generator = SeedGenerator(seed) if self.rate > 0 else None

    def call(self, inputs: Tensor, training: bool | None = False) -> Tensor:
        if not training or self.seed_generator is None:
            return inputs
        return self.disturbed(inputs, self.seed_generator.key)

    def disturbed(self, inputs: Tensor, keys: Keys) -> Tensor:
        """The output in training, from draws for the keys that `keys()` gives."""
        raise NotImplementedError


class Dropout(Noise, described=True, makes_nothing=True):
    """In training each element is zero with probability `rate`, and the others are scaled by 1 / (1 - rate).

    Args:
        rate: in [0, 1].
        noise_shape: shape of the mask, broadcast over the input; None entries follow the input.
        seed: an int repeats the masks; None follows the global seed and the layer's name.

    Source: Srivastava et al. (2014), section 4, in the inverted form.

    >>> layer = tf.keras.layers.Dropout(0.5, seed=1)
    >>> sorted(set(layer(tf.ones([100]), training=True).numpy().tolist())), float(layer(2.0))
    ([0.0, 2.0], 2.0)
    """

    _member_numbers = ("rate",)

    def __init__(self, rate: Rate, noise_shape: Any = None, seed: int | None = None, **options: Any) -> None:
        super().__init__(seed, **options)
        listed = noise_shape is None or isinstance(noise_shape, (list, tuple))
        if not listed or any(n is not None and (not isinstance(n, int) or n < 1) for n in noise_shape or ()):
            raise ValueError(f"Dropout: `noise_shape` must hold positive integers or None. Received: {noise_shape=}.")
        self.noise_shape = None if noise_shape is None else tuple(noise_shape)

    def disturbed(self, inputs: Tensor, keys: Keys) -> Tensor:
        if self.rate == 1.0:
            return inputs * 0.0
        return nn.dropped(inputs, keys, self.mask_sizes(tuple(inputs.shape)), self.rate)

    def mask_sizes(self, shape: tuple[int, ...]) -> tuple[int | None, ...]:
        """The sizes of the mask for inputs of a shape, None for that of an input."""
        wanted = (None,) * len(shape) if self.noise_shape is None else self.noise_shape
        if len(wanted) != len(shape) or any(w not in (None, 1, n) for w, n in zip(wanted, shape, strict=True)):
            raise ShapeError(f"{called(self)}: noise_shape {wanted} does not broadcast to inputs of shape {shape}.")
        return wanted


class AlphaDropout(Dropout, described=True, makes_nothing=True):
    """Dropout that keeps mean 0 and variance 1 of its inputs: what is dropped becomes the value at which SELU saturates.

    Kept elements are a x + b, dropped ones a s + b, with s = -1.7581, a = ((1 - rate) (1 + rate s**2))**(-1/2), b = -a s rate.

    Args:
        rate, noise_shape, seed: as in `Dropout`; of rate 1 all elements are 0.

    Source: Klambauer et al., Self-Normalizing Neural Networks (2017), section 2.

    >>> y = tf.keras.layers.AlphaDropout(0.2, seed=1)(tf.random.normal([1000], seed=1), training=True).numpy()
    >>> bool(abs(y.mean()) < 0.1), bool(0.9 < y.std() < 1.1)
    (True, True)
    """

    def disturbed(self, inputs: Tensor, keys: Keys) -> Tensor:
        if self.rate == 1.0:
            return inputs * 0.0
        saturated = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946
        a = ((1.0 - self.rate) * (1.0 + self.rate * saturated**2)) ** -0.5
        mask = nn.dropout_mask(keys, self.mask_sizes(tuple(inputs.shape)), self.rate, inputs)
        kept = cast(mask, inputs.dtype) * (1.0 - self.rate)  # 1 or 0
        return (inputs * kept + saturated * (1.0 - kept)) * a - a * saturated * self.rate


class SpatialDropout(Dropout, SpatialLayer):
    """Base of dropout of whole features: one decision for all places of a row."""

    _not_described = ("noise_shape", "trainable")  # Keras's constructor takes neither

    def __init__(self, rate: float, seed: int | None = None, **options: Any) -> None:
        super().__init__(rate, None, seed, **options)

    def mask_sizes(self, shape: tuple[int, ...]) -> tuple[int | None, ...]:
        return self._with_sizes((None,) * len(shape), (1,) * self.rank)


class SpatialDropout1D(SpatialDropout, described=True, makes_nothing=True, rank=1):
    """Dropout of whole features: one decision for all steps of a row.

    Args:
        rate, seed: as in `Dropout`.

    Shapes: (batch, steps, features).

    Source: Tompson et al. (2015), section 3.2.

    >>> y = tf.keras.layers.SpatialDropout1D(0.5, seed=1)(tf.ones([1, 3, 4]), training=True).numpy()
    >>> bool((y[0, 0] == y[0, 2]).all())
    True
    """


class SpatialDropout2D(SpatialDropout, described=True, makes_nothing=True, rank=2):
    """Dropout of whole features of images. Arguments as in `SpatialDropout1D`, with a data format in front of the seed.

    >>> y = tf.keras.layers.SpatialDropout2D(0.5, seed=1)(tf.ones([1, 3, 3, 4]), training=True).numpy()
    >>> bool((y[0, 0, 0] == y[0, 2, 1]).all())
    True
    """

    def __init__(self, rate: float, data_format: DataFormat = None, seed: int | None = None, **options: Any) -> None:
        super().__init__(rate, seed, **options)


class SpatialDropout3D(SpatialDropout2D, described=True, makes_nothing=True, rank=3):
    """Dropout of whole features of volumes. Arguments as in `SpatialDropout2D`.

    >>> y = tf.keras.layers.SpatialDropout3D(0.5, seed=1)(tf.ones([1, 2, 2, 2, 4]), training=True).numpy()
    >>> bool((y[0, 0, 0, 0] == y[0, 1, 1, 1]).all())
    True
    """


class GaussianNoise(Noise, described=True, makes_nothing=True):
    """In training normal noise is added.

    Args:
        stddev: its standard deviation, at least 0.
        seed: as in `Dropout`.

    >>> layer = tf.keras.layers.GaussianNoise(0.1, seed=1)
    >>> y = layer(tf.zeros([1000]), training=True).numpy()
    >>> bool(0.09 < y.std() < 0.11), float(layer(2.0))
    (True, 2.0)
    """

    _member_numbers = ("stddev", "rate")

    def __init__(self, stddev: float, seed: int | None = None, **options: Any) -> None:
        if isinstance(stddev, bool) or not isinstance(stddev, (int, float)) or not stddev >= 0:
            raise ValueError(f"Invalid value received for argument `stddev`, expected a float of at least 0: {stddev!r}.")
        self.stddev = self.rate = float(stddev)
        super().__init__(seed, **options)

    def disturbed(self, inputs: Tensor, keys: Keys) -> Tensor:
        return inputs + _normal(keys, inputs) * self.stddev


class GaussianDropout(Noise, described=True, makes_nothing=True):
    """In training each element is multiplied by normal noise around 1, with the variance that Dropout has: rate / (1 - rate).

    Args:
        rate: in [0, 1).
        seed: as in `Dropout`.

    Source: Srivastava et al. (2014), section 10.

    >>> y = tf.keras.layers.GaussianDropout(0.5, seed=1)(tf.ones([1000]), training=True).numpy()
    >>> bool(0.9 < y.std() < 1.1)
    True
    """

    _member_numbers = ("rate",)

    def __init__(self, rate: Rate, seed: int | None = None, **options: Any) -> None:
        if rate == 1:
            raise ValueError("GaussianDropout: the variance rate / (1 - rate) is infinite for rate=1.")
        super().__init__(seed, **options)

    def disturbed(self, inputs: Tensor, keys: Keys) -> Tensor:
        stddev = (self.rate / (1.0 - self.rate)) ** 0.5
        inexact("GaussianDropout", inputs, "f")
        if namespace(inputs.array) is not np:  # there the noise is not kept, but drawn again in the backward pass
            shape = tuple(inputs.shape)
            found: Tensor = draws.times_gaussian(inputs, keys(), shape=shape, stddev=stddev, **rows_here().draw(shape))
            return found
        return inputs * (_normal(keys, inputs) * stddev + 1.0)


class ActivityRegularization(SameShape, described=True, makes_nothing=True):
    """The input as it is, with a penalty on its size: l1 sum |x| + l2 sum x**2, divided by the batch size.

    Args:
        l1, l2: factors, at least 0.

    >>> layer = tf.keras.layers.ActivityRegularization(l1=0.5)
    >>> layer([[1.0, -3.0]]).numpy().tolist(), float(layer.losses[0])
    ([[1.0, -3.0]], 2.0)
    """

    _member_numbers, _not_described = ("l1", "l2"), ("activity_regularizer",)

    def __init__(self, l1: Number = 0.0, l2: Number = 0.0, **options: Any) -> None:
        super().__init__(activity_regularizer=regularizers.L1L2(l1, l2), **options)

    def call(self, inputs: Tensor) -> Tensor:
        return inputs


def dropped(inputs: Tensor, rate: float, keys: Keys) -> Tensor:
    """Zeros with this probability, the others scaled up."""
    if rate == 1.0:
        return inputs * 0.0
    return nn.dropped(inputs, keys, (None,) * inputs.ndim, rate)


def _normal(keys: Keys, like: Tensor) -> Tensor:
    """Standard normal numbers of a shape and dtype; in float32 where the dtype is smaller or equal."""
    kind, shape, xp = "float64" if like.dtype.size == 8 else "float32", tuple(like.shape), namespace(like.array)
    return cast(draws.random_normal(keys(), shape=shape, dtype=kind, xp=xp, **rows_here().draw(shape)), like.dtype)


hide_imports(globals(), "Noise", "SpatialDropout", "dropped")
