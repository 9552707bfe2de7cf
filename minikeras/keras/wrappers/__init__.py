"""Models as estimators of scikit-learn. Read `estimators.py`; it and scikit-learn are loaded when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimators import SKLearnClassifier, SKLearnRegressor, SKLearnTransformer

__all__ = ["SKLearnClassifier", "SKLearnRegressor", "SKLearnTransformer"]

_LATE = dict.fromkeys(__all__, "estimators")


def __getattr__(name: str) -> Any:
    """The estimators are classes of scikit-learn's."""
    from ...absent import found

    return found(__name__, name, _LATE)


def __dir__() -> list[str]:
    """What is loaded and what can be, so that completion works."""
    return sorted({*globals(), *_LATE})
