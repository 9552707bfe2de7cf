"""Sequences of one length."""

from ...absent import late as _late
from ..utils.sequences import pad_sequences

__all__ = ["pad_sequences"]

__getattr__, __dir__ = _late(__name__, {})
