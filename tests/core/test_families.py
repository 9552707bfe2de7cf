"""The four families: what is derived from one statement, on toy operations that exist only inside these tests.

The laws: a VJP is the transpose of the derivative, <JVP(t), g> = <t, VJP(g)>, and agrees with a numerical derivative.
Second derivatives of such operations are in tests/derivatives/test_own_operations.py.
"""

import numpy as np
import pytest

import minikeras as tf
from minikeras.core import bilinear, elementwise, linear, primitive
from minikeras.core.families import transposed, unbroadcast
from minikeras.core.registry import operations
from minikeras.errors import ShapeError

random = np.random.default_rng(11)


def arrays(*shapes):
    return [random.normal(size=shape) for shape in shapes]


def directional(operation, inputs, tangents, **params):
    """The derivative along `tangents`, by central differences in float64."""
    step = 1e-6
    moved = [[x + sign * step * t for x, t in zip(inputs, tangents, strict=True)] for sign in (1, -1)]
    return (operation(*moved[0], **params) - operation(*moved[1], **params)) / (2 * step)


def check_rules(operation, *shapes, **params):
    """The derived VJP and JVP of one operation, on bare arrays and, below a tape, on Tensors."""
    inputs, tangents = arrays(*shapes), arrays(*shapes)
    y = operation(*inputs, **params)
    forward = operation.jvp(tangents, y, inputs, params)
    np.testing.assert_allclose(forward, directional(operation, inputs, tangents, **params), rtol=1e-7, atol=1e-8)

    g = random.normal(size=y.shape)
    backward = operation.vjp(range(len(inputs)), g, y, inputs, params)
    assert [c.shape for c in backward] == [x.shape for x in inputs]
    pairing = sum(np.sum(c * t) for c, t in zip(backward, tangents, strict=True))
    np.testing.assert_allclose(pairing, np.sum(forward * g), rtol=1e-10)

    variables = [tf.Variable(x) for x in inputs]
    with tf.GradientTape() as tape:
        y = operation(*[v.value() for v in variables], **params)
    recorded = tape.gradient(y, variables, output_gradients=tf.constant(g))
    for one, other in zip(recorded, backward, strict=True):
        assert one.numpy().tobytes() == np.asarray(other).tobytes(), "the rule gives other bits on Tensors than on arrays"


# Elementwise -----------------------------------------------------------------------------------------------------


def toy_elementwise():
    """x**2 sin(y) + y - 2x, with its two slopes."""
    multiply, sin, cos, add = operations.multiply, operations.sin, operations.cos, operations.add
    return elementwise(
        "toy_elementwise",
        lambda xp, a, b: a * a * xp.sin(b) + b - 2 * a,
        lambda a, b, y: add(multiply(multiply(a, sin(b)), 2), -2),
        lambda a, b, y: add(multiply(multiply(a, a), cos(b)), 1),
    )


@pytest.mark.parametrize(
    "shapes", [((3, 2), (3, 2)), ((3, 2), (2,)), ((1, 2), (3, 1)), ((), (4,)), ((2, 1, 3), (1, 3))], ids=str
)
def test_an_elementwise_operation_is_derived_from_its_slopes(shapes):
    operation = toy_elementwise()
    check_rules(operation, *shapes)


def test_slopes_of_one_and_minus_one_stand_for_themselves():
    operation = elementwise("toy_difference", "subtract", 1, -1)
    check_rules(operation, (3, 2), (2,))
    g = np.ones((3, 2))
    ours, theirs = operation.vjp([0, 1], g, g, [g, np.ones(2)], {})
    assert ours is g, "a slope of one hands the cotangent on without a copy"
    assert theirs.tolist() == [-3.0, -3.0]


def test_an_input_without_slope_gets_no_gradient():
    operation = elementwise("toy_partly", lambda xp, a, b: a * xp.floor(b), lambda a, b, y: operations.floor(b), None)
    x, b = tf.constant(3.0), tf.constant(2.5)
    with tf.GradientTape() as tape:
        tape.watch([x, b])
        y = operation(x, b)
    first, second = tape.gradient(y, [x, b])
    assert first.numpy() == 2.0 and second is None
    assert operation.jvp([None, np.ones(())], np.float64(6), [np.float64(3), np.float64(2.5)], {}) is None


def test_an_operation_without_any_slope_is_not_recorded():
    operation = elementwise("toy_step", lambda xp, a: xp.floor(a), None)
    x = tf.constant(2.5)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = operation(x)
    assert not operation.differentiable
    assert tape.tape.records == []
    assert tape.gradient(y, x) is None


def test_the_jvp_of_a_broadcast_input_has_the_shape_of_the_result():
    operation = elementwise("toy_sum", "add", 1, 1)
    a, b = arrays((3, 2), (2,))
    assert operation.jvp([None, np.ones(2)], a + b, [a, b], {}).shape == (3, 2)


def test_parameters_reach_the_kernel_and_the_slopes():
    operation = elementwise(
        "toy_leaky",
        lambda xp, x, alpha: xp.where(x > 0, x, alpha * x),
        lambda x, y, alpha: operations.select(operations.greater(x, 0), operations.ones_like(x), alpha),
    )
    check_rules(operation, (5,), alpha=0.3)


def test_a_guarded_slope_keeps_a_zero_cotangent_zero():
    plain = elementwise("toy_root", "sqrt", lambda x, y: operations.divide(0.5, y))
    guarded = elementwise("toy_guarded_root", "sqrt", lambda x, y: operations.divide(0.5, y), guarded=True)
    zero = np.zeros(1)
    with np.errstate(all="ignore"):
        assert np.isnan(plain.vjp([0], zero, zero, [zero], {})[0]).all()
    assert guarded.vjp([0], zero, zero, [zero], {})[0].tolist() == [0.0]


def test_the_gradient_of_a_complex_function_uses_the_conjugate_slope():
    operation = elementwise("toy_complex_square", lambda xp, z: z * z, lambda z, y: operations.multiply(z, 2))
    z = tf.constant(1 + 2j)
    with tf.GradientTape() as tape:
        tape.watch(z)
        y = operation(z)
    assert tape.gradient(y, z).numpy() == 2 - 4j


@pytest.mark.parametrize(
    ("shape", "target"),
    [((3, 2), (2,)), ((3, 2), ()), ((3, 2), (3, 1)), ((2, 3, 4), (1, 4)), ((3, 2), (3, 2)), ((1, 2), (1, 2))],
)
def test_unbroadcasting_is_the_transpose_of_broadcasting(shape, target):
    g, x = arrays(shape, target)
    down = unbroadcast(g, x)
    assert down.shape == target
    np.testing.assert_allclose(np.sum(down * x), np.sum(g * np.broadcast_to(x, shape)))


def test_an_error_that_a_kernel_raises_on_purpose_is_not_explained_again():
    """Nor is it made its own cause, which would be a reference cycle."""

    def refuse(xp, x):
        raise ShapeError("said already")

    operation = elementwise("toy_refusing", refuse, 1)
    with pytest.raises(ShapeError, match=r"^said already$") as caught:
        operation(tf.constant(1.0))
    assert caught.value.__cause__ is None


# Linear ----------------------------------------------------------------------------------------------------------


def toy_flip():
    """Reverses the last axis; the transpose is itself."""
    operation = linear("toy_flip", lambda xp, x: x[..., ::-1], lambda g, x: operations.toy_flip(g))
    return operation


def test_a_linear_operation_is_derived_from_its_transpose():
    operation = toy_flip()
    check_rules(operation, (3, 4))


def test_the_jvp_of_a_linear_operation_is_the_operation_itself():
    operation = toy_flip()
    (t,) = arrays((5,))
    assert operation.jvp([t], None, [np.zeros(5)], {}).tolist() == t[::-1].tolist()


def test_a_linear_operation_of_several_inputs_gives_each_its_part():
    operation = linear(
        "toy_join",
        lambda xp, a, b: xp.concatenate([a, b]),
        lambda g, a, b: [
            operations.strided_slice(g, key=(Ellipsis, slice(0, a.shape[0])), shape=tuple(g.shape)),
            operations.strided_slice(g, key=(Ellipsis, slice(a.shape[0], None)), shape=tuple(g.shape)),
        ],
    )
    check_rules(operation, (3,), (2,))
    a, b = arrays((3,), (2,))
    assert operation.jvp([np.ones(3), None], None, [a, b], {}).tolist() == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("other", [5.0, 5, np.full(3, 5.0)], ids=["float", "int", "array"])
def test_a_constant_operand_of_a_linear_operation_has_no_tangent(other):
    """A number stands beside a Tensor as an operand, so its tangent is zero; a mask is no operand and stays."""
    mask, x = np.array([True, False, True]), np.zeros(3)
    moved = operations.select.jvp([None, np.ones(3), None], x, [mask, x, other], {})
    assert moved.tolist() == [1.0, 0.0, 1.0]


# Bilinear --------------------------------------------------------------------------------------------------------


def toy_product():
    """The matrix product, with its two transposes."""
    product, swap = operations.matrix_product, lambda x: operations.transpose(x, perm=(-1, -2))
    return bilinear(
        "toy_product",
        lambda xp, a, b: a @ b,
        lambda g, a, b: product(g, swap(b)),
        lambda g, a, b: product(swap(a), g),
    )


def test_a_bilinear_operation_is_derived_from_its_two_transposes():
    operation = toy_product()
    check_rules(operation, (2, 3), (3, 4))


def test_the_jvp_of_a_bilinear_operation_follows_the_product_rule():
    operation = toy_product()
    a, b, s, t = arrays((2, 3), (3, 4), (2, 3), (3, 4))
    np.testing.assert_allclose(operation.jvp([s, t], a @ b, [a, b], {}), s @ b + a @ t)
    np.testing.assert_allclose(operation.jvp([s, None], a @ b, [a, b], {}), s @ b)
    np.testing.assert_allclose(operation.jvp([None, t], a @ b, [a, b], {}), a @ t)


# Primitive -------------------------------------------------------------------------------------------------------


def toy_cube():
    """x**3, given by its VJP alone."""
    multiply = operations.multiply
    return primitive("toy_cube", lambda xp, x: x**3, lambda g, y, x: multiply(multiply(multiply(x, x), 3), g))


def test_a_primitive_is_derived_from_its_vjp():
    operation = toy_cube()
    check_rules(operation, (3, 2))


def toy_polar():
    """Two results: length and squared length of the vectors along the last axis."""
    multiply, add, kept = operations.multiply, operations.add, {"axes": (-1,), "keepdims": True}

    def rule(g, y, x):
        length = operations.sqrt(operations.reduce_sum(multiply(x, x), **kept))
        return add(multiply(operations.divide(x, length), g[0]), multiply(multiply(x, 2), g[1]))

    def kernel(xp, x):
        squared = (x * x).sum(axis=-1, keepdims=True)
        return xp.sqrt(squared), squared

    return primitive("toy_polar", kernel, rule)


def test_a_primitive_may_have_several_results():
    operation = toy_polar()
    x = tf.constant([[3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        length, squared = operation(x)
    assert (float(length), float(squared)) == (5.0, 25.0)
    np.testing.assert_allclose(tape.gradient(length, x).numpy(), [[0.6, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(squared, x).numpy(), [[6.0, 8.0]])
    np.testing.assert_allclose(tape.gradient([length, squared], x).numpy(), [[6.6, 8.8]], rtol=1e-6)


def test_the_jvp_of_a_primitive_with_several_results_has_as_many_parts():
    operation = toy_polar()
    x, t = np.array([[3.0, 4.0]]), np.array([[1.0, 0.0]])
    length, squared = operation.jvp([t], operation(x), [x], {})
    np.testing.assert_allclose(length, [[0.6]])
    np.testing.assert_allclose(squared, [[6.0]])


def test_an_input_whose_rule_is_missing_gets_none():
    operation = primitive("toy_half", lambda xp, a, b: a * b, lambda g, y, a, b: operations.multiply(g, b), None)
    a, b = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = operation(a, b)
    first, second = tape.gradient(y, [a, b])
    assert first.numpy() == 3.0 and second is None


def test_an_operation_without_vjp_is_an_error_only_on_the_path():
    """T75: a LookupError that names the operation; no error if the source does not depend on it."""
    operation = primitive("toy_opaque", lambda xp, x: x * 2, vjp=None, jvp=None)
    x, z = tf.constant(2.0), tf.constant(5.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, z])
        y = operation(x) + z
    with pytest.raises(LookupError, match=r"^gradient registry has no entry for: toy_opaque$"):
        tape.gradient(y, x)
    assert tape.gradient(y, z).numpy() == 1.0


@pytest.mark.parametrize("bare", [True, False], ids=["arrays", "tensors"])
def test_the_transpose_of_a_map_pairs_like_the_map(bare):
    """<rule(g), t> = <g, transposed(rule)(t)> for every g."""
    matrix, y, t, g = arrays((3, 2), (3,), (2,), (3,))
    lift = (lambda x: x) if bare else tf.constant

    def rule(cotangent):
        column = operations.reshape(cotangent, shape=(3, 1), rank=1)
        return [operations.reduce_sum(operations.multiply(column, lift(matrix)), axes=(-2,), keepdims=False)]

    moved = transposed(rule, lift(y), [lift(t)])
    assert isinstance(moved, tf.Tensor) is not bare
    np.testing.assert_allclose(np.sum(np.asarray(moved) * g), np.sum((g @ matrix) * t))


def test_the_transpose_of_a_map_that_ignores_its_input_is_zero():
    assert transposed(lambda g: [None], np.ones(3), [np.ones(2)]).tolist() == [0.0, 0.0, 0.0]
