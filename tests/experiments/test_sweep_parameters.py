"""Parameters as files hold them come back as they were, and groups hold each run once."""

import math

from hypothesis import given
from hypothesis import strategies as st

from minikeras.experiments.grid import combinations, decoded, encoded
from minikeras.experiments.structure import groups_of
from minikeras.files import strict_json

plain = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(st.characters(codec="utf-8"))
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values)
def test_plain_values_come_back_from_a_file_as_they_were(value):
    written = strict_json.dumps_in_order({"x": encoded(value)})
    assert repr(decoded(strict_json.loads(written, "a file")["x"])) == repr(value)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.just(3)), min_size=1, max_size=40), st.integers(1, 9))
def test_groups_hold_each_run_once_and_runs_of_one_kind(kinds, most):
    groups = groups_of([kind for kind, _ in kinds], [most] * len(kinds))
    assert sorted(number for group in groups for number in group) == list(range(len(kinds)))
    assert all(len(group) <= most and len({kinds[number][0] for number in group}) == 1 for group in groups)
    sizes = {kind: [len(group) for group in groups if kinds[group[0]][0] == kind] for kind, _ in kinds}
    assert all(len(found) == -(-sum(found) // most) for found in sizes.values()), "as few groups as there can be"


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(), min_size=1, max_size=4, unique=True), min_size=1))
def test_a_grid_holds_every_combination_once(grid):
    found = combinations(grid)
    assert len(found) == math.prod(map(len, grid.values())) == len({tuple(one.items()) for one in found})
    assert all(one[name] in grid[name] for one in found for name in grid)
