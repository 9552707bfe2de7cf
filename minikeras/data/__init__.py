# mypy: implicit-reexport
"""Pipelines of data. May import core and functions, nothing of keras. Read `dataset.py` first."""

from ..absent import facade as _facade
from .dataset import Dataset
from .elements import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, DatasetSpec, Options
from .pipeline import Iterator, Resumable

__getattr__, __dir__, __all__ = _facade(__name__, {"TextLineDataset": "text_files", "experimental": None})
