"""The tasks of section `derivatives`: networks with tanh after every layer, and what their derivatives are.

Results are compared with formulas in float64, or, where those would be long, with a difference of gradients.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np

from .problems import Array, Weights, first_weights


class Task(NamedTuple):
    """A derivative to take.

    Attributes:
        title: in tables.
        kind: of 'kernel', 'input', 'hessian', 'product' and 'examples'.
        sizes: of the network's layers.
        batch: rows.
        chunk: rows of a matrix carried at once; None for all.
    """

    title: str
    kind: str
    sizes: tuple[int, ...]
    batch: int
    chunk: int | None = None

    @property
    def parameters(self) -> int:
        """Elements of all kernels and biases."""
        return sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(self.sizes))


TASKS = (
    Task("Jacobian of Dense(10), outputs (7, 10) by kernel (5, 10)", "kernel", (5, 10), 7),
    Task("full Jacobian of an MLP 64-64-64, batch 32, by its input", "input", (64, 64, 64), 32),
    Task("Hessian of 1,015 parameters, MLP 10-26-26-1, batch 64", "hessian", (10, 26, 26, 1), 64),
    Task("Hessian of 4,929 parameters in chunks, MLP 10-64-64-1, batch 64", "hessian", (10, 64, 64, 1), 64, 200),
    Task("Hessian times a vector, MLP 64-64-64-10, batch 32", "product", (64, 64, 64, 10), 32),
    Task("a gradient for each of 32 rows, MLP 64-64-64-10", "examples", (64, 64, 64, 10), 32),
)


class Numbers(NamedTuple):
    """What a task is about: weights, rows, what the outputs should be, and a direction among the parameters."""

    weights: Weights
    x: Array
    targets: Array
    vector: Array


def numbers(task: Task) -> Numbers:
    """The same for every library."""
    random = np.random.default_rng(3)
    x, targets, vector = (
        random.standard_normal(shape).astype(np.float32)
        for shape in ((task.batch, task.sizes[0]), (task.batch, task.sizes[-1]), task.parameters)
    )
    weights = [(kernel, bias + np.float32(0.1)) for kernel, bias in first_weights(task.sizes)]
    return Numbers(weights, x, targets, vector)


# The truth, in float64 -----------------------------------------------------------------------------------------------


def _activations(given: Numbers) -> list[Array]:
    found = [given.x.astype(np.float64)]
    for kernel, bias in given.weights:
        found.append(np.tanh(found[-1] @ kernel + bias))
    return found


def _row_gradients(given: Numbers) -> Array:
    """The gradient of each row's loss, the mean of its squared errors, in all parameters: shape (rows, parameters)."""
    activations = _activations(given)
    g = 2.0 * (activations[-1] - given.targets) / given.targets.shape[1]
    parts: list[Array] = []
    for (kernel, _), x, y in zip(given.weights[::-1], activations[-2::-1], activations[:0:-1], strict=True):
        g = g * (1.0 - y * y)
        parts = [(x[:, :, None] * g[:, None, :]).reshape(len(g), -1), g, *parts]
        g = g @ kernel.T
    return np.concatenate(parts, axis=1)


def _offset_by(given: Numbers, amount: float) -> Numbers:
    """The weights moved along the vector."""
    weights, start = [], 0
    for pair in given.weights:
        parts = []
        for array in pair:
            along = given.vector[start : start + array.size].astype(np.float64)
            parts.append(array + amount * along.reshape(array.shape))
            start += array.size
        weights.append((parts[0], parts[1]))
    return given._replace(weights=weights)


def _product(given: Numbers, step: float = 1e-5) -> Array:
    """The Hessian times the vector, by a central difference of gradients."""
    ahead, behind = (_row_gradients(_offset_by(given, amount)).mean(axis=0) for amount in (step, -step))
    return (ahead - behind) / (2.0 * step)


def _jacobian(task: Task, given: Numbers) -> Array:
    """Of the outputs, by the input or by the first kernel."""
    activations = _activations(given)
    slopes = [1.0 - y * y for y in activations[1:]]
    if task.kind == "kernel":
        return np.einsum("ni,km,nk->nkim", activations[0], np.eye(task.sizes[-1]), slopes[0])
    found = np.broadcast_to(np.eye(task.sizes[0]), (task.batch, task.sizes[0], task.sizes[0]))
    for (kernel, _), slope in zip(given.weights, slopes, strict=True):
        found = slope[:, :, None] * (kernel.T @ found)
    return np.einsum("noi,nm->nomi", found, np.eye(task.batch))


def expected(task: Task, given: Numbers) -> Array:
    """What every candidate of a task should find, raveled; for a Hessian its product with the vector."""
    if task.kind in ("kernel", "input"):
        return _jacobian(task, given).ravel()
    return (_row_gradients(given) if task.kind == "examples" else _product(given)).ravel()


def comparable(task: Task, given: Numbers, found: Any) -> Array:
    """A result in the form of `expected`."""
    if task.kind == "hessian":
        return np.asarray(found).reshape(len(given.vector), -1).astype(np.float64) @ given.vector
    if isinstance(found, (list, tuple)):
        found = np.concatenate([np.asarray(part).reshape(task.batch, -1) for part in found], axis=1)
    return np.asarray(found).ravel()
