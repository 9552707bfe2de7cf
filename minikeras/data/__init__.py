"""Pipelines of data. May import core and functions, nothing of keras. Read `dataset.py` first."""

from typing import NoReturn as _NoReturn

from ..absent import error as _error
from .dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from .passes import Resumable

__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset", "Resumable"]


def __getattr__(name: str) -> _NoReturn:
    """What TensorFlow has and this package has not is explained."""
    raise _error(__name__, name)
