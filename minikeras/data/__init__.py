"""Pipelines of data. May import core and functions, nothing of keras. Read `dataset.py` first."""

from .dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from .resumable import Resumable

__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset", "Resumable"]
