"""Section `optimizers`: Adam alone, over one matrix of a million numbers.

The gradient is the same in each step, and all of it between a half and three halves in size. So no mean of gradients
becomes a number so small that processors slow down on it, and it makes no difference that PyTorch adds epsilon elsewhere.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import clock
from .adam import Adam, BufferedAdam
from .candidates import Step
from .executors import OWN, Executor, compiled, installed
from .problems import BETA_1, BETA_2, EPSILON, LEARNING_RATE, Array
from .settings import Settings
from .worker import Prepared, workers

SHAPE = (1000, 1000)
FIRST = 3
Setup = tuple[Step, Callable[[], Any]]
"""A step, and a function that reads the parameters."""


def _naive(w: Array, g: Array) -> Setup:
    parameters = [w]
    adam = Adam(parameters)

    def step() -> None:
        parameters[:] = adam.step(parameters, [g])

    return step, lambda: parameters[0]


def _buffered(w: Array, g: Array) -> Setup:
    adam = BufferedAdam(w)
    return lambda: adam.step(g), lambda: w


def _keras(tf: Any, w: Array, g: Array) -> Setup:
    """By the optimizer of this project's Keras, or of TensorFlow's."""
    parameter, gradient = tf.Variable(w), tf.constant(g)
    optimizer = tf.keras.optimizers.Adam(LEARNING_RATE)
    optimizer.build([parameter])

    def step() -> None:
        optimizer.apply([gradient], [parameter])

    return step, parameter.numpy


def _own(w: Array, g: Array) -> Setup:
    import minikeras as tf

    return _keras(tf, w, g)


def own_compiled(executor: Executor) -> Callable[[Array, Array], Setup]:
    """The setup of this project's compiled step on an executor."""

    def setup(w: Array, g: Array) -> Setup:
        step, read = _own(w, g)
        return compiled(step, executor), read

    return setup


def _tensorflow_function(w: Array, g: Array) -> Setup:
    import tensorflow as tf

    step, read = _keras(tf, w, g)
    return tf.function(step), read


def _torch(kind: str) -> Callable[[Array, Array], Setup]:
    def setup(w: Array, g: Array) -> Setup:
        from .peers import threaded_torch

        torch = threaded_torch()
        parameter = torch.nn.Parameter(torch.from_numpy(w))
        parameter.grad = torch.from_numpy(g)
        optimizer = torch.optim.Adam([parameter], LEARNING_RATE, (BETA_1, BETA_2), EPSILON, **{kind: True})
        return optimizer.step, lambda: parameter.detach().numpy()

    return setup


def _jax(w: Array, g: Array) -> Setup:
    import jax
    import jax.numpy as jnp

    from .peers import jax_adam

    update = jax.jit(jax_adam, donate_argnums=0)
    gradient = jnp.asarray(g)
    state = jnp.array(w), jnp.zeros_like(w), jnp.zeros_like(w), jnp.float32(0)

    def step() -> Any:
        nonlocal state
        state = update(state, gradient)
        return state[0]

    # A copy: what NumPy looks at cannot be given away to the next step.
    return step, lambda: state[0] + 0.0


def _setups(settings: Settings) -> dict[str, Callable[[Array, Array], Setup]]:
    """By name, of those that are installed."""
    found: dict[str, Callable[[Array, Array], Setup]] = {"NumPy by hand": _naive, "NumPy by hand, out=": _buffered, OWN: _own}
    found |= {executor.title: own_compiled(executor) for executor in installed(settings)}
    if settings.has("torch"):
        found |= {f"PyTorch, {kind}": _torch(kind) for kind in ("fused", "foreach")}
    if settings.has("jax"):
        found["JAX jit"] = _jax
    if settings.has("tensorflow"):
        found["tf.function"] = _tensorflow_function
    return found


def _arrived(result: Any) -> None:
    """Wait for JAX; the others have computed when they return."""
    if hasattr(result, "block_until_ready"):
        result.block_until_ready()


def prepare(name: str) -> Prepared:
    """A candidate's step, and every thousandth parameter after its first."""
    random = np.random.default_rng(5)
    w = random.standard_normal(SHAPE).astype(np.float32)
    g = np.copysign(random.uniform(0.5, 1.5, SHAPE), w).astype(np.float32)
    step, read = _setups(Settings())[name](w, g)
    for _ in range(FIRST):
        step()
    return Prepared(np.array(read()).ravel()[::1001].tolist(), step, _arrived)


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row for every candidate; `agrees` says whether its first steps lead where those of NumPy lead."""
    with workers("optimizers", {name: (name,) for name in _setups(settings)}) as processes:
        truth = processes["NumPy by hand"].answer
        right = {name: bool(np.allclose(process.answer, truth, atol=1e-5)) for name, process in processes.items()}
        seconds = clock.compare(processes, settings.rounds, settings.block)
    rows = clock.rows("optimizers", f"Adam alone, {math.prod(SHAPE):,} parameters", seconds, OWN)
    return [{**row, "agrees": right[row["candidate"]]} for row in rows]
