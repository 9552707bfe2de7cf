"""Sequences of one length."""

from ...absent import late as _late
from ..utils.arrays import pad_sequences

__all__ = ["pad_sequences"]

__path__: list[str] = []  # a package without modules: Python asks finders for names that it lacks, and one explains them
__getattr__, __dir__ = _late(__name__, {})
