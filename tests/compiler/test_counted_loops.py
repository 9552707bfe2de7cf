"""Loops with a condition or a count that are recorded: one operation with a body, if integers alone decide when they end."""

import numpy as np
import pytest
from in_one_test import in_one_test
from strict_array import StrictArray

import minikeras as tf
from minikeras.core.arrays import to_numpy

ops = tf.keras.ops
W = tf.constant(np.random.default_rng(0).normal(size=(6, 3, 3)).astype("float32") * 0.5)
X = tf.constant(np.random.default_rng(1).normal(size=(2, 3)).astype("float32"))
EXECUTORS = [False, pytest.param(True, marks=pytest.mark.host)]


def of_while(w, x):
    return tf.while_loop(lambda i, h: i < 6, lambda i, h: (i + 1, tf.tanh(h @ w[i] + 0.1)), [tf.constant(0), x])[1]


def of_numbers(w, x):
    return tf.while_loop(lambda i, h: i < 6, lambda i, h: (i + 1, tf.tanh(h @ w[i] + 0.1)), (0, x))[1]


def of_fori(w, x):
    return ops.fori_loop(0, 6, lambda i, h: tf.tanh(h @ w[i] + 0.1), x)


def of_keras(w, x):
    return ops.while_loop(lambda i, h: i < 6, lambda i, h: (i + 1, tf.tanh(h @ tf.gather(w, i) + 0.1)), (tf.constant(0), x))[1]


def downwards(w, x):
    """Two integers decide, one of which counts in steps that grow, and the bound comes from a shape."""

    def body(i, k, h):
        return i - k, k + 1, tf.tanh(h @ w[i] + tf.cast(k, "float32"))

    return tf.while_loop(lambda i, k, h: i >= tf.shape(x)[0] - 2, body, (tf.shape(w)[0] - 1, 1, x))[2]


def of_nests(w, x):
    start = {"i": tf.constant(0), "h": (x, tf.zeros_like(x))}

    def body(state):
        now, before = state["h"]
        return [{"i": state["i"] + 1, "h": (tf.sin(now @ w[state["i"]]) + before, now)}]

    return tf.while_loop(lambda state: state["i"] < 6, body, [start])[0]["h"][0]


LOOPS = [of_while, of_numbers, of_fori, of_keras, downwards, of_nests]


def names(function, *arguments):
    function(*arguments)
    return [record.primitive.name for record in function.program(*arguments).records]


def loss(loop):
    return lambda w, x: tf.reduce_sum(loop(w, x) ** 2)


def gradient(loop):
    def run(w, x):
        with tf.GradientTape() as tape:
            tape.watch([w, x])
            y = loss(loop)(w, x)
        return list(map(tf.convert_to_tensor, tape.gradient(y, [w, x])))

    return run


def second(loop):
    def run(w, x):
        with tf.GradientTape() as outer:
            outer.watch([w, x])
            y = sum(tf.reduce_sum(g * g) for g in gradient(loop)(w, x))
        return list(map(tf.convert_to_tensor, outer.gradient(y, [w, x])))

    return run


def forward(loop):
    def run(w, x):
        with tf.autodiff.ForwardAccumulator([w, x], [tf.ones_like(w), tf.cos(x)]) as accumulator:
            y = loss(loop)(w, x)
        return accumulator.jvp(y)

    return run


def batched(loop):
    return lambda w, x: tf.vectorized_map(lambda one: loop(w, one), tf.stack([x, 2.0 * x, -x]))


def batched_weights(loop):
    return lambda w, x: tf.vectorized_map(lambda one: gradient(loop)(one, x), tf.stack([w, 2.0 * w]))


@in_one_test(native=EXECUTORS, rule=[lambda loop: loop, gradient, second, forward, batched, batched_weights], loop=LOOPS)
def test_a_loop_is_one_operation_with_the_numbers_of_eager(loop, rule, native):
    function = tf.function(rule(loop), jit_compile=native)
    found, expected = tf.nest.flatten(function(W, X)), tf.nest.flatten(rule(loop)(W, X))
    assert 1 <= names(function, W, X).count("scan") <= 8
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_records_one_scan(loop):
    assert names(tf.function(loop), W, X).count("scan") == 1


def test_what_depends_on_the_count_alone_is_computed_before_the_loop():
    cell = tf.function(lambda w, x: tf.while_loop(lambda i, h: i < 6, lambda i, h: (i + 1, h + x @ w[i]), [0, x])[1])
    np.testing.assert_allclose(cell(W, X), X + tf.reduce_sum(X @ W, 0), rtol=1e-5)
    (scan,) = [record for record in cell.program(W, X).records if record.primitive.name == "scan"]
    assert "matrix_product" not in scan.params["body"].name


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (3, 2), (5, 6), (-2, 1)])
def test_no_steps_and_few(start, stop):
    loops = [
        lambda x: tf.while_loop(lambda i, h: i < stop, lambda i, h: (i + 1, h @ W[0]), [start, x]),
        lambda x: (max(start, stop), ops.fori_loop(start, stop, lambda i, h: h @ W[0], x)),
    ]
    for loop in loops:
        for mine, theirs in zip(tf.function(loop)(X), loop(X), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_steps_are_bounded():
    loop = tf.function(lambda x: tf.while_loop(lambda i, h: True, lambda i, h: (i + 1, h @ W[i]), [0, x], maximum_iterations=3))
    count, h = loop(X)
    assert int(count) == 3
    np.testing.assert_allclose(h, X @ W[0] @ W[1] @ W[2], rtol=1e-5)


def test_integers_that_do_not_decide_are_carried_and_have_no_gradient():
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            _, total, h = tf.while_loop(
                lambda i, n, h: i < 6,
                lambda i, n, h: (i + 1, n + 2 * i, h @ W[i] * tf.cast(n, "float32")),
                [0, tf.constant(1), x],
            )
        return total, tape.gradient(h, x)

    for mine, theirs in zip(tf.function(run)(X), run(X), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def test_an_index_beyond_the_end_is_refused():
    loop = tf.function(lambda w, x: tf.while_loop(lambda i, h: i < 7, lambda i, h: (i + 1, h @ w[i]), [0, x])[1])
    with pytest.raises(tf.errors.InvalidArgumentError):
        loop(W, X)


def test_loops_within_loops_are_bodies_within_bodies():
    def loop(w, x):
        return ops.fori_loop(0, 4, lambda i, h: h + ops.fori_loop(0, 3, lambda k, y: tf.sin(y @ w[k]), h), x)

    for rule in (lambda one: one, gradient):
        function = tf.function(rule(loop))
        for mine, theirs in zip(tf.nest.flatten(function(W, X)), tf.nest.flatten(rule(loop)(W, X)), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
    assert names(tf.function(loop), W, X).count("scan") == 1


def test_python_runs_each_step_where_nothing_is_recorded():
    calls = []
    body = lambda i, h: (calls.append(1) or i + 1, h @ W[0])
    tf.while_loop(lambda i, h: i < 6, body, [tf.constant(0), X])
    ops.fori_loop(0, 5, lambda i, h: calls.append(type(i)) or h @ W[0], X)
    assert calls == [1] * 6 + [int] * 5


def counted_by_values(x):
    return tf.while_loop(lambda h: tf.reduce_sum(h) < 9.0, lambda h: [h + 1.0], [x])


def with_draws(x):
    return tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, h @ W[0] + tf.random.normal([2, 3])), [0, x])


def of_growing_shapes(x):
    return tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.concat([h, x @ W[0]], 0)), [0, x])


def that_asks_for_the_count(x):
    return tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, h @ W[0] if int(i) % 2 else h + 1.0), [0, x])


def with_an_array(x):
    array = tf.TensorArray(tf.float32, 3)
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, x @ W[i])), [0, array])[1].stack()


def that_mixes_numbers(x):
    return ops.fori_loop(0, 3, lambda i, h: h @ W[0] * 2.0 + i, x)


@pytest.mark.parametrize("loop", [with_draws, of_growing_shapes, that_asks_for_the_count, with_an_array, that_mixes_numbers])
def test_what_is_no_step_of_tensors_is_recorded_step_by_step(loop):
    function = tf.function(loop)
    tf.random.set_seed(1)
    found = function(X)
    tf.random.set_seed(1)
    for mine, theirs in zip(tf.nest.flatten(found), tf.nest.flatten(loop(X)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    assert "scan" not in names(function, X)


def test_a_count_that_depends_on_an_argument_is_not_recorded():
    function = tf.function(lambda n, x: tf.while_loop(lambda i, h: i < n, lambda i, h: (i + 1, h @ W[i]), [0, x])[1])
    for n in (2, 4, 1):
        expected = X
        for i in range(n):
            expected = expected @ W[i]
        np.testing.assert_allclose(function(tf.constant(n), X), expected, rtol=1e-5)
    values = tf.function(counted_by_values)
    for x in (X, X + 3.0):
        np.testing.assert_allclose(values(x)[0], counted_by_values(x)[0])
    with pytest.raises(tf.errors.CompileError, match="bool"):
        tf.function(counted_by_values, jit_compile=True)(X)


def test_few_elementwise_steps_become_one_loop_over_elements():
    loop = tf.function(lambda x: tf.while_loop(lambda i, h: i < 5, lambda i, h: (i + 1, tf.sin(h) + x), [0, x])[1])
    assert names(loop, X) == ["loop"]
    many = tf.function(lambda x: tf.while_loop(lambda i, h: i < 500, lambda i, h: (i + 1, tf.sin(h) + x), [0, x])[1])
    assert names(many, X) == ["scan"]


def test_steps_on_a_device_are_recorded_one_by_one():
    """They are nodes of a graph there; between graphs Python would carry out each step."""
    with tf.device("STRICT:0"):
        w, x = tf.constant(W.numpy()), tf.constant(X.numpy())
        function = tf.function(of_while)
        assert type(x.array) is StrictArray
        assert "scan" not in names(function, w, x)
        found = function(w, x)
    np.testing.assert_allclose(to_numpy(found.array), of_while(W, X), rtol=1e-5)


@pytest.mark.parametrize("native", EXECUTORS)
def test_matrices_are_inverted_in_each_step(native):
    """A derived step is recorded on values that say nothing: zeros are no matrix to be inverted."""
    a, b = tf.constant(np.eye(3, dtype="float32") * 2.0 + 0.1), tf.ones([4, 3, 1])

    def loop(a, b):
        return tf.scan(lambda h, x: tf.linalg.solve(a * tf.reduce_sum(h * h), x), b, tf.ones([3, 1]))

    def by_hand(a, b):
        h, rows = tf.ones([3, 1]), []
        for i in range(4):
            h = tf.linalg.solve(a * tf.reduce_sum(h * h), b[i])
            rows.append(h)
        return tf.stack(rows)

    for mine, theirs in zip(tf.function(gradient(loop), jit_compile=native)(a, b), gradient(by_hand)(a, b), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3)
