"""Fourier transforms of complex and real tensors, and frames of signals with windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import Tensor
from ..core.ops import indexing
from ..errors import ShapeError
from ..nn_ops import fourier
from ..types import Axis, DTypeLike, ShapeLike, TensorLike, as_dtype
from .catalogue import name_like_definition, row
from .elementwise import cast, divide_no_nan
from .indexing import gather
from .operands import beside, inexact, integer, negative_axis, static_shape, tensor
from .shaping import pad, reshape, roll

# fmt: off
fftshift = row("fftshift", lambda x, axes=None, name=None: _moved(tensor(x), axes, 1),
    "Frequency 0 moved to the middle of the axes, of all by default.",
    "print(tf.signal.fftshift([0, 1, 2, -2, -1]).numpy()) -> [-2 -1  0  1  2]")
ifftshift = row("ifftshift", lambda x, axes=None, name=None: _moved(tensor(x), axes, -1), "The inverse of `fftshift`.",
    "print(tf.signal.ifftshift([-2, -1, 0, 1, 2]).numpy()) -> [ 0  1  2 -2 -1]")
hann_window = row("hann_window",
    lambda window_length, periodic=True, dtype="float32", name=None: _cosine_window(0.5, window_length, periodic, dtype),
    "0.5 - 0.5 cos(2 pi k / n) for k = 0, 1, ...; n is the length, or one less if it is odd or not `periodic`.",
    "print(tf.signal.hann_window(4).numpy()) -> [0.  0.5 1.  0.5]")
hamming_window = row("hamming_window",
    lambda window_length, periodic=True, dtype="float32", name=None: _cosine_window(0.54, window_length, periodic, dtype),
    "0.54 - 0.46 cos(2 pi k / n), as in `hann_window`.", "print(tf.signal.hamming_window(4).numpy()) -> [0.08 0.54 1.   0.54]")
# fmt: on


def _transform(kind: str, rank: int, example: str) -> Callable[..., Tensor]:
    """`tf.signal.fft`, `ifft`, `rfft` or `irfft` along the last axes; `example` is an expression and its printed value."""
    name = kind if rank == 1 else f"{kind}{rank}d"

    def transform(input_tensor: TensorLike, fft_length: ShapeLike = None, name: str | None = None) -> Tensor:
        x = _numbers(transform.__name__, tensor(input_tensor), kind != "rfft")
        if x.ndim < rank:
            raise ShapeError(f"{transform.__name__}: needs {rank} axes, found shape {x.shape}.")
        if kind in ("fft", "ifft"):
            return getattr(fourier, kind)(x, axes=tuple(range(-rank, 0)))
        own = (*x.shape[-rank:-1], x.shape[-1] if kind == "rfft" else max(2 * (x.shape[-1] - 1), 0))
        sizes, others = own if fft_length is None else static_shape(fft_length), tuple(range(-rank, -1))
        if len(sizes) != rank or min(sizes) < 1:
            raise ShapeError(f"{transform.__name__}: fft_length needs {rank} sizes above 0, found {list(sizes)}.")
        if kind == "rfft":
            x = fourier.rfft(_fitted(x, sizes), between=1.0)
            return fourier.fft(x, axes=others) if others else x
        x = _fitted(x, (*sizes[:-1], sizes[-1] // 2 + 1))
        return fourier.irfft(fourier.ifft(x, axes=others) if others else x, length=sizes[-1], between=1.0)

    def plain(input: TensorLike, name: str | None = None) -> Tensor:
        return transform(input)

    function, (expression, expected) = transform if "r" in kind else plain, example.split(" -> ")
    way = "inverse discrete" if kind.startswith("i") else "discrete"
    real = (
        ", of real numbers: half of the frequencies; to `fft_length` they are cut or filled with zeros" if "r" in kind else ""
    )
    text = f"The {way} Fourier transform along the last axes, {rank} of them{real}.\n\n>>> {expression}\n{expected}\n"
    name_like_definition(transform, name, __name__)
    return name_like_definition(function, name, __name__, text)


def _numbers(name: str, x: Tensor, as_complex: bool) -> Tensor:
    """Real numbers as float32 or float64; where complex ones are wanted, as those."""
    if as_complex and x.dtype.is_complex:
        return x
    wide = inexact(name, x, "iuf").dtype == "float64"
    return cast(x, ("complex128" if wide else "complex64") if as_complex else "float64" if wide else "float32")


def _fitted(x: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """The first elements along the last axes, filled up with zeros."""
    x = x[(Ellipsis, *map(slice, sizes))]
    missing = [size - found for size, found in zip(sizes, x.shape[-len(sizes) :], strict=True)]
    return pad(x, [[0, 0]] * (x.ndim - len(sizes)) + [[0, more] for more in missing]) if any(missing) else x


fft = _transform("fft", 1, "print(tf.signal.fft(tf.constant([1 + 0j, 2, 3])).numpy().real.round(2)) -> [ 6.  -1.5 -1.5]")
ifft = _transform("ifft", 1, "print(tf.signal.ifft(tf.constant([6 + 0j, 0, 0])).numpy().real.round(2)) -> [2. 2. 2.]")
rfft = _transform("rfft", 1, "print(tf.signal.rfft([1.0, 2.0, 3.0]).numpy().round(2)) -> [ 6. +0.j   -1.5+0.87j]")
irfft = _transform("irfft", 1, "print(tf.signal.irfft(tf.signal.rfft([1.0, 2.0, 3.0]), [3]).numpy().round(2)) -> [1. 2. 3.]")
fft2d = _transform("fft", 2, "print(tf.signal.fft2d(tf.ones([1, 2], tf.complex64)).numpy()) -> [[2.+0.j 0.+0.j]]")
ifft2d = _transform("ifft", 2, "print(tf.signal.ifft2d(tf.ones([1, 2], tf.complex64)).numpy()) -> [[1.+0.j 0.+0.j]]")
rfft2d = _transform("rfft", 2, "print(tf.signal.rfft2d(tf.ones([1, 2])).numpy()) -> [[2.+0.j 0.+0.j]]")
irfft2d = _transform("irfft", 2, "print(tf.signal.irfft2d(tf.ones([1, 2], tf.complex64)).numpy()) -> [[1. 0.]]")


def _moved(x: Tensor, axes: Axis, sign: int) -> Tensor:
    chosen = [negative_axis(axis, x.ndim, "fftshift") for axis in (range(x.ndim) if axes is None else static_shape(axes))]
    return roll(x, [sign * (x.shape[axis] // 2) for axis in chosen], chosen)


def _cosine_window(share: float, window_length: int, periodic: bool, dtype: DTypeLike) -> Tensor:
    length, kind = integer(window_length), as_dtype(dtype)
    if length < 0 or not kind.is_floating:
        raise ValueError(f"a window needs a length that is not negative, and floats; found {length} and {kind.name}.")
    angles = np.arange(length) * (2.0 * math.pi / max(length - (not periodic or length % 2), 1))
    return tensor((share - (1.0 - share) * np.cos(angles) if length > 1 else np.ones(length)).astype(kind.numpy))


def frame(
    signal: TensorLike,
    frame_length: int,
    frame_step: int,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: int = -1,
    name: str | None = None,
) -> Tensor:
    """Frames under a window that slides along an axis, which becomes two: frames, and elements of each.

    Args:
        signal: (..., samples, ...).
        frame_length, frame_step: of the window, and from one to the next.
        pad_end: whether `pad_value` fills up the windows that reach beyond the end.
        axis: of the samples.

    >>> print(tf.signal.frame([1, 2, 3, 4, 5], 2, 2).numpy().tolist())
    [[1, 2], [3, 4]]
    """
    x, length, step = tensor(signal), integer(frame_length), integer(frame_step)
    place = x.ndim + negative_axis(axis, x.ndim, "frame")
    if min(length, step) < 1:
        raise ValueError(f"frame: frame_length and frame_step must be positive, found {length} and {step}.")
    size = x.shape[place]
    count = -(-size // step) if pad_end else max(0, (size - length) // step + 1)
    missing = max((count - 1) * step + length - size, 0) if count else 0
    if missing:
        x = pad(x, [[0, missing * (one == place)] for one in range(x.ndim)], constant_values=pad_value)
    return gather(x, beside(x, np.arange(count)[:, None] * step + np.arange(length)), axis=place)


def overlap_and_add(signal: TensorLike, frame_step: int, name: str | None = None) -> Tensor:
    """The transpose of `frame`: frames (..., frames, length) added up where they overlap, to (..., samples).

    >>> print(tf.signal.overlap_and_add([[1, 1], [2, 2]], 1).numpy())
    [1 3 2]
    """
    x, step = tensor(signal), integer(frame_step)
    if x.ndim < 2 or step < 1:
        raise ShapeError(f"overlap_and_add: needs (..., frames, length) and a positive step, found {x.shape} and {step}.")
    *lead, count, length = x.shape
    places = beside(x, (np.arange(count)[:, None] * step + np.arange(length)).ravel())
    size = (count - 1) * step + length if count else 0
    return indexing.add_rows(reshape(x, (*lead, count * length)), places, axis=-1, size=size)


def _enclosing(length: int, fft_length: ShapeLike) -> int:
    return 1 << max(length - 1, 0).bit_length() if fft_length is None else integer(fft_length)


def stft(
    signals: TensorLike,
    frame_length: int,
    frame_step: int,
    fft_length: int | None = None,
    window_fn: Callable[..., Tensor] | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """Short-time Fourier transform of real (..., samples): `rfft` of each `frame` times a window.

    Args:
        fft_length: frames are filled with zeros to it; the next power of 2 if None.
        window_fn: called with frame_length and `dtype`; None for no window.
        frame_length, frame_step, pad_end: as in `frame`.

    >>> tf.signal.stft(tf.ones([2, 16]), 6, 2).shape
    TensorShape([2, 6, 5])
    """
    frames = frame(inexact("stft", tensor(signals), "f"), frame_length, frame_step, pad_end)
    weighted = (
        frames if window_fn is None else frames * beside(frames, window_fn(frame_length, dtype=frames.dtype), frames.dtype)
    )
    return rfft(weighted, [_enclosing(frame_length, fft_length)])


def inverse_stft(
    stfts: TensorLike,
    frame_length: int,
    frame_step: int,
    fft_length: int | None = None,
    window_fn: Callable[..., Tensor] | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """`irfft` of each frame, times a window, added up; arguments as in `stft`.

    The inverse of `stft` with a window w has `inverse_stft_window_fn(frame_step, w)`.

    >>> inverse = tf.signal.inverse_stft_window_fn(2)
    >>> print(tf.signal.inverse_stft(tf.signal.stft(tf.range(8.0), 4, 2), 4, 2, window_fn=inverse).numpy().round(3)[2:6])
    [2. 3. 4. 5.]
    """
    frames = _fitted(irfft(stfts, [_enclosing(frame_length, fft_length)]), (frame_length,))
    weights = None if window_fn is None else beside(frames, window_fn(frame_length, dtype=frames.dtype), frames.dtype)
    return overlap_and_add(frames if weights is None else frames * weights, frame_step)


def inverse_stft_window_fn(
    frame_step: int, forward_window_fn: Callable[..., Tensor] = hann_window, name: str | None = None
) -> Callable[..., Tensor]:
    """The window with which `inverse_stft` inverts `stft`: w / (the sum of w**2 over all frames at a sample).

    >>> print(tf.signal.inverse_stft_window_fn(2)(4).numpy())
    [0. 1. 1. 1.]
    """

    def window(frame_length: int, dtype: DTypeLike = "float32") -> Tensor:
        forward = forward_window_fn(frame_length, dtype=dtype)
        places = beside(forward, np.arange(frame_length) % frame_step)
        total = indexing.add_rows(forward * forward, places, axis=-1, size=frame_step)
        return divide_no_nan(forward, gather(total, places))

    return window
