"""`keras.tree`: functions of nests, those of `tf.nest` and deques, under Keras's names; OrderedDicts keep their order."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .. import nest
from ..nest import keys
from ..types import TensorLike

__all__ = [
    *("MAP_TO_NONE", "assert_same_paths", "assert_same_structure", "flatten", "flatten_with_path", "is_nested"),
    *("lists_to_tuples", "map_shape_structure", "map_structure", "map_structure_up_to", "pack_sequence_as", "traverse"),
]

Path = tuple[Any, ...]


class MAP_TO_NONE:
    """The result by which a function of `traverse` puts None in the place of a part.

    >>> tf.keras.tree.traverse(lambda part: tf.keras.tree.MAP_TO_NONE if part == 2 else None, [1, 2])
    [1, None]
    """


def is_nested(structure: Any) -> bool:
    """True for the containers whose elements are visited: lists, tuples, dicts and deques.

    >>> tf.keras.tree.is_nested([1]), tf.keras.tree.is_nested({}), tf.keras.tree.is_nested("text")
    (True, True, False)
    """
    return nest.is_nested(structure) or isinstance(structure, deque)


def flatten(structure: Any) -> list[Any]:
    """The leaves, depth first, dict values by their sorted keys.

    >>> tf.keras.tree.flatten([[1, 2], {"b": 4, "a": (3,)}])
    [1, 2, 3, 4]
    """
    return [leaf for _, leaf in flatten_with_path(structure)]


def flatten_with_path(structure: Any) -> list[tuple[Path, Any]]:
    """The leaves, each with the tuple of positions and keys that leads to it.

    >>> tf.keras.tree.flatten_with_path([{"foo": 42}])
    [((0, 'foo'), 42)]
    """
    return list(_walk(structure, lambda part: False, ()))


def map_structure(func: Callable[..., Any], *structures: Any, none_is_leaf: bool = True) -> Any:
    """A nest of what `func` gives for the leaves that stand in the same place of all nests.

    Args:
        func: a function of as many leaves as there are nests.
        structures: nests of one structure.
        none_is_leaf: if False, None stays where it is.

    Raises:
        ValueError: if the structures differ, or there is none.

    >>> tf.keras.tree.map_structure(lambda a, b: a + b, [1, (2,)], [10, (20,)])
    [11, (22,)]
    """
    if not structures:
        raise ValueError("tree.map_structure: give at least one structure.")
    for other in structures[1:]:
        assert_same_structure(structures[0], other)
    leaves = zip(*map(flatten, structures), strict=True)
    found = [None if row[0] is None and not none_is_leaf else func(*row) for row in leaves]
    return pack_sequence_as(structures[0], found)


def map_structure_up_to(shallow_structure: Any, func: Callable[..., Any], *structures: Any) -> Any:
    """The same where `shallow_structure` has its leaves; what lies deeper in the others is given to `func` as it is.

    >>> tf.keras.tree.map_structure_up_to([None, None], len, [[1, 1], [2]])
    [2, 1]
    """
    if not is_nested(shallow_structure):
        return func(*structures)
    known = [_children_like(shallow_structure, structure) for structure in structures]
    parts = [map_structure_up_to(part, func, *[one[key] for one in known]) for key, part in _children(shallow_structure)]
    return _rebuilt(shallow_structure, parts)


def map_shape_structure(func: Callable[[Any], Any], structure: Any) -> Any:
    """A nest of what `func` gives for the shapes in it: tuples or lists of ints and None.

    >>> tf.keras.tree.map_shape_structure(len, {"a": (None, 3), "b": [(2,)]})
    {'a': 2, 'b': [1]}
    """

    def is_shape(part: Any) -> bool:
        return isinstance(part, (list, tuple)) and all(isinstance(size, (int, type(None))) for size in part)

    found = iter([func(leaf) for _, leaf in _walk(structure, is_shape, ())])
    return _packed(structure, found, is_shape)


def pack_sequence_as(structure: Any, flat_sequence: Iterable[Any]) -> Any:
    """A nest of this structure that holds the leaves in their order.

    >>> tf.keras.tree.pack_sequence_as({"b": 0, "a": (0, 0)}, [1, 2, 3])
    {'b': 3, 'a': (1, 2)}
    """
    leaves, expected = list(flat_sequence), len(flatten(structure))
    if len(leaves) != expected:
        raise ValueError(f"tree.pack_sequence_as: the structure has {expected} leaves, {len(leaves)} were given.")
    return _packed(structure, iter(leaves), lambda part: False)


def traverse(func: Callable[[Any], Any], structure: Any, top_down: bool = True) -> Any:
    """A nest whose parts are what `func` gives for them, where that is not None.

    Args:
        func: a function of a part; `MAP_TO_NONE` stands for None.
        structure: a nest.
        top_down: whether a part comes before what is in it, which is left alone if `func` gives something.

    >>> tf.keras.tree.traverse(lambda part: tuple(part) if isinstance(part, list) else None, [1, [2]], top_down=False)
    (1, (2,))
    """
    found = func(structure) if top_down else None
    if found is None:
        parts = [traverse(func, child, top_down) for _, child in _children(structure)] if is_nested(structure) else None
        structure = structure if parts is None else _rebuilt(structure, parts)
        found = None if top_down else func(structure)
    if found is None:
        return structure
    return None if found is MAP_TO_NONE else found


def lists_to_tuples(structure: Any) -> Any:
    """The nest with tuples in the place of lists.

    >>> tf.keras.tree.lists_to_tuples([1, [2, {"a": [3]}]])
    (1, (2, {'a': (3,)}))
    """
    return traverse(lambda part: tuple(part) if isinstance(part, list) else None, structure, top_down=False)


def assert_same_structure(a: TensorLike, b: TensorLike, check_types: Any = None) -> None:
    """Nothing, if both have the same containers in the same places; dicts of any kind may stand for each other. `check_types`
    has no effect.

    Raises:
        ValueError: if they differ.

    >>> tf.keras.tree.assert_same_structure([(0, 1)], [(2, 3)])
    """
    found = _children_like(a, b)
    for key, part in _children(a) if is_nested(a) else ():
        assert_same_structure(part, found[key])


def assert_same_paths(a: TensorLike, b: TensorLike) -> None:
    """Nothing, if the leaves of both are found by the same positions and keys, whatever the containers.

    >>> tf.keras.tree.assert_same_paths([0, 1], (2, 3))
    """
    first, second = ({path for path, _ in flatten_with_path(one)} for one in (a, b))
    if first != second:
        raise ValueError(
            f"`a` and `b` don't have the same paths. Only in `a`: {sorted(first - second, key=repr)}; only in `b`: "
            f"{sorted(second - first, key=repr)}."
        )


def _children(structure: Any) -> list[tuple[Any, Any]]:
    """The parts of a container, each with its position or key."""
    if not isinstance(structure, Mapping):
        return list(enumerate(structure))
    return [(key, structure[key]) for key in (structure if isinstance(structure, OrderedDict) else keys(structure))]


def _rebuilt(structure: Any, parts: Iterable[Any]) -> Any:
    """A container like this one with other parts, given in the order of `_children`."""
    if isinstance(structure, deque):
        return type(structure)(parts, structure.maxlen)
    if isinstance(structure, Mapping):
        parts = dict(zip([key for key, _ in _children(structure)], parts, strict=True))
    return nest.rebuilt(structure, parts)


def _walk(structure: Any, is_leaf: Callable[[Any], bool], path: Path) -> Iterator[tuple[Path, Any]]:
    if not is_nested(structure) or is_leaf(structure):
        yield path, structure
        return
    for key, child in _children(structure):
        yield from _walk(child, is_leaf, (*path, key))


def _packed(structure: Any, leaves: Iterator[Any], is_leaf: Callable[[Any], bool]) -> Any:
    if not is_nested(structure) or is_leaf(structure):
        return next(leaves)
    return _rebuilt(structure, [_packed(child, leaves, is_leaf) for _, child in _children(structure)])


def _children_like(a: TensorLike, b: TensorLike) -> dict[Any, Any]:
    """The parts of `b` by their positions or keys; ValueError if it is another container than `a`, or has others."""
    kinds = [Mapping if isinstance(one, Mapping) else type(one) if is_nested(one) else None for one in (a, b)]
    known = [dict(_children(one)) if is_nested(one) else {} for one in (a, b)]
    if kinds[0] is not kinds[1] or known[0].keys() != known[1].keys():
        raise ValueError(
            f"The two structures don't have the same nested structure. First: {a!r:.200}. Second: {b!r:.200}. Give both the "
            "same containers and keys."
        )
    return known[1]
