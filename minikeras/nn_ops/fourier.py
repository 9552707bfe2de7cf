"""Discrete Fourier transforms along negative axes. Each is linear, and its transpose is another one, scaled."""

from __future__ import annotations

import math

from ..core import Primitive, linear
from ..core.ops.arithmetic import cast, multiply
from ..types import Array, TensorLike


def _count(x: TensorLike, axes: tuple[int, ...]) -> int:
    return math.prod(x.shape[axis] for axis in axes)


fft: Primitive = linear(
    "fft",
    lambda xp, x, axes: xp.fft.fftn(x, axes=axes),
    lambda g, x, axes: multiply(ifft(g, axes=axes), float(_count(x, axes))),
)
ifft: Primitive = linear(
    "ifft",
    lambda xp, x, axes: xp.fft.ifftn(x, axes=axes),
    lambda g, x, axes: multiply(fft(g, axes=axes), 1.0 / max(_count(x, axes), 1)),
)


def _between(y: Array, length: int, factor: float) -> Array:
    """The frequencies that a real signal has twice, also as their conjugates, times a factor: not 0, and not length / 2."""
    if factor != 1.0:
        y = y.copy()
        y[..., 1 : (length + 1) // 2] *= factor
    return y


rfft: Primitive = linear(
    "rfft",
    lambda xp, x, between: _between(xp.fft.rfft(x), x.shape[-1], between),
    lambda g, x, between: cast(
        multiply(irfft(g, length=x.shape[-1], between=between / 2.0), float(x.shape[-1])), dtype=x.dtype.name
    ),
)
"""Half the spectrum along the last axis; `between` scales the frequencies that stand for their conjugates too."""
irfft: Primitive = linear(
    "irfft",
    lambda xp, x, length, between: xp.fft.irfft(_between(x, length, between), n=length),
    lambda g, x, length, between: multiply(rfft(g, between=between * 2.0), 1.0 / length),
)
"""The real signal of a length that has this half of a spectrum, length // 2 + 1 frequencies."""
