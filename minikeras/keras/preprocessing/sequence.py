# mypy: implicit-reexport
"""Sequences of one length."""

from ...absent import late as _late
from ..utils.arrays import pad_sequences

__path__: list[str] = []  # a package without modules: Python asks finders for names that it lacks, and one explains them
__getattr__, __dir__ = _late(__name__, {})
__all__ = [name for name in __dir__() if not name.startswith("_")]
