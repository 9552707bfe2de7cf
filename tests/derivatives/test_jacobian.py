"""jacobian and batch_jacobian: shapes, what is not connected, using up the tape, and errors."""

import numpy as np
import pytest
from derivatives.problems import watched

import minikeras as tf

# jacobian -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function,source,shape",
    [
        (lambda x: tf.sigmoid(tf.linspace(-10.0, 10.0, 201) + x), 0.0, (201,)),
        (lambda x: tf.ones((7, 5)) @ x, np.ones((5, 10), "float32"), (7, 10, 5, 10)),
        (lambda x: x * x, 3.0, ()),
        (lambda x: tf.reduce_sum(x), np.ones((2, 3), "float32"), (2, 3)),
        (lambda x: x[:0], np.ones(4, "float32"), (0, 4)),
        (lambda x: tf.reduce_sum(x) * tf.ones(2), np.ones((0, 3), "float32"), (2, 0, 3)),
    ],
    ids=["vector by scalar", "matrix by matrix", "scalar by scalar", "scalar by matrix", "empty target", "empty source"],
)
def test_the_shape_is_that_of_the_target_followed_by_that_of_the_source(function, source, shape):
    """T55, T56."""
    tape, (x,), y = watched(function, source)
    assert tape.jacobian(y, x).shape == shape


def test_the_values_are_the_derivatives():
    """T55: y = A x has the Jacobian A."""
    a = np.arange(6.0).reshape(2, 3)
    tape, (x,), y = watched(lambda x: tf.linalg.matvec(tf.constant(a), x), np.ones(3))
    np.testing.assert_array_equal(tape.jacobian(y, x).numpy(), a)


def test_sources_may_be_nested():
    """T55: the result has the structure of the sources."""
    x, y = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = x * y
    found = tape.jacobian(z, {"x": x, "rest": [y, (x,)]})
    assert list(found) == ["x", "rest"] and isinstance(found["rest"][1], tuple)
    np.testing.assert_array_equal(found["x"].numpy(), [[3.0, 0.0], [0.0, 3.0]])
    np.testing.assert_array_equal(found["rest"][0].numpy(), [1.0, 2.0])


def test_an_unconnected_source_gives_none_or_zeros():
    """T56."""
    tape, (x, other), y = watched(lambda x, other: x * x, [1.0, 2.0], [[1.0]], persistent=True)
    assert tape.jacobian(y, [x, other])[1] is None
    zeros = tape.jacobian(y, [x, other], unconnected_gradients="zero")[1]
    assert zeros.shape == (2, 1, 1) and not zeros.numpy().any()
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'nonsense'"):
        tape.jacobian(y, x, unconnected_gradients="nonsense")


def test_an_integer_target_gives_none():
    """T56."""
    tape, (x,), y = watched(lambda x: tf.cast(x, "int32"), [1.0, 2.0])
    assert tape.jacobian(y, x) is None


def test_the_jacobian_of_a_source_in_itself_is_the_identity():
    """T56."""
    tape, (x,), _ = watched(lambda x: x * x, [[1.0, 2.0]])
    np.testing.assert_array_equal(tape.jacobian(x, x).numpy().reshape(2, 2), np.eye(2))


@pytest.mark.parametrize("method", ["jacobian", "batch_jacobian"])
def test_it_uses_up_a_tape_that_is_not_persistent(method):
    """T57, T66."""
    tape, (x,), y = watched(lambda x: x * x, [[1.0], [2.0]])
    getattr(tape, method)(y, x)
    for again in (tape.gradient, tape.jacobian, tape.batch_jacobian):
        with pytest.raises(RuntimeError, match="can only be used to compute one set of gradients"):
            again(y, x)


def test_a_persistent_tape_within_its_context_records_its_jacobian():
    """T57: the Jacobian of a Jacobian, by one tape; the second derivatives of x**3."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        first = tape.jacobian(x**3, x)
    second = tape.jacobian(first, x).numpy()
    assert second.shape == (2, 2, 2)
    assert second[0, 0, 0] == 6.0 and second[1, 1, 1] == 12.0 and np.count_nonzero(second) == 2


@pytest.mark.parametrize("method", ["jacobian", "batch_jacobian"])
def test_sweeping_once_for_each_row_needs_a_persistent_tape_and_gives_the_same(method):
    """T58, T66."""
    function = lambda x: tf.tanh(x @ tf.constant([[1.0, 2.0], [3.0, -1.0]])) * x
    tape, (x,), y = watched(function, np.array([[0.1, 0.2], [0.3, -0.4]], "float32"))
    with pytest.raises(RuntimeError, match="must be created with persistent=True .*experimental_use_pfor set to False"):
        getattr(tape, method)(y, x, experimental_use_pfor=False)
    tape, (x,), y = watched(function, np.array([[0.1, 0.2], [0.3, -0.4]], "float32"), persistent=True)
    looped = getattr(tape, method)(y, x, experimental_use_pfor=False)
    for options in ({}, {"parallel_iterations": 1}, {"chunk_size": 1}, {"chunk_size": 3}):
        np.testing.assert_allclose(getattr(tape, method)(y, x, **options).numpy(), looped.numpy(), rtol=1e-6)


@pytest.mark.parametrize("vectorized", [True, False])
def test_an_empty_target_has_an_empty_jacobian(vectorized):
    tape, (x,), y = watched(lambda x: (x * x)[:, :0], np.ones((2, 3), "float32"), persistent=True)
    assert tape.jacobian(y, x, experimental_use_pfor=vectorized).shape == (2, 0, 2, 3)
    assert tape.batch_jacobian(y, x, experimental_use_pfor=vectorized).shape == (2, 0, 3)
    unconnected = tf.zeros([0])
    assert tape.jacobian(unconnected, x, experimental_use_pfor=vectorized) is None


@pytest.mark.parametrize("target", [None, 3.0, [1.0], np.ones(2)], ids=repr)
def test_the_target_is_one_tensor(target):
    """T59 and 18.2: a clear TypeError instead of an AttributeError; the tape stays usable."""
    tape, (x,), y = watched(lambda x: x * x, [[1.0, 2.0]])
    for method in (tape.jacobian, tape.batch_jacobian):
        with pytest.raises(TypeError, match="one Tensor at a time: stack or concat them"):
            method(target, x)
    with pytest.raises(TypeError, match="one Tensor at a time"):
        tape.jacobian([y, y], x)
    assert tape.jacobian(y, x).shape == (1, 2, 1, 2)


def test_the_target_may_be_a_variable():
    """T59."""
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(v)
    np.testing.assert_array_equal(tape.jacobian(v, v).numpy(), np.eye(2))


def test_a_hessian_is_the_jacobian_of_a_gradient_and_can_be_differentiated_again():
    """T60: the sum of x**4, up to its fourth derivative."""
    x = tf.constant([1.0, 2.0], dtype="float64")
    with tf.GradientTape() as fourth:
        fourth.watch(x)
        with tf.GradientTape() as third:
            third.watch(x)
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape() as inner:
                    inner.watch(x)
                    y = tf.reduce_sum(x**4)
                slope = inner.gradient(y, x)
            hessian = outer.jacobian(slope, x)
        thirds = third.jacobian(hessian, x)
    np.testing.assert_allclose(hessian.numpy(), np.diag([12.0, 48.0]))
    np.testing.assert_allclose(np.einsum("iii->i", thirds.numpy()), [24.0, 48.0])
    np.testing.assert_allclose(np.einsum("iiii->i", fourth.jacobian(thirds, x).numpy()), [24.0, 24.0])


def test_gathered_rows_give_a_dense_jacobian():
    """T61: repeated indices add up."""
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(table, [2, 0, 2]) ** 2, 1)
    found = tape.jacobian(y, table)
    assert isinstance(found, tf.Tensor)
    expected = np.zeros((3, 3, 2))
    expected[0, 2], expected[1, 0], expected[2, 2] = [10.0, 12.0], [2.0, 4.0], [10.0, 12.0]
    np.testing.assert_array_equal(found.numpy(), expected)


def test_a_target_that_was_not_recorded_gives_none():
    """T62."""
    tape, (x,), _ = watched(lambda x: x * x, [1.0, 2.0])
    assert tape.jacobian(tf.constant([1.0]), x) is None


def test_a_jacobian_is_differentiated_by_an_outer_tape():
    """The sum of all elements of the Jacobian of x**3 has the gradient 6 x."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3
        total = tf.reduce_sum(inner.jacobian(y, x))
    np.testing.assert_allclose(outer.gradient(total, x).numpy(), [6.0, 12.0])


# batch_jacobian -------------------------------------------------------------------------------------------------------


def test_rows_that_are_independent_give_their_own_jacobians():
    """T63: the diagonal blocks of the full Jacobian, in the shape (b, y..., x...)."""
    x = np.random.default_rng(0).normal(size=(4, 3))
    w = np.random.default_rng(1).normal(size=(3, 2))
    tape, (source,), y = watched(lambda x: tf.reshape(tf.tanh(x @ tf.constant(w)), (4, 2, 1)), x, persistent=True)
    found, full = tape.batch_jacobian(y, source), tape.jacobian(y, source).numpy()
    assert found.shape == (4, 2, 1, 3)
    for i in range(4):
        np.testing.assert_allclose(found[i].numpy(), full[i, :, :, i], rtol=1e-12)


def test_rows_that_depend_on_others_have_those_parts_added_in():
    """T63: the sum over the target's batch axis, so the distance from the mean gives zeros."""
    tape, (x,), y = watched(lambda x: x - tf.reduce_mean(x, 0, keepdims=True), np.arange(6.0).reshape(3, 2), persistent=True)
    np.testing.assert_allclose(tape.batch_jacobian(y, x).numpy(), 0.0, atol=1e-15)
    tape, (x,), y = watched(lambda x: tf.sin(x) * tf.reduce_sum(x, 0), np.arange(6.0).reshape(3, 2), persistent=True)
    expected = np.einsum("bicj->cij", tape.jacobian(y, x).numpy())
    np.testing.assert_allclose(tape.batch_jacobian(y, x).numpy(), expected, rtol=1e-12)


def test_batches_of_different_size_are_refused():
    """T64."""
    tape, (x,), y = watched(lambda x: tf.concat([x, x], 0), np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"Need first dimension of target shape \(\(4, 2\)\) and source shape \(\(2, 2\)\)"):
        tape.batch_jacobian(y, x)


@pytest.mark.parametrize("shapes", [((2,), (2, 1)), ((2, 1), (2,))])
def test_a_row_needs_an_axis_of_its_own(shapes):
    """T64."""
    source, target = shapes
    tape, (x,), y = watched(lambda x: tf.reshape(x, target), np.ones(source))
    with pytest.raises(ValueError, match=r"Shape \(2,\) must have rank at least 2"):
        tape.batch_jacobian(y, x)


def test_the_source_is_one_tensor():
    """T64 and 18.2."""
    tape, (x,), y = watched(lambda x: x * x, np.ones((2, 2)))
    with pytest.raises(TypeError, match="the source is a list, expected one Tensor"):
        tape.batch_jacobian(y, [x])


@pytest.mark.parametrize("error", [ValueError, IndexError])
def test_a_scalar_has_no_batch(error):
    """T64 and 18.2: both shapes are named, and what to call instead."""
    tape, (x,), y = watched(lambda x: tf.reduce_sum(x), np.ones((2, 3)))
    with pytest.raises(error, match=r"shape \(\).*\(2, 3\).*Use gradient\(\)"):
        tape.batch_jacobian(y, x)


@pytest.mark.parametrize("shape,expected", [((1, 0), (1, 0, 0)), ((0, 3), (0, 3, 3))])
def test_empty_batches_give_empty_results(shape, expected):
    """T64 and 18.2: no ZeroDivisionError."""
    tape, (x,), y = watched(lambda x: x * x, np.ones(shape))
    assert tape.batch_jacobian(y, x).shape == expected


@pytest.mark.parametrize("choice", ["none", "zero"])
def test_an_unconnected_batch_gives_zeros(choice):
    """T65: even with 'none'."""
    tape, (x, other), y = watched(lambda x, other: x * x, np.ones((2, 1)), np.ones((2, 3)))
    found = tape.batch_jacobian(y, other, unconnected_gradients=choice)
    assert found.shape == (2, 1, 3) and not found.numpy().any()
