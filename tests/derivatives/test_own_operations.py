"""Operations from user code obey the laws that those of the package obey."""

import batched_laws
import forward_laws
import laws
import numpy as np
import pytest
from in_one_test import in_one_test
from specimens.table import normal, positive, row

import minikeras as tf

ad = tf.autodiff

# Rules with tf functions, with operators, with several inputs and results, with parameters.
lambert = ad.elementwise(
    "x_exp_x",
    lambda xp, x: x * xp.exp(x),
    lambda x, y: tf.exp(x) + y,
)
hypotenuse = ad.elementwise("hypotenuse", "hypot", lambda a, b, y: a / y, lambda a, b, y: b / y)
scaled = ad.elementwise("scaled", lambda xp, x, factor: x * factor, lambda x, y, factor: factor * tf.ones_like(x))
flip = ad.linear("flip", lambda xp, x: x[..., ::-1], lambda g, x: tf.reverse(g, [-1]))
dot = ad.bilinear(
    "dot",
    lambda xp, a, b: (a * b).sum(-1),
    lambda g, a, b: tf.expand_dims(g, -1) * b,
    lambda g, a, b: tf.expand_dims(g, -1) * a,
)
norm_and_direction = ad.primitive(
    "norm_and_direction",
    lambda xp, x: (xp.sqrt((x * x).sum(-1)), x / xp.sqrt((x * x).sum(-1, keepdims=True))),
    lambda g, y, x: g[0][..., None] * y[1] + (g[1] - y[1] * tf.reduce_sum(g[1] * y[1], -1, keepdims=True)) / y[0][..., None],
    batching="keep",
)
looping = ad.primitive("looping", lambda xp, x: xp.sum(x * x), lambda g, y, x: 2.0 * g * x)

SPECIMENS = [
    row(lambert, normal(3, 2), lambda x: x * np.exp(x)),
    row(hypotenuse, (positive(3, 2), positive(2)), np.hypot, analytic=False),
    row(scaled, normal(3), lambda x: 2.5 * x, factor=2.5),
    row(flip, normal(2, 3), lambda x: x[..., ::-1]),
    row(dot, (normal(2, 3), normal(2, 3)), lambda a, b: (a * b).sum(-1)),
    row(norm_and_direction, normal(2, 3), lambda x: [n := np.sqrt((x * x).sum(-1)), x / n[:, None]]),
    row(looping, normal(2, 3), lambda x: (x * x).sum()),
]
LAWS = [
    laws.forward_is_the_reference,
    laws.float32_stays_float32,
    laws.strides_do_not_matter,
    laws.inputs_stay_as_they_are,
    laws.arrays_give_what_tensors_give,
    laws.gradient_is_the_derivative,
    laws.gradient_is_the_same_under_an_outer_tape,
    laws.forward_and_backward_are_transposes,
    laws.second_derivative_is_the_derivative_of_the_gradient,
    forward_laws.tangent_is_the_derivative,
    forward_laws.hessian_products_agree,
    batched_laws.jacobian_is_its_rows,
    batched_laws.nested_maps_are_nested_loops,
]


@in_one_test(law=LAWS, specimen=SPECIMENS)
def test_an_operation_of_ones_own_obeys_the_law(specimen, law):
    law(specimen)


@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
def test_an_operation_of_ones_own_goes_through_stacks(specimen):
    for pattern in batched_laws.patterns(specimen):
        batched_laws.batched_is_looped(specimen, pattern)
        batched_laws.batched_gradients_are_looped_gradients(specimen, pattern)


@pytest.mark.host
def test_what_loops_is_counted():
    before = ad.loop_fallbacks["looping"]
    np.testing.assert_allclose(tf.vectorized_map(looping, tf.constant([[1.0], [2.0]])).numpy(), [1.0, 4.0])
    assert ad.loop_fallbacks["looping"] == before + 1


def test_a_definition_may_be_run_again():
    """No registry refuses the name, not even that of an operation of the package."""
    for _ in range(2):
        assert ad.elementwise("add", lambda xp, x: 2 * x, lambda x, y: 2.0)(tf.constant(1.0)).numpy() == 2.0
