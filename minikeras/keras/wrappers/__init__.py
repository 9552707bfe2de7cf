"""Models as estimators of scikit-learn. Read `estimators.py`; it and scikit-learn are loaded when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...absent import late

if TYPE_CHECKING:
    from .estimators import SKLearnClassifier, SKLearnRegressor, SKLearnTransformer

__all__ = ["SKLearnClassifier", "SKLearnRegressor", "SKLearnTransformer"]

_LATE = dict.fromkeys(__all__, "estimators")

__getattr__, __dir__ = late(__name__, _LATE)
