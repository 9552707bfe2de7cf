"""Random tensors: from the global stream, from a Generator, or stateless from a seed.

The numbers are not TensorFlow's; the contracts are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import namespace, to_device
from ..arrays import random as streams
from ..core import Tensor, convert_to_tensor
from ..core.batch import own_values
from ..core.effects import draw, draw_key
from ..errors import DTypeError, InvalidArgumentError, ShapeError
from ..ops import arithmetic, transcendental
from ..types import Array, TensorLike, as_dtype
from .publish import integer, static_shape, tensor


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
    """Draws of the global stream; an operation seed gives them a stream of their own beside it. A source stays what it is."""
    if callable(seed):
        return seed  # type: ignore[no-any-return]
    stream = streams.global_stream()
    if seed is None:
        return stream.generator
    own = int(seed)

    def generator() -> np.random.Generator:
        stream.generator()
        return streams.generator_at(stream.seed ^ (own << 20) ^ 0x5EED, stream.position)

    return generator


Keys = Callable[[], Tensor]


def keys_of(seed: Any) -> Keys:
    """Keys of the draws that `source_of` would give generators for."""
    if callable(seed):
        return seed  # type: ignore[no-any-return]
    stream = streams.global_stream()
    if seed is None:
        return lambda: draw_key(stream.key)
    own = int(seed)

    def key() -> Array:
        stream.key()
        return streams.Stream(stream.seed ^ (own << 20) ^ 0x5EED, stream.position).key()

    return lambda: draw_key(key)


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
    return within(draw(source, lambda generator: streams.uniform(generator, sizes, wanted.numpy)), minval, maxval)


def within(unit: Tensor, minval: Any, maxval: Any) -> Tensor:
    """Numbers in [0, 1) as numbers in [minval, maxval); the limit is 1 if it is None."""
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
    return _categorical(source_of(seed), logits, num_samples, dtype)


def _categorical(source: Source, logits: TensorLike, num_samples: int, dtype: Any) -> Tensor:
    rows = tensor(logits)
    sizes, xp = (rows.shape[0], int(num_samples), rows.shape[1]), namespace(rows._array)
    unit = draw(source, lambda generator: to_device(generator.random(sizes), xp))
    return chosen(rows, unit, dtype)


def chosen(rows: Tensor, unit: Tensor, dtype: Any) -> Tensor:
    """Indices with probabilities softmax(rows), by the largest sum of a logit and Gumbel's noise, made of numbers in [0, 1)."""
    from .reductions import argmax
    from .shaping import expand_dims

    gumbel = -transcendental.log(-transcendental.log(arithmetic.maximum(unit, 1e-300)))
    return argmax(expand_dims(rows, 1) + arithmetic.cast(gumbel, dtype=rows.dtype.name), -1, dtype)


def gamma(
    shape: Any,
    alpha: TensorLike,
    beta: TensorLike = None,
    dtype: Any = "float32",
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers with the density beta**alpha x**(alpha - 1) exp(-beta x) / gamma(alpha).

    Args:
        shape: how many for each pair of parameters.
        alpha, beta: tensors of positive numbers, broadcast against one another; beta is 1 by default.
        dtype: of the results.
        seed: of these numbers.

    Returns:
        A Tensor of shape `shape` + that of the parameters. Gradients go to beta, and to alpha by implicit differentiation.

    >>> tf.random.gamma([10], [0.5, 1.5]).shape
    TensorShape([10, 2])
    """
    return _gamma(source_of(seed), shape, alpha, beta, dtype)


def _gamma(source: Source, shape: Any, alpha: TensorLike, beta: TensorLike, dtype: Any) -> Tensor:
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise DTypeError(f"gamma: dtype must be a float, found {kind.name}.")
    shaped = convert_to_tensor(alpha, kind)
    rate = None if beta is None else convert_to_tensor(beta, kind)
    if rate is not None:
        shaped = shaped + arithmetic.zeros_like(rate)
    sizes, xp = (*static_shape(shape), *shaped.shape), namespace(shaped._array)
    concentrations = _not_negative("gamma", "alpha", own_values(shaped))
    sample = draw(source, lambda generator: to_device(generator.standard_gamma(concentrations, sizes).astype(kind.numpy), xp))
    sample = transcendental.gamma_sample(shaped, sample)
    return sample if rate is None else arithmetic.maximum(sample / rate, float(kind.info.tiny))


def _not_negative(name: str, what: str, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if values.dtype.kind not in "iuf" or not (values >= 0).all():
        raise InvalidArgumentError(f"{name}: {what} must be numbers of at least 0, found {values.tolist()!r:.80}.")
    return values


def poisson(shape: Any, lam: TensorLike, dtype: Any = "float32", seed: int | None = None, name: str | None = None) -> Tensor:
    """Counts of events that come `lam` times on average: P(k) = lam**k exp(-lam) / k!. Without gradients.

    Returns:
        A Tensor of shape `shape` + lam.shape.

    >>> tf.random.poisson([10], [12.2, 3.3]).shape
    TensorShape([10, 2])
    """
    return _poisson(source_of(seed), shape, lam, dtype)


def _poisson(source: Source, shape: Any, lam: TensorLike, dtype: Any) -> Tensor:
    rates, kind = tensor(lam), as_dtype(dtype).numpy
    sizes, xp = (*static_shape(shape), *rates.shape), namespace(rates._array)
    means = _not_negative("poisson", "lam", own_values(rates))
    return draw(source, lambda generator: to_device(generator.poisson(means, sizes).astype(kind), xp))


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


def stateless_truncated_normal(
    shape: Any, seed: Any, mean: TensorLike = 0.0, stddev: TensorLike = 1.0, dtype: Any = "float32", name: str | None = None
) -> Tensor:
    """As `truncated_normal`, of numbers that depend only on the arguments; `seed` is a pair of integers.

    >>> bool(tf.reduce_all(tf.abs(tf.random.stateless_truncated_normal([100], [1, 2])) <= 2.0))
    True
    """
    pair, sizes, kind = _seed_pair(seed), static_shape(shape), as_dtype(dtype).numpy
    source = lambda: streams.generator_at(*pair)
    return draw(source, lambda generator: streams.truncated_normal(generator, sizes, kind)) * stddev + mean


def stateless_gamma(
    shape: Any, seed: Any, alpha: TensorLike, beta: TensorLike = None, dtype: Any = "float32", name: str | None = None
) -> Tensor:
    """As `gamma`, of numbers that depend only on the arguments; `shape` is that of the result.

    >>> tf.random.stateless_gamma([10, 2], [1, 2], [0.5, 1.5]).shape
    TensorShape([10, 2])
    """
    pair = _seed_pair(seed)
    return _gamma(lambda: streams.generator_at(*pair), _in_front("stateless_gamma", shape, alpha, beta), alpha, beta, dtype)


def stateless_poisson(shape: Any, seed: Any, lam: TensorLike, dtype: Any = "int32", name: str | None = None) -> Tensor:
    """As `poisson`, of numbers that depend only on the arguments; `shape` is that of the result.

    >>> tf.random.stateless_poisson([10, 2], [1, 2], [12.2, 3.3]).shape
    TensorShape([10, 2])
    """
    pair = _seed_pair(seed)
    return _poisson(lambda: streams.generator_at(*pair), _in_front("stateless_poisson", shape, lam, None), lam, dtype)


def _in_front(name: str, shape: Any, *parameters: TensorLike) -> tuple[int, ...]:
    """The axes of a result in front of those of the parameters."""
    sizes = static_shape(shape)
    own = np.broadcast_shapes(*(tuple(tensor(one).shape) for one in parameters if one is not None))
    if sizes[len(sizes) - len(own) :] != own:
        raise ShapeError(f"{name}: shape {list(sizes)} must end with that of the parameters, {list(own)}.")
    return sizes[: len(sizes) - len(own)]


def stateless_categorical(
    logits: TensorLike, num_samples: int, seed: Any, dtype: Any = "int64", name: str | None = None
) -> Tensor:
    """As `categorical`, of numbers that depend only on the arguments.

    >>> print(tf.random.stateless_categorical([[0.0, -1e9]], 3, [1, 2]).numpy())
    [[0 0 0]]
    """
    pair = _seed_pair(seed)
    return _categorical(lambda: streams.generator_at(*pair), logits, num_samples, dtype)


def split(seed: Any, num: int = 2) -> Tensor:
    """New seeds for the stateless functions from one: (num, 2) integers that depend on it alone.

    >>> tf.random.split([1, 2]).shape
    TensorShape([2, 2])
    """
    found = streams.generator_at(*_seed_pair(seed)).integers(2**31, size=(integer(num), 2), dtype="int32")
    return tensor(found)


def fold_in(seed: Any, data: int) -> Tensor:
    """A new seed from a seed and a number.

    >>> tf.random.fold_in([1, 2], 3).shape
    TensorShape([2])
    """
    first, second = _seed_pair(seed)
    return tensor(streams.generator_at(first ^ (integer(data) << 32), second).integers(2**31, size=2, dtype="int32"))


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

    def truncated_normal(
        self, shape: Any, mean: TensorLike = 0.0, stddev: TensorLike = 1.0, dtype: Any = "float32", name: str | None = None
    ) -> Tensor:
        """Normally distributed numbers within two standard deviations."""
        sizes, kind = static_shape(shape), as_dtype(dtype).numpy
        drawn = draw(self._stream.generator, lambda generator: streams.truncated_normal(generator, sizes, kind))
        return drawn * stddev + mean

    def binomial(
        self, shape: Any, counts: TensorLike, probs: TensorLike, dtype: Any = "int32", name: str | None = None
    ) -> Tensor:
        """How many of `counts` trials succeed, each with probability `probs`; the last axes of `shape` are the parameters'."""
        sizes, kind = static_shape(shape), as_dtype(dtype).numpy
        trials, chances = own_values(tensor(counts)), own_values(tensor(probs))
        return draw(
            self._stream.generator,
            lambda generator: to_device(generator.binomial(trials.astype("int64"), chances, sizes).astype(kind)),
        )

    def split(self, count: int = 1) -> list[Generator]:
        """Independent generators that depend only on this one's state."""
        return [Generator(self._stream.fork()) for _ in range(count)]
