# mypy: implicit-reexport
"""Models as estimators of scikit-learn. Read `estimators.py`; it and scikit-learn are loaded when they are first used."""

from ...absent import facade as _facade

_LATE = dict.fromkeys(("SKLearnClassifier", "SKLearnRegressor", "SKLearnTransformer"), "estimators")

__getattr__, __dir__, __all__ = _facade(__name__, _LATE)
