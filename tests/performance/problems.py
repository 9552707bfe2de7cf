"""The networks, their first weights and the data, equal for all candidates."""

import itertools
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Weights = list[tuple[Array, Array]]
Data = tuple[Array, Array]


class Problem(NamedTuple):
    """An MLP with relu in its hidden layers, and the rows of a batch.

    Attributes:
        sizes: of the layers.
        batch: rows.
        normalized: whether a BatchNormalization follows each hidden layer.
    """

    sizes: tuple[int, ...]
    batch: int
    normalized: bool = False

    def title(self, label: str) -> str:
        """In tables."""
        return f"{label} {'-'.join(map(str, self.sizes))}, batch {self.batch}"


PROBLEMS = {
    "tiny": Problem((4, 16, 3), 16),
    "small": Problem((64, 64, 64, 10), 32),
    "medium": Problem((784, 256, 128, 10), 128),
    "large": Problem((784, 1024, 1024, 10), 256),
    "medium with BatchNormalization": Problem((784, 256, 128, 10), 128, normalized=True),
}

LEARNING_RATE, BETA_1, BETA_2, EPSILON = 1e-3, 0.9, 0.999, 1e-7
MOMENTUM, VARIANCE_EPSILON = 0.99, 1e-3
"""Of BatchNormalization: which part of a moving average stays, and what is added to a variance."""


def first_weights(sizes: tuple[int, ...], seed: int = 0) -> Weights:
    """Kernels from Glorot's uniform distribution, biases of zero."""
    random = np.random.default_rng(seed)
    weights = []
    for inputs, outputs in itertools.pairwise(sizes):
        limit = np.sqrt(6.0 / (inputs + outputs))
        kernel = random.uniform(-limit, limit, (inputs, outputs)).astype(np.float32)
        weights.append((kernel, np.zeros(outputs, np.float32)))
    return weights


def one_batch(problem: Problem, seed: int = 1) -> Data:
    """Rows and labels.

    The second half repeats the rows of the first with other labels, so that the loss cannot fall below log 2. Otherwise
    thousands of steps on one batch would drive gradients to numbers so small that processors slow down on them.
    """
    random = np.random.default_rng(seed)
    half, classes = problem.batch // 2, problem.sizes[-1]
    x = random.standard_normal((half, problem.sizes[0])).astype(np.float32)
    labels = random.integers(0, classes, half)
    return np.concatenate([x, x]), np.concatenate([labels, (labels + 1) % classes]).astype(np.int64)


def loss_and_cotangent(logits: Array, labels: Array) -> tuple[Any, Array]:
    """The mean sparse softmax cross-entropy, and its gradient in the logits, in plain NumPy."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    sums = exponentials.sum(axis=1, keepdims=True)
    rows = np.arange(len(logits))
    loss = (np.log(sums[:, 0]) - shifted[rows, labels]).mean()
    g = exponentials / sums
    g[rows, labels] -= 1
    return loss, g / len(logits)


def agree(losses: dict[str, list[float]], tolerance: float = 1e-3) -> list[str]:
    """The names of the candidates whose losses differ from the first candidate's: they compute something else."""
    reference = np.array(next(iter(losses.values())))
    return [name for name, found in losses.items() if not np.allclose(found, reference, rtol=tolerance, atol=0)]
