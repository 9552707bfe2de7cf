"""One epoch of training on Fashion-MNIST, by each candidate: same rows, same batches, shuffled anew.

A trainer is a pair (epoch, accuracy): `epoch()` trains for one epoch, shuffling and gathering included,
`accuracy()` tests.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .by_hand import Buffers, FreshArrays
from .candidates import keras_model
from .problems import LEARNING_RATE, PROBLEMS, Array, first_weights

BATCH = PROBLEMS["medium"].batch
SIZES = PROBLEMS["medium"].sizes
Trainer = tuple[Callable[[], Any], Callable[[], float]]


@functools.cache
def images(subset: str | None) -> tuple[Array, Array, Array, Array]:
    """Rows of 784 numbers in [0, 1] and labels, for training and for testing."""
    from minikeras.keras.datasets import fashion_mnist

    (x, y), (x_test, y_test) = fashion_mnist.load_data(subset=subset)  # type: ignore[arg-type]
    flat = [np.ascontiguousarray(part.reshape(len(part), -1), np.float32) / np.float32(255) for part in (x, x_test)]
    return flat[0], y.astype(np.int64), flat[1], y_test.astype(np.int64)


def _accuracy(logits: Array, labels: Array) -> float:
    return float((logits.argmax(axis=1) == labels).mean())


def numpy_trainer(subset: str | None, seed: int, buffered: bool) -> Trainer:
    """Epochs of hand-written NumPy."""
    x, y, x_test, y_test = images(subset)
    weights = first_weights(SIZES, seed)
    network: Any = Buffers(weights, BATCH) if buffered else FreshArrays(weights)
    random = np.random.default_rng(seed)

    def epoch() -> float:
        order, total = random.permutation(len(x)), 0.0
        for start in range(0, len(x), BATCH):
            rows = order[start : start + BATCH]
            total += len(rows) * float(network.step(x.take(rows, axis=0), y.take(rows)))
        return total / len(x)

    def accuracy() -> float:
        if not buffered:
            return _accuracy(network.logits(x_test), y_test)
        return _accuracy(FreshArrays(network.layers).logits(x_test), y_test)

    return epoch, accuracy


def torch_trainer(subset: str | None, seed: int, fused: bool) -> Trainer:
    """Epochs of PyTorch's ordinary loop, on tensors in memory."""
    from .peers import threaded_torch, torch_model, torch_step

    torch = threaded_torch()
    x, y, x_test, y_test = (torch.from_numpy(part) for part in images(subset))
    model = torch_model(SIZES, first_weights(SIZES, seed))
    step, random = torch_step(model, fused), torch.Generator().manual_seed(seed)

    def epoch() -> float:
        order, total = torch.randperm(len(x), generator=random), 0.0
        for rows in order.split(BATCH):
            total += len(rows) * float(step(x[rows], y[rows]))
        return total / len(x)

    def accuracy() -> float:
        with torch.no_grad():
            return _accuracy(model(x_test).numpy(), y_test.numpy())

    return epoch, accuracy


def keras_trainer(keras: Any, subset: str | None, seed: int, metrics: list[str]) -> Trainer:
    """Epochs of `fit`, of this project's Keras or of another."""
    x, y, x_test, y_test = images(subset)
    keras.utils.set_random_seed(seed)
    model = keras_model(keras, SIZES, first_weights(SIZES, seed))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(LEARNING_RATE), loss=loss, metrics=metrics)

    def epoch() -> float:
        return float(model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0).history["loss"][-1])

    return epoch, lambda: _accuracy(np.asarray(model.predict(x_test, batch_size=1000, verbose=0)), y_test)
