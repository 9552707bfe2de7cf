"""Draws: random numbers as functions of a key, two integers: the seed of a stream and the position in it.

Nothing is drawn twice or in another order because a step is compiled or differentiated: a key says all. It is state like any
other, read from a Variable and assigned one position further on. It lies on the host, as an optimizer's counters do; `xp` is
the library of which the numbers are to be an array. See `nn_ops/philox4x32.py` for the bits.

All but gamma, beta, Poisson and binomial numbers are drawn where they are wanted. These are proposed until one is accepted, and
how many words one takes is not known before. They are drawn on the host, all that are left at once, and then moved: on a device
each attempt would be waited for. Number i takes the blocks i, 2**32 + i, 2 * 2**32 + i and so on of its draw, one for each
attempt, or for 52 bits two of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ..core import Primitive, linear, to_device, to_numpy
from ..errors import InvalidArgumentError
from ..parallel import in_parallel
from ..types import Array
from . import philox4x32, philox_cuda
from .special import log_gamma

ONE_DRAW = np.array([0, 1], np.uint32)

Propose = Callable[[Array, Array], tuple[Array, Array]]
Ratio = Callable[[int], Array]
SEARCHED = 10.0
"""Mean below which counts are searched from 0 on."""
CHUNK = 8192
"""Numbers that are proposed at once: their arrays stay in the cache, and glibc keeps their memory for the next ones."""
MOST_STEPS = 100
"""Most steps of such a search: larger counts have probabilities below 1e-60."""


def gamma(key: Array, shape: tuple[int, ...], dtype: Any, alpha: Array, start: int = 0) -> Array:
    """Numbers of the gamma distribution with shape parameter `alpha`, broadcast to `shape`, and scale 1."""
    parameters = _within("gamma", "alpha", alpha, np.isfinite(alpha) & (alpha >= 0))
    found = np.exp(_log_gamma(key, _flat(parameters, shape), np.dtype(dtype).itemsize == 8, start))
    return found.reshape(shape).astype(dtype)


def beta(key: Array, shape: tuple[int, ...], dtype: Any, alpha: Array, beta: Array, start: int = 0) -> Array:
    """Numbers of the beta distribution: x / (x + y) of two gamma numbers, by their logarithms, which never underflow."""
    for name, one in (("alpha", alpha), ("beta", beta)):
        _within("beta", name, one, np.isfinite(one) & (one > 0))
    both = np.stack([_flat(alpha, shape), _flat(beta, shape)], axis=-1).ravel()
    first, second = _log_gamma(key, both, np.dtype(dtype).itemsize == 8, 2 * start).reshape(-1, 2).T
    return (1.0 / (1.0 + np.exp(second - first))).reshape(shape).astype(dtype)


def poisson(key: Array, shape: tuple[int, ...], dtype: Any, lam: Array, start: int = 0) -> Array:
    """Counts of events that come `lam` times on average."""
    means = _flat(_within("poisson", "lam", lam, (lam >= 0) & (lam < 2.0**53)), shape)

    def of_each(places: Array) -> tuple[Array, Ratio]:
        own = means[places]
        return np.exp(-own), lambda k: own / k

    found = _counts(key, means < SEARCHED, _searched(of_each), _poisson_proposals(means), start)
    return found.reshape(shape).astype(dtype)


def binomial(key: Array, shape: tuple[int, ...], dtype: Any, counts: Array, probabilities: Array, start: int = 0) -> Array:
    """Numbers of successes among `counts` trials, each with its probability."""
    _within("binomial", "counts", counts, (counts >= 0) & (counts < 2.0**53))
    chances = _flat(_within("binomial", "probabilities", probabilities, (probabilities >= 0) & (probabilities <= 1)), shape)
    trials, p = np.floor(_flat(counts, shape)), np.minimum(chances, 1.0 - chances)  # the other outcome, if it is rarer

    def of_each(places: Array) -> tuple[Array, Ratio]:
        n, q = trials[places], p[places]
        odds = q / (1.0 - q)
        return np.exp(n * np.log1p(-q)), lambda k: odds * (n - (k - 1)) / k

    found = _counts(key, trials * p < SEARCHED, _searched(of_each), _binomial_proposals(trials, p), start)
    return np.where(chances > 0.5, trials - found, found).reshape(shape).astype(dtype)


def _counts(key: Array, rare: Array, by_search: Propose, by_proposal: Propose, start: int) -> Array:
    """Counts of 64-bit numbers: of rare events by a search, of others by rejection."""
    found = np.empty(rare.size)
    for chosen, propose in ((rare, by_search), (~rare, by_proposal)):
        _draw_until_accepted(key, np.flatnonzero(chosen), 2, True, propose, found, start)
    return found


def _within(name: str, what: str, values: Array, valid: Array) -> Array:
    if not np.all(valid):
        raise InvalidArgumentError(f"{name}: {what} must be {_VALID[what]}, found {values.tolist()!r:.80}.")
    return values


_VALID = {
    **{"alpha": "finite numbers of at least 0, for beta above 0", "beta": "finite numbers above 0"},
    **dict.fromkeys(("lam", "counts"), "numbers of at least 0, below 2**53"),
    "probabilities": "numbers from 0 to 1",
}


def _flat(parameters: Array, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(parameters, shape).ravel()


def _units(key: Array, numbers: Array, attempt: int, count: int, wide: bool) -> Array:
    """Rows of numbers inside (0, 1), two or four, one for each of these numbers of the draw: of 32 bits, or of 52 if `wide`."""
    upper, units = np.uint64(attempt << 32), np.empty((count, len(numbers)))
    if wide:
        for row in range(0, count, 2):
            words = philox4x32.words_of_blocks(key, 2 * numbers + np.uint64(row // 2) + upper)
            units[row : row + 2] = words[..., 1]
            units[row : row + 2] *= 2.0**20
            units[row : row + 2] += words[..., 0] >> 12
    else:
        words = philox4x32.words_of_blocks(key, numbers + upper)
        units[:2], units[2:] = words[..., 0], words[..., 1]
    units += 0.5
    units *= 2.0**-52 if wide else 2.0**-32
    return units


def _draw_until_accepted(key: Array, places: Array, count: int, wide: bool, propose: Propose, found: Array, start: int) -> None:
    """Write at each place what `propose(places, units)` gives at the first attempt that it accepts.

    Place 0 has the number `start` of the draw.
    """
    attempt = 0

    def propose_once(first: int, last: int) -> None:
        chunk = CHUNK if last - first == len(places) else philox4x32.SHARED
        for at in range(first, last, chunk):
            own = places[at : min(at + chunk, last)]
            found[own], accepted = propose(own, _units(key, own.astype(np.uint64) + np.uint64(start), attempt, count, wide))
            left.append(own[~accepted])

    while places.size:
        left: list[Array] = []
        in_parallel(propose_once, len(places))
        places, attempt = np.concatenate(left), attempt + 1


def _log_gamma(key: Array, alpha: Array, wide: bool, start: int) -> Array:
    """Logarithms of gamma numbers. For alpha below 1: a gamma number of alpha + 1 times a power of a uniform number.

    Source: Marsaglia and Tsang, A Simple Method for Generating Gamma Variables (2000).
    """

    def propose(places: Array, units: Array) -> tuple[Array, Array]:
        own = alpha[places]
        small = own < 1.0
        d = own + small - 1.0 / 3.0
        x = np.sqrt(-2.0 * np.log(units[0])) * np.cos(2.0 * math.pi * units[1])
        root = 1.0 + x / np.sqrt(9.0 * d)
        possible = root > 0.0
        log_v = 3.0 * np.log(np.where(possible, root, 1.0))
        accepted = possible & (np.log(units[2]) < 0.5 * x * x + d * (1.0 - root * root * root + log_v))
        values = np.log(d) + log_v
        values[small] += np.log(units[3, small]) / own[small]
        return values, accepted

    found = np.empty(alpha.size)
    _draw_until_accepted(key, np.arange(alpha.size), 4, wide, propose, found, start)
    return found


def _searched(of_each: Callable[[Array], tuple[Array, Ratio]]) -> Propose:
    """Inversion: as many steps from 0 as it takes until the sum of probabilities is above a uniform number.

    Args:
        of_each: for places the probabilities of 0, and `ratio(k)`, those of k by those of k - 1.
    """

    def propose(places: Array, units: Array) -> tuple[Array, Array]:
        (probability, ratio), found, even = of_each(places), np.zeros(len(places)), units[0]
        total = probability.copy()
        for k in range(1, MOST_STEPS):
            above = even > total
            if not above.any():
                break
            found += above
            probability *= ratio(k)
            total += probability
        return found, np.ones(len(places), bool)

    return propose


def _log_factorial(k: Array) -> Array:
    """log(k!) of whole numbers. The usual ones are computed once: a logarithm of the gamma function takes 80 ns."""
    usual = _usual_log_factorials()
    found, large = usual[np.minimum(k, len(usual) - 1.0).astype(int)], k >= len(usual)
    found[large] = log_gamma(np, k[large] + 1.0)
    return found


@functools.cache
def _usual_log_factorials() -> Array:
    return log_gamma(np, np.arange(1.0, 4097.0))


def _poisson_proposals(means: Array) -> Propose:
    """Source: Hörmann, The Transformed Rejection Method for Generating Poisson Random Variables (1993), algorithm PTRS."""

    def propose(places: Array, units: Array) -> tuple[Array, Array]:
        mean = means[places]
        b = 0.931 + 2.53 * np.sqrt(mean)
        a = -0.059 + 0.02483 * b
        u, v = units[0] - 0.5, units[1]
        us = 0.5 - np.abs(u)
        k = np.floor((2.0 * a / us + b) * u + mean + 0.43)
        bound = np.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (us * us) + b))
        exact = bound <= np.maximum(k, 0.0) * np.log(mean) - mean - _log_factorial(np.maximum(k, 0.0))
        return k, (k >= 0) & (((us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2.0))) | exact)

    return propose


def _binomial_proposals(trials: Array, chances: Array) -> Propose:
    """Source: Hörmann, The Generation of Binomial Random Variates (1993), algorithm BTRS."""

    def propose(places: Array, units: Array) -> tuple[Array, Array]:
        n, p = trials[places], chances[places]
        deviation = np.sqrt(n * p * (1.0 - p))
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * p
        u, v = units[0] - 0.5, units[1]
        us = 0.5 - np.abs(u)
        k = np.floor((2.0 * a / us + b) * u + n * p + 0.5)
        bound = np.log(v * (2.83 + 5.1 / b) * deviation / (a / (us * us) + b))
        inside, mode = (k >= 0) & (k <= n), np.floor((n + 1.0) * p)
        count = np.where(inside, k, mode)
        at_mode, at_count = [_log_factorial(j) + _log_factorial(n - j) for j in (mode, count)]
        exact = bound <= at_mode - at_count + (count - mode) * np.log(p / (1.0 - p))
        return k, inside & (((us >= 0.07) & (v <= 0.92 - 4.2 / b)) | exact)

    return propose


# Operations -----------------------------------------------------------------------------------------------------------


def _draw(name: str, function: Callable[..., Array], there: Callable[..., Array]) -> Primitive:
    """A draw, for each key if they are many, that depends on the parameters `shape`, `dtype` and `xp` beside its own.

    With `start` it is a part of a larger one: the elements from that one on.
    """

    def kernel(key: Array, *, shape: tuple[int, ...], dtype: Any, xp: ModuleType, **own: Any) -> Array:
        key = to_numpy(key)
        if key.ndim == 1 and getattr(xp, "__name__", None) == "cupy":
            return there(xp, key, shape, dtype, **own)
        if key.ndim == 1:
            return to_device(function(key, shape, dtype, **own), xp)
        draws = [kernel(one, shape=shape, dtype=dtype, xp=xp, **own) for one in key.reshape(-1, 2)]
        return xp.stack(draws).reshape(*key.shape[:-1], *shape)

    return Primitive(name, lambda xp: kernel, differentiable=False, batching="keep")


def _rejection(name: str, function: Callable[..., Array]) -> Primitive:
    """A draw on the host, which depends on tensors beside the key; they are broadcast to `shape`. `start` as in `_draw`."""

    def kernel(key: Array, *given: Any, shape: tuple[int, ...], dtype: Any, xp: ModuleType, **part: int) -> Array:
        key, parameters = to_numpy(key), [np.asarray(to_numpy(one), np.float64) for one in given]
        if key.ndim == 1:
            with np.errstate(all="ignore"):  # also where operands lie on a device, whose kernels warn of nothing
                return to_device(function(key, shape, dtype, *parameters, **part), xp)
        draws = [kernel(one, *own, shape=shape, dtype=dtype, xp=xp, **part) for one, *own in zip(key, *parameters, strict=True)]
        return xp.stack(draws)

    return Primitive(name, lambda xp: kernel, differentiable=False, uniform=False, batching="fill", mixed=True)


def _next_key(xp: ModuleType, key: Array) -> Array:
    return key + to_device(ONE_DRAW.astype(key.dtype), xp)


def _operation_key(xp: ModuleType, key: Array, mix: int) -> Array:
    return _next_key(xp, key ^ to_device(np.array([mix, 0], key.dtype), xp))


next_key = Primitive("next_key", lambda xp: functools.partial(_next_key, xp), differentiable=False, batching="keep")
"""The key of the draw that follows: the position moves on by one, and wraps."""
operation_key = Primitive(
    "operation_key", lambda xp: functools.partial(_operation_key, xp), differentiable=False, batching="keep"
)
"""The key of a stream beside another one: the seed is mixed with a number of 64 bits, and the position moves on by one."""
dropout_mask = _draw("dropout_mask", philox4x32.dropout_mask, philox_cuda.dropout_mask)
"""Zeros with probability `rate`, 1 / (1 - rate) elsewhere."""
random_uniform = _draw("random_uniform", philox4x32.uniform, philox_cuda.uniform)
"""Numbers in [0, 1)."""
random_normal = _draw("random_normal", philox4x32.normal, philox_cuda.normal)
"""Standard normal numbers."""
random_truncated_normal = _draw("random_truncated_normal", philox4x32.truncated_normal, philox_cuda.truncated_normal)
"""Standard normal numbers within two standard deviations."""
random_integers = _draw("random_integers", philox4x32.integers, philox_cuda.integers)
"""Integers from `low` on, one of `span`."""
random_gamma = _rejection("random_gamma", gamma)
"""Numbers of the gamma distribution with scale 1, by the parameter `alpha`."""
random_beta = _rejection("random_beta", beta)
"""Numbers of the beta distribution, by `alpha` and `beta`."""
random_poisson = _rejection("random_poisson", poisson)
"""Counts of events, by their mean number."""
random_binomial = _rejection("random_binomial", binomial)
"""Counts of successes, by the number of trials and their probability."""


def _times(name: str, factor: Callable[..., Any]) -> Primitive:
    """A product with the draw of `factor`, which the backward pass draws again: only the key is kept.

    That is for a GPU, where arithmetic should cost less than memory. NumPy draws for 2 ns what it reads for 0.3.
    """

    def product(xp: ModuleType, x: Array, key: Array, **params: Any) -> Array:
        return x * factor(xp, x.dtype, key, **params)

    result: Primitive = linear(
        name, product, lambda g, x, key, **params: [result(g, key, **params), None], uniform=False, mixed=True
    )
    return result


def _mask(xp: ModuleType, dtype: Any, key: Array, *, shape: tuple[int, ...], rate: float, **own: Any) -> Array:
    return dropout_mask.on_numpy(key, shape=shape, dtype=dtype, xp=xp, rate=rate, **own)


def _gaussian(xp: ModuleType, dtype: Any, key: Array, *, shape: tuple[int, ...], stddev: float, **own: Any) -> Array:
    kind = "float64" if dtype.itemsize == 8 else "float32"
    found = random_normal.on_numpy(key, shape=shape, dtype=kind, xp=xp, **own)
    return (found * stddev + 1.0).astype(dtype)


times_dropout_mask = _times("times_dropout_mask", _mask)
"""x times the mask of `dropout_mask`."""
times_gaussian = _times("times_gaussian", _gaussian)
"""x times normal numbers around 1."""
