"""Pipelines of data. May import core and functions, nothing of keras. Read `dataset.py` first."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..absent import late as _late
from .checks import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from .dataset import Dataset
from .options import Options
from .passes import Iterator, Resumable
from .specs import DatasetSpec

if _TYPE_CHECKING:
    from . import experimental
    from .lines import TextLineDataset

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "DatasetSpec",
    "Iterator",
    "Options",
    "Resumable",
    "TextLineDataset",
    "experimental",
]

__getattr__, __dir__ = _late(__name__, {"TextLineDataset": "lines", "experimental": None})
