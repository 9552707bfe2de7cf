"""What a layer gives by the rule of its class, without computing anything: a file decides on the layers that it holds, and so
on what trial runs would cost. What has no rule is tried only on arrays that the budget of the file allows.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import nest
from ...errors import LoadError
from ...files import limits
from ...types import as_dtype
from .keras_tensor import KerasTensor, Spec

_PACKAGE = __name__.partition(".")[0]
_FLOPS = 5_000
"""Multiplications that count as one unit of work."""


def by_rule(operation: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Spec], Any] | None:
    """Shape and dtype of each output, and the nest that they form; None if the class is not of this package or has no rule."""
    if len(args) != 1 or _symbols(kwargs) or len(_symbols(args)) != len(nest.flatten(args)):
        return None
    if type(operation).__module__.partition(".")[0] != _PACKAGE:
        return None
    graph = getattr(operation, "_graph", None)
    if graph is not None:
        same = [one.shape for one in _symbols(args)] == [one.shape for one in nest.flatten(graph.inputs)]
        outputs = nest.flatten(graph.outputs)
        specs = [Spec(one.shape, one.dtype) for one in outputs]
        return (specs, nest.pack(graph.outputs, list(range(len(specs))))) if same else None
    rule = getattr(type(operation), "compute_output_shape", None)
    if rule is None or hasattr(operation, "_graph"):
        return None
    shapes = nest.map_structure(lambda one: one.shape, args[0])
    return [Spec(tuple(operation.compute_output_shape(shapes)), _dtype(operation, _symbols(args)))], 0


def _dtype(operation: Any, symbols: list[KerasTensor]) -> Any:
    floating = any(one.dtype.is_floating for one in symbols) or operation._gives_floats
    return as_dtype(operation.compute_dtype) if floating else symbols[0].dtype


def check_trial(operation: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], sizes: tuple[int, int]) -> None:
    """Refuse a trial that the budget of the file does not allow; `sizes` stand for an unknown batch axis and any other unknown
    one.
    """
    if not limits.is_loading():
        return
    symbols = _symbols([args, kwargs])
    shapes = [tuple(sizes[min(i, 1)] if size is None else size for i, size in enumerate(one.shape)) for one in symbols]
    name, work = type(operation).__name__, 0
    graph = getattr(operation, "_graph", None)
    if graph is not None:
        shapes += [
            tuple(sizes[1] if size is None else size for size in spec.shape) for node in graph.nodes for spec in node.specs
        ]
    elif getattr(operation, "grows", False):
        numbers = [leaf for leaf in nest.flatten([args, kwargs, operation.get_config()]) if isinstance(leaf, (int, float))]
        largest = math.prod(math.prod(shape) for shape in shapes) * math.prod(2 + abs(int(min(one, 2**53))) for one in numbers)
        work = largest // _FLOPS
        shapes.append((largest,))
    elif not hasattr(operation, "compute_dtype"):  # element by element, or to fewer of them
        shapes.append(_broadcast(name, shapes))
    elements = sum(math.prod(shape) for shape in shapes)
    limits.check_temporary(8 * elements, f"arrays to try '{operation.name}' on")
    limits.spend_work(work + elements // 500, f"a trial of '{operation.name}'")


def _broadcast(name: str, shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise LoadError(f"{name} of shapes {shapes}: {error}") from None


def _symbols(structure: Any) -> list[KerasTensor]:
    return [leaf for leaf in nest.flatten(structure) if isinstance(leaf, KerasTensor)]
