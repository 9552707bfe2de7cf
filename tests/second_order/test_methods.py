"""Gauss-Newton, Levenberg-Marquardt, NewtonCG, LBFGS, AdaHessian and KFAC: what each promises."""

import numpy as np
import pytest
from second_order.problems import breast_cancer_regression, data, gradient_norm, network, objective, quadratic, rosenbrock
from slow import mostly_slow

import minikeras as tf
from minikeras import keras
from minikeras.derivatives.flat import flatten, unflatten
from minikeras.keras.optimizers.second_order.kfac import layer_factors
from minikeras.keras.optimizers.second_order.lbfgs import CURVATURE, strong_wolfe, two_loops
from minikeras.keras.optimizers.second_order.newton import steihaug
from minikeras.keras.optimizers.second_order.problem import SUFFICIENT, LossProblem, run_objective

optimizers = keras.optimizers


def curve(noise=0.0):
    """Variables and objective of fitting a exp(b x) to 2 exp(-1.5 x)."""
    x = tf.constant(np.linspace(0.0, 1.0, 20))
    w = tf.Variable([1.0, 1.0], dtype=tf.float64)
    wave = tf.constant(noise * np.sin(40 * np.linspace(0.0, 1.0, 20)))
    residuals = lambda: w[0] * tf.exp(w[1] * x) - 2.0 * tf.exp(-1.5 * x) + wave
    return w, optimizers.Objective(residuals, lambda r: tf.reduce_sum(r**2) / 2.0)


def test_linear_least_squares_take_one_gauss_newton_step():
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(9, 4)), generator.normal(size=9)
    w = tf.Variable(np.zeros(4))
    residuals = lambda: tf.linalg.matvec(tf.constant(a), w) - tf.constant(b)
    optimizers.GaussNewton().minimize(optimizers.Objective(residuals, lambda r: tf.reduce_sum(r**2) / 2.0), [w])
    np.testing.assert_allclose(w.numpy(), np.linalg.lstsq(a, b, rcond=None)[0], rtol=1e-9)


def test_levenberg_marquardt_fits_a_curve():
    w, fit = curve()
    optimizer = optimizers.LevenbergMarquardt()
    for _ in range(15):
        optimizer.minimize(fit, [w])
    np.testing.assert_allclose(w.numpy(), [2.0, -1.5], rtol=1e-8)


def test_levenberg_marquardt_finds_what_scipy_finds():
    optimize = pytest.importorskip("scipy.optimize")
    w, fit = curve(noise=0.1)
    optimizer = optimizers.LevenbergMarquardt()
    for _ in range(40):
        optimizer.minimize(fit, [w])
    x = np.linspace(0.0, 1.0, 20)
    by_hand = lambda v: v[0] * np.exp(v[1] * x) - 2.0 * np.exp(-1.5 * x) + 0.1 * np.sin(40 * x)
    found = optimize.least_squares(by_hand, [1.0, 1.0], method="lm", xtol=1e-14, ftol=1e-14, gtol=1e-14)
    np.testing.assert_allclose(w.numpy(), found.x, rtol=1e-6)


@pytest.mark.parametrize("penalized", [False, True])
def test_the_gauss_newton_matrix_and_its_product_agree(penalized):
    model = network(kernel_regularizer="l2" if penalized else None)
    x, labels, _ = data()
    plain = objective(model, x, labels)
    penalty = (lambda: tf.add_n(model.losses)) if penalized else None
    fit = optimizers.Objective(plain.outputs, plain.loss_of_outputs, penalty)
    variables = model.trainable_variables
    curvature = run_objective(fit, variables, None)
    matrix = curvature.matrix().numpy()
    vector = np.random.default_rng(3).normal(size=len(matrix))
    product = flatten(curvature.product(unflatten(tf.constant(vector), variables)))
    np.testing.assert_allclose(product, matrix @ vector, rtol=1e-9, atol=1e-12)
    if penalized:
        bare = run_objective(plain, variables, None).matrix().numpy()
        extra = np.diag(np.concatenate([np.full(v.numpy().size, 0.02 * (v.numpy().ndim == 2)) for v in variables]))
        np.testing.assert_allclose(matrix - bare, extra, atol=1e-12)


@pytest.mark.parametrize("kind", [optimizers.GaussNewton, optimizers.LevenbergMarquardt, optimizers.KFAC])
def test_methods_that_use_the_structure_ask_for_an_objective(kind):
    w, loss = rosenbrock()
    with pytest.raises(TypeError, match="Objective"):
        kind().minimize(loss, [w])
    np.testing.assert_array_equal(w.numpy(), [-1.2, 1.0])


def decay(scale=(1.0, 1.0)):
    """Two parameters in units of a choice, the residuals of a curve, and the objective."""
    x = tf.linspace(tf.constant(0.0, tf.float64), 1.0, 9)
    w = tf.Variable(np.array([1.0, 1.0]) / scale)
    residuals = lambda: w[0] * scale[0] * tf.exp(w[1] * scale[1] * x) - 2.0 * tf.exp(-1.5 * x)
    return w, residuals, optimizers.Objective(residuals, lambda r: tf.reduce_sum(r**2) / 2.0)


def test_an_accelerated_step_is_its_formula():
    w, residuals, fit = decay()
    before, r = w.numpy(), residuals().numpy()
    j = tf.autodiff.jacobian(residuals, [w]).numpy()
    a, damping = j.T @ j, 0.5
    system = a + damping * np.diag(np.diag(a))
    s = np.linalg.solve(system, -j.T @ r)
    x, h = w.numpy(), 1e-4
    ahead, behind = (np.array(residuals()) for _ in map(w.assign, (x + h * s, x - h * s)))
    bend = np.linalg.solve(system, -j.T @ ((ahead - 2.0 * r + behind) / h**2))
    w.assign(before)
    optimizer = optimizers.LevenbergMarquardt(damping=damping, scaling=True, acceleration=2.0)
    optimizer.minimize(fit, [w])
    np.testing.assert_allclose(w.numpy() - before, s + bend / 2.0, rtol=1e-6)
    np.testing.assert_allclose(optimizer.slot(w, "scale").numpy(), np.diag(a), rtol=1e-12)
    norm = lambda v: float(np.sqrt(v @ (np.diag(a) * v)))
    w.assign(before)
    short = optimizers.LevenbergMarquardt(damping=damping, scaling=True, acceleration=0.99 * norm(bend) / norm(s))
    short.minimize(fit, [w])
    assert norm(w.numpy() - before) < norm(s), "a step that bends too much is refused, and damped more"


def test_with_scaling_the_units_of_parameters_do_not_matter():
    paths = []
    for scale in ((1.0, 1.0), (1e-6, 4096.0)):
        w, _, fit = decay(scale)
        optimizer = optimizers.LevenbergMarquardt(scaling=True, acceleration=0.75)
        paths.append([float(optimizer.minimize(fit, [w])) for _ in range(12)])
        np.testing.assert_allclose(w.numpy() * scale, [2.0, -1.5], rtol=1e-6)
    np.testing.assert_allclose(*paths, rtol=1e-6, atol=1e-20)


def test_where_the_outputs_have_no_second_derivative_a_step_is_not_accelerated():
    ends = []
    for acceleration in (None, 0.75):
        w = tf.Variable([0.0, 3.0], dtype=tf.float64)
        fit = optimizers.Objective(lambda w=w: w[0] ** 1.5 + w - 1.0, lambda r: tf.reduce_sum(r**2))
        optimizers.LevenbergMarquardt(acceleration=acceleration).minimize(fit, [w])
        ends.append(w.numpy())
    np.testing.assert_array_equal(*ends)
    assert (ends[0] != [0.0, 3.0]).all()


@pytest.mark.host
def test_products_with_the_hessian_are_those_of_the_matrix():
    model = network()
    x, labels, _ = data()
    problem = LossProblem(objective(model, x, labels), model.trainable_variables)
    problem.record()
    h = tf.autodiff.hessian(problem.loss_fn, model.trainable_variables).numpy()
    vector = np.random.default_rng(4).normal(size=len(h))
    np.testing.assert_allclose(problem.product(vector), h @ vector, rtol=1e-9, atol=1e-12)
    blocks = problem.hessian([[0, 1], [2, 3]])
    np.testing.assert_allclose(blocks.blocks[0], h[:20, :20], rtol=1e-9, atol=1e-12)


def test_conjugate_gradients_solve_a_system_and_stop_at_the_boundary_and_at_negative_curvature():
    generator = np.random.default_rng(5)
    root = generator.normal(size=(6, 6))
    a, g, ones = root @ root.T + np.eye(6), generator.normal(size=6), np.ones(6)
    exact = np.linalg.solve(a, -g)
    step, bent, negative, _ = steihaug(lambda v: a @ v, g * 1e-8, 1e6, 100, ones)
    np.testing.assert_allclose(step, exact * 1e-8, rtol=1e-3)
    np.testing.assert_allclose(bent, a @ step, rtol=1e-9)
    assert not negative
    step, *_ = steihaug(lambda v: a @ v, g, 0.1, 100, ones)
    assert np.linalg.norm(step) == pytest.approx(0.1)
    step, _, negative, _ = steihaug(lambda v: -(a @ v), g, 2.0, 100, ones)
    assert negative and np.linalg.norm(step) == pytest.approx(2.0) and g @ step < 0


@pytest.mark.parametrize("options", [{}, {"preconditioner": "diagonal"}, {"max_iterations": 5}])
def test_newton_cg_converges_on_logistic_regression(options):
    tf.random.set_seed(0)
    variables, loss, *_ = breast_cancer_regression()
    optimizer = optimizers.NewtonCG(**options)
    for _ in range(40):
        optimizer.minimize(loss, variables)
    assert gradient_norm(loss, variables) < 1e-7


def test_newton_cg_with_gauss_newton_curvature_trains_a_network():
    model = network()
    x, labels, _ = data()
    fit, optimizer = objective(model, x, labels), optimizers.NewtonCG(curvature="gauss_newton", damping=1e-4)
    losses = [float(optimizer.minimize(fit, model.trainable_variables)) for _ in range(30)]
    assert losses[-1] < 0.1 * losses[0]
    assert all(later <= earlier + 1e-12 for earlier, later in zip(losses, losses[1:], strict=False))
    assert optimizer.logs()["negative_curvature"] == 0.0


def test_the_two_loops_apply_the_bfgs_matrix():
    generator = np.random.default_rng(6)
    root = generator.normal(size=(5, 5))
    a = root @ root.T + np.eye(5)
    pairs = [(s, a @ s) for s in generator.normal(size=(3, 5))]
    s, y = pairs[-1]
    h = np.eye(5) * (s @ y) / (y @ y)
    for s, y in pairs:
        rho = 1.0 / (s @ y)
        v = np.eye(5) - rho * np.outer(s, y)
        h = v @ h @ v.T + rho * np.outer(s, s)
    g = generator.normal(size=5)
    np.testing.assert_allclose(two_loops(g, pairs), -h @ g, rtol=1e-9)


@pytest.mark.parametrize("far", [1e-3, 0.3, 1.0, 50.0, 1e4])
def test_the_search_ends_where_both_wolfe_conditions_hold(far):
    value = lambda a: -a / far / ((a / far) ** 2 + 2.0)
    slope = lambda a: ((a / far) ** 2 - 2.0) / ((a / far) ** 2 + 2.0) ** 2 / far
    size, loss, gradient, _ = strong_wolfe(lambda a: (value(a), slope(a), np.array(slope(a))), 0.0, slope(0.0), 0.0, 60)
    assert gradient is not None
    assert loss == value(size) <= SUFFICIENT * size * slope(0.0)
    assert abs(slope(size)) <= CURVATURE * abs(slope(0.0))


def test_lbfgs_reaches_the_minimum_and_its_pairs_survive_as_slots():
    w, loss = rosenbrock()
    optimizer = optimizers.LBFGS(memory=4)
    for _ in range(40):
        optimizer.minimize(loss, [w])
    assert float(loss()) < 1e-10
    assert optimizer.slot(w, "steps").shape == (4, 2)
    assert optimizer.logs()["pairs"] == 4.0


def test_lbfgs_stays_where_the_gradient_is_zero():
    w = tf.Variable([0.0, 0.0])
    optimizer = optimizers.LBFGS()
    optimizer.minimize(lambda: tf.reduce_sum(w**2), [w])
    np.testing.assert_array_equal(w.numpy(), [0.0, 0.0])


def test_adahessian_follows_its_equations_where_the_diagonal_is_exact():
    w = tf.Variable([3.0, -2.0], dtype=tf.float64)
    scales = np.array([1.0, 50.0])
    optimizer = optimizers.AdaHessian(0.125, epsilon=1e-3)
    value, m, v = w.numpy(), np.zeros(2), np.zeros(2)
    for t in range(1, 6):
        optimizer.minimize(lambda: tf.reduce_sum(tf.constant(scales) * w**2) / 2.0, [w])
        m, v = 0.9 * m + 0.1 * scales * value, 0.999 * v + 0.001 * scales**2
        value = value - 0.125 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-3)
        np.testing.assert_allclose(w.numpy(), value, rtol=1e-12)


@pytest.mark.host
def test_kfac_factors_of_a_linear_layer_are_those_of_its_gauss_newton_block():
    """For squared error of a linear layer, J^T H J = A (x) G with G = H of one row: 2 I / outputs."""
    tf.random.set_seed(1)
    model = network((3, 2))
    x, _, targets = data(rows=4000)
    fit = optimizers.Objective(lambda: model(x), lambda z: keras.losses.MeanSquaredError()(targets, z))
    problem = LossProblem(fit, model.trainable_variables)
    optimizers.KFAC().record(problem)
    (found,) = layer_factors(problem)
    rows = np.concatenate([x.numpy(), np.ones((4000, 1))], axis=1)
    np.testing.assert_allclose(found.inputs, rows.T @ rows / 4000, rtol=1e-9)
    np.testing.assert_allclose(found.outputs, np.eye(2), atol=0.06)


def test_kfac_trains_in_fewer_steps_than_gradient_descent():
    results = {}
    for name, make in {"kfac": optimizers.KFAC, "sgd": None}.items():
        tf.random.set_seed(2)
        model = network((3, 8, 2))
        x, labels, _ = data(rows=40)
        fit = objective(model, x, labels)
        optimizer = make() if make else optimizers.SGD(0.5)
        for _ in range(25):
            if make:
                optimizer.minimize(fit, model.trainable_variables)
            else:
                with tf.GradientTape() as tape:
                    loss = fit()
                optimizer.apply_gradients(
                    zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
                )
        results[name] = float(fit())
    assert results["kfac"] < 0.7 * results["sgd"]


def test_a_stationary_point_is_left_alone_by_all():
    for kind in (optimizers.Newton, optimizers.NewtonCG, optimizers.LBFGS, optimizers.AdaHessian):
        w, loss, a, b = quadratic([1.0, 2.0])
        w.assign(np.linalg.solve(a, b))
        kind().minimize(loss, [w])
        np.testing.assert_allclose(w.numpy(), np.linalg.solve(a, b), atol=1e-6, err_msg=kind.__name__)


FALLS = {
    "newton": (lambda: optimizers.Newton(), 25, 0.1),
    "trust_region": (lambda: optimizers.Newton(globalization="trust_region"), 25, 0.1),
    "gauss_newton": (lambda: optimizers.GaussNewton(damping=1e-3), 25, 0.05),
    "levenberg": (lambda: optimizers.LevenbergMarquardt(), 25, 0.05),
    "newton_cg": (lambda: optimizers.NewtonCG(), 40, 0.2),
    "lbfgs": (lambda: optimizers.LBFGS(), 60, 0.2),
    "adahessian": (lambda: optimizers.AdaHessian(0.1), 100, 0.3),
    "kfac": (lambda: optimizers.KFAC(), 40, 0.3),
}


@pytest.mark.parametrize("seed", mostly_slow(range(5), 0))
@pytest.mark.parametrize("name", FALLS)
def test_a_network_learns_from_every_start(name, seed):
    """Three classes of a spiral of 60 points: the loss falls to a share of the first one's."""
    make, steps, share = FALLS[name]
    t = np.linspace(0.2, 1.0, 20)
    angles = np.concatenate([2.0 * t + turn for turn in (0.0, 2.1, 4.2)])
    x = tf.constant(np.stack([np.cos(angles), np.sin(angles)], 1) * np.tile(t, 3)[:, None])
    labels = tf.constant(np.repeat([0, 1, 2], 20))
    model = network((2, 10, 3), seed=seed)
    tf.random.set_seed(seed)
    fit, optimizer = objective(model, x, labels), make()
    losses = [float(optimizer.minimize(fit, model.trainable_variables)) for _ in range(steps)]
    assert losses[-1] < share * losses[0]
