"""Section `predict`: the outputs for one row, where nothing but overhead is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import clock
from .by_hand import FreshArrays
from .candidates import Step, keras_model
from .executors import OWN
from .problems import PROBLEMS, Array, Weights, first_weights
from .settings import Settings


def _keras_style(tf: Any, name: str, sizes: tuple[int, ...], weights: Weights, row: Array) -> dict[str, Step]:
    """The model called, and its `predict`."""
    model, x = keras_model(tf.keras, sizes, weights), tf.constant(row)
    return {f"{name} model(x)": lambda: model(x), f"{name} predict": lambda: model.predict(row, verbose=0)}


def _numpy(sizes: tuple[int, ...], weights: Weights, row: Array) -> dict[str, Step]:
    network = FreshArrays(weights)
    return {"NumPy by hand": lambda: network.logits(row)}


def _own(sizes: tuple[int, ...], weights: Weights, row: Array) -> dict[str, Step]:
    import minikeras as tf

    return _keras_style(tf, OWN, sizes, weights, row)


def _tensorflow(sizes: tuple[int, ...], weights: Weights, row: Array) -> dict[str, Step]:
    import tensorflow as tf

    return _keras_style(tf, "TensorFlow", sizes, weights, row)


def _torch(sizes: tuple[int, ...], weights: Weights, row: Array) -> dict[str, Step]:
    from .peers import threaded_torch, torch_model

    torch = threaded_torch()
    model, x = torch_model(sizes, weights), torch.from_numpy(row)

    def step() -> Any:
        with torch.no_grad():
            return model(x)

    return {"PyTorch eager": step}


def _jax(sizes: tuple[int, ...], weights: Weights, row: Array) -> dict[str, Step]:
    import jax
    import jax.numpy as jnp

    def forward(parameters: Any, h: Any) -> Any:
        for kernel, bias in parameters[:-1]:
            h = jax.nn.relu(h @ kernel + bias)
        return h @ parameters[-1][0] + parameters[-1][1]

    compiled = jax.jit(forward)
    parameters = [(jnp.asarray(kernel), jnp.asarray(bias)) for kernel, bias in weights]
    x = jnp.asarray(row)
    return {"JAX jit": lambda: compiled(parameters, x)}


_SETUPS: dict[str, Callable[[tuple[int, ...], Weights, Array], dict[str, Step]]] = {
    "numpy": _numpy,
    "minikeras": _own,
    "torch": _torch,
    "jax": _jax,
    "tensorflow": _tensorflow,
}


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row for every candidate; `agrees` says whether its outputs are NumPy's."""
    sizes = PROBLEMS["small"].sizes
    weights = first_weights(sizes)
    row = np.random.default_rng(2).standard_normal((1, sizes[0])).astype(np.float32)
    steps: dict[str, Step] = {}
    for needs, setup in _SETUPS.items():
        if settings.has(needs):
            steps |= setup(sizes, weights, row)
    reference = FreshArrays(weights).logits(row)
    right = {name: bool(np.allclose(np.asarray(step()), reference, atol=1e-4)) for name, step in steps.items()}
    seconds = clock.compare(steps, settings.rounds, settings.block, finish=np.asarray)
    rows = clock.rows("predict", f"one row, {'-'.join(map(str, sizes))}", seconds, f"{OWN} model(x)")
    return [{**found, "agrees": right[found["candidate"]]} for found in rows]
