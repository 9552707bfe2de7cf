"""What Dataset's methods are given, checked; and how functions of the user are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


def need_function(method: str, given: Any) -> None:
    """A function."""
    if not callable(given):
        raise TypeError(f"Dataset.{method}: expected a function, found {given!r:.200}.")


def is_dataset(value: Any) -> bool:
    """Whether a value is a Dataset, whose module imports this one."""
    return hasattr(value, "rows_from")


def need_datasets(method: str, *given: Any) -> None:
    """Datasets, at least one."""
    for one in given or (None,):
        if not is_dataset(one):
            raise TypeError(f"Dataset.{method}: expected Datasets, found {one!r:.200}. Dataset.from_tensor_slices makes one.")


def at_least_one(method: str, name: str, given: Any) -> int:
    """An int of at least 1."""
    if not isinstance(given, (int, np.integer)) or given < 1:
        raise ValueError(f"{method}: {name} must be an int of at least 1, found {given!r}.")
    return int(given)


def called(function: Callable[..., Any], element: Any) -> Any:
    """The function of an element; a tuple is handed over as several arguments."""
    return function(*element) if isinstance(element, tuple) else function(element)


def made_dataset(method: str, function: Callable[..., Any], element: Any) -> Any:
    """The Dataset that a function makes of an element."""
    made = called(function, element)
    if not is_dataset(made):
        raise TypeError(
            f"Dataset.{method}: the function must return a Dataset, found {made!r:.200}. map takes other functions."
        )
    return made
