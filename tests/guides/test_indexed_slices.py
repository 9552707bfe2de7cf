"""Gradients of look-ups: rows and where they belong, as long as nothing needs the whole."""

import numpy as np
import pytest

import minikeras as tf

TABLE = np.arange(6.0, dtype="float32").reshape(3, 2)


def gradient(function, table=None, **options):
    """The gradient of a function of a table, and the whole of it."""
    table = tf.Variable(TABLE) if table is None else table
    with tf.GradientTape() as tape:
        tape.watch(table)
        y = function(table)
    found = tape.gradient(y, table, **options)
    return found, tf.convert_to_tensor(found).numpy()


def looked_up(*indices, axis=0, size=3):
    """The gradient of the sum of the rows at some indices."""
    whole = np.zeros((size, 2), "float32")
    np.add.at(whole, np.array(indices, int), 1)
    return whole


@pytest.mark.parametrize("look_up", [tf.gather, tf.nn.embedding_lookup], ids=["gather", "embedding_lookup"])
@pytest.mark.parametrize("watched", ["variable", "tensor"])
def test_a_look_up_has_slices_as_its_gradient(look_up, watched):
    """T97, T98: one for each index, also for one that occurs twice; the indices are raveled."""
    table = tf.Variable(TABLE) if watched == "variable" else tf.constant(TABLE)
    found, whole = gradient(lambda x: look_up(x, [[0, 2], [0, 0]]) ** 2, table)
    assert type(found) is tf.IndexedSlices
    assert found.indices.numpy().tolist() == [0, 2, 0, 0] and found.indices.dtype == tf.int32
    assert found.values.numpy().tolist() == [[0.0, 2.0], [8.0, 10.0], [0.0, 2.0], [0.0, 2.0]]
    assert found.dense_shape.numpy().tolist() == [3, 2] == found.shape and found.dtype == tf.float32
    assert isinstance(found.shape, tf.TensorShape)
    np.testing.assert_array_equal(whole, [[0.0, 6.0], [0.0, 0.0], [8.0, 10.0]])


def test_a_single_index_gives_a_single_slice():
    """T97."""
    found, whole = gradient(lambda x: tf.gather(x, 1), tf.constant([1.0, 2.0]))
    assert found.indices.numpy().tolist() == [1] and found.values.numpy().tolist() == [1.0]
    assert whole.tolist() == [0.0, 1.0]


def test_no_index_gives_no_slice():
    """T97, T116."""
    found, whole = gradient(lambda x: tf.gather(x, np.zeros(0, "int32")))
    assert found.values.shape == (0, 2) and not whole.any()


def test_several_look_ups_are_joined_in_their_order():
    """T97."""
    found, whole = gradient(lambda x: [tf.gather(x, [0, 1]), tf.gather(x, [2]) * 5.0])
    assert found.indices.numpy().tolist() == [0, 1, 2]
    assert whole.tolist() == [[1.0, 1.0], [1.0, 1.0], [5.0, 5.0]]


@pytest.mark.parametrize("order", ["dense first", "dense last"])
def test_one_use_of_the_whole_makes_the_gradient_whole(order):
    """T97."""

    def function(x):
        parts = [lambda: tf.gather(x, [0, 0]), lambda: x * 3.0]
        return [part() for part in (parts if order == "dense last" else parts[::-1])]

    found, whole = gradient(function)
    assert type(found) is tf.Tensor
    np.testing.assert_array_equal(whole, looked_up(0, 0) + 3.0)


DENSE = {
    "another axis": lambda x: tf.gather(x, [0], axis=1),
    "rows with indices of their own": lambda x: tf.gather(x, [[0], [1], [1]], batch_dims=1),
    "gather_nd": lambda x: tf.gather_nd(x, [[1]]),
    "boolean_mask": lambda x: tf.boolean_mask(x, [True, False, True]),
    "an index": lambda x: x[1],
    "a repetition": lambda x: tf.repeat(x, 2, axis=0),
    "a gather of what was computed": lambda x: tf.gather(x * 2.0, [1]),
}


@pytest.mark.parametrize("use", DENSE.values(), ids=DENSE)
def test_other_ways_to_read_have_a_whole_gradient(use):
    """T97."""
    assert type(gradient(use)[0]) is tf.Tensor


def test_an_intermediate_table_gets_slices_and_what_lies_before_it_the_whole():
    """T39, T97."""
    x = tf.constant(TABLE)
    with tf.GradientTape() as tape:
        tape.watch(x)
        table = x * 2.0
        y = tf.gather(table, [1, 1])
    first, second = tape.gradient(y, [x, table])
    assert type(first) is tf.Tensor and type(second) is tf.IndexedSlices
    np.testing.assert_array_equal(first.numpy(), 2 * looked_up(1, 1))


def test_parts_of_a_split_are_looked_up_in():
    """T97: an operation with several results takes slices for one of them."""
    _, whole = gradient(lambda x: tf.gather(tf.split(x, 3, axis=0)[1], [0, 0]))
    np.testing.assert_array_equal(whole, looked_up(1, 1))


def test_slices_in_arithmetic():
    """T98: negated they stay slices; beside a tensor they become whole, and there is no product with a number."""
    found, whole = gradient(lambda x: tf.gather(x, [2, 2, 0]))
    assert type(-found) is tf.IndexedSlices
    np.testing.assert_array_equal(tf.convert_to_tensor(-found).numpy(), -whole)
    other = tf.constant(TABLE)
    for result in (found + other, other + found):
        assert type(result) is tf.Tensor
        np.testing.assert_array_equal(result.numpy(), whole + TABLE)
    np.testing.assert_array_equal((other - found).numpy(), TABLE - whole)
    assert tf.reduce_sum(found).numpy() == 6.0
    assert tf.add_n([found, found]).numpy().tolist() == (2 * whole).tolist()
    np.testing.assert_array_equal(tf.convert_to_tensor(found + found).numpy(), 2 * whole)
    for product in (lambda: found * 2.0, lambda: 2.0 * found, lambda: found / 2.0):
        with pytest.raises(TypeError):
            product()


def test_slices_are_clipped_by_the_norm_of_the_whole():
    """T123, T98: duplicates are added up first, so the norm is that of the gradient."""
    found, whole = gradient(lambda x: tf.gather(x, [2, 2, 0]))
    (clipped,), norm = tf.clip_by_global_norm([found], 1.0)
    assert norm.numpy() == pytest.approx(np.linalg.norm(whole))
    np.testing.assert_allclose(tf.convert_to_tensor(clipped).numpy(), whole / np.linalg.norm(whole), rtol=1e-6)


def test_slices_made_by_hand():
    """T98, T93: for scatter_update they need no shape; to become whole they do."""
    slices = tf.IndexedSlices([[7.0, 8.0]], [1])
    assert slices.dense_shape is None and slices.dtype == tf.float32
    with pytest.raises(ValueError, match="without dense_shape"):
        tf.convert_to_tensor(slices)
    variable = tf.Variable(TABLE)
    variable.scatter_update(slices)
    assert variable.numpy()[1].tolist() == [7.0, 8.0]
    whole = tf.convert_to_tensor(tf.IndexedSlices(tf.constant([1.0, 2.0]), tf.constant([2, 2]), tf.constant([4])))
    assert whole.numpy().tolist() == [0.0, 0.0, 3.0, 0.0]
    assert "indices=" in repr(slices) and "dense_shape=None" in repr(slices)


def test_slices_can_be_assigned_and_be_seeds():
    """T42, T87: a gradient may be collected in a Variable, and one gradient be the seed of another."""
    found, whole = gradient(lambda x: tf.gather(x, [2, 2]))
    total = tf.Variable(np.zeros_like(TABLE))
    total.assign_add(found)
    total.assign_add(found)
    np.testing.assert_array_equal(total.numpy(), 2 * whole)
    seeded, _ = gradient(lambda x: x * 3.0, output_gradients=found)
    np.testing.assert_array_equal(seeded.numpy(), 3 * whole)


def test_what_is_recorded_computes_with_the_whole():
    """T61, T54: under another tape, in a Jacobian, in forward mode and over stacks the gradient is a Tensor."""
    x = tf.Variable(TABLE)

    def cubes():
        return tf.reduce_sum(tf.gather(x, [0, 2, 2]) ** 3)

    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = cubes()
        first = inner.gradient(y, x)
    assert type(first) is tf.Tensor
    counts = np.array([[1.0], [0.0], [2.0]], "float32")
    np.testing.assert_allclose(outer.jacobian(first, x).numpy().reshape(6, 6), np.diag((6 * counts * TABLE).ravel()))
    with tf.GradientTape() as tape:
        y = tf.gather(x, [1, 1])
    jacobian = tape.jacobian(y, x)
    assert type(jacobian) is tf.Tensor and jacobian.shape == (2, 2, 3, 2)
    ones = tf.ones_like(x)
    with tf.autodiff.ForwardAccumulator(x, ones) as accumulator:
        with tf.GradientTape() as tape:
            y = cubes()
        first = tape.gradient(y, x)
    np.testing.assert_allclose(accumulator.jvp(first).numpy(), 6 * counts * TABLE)
    rows = tf.autodiff.per_example_gradients(lambda i: tf.reduce_sum(tf.gather(x, i)), [x], tf.constant([0, 2]))[0]
    np.testing.assert_array_equal(rows.numpy(), [looked_up(0), looked_up(2)])


def test_products_with_the_hessian_of_a_look_up():
    """T61: the helpers give whole results, forward over reverse and reverse over reverse."""
    x = tf.Variable(TABLE)
    loss = lambda: tf.reduce_sum(tf.gather(x, [0, 2, 2]) ** 3)
    vector = tf.constant(np.ones(6, "float32"))
    expected = (6 * np.array([[1.0], [0.0], [2.0]]) * TABLE).ravel()
    np.testing.assert_allclose(tf.autodiff.hvp(loss, [x], vector).numpy(), expected)
    np.testing.assert_allclose(np.diag(tf.autodiff.hessian(loss, [x]).numpy()), expected)
    np.testing.assert_allclose(tf.autodiff.vjp(loss, x, 1.0).numpy(), 3 * np.array([[1.0], [0.0], [2.0]]) * TABLE**2)


def test_an_optimizer_adds_up_what_occurs_twice():
    """T98."""
    table = tf.Variable(TABLE)
    found, whole = gradient(lambda x: tf.gather(x, [2, 2, 0]), table)
    tf.keras.optimizers.SGD(0.5).apply_gradients([(found, table)])
    np.testing.assert_array_equal(table.numpy(), TABLE - 0.5 * whole)


def test_a_row_that_is_not_there_is_refused():
    """T98: by index and size."""
    for index in (3, -1):
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"indices = {index} is not in \[0, 3\)"):
            tf.gather(tf.constant(TABLE), [0, index])
