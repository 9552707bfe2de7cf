# mypy: implicit-reexport
"""Models as estimators of scikit-learn. Read `estimators.py`; it and scikit-learn are loaded when they are first used."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ...absent import facade as _facade

if _TYPE_CHECKING:
    from .estimators import SKLearnClassifier, SKLearnRegressor, SKLearnTransformer

_LATE = dict.fromkeys(("SKLearnClassifier", "SKLearnRegressor", "SKLearnTransformer"), "estimators")

__getattr__, __dir__, __all__ = _facade(__name__, _LATE)
