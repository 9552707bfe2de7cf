"""Nested structures: flatten tuples, lists, dicts and named tuples into a list, and pack a list back.

Key idea: a structure is a recipe for visiting leaves in one fixed order. Dicts keep the order of their keys, None is a
leaf. Next: `core/tape.py`, which differentiates with respect to any nest of sources.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["flatten", "flatten_up_to", "is_nested", "map_structure", "pack"]


def is_nested(structure: Any) -> bool:
    """True for the containers whose elements are visited.

    >>> is_nested([1]), is_nested({}), is_nested("text")
    (True, True, False)
    """
    return _is_container(type(structure))  # type: ignore[arg-type]  # a class is hashable


@functools.cache
def _is_container(kind: type) -> bool:
    """Whether elements of this type are visited; kept by type, since asking an abstract class takes long."""
    return issubclass(kind, (list, tuple, Mapping)) and not hasattr(kind, "as_list")


def flatten(structure: Any) -> list[Any]:
    """The leaves of `structure`, depth first, dict values in the order of their keys.

    >>> flatten({"a": [1, 2], "b": (3, None)})
    [1, 2, 3, None]
    """
    if not is_nested(structure):
        return [structure]
    elements = structure.values() if isinstance(structure, Mapping) else structure
    return [leaf for element in elements for leaf in flatten(element)]


def flatten_up_to(structure: Any, other: Any) -> list[Any]:
    """What stands in `other` where `structure` has a leaf, in flattening order.

    >>> flatten_up_to({"a": 0, "b": [0]}, {"a": [1, 2], "b": [(3, 4)]})
    [[1, 2], (3, 4)]

    Raises:
        ValueError: if `other` lacks a container that `structure` has, or its sizes or keys differ.
    """
    if not is_nested(structure):
        return [other]
    mappings = isinstance(structure, Mapping), isinstance(other, Mapping)
    fits = is_nested(other) and mappings[0] == mappings[1] and len(structure) == len(other)
    if not fits or (mappings[0] and structure.keys() != other.keys()):
        raise ValueError(f"flatten_up_to: {other!r:.80} is not nested like {structure!r:.80}.")
    keys = structure.keys() if mappings[0] else range(len(structure))
    return [leaf for key in keys for leaf in flatten_up_to(structure[key], other[key])]


def pack(structure: Any, leaves: list[Any]) -> Any:
    """A nest shaped like `structure` that holds `leaves` in flattening order.

    >>> pack({"a": [0, 0], "b": 0}, [1, 2, 3])
    {'a': [1, 2], 'b': 3}

    Raises:
        ValueError: if the number of leaves differs from that of the structure.
    """
    expected = len(flatten(structure))
    if expected != len(leaves):
        raise ValueError(f"pack: the structure has {expected} leaves, {len(leaves)} were given.")
    return _pack(structure, iter(leaves))


def _pack(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    if isinstance(structure, Mapping):
        pairs = [(key, _pack(value, leaves)) for key, value in structure.items()]
        if isinstance(structure, defaultdict):
            return type(structure)(structure.default_factory, pairs)
        return type(structure)(pairs)  # type: ignore[call-arg]
    elements = [_pack(element, leaves) for element in structure]
    if hasattr(structure, "_fields"):
        return type(structure)(*elements)
    return type(structure)(elements)


def map_structure(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """Apply `function` to corresponding leaves of one or more nests of the same shape.

    >>> map_structure(lambda a, b: a + b, {"x": 1, "y": [2]}, {"x": 10, "y": [20]})
    {'x': 11, 'y': [22]}
    """
    columns = [flatten(nest) for nest in (structure, *others)]
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"map_structure: the nests have {[len(column) for column in columns]} leaves.")
    return pack(structure, [function(*leaves) for leaves in zip(*columns, strict=True)])
