# mypy: implicit-reexport
"""Pipelines of data. May import core and functions, nothing of keras. Read `dataset.py` first."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..absent import facade as _facade
from .dataset import Dataset
from .elements import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, DatasetSpec, Options
from .pipeline import Iterator, Resumable

if _TYPE_CHECKING:
    from . import experimental
    from .text_files import TextLineDataset

__getattr__, __dir__, __all__ = _facade(__name__, {"TextLineDataset": "text_files", "experimental": None})
