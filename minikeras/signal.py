# mypy: implicit-reexport
"""`tf.signal`: Fourier transforms, and frames of signals with windows. Names only; definitions are in `functions/signal.py`."""

from .functions.signal import (
    fft, fft2d, fftshift, frame, hamming_window, hann_window, ifft, ifft2d, ifftshift, inverse_stft, inverse_stft_window_fn,
    irfft, irfft2d, overlap_and_add, rfft, rfft2d, stft
)
from .functions.symbols import publish as _publish

_publish(globals())
