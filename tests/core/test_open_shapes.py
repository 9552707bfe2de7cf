"""Shapes that leave sizes open: of TensorShape, and of Variables whose values may have several shapes. Name scopes."""

import copy
import pickle

import pytest

import minikeras as tf

S = tf.TensorShape
anything = S(None)


def test_a_shape_may_leave_sizes_open_or_all():
    assert (anything.rank, anything.ndims, anything.dims, anything.num_elements()) == (None, None, None, None)
    assert repr(anything) == "TensorShape(None)" and str(anything) == "<unknown>" and not anything
    assert S([None, 2]).as_list() == [None, 2] and S(3) == [3] and S([2, 3]).num_elements() == 6
    assert S([None]) == S([None]) and anything == S(None) == S(anything) and anything != S([None])
    assert pickle.loads(pickle.dumps(anything)) == copy.deepcopy(anything) == anything
    assert pickle.loads(pickle.dumps(S([None, 2]))) == [None, 2]
    for refused in (len, list, S.as_list):
        with pytest.raises(ValueError, match="not known"):
            refused(anything)


def test_shapes_are_compared_and_merged():
    a, b = S([None, 2]), S([3, None])
    assert a.is_compatible_with(b) and a.is_compatible_with(anything) and not a.is_compatible_with([1, 3])
    assert a.merge_with(b) == [3, 2] == anything.merge_with([3, 2]) == S([3, 2]).merge_with(None)
    assert a.most_specific_compatible_shape([4, 2]) == a and a.most_specific_compatible_shape([2]) == anything
    assert (
        S([3, 2]).is_subtype_of(a) and not a.is_subtype_of([3, 2]) and a.is_subtype_of(None) and not anything.is_subtype_of(a)
    )
    five = S([5])
    assert a.concatenate(five) == [None, 2, 5] == a + five and five + a == [5, None, 2] and a + anything == anything
    assert anything.with_rank(2) == [None, None] and a.with_rank_at_least(2) is a and a.with_rank_at_most(3) is a
    assert not a.is_fully_defined() and not anything.is_fully_defined() and S([]).is_fully_defined()
    a.assert_has_rank(2)
    a.assert_same_rank(b)
    S([1]).assert_is_fully_defined()
    for wrong in (
        lambda: a.merge_with([3, 3]),
        lambda: a.with_rank(3),
        lambda: a.with_rank_at_least(3),
        lambda: a.with_rank_at_most(1),
        lambda: a.assert_has_rank(1),
        lambda: a.assert_same_rank([1]),
        lambda: a.assert_is_fully_defined(),
        lambda: a.assert_is_compatible_with([1]),
    ):
        with pytest.raises(ValueError, match="Shape"):
            wrong()


@pytest.mark.parametrize("shape", [[None], S([None]), S(None)])
def test_a_variable_may_hold_values_of_several_shapes(shape):
    v = tf.Variable([1.0, 2.0], shape=shape)
    v.assign([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v * v)
    assert tape.gradient(y, v).numpy().tolist() == [2, 4, 6]
    again = pickle.loads(pickle.dumps(v))
    again.assign([5.0])
    assert copy.deepcopy(v).assign([5.0]).shape == again.shape == (1,) and v.shape == (3,)
    with pytest.raises(ValueError, match="Shape mismatch"):
        tf.Variable([1.0], shape=[None]).assign([[1.0]])
    with pytest.raises(ValueError, match="is not the given shape"):
        tf.Variable([[1.0]], shape=[None])


def test_a_function_that_uses_such_a_variable_follows_its_shape():
    v = tf.Variable([1.0, 2.0], shape=[None])
    total = tf.function(lambda: tf.reduce_sum(v))
    append = tf.function(lambda x: v.assign(tf.concat([v, [x]], 0)))
    values = []
    for x in (3.0, 4.0, 5.0):
        values.append(float(total()))
        append(tf.constant(x))
    assert values == [3.0, 6.0, 10.0] and v.shape == (5,)


def test_rows_of_a_variable_are_changed_in_all_of_tensorflows_ways():
    def changed(method, *arguments):
        v = tf.Variable([1.0, 2.0, 3.0])
        assert getattr(v, method)(*arguments) is v
        return v.numpy().tolist()

    slices = tf.IndexedSlices(tf.constant([4.0, 0.5]), tf.constant([0, 1]))
    assert changed("scatter_sub", slices) == [-3, 1.5, 3]
    assert changed("scatter_mul", slices) == [4, 1, 3]
    assert changed("scatter_div", slices) == [0.25, 4, 3]
    assert changed("scatter_max", slices) == [4, 2, 3]
    assert changed("scatter_min", slices) == [1, 0.5, 3]
    assert changed("scatter_nd_add", [[2], [2]], [1.0, 1.0]) == [1, 2, 5]
    assert changed("scatter_nd_sub", [[2], [2]], [1.0, 1.0]) == [1, 2, 1]
    assert changed("scatter_nd_max", [[0], [1]], [4.0, 0.5]) == [4, 2, 3]
    assert changed("scatter_nd_min", [[0], [1]], [4.0, 0.5]) == [1, 0.5, 3]
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    assert v.gather_nd([[1, 0]]).numpy().tolist() == [3] and v.sparse_read([1, 1]).numpy().tolist() == [[3, 4]] * 2


def test_names_of_variables_begin_with_the_scopes_around_them():
    with tf.name_scope("a") as scope, tf.name_scope("b"):
        v = tf.Variable(1.0, name="v")
        with tf.name_scope("c/"):
            w = tf.Variable(1.0)
    assert (scope, v.name, w.name, tf.Variable(1.0, name="v").name) == ("a/", "a/b/v:0", "c/Variable:0", "v:0")
    with pytest.raises(ValueError, match="must be a string"):
        tf.name_scope(1)


def test_names_in_keras_do_not_change_in_a_scope():
    with tf.name_scope("a"):
        layer = tf.keras.layers.Dense(2, name="d")
        layer.build((None, 3))
    assert [weight.path for weight in layer.weights] == ["d/kernel", "d/bias"]
