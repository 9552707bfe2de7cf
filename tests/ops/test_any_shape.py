"""Shapes, axes, keys and equations drawn by Hypothesis: each becomes a specimen, and the laws are applied to it."""

import laws
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from in_one_test import in_one_test
from slow import drawn
from specimens import SPECIMENS
from specimens.table import distinct, nonzero, normal, positive, row

import minikeras as tf

shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)
filled = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)


def obey(*arguments, **facts):
    """The value, the gradient, its transpose and the second derivative of one use of an operation."""
    specimen = row(*arguments, **facts)
    laws.forward_is_the_reference(specimen)
    laws.gradient_is_the_derivative(specimen)
    laws.forward_and_backward_are_transposes(specimen)
    laws.second_derivative_is_the_derivative_of_the_gradient(specimen)
    laws.gradient_is_the_same_under_an_outer_tape(specimen)


def axes_of(shape):
    """None, one axis of either sign, or a list of different axes."""
    rank = len(shape)
    if not rank:
        return st.sampled_from([None, []])
    one = st.integers(-rank, rank - 1)
    return st.one_of(st.none(), one, st.lists(one, unique_by=lambda axis: axis % rank))


def numpy_axis(axis):
    return tuple(axis) if isinstance(axis, list) else axis


@pytest.mark.parametrize("specimen", [s for s in SPECIMENS if s.elementwise and len(s.inputs) == 1], ids=lambda s: s.name)
@in_one_test(shape=[(), (0,), (2, 0, 3), (1, 12), (3, 2, 2)])
def test_elementwise_functions_take_any_shape(specimen, shape):
    values = np.resize(specimen.sample()[0], shape)
    x = tf.constant(values)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = specimen.call(x)
    g = tape.gradient(y, x)
    assert y.shape == g.shape == shape
    np.testing.assert_allclose(y.numpy(), specimen.reference(values), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["add", "multiply", "divide", "pow", "maximum", "squared_difference", "xlogy", "where"])
@drawn(12, 60, data=st.data())
def test_operands_are_broadcast_and_their_gradients_summed_back(name, data):
    first, second = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3, min_side=0)).input_shapes
    if name == "where":
        mask = np.random.default_rng(0).random(np.broadcast_shapes(first, second)) < 0.5
        return obey(
            tf.where,
            (normal(*first), normal(*second)),
            lambda a, b: np.where(mask, a, b),
            call=lambda a, b: tf.where(mask, a, b),
        )
    like = next(s for s in SPECIMENS if s.name == name)
    if name == "maximum":
        return obey(tf.maximum, (nonzero(*first), lambda rng: 0.1 * rng.normal(size=second)), np.maximum, analytic=False)
    return obey(like.operation, (positive(*first), positive(*second)), like.reference, analytic=like.analytic)


REDUCTIONS = {
    "reduce_sum": (tf.reduce_sum, np.sum, normal),
    "reduce_mean": (tf.reduce_mean, np.mean, normal),
    "reduce_prod": (tf.reduce_prod, np.prod, normal),
    "reduce_max": (tf.reduce_max, np.max, distinct),
    "reduce_std": (tf.math.reduce_std, np.std, distinct),
    "reduce_euclidean_norm": (
        tf.math.reduce_euclidean_norm,
        lambda a, axis, keepdims: np.sqrt((a * a).sum(axis=axis, keepdims=keepdims)),
        nonzero,
    ),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@drawn(12, 60, data=st.data())
def test_reductions_take_any_axes(name, data):
    function, reference, sampler = REDUCTIONS[name]
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=2, max_side=3))
    axis, keepdims = data.draw(axes_of(shape)), data.draw(st.booleans())
    if name in ("reduce_std", "reduce_euclidean_norm") and (not shape or axis == []):
        axis = None if shape else axis
        if not shape:
            return
    obey(
        function,
        sampler(*shape),
        lambda a: reference(a, axis=numpy_axis(axis), keepdims=keepdims),
        axis=axis,
        keepdims=keepdims,
        analytic=name in ("reduce_sum", "reduce_mean", "reduce_prod"),
    )


@drawn(12, 60, data=st.data())
def test_running_sums_and_products_take_any_axis_and_option(data):
    shape = data.draw(filled)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    exclusive, reverse = data.draw(st.booleans()), data.draw(st.booleans())
    for function, running, start in ((tf.cumsum, np.cumsum, 0.0), (tf.math.cumprod, np.cumprod, 1.0)):

        def reference(a, running=running, start=start):
            a = np.flip(a, axis) if reverse else a
            y = running(a, axis=axis)
            if exclusive:
                y = np.insert(y, 0, start, axis=axis).take(range(a.shape[axis]), axis=axis)
            return np.flip(y, axis) if reverse else y

        obey(function, normal(*shape), reference, axis=axis, exclusive=exclusive, reverse=reverse)


@drawn(12, 60, data=st.data())
def test_indexing_reads_what_numpy_reads(data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    obey(tf.strided_slice, normal(*shape), lambda a: a[key], call=lambda a: a[key])


@drawn(12, 60, data=st.data())
def test_gathering_reads_what_numpy_takes(data):
    shape = data.draw(filled)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    indices = data.draw(hnp.arrays("int64", shapes, elements=st.integers(0, shape[axis] - 1)))
    obey(tf.gather, normal(*shape), lambda a: np.take(a, indices, axis), call=lambda a: tf.gather(a, indices, axis=axis))


@drawn(12, 60, data=st.data())
def test_moving_elements_follows_numpy(data):
    shape = data.draw(filled)
    rank = len(shape)
    perm = data.draw(st.permutations(range(rank)))
    sizes = st.integers(0, 2)
    pads = data.draw(st.lists(st.tuples(sizes, sizes), min_size=rank, max_size=rank))
    repeats = data.draw(st.lists(st.integers(1, 2), min_size=rank, max_size=rank))
    axis = data.draw(st.integers(-rank, rank - 1))
    shift = data.draw(st.integers(-5, 5))
    flat = data.draw(st.sampled_from([[-1], [-1, shape[0]], [1, -1], [*shape, 1]]))
    x = normal(*shape)
    obey(tf.transpose, x, lambda a: a.transpose(perm), perm=perm)
    obey(tf.pad, x, lambda a: np.pad(a, pads), paddings=pads)
    obey(tf.tile, x, lambda a: np.tile(a, repeats), multiples=repeats)
    obey(tf.roll, x, lambda a: np.roll(a, shift, axis), shift=shift, axis=axis)
    obey(tf.reverse, x, lambda a: np.flip(a, axis), axis=[axis])
    obey(tf.reshape, x, lambda a: a.reshape(flat), shape=flat)
    obey(tf.expand_dims, x, lambda a: np.expand_dims(a, axis), axis=axis)
    obey(tf.concat, (x, x), lambda a, b: np.concatenate([a, b], axis), call=lambda a, b: tf.concat([a, b], axis))
    obey(tf.stack, (x, x), lambda a, b: np.stack([a, b], axis), call=lambda a, b: tf.stack([a, b], axis))
    obey(tf.split, x, lambda a: np.split(a, [1], axis), call=lambda a: tf.split(a, [1, -1], axis))


@drawn(12, 60, data=st.data())
def test_broadcasting_to_a_shape_follows_numpy(data):
    result = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=1, base_shape=data.draw(filled), max_dims=4, max_side=3))
    (shape,) = result.input_shapes
    obey(tf.broadcast_to, normal(*shape), lambda a: np.broadcast_to(a, result.result_shape), shape=result.result_shape)


@drawn(12, 60, data=st.data())
def test_matrix_products_broadcast_their_leading_axes(data):
    lead = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, max_side=3)).input_shapes
    n, k, m = (data.draw(st.integers(0, 3)) for _ in range(3))
    obey(tf.matmul, (normal(*lead[0], n, k), normal(*lead[1], k, m)), np.matmul)


@drawn(12, 60, data=st.data())
def test_einstein_sums_follow_numpy(data):
    size = {"a": 2, "b": 3, "c": 1, "d": 2}
    terms = data.draw(st.lists(st.text("abcd", min_size=0, max_size=3), min_size=1, max_size=3))
    labels = sorted(set("".join(terms)))
    result = "".join(data.draw(st.permutations(labels))[: data.draw(st.integers(0, len(labels)))])
    equation = f"{','.join(terms)}->{result}"
    inputs = tuple(normal(*(size[label] for label in term)) for term in terms)
    obey(tf.einsum, inputs, lambda *xs: np.einsum(equation, *xs), call=lambda *xs: tf.einsum(equation, *xs))


@drawn(12, 60, data=st.data())
def test_factorizations_work_on_stacks(data):
    lead = data.draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=2))
    n = data.draw(st.integers(1, 3))

    def matrices(rng):
        return rng.normal(size=(*lead, n, n)) * 0.3 + 2 * np.eye(n)

    obey(tf.linalg.inv, matrices, np.linalg.inv)
    obey(tf.linalg.det, matrices, np.linalg.det)
    obey(tf.linalg.trace, matrices, lambda a: np.trace(a, axis1=-2, axis2=-1))
    obey(tf.linalg.solve, (matrices, normal(*lead, n, 2)), np.linalg.solve)
