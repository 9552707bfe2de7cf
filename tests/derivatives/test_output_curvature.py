"""J^T H J row by row where rows are apart, and whole where they meet: the same numbers either way."""

import numpy as np
import pytest

import minikeras as tf
from minikeras import keras
from minikeras.derivatives.output_curvature import OutputCurvature

layers = keras.layers
GENERATOR = np.random.default_rng(0)


def normal(*shape):
    return tf.constant(np.random.default_rng(sum(shape)).normal(size=shape))


def sequential(*stack, shape, dtype="float64"):
    tf.random.set_seed(1)
    return keras.Sequential([keras.Input(shape, dtype=dtype), *stack])


def dense(units, activation=None):
    return layers.Dense(units, activation, dtype="float64")


APART = {
    "dense": (sequential, [lambda: dense(4, "tanh"), lambda: dense(3)], (6, 5)),
    "one_column": (sequential, [lambda: dense(4, "relu"), lambda: dense(1)], (7, 2)),
    "kernel_with_as_many_rows": (sequential, [lambda: dense(4, "tanh"), lambda: dense(2)], (5, 5)),
    "steps": (sequential, [lambda: dense(3, "gelu"), lambda: layers.LayerNormalization(dtype="float64")], (4, 3, 2)),
    "pictures": (
        sequential,
        [
            lambda: layers.Conv2D(2, 2, activation="tanh", dtype="float64"),
            lambda: layers.Flatten(dtype="float64"),
            lambda: dense(2),
        ],
        (5, 3, 3, 1),
    ),
}


def parts(name):
    make, stack, shape = APART[name]
    model, x = make(*[one() for one in stack], shape=shape[1:]), normal(*shape)
    return model, lambda: model(x, training=True)


def by_rows(outputs, variables, loss=lambda z: tf.reduce_sum(tf.exp(z))):
    curvature = OutputCurvature.run(outputs, loss, variables)
    return curvature, curvature._jacobian_by_rows(variables)


@pytest.mark.parametrize("name", APART)
def test_the_jacobian_by_rows_is_the_jacobian(name):
    model, outputs = parts(name)
    _, found = by_rows(outputs, model.trainable_variables)
    assert found is not None
    expected = tf.autodiff.jacobian(outputs, model.trainable_variables).numpy().reshape(found.shape)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-12)


def test_a_vector_of_residuals_has_rows_of_one_element():
    w, x = tf.Variable([1.0, 2.0], dtype="float64"), normal(6)
    outputs = lambda: w[0] * tf.exp(w[1] * x)
    _, found = by_rows(outputs, [w])
    np.testing.assert_allclose(found.numpy(), tf.autodiff.jacobian(outputs, [w]).numpy(), rtol=1e-9)


def test_a_layer_that_is_used_twice_and_rows_that_are_looked_up():
    tf.random.set_seed(2)
    table, shared = layers.Embedding(9, 3, dtype="float64"), dense(3, "tanh")
    ids = tf.constant([[1, 2], [2, 2], [8, 0], [1, 1]])
    outputs = lambda: tf.reduce_sum(shared(shared(table(ids))), axis=1)
    outputs()
    variables = [*table.trainable_variables, *shared.trainable_variables]
    matrix = tf.autodiff.gauss_newton(outputs, lambda z: tf.reduce_sum(z**2), variables).numpy()
    j = tf.autodiff.jacobian(outputs, variables).numpy().reshape(12, -1)
    np.testing.assert_allclose(matrix, 2.0 * j.T @ j, rtol=1e-9, atol=1e-12)


COUPLED = {
    "batch_normalization": lambda x: layers.BatchNormalization(dtype="float64")(x, training=True),
    "a_row_minus_the_next": lambda x: x - tf.roll(x, 1, axis=0),
    "sorted_rows": lambda x: tf.sort(x, axis=0),
    "products_of_rows": lambda x: tf.matmul(x, tf.matmul(x, x, transpose_a=True)),
    "softmax_over_rows": lambda x: tf.nn.softmax(x, axis=0),
}


@pytest.mark.parametrize("name", COUPLED)
def test_rows_that_meet_in_the_model_are_noticed(name):
    tf.random.set_seed(3)
    layer, x = dense(3), normal(6, 4)
    layer(x)
    outputs = lambda: COUPLED[name](layer(x))
    curvature, found = by_rows(outputs, layer.trainable_variables)
    assert found is None
    j = tf.autodiff.jacobian(outputs, layer.trainable_variables).numpy().reshape(18, -1)
    np.testing.assert_allclose(curvature.jacobian(layer.trainable_variables).numpy(), j, rtol=1e-9, atol=1e-12)


def test_rows_that_meet_in_the_loss_are_noticed():
    model, outputs = parts("dense")
    variables = model.trainable_variables
    for loss, apart in (
        (lambda z: tf.reduce_sum(tf.exp(z)), True),
        (lambda z: tf.reduce_mean(tf.reduce_sum(z**2, axis=1) ** 2), True),
        (lambda z: tf.reduce_sum(z) ** 2, False),
        (lambda z: tf.reduce_sum(z[0] * z[1] ** 2), False),
    ):
        curvature, _ = by_rows(outputs, variables, loss)
        assert (curvature.row_hessians() is not None) == apart
        z = tf.Variable(outputs())
        j = tf.autodiff.jacobian(outputs, variables).numpy().reshape(18, -1)
        h = tf.autodiff.hessian(lambda z=z, loss=loss: loss(z), [z]).numpy()
        np.testing.assert_allclose(curvature.matrix().numpy(), j.T @ h @ j, rtol=1e-9, atol=1e-11)
        v = GENERATOR.normal(size=j.shape[1])
        flat = tf.autodiff.ggnvp(outputs, loss, variables, tf.constant(v)).numpy()
        np.testing.assert_allclose(flat, j.T @ (h @ (j @ v)), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("rows", [1, 2, 7, 64])
def test_rows_are_apart_also_where_the_loss_is_saturated(rows):
    """The Hessian of a softmax that is sure of the label is all rounding; taken whole it would be rows * 5 squared."""
    labels = tf.constant(np.arange(rows) % 5)
    z = tf.Variable(20.0 * tf.one_hot(labels, 5) + 0.1 * tf.cast(normal(rows, 5), "float32"))
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    curvature = OutputCurvature.run(lambda: z * 1.0, lambda logits: loss_of(labels, logits), [z])
    blocks = curvature.row_hessians()
    assert blocks is not None and blocks.shape == (rows, 5, 5)
    whole = tf.autodiff.hessian(lambda: loss_of(labels, z), [z]).numpy().reshape(rows, 5, rows, 5)
    np.testing.assert_allclose(blocks.numpy(), np.einsum("ninj->nij", whole), atol=1e-8)
    meeting = OutputCurvature.run(lambda: z * 1.0, lambda a: loss_of(labels, a) + 1e-6 * a[0, 0] * a[rows - 1, 1], [z])
    assert (meeting.row_hessians() is None) == (rows > 1)


def test_a_block_is_a_part_of_the_matrix():
    model, outputs = parts("dense")
    variables = model.trainable_variables
    curvature, _ = by_rows(outputs, variables)
    whole = curvature.matrix().numpy()
    np.testing.assert_allclose(curvature.matrix([2, 3]).numpy(), whole[24:, 24:], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(whole, whole.T)


def test_no_rows_and_unconnected_variables_have_zeros():
    model, _ = parts("dense")
    other = tf.Variable([1.0, 2.0], dtype="float64")
    for rows in (0, 1, 3):
        x = normal(rows, 5)
        matrix = tf.autodiff.gauss_newton(
            lambda x=x: model(x), lambda z: tf.reduce_sum(z**2), [*model.trainable_variables, other]
        )
        assert matrix.shape == (41, 41)
        np.testing.assert_array_equal(matrix.numpy()[39:], 0.0)


def test_numbers_that_are_not_finite_stay_so():
    w = tf.Variable([1.0, np.nan], dtype="float64")
    matrix = tf.autodiff.gauss_newton(lambda: tf.exp(w) * normal(2), lambda z: tf.reduce_sum(z**2), [w])
    assert np.isnan(matrix.numpy()).any()
