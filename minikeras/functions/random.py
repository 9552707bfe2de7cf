"""Random tensors: from the global stream, from a Generator, or stateless from a seed.

The numbers are not TensorFlow's; the contracts are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import namespace, to_device, to_numpy
from ..arrays import random as streams
from ..core import Tensor
from ..core.effects import draw
from ..errors import InvalidArgumentError
from ..ops import arithmetic
from ..types import Array, TensorLike, as_dtype
from .publish import static_shape, tensor


def set_seed(seed: int | None) -> None:
    """Start the global stream anew: the same calls then give the same numbers. None takes a seed from the system.

    >>> tf.random.set_seed(1)
    >>> first = float(tf.random.normal([]))
    >>> tf.random.set_seed(1)
    >>> float(tf.random.normal([])) == first
    True
    """
    streams.set_global_seed(seed)


Source = Callable[[], "np.random.Generator"]


def source_of(seed: Any) -> Source:
    """Draws of the global stream; an operation seed gives them a stream of their own beside it."""
    stream = streams.global_stream()
    if seed is None:
        return stream.generator
    own = int(seed)

    def generator() -> np.random.Generator:
        stream.generator()
        return streams.generator_at(stream.seed ^ (own << 20) ^ 0x5EED, stream.position)

    return generator


def _normal(source: Source, shape: Any, mean: Any, stddev: Any, dtype: Any) -> Tensor:
    sizes, kind = static_shape(shape), as_dtype(dtype).numpy
    return draw(source, lambda generator: streams.normal(generator, sizes, kind)) * stddev + mean


def _uniform(source: Source, shape: Any, minval: Any, maxval: Any, dtype: Any) -> Tensor:
    wanted, sizes = as_dtype(dtype), static_shape(shape)
    if wanted.is_integer:
        if maxval is None:
            raise ValueError(f"random.uniform: maxval is needed for the integer dtype {wanted.name}.")
        low, high = np.asarray(minval), np.asarray(maxval)
        if np.any(low >= high) and 0 not in sizes:
            raise InvalidArgumentError(
                f"random.uniform: minval {minval} must lie below maxval {maxval}; no integer lies between."
            )
        return draw(source, lambda generator: to_device(generator.integers(low, high, sizes, dtype=wanted.numpy)))
    unit = draw(source, lambda generator: streams.uniform(generator, sizes, wanted.numpy))
    minval, maxval = (tensor(bound) if isinstance(bound, (list, tuple)) else bound for bound in (minval, maxval))
    limit: Any = 1.0 if maxval is None else maxval
    found = unit * (limit - minval) + minval
    if not hasattr(minval, "dtype") and np.ndim(minval) == 0 and minval == 0:
        return found  # a product with a number below 1 is never rounded up to the other factor
    lowest = arithmetic.zeros_like(found) + minval
    return arithmetic.select((found >= limit) & (lowest < limit), lowest, found)  # a sum may be rounded up to maxval


def normal(
    shape: Any,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: Any = "float32",
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers.

    >>> tf.random.normal([2, 3]).shape
    TensorShape([2, 3])
    """
    return _normal(source_of(seed), shape, mean, stddev, dtype)


def truncated_normal(
    shape: Any,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: Any = "float32",
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers, redrawn where they lie more than two standard deviations from the mean.

    >>> bool(tf.reduce_all(tf.abs(tf.random.truncated_normal([100])) <= 2.0))
    True
    """
    sizes, kind = static_shape(shape), as_dtype(dtype).numpy
    return draw(source_of(seed), lambda generator: streams.truncated_normal(generator, sizes, kind)) * stddev + mean


def uniform(
    shape: Any,
    minval: TensorLike = 0,
    maxval: TensorLike = None,
    dtype: Any = "float32",
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Evenly distributed numbers in [minval, maxval); maxval is 1 for floats and must be given for integers.

    >>> bool(tf.reduce_all(tf.random.uniform([100], maxval=6, dtype=tf.int32) < 6))
    True
    """
    return _uniform(source_of(seed), shape, minval, maxval, dtype)


def shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """The slices along the first axis in random order.

    >>> sorted(tf.random.shuffle([1, 2, 3]).numpy().tolist())
    [1, 2, 3]
    """
    from .indexing import gather

    x = tensor(value)
    if not x.ndim:
        return x
    rows = x.shape[0]
    return gather(x, draw(source_of(seed), lambda generator: to_device(generator.permutation(rows), namespace(x._array))))


def categorical(
    logits: TensorLike, num_samples: int, dtype: Any = "int64", seed: int | None = None, name: str | None = None
) -> Tensor:
    """Indices drawn with probabilities softmax(logits), for each row (batch, classes) -> (batch, num_samples).

    >>> print(tf.random.categorical([[0.0, -1e9]], 3).numpy())
    [[0 0 0]]
    """
    from .reductions import argmax
    from .shaping import expand_dims

    rows = tensor(logits)
    sizes, kind, xp = (rows.shape[0], int(num_samples), rows.shape[1]), rows.dtype.numpy, namespace(rows._array)

    def gumbel(generator: np.random.Generator) -> Array:
        noise = to_numpy(streams.uniform(generator, sizes, np.dtype("float64")))
        return to_device((-np.log(-np.log(np.maximum(noise, 1e-300)))).astype(kind), xp)

    return argmax(expand_dims(rows, 1) + draw(source_of(seed), gumbel), -1, dtype)


def _seed_pair(seed: Any) -> tuple[int, int]:
    first, second = (int(part) for part in np.asarray(seed).reshape(-1))
    return first & (2**64 - 1), second & (2**64 - 1)


def stateless_normal(
    shape: Any, seed: Any, mean: TensorLike = 0.0, stddev: TensorLike = 1.0, dtype: Any = "float32", name: str | None = None
) -> Tensor:
    """Normally distributed numbers that depend only on the arguments; `seed` is a pair of integers.

    >>> first, second = (tf.random.stateless_normal([2], seed=[1, 2]) for _ in range(2))
    >>> bool(tf.reduce_all(first == second))
    True
    """
    pair = _seed_pair(seed)
    return _normal(lambda: streams.generator_at(*pair), shape, mean, stddev, dtype)


def stateless_uniform(
    shape: Any, seed: Any, minval: TensorLike = 0, maxval: TensorLike = None, dtype: Any = "float32", name: str | None = None
) -> Tensor:
    """Evenly distributed numbers that depend only on the arguments; `seed` is a pair of integers.

    >>> tf.random.stateless_uniform([2], seed=[1, 2]).shape
    TensorShape([2])
    """
    pair = _seed_pair(seed)
    return _uniform(lambda: streams.generator_at(*pair), shape, minval, maxval, dtype)


class Generator:
    """A separate stream of random numbers.

    >>> a, b = (tf.random.Generator.from_seed(7) for _ in range(2))
    >>> bool(tf.reduce_all(a.normal([3]) == b.normal([3])))
    True
    """

    def __init__(self, stream: streams.Stream) -> None:
        self._stream = stream

    @classmethod
    def from_seed(cls, seed: int, alg: Any = None) -> Generator:
        """A generator that repeats for the same seed."""
        return cls(streams.Stream(int(seed)))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator that differs from run to run."""
        return cls(streams.Stream(int(np.random.SeedSequence().generate_state(1, np.uint64)[0])))

    @property
    def state(self) -> tuple[int, int]:
        """Seed and position: all there is to save."""
        return self._stream.state

    def reset_from_seed(self, seed: int) -> None:
        """Start anew."""
        self._stream.state = (int(seed), 0)

    def normal(
        self, shape: Any, mean: TensorLike = 0.0, stddev: TensorLike = 1.0, dtype: Any = "float32", name: str | None = None
    ) -> Tensor:
        """Normally distributed numbers."""
        return _normal(self._stream.generator, shape, mean, stddev, dtype)

    def uniform(
        self, shape: Any, minval: TensorLike = 0, maxval: TensorLike = None, dtype: Any = "float32", name: str | None = None
    ) -> Tensor:
        """Evenly distributed numbers in [minval, maxval)."""
        return _uniform(self._stream.generator, shape, minval, maxval, dtype)

    def split(self, count: int = 1) -> list[Generator]:
        """Independent generators that depend only on this one's state."""
        return [Generator(self._stream.fork()) for _ in range(count)]
