"""Modules find what they hold by walking their attributes (T95)."""

import gc

import pytest

import minikeras as tf
from minikeras.module import snake_case


class Line(tf.Module):
    def __init__(self, name=None):
        super().__init__(name)
        self.slope = tf.Variable(2.0, name="slope")
        self.offset = tf.Variable(1.0, name="offset", trainable=False)

    def __call__(self, x):
        return self.slope * x + self.offset


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.first = Line("first")
        self.blocks = [Line("a"), (Line("b"),)]
        self.by_name = {"scale": tf.Variable(3.0), "more": [tf.Variable(4.0)]}
        self._hidden = Line("hidden")
        self.number, self.words = 5, ["text", 7]


def test_variables_are_found_in_attributes_lists_dicts_and_submodules_in_tensorflows_order():
    net = Net()
    assert [path for path, _ in net.named_variables()] == [
        *("by_name.more.0", "by_name.scale", "hidden.offset", "hidden.slope", "blocks.0.offset", "blocks.0.slope"),
        *("blocks.1.0.offset", "blocks.1.0.slope", "first.offset", "first.slope"),
    ]
    assert [v.ref() for v in net.variables] == [v.ref() for _, v in net.named_variables()]
    assert isinstance(net.variables, tuple)


def test_trainable_and_other_variables_are_told_apart():
    line = Line()
    assert line.trainable_variables == (line.slope,) and line.non_trainable_variables == (line.offset,)
    line.offset.trainable = True
    assert line.trainable_variables == (line.offset, line.slope) and line.non_trainable_variables == ()


def test_submodules_are_found_once_and_without_the_module_itself():
    net = Net()
    net.again = net.first
    net.back = net
    assert [module.name for module in net.submodules] == ["hidden", "first", "a", "b"]
    assert len(net.variables) == 10
    del net.back


def test_what_a_module_holds_itself_comes_before_what_its_submodules_hold():
    outer, inner, last = tf.Module("outer"), tf.Module("inner"), tf.Module("last")
    outer.a, inner.deep, inner.x, outer.last = inner, tf.Module("deep"), tf.Variable(1.0), last
    inner.deep.y, outer.b, outer.Z = tf.Variable(2.0), tf.Variable(3.0), tf.Variable(4.0)
    assert [path for path, _ in outer.named_variables()] == ["Z", "b", "a.x", "a.deep.y"]
    assert [module.name for module in outer.submodules] == ["inner", "last", "deep"]


def test_a_variable_that_is_shared_is_found_once_under_its_first_path():
    module = tf.Module()
    module.a = tf.Variable(1.0)
    module.b = [module.a]
    assert [path for path, _ in module.named_variables()] == ["a"]


def test_containers_that_hold_themselves_end_the_walk():
    module = tf.Module()
    module.loop = [tf.Variable(1.0)]
    module.loop.append(module.loop)
    module.table = {"loop": module.loop, "v": tf.Variable(2.0)}
    module.table["self"] = module.table
    assert [path for path, _ in module.named_variables()] == ["loop.0", "table.v"]
    module.loop.clear()
    module.table.clear()


def test_attributes_set_later_are_found_and_deleted_ones_are_not():
    line = Line()
    line.more = tf.Variable(5.0)
    assert len(line.variables) == 3
    del line.more
    assert len(line.variables) == 2


def test_a_class_may_name_attributes_that_are_no_parts_of_it():
    class Child(tf.Module):
        _not_walked = ("parent",)

    class Grandchild(Child):
        _not_walked = ("friend",)

    child = Grandchild()
    child.parent, child.friend, child.own = Line(), Line(), tf.Variable(1.0)
    assert [path for path, _ in child.named_variables()] == ["own"]


def test_a_module_has_a_name_of_its_own_or_that_of_its_class():
    assert Line().name == "line" and Line("other").name == "other"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Dense", "dense"),
        ("MyBlock2D", "my_block2d"),
        ("BatchNormalization", "batch_normalization"),
        ("ReLU", "re_lu"),
        ("_P", "private_p"),
    ],
)
def test_class_names_turn_into_snake_case_as_in_keras(name, expected):
    assert snake_case(name) == expected


def test_gradients_are_asked_for_all_variables_at_once():
    line = Line()
    with tf.GradientTape() as tape:
        y = line(3.0)
    assert [g.numpy() for g in tape.gradient(y, line.trainable_variables)] == [3.0]


def test_walking_leaves_no_reference_cycles():
    net = Net()
    gc.collect()
    net.named_variables()
    assert gc.collect() == 0
