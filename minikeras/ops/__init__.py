"""The primitives, by subject: strict, polymorphic, with their derivatives. May import what is below, and `core`."""

from . import arithmetic, contractions, convolution, draws, indexing, linalg, nn, reductions, shaping, transcendental

__all__ = [
    "arithmetic",
    "contractions",
    "convolution",
    "draws",
    "indexing",
    "linalg",
    "nn",
    "reductions",
    "shaping",
    "transcendental",
]
