"""Section `fit`: seconds an epoch on Fashion-MNIST, and with `--accuracy` the test accuracy after five epochs."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable
from typing import Any

from . import clock
from .epochs import BATCH, SIZES, Trainer, images, keras_trainer, numpy_trainer, torch_trainer
from .executors import OWN
from .keras_worker import BACKENDS, KerasWorker
from .settings import Settings

EPOCHS = 5
SEEDS = (0, 1, 2)
FIT = f"{OWN} fit"
Trainers = dict[str, Callable[[int], Trainer]]


def _own(subset: str | None, seed: int, metrics: list[str]) -> Trainer:
    from minikeras import keras

    return keras_trainer(keras, subset, seed, metrics)


def _trainers(settings: Settings, subset: str | None, workers: contextlib.ExitStack) -> Trainers:
    """For each candidate a function of the seed."""
    found: Trainers = {
        "NumPy by hand": lambda seed: numpy_trainer(subset, seed, buffered=False),
        "NumPy by hand, out=": lambda seed: numpy_trainer(subset, seed, buffered=True),
        FIT: lambda seed: _own(subset, seed, []),
        f"{FIT}, with accuracy": lambda seed: _own(subset, seed, ["accuracy"]),
    }
    if settings.has("torch"):
        found["PyTorch loop"] = lambda seed: torch_trainer(subset, seed, fused=False)
        found["PyTorch loop, fused Adam"] = lambda seed: torch_trainer(subset, seed, fused=True)
    for backend, module in BACKENDS.items():
        if settings.has("keras") and settings.has(module):
            worker = KerasWorker(backend, subset)
            workers.callback(worker.close)
            found[f"Keras fit on {backend} (own process)"] = lambda seed, worker=worker: _remote(worker, seed)
    return found


def _remote(worker: KerasWorker, seed: int) -> Trainer:
    worker.ask("start", seed)
    return lambda: worker.ask("epoch"), lambda: worker.ask("accuracy")


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row for each candidate; rows of accuracy if they are asked for."""
    subset = "6k" if settings.quick else None
    count = len(images(subset)[0])
    title = f"epoch, {count} rows, {'-'.join(map(str, SIZES))}, batch {BATCH}"
    with contextlib.ExitStack() as workers:
        trainers = _trainers(settings, subset, workers)
        epochs = {name: trainer(SEEDS[0])[0] for name, trainer in trainers.items()}
        for epoch in epochs.values():
            epoch()
        # An epoch takes seconds: a third of the blocks, of one epoch each.
        rows = clock.rows("fit", title, clock.compare(epochs, max(1, settings.rounds // 3), 0.0), FIT, unit="s")
        if settings.accuracy:
            rows += _accuracies(trainers, count)
    return rows


def _accuracies(trainers: Trainers, count: int) -> list[dict[str, Any]]:
    """Test accuracies over the seeds; the 'median' and the 'minimum' of a row are those over the seeds."""
    rows = []
    for name, trainer in trainers.items():
        found = []
        for seed in SEEDS:
            epoch, accuracy = trainer(seed)
            for _ in range(EPOCHS):
                epoch()
            found.append(accuracy())
        row = {"section": "fit", "problem": f"test accuracy after {EPOCHS} epochs of {count} rows", "candidate": name}
        row |= {"unit": "share", "blocks": len(SEEDS), "median": statistics.median(found), "minimum": min(found)}
        rows.append({**row, "accuracies": found})
    return rows
