"""Keras's global settings: the default float dtype and the fuzz factor."""

from __future__ import annotations

from typing import Any

from ..core.changes import clock
from ..types import as_dtype

_settings: dict[str, Any] = {"floatx": "float32", "epsilon": 1e-7}


def floatx() -> str:
    """The dtype of new weights.

    >>> floatx()
    'float32'
    """
    return _settings["floatx"]


def set_floatx(value: Any) -> None:
    """Make new weights 'float16', 'float32' or 'float64'."""
    dtype = as_dtype(value)
    if not dtype.is_floating:
        raise ValueError(f"set_floatx: expected a float dtype, found {dtype.name}.")
    _settings["floatx"] = dtype.name
    clock.set()


def epsilon() -> float:
    """The fuzz factor that keeps logarithms and quotients finite.

    >>> epsilon()
    1e-07
    """
    return _settings["epsilon"]


def set_epsilon(value: float) -> None:
    """Change the fuzz factor."""
    _settings["epsilon"] = float(value)
    clock.set()
