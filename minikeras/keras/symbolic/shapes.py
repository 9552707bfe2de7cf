"""Nests of tensors and nests of shapes: what is one tensor, and what is several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ... import nest
from ...core.tensor import Operand


def is_data(value: Any) -> bool:
    """True for Tensors, Variables and arrays."""
    return isinstance(value, Operand) or (hasattr(value, "shape") and hasattr(value, "dtype"))


def is_numbers(argument: Any) -> bool:
    """True for a number or nested lists of numbers: one tensor rather than a nest of them."""
    if isinstance(argument, (int, float, complex, np.generic)):
        return True
    if not isinstance(argument, (list, tuple)) or not argument:
        return False
    return all(is_numbers(element) for element in argument)


def shapes_of_first(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The shapes of the first argument: what `build` is told."""
    inputs = args[0] if args else next((value for value in kwargs.values() if is_data(value)), None)
    return shapes_of(inputs)


def shapes_of(inputs: Any) -> Any:
    """The shape of each tensor in a nest."""
    return nest.map_structure(lambda leaf: None if leaf is None else tuple(leaf.shape), inputs)


def map_shapes(function: Callable[[Any], Any], nested: Any) -> Any:
    """`function(shape)` for each shape in a nest of lists and dicts; a shape is a list or tuple of sizes and None."""
    if isinstance(nested, Mapping):
        return {key: map_shapes(function, one) for key, one in nested.items()}
    if all(size is None or isinstance(size, int) for size in nested):
        return function(nested)
    return [map_shapes(function, one) for one in nested]
