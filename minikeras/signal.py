"""`tf.signal`: Fourier transforms, and frames of signals with windows. Names only; definitions are in `functions/signal.py`."""

from .functions import signal
from .functions.catalogue import publish as _publish

_publish(
    globals(),
    {
        signal: """fft fft2d fftshift frame hamming_window hann_window ifft ifft2d ifftshift inverse_stft
            inverse_stft_window_fn irfft irfft2d overlap_and_add rfft rfft2d stft""",
    },
)
