"""The primitives beyond the core: networks, linear algebra, draws, Fourier transforms. May import `core`."""

from . import convolution, draws, linalg, nn
