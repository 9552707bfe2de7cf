"""Section `chain`: 100 times multiply and sin on a scalar, forward and backward: the cost of an operation alone."""

import math
from typing import Any

import numpy as np

from . import clock
from .candidates import Step
from .executors import OWN
from .settings import Settings
from .worker import Prepared, workers

LENGTH = 100
FACTOR = 1.01
START = 0.5


def _numpy() -> Step:
    sin, cos, factor, start = np.sin, np.cos, np.float32(FACTOR), np.float32(START)

    def step() -> Any:
        y, inputs = start, []
        for _ in range(LENGTH):
            z = y * factor
            inputs.append(z)
            y = sin(z)
        g = np.float32(1)
        for z in reversed(inputs):
            g = g * cos(z) * factor
        return g

    return step


def _own() -> Step:
    import minikeras as tf

    return _tape(tf)


def _tape(tf: Any) -> Step:
    x, sin = tf.constant(START), tf.sin

    def step() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(LENGTH):
                y = sin(y * FACTOR)
        return tape.gradient(y, x)

    return step


def _torch() -> Step:
    from .peers import threaded_torch

    torch = threaded_torch()
    x = torch.tensor(START, requires_grad=True)
    sin, gradient = torch.sin, torch.autograd.grad

    def step() -> Any:
        y = x
        for _ in range(LENGTH):
            y = sin(y * FACTOR)
        return gradient(y, x)[0]

    return step


def _tensorflow() -> Step:
    import tensorflow as tf

    return _tape(tf)


def _tensorflow_function() -> Step:
    import tensorflow as tf

    return tf.function(_tape(tf))  # type: ignore[no-any-return]


def _jax() -> Step:
    import jax
    import jax.numpy as jnp

    def chain(y: Any) -> Any:
        for _ in range(LENGTH):
            y = jnp.sin(y * FACTOR)
        return y

    gradient, x = jax.jit(jax.grad(chain)), jnp.float32(START)
    return lambda: gradient(x)


def _autograd() -> Step:
    import autograd
    import autograd.numpy as anp

    def chain(y: Any) -> Any:
        for _ in range(LENGTH):
            y = anp.sin(y * FACTOR)
        return y

    gradient = autograd.grad(chain)
    return lambda: gradient(START)


def _mygrad() -> Step:
    import mygrad as mg

    mg.turn_memory_guarding_off()
    sin = mg.sin

    def step() -> Any:
        x = mg.tensor(START, dtype="float32")
        y = x
        for _ in range(LENGTH):
            y = sin(y * FACTOR)
        y.backward()
        return x.grad

    return step


_SETUPS = {
    "NumPy by hand": ("numpy", _numpy),
    OWN: ("minikeras", _own),
    "PyTorch eager": ("torch", _torch),
    "JAX jit": ("jax", _jax),
    "TensorFlow eager": ("tensorflow", _tensorflow),
    "tf.function": ("tensorflow", _tensorflow_function),
    "HIPS autograd": ("autograd", _autograd),
    "MyGrad": ("mygrad", _mygrad),
}


def expected() -> float:
    """The derivative, in Python's floats."""
    y, slope = START, 1.0
    for _ in range(LENGTH):
        slope *= FACTOR * math.cos(FACTOR * y)
        y = math.sin(FACTOR * y)
    return slope


def prepare(name: str) -> Prepared:
    """A candidate's step and its derivative."""
    step = _SETUPS[name][1]()
    return Prepared(float(step()), step)


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row for every candidate; `agrees` says whether its derivative is right."""
    names = [name for name, (needs, _) in _SETUPS.items() if settings.has(needs)]
    with workers("chain", {name: (name,) for name in names}) as processes:
        right = {name: math.isclose(process.answer, expected(), rel_tol=1e-3) for name, process in processes.items()}
        seconds = clock.compare(processes, settings.rounds, settings.block)
    title = f"{LENGTH} x (multiply, sin) on a scalar"
    return [{**row, "agrees": right[row["candidate"]]} for row in clock.rows("chain", title, seconds, OWN)]
