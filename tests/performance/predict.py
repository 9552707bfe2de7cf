"""Section `predict`: the outputs for one row, where nothing but overhead is left."""

from collections.abc import Callable
from typing import Any

import numpy as np

from . import clock
from .by_hand import FreshArrays
from .candidates import Step, keras_model
from .executors import OWN
from .problems import PROBLEMS, Array, Weights, first_weights
from .settings import Settings
from .worker import Prepared, workers


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


_SETUPS: dict[str, tuple[str, Callable[[tuple[int, ...], Weights, Array], dict[str, Step]]]] = {
    "NumPy by hand": ("numpy", _numpy),
    f"{OWN} model(x)": ("minikeras", _own),
    f"{OWN} predict": ("minikeras", _own),
    "PyTorch eager": ("torch", _torch),
    "JAX jit": ("jax", _jax),
    "TensorFlow model(x)": ("tensorflow", _tensorflow),
    "TensorFlow predict": ("tensorflow", _tensorflow),
}
POLICY = (4, 64, 64, 2)
"""The network of an agent that is given one observation."""
NETWORKS = {"one row": PROBLEMS["small"].sizes, "one observation, a policy": POLICY}


def prepare(name: str, sizes: list[int]) -> Prepared:
    """A candidate's step and its outputs."""
    row = np.random.default_rng(2).standard_normal((1, sizes[0])).astype(np.float32)
    step = _SETUPS[name][1](tuple(sizes), first_weights(tuple(sizes)), row)[name]
    return Prepared(np.asarray(step()).tolist(), step, np.asarray)


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row for every network and candidate; `agrees` says whether its outputs are NumPy's."""
    names = [name for name, (needs, _) in _SETUPS.items() if settings.has(needs)]
    rows = []
    for title, sizes in NETWORKS.items():
        with workers("predict", {name: (name, sizes) for name in names}) as processes:
            reference = processes["NumPy by hand"].answer
            right = {name: bool(np.allclose(process.answer, reference, atol=1e-4)) for name, process in processes.items()}
            seconds = clock.compare(processes, settings.rounds, settings.block)
        found = clock.rows("predict", f"{title}, {'-'.join(map(str, sizes))}", seconds, f"{OWN} model(x)")
        rows += [{**row, "agrees": right[row["candidate"]]} for row in found]
    return rows
