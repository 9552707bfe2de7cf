"""What Dataset's methods are given, checked; and how functions of the user are called."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

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


def whole_number(method: str, name: str, given: Any, least: int | None = None) -> int:
    """An int, also from a scalar Tensor; ValueError for anything else, and below `least`."""
    try:
        number = operator.index(given)
        if least is None or number >= least:
            return number
    except (TypeError, ValueError):
        pass
    bound = "" if least is None else f" of at least {least}"
    raise ValueError(f"{method}: {name} must be an int{bound}, found {given!r:.100}.")


at_least_one = partial(whole_number, least=1)


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
