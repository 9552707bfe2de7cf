"""Section `fit`: seconds an epoch on Fashion-MNIST, and with `--accuracy` the test accuracy after five epochs."""

import statistics
from typing import Any

from . import clock
from .epochs import BATCH, SIZES, Trainer, images, keras_trainer, numpy_trainer, torch_trainer
from .settings import Settings
from .training import FIT, environment_of, installed_keras, keras_of
from .worker import Prepared, workers

EPOCHS = 5
SEEDS = (0, 1, 2)
WITH_ACCURACY = f"{FIT}, with accuracy"
BY_HAND = {"NumPy by hand": False, "NumPy by hand, out=": True}
LOOPS = {"PyTorch loop": False, "PyTorch loop, fused Adam": True}


def _trainer(name: str, subset: str | None, seed: int) -> Trainer:
    if name in BY_HAND:
        return numpy_trainer(subset, seed, buffered=BY_HAND[name])
    if name in LOOPS:
        return torch_trainer(subset, seed, fused=LOOPS[name])
    return keras_trainer(keras_of(name), subset, seed, ["accuracy"] if name == WITH_ACCURACY else [])


def prepare(name: str, subset: str | None, seed: int, epochs: int) -> Prepared:
    """So many epochs of a candidate before; the answer is the test accuracy then."""
    epoch, accuracy = _trainer(name, subset, seed)
    for _ in range(epochs):
        epoch()
    return Prepared(accuracy(), epoch)


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row for each candidate; rows of accuracy if they are asked for."""
    subset = "6k" if settings.quick else None
    count = len(images(subset)[0])
    title = f"epoch, {count} rows, {'-'.join(map(str, SIZES))}, batch {BATCH}"
    names = [*BY_HAND, FIT, WITH_ACCURACY, *(LOOPS if settings.has("torch") else ()), *installed_keras(settings)]
    with workers("fit", {name: (name, subset, SEEDS[0], 1) for name in names}, environment_of(names)) as processes:
        # An epoch takes seconds: a third of the blocks, of one epoch each.
        seconds = clock.compare(processes, max(1, settings.rounds // 3), 0.0)
    rows = clock.rows("fit", title, seconds, FIT, unit="s")
    return rows + (_accuracies(names, subset, count) if settings.accuracy else [])


def _accuracies(names: list[str], subset: str | None, count: int) -> list[dict[str, Any]]:
    """Test accuracies over the seeds; the 'median' and the 'minimum' of a row are those over the seeds."""
    rows = []
    for name in names:
        runs = {str(seed): (name, subset, seed, EPOCHS) for seed in SEEDS}
        environment = {seed: environment_of([name]).get(name, {}) for seed in runs}
        with workers("fit", runs, environment) as processes:
            found = [process.answer for process in processes.values()]
        row = {"section": "fit", "problem": f"test accuracy after {EPOCHS} epochs of {count} rows", "candidate": name}
        row |= {"unit": "share", "blocks": len(SEEDS), "median": statistics.median(found), "minimum": min(found)}
        rows.append({**row, "accuracies": found})
    return rows
