"""keras.tree: the examples of Keras's documentation, and nests of every kind."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import minikeras as tf

tree = tf.keras.tree
Point = namedtuple("Point", ["a", "b"])
nests = st.recursive(
    st.none() | st.integers(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=2), inner) | st.builds(Point, inner, inner)
    ),
    max_leaves=12,
)


@given(nests)
def test_what_is_flattened_can_be_packed_again(nest):
    leaves, pairs = tree.flatten(nest), tree.flatten_with_path(nest)
    assert tree.pack_sequence_as(nest, leaves) == nest and [leaf for _, leaf in pairs] == leaves
    assert tree.map_structure(lambda leaf: leaf, nest) == nest and leaves == tf.nest.flatten(nest)
    assert tree.traverse(lambda part: None, nest) == nest == tree.traverse(lambda part: None, nest, top_down=False)
    tree.assert_same_structure(nest, nest)
    tree.assert_same_paths(nest, tree.lists_to_tuples(nest))
    for path, leaf in pairs:
        part = nest
        for key in path:
            part = part[key]
        assert part is leaf


def test_dicts_are_sorted_and_ordered_dicts_keep_their_order():
    assert tree.flatten({100: "world", 6: "hello"}) == ["hello", "world"]
    ordered = OrderedDict([("b", 1), ("a", 2)])
    assert tree.flatten(ordered) == [1, 2] and list(tree.pack_sequence_as(ordered, [3, 4]).items()) == [("b", 3), ("a", 4)]
    packed = tree.pack_sequence_as(defaultdict(list, {"b": 0, "a": 0}), [1, 2])
    assert packed == {"a": 1, "b": 2} and packed["new"] == []
    assert tree.map_structure(lambda v: v * 2, Point(1, 2)) == Point(2, 4)


def test_parts_are_visited_above_or_below_what_is_in_them():
    nest, seen = [(1, 2), [3], {"a": 4}], []
    tree.traverse(seen.append, nest)
    assert seen == [[(1, 2), [3], {"a": 4}], (1, 2), 1, 2, [3], 3, {"a": 4}, 4]
    seen = []
    tree.traverse(seen.append, nest, top_down=False)
    assert seen == [1, 2, (1, 2), 3, [3], 4, {"a": 4}, [(1, 2), [3], {"a": 4}]]
    assert tree.traverse(lambda part: tree.MAP_TO_NONE if part == 2 else None, [1, (2,)]) == [1, (None,)]
    assert tree.traverse(lambda part: "cut" if isinstance(part, tuple) else None, nest) == ["cut", [3], {"a": 4}]


def test_leaves_are_mapped_down_to_a_shallow_nest():
    assert tree.map_structure_up_to([None, [None, None]], str, [[1, 1], [2, 2]]) == ["[1, 1]", ["2", "2"]]
    assert tree.map_structure_up_to([0, 0], lambda a, b: (a, b), [1, [2]], [3, 4]) == [(1, 3), ([2], 4)]
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        tree.map_structure_up_to([[0, 0]], str, [[1]])


def test_none_is_a_leaf_unless_it_is_said_not_to_be():
    assert tree.flatten(None) == [None] and tree.map_structure(lambda v: v is None, [None, 1]) == [True, False]
    assert tree.map_structure(lambda v: v + 1, [None, 1], none_is_leaf=False) == [None, 2]


def test_shapes_are_mapped_whole():
    nest = {"a": (None, 3), "b": [(2,), [4, 5]], "c": ()}
    assert tree.map_shape_structure(tuple, nest) == {"a": (None, 3), "b": [(2,), (4, 5)], "c": ()}


@pytest.mark.parametrize(("a", "b"), [([1], (1,)), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ([1], 1), (Point(1, 2), (1, 2))])
def test_other_structures_are_told_apart(a, b):
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        tree.assert_same_structure(a, b)
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        tree.map_structure(lambda one, other: one, a, b)


def test_other_paths_are_told_apart():
    tree.assert_same_structure({"a": 1}, OrderedDict(a=2), check_types=True)
    with pytest.raises(ValueError, match=r"Only in `a`: \[\(1,\)\]; only in `b`: \[\]"):
        tree.assert_same_paths([1, 2], (1,))


def test_a_wrong_number_of_leaves_or_structures_is_refused():
    with pytest.raises(ValueError, match="has 2 leaves, 1 were given"):
        tree.pack_sequence_as([0, 0], [1])
    with pytest.raises(ValueError, match="at least one structure"):
        tree.map_structure(str)


@pytest.mark.parametrize(
    ("shallow", "deep"), [([None], [1, 2]), ([], [1]), ({"a": 0}, {"a": 1, "b": 2}), ([0], (1,)), ([0], 1)]
)
def test_a_shallow_structure_leaves_out_no_part_of_the_others(shallow, deep):
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        tree.map_structure_up_to(shallow, lambda part: part, deep)


def test_a_deque_is_a_container():
    line = deque([1, [2]], maxlen=3)
    assert tree.is_nested(line) and tree.flatten(line) == [1, 2]
    doubled = tree.map_structure(lambda leaf: 2 * leaf, line)
    assert doubled == deque([2, [4]]) and doubled.maxlen == 3
    with pytest.raises(ValueError, match="don't have the same nested structure"):
        tree.assert_same_structure(line, [1, [2]])
