"""The program of an eager step keeps parameters and slots in one array; who looks at them cannot tell."""

import numpy as np
import pytest
from optimizer_cases import FORMULAS

import minikeras as tf

SHAPES = [(3, 4), (4,), (), (2, 1, 2)]


def made(name, seed=1):
    generator = np.random.default_rng(seed)
    held = [tf.Variable(generator.normal(size=shape), dtype="float32") for shape in SHAPES]
    return FORMULAS[name](), held


def gradients(step):
    generator = np.random.default_rng(step)
    return [tf.constant(generator.normal(size=shape), "float32") for shape in SHAPES]


def values(optimizer, held):
    return [np.array(variable.numpy()) for variable in (*held, *optimizer.variables)]


@pytest.mark.parametrize("name", FORMULAS)
def test_flattened_steps_are_those_of_each_variable_by_itself(name):
    """Also when a Variable or a slot is assigned on the way, and when only some of them get a gradient."""
    found = []
    for elementwise in (made(name)[0].elementwise, False):
        optimizer, held = made(name)
        optimizer.elementwise = elementwise  # if not, each is updated by itself
        for step in range(20):
            given = list(zip(gradients(step), held, strict=True))
            optimizer.apply_gradients(given[:3] if step == 10 and name != "Adafactor" else given)
            if step in (2, 8, 18):
                held[0].assign(held[0] * 0.5)
                optimizer.variables[-1].assign(optimizer.variables[-1] + optimizer.variables[-1])
        found.append(values(optimizer, held))
    for flattened, alone in zip(*found, strict=True):
        np.testing.assert_array_equal(flattened, alone)


def test_a_value_that_was_read_stays_as_it_is():
    optimizer, held = made("Adam")
    optimizer.apply(gradients(0), held)
    kept = [variable.read_value() for variable in held]
    before = [tensor.numpy() for tensor in kept]
    for step in range(1, 12):
        optimizer.apply(gradients(step), held)
    for tensor, array in zip(kept, before, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), array)


class Wide(tf.keras.optimizers.Optimizer):
    """Its formula gives float64 and truth values, whatever it is given."""

    elementwise = True
    slot_groups = (("last",),)

    def formula(self, step, gradient, value, last):
        return value - np.float64(step) * (gradient + last), gradient > 0


@pytest.mark.host
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("shapes", [[(3,)], [(3,), (2, 2), ()], [(70_000,)]], ids=["one", "several", "large"])
def test_a_formula_that_gives_another_dtype_leaves_variables_what_they_are(shapes, compiled):
    variables = [tf.Variable(tf.ones(shape)) for shape in shapes]
    optimizer = Wide(0.1)
    optimizer.build(variables)
    held = [*variables, *optimizer.variables]
    before = [variable.dtype for variable in held]

    def step():
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(tf.cos(variable)) for variable in variables])
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    step = tf.function(step) if compiled else step
    for _ in range(4):
        step()
    assert [variable.array.dtype for variable in held] == [dtype.as_numpy_dtype for dtype in before]
    expected, last = np.float32(1.0), np.float32(0.0)
    for _ in range(4):
        gradient = -np.sin(expected)
        expected, last = np.float32(expected - np.float64(np.float32(0.1)) * (gradient + last)), np.float32(gradient > 0)
    for variable in variables:
        np.testing.assert_allclose(variable.numpy(), expected, rtol=1e-5)
