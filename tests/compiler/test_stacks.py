"""Stacks of arrays, as models that are trained together make them: kernels carry them out whole, with NumPy's numbers."""

import numpy as np
import pytest
from hypothesis import strategies as st
from slow import drawn, sampled
from small_training import needs_llvm

import minikeras as tf
from minikeras.compiler.executors.llvm.calls import KernelCall
from minikeras.compiler.executors.llvm.encode import encode
from minikeras.compiler.passes import optimized
from minikeras.experiments import Ensemble

pytestmark = needs_llvm

K = tf.keras
L = K.layers
MEMBERS, FEATURES, CLASSES, ROWS = 3, 5, 4, 7
SIZE = st.integers(1, 9)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def both(function, *arrays):
    """What a function gives as kernels, after what it gives by NumPy."""
    tensors = [tf.constant(x) for x in arrays]
    expected = function(*tensors)
    compiled = tf.function(function, jit_compile=True)
    compiled(*tensors)
    found = compiled(*tensors)
    assert compiled.replays == 1
    return found, expected


def close(found, expected):
    for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-5)


@drawn(
    15,
    60,
    sizes=st.tuples(SIZE, SIZE, SIZE),
    members=st.lists(st.integers(1, 4), min_size=1, max_size=2),
    shared=st.sampled_from(["neither", "a", "b"]),
    turned=st.tuples(st.booleans(), st.booleans()),
)
def test_products_of_stacks_also_with_one_matrix_for_all(sizes, members, shared, turned):
    m, n, k = sizes
    shapes = [(k, m) if turned[0] else (m, k), (n, k) if turned[1] else (k, n)]
    a, b = [normal(*(() if shared == name else members), *shape) for name, shape in zip("ab", shapes, strict=True)]
    close(*both(lambda a, b: tf.matmul(a, b, transpose_a=turned[0], transpose_b=turned[1]) * 2.0, a, b))


def test_transposed_stacks_are_factors_of_products_where_they_lie():
    a, b = tf.constant(normal(MEMBERS, ROWS, FEATURES)), tf.constant(normal(MEMBERS, FEATURES, CLASSES))

    @tf.function
    def gradients(a, b):
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            loss = tf.reduce_sum(tf.sin(a @ b))
        return tape.gradient(loss, [a, b])

    gradients(a, b)
    calls = [call for call in encode(optimized(gradients.program(a, b))) if isinstance(call, KernelCall)]
    assert not [call for call in calls if len(call.operands) == 1 and call.record.primitive.name == "matrix_product"]


@drawn(15, 60, shape=st.lists(st.integers(1, 4), min_size=2, max_size=4), data=st.data())
def test_what_is_repeated_for_each_member_and_each_row(shape, data):
    """Operands with any axes of size 1; the results are summed over any neighbouring axes."""
    ones = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    first = data.draw(st.integers(0, len(shape) - 1))
    axes = list(range(first, data.draw(st.integers(first, len(shape) - 1)) + 1))
    x, bias = normal(*shape), normal(*[1 if one else size for one, size in zip(ones, shape, strict=True)], seed=1)

    def function(x, bias):
        y = tf.nn.relu(x * 2.0 + bias)
        return y, tf.reduce_sum(y, axes), tf.reduce_max(y, axes), tf.reduce_mean(y + 1.0, axes)

    close(*both(function, x, bias))


@pytest.mark.parametrize("axes", [(1, 0), (0, 0), (-1, -1)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("shape", [(5, 7), (5, 5), (4, 5, 6)])
def test_sums_of_sums_do_not_join_the_loop_of_the_first(shape, keepdims, axes):
    x = normal(*shape)

    def function(x):
        y = tf.reduce_sum(tf.exp(x) * 2.0, axes[0], keepdims=keepdims)
        return tf.reduce_sum(y, axes[1]), tf.reduce_max(tf.reduce_sum(x, axes[0], keepdims=keepdims), axes[1])

    close(*both(function, x))


@pytest.mark.parametrize("perm", [(0, 3, 2, 1), (1, 0, 3, 2), (2, 1, 0, 3)])
@pytest.mark.parametrize("reduce", [tf.reduce_sum, tf.reduce_max, tf.reduce_mean])
def test_sums_of_what_lies_in_another_order_are_in_the_order_of_their_axes(perm, reduce):
    """NumPy gives the sum of a transposed array an order of its own, which other calls of the program expect."""
    close(*both(lambda x: (reduce(tf.transpose(x, perm), -1), reduce(tf.transpose(x, perm), 1) * 2.0), normal(6, 5, 3, 2)))


@pytest.mark.parametrize("shape", [(12, 3), (4, 12, 3), (2, 3, 12, 2), (4, 3, 3), (4, 12, 9), (4, 12, 1)])
def test_sums_of_columns_of_each_member_are_kernels_however_few_there_are(shape):
    x = tf.constant(normal(*shape))
    sums = tf.function(
        lambda x: (tf.reduce_sum(tf.exp(x) * 2.0, -2), tf.reduce_mean(tf.nn.relu(x) - 1.0, -2)), jit_compile=True
    )
    sums(x)
    close(sums(x), (tf.reduce_sum(tf.exp(x) * 2.0, -2), tf.reduce_mean(tf.nn.relu(x) - 1.0, -2)))
    left = [
        call.record.primitive.name
        for call in encode(optimized(sums.program(x), native=True))
        if not isinstance(call, KernelCall)
    ]
    assert not {*left} & {"reduce_sum", "reduce_mean"}


def test_sums_of_few_columns_are_of_all_rows_where_an_operand_is_the_same_for_each_member():
    close(*both(lambda x, b: tf.reduce_sum(tf.exp(x + b) * 2.0, [0, 1]), normal(4, 12, 3), normal(12, 3)))


def network(between):
    model = K.Sequential([K.Input((FEATURES,)), *between(), L.Dense(CLASSES)])
    loss = K.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"], jit_compile=True)
    return model


NETS = {
    "dense": lambda: [L.Dense(6, "relu")],
    "deep": lambda: [L.Dense(6, "tanh"), L.Dense(3, "gelu", kernel_regularizer="l2")],
    "normalized": lambda: [L.Dense(6, "relu"), L.BatchNormalization()],
    "in another shape": lambda: [L.Reshape((FEATURES, 1)), L.Flatten(), L.LayerNormalization(), L.Dense(6, "softmax")],
}
X, Y = normal(42, FEATURES, seed=5), np.random.default_rng(6).integers(0, CLASSES, 42).astype("int32")


@pytest.fixture
def in_a_row(monkeypatch):
    """How many steps were carried out by each call of kernels for several."""
    from minikeras.compiler.executors.llvm.in_a_row import InARow

    counts, carry_out = [], InARow.__call__

    def counted(self, memory, batches, start, count, *others):
        counts.append(count)
        return carry_out(self, memory, batches, start, count, *others)

    monkeypatch.setattr(InARow, "__call__", counted)
    return counts


@pytest.mark.parametrize("net", sampled(NETS, 2))
@pytest.mark.parametrize("shuffle", [False, True])
def test_members_take_many_steps_in_one_call_and_are_what_they_are_alone(net, shuffle, in_a_row):
    """In an order of their own each member has a batch of its own."""
    ensemble = Ensemble(lambda: network(NETS[net]), size=MEMBERS, seeds=range(MEMBERS))
    ensemble.fit(X, Y, batch_size=ROWS, epochs=4, shuffle=shuffle, verbose=0)
    assert sum(in_a_row) > len(X) // ROWS
    for seed in range(MEMBERS):
        tf.random.set_seed(seed)
        single = network(NETS[net])
        single.fit(X, Y, batch_size=ROWS, epochs=4, shuffle=shuffle, verbose=0)
        for found, expected in zip(ensemble[seed].get_weights(), single.get_weights(), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


def test_a_batch_in_another_shape_is_read_where_it_was_brought(in_a_row):
    """A layer that flattens its input stands first, as for images."""
    tf.random.set_seed(0)
    model = K.Sequential([K.Input((2, 3)), L.Flatten(), L.Dense(4), L.Dense(1)])
    x, y = normal(40, 2, 3), normal(40, 1, seed=1)
    weights = model.get_weights()
    found = []
    for compiled in (True, False):
        model.set_weights(weights)
        model.compile("adam", "mse", jit_compile=compiled, run_eagerly=not compiled)
        model.fit(x, y, batch_size=8, epochs=5, shuffle=False, verbose=0)
        found.append(model.get_weights())
    assert sum(in_a_row) > 5
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
