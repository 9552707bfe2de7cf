"""Models as estimators of scikit-learn. Read `estimators.py`; it and scikit-learn are imported when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimators import SKLearnClassifier, SKLearnRegressor, SKLearnTransformer

__all__ = ["SKLearnClassifier", "SKLearnRegressor", "SKLearnTransformer"]


def __getattr__(name: str) -> Any:
    """The estimators are classes of scikit-learn's."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}.")
    from . import estimators

    return getattr(estimators, name)
