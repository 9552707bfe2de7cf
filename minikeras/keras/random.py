"""`keras.random`: random tensors under Keras's names. `seed` says where they come from: an int gives the same numbers at each
call, a `SeedGenerator` its next ones, None those of the global stream, which `keras.utils.set_random_seed` starts anew.

The numbers are not Keras's; the contracts are. No gradient flows to the parameters of gamma, beta and binomial distributions.

Layers have a tree of named streams, whose state lies in Variables that are saved and rolled back. A layer's seed follows from
that of the layer around it and its name, so what other layers draw makes no difference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core import Tensor, Write, decide, draw_key, operations
from ..functions import random as tf
from ..functions import tensor, zeros_like
from ..functions.nn import dropped
from ..nn_ops import draws, streams
from ..ranks import rows_here
from ..types import DTypeLike, ShapeLike, TensorLike, as_dtype
from .arguments import as_call
from .calls import context
from .config import floatx
from .weight import HostVariable

__all__ = [
    *("SeedGenerator", "beta", "binomial", "categorical", "dropout", "gamma", "normal", "randint", "shuffle"),
    *("truncated_normal", "uniform"),
]

# Seeds -----------------------------------------------------------------------------------------------------------------


def default_seed() -> int:
    """A seed drawn from the global stream: fixed by `set_random_seed` and the order of creation."""
    return streams.global_stream().integer() % (2**31 - 1)


def derived_seed(*parts: Any) -> int:
    """A seed that is fixed by the parts, such as a seed, a name and a number.

    >>> derived_seed(1, "dropout", 0) == derived_seed(1, "dropout", 0) != derived_seed(1, "dropout", 1)
    True
    """
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little")


def outermost_seed(label: str) -> int:
    """The seed of the next layer of this name that lies in no other, counted since the global seed was set."""
    stream = streams.named_stream(f"layer {label}")
    stream.position += 1
    return derived_seed(stream.seed, stream.position)


def set_random_seed(seed: int) -> None:
    """Start all random streams anew: this package's, NumPy's global one and Python's.

    Args:
        seed: an int of at least 0.

    What a layer draws, first weights and noise, then depends on the seed, the names of the layers around it and its own (the
    class, if it was given none), and how many of that name there were before it in the same place.

    >>> def kernel(*names):
    ...     tf.keras.utils.set_random_seed(1)
    ...     layers = {name: tf.keras.layers.Dense(2, name=name) for name in names}
    ...     return layers["b"](tf.ones([1, 3])).numpy().tolist()
    >>> kernel("a", "b") == kernel("b")
    True
    """
    import random

    if not isinstance(seed, int) or seed < 0:
        raise ValueError(f"set_random_seed: expected an int of at least 0, found {seed!r}.")
    random.seed(seed)
    np.random.seed(seed % 2**32)
    streams.set_global_seed(seed)


def keys_of(seed: Any) -> Callable[[], Tensor]:
    """Keys of draws: an int gives the same one each time, a SeedGenerator its next ones, None those of the global stream.

    Raises:
        ValueError: for anything else.
    """
    if isinstance(seed, SeedGenerator):
        return seed.key
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        return lambda: Tensor(streams.Stream(int(seed)).key())
    if seed is not None:
        raise ValueError(f"random: seed must be an int, a SeedGenerator or None, found {seed!r:.100}.")
    return lambda: draw_key(streams.global_stream().key)


class SeedState(HostVariable):
    """The Variable of a SeedGenerator: state of a layer, but none of its weights."""

    __slots__ = ()


class SeedGenerator:
    """A random stream of a layer: `state` is a Variable that holds seed and position.

    Args:
        seed: an int repeats. None: held by a layer, it follows the layer's name; by itself, it draws from the global stream.
        name: of the state.

    >>> generator = SeedGenerator(seed=1)
    >>> generator.next()
    array([1, 0], dtype=uint32)
    >>> generator.next()
    array([1, 1], dtype=uint32)
    """

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0):
            raise ValueError(f"SeedGenerator: seed must be an int of at least 0 or None, found {seed!r}.")
        self._given_seed = seed
        self.name = name or "seed_generator"
        start = default_seed() if seed is None else int(seed) % 2**32
        state = np.array([start, 0], dtype=np.uint32)
        path = context.path(self.name, "seed_generator_state")
        self.state = SeedState(state, trainable=False, name=name or "seed_generator_state", path=path)
        self._first: Any = self.state.array if seed is None else None

    def follow(self, seed: int) -> None:
        """Start from the seed that its layer has for it, unless it was given one or its state has changed since."""
        if self._first is not None and self.state.array is self._first:
            first = np.array([seed, 0], dtype=np.uint32)
            self.state.note_assignment(None, first, Write.FIRST)
            self.state.array = first

    def checkpoint_children(self) -> Iterator[tuple[str, Any]]:
        yield "state", self.state

    def next(self, ordered: bool = True) -> Any:
        """Seed and position of the next draw; the position moves on, in order whatever `ordered` says."""
        decide(self.state)
        state = np.array(self.state.array)
        self.state.assign(Tensor(state + np.array([0, 1], dtype=np.uint32)))
        return state

    def key(self) -> Tensor:
        """Seed and position of the next draw, as a Tensor: a read and an assignment, which a compiled step repeats."""
        state = self.state.read_value()
        self.state.assign(operations.next_key(state), read_value=False)
        return state

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"seed": self._given_seed, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SeedGenerator:
        """A generator from `get_config`."""
        return cls(**config)

    __repr__ = as_call


# Tensors ---------------------------------------------------------------------------------------------------------------


Seed = int | SeedGenerator | None


def normal(
    shape: ShapeLike, mean: TensorLike = 0.0, stddev: TensorLike = 1.0, dtype: DTypeLike = None, seed: Seed = None
) -> Tensor:
    """Normally distributed numbers.

    >>> same = [tf.keras.random.normal((2,), seed=1).numpy().tolist() for _ in range(2)]
    >>> same[0] == same[1]
    True
    """
    return tf.normal_by(keys_of(seed), shape, mean, stddev, _floating("normal", dtype))


def truncated_normal(
    shape: ShapeLike, mean: TensorLike = 0.0, stddev: TensorLike = 1.0, dtype: DTypeLike = None, seed: Seed = None
) -> Tensor:
    """Normally distributed numbers, redrawn where they lie more than two standard deviations from the mean.

    >>> bool(tf.reduce_all(tf.abs(tf.keras.random.truncated_normal([100], stddev=0.1)) <= 0.2))
    True
    """
    return tf.truncated_normal_by(keys_of(seed), shape, mean, stddev, _floating("truncated_normal", dtype))


def uniform(
    shape: ShapeLike, minval: TensorLike = 0.0, maxval: TensorLike = 1.0, dtype: DTypeLike = None, seed: Seed = None
) -> Tensor:
    """Evenly distributed numbers in [minval, maxval).

    >>> generator = tf.keras.random.SeedGenerator(1)
    >>> first, second = (tf.keras.random.uniform((), seed=generator) for _ in range(2))
    >>> bool(first == second)
    False
    """
    return tf.uniform_by(keys_of(seed), shape, minval, maxval, _floating("uniform", dtype))


def randint(shape: ShapeLike, minval: TensorLike, maxval: TensorLike, dtype: DTypeLike = "int32", seed: Seed = None) -> Tensor:
    """Evenly distributed integers in [minval, maxval).

    >>> sorted(set(tf.keras.random.randint([100], 0, 3, seed=1).numpy().tolist()))
    [0, 1, 2]
    """
    if not as_dtype(dtype).is_integer:
        raise ValueError(f"random.randint: expected an integer dtype, found {dtype!r}. `uniform` gives floats.")
    return tf.uniform_by(keys_of(seed), shape, minval, maxval, dtype, "randint")


def categorical(logits: TensorLike, num_samples: int, dtype: DTypeLike = "int32", seed: Seed = None) -> Tensor:
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
    values, here = tensor(x), rows_here()
    if here.rows is None or axis % values.ndim or values.shape[0] != here.rows:
        return tf.shuffled(values, keys_of(seed), axis)
    return tf.shuffled(here.all(values), keys_of(seed), axis)[here.first : here.first + here.rows]


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
    return dropped(x, keys_of(seed), sizes, rate)


def gamma(shape: ShapeLike, alpha: TensorLike, dtype: DTypeLike = None, seed: Seed = None) -> Tensor:
    """Numbers of the gamma distribution with shape parameter `alpha`, above 0, and scale 1.

    >>> tf.keras.random.gamma((2, 3), 0.5).shape
    TensorShape([2, 3])
    """
    return _drawn(draws.random_gamma, "gamma", shape, dtype, seed, alpha)


def beta(shape: ShapeLike, alpha: TensorLike, beta: TensorLike, dtype: DTypeLike = None, seed: Seed = None) -> Tensor:
    """Numbers of the beta distribution with parameters `alpha` and `beta`, above 0.

    >>> bool(tf.reduce_all(tf.keras.random.beta((9,), 2.0, 3.0) < 1.0))
    True
    """
    return _drawn(draws.random_beta, "beta", shape, dtype, seed, alpha, beta)


def binomial(
    shape: ShapeLike, counts: TensorLike, probabilities: TensorLike, dtype: DTypeLike = None, seed: Seed = None
) -> Tensor:
    """Numbers of successes among `counts` trials, each of probability `probabilities`.

    >>> tf.keras.random.binomial((2,), 5, 1.0).numpy()
    array([5., 5.], dtype=float32)
    """
    return _drawn(draws.random_binomial, "binomial", shape, dtype, seed, counts, probabilities)


def _drawn(primitive: Any, name: str, shape: ShapeLike, dtype: DTypeLike, seed: Seed, *parameters: TensorLike) -> Tensor:
    """A draw with parameters, which may be others in each run."""
    return tf.drawn(primitive, keys_of(seed), shape, _floating(name, dtype), *[tensor(one) for one in parameters])


def _floating(name: str, dtype: DTypeLike) -> Any:
    wanted = as_dtype(floatx() if dtype is None else dtype)
    if not wanted.is_floating:
        raise ValueError(f"random.{name}: expected a float dtype, found {dtype!r}. `randint` gives integers.")
    return wanted
