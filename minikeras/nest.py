"""Nested structures: flatten tuples, lists, dicts and named tuples into a list, and pack a list back.

Dicts are visited by their sorted keys and packed in their own order. Views such as `dict.values()` are lists. None is a leaf.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any

__all__ = ["assert_same_structure", "flatten", "flatten_up_to", "is_nested", "map_structure", "pack", "pack_sequence_as"]

_VIEWS = (KeysView, ValuesView, ItemsView)  # of a dict


def is_nested(structure: Any) -> bool:
    """True for the containers whose elements are visited.

    >>> is_nested([1]), is_nested({}), is_nested("text")
    (True, True, False)
    """
    return _is_container(type(structure))  # type: ignore[arg-type]  # a class is hashable


@functools.cache
def _is_container(kind: type) -> bool:
    """True if elements of this type are visited; cached by type, since asking an abstract class takes long."""
    return issubclass(kind, (list, tuple, Mapping, *_VIEWS)) and not hasattr(kind, "as_list")


def keys(structure: Any) -> list[Any]:
    """The keys or indices of a container's elements, in the order in which the elements are visited.

    Raises:
        TypeError: if the keys of a dict have no order.
    """
    if not isinstance(structure, Mapping):
        return list(range(len(structure)))
    try:
        return sorted(structure)
    except TypeError:
        pass
    try:
        return sorted(structure, key=lambda key: (type(key).__name__, key))
    except TypeError:
        raise TypeError(
            f"nest: the keys {list(structure)!r:.200} of a dict cannot be sorted, so its leaves have no order. Use strings."
        ) from None


def holds_mapping(structure: Any) -> bool:
    """True if a dict is among the containers of a nest."""
    if isinstance(structure, Mapping):
        return True
    return is_nested(structure) and any(map(holds_mapping, structure))


def flatten(structure: Any) -> list[Any]:
    """The leaves of `structure`, depth first, dict values by their sorted keys.

    >>> flatten({"b": (3, None), "a": [1, 2]})
    [1, 2, 3, None]

    Raises:
        TypeError: if the keys of a dict have no order.
    """
    if not is_nested(structure):
        return [structure]
    if isinstance(structure, Mapping):
        structure = [structure[key] for key in keys(structure)]
    if not any(map(_is_container, map(type, structure))):
        return list(structure)
    return [leaf for element in structure for leaf in flatten(element)]


def flatten_up_to(structure: Any, other: Any) -> list[Any]:
    """The parts of `other` at the leaves of `structure`, in flattening order; lists and tuples may stand for one another.

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
    structure, other = _listed(structure), _listed(other)
    return [leaf for key in keys(structure) for leaf in flatten_up_to(structure[key], other[key])]


def _listed(structure: Any) -> Any:
    """A view of a dict as a list, whose elements can be asked for; any other structure as it is."""
    return list(structure) if isinstance(structure, _VIEWS) else structure


def pack(structure: Any, leaves: list[Any]) -> Any:
    """A nest shaped like `structure` that holds `leaves` in flattening order.

    >>> pack({"b": 0, "a": [0, 0]}, [1, 2, 3])
    {'b': 3, 'a': [1, 2]}

    Raises:
        ValueError: if the number of leaves differs from that of the structure.
    """
    if type(structure) is list and len(structure) == len(leaves) and not any(map(_is_container, map(type, structure))):
        return list(leaves)
    expected = len(flatten(structure))
    if expected != len(leaves):
        raise ValueError(f"pack: the structure has {expected} leaves, {len(leaves)} were given.")
    return _pack(structure, iter(leaves))


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """`pack` by TensorFlow's name; a structure that is a leaf gives the only element.

    Args:
        structure: a nest.
        flat_sequence: a list or another nest, whose leaves are packed.
        expand_composites: accepted for compatibility, ignored.

    >>> pack_sequence_as({"b": 0, "a": [0, 0]}, [1, 2, 3])
    {'b': 3, 'a': [1, 2]}

    Raises:
        TypeError: if `flat_sequence` is no nest.
        ValueError: if the number of leaves differs.
    """
    if not is_nested(flat_sequence):
        raise TypeError(f"pack_sequence_as: flat_sequence must be a list of leaves, found {flat_sequence!r:.80}.")
    return pack(structure, flatten(flat_sequence))


def _pack(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    structure = _listed(structure)
    if isinstance(structure, Mapping):
        return rebuilt(structure, {key: _pack(structure[key], leaves) for key in keys(structure)})
    return rebuilt(structure, [_pack(element, leaves) for element in structure])


def rebuilt(structure: Any, parts: Any) -> Any:
    """A container like this one with other parts: those of a dict by their keys, of others in order."""
    kind: Any = type(structure)
    if isinstance(structure, Mapping):
        pairs = [(key, parts[key]) for key in structure]
        return kind(structure.default_factory, pairs) if isinstance(structure, defaultdict) else kind(pairs)
    return kind(*parts) if hasattr(structure, "_fields") else kind(parts)


def pair(structure: Any, *others: Any, check_types: bool = True) -> list[tuple[Any, ...]]:
    """The leaves that stand in the same place of several nests, in flattening order; dicts are paired by key.

    >>> pair({"a": 1, "b": 2}, {"b": 20, "a": 10})
    [(1, 10), (2, 20)]

    Args:
        structure: a nest.
        others: nests with the same containers.
        check_types: whether a list and a tuple, or two kinds of named tuples, count as different.

    Raises:
        ValueError: if a container has another size or other keys, or stands beside a leaf.
        TypeError: if containers are of different types.
    """
    for other in others:
        _assert_alike(structure, other, check_types, "")
    return list(zip(flatten(structure), *(flatten_up_to(structure, other) for other in others), strict=True))


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Check that two nests have the same containers; dicts may be filled in any order.

    >>> assert_same_structure({"a": 1, "b": [2]}, {"b": [3], "a": 4})

    Raises:
        ValueError: if a container has another size or other keys, or stands beside a leaf.
        TypeError: if containers are of different types and `check_types` holds.
    """
    _assert_alike(nest1, nest2, check_types, "")


def _assert_alike(first: Any, second: Any, check_types: bool, path: str) -> None:
    place = f" at {path}" if path else ""

    def different(kind: type[Exception], found: str) -> Exception:
        return kind(
            f"The two structures don't have the same nested structure{place}: {found}.\n"
            f"First structure: {first!r:.200}\nSecond structure: {second!r:.200}\nGive both the same containers and keys."
        )

    if is_nested(first) != is_nested(second):
        raise different(ValueError, "one is a container, the other is a leaf")
    if not is_nested(first):
        return
    first, second = _listed(first), _listed(second)
    if _kind(first) != _kind(second) and (check_types or Mapping in (_kind(first), _kind(second))):
        raise different(TypeError, f"the first is a {type(first).__name__}, the second a {type(second).__name__}")
    if isinstance(first, Mapping) and first.keys() != second.keys():
        raise different(ValueError, f"the first has the keys {list(first)}, the second {list(second)}")
    if len(first) != len(second):
        raise different(ValueError, f"the first has {len(first)} elements, the second {len(second)}")
    for key in first if isinstance(first, Mapping) else range(len(first)):
        _assert_alike(first[key], second[key], check_types, f"{path}[{key!r}]")


def _kind(structure: Any) -> Any:
    """The properties that must be the same of two containers: mappings are all alike, named tuples by name and fields."""
    if isinstance(structure, Mapping):
        return Mapping
    if hasattr(structure, "_fields"):
        return type(structure).__name__, structure._fields
    return list if isinstance(structure, list) else type(structure)


def map_structure(function: Callable[..., Any], structure: Any, *others: Any, check_types: bool = True) -> Any:
    """Apply `function` to corresponding leaves of one or more nests of the same structure; dicts are paired by key.

    >>> map_structure(lambda a, b: a + b, {"x": 1, "y": [2]}, {"y": [20], "x": 10})
    {'x': 11, 'y': [22]}

    Raises:
        ValueError, TypeError: if the structures differ, as `assert_same_structure` says.
    """
    if not others:
        return pack(structure, [function(leaf) for leaf in flatten(structure)])
    return pack(structure, [function(*leaves) for leaves in pair(structure, *others, check_types=check_types)])
