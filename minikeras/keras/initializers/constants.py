"""First values that are not random: zeros, ones, a constant, the identity, Fourier's waves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import Tensor
from ...core.arrays import creation_namespace, to_device, to_numpy
from ...functions.publish import static_shape
from .initializer import Initializer, catalogue, numpy_dtype


@catalogue.add("zero")
class Zeros(Initializer):
    """All zeros.

    >>> print(tf.keras.initializers.Zeros()([2]).numpy())
    [0. 0.]
    """

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        return Tensor(creation_namespace().zeros(static_shape(shape), dtype=numpy_dtype(dtype)))


@catalogue.add("one")
class Ones(Initializer):
    """All ones.

    >>> print(tf.keras.initializers.Ones()([2]).numpy())
    [1. 1.]
    """

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        return Tensor(creation_namespace().ones(static_shape(shape), dtype=numpy_dtype(dtype)))


@catalogue.add()
class Constant(Initializer):
    """One value everywhere, or an array repeated to the shape.

    Args:
        value: a number, or an array that can be broadcast to the shape.

    >>> print(tf.keras.initializers.Constant(3.0)([2]).numpy())
    [3. 3.]
    """

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        held = to_numpy(self.value._array) if hasattr(self.value, "_array") else self.value
        value, sizes = np.asarray(held, dtype=numpy_dtype(dtype)), static_shape(shape)
        try:
            spread = np.broadcast_to(value, sizes)
        except ValueError:
            raise ValueError(f"Constant: a value of shape {value.shape} cannot be broadcast to the shape {sizes}.") from None
        return Tensor(to_device(np.array(spread)))

    def get_config(self) -> dict[str, Any]:
        held = self.value.numpy() if hasattr(self.value, "numpy") else self.value
        return {"value": held.tolist() if hasattr(held, "tolist") else held}


@catalogue.add("IdentityInitializer")
class Identity(Initializer):
    """`gain` times the identity matrix; ones on the diagonal of one that is not square.

    >>> print(tf.keras.initializers.Identity(2.0)([2, 2]).numpy().tolist())
    [[2.0, 0.0], [0.0, 2.0]]
    """

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        sizes = static_shape(shape)
        if len(sizes) != 2:
            raise ValueError(f"Identity matrix initializer can only be used for 2D matrices. Received: shape={sizes}.")
        return Tensor(to_device(self.gain * np.eye(*sizes, dtype=numpy_dtype(dtype))))


def get(identifier: Any) -> Any:
    """The initializer for a name, a configuration, a class, an object or a function; an array or Tensor is the values.

    >>> print(tf.keras.initializers.get(tf.constant([1.0, 2.0]))([2]).numpy())
    [1. 2.]
    """
    if hasattr(identifier, "shape") and hasattr(identifier, "dtype"):
        return Constant(identifier)
    return catalogue.get(identifier)


_WINDOWS: dict[str, Callable[[int], Any]] = {
    "boxcar": np.ones,
    "bartlett": np.bartlett,
    "blackman": np.blackman,
    "hamming": np.hamming,
    "hann": np.hanning,
}


@catalogue.add("STFTInitializer")
class STFT(Initializer):
    """Kernels of a short-time Fourier transform: window times cos(-2 pi t k / n), or sin, for the frequencies k.

    A convolution with it gives the real or imaginary part of the spectrum of each frame. Its shape is (frame length, input
    channels, n / 2 + 1).

    Args:
        side: 'real' or 'imag'.
        window: 'hann', 'hamming', 'blackman', 'bartlett', 'boxcar', an array of the frame length, or None for none.
        scaling: 'density' divides by the window's root sum of squares, 'spectrum' by its sum, None by nothing.
        periodic: whether a named window is one period of a periodic one; else it is symmetric.

    Raises:
        ValueError: for an option that does not exist, or a shape that does not fit.

    >>> print(tf.keras.initializers.STFT("real", window=None)([2, 1, 2]).numpy().round(4)[:, 0].tolist())
    [[1.0, 1.0], [1.0, -1.0]]
    """

    def __init__(
        self, side: str = "real", window: Any = "hann", scaling: str | None = "density", periodic: bool = False
    ) -> None:
        if side not in ("real", "imag"):
            raise ValueError(f"STFT: side should be 'real' or 'imag', not {side!r}.")
        if isinstance(window, str) and window not in _WINDOWS:
            raise ValueError(f"STFT: unknown window {window!r}. There are {sorted(_WINDOWS)}; others can be given as arrays.")
        if scaling not in (None, "density", "spectrum"):
            raise ValueError(f"STFT: scaling must be None, 'density' or 'spectrum', found {scaling!r}.")
        self.side, self.window, self.scaling, self.periodic = side, window, scaling, periodic

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        sizes = static_shape(shape)
        if len(sizes) != 3 or sizes[2] < 2:
            raise ValueError(f"STFT: the shape must be (frame length, input channels, n / 2 + 1), found {sizes}.")
        frame, channels, frequencies = sizes
        angles = -2.0 * np.pi * np.outer(np.arange(frame), np.arange(frequencies)) / (2 * (frequencies - 1))
        kernel = (np.cos(angles) if self.side == "real" else np.sin(angles)) * self._weights(frame)[:, None]
        return Tensor(to_device(np.repeat(kernel[:, None], channels, 1).astype(numpy_dtype(dtype))))

    def _weights(self, frame: int) -> Any:
        """The window, scaled."""
        if self.window is None:
            return np.ones(frame)
        named = isinstance(self.window, str)
        window = _WINDOWS[self.window](frame + self.periodic)[:frame] if named else np.asarray(self.window, dtype="float64")
        if window.shape != (frame,):
            raise ValueError(f"STFT: the window has shape {window.shape}, the frame has {frame} values.")
        scale = {None: 1.0, "density": np.sqrt((window**2).sum()), "spectrum": np.abs(window).sum()}[self.scaling]
        return window / scale

    def get_config(self) -> dict[str, Any]:
        window = self.window.tolist() if hasattr(self.window, "tolist") else self.window
        return {"side": self.side, "window": window, "periodic": self.periodic, "scaling": self.scaling}
