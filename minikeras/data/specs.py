"""What the elements of a Dataset are: nests of TensorSpecs, in which None is the size of an axis that may vary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .. import nest
from ..core import convert_to_tensor
from ..types import TensorSpec


@dataclass(frozen=True)
class DatasetSpec:
    """What a Dataset within an element holds, as a window does.

    >>> tf.data.Dataset.range(4).window(2).element_spec
    DatasetSpec(element_spec=TensorSpec(shape=(), dtype=tf.int64))
    """

    element_spec: Any


def of_element(element: Any, varies: bool = False) -> Any:
    """The spec of an element; with `varies` the first axis of its leaves is left open."""

    def of(leaf: Any) -> Any:
        if leaf is None or hasattr(leaf, "element_spec"):
            return leaf and DatasetSpec(leaf.element_spec)
        found = convert_to_tensor(leaf)
        return TensorSpec([None, *found.shape[1:]] if varies and found.shape else found.shape, found.dtype)

    return nest.map_structure(of, element)


def with_shapes(spec: Any, change: Callable[[Any], Any]) -> Any:
    """A spec with other shapes, which `change` makes of those that are known."""

    def changed(leaf: Any) -> Any:
        known = isinstance(leaf, TensorSpec) and leaf.shape is not None
        return TensorSpec(change(leaf.shape), leaf.dtype) if known else leaf

    return nest.map_structure(changed, spec)


def varies(spec: Any) -> bool:
    """Whether the first axis of a leaf is open, as that of batches is."""
    return any((getattr(leaf, "shape", None) or (0,))[0] is None for leaf in nest.flatten(spec))


def of_either(datasets: Iterable[Any]) -> Any:
    """The spec of elements that come from one of several Datasets: axes that differ are open."""

    def of(*leaves: Any) -> Any:
        shapes: list[Any] = [getattr(leaf, "shape", None) for leaf in leaves]
        if len(set(leaves)) == 1 or not isinstance(leaves[0], TensorSpec):
            return leaves[0]
        alike = None not in shapes and len({len(shape) for shape in shapes}) == 1
        sizes = [size[0] if len(set(size)) == 1 else None for size in zip(*shapes, strict=True)] if alike else None
        return TensorSpec(sizes, leaves[0].dtype)

    return nest.map_structure(of, *(one.element_spec for one in datasets))
