"""`keras.ops.math`: segments, the largest elements, distances, special functions, Fourier transforms of pairs."""

from __future__ import annotations

import math as _math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import Tensor, convert_to_tensor
from ...errors import DTypeError, ShapeError
from ...functions import beside, indexing, norm, ordering, reduce_logsumexp, reduce_sum, take_along_axis
from ...functions import elementwise as tf
from ...functions import linalg as _linalg
from ...functions.catalogue import name_like_definition
from ...functions.shaping import broadcast_to, expand_dims, pad, stack
from ...nn_ops import fourier
from ...types import TensorLike
from ..promotion import floating, promoted, wide
from ..symbolic.operation import operation
from ..symbolic.trial import check_size, cost_of_operands
from .rows import anything, floats, of_floats, row
from .sliding import add_up, elements, read

erf = of_floats("erf", tf.erf)
erfc = of_floats("erfc", tf.erfc)
erfinv = of_floats("erfinv", tf.erfinv)
rsqrt = of_floats("rsqrt", tf.rsqrt)


_SEGMENTS = """{summary} of each segment: of the slices along the first axis whose number is the same.

Args:
    data: tensor of at least one axis.
    segment_ids: integers, one for each slice, in any order. Slices with a negative number count nowhere.
    num_segments: how many segments there are; as many as the largest number says if None, which is read from its values.
    sorted: accepted for compatibility, ignored.

Returns:
    A Tensor (num_segments, ...). A segment without slices gives {empty}.

Raises:
    InvalidArgumentError: if a number is num_segments or more.

>>> print(tf.keras.ops.{name}([1.0, 2.0, 3.0], [0, 0, 1], num_segments=2).numpy())
{expected}
"""


def _segments(reduce: Callable[..., Tensor], summary: str, empty: str, expected: str) -> Callable[..., Tensor]:
    """The function of Keras for an unsorted one of TensorFlow."""

    def row(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = None, sorted: bool = False) -> Tensor:
        ids = convert_to_tensor(segment_ids)
        if ids.ndim != 1:
            raise ShapeError(f"{row.__name__}: segment_ids must be a vector, found shape {ids.shape}. Flatten both.")
        count = max(int(tf.cast(ids, "int64").numpy().max(initial=-1)) + 1, 0) if num_segments is None else num_segments
        return reduce(convert_to_tensor(data), ids, count)

    name = reduce.__name__.removeprefix("unsorted_")
    text = _SEGMENTS.format(summary=summary, empty=empty, name=name, expected=expected)
    cost = lambda shapes, given: (_math.prod(shapes[0][1:]) * max(1, int(given[-1].get("num_segments") or 1)),) * 2
    return operation(cost=cost, counts=True)(name_like_definition(row, name, __name__, text))


segment_sum = _segments(indexing.unsorted_segment_sum, "Sum", "0", "[3. 3.]")
segment_max = _segments(indexing.unsorted_segment_max, "Maximum", "the least number", "[2. 3.]")
segment_min = _segments(indexing.unsorted_segment_min, "Minimum", "the largest number", "[1. 3.]")
segment_prod = _segments(indexing.unsorted_segment_prod, "Product", "1", "[2. 3.]")


@operation(same=ordering.in_top_k)
def in_top_k(targets: TensorLike, predictions: TensorLike, k: int) -> Tensor:
    """True where fewer than k predictions of a row are larger than that for its target.

    Args:
        targets: integers (...), the class of each row.
        predictions: (..., classes); NaN is larger than nothing.

    >>> print(tf.keras.ops.in_top_k([1, 2], [[0.1, 0.5, 0.3], [0.6, 0.3, 0.1]], k=2).numpy())
    [ True False]
    """
    x, wanted = convert_to_tensor(predictions), convert_to_tensor(targets)
    chosen = take_along_axis(x, expand_dims(wanted, -1), -1)
    least = tf.cast(float("-inf"), x.dtype)
    chosen = tf.where(tf.is_nan(chosen), least, chosen)
    return reduce_sum(tf.cast(x > chosen, "int32"), -1) < k


@operation(name="CDist", cost=lambda shapes, given: (_math.prod(shapes[0]) * _math.prod(shapes[-1][-2:-1]),) * 2)
def cdist(x: TensorLike, y: TensorLike) -> Tensor:
    """The distance |x_i - y_j| of each row of x (..., n, size) to each row of y (..., m, size): (..., n, m).

    >>> print(tf.keras.ops.cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]]).numpy())
    [[5. 1.]]
    """
    a, b = map(floating, promoted(x, y))
    if min(a.ndim, b.ndim) < 2 or a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"cdist: needs (..., n, size) and (..., m, size), found {a.shape} and {b.shape}.")
    return norm(expand_dims(a, -2) - expand_dims(b, -3), axis=-1)


@operation
def view_as_complex(x: TensorLike) -> Tensor:
    """Complex numbers from pairs (..., 2) of a real and an imaginary part.

    >>> print(tf.keras.ops.view_as_complex([1.0, 2.0]).numpy())
    (1+2j)
    """
    x = floating(x)
    if not x.ndim or x.shape[-1] != 2:
        raise ShapeError(f"view_as_complex: the last axis must hold two numbers, found shape {x.shape}.")
    return tf.complex(x[..., 0], x[..., 1])


# fmt: off
logsumexp = row("logsumexp", lambda x, axis=None, keepdims=False: reduce_logsumexp(x, axis, keepdims),
    "ln(sum(exp(x))) along axes, without overflow.",
    "print(tf.keras.ops.logsumexp([1000.0, 0.0]).numpy()) -> 1000.0", takes=floats, same=reduce_logsumexp)
logdet = row("logdet", lambda x: _linalg.slogdet(x)[1], "Logarithm of the absolute value of the determinant of each matrix.",
    'print(f"{tf.keras.ops.logdet([[2.0, 0.0], [0.0, 4.0]]):.4f}") -> 2.0794', takes=floats)
view_as_real = row("view_as_real", lambda x: stack([tf.real(x), tf.imag(x)], -1),
    "The real and the imaginary part of each number as pairs (..., 2).",
    "print(tf.keras.ops.view_as_real([1.0 + 2.0j]).numpy()) -> [[1. 2.]]", takes=anything)
top_k = row("top_k", lambda x, k, sorted=True: ordering.top_k(x, k, sorted),
    "The k largest elements of each row, the largest first, and their positions.",
    "[one.numpy().tolist() for one in tf.keras.ops.top_k([1.0, 3.0, 2.0], 2)] -> [[3.0, 2.0], [1, 2]]",
    takes=anything, returns="tuple[Tensor, Tensor]", same=ordering.top_k)
# fmt: on

# Fourier transforms, whose complex numbers are pairs of a real and an imaginary part -----------------------------------------

Pair = tuple[Tensor, Tensor]
_PAIR = {"x": "tuple[TensorLike, TensorLike]"}


def _joined(name: str, x: TensorLike, rank: int) -> Tensor:
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


def _fitted(x: Tensor, size: int) -> Tensor:
    """The first elements of each row, filled up with zeros."""
    check_size(_math.prod(x.shape[:-1]) * size, "a Fourier transform")
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
    angles = np.arange(sequence_length) * (2.0 * _math.pi / sequence_length)
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
fft = row("fft", lambda x: _apart(fourier.fft(_joined("fft", x, 1), axes=(-1,))),
    "Discrete Fourier transform along the last axis: sum over n of x_n exp(-2 pi i k n / N).",
    "print(*[one.numpy() for one in tf.keras.ops.fft(([1.0, 2.0], [0.0, 0.0]))]) -> [ 3. -1.] [0. 0.]",
    name="FFT", returns="tuple[Tensor, Tensor]", types=_PAIR)
extract_sequences = row("extract_sequences",
    lambda x, sequence_length, sequence_stride: read(x, elements(x.shape[-1:], sequence_length, sequence_stride), -1),
    "Windows along the last axis: (..., length) to (..., windows, sequence_length).",
    "print(tf.keras.ops.extract_sequences([1, 2, 3, 4], 3, 1).numpy().tolist()) -> [[1, 2, 3], [2, 3, 4]]",
    takes=anything, types=dict.fromkeys(["sequence_length", "sequence_stride"], "int"), cost=cost_of_operands)
# fmt: on
