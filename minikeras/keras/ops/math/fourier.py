"""Fourier transforms of Keras, whose complex numbers are pairs of a real and an imaginary part."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....absent import hide_imports
from ....core import Tensor, convert_to_tensor
from ....errors import DTypeError, ShapeError
from ....functions import elementwise as tf
from ....functions.operands import beside
from ....functions.shaping import broadcast_to, pad
from ....nn_ops import fourier
from ....types import TensorLike
from ...promotion import floating, wide
from ...symbolic.operation import operation
from ...symbolic.rules import check_size, cost_of_operands
from ..rows import row
from ..windows import add_up, elements, read

Pair = tuple[Tensor, Tensor]
_PAIR = {"x": "tuple[TensorLike, TensorLike]"}


def _joined(name: str, x: Any, rank: int) -> Tensor:
    """A pair as complex numbers.

    Raises:
        ValueError: if it is no pair of floats of one shape.
    """
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(f"{name}: needs a pair of a real and an imaginary part, found {type(x).__name__}.")
    real, imaginary = map(convert_to_tensor, x)
    if real.shape != imaginary.shape or real.ndim < rank or not (real.dtype.is_floating and imaginary.dtype.is_floating):
        raise ValueError(
            f"{name}: both parts must hold floats and have one shape of at least {rank} axes, found {real.dtype.name}"
            f"{list(real.shape)} and {imaginary.dtype.name}{list(imaginary.shape)}."
        )
    return tf.complex(wide(real), wide(imaginary))


def _apart(x: Tensor) -> Pair:
    return tf.real(x), tf.imag(x)


@operation(name="FFT")
def fft(x: tuple[TensorLike, TensorLike]) -> Pair:
    """Discrete Fourier transform along the last axis: sum over n of x_n exp(-2 pi i k n / N).

    >>> real, imaginary = tf.keras.ops.fft(([1.0, 2.0], [0.0, 0.0]))
    >>> print(real.numpy(), imaginary.numpy())
    [ 3. -1.] [0. 0.]
    """
    return _apart(fourier.fft(_joined("fft", x, 1), axes=(-1,)))


def _fitted(x: Tensor, size: int) -> Tensor:
    """The first elements of each row, filled up with zeros."""
    check_size(math.prod(x.shape[:-1]) * size, "a Fourier transform")
    missing = size - x.shape[-1]
    return pad(x, [[0, 0]] * (x.ndim - 1) + [[0, missing]]) if missing > 0 else x[..., :size]


@operation(name="RFFT", cost=cost_of_operands)
def rfft(x: TensorLike, fft_length: int | None = None) -> Pair:
    """Half the Fourier transform of real numbers along the last axis: the frequencies 0 to fft_length // 2.

    Args:
        x: (..., length).
        fft_length: x is cut or filled up with zeros to this length; its own if None.

    >>> real, imaginary = tf.keras.ops.rfft([1.0, 2.0, 3.0])
    >>> print(real.numpy(), imaginary.numpy().round(4))
    [ 6.  -1.5] [0.    0.866]
    """
    x = wide(floating(x))
    return _apart(fourier.rfft(x if fft_length is None else _fitted(x, fft_length), between=1.0))


@operation(name="IRFFT", cost=cost_of_operands)
def irfft(x: tuple[TensorLike, TensorLike], fft_length: int | None = None) -> Tensor:
    """The real numbers that have this half of a Fourier transform, the inverse of `rfft`.

    Args:
        x: a pair (..., frequencies).
        fft_length: of the result; 2 (frequencies - 1) if None.

    >>> print(tf.keras.ops.irfft(([6.0, -1.5], [0.0, 0.8660254]), fft_length=3).numpy().round(4))
    [1. 2. 3.]
    """
    z = _joined("irfft", x, 1)
    length = 2 * (z.shape[-1] - 1) if fft_length is None else fft_length
    return fourier.irfft(_fitted(z, length // 2 + 1), length=length, between=1.0)


def _window(window: Any, sequence_length: int, fft_length: int, like: Tensor) -> Tensor:
    """The window in the middle of fft_length places."""
    angles = np.arange(sequence_length) * (2.0 * math.pi / sequence_length)
    named = {None: np.ones(fft_length), "hann": 0.5 - 0.5 * np.cos(angles), "hamming": 0.54 - 0.46 * np.cos(angles)}
    if isinstance(window, str) and window not in named:
        raise ValueError(f"window must be 'hann', 'hamming', None or a vector, found {window!r}.")
    values = beside(like, named[window] if window is None or isinstance(window, str) else window, like.dtype)
    before = (fft_length - sequence_length) // 2
    if window is None:
        return values
    if tuple(values.shape) != (sequence_length,):
        raise ShapeError(f"window must hold sequence_length = {sequence_length} numbers, found shape {values.shape}.")
    return pad(values, [[before, fft_length - sequence_length - before]])


def _check(name: str, sequence_length: int, sequence_stride: int, fft_length: int) -> None:
    if not isinstance(sequence_stride, int) or sequence_stride < 1 or not 1 <= sequence_length <= fft_length:
        raise ValueError(
            f"{name}: needs sequence_stride >= 1 and 1 <= sequence_length <= fft_length, found {sequence_stride}, "
            f"{sequence_length} and {fft_length}."
        )


@operation(name="STFT", cost=cost_of_operands)
def stft(
    x: TensorLike, sequence_length: int, sequence_stride: int, fft_length: int, window: Any = "hann", center: bool = True
) -> Pair:
    """Short-time Fourier transform: `rfft` of each window along the last axis.

    Args:
        x: real (..., length).
        sequence_length: of a window.
        sequence_stride: from one window to the next.
        fft_length: of the transform; the window stands in its middle.
        window: 'hann', 'hamming', None or a vector (sequence_length,) of weights.
        center: whether window t is centered at t * sequence_stride; x is mirrored at its ends for it.

    Returns:
        A pair (..., windows, fft_length // 2 + 1).

    >>> tf.keras.ops.stft(tf.ones([2, 32]), 8, 4, 8)[0].shape
    TensorShape([2, 9, 5])
    """
    x = convert_to_tensor(x)
    _check("stft", sequence_length, sequence_stride, fft_length)
    if x.dtype.name not in ("float32", "float64"):
        raise DTypeError(f"stft: needs float32 or float64, found {x.dtype.name}. Use keras.ops.cast(x, 'float32').")
    check_size(x.shape[-1] + fft_length, "a Fourier transform")
    if center:
        x = pad(x, [[0, 0]] * (x.ndim - 1) + [[fft_length // 2] * 2], "REFLECT")
    frames = read(x, elements(x.shape[-1:], fft_length, sequence_stride), -1)
    return _apart(fourier.rfft(frames * _window(window, sequence_length, fft_length, x), between=1.0))


@operation(name="ISTFT", cost=cost_of_operands)
def istft(
    x: tuple[TensorLike, TensorLike],
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: Any = "hann",
    center: bool = True,
) -> Tensor:
    """The inverse of `stft`: windows of `irfft`, weighted and added up, divided by the sum of the squares of the weights.

    Args:
        x: a pair (..., windows, fft_length // 2 + 1).
        length: of the result; as far as windows reach if None.
        sequence_length, sequence_stride, fft_length, window, center: as in `stft`.

    >>> signal = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    >>> print(tf.keras.ops.istft(tf.keras.ops.stft(signal, 4, 2, 4), 4, 2, 4).numpy().round(4))
    [1. 2. 3. 4. 5. 6. 7. 8.]
    """
    z = _joined("istft", x, 2)
    _check("istft", sequence_length, sequence_stride, fft_length)
    weights = _window(window, sequence_length, fft_length, tf.real(z))
    frames = fourier.irfft(_fitted(z, fft_length // 2 + 1), length=fft_length, between=1.0) * weights
    count = z.shape[-2]
    size = fft_length + sequence_stride * (count - 1)
    places = elements((size,), fft_length, sequence_stride)
    total = add_up(broadcast_to(weights * weights, (count, fft_length)), places, size)
    signal = add_up(frames, places, size) / tf.where(total > 1e-10, total, tf.cast(1.0, total.dtype))
    start = fft_length // 2 if center else 0
    stop = size - start if length is None else start + length
    return signal[..., start:stop]


# fmt: off
fft2 = row("fft2", lambda x: _apart(fourier.fft(_joined("fft2", x, 2), axes=(-2, -1))),
    "Discrete Fourier transform along the last two axes.",
    "print(tf.keras.ops.fft2((tf.ones([2, 2]), tf.zeros([2, 2])))[0].numpy().tolist()) -> [[4.0, 0.0], [0.0, 0.0]]",
    name="FFT2", returns="tuple[Tensor, Tensor]", types=_PAIR)
ifft2 = row("ifft2", lambda x: _apart(fourier.ifft(_joined("ifft2", x, 2), axes=(-2, -1))), "The inverse of `fft2`.",
    "print(tf.keras.ops.ifft2((tf.ones([2, 2]), tf.zeros([2, 2])))[0].numpy().tolist()) -> [[1.0, 0.0], [0.0, 0.0]]",
    name="IFFT2", returns="tuple[Tensor, Tensor]", types=_PAIR)
# fmt: on

hide_imports(globals())
