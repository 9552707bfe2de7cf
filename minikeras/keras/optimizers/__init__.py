"""Optimizers. May import keras's tables and weights. Read `optimizer.py` first, then `adam.py` for one whole example."""

from typing import Any as _Any

from ..catalogue import Catalogue as _Catalogue
from .adam import Adam
from .optimizer import Optimizer
from .sgd import SGD

_catalogue = _Catalogue("optimizer")
for _entry in (Adam, SGD):
    _catalogue.add()(_entry)


def get(identifier: _Any) -> _Any:
    """The optimizer for a name, a configuration, a class or an object."""
    return _catalogue.get(identifier)


__all__ = ["SGD", "Adam", "Optimizer", "get"]
