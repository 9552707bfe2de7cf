"""Draws: random numbers as functions of a key, two integers: the seed of a stream and the position in it.

Nothing is drawn twice or in another order because a step is compiled or differentiated: a key says all. It is state like any
other, read from a Variable and assigned one position further on. It lies on the host, as an optimizer's counters do; `xp` is
the library of which the numbers are to be an array. See `nn_ops/philox4x32.py` for the bits.

All but gamma, beta, Poisson and binomial numbers are drawn where they are wanted; see `nn_ops/rejection.py` for these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ..core import Primitive, linear, to_device, to_numpy
from ..types import Array
from . import philox4x32, philox_cuda, rejection

ONE_DRAW = np.array([0, 1], np.uint32)


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
random_gamma = _rejection("random_gamma", rejection.gamma)
"""Numbers of the gamma distribution with scale 1, by the parameter `alpha`."""
random_beta = _rejection("random_beta", rejection.beta)
"""Numbers of the beta distribution, by `alpha` and `beta`."""
random_poisson = _rejection("random_poisson", rejection.poisson)
"""Counts of events, by their mean number."""
random_binomial = _rejection("random_binomial", rejection.binomial)
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
