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


def test_dicts_keep_the_order_of_their_keys():
    assert nest.flatten({"z": 1, "a": 2}) == [1, 2]
    assert list(nest.pack({"z": 0, "a": 0}, [1, 2])) == ["z", "a"]


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
    with pytest.raises(ValueError, match=r"the nests have \[2, 1\] leaves"):
        nest.map_structure(max, [1, 2], [1])


@pytest.mark.parametrize(
    ("structure", "other"),
    [([0, 0], [1]), ([0], 1), ({"a": 0}, {"b": 1}), ({"a": 0}, [1]), ([0], {"a": 1}), ([[0]], [1])],
)
def test_flattening_up_to_another_structure_is_refused(structure, other):
    with pytest.raises(ValueError, match=r"flatten_up_to: .* is not nested like"):
        nest.flatten_up_to(structure, other)
