"""Rows for discrete Fourier transforms."""

import numpy as np

from minikeras.nn_ops import fourier
from specimens.table import complexes, normal, row

SPECIMENS = [
    row(fourier.fft, complexes(3, 4), np.fft.fft, axes=(-1,), analytic=False),
    row(fourier.fft, complexes(2, 3, 4), np.fft.fft2, "of two axes", axes=(-2, -1), analytic=False),
    row(fourier.ifft, complexes(3, 5), np.fft.ifft, axes=(-1,), analytic=False),
    *(row(fourier.rfft, normal(3, n), np.fft.rfft, f"of {n} numbers", between=1.0, analytic=False) for n in (1, 5, 6)),
    *(
        row(
            fourier.irfft,
            complexes(3, n // 2 + 1),
            lambda x, n=n: np.fft.irfft(x, n),
            f"to {n} numbers",
            length=n,
            between=1.0,
            analytic=False,
        )
        for n in (1, 5, 6)
    ),
]
