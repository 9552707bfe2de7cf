"""`keras.random`: random tensors under Keras's names. `seed` says where they come from: an int gives the same numbers at each
call, a `SeedGenerator` its next ones, None those of the global stream, which `keras.utils.set_random_seed` starts anew.

The numbers are not Keras's; the contracts are. No gradient flows to the parameters of gamma, beta and binomial distributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import Tensor
from ..distribute.functions import rows_of_all_parts
from ..distribute.replica import current_part, part_of_draw
from ..functions import random as tf
from ..functions.creation import zeros_like
from ..functions.nn import dropped
from ..functions.operands import tensor
from ..nn_ops import draws
from ..types import TensorLike, as_dtype
from .config import floatx
from .seeds import SeedGenerator as SeedGenerator
from .seeds import keys_of

__all__ = [
    *("SeedGenerator", "beta", "binomial", "categorical", "dropout", "gamma", "normal", "randint", "shuffle"),
    *("truncated_normal", "uniform"),
]

Seed = int | SeedGenerator | None


def normal(shape: Any, mean: TensorLike = 0.0, stddev: TensorLike = 1.0, dtype: Any = None, seed: Seed = None) -> Tensor:
    """Normally distributed numbers.

    >>> same = [tf.keras.random.normal((2,), seed=1).numpy().tolist() for _ in range(2)]
    >>> same[0] == same[1]
    True
    """
    return tf.normal_by(keys_of(seed), shape, mean, stddev, _floating("normal", dtype))


def truncated_normal(
    shape: Any, mean: TensorLike = 0.0, stddev: TensorLike = 1.0, dtype: Any = None, seed: Seed = None
) -> Tensor:
    """Normally distributed numbers, redrawn where they lie more than two standard deviations from the mean.

    >>> bool(tf.reduce_all(tf.abs(tf.keras.random.truncated_normal([100], stddev=0.1)) <= 0.2))
    True
    """
    return tf.truncated_normal_by(keys_of(seed), shape, mean, stddev, _floating("truncated_normal", dtype))


def uniform(shape: Any, minval: TensorLike = 0.0, maxval: TensorLike = 1.0, dtype: Any = None, seed: Seed = None) -> Tensor:
    """Evenly distributed numbers in [minval, maxval).

    >>> generator = tf.keras.random.SeedGenerator(1)
    >>> first, second = (tf.keras.random.uniform((), seed=generator) for _ in range(2))
    >>> bool(first == second)
    False
    """
    return tf.uniform_by(keys_of(seed), shape, minval, maxval, _floating("uniform", dtype))


def randint(shape: Any, minval: TensorLike, maxval: TensorLike, dtype: Any = "int32", seed: Seed = None) -> Tensor:
    """Evenly distributed integers in [minval, maxval).

    >>> sorted(set(tf.keras.random.randint([100], 0, 3, seed=1).numpy().tolist()))
    [0, 1, 2]
    """
    if not as_dtype(dtype).is_integer:
        raise ValueError(f"random.randint: expected an integer dtype, found {dtype!r}. `uniform` gives floats.")
    return tf.uniform_by(keys_of(seed), shape, minval, maxval, dtype, "randint")


def categorical(logits: TensorLike, num_samples: int, dtype: Any = "int32", seed: Seed = None) -> Tensor:
    """Indices drawn with probabilities softmax(logits), for each row (batch, classes) -> (batch, num_samples).

    >>> print(tf.keras.random.categorical([[0.0, -1e9]], 3).numpy())
    [[0 0 0]]
    """
    return tf.categorical_by(keys_of(seed), logits, num_samples, dtype)


def shuffle(x: TensorLike, axis: int = 0, seed: Seed = None) -> Tensor:
    """The slices along an axis in random order.

    >>> sorted(tf.keras.random.shuffle([1, 2, 3]).numpy().tolist())
    [1, 2, 3]
    """
    values, part = tensor(x), current_part()
    if part is None or axis % values.ndim or values.shape[0] != part.rows:
        return tf.shuffled(values, keys_of(seed), axis)
    whole = tf.shuffled(rows_of_all_parts(values), keys_of(seed), axis)
    return whole[part.first : part.first + part.rows]


def dropout(inputs: TensorLike, rate: float, noise_shape: Sequence[int | None] | None = None, seed: Seed = None) -> Tensor:
    """Each element is zero with probability `rate`; the others are scaled by 1 / (1 - rate).

    Args:
        inputs: floats.
        rate: in [0, 1].
        noise_shape: the shape of the mask, broadcast over the inputs; None entries follow the inputs.
        seed: see above.

    >>> sorted(set(tf.keras.random.dropout(tf.ones([100]), 0.5, seed=1).numpy().tolist()))
    [0.0, 2.0]
    """
    x = tensor(inputs)
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"random.dropout: rate must be in [0, 1], found {rate}.")
    if rate in (0.0, 1.0):
        return zeros_like(x) if rate else x
    sizes = noise_shape if noise_shape is not None else [None] * x.ndim
    if not x.dtype.is_floating or len(sizes) != x.ndim:
        raise ValueError(
            f"random.dropout: expected floats and a noise_shape with a size or None for each axis, found {x.dtype.name}, shape "
            f"{tuple(x.shape)} and noise_shape={noise_shape}."
        )
    shape = tuple([size if wanted is None else wanted for wanted, size in zip(sizes, x.shape, strict=True)])
    part = {} if sizes and sizes[0] == 1 else part_of_draw(shape)
    return dropped(x, keys_of(seed), shape, rate, **part)


def gamma(shape: Any, alpha: TensorLike, dtype: Any = None, seed: Seed = None) -> Tensor:
    """Numbers of the gamma distribution with shape parameter `alpha`, above 0, and scale 1.

    >>> tf.keras.random.gamma((2, 3), 0.5).shape
    TensorShape([2, 3])
    """
    return _drawn(draws.random_gamma, "gamma", shape, dtype, seed, alpha)


def beta(shape: Any, alpha: TensorLike, beta: TensorLike, dtype: Any = None, seed: Seed = None) -> Tensor:
    """Numbers of the beta distribution with parameters `alpha` and `beta`, above 0.

    >>> bool(tf.reduce_all(tf.keras.random.beta((9,), 2.0, 3.0) < 1.0))
    True
    """
    return _drawn(draws.random_beta, "beta", shape, dtype, seed, alpha, beta)


def binomial(shape: Any, counts: TensorLike, probabilities: TensorLike, dtype: Any = None, seed: Seed = None) -> Tensor:
    """Numbers of successes among `counts` trials, each of probability `probabilities`.

    >>> tf.keras.random.binomial((2,), 5, 1.0).numpy()
    array([5., 5.], dtype=float32)
    """
    return _drawn(draws.random_binomial, "binomial", shape, dtype, seed, counts, probabilities)


def _drawn(primitive: Any, name: str, shape: Any, dtype: Any, seed: Seed, *parameters: TensorLike) -> Tensor:
    """A draw with parameters, which may be others in each run."""
    return tf.drawn(primitive, keys_of(seed), shape, _floating(name, dtype), *[tensor(one) for one in parameters])


def _floating(name: str, dtype: Any) -> Any:
    wanted = as_dtype(floatx() if dtype is None else dtype)
    if not wanted.is_floating:
        raise ValueError(f"random.{name}: expected a float dtype, found {dtype!r}. `randint` gives integers.")
    return wanted
