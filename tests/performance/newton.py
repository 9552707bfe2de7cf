"""Section `newton`: full Newton steps, steps to the bottom of a valley, memory of products, Levenberg-Marquardt against Adam.

The steps start from the same weights every time and are compared with one another; what is counted is counted once;
the fits run over five seeds, and every loss along the way is noted with the time when it was known.
"""

import functools
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from . import clock, derivative_candidates
from .candidates import Step
from .derivative_tasks import Numbers, Task, expected, numbers
from .executors import NATIVE, NUMPY, OWN, Executor, compiled
from .peers import threaded_torch
from .settings import Settings
from .worker import Prepared, workers

DAMPING = 10.0
SIZES = ((10, 26, 26, 1), (10, 64, 64, 1))
SEEDS = range(5)

Row = dict[str, Any]
Losses = list[tuple[float, float]]


def measure(settings: Settings) -> list[Row]:
    """All rows of this section."""
    sizes = SIZES[:1] if settings.quick else SIZES
    found = [row for one in sizes for row in newton_steps(settings, one)]
    found += valley(settings)
    found += memory_of_products()
    return found + fits(SEEDS[:1] if settings.quick else SEEDS, 3 if settings.quick else 60)


# One Newton step on all parameters ----------------------------------------------------------------------------------------


def prepare(name: str, sizes: list[int]) -> Prepared:
    """A candidate's step, and whether it solves the equations."""
    task = _task(tuple(sizes))
    given = numbers(task)
    step = _NEWTON[name][1](task, given)
    return Prepared(_solves(task, given, np.asarray(step())), step, np.asarray)


def _task(sizes: tuple[int, ...]) -> Task:
    probe = Task("", "hessian", sizes, 64)
    return probe._replace(chunk=200 if probe.parameters > 2000 else None)


def newton_steps(settings: Settings, sizes: tuple[int, ...]) -> list[Row]:
    """(H + damping) s = -g for a network and a batch of 64, from the same weights every time."""
    task = _task(sizes)
    names = [name for name, (needs, _) in _NEWTON.items() if settings.has(*needs)]
    with workers("newton", {name: (name, sizes) for name in names}) as processes:
        right = {name: process.answer for name, process in processes.items()}
        rounds = min(settings.rounds, 5) if task.chunk else settings.rounds
        seconds = clock.compare(processes, rounds, 0.0 if task.chunk else settings.block)
    title = f"Newton step of {task.parameters:,} parameters, MLP {'-'.join(map(str, sizes))}, batch 64"
    return [{**row, "agrees": right[row["candidate"]]} for row in clock.rows("newton", title, seconds, OWN)]


def _solves(task: Task, given: Numbers, moved: Any) -> bool:
    """Whether a step solves the equations: H s is a difference of gradients in float64."""
    step = moved.ravel().astype(np.float64) - _flat(given)
    along = given._replace(vector=step)
    product = expected(task, along)
    gradient = expected(task._replace(kind="examples"), along).reshape(task.batch, -1).mean(axis=0)
    return bool(np.abs(product + DAMPING * step + gradient).max() <= 1e-3 * np.abs(gradient).max())


def _flat(given: Numbers) -> Any:
    return np.concatenate([part.ravel() for pair in given.weights for part in pair]).astype(np.float64)


def _own_step(task: Task, given: Numbers, executor: Executor | None = None) -> Step:
    import minikeras as tf

    layers = derivative_candidates._layers(tf, given)
    x, targets = tf.constant(given.x), tf.constant(given.targets)
    variables = [weight for layer in layers for weight in layer.trainable_variables]
    first = [tf.constant(variable) for variable in variables]
    newton = tf.keras.optimizers.Newton(damping=DAMPING, globalization=None, chunk_size=task.chunk)

    def loss() -> Any:
        return tf.reduce_mean((derivative_candidates._outputs(layers, x) - targets) ** 2)

    def minimize() -> Any:
        return newton.minimize(loss, variables)

    run = compiled(minimize, executor) if executor else minimize

    def step() -> Any:
        for variable, value in zip(variables, first, strict=True):
            variable.assign(value)
        run()
        return np.concatenate([variable.numpy().ravel() for variable in variables])

    return step


def _torch_step(task: Task, given: Numbers) -> Step:
    torch = threaded_torch()
    _, flat, x, targets, _, _, _, loss = derivative_candidates._functions(torch.tanh, given, torch.from_numpy)
    gradient = torch.func.grad(loss)
    hessian = torch.func.jacrev(gradient, chunk_size=task.chunk)

    def step() -> Any:
        matrix = hessian(flat, x, targets) + DAMPING * torch.eye(len(flat))
        return flat - torch.linalg.solve(matrix, gradient(flat, x, targets))

    return step


def _jax_step(task: Task, given: Numbers) -> Step:
    import jax
    import jax.numpy as jnp

    _, flat, x, targets, _, _, _, loss = derivative_candidates._functions(jnp.tanh, given, jnp.asarray)
    gradient = jax.grad(loss)

    def step(flat: Any, x: Any, targets: Any) -> Any:
        matrix = jax.jacrev(gradient)(flat, x, targets) + DAMPING * jnp.eye(len(flat))
        return flat - jnp.linalg.solve(matrix, gradient(flat, x, targets))

    compiled = jax.jit(step)
    return lambda: compiled(flat, x, targets)


_NEWTON: dict[str, tuple[tuple[str, ...], Callable[[Task, Numbers], Step]]] = {
    OWN: ((OWN,), _own_step),
    NUMPY.title: (NUMPY.needs, functools.partial(_own_step, executor=NUMPY)),
    NATIVE.title: (NATIVE.needs, functools.partial(_own_step, executor=NATIVE)),
    "torch.func": (("torch",), _torch_step),
    "JAX jit": (("jax",), _jax_step),
}


# Steps down Rosenbrock's valley -------------------------------------------------------------------------------------------


def valley(settings: Settings) -> list[Row]:
    """Steps from (-1.2, 1) to a loss below 1e-10: a count, the same on every machine."""
    import minikeras as tf

    def count(optimizer: Any) -> int:
        w = tf.Variable([-1.2, 1.0], dtype=tf.float64)

        def loss() -> Any:
            return 100.0 * (w[1] - w[0] ** 2) ** 2 + (1.0 - w[0]) ** 2

        for step in range(200):
            if float(loss()) < 1e-10:
                return step
            optimizer.minimize(loss, [w])
        return 200

    optimizers = tf.keras.optimizers
    kinds = {OWN: optimizers.Newton(), f"{OWN}, trust region": optimizers.Newton(globalization="trust_region")}
    kinds |= {f"{OWN}, {kind.__name__}": kind() for kind in (optimizers.NewtonCG, optimizers.LBFGS)}
    counts = {name: count(optimizer) for name, optimizer in kinds.items()}
    if settings.has("scipy"):
        counts |= {f"SciPy {name}": _scipy_count(name) for name in ("Newton-CG", "trust-ncg", "trust-exact", "dogleg")}
    return [_row("Rosenbrock from (-1.2, 1) to a loss below 1e-10", name, "steps", float(n)) for name, n in counts.items()]


def _scipy_count(method: str) -> int:
    """Iterations of a method of SciPy until it is there."""
    from scipy import optimize

    there: list[int] = []
    taken = 0

    def watch(point: Any) -> None:
        nonlocal taken
        taken += 1
        if not there and optimize.rosen(point) < 1e-10:
            there.append(taken)

    options = {"jac": optimize.rosen_der, "hess": optimize.rosen_hess, "callback": watch}
    optimize.minimize(optimize.rosen, [-1.2, 1.0], method=method, tol=1e-10, **options)
    return there[0] if there else 200


# Memory of a Hessian-vector product ---------------------------------------------------------------------------------------


def memory_of_products() -> list[Row]:
    """The most memory that Python holds during a product and during a gradient of the same loss."""
    task = Task("", "product", (64, 64, 64, 10), 32)
    steps = derivative_candidates.minikeras(task, numbers(task))
    found = []
    for name, step in steps.items():
        step()
        tracemalloc.start()
        step()
        found.append(_row("memory of a Hessian-vector product", name, "KiB", tracemalloc.get_traced_memory()[1] / 1024))
        tracemalloc.stop()
    for row in found:
        row |= {"own": OWN, "ratio_of_medians": found[0]["median"] / row["median"]}
        row["ratio_of_minima"] = row["ratio_of_medians"]
    return found


# Fitting a curve ----------------------------------------------------------------------------------------------------------


def fits(seeds: Any, steps: int) -> list[Row]:
    """Seconds until the loss of a network of 321 parameters is where it should be; a row a goal and method.

    For each seed Levenberg-Marquardt makes 60 steps, and Adam, with the better of two rates, has twelve times as long. 'Its
    best loss' is the lowest that either reached; who never comes within 1e-4 of that is given all its time, a lower bound.
    """
    goals: dict[str, Callable[[float, float], float]] = {
        "to a ten-thousandth of its first loss": lambda first, best: 1e-4 * first,
        "to a hundred-thousandth of its first loss": lambda first, best: 1e-5 * first,
        "to within 1e-4 of its best loss": lambda first, best: (1.0 + 1e-4) * best,
    }
    names = (f"{OWN} Levenberg-Marquardt", f"{OWN} Adam(1e-2)", f"{OWN} Adam(3e-3)")
    seconds: dict[str, dict[str, list[float]]] = {goal: {name: [] for name in names} for goal in goals}
    for seed in seeds:
        marquardt = _fit("LevenbergMarquardt", {}, seed, steps, np.inf)
        most = 12.0 * marquardt[-1][0]
        runs = [marquardt, *(_fit("Adam", {"learning_rate": rate}, seed, 10**6, most) for rate in (1e-2, 3e-3))]
        best = min(loss for run in runs for _, loss in run)
        for goal, level in goals.items():
            for name, run in zip(names, runs, strict=True):
                seconds[goal][name].append(_reached(run, level(run[0][1], best)))
    title = "MLP 1-16-15-1 fits 200 points, {}: five seeds"
    return [row for goal, found in seconds.items() for row in clock.rows("newton", title.format(goal), found, names[0])]


def _reached(run: Losses, level: float) -> float:
    """When a loss was at a level; the whole time if it never was."""
    return next((moment for moment, loss in run if loss <= level), run[-1][0])


def _fit(kind: str, options: dict[str, Any], seed: int, steps: int, most: float) -> Losses:
    """Train a fresh network; the moment and the loss of every step."""
    import minikeras as tf

    points = np.linspace(-3.0, 3.0, 200, dtype=np.float32)[:, None]
    x, targets = tf.constant(points), tf.constant(np.sin(2.0 * points) * np.exp(-0.2 * points**2))
    tf.random.set_seed(seed)
    hidden = [tf.keras.layers.Dense(units, "tanh", name=f"hidden_{units}") for units in (16, 15)]
    model = tf.keras.Sequential([tf.keras.Input((1,)), *hidden, tf.keras.layers.Dense(1, name="head")])
    fit = tf.keras.optimizers.Objective(lambda: model(x), lambda z: tf.reduce_mean((z - targets) ** 2))
    optimizer, variables = getattr(tf.keras.optimizers, kind)(**options), model.trainable_variables
    found: Losses = []
    start = time.perf_counter()
    while len(found) < steps and (not found or found[-1][0] < most):
        if optimizer.needs_loss:
            loss = optimizer.minimize(fit, variables)
        else:
            with tf.GradientTape() as tape:
                loss = fit()
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        found.append((time.perf_counter() - start, float(loss)))
    return found


def _row(problem: str, name: str, unit: str, number: float) -> Row:
    """A row of one number, counted once."""
    row = {"section": "newton", "problem": problem, "candidate": name, "unit": unit, "blocks": 1}
    return {**row, "median": number, "minimum": number}
