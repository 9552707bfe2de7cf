"""The matrix products of a training step, alone: which part of the time they are, and what no framework can save."""

import itertools
from typing import Any

import numpy as np

from .candidates import Step
from .problems import Array, Problem

Product = tuple[Array, Array, Array]


def _products(problem: Problem) -> list[Product]:
    """Both factors of every product and where it goes; forward through the network, and back."""
    random = np.random.default_rng(4)

    def array(*shape: int) -> Array:
        return random.standard_normal(shape).astype(np.float32)

    forward: list[Product] = []
    backward: list[Product] = []
    for layer, (inputs, outputs) in enumerate(itertools.pairwise(problem.sizes)):
        x, kernel, g = array(problem.batch, inputs), array(inputs, outputs), array(problem.batch, outputs)
        forward.append((x, kernel, np.empty_like(g)))
        below = [(g, kernel.T, np.empty_like(x))] if layer else []
        backward = [(x.T, g, np.empty_like(kernel)), *below, *backward]
    return forward + backward


def _numpy(problem: Problem) -> Step:
    products = _products(problem)

    def step() -> float:
        for a, b, result in products:
            np.matmul(a, b, out=result)
        return 0.0

    return step


def _torch(problem: Problem) -> Step:
    from .peers import threaded_torch

    torch = threaded_torch()
    products: list[Any] = [tuple(map(torch.from_numpy, arrays)) for arrays in _products(problem)]

    def step() -> float:
        for a, b, result in products:
            torch.mm(a, b, out=result)
        return 0.0

    return step


_SETUPS = {"products alone, NumPy": _numpy, "products alone, PyTorch": _torch}
ALONE = {"products alone, NumPy": "numpy", "products alone, PyTorch": "torch"}
"""The module that each of them needs."""


def alone(name: str, problem: Problem) -> Step:
    """A step of nothing but products."""
    return _SETUPS[name](problem)
