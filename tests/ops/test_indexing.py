"""Gathers, scatters and ranges: every combination of axes against a plain reference, and shapes that are never broadcast."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minikeras as tf

SIZES = st.integers(1, 3)


def gathered(x, where, axis, batch_dims):
    """One position at a time."""
    shape = (*x.shape[:axis], *where.shape[batch_dims:], *x.shape[axis + 1 :])
    y, inner = np.zeros(shape, x.dtype), where.ndim - batch_dims
    for place in itertools.product(*map(range, shape)):
        index = where[(*place[:batch_dims], *place[axis : axis + inner])]
        y[place] = x[(*place[:axis], index, *place[axis + inner :])]
    return y


@settings(deadline=None)
@given(st.data())
def test_a_gather_picks_what_a_loop_picks_for_every_axis_and_number_of_shared_axes(data):
    batch_dims = data.draw(st.integers(0, 2), "batch_dims")
    lead = data.draw(st.tuples(*[SIZES] * batch_dims))
    shape = (*lead, *data.draw(st.lists(SIZES, min_size=1, max_size=3)))
    axis = data.draw(st.integers(batch_dims, len(shape) - 1), "axis")
    inner = data.draw(st.lists(st.integers(0, 3), max_size=2), "axes of the indices")
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, where = rng.normal(size=shape), rng.integers(0, shape[axis], (*lead, *inner))
    expected = gathered(x, where, axis, batch_dims)
    given_axis = data.draw(st.sampled_from([axis, axis - len(shape)]))
    counted = [batch_dims] if batch_dims == where.ndim else [batch_dims, batch_dims - where.ndim]
    given_batch = data.draw(st.sampled_from(counted))
    source, seed = tf.constant(x), rng.normal(size=expected.shape)
    with tf.GradientTape() as tape:
        tape.watch(source)
        y = tf.gather(source, where, axis=given_axis, batch_dims=given_batch)
    np.testing.assert_array_equal(y.numpy(), expected)
    # The map is linear: its gradient at i is what a one at i gives.
    slope = [(gathered(_unit(shape, i), where, axis, batch_dims) * seed).sum() for i in np.ndindex(shape)]
    np.testing.assert_allclose(
        tf.convert_to_tensor(tape.gradient(y, source, seed)).numpy(), np.reshape(slope, shape), atol=1e-12
    )


def _unit(shape, position):
    one = np.zeros(shape)
    one[position] = 1.0
    return one


def gathered_nd(x, where, batch_dims):
    lead, depth = where.shape[:-1], where.shape[-1]
    y = np.zeros((*lead, *x.shape[batch_dims + depth :]), x.dtype)
    for place in np.ndindex(lead):
        y[place] = x[(*place[:batch_dims], *where[place])]
    return y


@settings(deadline=None)
@given(st.data())
def test_gather_nd_picks_what_a_loop_picks_for_every_depth_and_number_of_shared_axes(data):
    batch_dims = data.draw(st.integers(0, 2), "batch_dims")
    lead = data.draw(st.tuples(*[SIZES] * batch_dims))
    rest = data.draw(st.lists(SIZES, max_size=3))
    depth = data.draw(st.integers(0, len(rest)), "depth")
    inner = data.draw(st.lists(st.integers(0, 3), max_size=2))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.normal(size=(*lead, *rest))
    limits = np.array(rest[:depth], "int64")
    where = (rng.uniform(size=(*lead, *inner, depth)) * limits).astype("int32")
    source = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(source)
        y = tf.gather_nd(source, where, batch_dims=batch_dims)
    np.testing.assert_array_equal(y.numpy(), gathered_nd(x, where, batch_dims))
    expected = np.array([gathered_nd(_unit(x.shape, i), where, batch_dims).sum() for i in np.ndindex(x.shape)])
    np.testing.assert_array_equal(tf.convert_to_tensor(tape.gradient(y, source)).numpy(), expected.reshape(x.shape))


@settings(deadline=None)
@given(st.data())
def test_scatter_nd_adds_what_a_loop_adds_and_refuses_updates_of_any_other_shape(data):
    shape = tuple(data.draw(st.lists(SIZES, min_size=1, max_size=3)))
    depth = data.draw(st.integers(1, len(shape)))
    lead = tuple(data.draw(st.lists(st.integers(0, 3), max_size=2)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    where = (rng.uniform(size=(*lead, depth)) * shape[:depth]).astype("int64")
    right = (*lead, *shape[depth:])
    updates, start = rng.normal(size=right), rng.normal(size=shape)
    added, replaced = np.zeros(shape), start.copy()
    for place in np.ndindex(lead):
        added[tuple(where[place])] += updates[place]
        replaced[tuple(where[place])] = updates[place]
    np.testing.assert_allclose(tf.scatter_nd(where, updates, shape).numpy(), added, atol=1e-12)
    np.testing.assert_allclose(tf.tensor_scatter_nd_add(start, where, updates).numpy(), start + added, atol=1e-12)
    np.testing.assert_allclose(tf.tensor_scatter_nd_sub(start, where, updates).numpy(), start - added, atol=1e-12)
    np.testing.assert_allclose(tf.tensor_scatter_nd_update(start, where, updates).numpy(), replaced)
    v = tf.Variable(start)
    v.scatter_nd_update(where, updates)
    np.testing.assert_allclose(v.numpy(), replaced)
    wrong = tuple(data.draw(st.lists(st.integers(0, 3), max_size=3)))
    if wrong != right:
        for call in (
            lambda: tf.scatter_nd(where, np.ones(wrong), shape),
            lambda: tf.tensor_scatter_nd_add(start, where, np.ones(wrong)),
            lambda: tf.tensor_scatter_nd_sub(start, where, np.ones(wrong)),
            lambda: tf.tensor_scatter_nd_update(start, where, np.ones(wrong)),
            lambda: v.scatter_nd_update(where, np.ones(wrong)),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match="need updates of shape"):
                call()
        np.testing.assert_allclose(v.numpy(), replaced)


@pytest.mark.parametrize("how", ["scatter_update", "scatter_add"])
def test_rows_of_a_variable_take_rows_or_one_number_and_nothing_that_would_be_broadcast(how):
    v = tf.Variable(tf.zeros([3, 2]))
    scatter = getattr(v, how)
    scatter(tf.IndexedSlices(tf.ones([2, 2]), tf.constant([0, 2])))
    assert v.numpy().tolist() == [[1, 1], [0, 0], [1, 1]]
    scatter(tf.IndexedSlices(tf.constant(5.0), tf.constant([1])))
    assert v.numpy().tolist() == [[1, 1], [5, 5], [1, 1]]
    for wrong in (tf.ones([1, 2]), tf.ones([2, 1]), tf.ones([2]), tf.ones([3, 2])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="need updates of shape"):
            scatter(tf.IndexedSlices(wrong, tf.constant([0, 1])))
    assert v.numpy().tolist() == [[1, 1], [5, 5], [1, 1]]


@pytest.mark.parametrize("indices", [[[0.0]], [[]], [[0, 0, 0]]])
def test_tuples_that_name_no_place_are_refused(indices):
    v = tf.Variable(tf.zeros([3, 2]))
    indices = tf.constant(indices, None if indices != [[]] else "int32")
    for call in (
        lambda: tf.scatter_nd(indices, [[1.0, 1.0]], [3, 2]),
        lambda: tf.tensor_scatter_nd_update(v, indices, [[1.0, 1.0]]),
        lambda: v.scatter_nd_update(indices, [[1.0, 1.0]]),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="indices"):
            call()


def test_shared_axes_that_do_not_fit_are_refused():
    x = tf.ones([2, 3, 2])
    for indices, options in (
        ([0, 1], {"axis": 1, "batch_dims": 2}),
        ([0, 1], {"axis": 0, "batch_dims": 1}),
        (0, {"axis": 1, "batch_dims": -1}),
        ([[0], [0], [0]], {"axis": 1, "batch_dims": 1}),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="batch_dims"):
            tf.gather(x, indices, **options)
    with pytest.raises(tf.errors.InvalidArgumentError, match="batch_dims"):
        tf.gather_nd(x, [0, 1], batch_dims=1)


# Ranges ------------------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(1, 2000), st.integers(1, 50), st.sampled_from(["float16", "float32", "float64"]))
def test_the_length_of_a_range_is_computed_in_its_dtype(count, width, dtype):
    start, step = tf.constant(-width, dtype), tf.constant(width, dtype) / tf.constant(count, dtype)
    first, last = np.asarray(-width, dtype), np.asarray(0, dtype)
    expected = int(np.ceil((last - first) / step.numpy()))
    found = tf.range(start, tf.constant(0, dtype), step)
    assert found.shape == (expected,) and found.dtype == dtype
    exact = -width + np.arange(expected) * float(step.numpy())
    np.testing.assert_array_equal(found.numpy(), exact.astype(dtype))


def test_the_dtype_of_a_range_is_the_widest_of_its_numbers():
    assert tf.range(-2.0, 1.0, 3.0 / tf.constant(800.0)).shape == (800,)
    assert tf.range(tf.constant(1.0), tf.constant(2.0, "float64"), 0.25).dtype == "float64"
    assert tf.range(tf.constant(1, "int64"), 5).dtype == "int64"
    assert tf.range(tf.constant(3, "int64"), 5, 0.5).dtype == "float32"
    assert tf.range(2**31, 2**31 + 2).numpy().tolist() == [2**31, 2**31 + 1]
    assert tf.range(5, 1, -2).numpy().tolist() == [5, 3]
    assert tf.range(3, dtype="float32").dtype == "float32"


@pytest.mark.parametrize("arguments", [(0, 10, 0), (0.0, float("inf"), 1.0), ([1, 2],), (True,), (1j,), (0, 1, 1e-50)], ids=str)
def test_a_range_without_a_length_is_refused(arguments):
    with pytest.raises(tf.errors.InvalidArgumentError, match="range"):
        tf.range(*arguments)


def test_a_range_of_integers_refuses_numbers_that_it_would_have_to_change():
    with pytest.raises(TypeError, match="range"):
        tf.range(300, dtype="uint8")
    with pytest.raises(TypeError, match="range"):
        tf.range(1.5, 4, dtype="int32")


def test_linspace_has_its_ends_in_every_dtype():
    for dtype in ("float16", "float32", "float64"):
        grid = tf.linspace(tf.constant(-0.1, dtype), tf.constant(0.3, dtype), 7)
        assert grid.dtype == dtype
        np.testing.assert_allclose(
            grid.numpy(), np.linspace(-0.1, 0.3, 7), rtol=2 * np.finfo(dtype).eps, atol=1e-4 if dtype == "float16" else 1e-8
        )
        assert (grid[0].numpy(), grid[-1].numpy()) == (np.asarray(-0.1, dtype), np.asarray(0.3, dtype))
    np.testing.assert_allclose(tf.linspace(1j, 2j + 1, 3).numpy(), [1j, 0.5 + 1.5j, 1 + 2j])
    assert tf.linspace(0.0, 1.0, 0).shape == (0,)
    assert tf.linspace(-3e38, 3e38, 3).numpy()[[0, 2]].tolist() == [np.float32(-3e38), np.float32(3e38)]
