"""ForwardAccumulator: derivatives along one direction, alone and together with tapes."""

import forward_laws as laws
import numpy as np
import pytest
from in_one_test import in_one_test
from laws import obeys
from specimens import SMOOTH

import minikeras as tf
from minikeras.core import warnings

Accumulator = tf.autodiff.ForwardAccumulator
TWICE = [s for s in SMOOTH if s.second_order]


def each(specimens):
    return in_one_test(specimen=specimens)


@pytest.mark.host
@each(SMOOTH)
def test_tangents_are_numerical_derivatives_and_three_ways_to_a_hessian_vector_product_agree(specimen):
    obeys((laws.tangent_is_the_derivative, specimen), *[(laws.hessian_products_agree, specimen)] * specimen.second_order)


@pytest.mark.host
@each(SMOOTH)
def test_tangents_and_gradients_have_the_dtypes_of_what_they_belong_to(specimen):
    dtypes = ["float16", "bfloat16", "float32", "float64"]
    obeys(*[(laws.derivatives_keep_the_dtype, specimen, dtype) for dtype in dtypes])


SMOOTH_FUNCTIONS = {
    "pow": lambda x: tf.abs(x) ** 3.5,
    "exp": tf.exp,
    "sin": tf.sin,
    "log": lambda x: tf.math.log(tf.abs(x)),
    "sqrt": lambda x: tf.sqrt(tf.abs(x)),
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "reciprocal": lambda x: 1.0 / x,
    "softmax": tf.nn.softmax,
    "log_softmax": tf.nn.log_softmax,
    "cross-entropy": lambda x: tf.nn.softmax_cross_entropy_with_logits(labels=[0.2, 0.3, 0.5], logits=x),
    "sparse cross-entropy": lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=1, logits=x),
    "sigmoid cross-entropy": lambda x: tf.nn.sigmoid_cross_entropy_with_logits(labels=[0.2, 0.3, 1.0], logits=x),
}


@pytest.mark.parametrize("name", SMOOTH_FUNCTIONS)
def test_third_derivatives_by_accumulators_are_those_by_tapes(name):
    """T54, T81: along one direction v, three times."""
    function, x = SMOOTH_FUNCTIONS[name], tf.constant([0.5, -1.0, 2.0], dtype="float64")
    v = tf.constant([1.0, -0.5, 0.3], dtype="float64")
    weights = tf.constant([2.0, -1.0, 0.7], dtype="float64")
    weighted = lambda x: tf.reduce_sum(function(x) * weights)
    forward, backward = along(weighted, x, v, 3, by_tapes=False), along(weighted, x, v, 3, by_tapes=True)
    np.testing.assert_allclose(forward.numpy(), backward.numpy(), rtol=1e-10)


def along(function, x, v, order, by_tapes):
    """The derivative of one order of a scalar function at x, along v each time."""
    if order == 0:
        return function(x)
    if by_tapes:
        with tf.GradientTape() as tape:
            tape.watch(x)
            lower = along(function, x, v, order - 1, by_tapes)
        return tf.reduce_sum(tape.gradient(lower, x) * v)
    with Accumulator(x, v) as accumulator:
        lower = along(function, x, v, order - 1, by_tapes)
    return accumulator.jvp(lower)


# Primals and tangents -------------------------------------------------------------------------------------------------


def test_primals_and_tangents_are_nests_of_one_structure():
    """T78."""
    x, y = tf.constant(2.0), tf.constant(3.0)
    with Accumulator({"x": x, "y": [y]}, {"x": 1.0, "y": [10.0]}) as accumulator:
        z = x * y
    assert accumulator.jvp(z).numpy() == 23.0
    for tangents in ([1.0], [1.0, [2.0, 3.0]], {"x": 1.0, "z": 2.0}):
        with pytest.raises(ValueError, match="nest"):
            Accumulator({"x": x, "y": y}, tangents)


def test_a_tangent_is_converted_to_the_dtype_of_its_primal():
    """T78: numbers and arrays are, a tensor of another dtype is refused."""
    x = tf.constant([1.0, 2.0])
    for tangent in ([1, 0], np.array([1.0, 0.0]), tf.Variable([1.0, 0.0])):
        with Accumulator(x, tangent) as accumulator:
            y = x * x
        assert accumulator.jvp(y).dtype == tf.float32
        np.testing.assert_array_equal(accumulator.jvp(y).numpy(), [2.0, 0.0])
    with pytest.raises(ValueError, match="float32 for Tensor with dtype float64"):
        Accumulator(x, tf.constant([1.0, 0.0], dtype="float64"))


def test_an_integer_primal_warns_and_has_no_tangent(caplog):
    """T78."""
    warnings._told.clear()
    x = tf.constant(3)
    with Accumulator(x, tf.constant(1)) as accumulator:
        y = x * x
    assert "watched primal must be floating" in caplog.text
    assert accumulator.jvp(y) is None


def test_a_primal_that_is_named_twice_is_refused():
    """T78."""
    x = tf.constant(1.0)
    with pytest.raises(ValueError, match="was specified as a primal multiple times"):
        Accumulator([x, x], [1.0, 2.0])


@pytest.mark.parametrize("tangent", [[1.0], [1.0, 2.0, 3.0], 1.0], ids=["short", "long", "scalar"])
def test_a_tangent_of_another_shape_is_refused(tangent):
    """T85: at once, naming both shapes; also one that could be broadcast."""
    with pytest.raises(ValueError, match=r"a tangent has shape .* its primal \(2,\)"):
        Accumulator(tf.constant([1.0, 2.0]), tangent)


def test_a_primal_is_a_tensor_or_variable():
    """18.2: a number has no identity that could be tracked."""
    with pytest.raises(ValueError, match="a primal is a float"):
        Accumulator(1.0, 1.0)


# Looking up -----------------------------------------------------------------------------------------------------------


def test_looking_up_works_in_and_after_the_block_and_for_nests():
    """T79."""
    x = tf.constant(3.0)
    with Accumulator(x, 2.0) as accumulator:
        y = {"square": x * x, "rest": (x, tf.constant(1.0))}
        inside = accumulator.jvp(y)
    for found in (inside, accumulator.jvp(y)):
        assert found["square"].numpy() == 12.0 and found["rest"][0].numpy() == 2.0 and found["rest"][1] is None


def test_what_is_not_connected_is_none_or_zeros():
    """T79."""
    x, other = tf.constant(3.0), tf.constant([1.0, 2.0])
    with Accumulator(x, 1.0) as accumulator:
        y = other * 2.0
    assert accumulator.jvp(y) is None
    np.testing.assert_array_equal(accumulator.jvp(y, unconnected_gradients="zero").numpy(), [0.0, 0.0])
    np.testing.assert_array_equal(accumulator.jvp(y, tf.UnconnectedGradients.ZERO).numpy(), [0.0, 0.0])
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'nonsense'"):
        accumulator.jvp(y, unconnected_gradients="nonsense")


def test_stop_gradient_cuts_tangents_too():
    """T67."""
    x = tf.constant(3.0)
    with Accumulator(x, 1.0) as accumulator:
        stopped, product = tf.stop_gradient(x), tf.stop_gradient(x) * x
    assert accumulator.jvp(stopped) is None
    assert accumulator.jvp(product).numpy() == 3.0


# Entering -------------------------------------------------------------------------------------------------------------


def test_operations_outside_the_block_have_no_tangent_and_entering_again_continues():
    """T80."""
    x = tf.constant(3.0)
    accumulator = Accumulator(x, 1.0)
    with accumulator:
        y = x * x
    outside = y * y
    with accumulator:
        z = y * 2.0
    assert accumulator.jvp(outside) is None
    assert accumulator.jvp(z).numpy() == 12.0


def test_entering_an_active_accumulator_is_refused():
    """T80."""
    with Accumulator(tf.constant(1.0), 1.0) as accumulator, pytest.raises(ValueError, match="already recording"):
        accumulator.__enter__()


def test_the_order_of_entering_is_that_of_differentiating():
    """T81: the outer one sees the inner one's tangents, not the other way round."""
    x = tf.constant(2.0)
    first, second = Accumulator(x, 1.0), Accumulator(x, 1.0)  # making them in another order changes nothing
    with second as outer, first as inner:
        y = x**3
        tangent = inner.jvp(y)
    assert outer.jvp(tangent).numpy() == 12.0
    assert inner.jvp(outer.jvp(y)) is None


def test_five_accumulators_give_the_fifth_derivative():
    """T81: of x**5."""
    assert forward_derivative(tf.constant(1.5, dtype="float64"), 5).numpy() == pytest.approx(120.0, rel=1e-14)


def forward_derivative(x, order):
    """The derivative of x**5 of one order, by nested accumulators."""
    if order == 0:
        return x**5
    with Accumulator(x, 1.0) as accumulator:
        lower = forward_derivative(x, order - 1)
    return accumulator.jvp(lower)


# With tapes -----------------------------------------------------------------------------------------------------------


def test_forward_over_back_is_the_hessian_times_the_direction():
    """T82: if the gradient is taken inside; after the block there is nothing."""
    x = tf.Variable([1.0, 2.0])
    with Accumulator(x, [1.0, 10.0]) as accumulator:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(x**3) * x[0]
        gradient = tape.gradient(y, x)
    hessian = np.array([[12.0, 12.0], [12.0, 12.0]])
    np.testing.assert_allclose(accumulator.jvp(gradient).numpy(), hessian @ [1.0, 10.0])
    with Accumulator(x, [1.0, 10.0]) as accumulator, tf.GradientTape() as tape:
        y = tf.reduce_sum(x**3)
    assert accumulator.jvp(tape.gradient(y, x)) is None


def test_back_over_forward_is_the_same_product():
    """T83."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        with Accumulator(x, [1.0, 10.0]) as accumulator:
            y = tf.reduce_sum(x**3) * x[0]
        slope = accumulator.jvp(y)
    np.testing.assert_allclose(tape.gradient(slope, x).numpy(), [132.0, 132.0])


def test_a_tape_inside_does_not_see_the_tangents_of_the_outer_accumulator():
    """T83."""
    x = tf.Variable(2.0)
    with Accumulator(x, 1.0) as accumulator, tf.GradientTape() as tape:
        y = x**3
        slope = accumulator.jvp(y)
    assert slope.numpy() == 12.0 and tape.gradient(slope, x) is None


def test_a_variable_keeps_its_tangent_when_it_is_assigned():
    """T84."""
    v = tf.Variable(2.0)
    with Accumulator(v, 10.0) as accumulator:
        before = v * v
        v.assign(5.0)
        after = v * v
    assert accumulator.jvp(before).numpy() == 40.0
    assert accumulator.jvp(after).numpy() == 100.0


def test_the_rule_of_a_custom_gradient_is_used_forward():
    """T84: for a forward that NumPy computes; the rule is linear in the upstream, so its transpose is the tangent."""

    @tf.custom_gradient
    def cube(x):
        return tf.constant(x.numpy() ** 3), lambda upstream: upstream * 3.0 * x**2

    x = tf.constant([1.0, 2.0])
    with Accumulator(x, [1.0, 10.0]) as accumulator:
        y = cube(x)
    np.testing.assert_allclose(accumulator.jvp(y).numpy(), [3.0, 120.0])


def test_an_operation_without_a_gradient_refuses():
    """T75."""
    image = tf.ones((2, 2, 1))
    with Accumulator(image, tf.ones((2, 2, 1))), pytest.raises(LookupError, match="AdjustContrastv2") as caught:
        tf.image.adjust_contrast(image, 2.0)
    assert type(caught.value) is LookupError


def test_a_model_is_differentiated_along_all_its_variables():
    """A direction for each variable: <gradient, direction>."""
    layer = tf.keras.layers.Dense(3, activation="tanh")
    x = tf.constant(np.random.default_rng(0).normal(size=(4, 2)).astype("float32"))
    layer(x)
    variables = layer.trainable_variables
    directions = [tf.ones_like(v) for v in variables]
    with Accumulator(variables, directions) as accumulator, tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x) ** 2)
    expected = sum(float(tf.reduce_sum(g)) for g in tape.gradient(loss, variables))
    np.testing.assert_allclose(accumulator.jvp(loss).numpy(), expected, rtol=1e-5)


def test_tangents_go_with_their_results():
    x = tf.Variable(tf.ones([1000]))
    with tf.autodiff.ForwardAccumulator(x, tf.ones([1000])) as accumulator:
        y = x * 1.0
        for _ in range(50):
            y = tf.sin(y)
        assert len(accumulator._tangents) <= 3, "of the Variable, of the last result and of the one before"
        kept = [tf.cos(y), y[:3]]
    assert accumulator.jvp(y) is not None and accumulator.jvp(x) is not None
    assert [one is not None for one in accumulator.jvp(kept)] == [True, True]
    del y, kept
    assert len(accumulator._tangents) == 1 and not accumulator._alive


def test_the_tangent_of_a_part_of_a_variable_is_kept():
    x = tf.Variable([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([3.0, 4.0])) as accumulator:
        part = x[1]
        y = part * part
    assert float(accumulator.jvp(part)) == 4.0 and float(accumulator.jvp(y)) == 16.0
