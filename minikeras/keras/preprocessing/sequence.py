# mypy: implicit-reexport
"""Sequences of one length."""

from ...absent import facade as _facade
from ..utils.arrays import pad_sequences

__path__: list[str] = []  # a package without modules: Python asks finders for names that it lacks, and one explains them
__getattr__, __dir__, __all__ = _facade(__name__, {})
