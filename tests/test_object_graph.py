"""The walk over what objects hold, which Modules, layers, checkpoints and files share."""

import minikeras as tf
from minikeras.module import attributes, elements, walk


def paths(*roots, children=elements, **options):
    return [(path, first) for path, _, first in walk(*roots, children=children, separator="/", **options)]


def test_depth_first_goes_into_each_child_before_the_next_and_breadth_first_level_by_level():
    tree = {"a": ["x"], "b": "y"}
    assert paths(("", tree)) == [("", None), ("a", None), ("a/0", None), ("b", None)]
    assert paths(("", tree), breadth_first=True) == [("", None), ("a", None), ("b", None), ("a/0", None)]


def test_what_was_met_before_is_told_with_its_first_path_and_not_followed():
    shared: list[object] = ["x"]
    shared.append(shared)
    met = paths(("r", [shared, shared]))
    assert met == [("r", None), ("r/0", None), ("r/0/0", None), ("r/0/1", "r/0"), ("r/1", "r/0")]


def test_lists_made_on_the_way_are_not_taken_for_one_another():
    def fresh(value):
        return [("parts", [f"part of {value}"])] if isinstance(value, int) else elements(value)

    met = paths(("", [1, 2, 3]), children=fresh)
    assert len(met) == 10 and all(first is None for _, first in met)


def test_attributes_leave_out_what_a_class_names_unless_it_is_asked_for():
    class Child(tf.Module):
        _not_walked = ("parent",)

    child = Child("c")
    child.parent, child.own = 1, 2
    assert dict(attributes(child)) == {"_name": "c", "own": 2}
    assert dict(attributes(child, also=("parent",))) == {"_name": "c", "parent": 1, "own": 2}
