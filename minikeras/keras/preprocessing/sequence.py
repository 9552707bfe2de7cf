# mypy: implicit-reexport
"""Sequences of one length."""

from ...absent import facade as _facade
from ..utils.arrays import pad_sequences

__getattr__, __dir__, __all__ = _facade(__name__, {})
