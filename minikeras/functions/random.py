"""Random tensors: from the global stream, from a Generator, or stateless from a seed.

Each draw is a function of a key, see `nn_ops/draws.py`. The numbers are not TensorFlow's; the contracts are.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ..core import BOTTOM, Tensor, convert_to_tensor, current, draw_key
from ..core.arrays import creation_namespace, namespace, quiet_context
from ..core.ops import arithmetic, indexing, reductions, transcendental
from ..errors import DTypeError, InvalidArgumentError, ShapeError
from ..nn_ops import draws, special, streams
from ..ranks import rows_here
from ..types import Array, DType, DTypeLike, ShapeLike, TensorLike, as_dtype
from .catalogue import row
from .operands import beside, integer, negative_axis, static_shape, tensor


def set_seed(seed: int | None) -> None:
    """Start the global stream anew: the same calls then give the same numbers. None takes a seed from the system.

    >>> tf.random.set_seed(1)
    >>> first = float(tf.random.normal([]))
    >>> tf.random.set_seed(1)
    >>> float(tf.random.normal([])) == first
    True
    """
    streams.set_global_seed(None if seed is None else _seed(seed))


Keys = Callable[[], Tensor]
"""A function that gives the key of a draw, another one at each call."""


def keys_of(seed: Any) -> Keys:
    """Keys of the global stream; an operation seed gives them a stream of their own beside it."""
    stream = streams.global_stream()
    if seed is None:
        return lambda: draw_key(stream.key)
    mix = ((_seed(seed) << 20) ^ 0x5EED) & (2**64 - 1)
    return lambda: draws.operation_key(draw_key(stream.key), mix=mix)


def _seed(seed: Any) -> int:
    try:
        return operator.index(seed)
    except TypeError:
        raise DTypeError(f"random: a seed must be one integer, found {seed!r:.60}.") from None


def _fixed(seed: Any) -> Keys:
    """One key: the pair of integers that is the seed of a stateless function. A Tensor may hold another pair in each run."""
    pair = seed if isinstance(seed, Tensor) else np.asarray(seed)
    if tuple(pair.shape) != (2,):
        raise ShapeError(f"random: the seed of a stateless draw is a pair of integers, found shape {tuple(pair.shape)}.")
    if not isinstance(pair, Tensor):
        first, second = [_seed(one) for one in pair.tolist()]
        return lambda: Tensor(streams.Stream(first, second).key())
    if not pair.dtype.is_integer:
        raise DTypeError(f"random: the seed of a stateless draw is a pair of integers, found {pair.dtype.name}.")
    return lambda: arithmetic.cast(pair, dtype="uint64")


def drawn(
    primitive: Any, keys: Keys, shape: ShapeLike, dtype: DTypeLike, *given: Tensor, xp: ModuleType | None = None, **params: Any
) -> Tensor:
    """A draw, by default on the current device. For the rows of a part of a batch it is that part of the draw for the whole.

    Raises:
        ValueError: for a negative size; then no key is asked for.
    """
    sizes = static_shape(shape)
    if min(sizes, default=0) < 0:
        raise ValueError(f"random: no size may be negative, found {sizes}.")
    where, kind = creation_namespace() if xp is None else xp, as_dtype(dtype).numpy
    params |= rows_here().draw(sizes, exactly=True)
    found: Tensor = primitive(keys(), *given, shape=sizes, dtype=kind, xp=where, **params)
    return found


def floating(name: str, dtype: DTypeLike) -> Any:
    """A dtype of floats.

    Raises:
        DTypeError: for another one.
    """
    wanted = as_dtype(dtype)
    if not wanted.is_floating:
        raise DTypeError(f"random.{name}: expected a float dtype, found {wanted.name}. `keras.random.randint` gives integers.")
    return wanted


def _countable(name: str, dtype: DTypeLike) -> Any:
    wanted = as_dtype(dtype)
    if not wanted.is_floating and wanted.name not in ("int32", "int64"):
        raise DTypeError(f"random.{name}: counts are floats, int32 or int64, found {wanted.name}.")
    return wanted


def _scaled(found: Tensor, factor: Any, term: Any) -> Tensor:
    """found * factor + term, where nothing else has seen the draw in its own memory: other memory would take as long again."""
    array, is_unseen = found.array, current() is BOTTOM
    if is_unseen and type(array) is np.ndarray and array.dtype.kind == "f" and type(factor) is type(term) is float:
        quiet_context().run(_scale, array, factor, term)
        return found
    return found * factor + term


def _scale(array: Array, factor: float, term: float) -> None:
    array *= factor
    array += term


def _shifted(found: Tensor, stddev: TensorLike, mean: TensorLike) -> Tensor:
    if type(stddev) in (int, float) and stddev == 1:
        return found if type(mean) in (int, float) and mean == 0 else found + mean
    return _scaled(found, stddev, mean)


def normal_by(keys: Keys, shape: ShapeLike, mean: TensorLike, stddev: TensorLike, dtype: DTypeLike) -> Tensor:
    """As `normal`, for a key of any stream."""
    return _shifted(drawn(draws.random_normal, keys, shape, floating("normal", dtype)), stddev, mean)


def truncated_normal_by(keys: Keys, shape: ShapeLike, mean: TensorLike, stddev: TensorLike, dtype: DTypeLike) -> Tensor:
    """As `truncated_normal`, for a key of any stream."""
    return _shifted(drawn(draws.random_truncated_normal, keys, shape, floating("truncated_normal", dtype)), stddev, mean)


def uniform_by(
    keys: Keys, shape: ShapeLike, minval: TensorLike, maxval: TensorLike, dtype: DTypeLike, name: str = "uniform"
) -> Tensor:
    """As `uniform`, for a key of any stream; `name` is that of the function, for errors."""
    wanted = as_dtype(dtype)
    if not wanted.is_integer:
        return within(drawn(draws.random_uniform, keys, shape, floating(name, wanted)), minval, maxval)
    if minval is None and maxval is None:
        minval, maxval = wanted.info.min, int(wanted.info.max) + 1
    if maxval is None:
        raise ValueError(f"random.{name}: maxval is needed for the integer dtype {wanted.name}.")
    low, high = _bound(name, "minval", minval, wanted), _bound(name, "maxval", maxval, wanted)
    if low >= high and 0 not in static_shape(shape):
        raise InvalidArgumentError(f"random.{name}: minval {minval} must lie below maxval {maxval}; no integer lies between.")
    return drawn(draws.random_integers, keys, shape, wanted, low=low, span=max(high - low, 1))


def _bound(name: str, which: str, value: TensorLike, kind: Any) -> int:
    """A bound of integers; the upper one may lie one above the largest."""
    array = np.asarray(value)
    if type(value) is not int and (array.ndim or array.dtype.kind not in "iufO" or array != array // 1):
        raise InvalidArgumentError(
            f"random.{name}: {which} of integers must be one integer, found {value!r:.80}. For bounds of each element take "
            "tf.floor of floats, tf.random.uniform(shape, minval, maxval), and tf.cast."
        )
    info = kind.info
    found, least, largest = int(array), int(info.min), int(info.max)
    if not least <= found <= largest + (which == "maxval"):
        raise ValueError(f"random.{name}: {which} {found} is no {kind.name}, which goes from {least} to {largest}.")
    return found


def within(unit: Tensor, minval: TensorLike, maxval: TensorLike) -> Tensor:
    """Numbers in [0, 1) as numbers in [minval, maxval); the limit is 1 if it is None."""
    minval, maxval = (beside(unit, one, unit.dtype) if isinstance(one, (list, tuple)) else one for one in (minval, maxval))
    limit: Any = 1.0 if maxval is None else maxval
    if type(minval) in (int, float) and type(limit) in (int, float) and (minval, limit) == (0, 1):
        return unit
    found = _scaled(unit, limit - minval, minval)
    if type(minval) in (int, float) and type(limit) in (int, float):
        if _stays_below(limit, minval, unit.dtype):
            return found
    elif not hasattr(minval, "dtype") and np.ndim(minval) == 0 and minval == 0:
        return found  # a product with a number below 1 is not rounded up to the other factor, unless that is subnormal
    lowest = arithmetic.zeros_like(found) + minval
    return arithmetic.select((found >= limit) & (lowest < limit), lowest, found)  # a sum may be rounded up to maxval


@functools.lru_cache(256)
def _stays_below(limit: float, minval: float, dtype: DType) -> bool:
    """True if the largest number below 1 becomes one below the limit."""
    of = dtype.numpy.type
    with np.errstate(all="ignore"):
        return bool(of(1.0 - 0.5 * float(dtype.info.eps)) * of(limit - minval) + of(minval) < of(limit))


def shuffled(x: Tensor, keys: Keys, axis: int) -> Tensor:
    """The slices along an axis, in the order found by sorting their numbers with random bits above them."""
    place = negative_axis(axis, x.ndim, "shuffle")
    size, xp = x.shape[place], namespace(x.array)
    own = 1 << max(size - 1, 1).bit_length()
    numbers = drawn(draws.random_integers, keys, (size,), "uint64", xp=xp, low=0, span=2**64 // own)
    ordered = reductions.sort(numbers * own + Tensor(xp.arange(size, dtype="uint64")), axis=-1, descending=False)
    order = arithmetic.cast(arithmetic.bitwise_and(ordered, own - 1), dtype="int64")
    return indexing.gather_rows(x, order, axis=place)


def categorical_by(keys: Keys, logits: TensorLike, num_samples: int, dtype: DTypeLike) -> Tensor:
    """As `categorical`, for a key of any stream."""
    rows = tensor(logits)
    if rows.ndim != 2:
        raise ShapeError(f"random.categorical: expected logits of shape (batch, classes), found {tuple(rows.shape)}.")
    if rows.dtype.kind not in "fiu":
        raise DTypeError(f"random.categorical: logits must be real numbers, found {rows.dtype.name}.")
    if not as_dtype(dtype).is_integer:
        raise DTypeError(f"random.categorical: indices have an integer dtype, found {as_dtype(dtype).name}.")
    if rows.dtype.name not in ("float32", "float64"):
        rows = arithmetic.cast(rows, dtype="float32")  # sums of few digits would often tie, and the first would be taken
    sizes = rows.shape[0], integer(num_samples), rows.shape[1]
    return chosen(rows, drawn(draws.random_uniform, keys, sizes, "float64", xp=namespace(rows.array)), dtype)


def chosen(rows: Tensor, unit: Tensor, dtype: DTypeLike) -> Tensor:
    """Indices with probabilities softmax(rows), by the largest sum of a logit and Gumbel's noise, made of numbers in [0, 1)."""
    from .reductions import argmax
    from .shaping import expand_dims

    gumbel = -transcendental.log(-transcendental.log(arithmetic.maximum(unit, 1e-300)))
    return argmax(expand_dims(rows, 1) + arithmetic.cast(gumbel, dtype=rows.dtype.name), -1, dtype)


def gamma(
    shape: ShapeLike,
    alpha: TensorLike,
    beta: TensorLike = None,
    dtype: DTypeLike = "float32",
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
    return _gamma(keys_of(seed), shape, alpha, beta, dtype)


def _gamma(keys: Keys, shape: ShapeLike, alpha: TensorLike, beta: TensorLike, dtype: DTypeLike) -> Tensor:
    kind = floating("gamma", dtype)
    shaped = convert_to_tensor(alpha, kind)
    rate = None if beta is None else convert_to_tensor(beta, kind)
    if rate is not None:
        shaped = shaped + arithmetic.zeros_like(rate)
    sizes, xp = (*static_shape(shape), *shaped.shape), namespace(shaped.array)
    sample = special.gamma_sample(shaped, drawn(draws.random_gamma, keys, sizes, kind, shaped, xp=xp))
    return arithmetic.maximum(sample if rate is None else sample / rate, float(kind.info.tiny))


def poisson(
    shape: ShapeLike, lam: TensorLike, dtype: DTypeLike = "float32", seed: int | None = None, name: str | None = None
) -> Tensor:
    """Counts of events that come `lam` times on average: P(k) = lam**k exp(-lam) / k!. Without gradients.

    Returns:
        A Tensor of shape `shape` + lam.shape.

    >>> tf.random.poisson([10], [12.2, 3.3]).shape
    TensorShape([10, 2])
    """
    return _poisson(keys_of(seed), shape, lam, dtype)


def _poisson(keys: Keys, shape: ShapeLike, lam: TensorLike, dtype: DTypeLike) -> Tensor:
    rates = tensor(lam)
    sizes = (*static_shape(shape), *rates.shape)
    return drawn(draws.random_poisson, keys, sizes, _countable("poisson", dtype), rates, xp=namespace(rates.array))


def _in_front(name: str, shape: ShapeLike, *parameters: TensorLike) -> tuple[int, ...]:
    """The axes of a result in front of the axes of the parameters."""
    sizes = static_shape(shape)
    own = np.broadcast_shapes(*(tuple(tensor(one).shape) for one in parameters if one is not None))
    if sizes[len(sizes) - len(own) :] != own:
        raise ShapeError(f"{name}: shape {list(sizes)} must end with that of the parameters, {list(own)}.")
    return sizes[: len(sizes) - len(own)]


def fold_in(seed: Any, data: int) -> Tensor:
    """A new seed from a seed and a number.

    >>> tf.random.fold_in([1, 2], 3).shape
    TensorShape([2])
    """
    key, mix = _fixed(seed), streams.Stream(integer(data)).integer()  # keys a small number apart are other seeds
    return _seeds(lambda: draws.operation_key(key(), mix=mix), (2,))


def _seeds(keys: Keys, shape: tuple[int, ...]) -> Tensor:
    return drawn(draws.random_integers, keys, shape, "int32", low=0, span=2**31)


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
        """A generator that repeats for the same seed; `alg` is Philox, 'philox' or 1, or not given.

        Raises:
            ValueError: for another algorithm.
        """
        if alg not in (None, "philox", "auto_select", 1, 3):
            raise ValueError(
                f"Generator: all numbers are made by Philox, found alg={alg!r:.60}. Leave it out, or write 'philox'."
            )
        return cls(streams.Stream(_seed(seed)))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator that differs from run to run."""
        return cls.from_seed(int(np.random.SeedSequence().generate_state(1, np.uint64)[0]), alg)

    @property
    def state(self) -> tuple[int, int]:
        """Seed and position: all there is to save."""
        return self._stream.state

    def _keys(self) -> Tensor:
        return draw_key(self._stream.key)

    def reset_from_seed(self, seed: int) -> None:
        """Start anew."""
        self._stream.state = (_seed(seed), 0)

    def normal(
        self,
        shape: ShapeLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        name: str | None = None,
    ) -> Tensor:
        """Normally distributed numbers."""
        return normal_by(self._keys, shape, mean, stddev, dtype)

    def uniform(
        self,
        shape: ShapeLike,
        minval: TensorLike = 0,
        maxval: TensorLike = None,
        dtype: DTypeLike = "float32",
        name: str | None = None,
    ) -> Tensor:
        """Uniformly distributed numbers in [minval, maxval)."""
        return uniform_by(self._keys, shape, minval, maxval, dtype)

    def truncated_normal(
        self,
        shape: ShapeLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        name: str | None = None,
    ) -> Tensor:
        """Normally distributed numbers within two standard deviations."""
        return truncated_normal_by(self._keys, shape, mean, stddev, dtype)

    def binomial(
        self, shape: ShapeLike, counts: TensorLike, probs: TensorLike, dtype: DTypeLike = "int32", name: str | None = None
    ) -> Tensor:
        """Number of successes in `counts` trials of probability `probs`; the last axes of `shape` are the parameters'."""
        trials, chances = tensor(counts), tensor(probs)
        return drawn(draws.random_binomial, self._keys, shape, _countable("binomial", dtype), trials, chances)

    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds for stateless functions, one in each column: (2, count) int64 integers."""
        return drawn(draws.random_integers, self._keys, (2, integer(count)), "int64", low=0, span=2**62)

    def split(self, count: int = 1) -> list[Generator]:
        """Independent generators that depend only on this one's state.

        Raises:
            ValueError: for a negative number of them.
        """
        if (number := integer(count)) < 0:
            raise ValueError(f"Generator.split: count must not be negative, found {count}.")
        return [Generator(self._stream.fork()) for _ in range(number)]


_SEED = {"seed": "int | None"}
# fmt: off
categorical = row("categorical",
    lambda logits, num_samples, dtype="int64", seed=None, name=None: categorical_by(keys_of(seed), logits, num_samples, dtype),
    "Indices drawn with probabilities softmax(logits), for each row (batch, classes) -> (batch, num_samples).",
    "print(tf.random.categorical([[0.0, -1e9]], 3).numpy()) -> [[0 0 0]]")
stateless_categorical = row("stateless_categorical",
    lambda logits, num_samples, seed, dtype="int64", name=None: categorical_by(_fixed(seed), logits, num_samples, dtype),
    "As `categorical`, of numbers that depend only on the arguments.",
    "print(tf.random.stateless_categorical([[0.0, -1e9]], 3, [1, 2]).numpy()) -> [[0 0 0]]")
split = row("split", lambda seed, num=2: _seeds(_fixed(seed), (integer(num), 2)),
    "New seeds for the stateless functions from one: (num, 2) integers that depend on it alone.",
    "tf.random.split([1, 2]).shape -> TensorShape([2, 2])")
stateless_normal = row("stateless_normal",
    lambda shape, seed, mean=0.0, stddev=1.0, dtype="float32", name=None: normal_by(_fixed(seed), shape, mean, stddev, dtype),
    "Normally distributed numbers that depend only on the arguments; `seed` is a pair of integers.",
    "bool(tf.reduce_all(tf.random.stateless_normal([2], [1, 2]) == tf.random.stateless_normal([2], [1, 2]))) -> True")
stateless_uniform = row("stateless_uniform",
    lambda shape, seed, minval=0, maxval=None, dtype="float32", name=None:
        uniform_by(_fixed(seed), shape, minval, maxval, dtype),
    "Evenly distributed numbers that depend only on the arguments; `seed` is a pair of integers.\n\n"
    "Integers without `minval` and `maxval`, both None, are all that the dtype has.",
    "tf.random.stateless_uniform([2], seed=[1, 2]).shape -> TensorShape([2])")
stateless_truncated_normal = row("stateless_truncated_normal",
    lambda shape, seed, mean=0.0, stddev=1.0, dtype="float32", name=None:
        truncated_normal_by(_fixed(seed), shape, mean, stddev, dtype),
    "As `truncated_normal`, of numbers that depend only on the arguments; `seed` is a pair of integers.",
    "bool(tf.reduce_all(tf.abs(tf.random.stateless_truncated_normal([100], [1, 2])) <= 2.0)) -> True")
stateless_gamma = row("stateless_gamma",
    lambda shape, seed, alpha, beta=None, dtype="float32", name=None:
        _gamma(_fixed(seed), _in_front("stateless_gamma", shape, alpha, beta), alpha, beta, dtype),
    "As `gamma`, of numbers that depend only on the arguments; `shape` is that of the result.",
    "tf.random.stateless_gamma([10, 2], [1, 2], [0.5, 1.5]).shape -> TensorShape([10, 2])")
stateless_poisson = row("stateless_poisson",
    lambda shape, seed, lam, dtype="int32", name=None:
        _poisson(_fixed(seed), _in_front("stateless_poisson", shape, lam, None), lam, dtype),
    "As `poisson`, of numbers that depend only on the arguments; `shape` is that of the result.",
    "tf.random.stateless_poisson([10, 2], [1, 2], [12.2, 3.3]).shape -> TensorShape([10, 2])")
normal = row("normal",
    lambda shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None:
        normal_by(keys_of(seed), shape, mean, stddev, dtype),
    "Normally distributed numbers.", "tf.random.normal([2, 3]).shape -> TensorShape([2, 3])", types=_SEED)
truncated_normal = row("truncated_normal",
    lambda shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None:
        truncated_normal_by(keys_of(seed), shape, mean, stddev, dtype),
    "Normally distributed numbers, redrawn where they lie more than two standard deviations from the mean.",
    "bool(tf.reduce_all(tf.abs(tf.random.truncated_normal([100])) <= 2.0)) -> True", types=_SEED)
uniform = row("uniform",
    lambda shape, minval=0, maxval=None, dtype="float32", seed=None, name=None:
        uniform_by(keys_of(seed), shape, minval, maxval, dtype),
    "Evenly distributed numbers in [minval, maxval); maxval is 1 for floats and must be given for integers.",
    "bool(tf.reduce_all(tf.random.uniform([100], maxval=6, dtype=tf.int32) < 6)) -> True", types=_SEED)
shuffle = row("shuffle", lambda value, seed=None, name=None: shuffled(x, keys_of(seed), 0) if (x := tensor(value)).ndim else x,
    "The slices along the first axis in random order.", "sorted(tf.random.shuffle([1, 2, 3]).numpy().tolist()) -> [1, 2, 3]",
    types=_SEED)
get_global_generator = row("get_global_generator", lambda: Generator(streams.global_stream()),
    "The generator that the functions without one draw from, which `set_seed` starts anew.",
    "tf.random.get_global_generator().normal([2]).shape -> TensorShape([2])", returns="Generator")
# fmt: on
