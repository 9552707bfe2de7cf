"""Limits on gradients: by element, by the norm of each, by the norm of all; and whether they are finite."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

from ...core.arrays import namespace, to_numpy
from ...core.precision import is_short
from ...types import Array


def clipped_by_value(gradients: Sequence[Array], limit: float) -> list[Array]:
    """g <- min(max(g, -limit), limit), element by element."""
    xp = namespace(*gradients)
    return [xp.minimum(xp.maximum(gradient, -limit), limit) for gradient in gradients]


def clipped_by_norm(gradients: Sequence[Array], limit: float) -> list[Array]:
    """g <- g * limit / max(|g|, limit), with the Euclidean norm of each gradient."""
    return [scaled(gradient, _factor(_norm([gradient]), limit)) for gradient in gradients]


def clipped_by_global_norm(gradients: Sequence[Array], limit: float) -> list[Array]:
    """g <- g * limit / max(|G|, limit), with the Euclidean norm of all gradients together; all NaN if that is not finite.

    Source: Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks (2013), algorithm 1.
    """
    factor = global_factor(_norm(gradients), limit)
    return [scaled(gradient, factor) for gradient in gradients]


def global_factor(norm: Array, limit: float) -> Array:
    """What each gradient is multiplied by if all together have this norm."""
    return _factor(norm, limit) + (norm - norm)


def all_finite(arrays: Sequence[Array]) -> bool:
    """Whether no element is NaN or infinite; on a GPU, the one number that a step waits for."""
    finite = [namespace(array).isfinite(array).all() for array in arrays]
    return bool(to_numpy(functools.reduce(operator.and_, finite)))


def scaled(gradient: Array, factor: Array) -> Array:
    """A gradient times a factor, in its own dtype."""
    return (gradient * factor).astype(gradient.dtype, copy=False)


def _factor(norm: Array, limit: float) -> Array:
    return limit / namespace(norm).maximum(norm, limit)


def _norm(gradients: Sequence[Array]) -> Array:
    """The Euclidean norm of all elements together, on the device of the gradients; of 16-bit gradients in float32."""
    wide = [gradient.astype("float32") if is_short(gradient.dtype) else gradient for gradient in gradients]
    squares = [(gradient * gradient).sum() for gradient in wide]
    total = sum(squares[1:], squares[0])
    return namespace(total).sqrt(total)
