"""Stacks of arrays, as models that are trained together make them: kernels carry them out whole, with NumPy's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_training import needs_llvm

import minikeras as tf
from minikeras.experiments.members import Members
from minikeras.experiments.stack import ModelStack

pytestmark = needs_llvm

K = tf.keras
L = K.layers
M, FEATURES, CLASSES, ROWS = 3, 5, 4, 7
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


@settings(max_examples=60)
@given(
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


@settings(max_examples=60)
@given(shape=st.lists(st.integers(1, 4), min_size=2, max_size=4), data=st.data())
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


def stack_of(layers, optimizer="adam", own=False, jit_compile=True):
    """Members as one model, and the same members by themselves."""
    models = []
    for seed in range(M):
        tf.random.set_seed(seed)
        model = K.Sequential([K.Input((FEATURES,)), *layers(), L.Dense(CLASSES)])
        loss = K.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=jit_compile)
        models.append(model)
    members = Members(M)
    for variables in zip(*[model._collect().variables for model in models], strict=True):
        members.stack(variables[0], np.stack([variable.numpy() for variable in variables]))
    singles = [K.models.clone_model(model) for model in models]
    for single, model in zip(singles, models, strict=True):
        single.set_weights(model.get_weights())
        single.compile(optimizer, model.loss, metrics=["accuracy"], jit_compile=jit_compile)
    return ModelStack(models[0], members), singles


NETS = {
    "dense": lambda: [L.Dense(6, "relu")],
    "deep": lambda: [L.Dense(6, "tanh"), L.Dense(3, "gelu", kernel_regularizer="l2")],
    "normalized": lambda: [L.Dense(6, "relu"), L.BatchNormalization()],
    "in another shape": lambda: [L.Reshape((FEATURES, 1)), L.Flatten(), L.LayerNormalization(), L.Dense(6, "softmax")],
}


def batches(rows, count):
    x, y = normal(40, FEATURES, seed=5), np.random.default_rng(6).integers(0, CLASSES, 40).astype("int32")
    chosen = np.random.default_rng(7).integers(0, 40, (count, *rows))
    return x, y, chosen


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("own", [False, True])
def test_members_are_what_they_are_alone(net, own):
    stack, singles = stack_of(NETS[net])
    x, y, chosen = batches((M, ROWS) if own else (ROWS,), 6)
    step = tf.function(lambda x, y: (stack.train_step_own if own else stack.train_step)((x, y)), jit_compile=True)
    for rows in chosen:
        step(tf.constant(x[rows]), tf.constant(y[rows]))
    assert step.replays > 2
    for number, single in enumerate(singles):
        for rows in chosen:
            mine = rows[number] if own else rows
            single.train_on_batch(x[mine], y[mine])
        for (_, whole), variable in zip(stack.members.stacks.values(), single.variables, strict=False):
            np.testing.assert_allclose(whole.numpy()[number], variable.numpy(), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("own", [False, True])
def test_all_of_a_step_is_one_call_and_many_steps_too(own, monkeypatch):
    from minikeras.compiler.executors.llvm.in_a_row import InARow

    calls = []
    carry_out = InARow.__call__
    monkeypatch.setattr(InARow, "__call__", lambda self, *args: calls.append(args[3]) or carry_out(self, *args))
    stack, _ = stack_of(NETS["dense"])
    x, y, chosen = batches((M, ROWS) if own else (ROWS,), 12)
    function = stack.train_step_own if own else stack.train_step
    step = tf.function(lambda data: function(data), jit_compile=True)
    from minikeras.data.table import RowBatches, Table

    for rows in chosen[:4]:
        step((tf.constant(x[rows]), tf.constant(y[rows])))
    table = Table((x, y))
    one = RowBatches(table, list(chosen))
    assert step.replay_many(one, (one.first,), lambda: None) is not None
    assert sum(calls) == len(chosen)


def test_a_batch_in_another_shape_is_read_where_it_was_brought():
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
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_the_numpy_executor_gives_members_the_bits_that_they_have_alone():
    stack, singles = stack_of(NETS["deep"], jit_compile=None)
    x, y, chosen = batches((ROWS,), 6)
    step = tf.function(lambda x, y: stack.train_step((x, y)))
    for rows in chosen:
        step(tf.constant(x[rows]), tf.constant(y[rows]))
    assert step.replays > 2
    for number, single in enumerate(singles):
        alone = tf.function(lambda x, y, single=single: single.train_step((x, y)))
        for rows in chosen:
            alone(tf.constant(x[rows]), tf.constant(y[rows]))
        for (_, whole), variable in zip(stack.members.stacks.values(), single.variables, strict=False):
            np.testing.assert_array_equal(whole.numpy()[number], variable.numpy())
