"""Nested structures are taken apart and put together again without mixing anything up."""

import collections

import pytest
from hypothesis import given
from hypothesis import strategies as draw

from minikeras import TensorShape, nest

Pair = collections.namedtuple("Pair", ["first", "second"])

leaves = draw.one_of(draw.none(), draw.integers(), draw.text(max_size=3), draw.just(TensorShape([1, 2])))
structures = draw.recursive(
    leaves,
    lambda inner: draw.one_of(
        draw.lists(inner, max_size=3),
        draw.tuples(inner, inner),
        draw.builds(Pair, inner, inner),
        draw.dictionaries(draw.text(max_size=2), inner, max_size=3),
        draw.dictionaries(draw.text(max_size=2), inner, max_size=3).map(collections.OrderedDict),
        draw.dictionaries(draw.text(max_size=2), inner, max_size=3).map(lambda pairs: collections.defaultdict(list, pairs)),
    ),
    max_leaves=12,
)


@given(structures)
def test_packing_what_was_flattened_gives_the_same_structure(structure):
    packed = nest.pack(structure, nest.flatten(structure))
    assert packed == structure and type(packed) is type(structure)
    assert repr(packed) == repr(structure), "the order of keys or a type within has changed"


@given(structures)
def test_flattening_up_to_the_same_structure_is_flattening(structure):
    found = nest.flatten_up_to(structure, structure)
    assert len(found) == len(nest.flatten(structure))
    assert all(one is other for one, other in zip(found, nest.flatten(structure), strict=True))


@given(structures)
def test_mapping_numbers_the_leaves_in_order(structure):
    counter = iter(range(1000))
    numbered = nest.map_structure(lambda leaf: next(counter), structure)
    assert nest.flatten(numbered) == list(range(len(nest.flatten(structure))))
    doubled = nest.map_structure(lambda a, b: (a, b) and a + b, numbered, numbered)
    assert nest.flatten(doubled) == [2 * n for n in nest.flatten(numbered)]


def test_dicts_are_visited_by_their_sorted_keys_and_keep_their_own_order():
    assert nest.flatten({"z": 1, "a": 2}) == [2, 1]
    assert nest.flatten(collections.OrderedDict(z=1, a={"c": 3, "b": 2})) == [2, 3, 1]
    assert nest.flatten_up_to({"z": 0, "a": 0}, {"z": [1], "a": 2}) == [2, [1]]
    packed = nest.pack({"z": 0, "a": 0}, [1, 2])
    assert packed == {"z": 2, "a": 1} and list(packed) == ["z", "a"]


def test_keys_of_several_types_are_sorted_by_type_and_others_are_refused():
    assert nest.flatten({"b": 1, 2: 2, "a": 3, 1: 4}) == [4, 2, 3, 1]
    with pytest.raises(TypeError, match="cannot be sorted"):
        nest.flatten({object(): 1, object(): 2})


@given(structures, draw.randoms())
def test_pairing_does_not_depend_on_the_order_in_which_dicts_were_filled(structure, random):
    other = shuffled(structure, random)
    assert all(one is other for one, other in nest.pair(structure, other))
    mapped = nest.map_structure(lambda one, other: one, structure, other)
    assert repr(mapped) == repr(structure)


def shuffled(structure, random):
    """The same structure whose dicts were filled in another order."""
    if isinstance(structure, dict):
        pairs = [(key, shuffled(value, random)) for key, value in structure.items()]
        random.shuffle(pairs)
        return dict(pairs)
    if isinstance(structure, Pair):
        return Pair(*(shuffled(one, random) for one in structure))
    if isinstance(structure, (list, tuple)) and nest.is_nested(structure):
        return type(structure)(shuffled(one, random) for one in structure)
    return structure


Other = collections.namedtuple("Other", ["first", "second"])


@pytest.mark.parametrize(
    ("first", "second", "error", "found"),
    [
        ([1, 2], [1, 2, 3], ValueError, "the first has 2 elements, the second 3"),
        ([1, 2], (1, 2), TypeError, "the first is a list, the second a tuple"),
        (Pair(1, 2), (1, 2), TypeError, "the first is a Pair, the second a tuple"),
        (Pair(1, 2), Other(1, 2), TypeError, "the first is a Pair, the second a Other"),
        ({"a": 1}, [1], TypeError, "the first is a dict, the second a list"),
        ({"a": 1}, {"b": 1}, ValueError, r"keys \['a'\], the second \['b'\]"),
        ({"a": 1}, {"a": 1, "b": 2}, ValueError, r"keys \['a'\], the second \['a', 'b'\]"),
        ({"a": [1]}, {"a": 1}, ValueError, r"at \['a'\]: one is a container, the other is a leaf"),
        ([[1], 2], [1, [2]], ValueError, r"at \[0\]: one is a container"),
        (1, [1], ValueError, "one is a container, the other is a leaf"),
    ],
)
def test_nests_that_differ_are_refused_with_the_place(first, second, error, found):
    for refused in (nest.map_structure, lambda function, *nests: nest.assert_same_structure(*nests)):
        with pytest.raises(error, match=f"same nested structure.*{found}.*") as raised:
            refused(max, first, second)
        assert "Give both" in str(raised.value)


def test_types_of_lists_are_not_compared_if_so_asked():
    assert nest.map_structure(max, [1, 5], (4, 2), check_types=False) == [4, 5]
    assert nest.map_structure(max, {"a": 1}, collections.OrderedDict(a=2)) == {"a": 2}
    nest.assert_same_structure(Pair(1, [2]), Other(3, (4,)), check_types=False)


def test_the_factory_of_a_default_dict_is_kept():
    packed = nest.pack(collections.defaultdict(list, a=0), [1])
    assert packed == {"a": 1} and packed["new"] == []


@pytest.mark.parametrize("leaf", ["text", b"bytes", None, 3, TensorShape([1, 2]), {1, 2}, range(3)])
def test_what_is_no_list_tuple_or_mapping_is_a_leaf(leaf):
    assert not nest.is_nested(leaf) and nest.flatten(leaf) == [leaf]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_packing_needs_as_many_leaves_as_the_structure_has(count):
    with pytest.raises(ValueError, match=f"pack: the structure has 2 leaves, {count} were given"):
        nest.pack([0, {"a": 0}], [7] * count)


def test_mapping_needs_structures_of_one_size():
    with pytest.raises(ValueError, match="the first has 2 elements, the second 1"):
        nest.map_structure(max, [1, 2], [1])


@pytest.mark.parametrize(
    ("structure", "other"),
    [([0, 0], [1]), ([0], 1), ({"a": 0}, {"b": 1}), ({"a": 0}, [1]), ([0], {"a": 1}), ([[0]], [1])],
)
def test_flattening_up_to_another_structure_is_refused(structure, other):
    with pytest.raises(ValueError, match=r"flatten_up_to: .* is not nested like"):
        nest.flatten_up_to(structure, other)


@pytest.mark.parametrize("view", [{"b": 1, "a": [2, 3]}.values(), {1: 0, 2: 0}.keys(), {"a": 1}.items(), {}.values()])
def test_a_view_of_a_dict_is_visited_as_a_list_and_packed_as_one(view):
    assert nest.is_nested(view)
    assert nest.flatten(view) == nest.flatten(list(view))
    assert nest.map_structure(lambda leaf: leaf, view) == list(view)
    assert nest.map_structure(lambda first, second: first, view, list(view)) == list(view)
    assert nest.map_structure(lambda first, second: first, list(view), view) == list(view)
    nest.assert_same_structure(view, list(view))
