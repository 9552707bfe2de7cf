# mypy: implicit-reexport
"""`tf.signal`: Fourier transforms, and frames of signals with windows. Names only; definitions are in `functions/signal.py`."""

from .absent import late as _late
from .functions.signal import (
    fft,
    fft2d,
    fftshift,
    frame,
    hamming_window,
    hann_window,
    ifft,
    ifft2d,
    ifftshift,
    inverse_stft,
    inverse_stft_window_fn,
    irfft,
    irfft2d,
    overlap_and_add,
    rfft,
    rfft2d,
    stft,
)
from .functions.symbols import publish as _publish

_publish(globals())
__all__ = [name for name in dir() if not name.startswith("_")]

__path__: list[str] = []  # a package without modules: Python asks finders for names that it lacks, and one explains them
__getattr__, __dir__ = _late(__name__, {})
