"""Newton's method: exact on quadratics, fast on what is smooth, downhill where curvature is negative."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from second_order.problems import breast_cancer_regression, data, gradient_norm, network, objective, quadratic, rosenbrock

import minikeras as tf
from minikeras import keras
from minikeras.keras.optimizers.second_order.blocks import BlockMatrix, extreme_eigenvalues, factored, positive_solve

Newton = keras.optimizers.Newton
WAYS = [
    {"globalization": None},
    {},
    {"globalization": "damping", "damping": 1e-8},
    {"globalization": "trust_region", "radius": 1e3},
]


@pytest.mark.parametrize("options", WAYS, ids=lambda options: str(options.get("globalization", "default")))
def test_a_convex_quadratic_is_solved_in_one_step(options):
    w, loss, a, b = quadratic([1.0, 3.0, 10.0, 1e3])
    Newton(**options).minimize(loss, [w])
    np.testing.assert_allclose(w.numpy(), np.linalg.solve(a, b), rtol=1e-6)


def test_the_step_is_that_of_the_guides_for_one_kernel():
    """H + eps I, solve, subtract: as one writes it by hand."""
    model = network((3, 2))
    x, labels, _ = data()
    loss = objective(model, x, labels)
    kernel = model.layers[-1].kernel
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            value = loss()
        g = inner.gradient(value, kernel)
    h = tf.reshape(outer.jacobian(g, kernel), [6, 6])
    step = tf.linalg.solve(h + tf.eye(6, dtype=tf.float64) * 1e-3, tf.reshape(g, [6, 1]))
    expected = kernel.numpy() - step.numpy().reshape(3, 2)
    Newton(damping=1e-3, globalization=None).minimize(loss, [kernel])
    np.testing.assert_allclose(kernel.numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize(("options", "most"), [({}, 22), ({"globalization": "trust_region"}, 25)])
def test_rosenbrock_is_left_behind_quickly(options, most):
    w, loss = rosenbrock()
    optimizer, steps = Newton(**options), 0
    while float(loss()) >= 1e-10 and steps < 100:
        optimizer.minimize(loss, [w])
        steps += 1
    assert steps <= most


def test_logistic_regression_converges_in_twelve_steps_to_what_scipy_finds():
    optimize = pytest.importorskip("scipy.optimize")
    variables, loss, rows, labels = breast_cancer_regression()
    optimizer, steps = Newton(), 0
    while gradient_norm(loss, variables) >= 1e-8:
        optimizer.minimize(loss, variables)
        steps += 1
        assert steps <= 12

    def by_hand(v):
        z = rows @ v[:30] + v[30]
        residual = 1 / (1 + np.exp(-z)) - labels
        value = np.mean(np.logaddexp(0, z) - labels * z) + v[:30] @ v[:30] * 0.5 / len(rows)
        return value, np.concatenate([rows.T @ residual / len(rows) + v[:30] / len(rows), [residual.mean()]])

    found = optimize.minimize(by_hand, np.zeros(31), jac=True, method="BFGS", options={"gtol": 1e-11, "maxiter": 5000})
    np.testing.assert_allclose(np.concatenate([variables[0].numpy()[:, 0], variables[1].numpy()]), found.x, atol=1e-6)


@pytest.mark.parametrize("blocks", ["layer", "variable"])
def test_blocks_leave_out_the_curvature_between_them(blocks):
    model = network()
    x, labels, _ = data()
    loss = objective(model, x, labels)
    variables = model.trainable_variables
    before = [v.numpy() for v in variables]
    h, g = tf.autodiff.hessian(loss, variables).numpy(), []
    with tf.GradientTape() as tape:
        value = loss()
    g = np.concatenate([part.numpy().ravel() for part in tape.gradient(value, variables)])
    sizes = [v.numpy().size for v in variables]
    groups = [sizes[0] + sizes[1], sizes[2] + sizes[3]] if blocks == "layer" else sizes
    mask = np.zeros_like(h)
    start = 0
    for size in groups:
        mask[start : start + size, start : start + size] = 1
        start += size
    expected = -np.linalg.solve(h * mask + np.eye(len(h)) * 10.0, g)
    Newton(blocks=blocks, damping=10.0, globalization=None).minimize(loss, variables)
    moved = np.concatenate([(v.numpy() - old).ravel() for v, old in zip(variables, before, strict=True)])
    np.testing.assert_allclose(moved, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("chunk_size", [1, 7, 1000])
def test_chunks_do_not_change_the_step(chunk_size):
    results = []
    for size in (None, chunk_size):
        model = network()
        x, labels, _ = data()
        Newton(damping=0.1, chunk_size=size).minimize(objective(model, x, labels), model.trainable_variables)
        results.append(np.concatenate([v.numpy().ravel() for v in model.trainable_variables]))
    np.testing.assert_allclose(*results, rtol=1e-9)


@pytest.mark.parametrize("repair", ["shift", "eigenvalues"])
def test_a_step_from_negative_curvature_goes_downhill_and_is_counted(repair):
    w, loss, _, _ = quadratic([-2.0, 1.0, 5.0])
    before, optimizer = float(loss()), Newton(repair=repair)
    optimizer.minimize(loss, [w])
    assert float(loss()) < before
    assert optimizer.logs()["indefinite"] == 1.0


def test_absolute_eigenvalues_leave_a_saddle_along_its_descending_direction():
    w = tf.Variable([1.0, 1e-3], dtype=tf.float64)
    Newton(repair="eigenvalues", globalization=None).minimize(lambda: w[0] ** 2 - w[1] ** 2, [w])
    np.testing.assert_allclose(w.numpy(), [0.0, 2e-3], atol=1e-12)


def test_a_direction_without_curvature_does_no_harm():
    w = tf.Variable([3.0, 4.0], dtype=tf.float64)
    Newton().minimize(lambda: w[0] ** 2 + 0.0 * w[1], [w])
    np.testing.assert_allclose(w.numpy(), [0.0, 4.0], atol=1e-6)


def test_adaptive_damping_grows_where_the_model_fails_and_shrinks_where_it_holds():
    w, loss = rosenbrock()
    optimizer = Newton(globalization="damping", damping=1e-6)
    optimizer.minimize(loss, [w])
    for _ in range(30):
        optimizer.minimize(loss, [w])
    assert float(loss()) < 1e-10
    w, loss, _, _ = quadratic([1.0, 2.0])
    optimizer = Newton(globalization="damping", damping=1e-3)
    optimizer.minimize(loss, [w])
    assert optimizer.logs()["damping"] < 1e-3


@given(
    st.lists(st.floats(-3, 3), min_size=1, max_size=6),
    st.floats(0.01, 10),
    st.integers(0, 10**6),
    st.booleans(),
)
@settings(max_examples=60)
def test_the_trust_region_step_is_the_best_within_its_radius(eigenvalues, radius, seed, hard):
    generator = np.random.default_rng(seed)
    size = len(eigenvalues)
    q, _ = np.linalg.qr(generator.normal(size=(size, size)))
    a, g = q @ np.diag(eigenvalues) @ q.T, generator.normal(size=size)
    if hard:
        lowest = q[:, int(np.argmin(eigenvalues))]
        g = g - lowest * (lowest @ g)
    step, multiplier = BlockMatrix([a], [np.arange(size)]).trust_region(g, radius)
    model = lambda s: g @ s + 0.5 * s @ a @ s
    assert np.linalg.norm(step) <= radius * (1 + 1e-6)
    assert multiplier >= 0
    others = generator.normal(size=(300, size))
    others *= radius * generator.random((300, 1)) ** (1 / size) / np.linalg.norm(others, axis=1, keepdims=True)
    edge = others / np.linalg.norm(others, axis=1, keepdims=True) * radius
    best = min(model(s) for s in [*others, *edge])
    assert model(step) <= best + 1e-6 * max(1.0, abs(best))


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=30), st.integers(0, 1000))
@settings(max_examples=50)
def test_extreme_eigenvalues_are_found_by_products(eigenvalues, seed):
    q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(eigenvalues),) * 2))
    lowest, largest = extreme_eigenvalues(q @ np.diag(eigenvalues) @ q.T)
    scale = max(map(abs, eigenvalues), default=1.0)
    assert abs(lowest - min(eigenvalues)) <= 1e-5 * scale + 1e-9
    assert abs(largest - scale) <= 1e-5 * scale + 1e-9


def test_more_parameters_than_allowed_are_refused_before_anything_happens():
    model = network((30, 40, 2))
    x, labels, _ = data(columns=30)
    before = [v.numpy() for v in model.trainable_variables]
    optimizer = Newton(max_parameters=1000)
    with pytest.raises(ValueError, match="1322 parameters are more than max_parameters=1000.* MiB.*NewtonCG"):
        optimizer.minimize(objective(model, x, labels), model.trainable_variables)
    assert int(optimizer.iterations) == 0
    assert all(np.array_equal(v.numpy(), old) for v, old in zip(model.trainable_variables, before, strict=True))


def test_float32_stays_float32():
    w, loss = rosenbrock(tf.float32)
    optimizer = Newton()
    for _ in range(25):
        optimizer.minimize(loss, [w])
    assert w.dtype == tf.float32
    assert float(loss()) < 1e-8


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 96, 97, 513, 700])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_systems_of_all_sizes_are_solved_by_cholesky_and_negative_ones_are_noticed(size, dtype):
    generator = np.random.default_rng(size)
    root = generator.normal(size=(size, size)).astype(dtype)
    a, b = root @ root.T / max(size, 1) + np.eye(size, dtype=dtype), generator.normal(size=size).astype(dtype)
    close = {"rtol": 1e-3, "atol": 1e-4} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-12}
    factor = a.copy()
    factored(factor)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(a), **close)
    for shift in (0.0, 0.5):
        x = positive_solve(a, b, shift)
        assert x.dtype == dtype
        np.testing.assert_allclose(x, np.linalg.solve(a + shift * np.eye(size, dtype=dtype), b), **close)
    if size:
        a[-1, -1] = -1.0
        assert positive_solve(a, b) is None


@pytest.mark.parametrize("size", [20, 100, 337, 600])
def test_systems_in_float32_are_solved_as_exactly_as_by_elimination(size):
    """Near a minimum of a network the matrix is nearly singular, and a method in float32 stops where its solutions do."""
    generator = np.random.default_rng(size)
    turn = np.linalg.qr(generator.standard_normal((size, size)))[0]
    rows = (generator.standard_normal((2 * size, size)) * 10.0 ** (-4 * generator.random(size)) @ turn.T).astype("float32")
    a = rows.T @ rows / np.float32(len(rows))
    b = rows.T @ generator.standard_normal(2 * size).astype("float32") / np.float32(len(rows))
    shift = float(a.diagonal().max()) * 1e-5
    exact = np.linalg.solve(a.astype("float64") + shift * np.eye(size), b.astype("float64"))
    factor = np.linalg.cholesky(a + np.float32(shift) * np.eye(size, dtype="float32"))
    usual = np.linalg.solve(factor.T, np.linalg.solve(factor, b))
    errors = [np.linalg.norm(x - exact) for x in (positive_solve(a, b, shift), usual)]
    assert errors[0] <= (4 if size <= 512 else 40) * errors[1], errors


def test_a_loss_without_curvature_is_followed_downhill():
    w = tf.Variable([1.0, 2.0], dtype=tf.float64)
    Newton().minimize(lambda: w[0] - w[1], [w])
    assert w.numpy()[0] < 1.0 < 2.0 < w.numpy()[1]
