"""Logs: what a step or an epoch reports, by name. Results may stay on the device until a callback reads them as numbers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

Logs = Mapping[str, Any]


def numbers(logs: Logs) -> dict[str, Any]:
    """Results as Python floats, or as arrays if they have axes."""
    return {name: _plain(value) for name, value in logs.items()}


def _plain(value: Any) -> Any:
    values = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
    return values if values.ndim else float(values)


def readable(logs: Logs | None) -> str:
    """'accuracy: 0.9876 - loss: 0.1234', by name."""
    return " - ".join(f"{name}: {as_number(value)}" for name, value in sorted((logs or {}).items()))


def as_number(value: Any) -> str:
    """A number; of a metric with several their mean, as Keras shows it."""
    several = bool(getattr(value, "shape", ()))
    number = float(np.mean(value.numpy() if hasattr(value, "numpy") else value)) if several else float(value)
    return f"{number:.4f}" if number == 0 or abs(number) > 1e-3 else f"{number:.4e}"


# Output --------------------------------------------------------------------------------------------------------------


def in_notebook() -> bool:
    """True if a notebook shows what is printed."""
    return type(sys.stdout).__module__.partition(".")[0] == "ipykernel"
