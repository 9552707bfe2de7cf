"""Section `training`: milliseconds a step of `fit`, everything around the step included, beside Keras on its backends."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import clock
from .candidates import keras_model
from .executors import NATIVE, OWN, fit_options
from .problems import LEARNING_RATE, PROBLEMS, agree, first_weights, one_batch
from .settings import Settings
from .worker import Prepared, workers

STEPS = {"tiny": 2000, "small": 2000, "medium": 200, "large": 30}
"""Of an epoch, so many that what `fit` does once is a small part."""
FIRST = 5
FIT = f"{OWN} fit"
NATIVE_FIT = f"{FIT}, native"
KERAS = "Keras fit on {}"
BACKENDS = {KERAS.format(backend): backend for backend in ("jax", "tensorflow", "torch")}


def fit_trainer(keras: Any, name: str, steps: int | None = None, **options: Any) -> Callable[[], float]:
    """One epoch of `fit` over the same batch again and again; its loss. The options are those of `compile`."""
    problem = PROBLEMS[name]
    model = keras_model(keras, problem.sizes, first_weights(problem.sizes))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(LEARNING_RATE), loss=loss, **options)
    x, y = (np.concatenate([part] * (steps or STEPS[name])) for part in one_batch(problem))
    return lambda: float(model.fit(x, y, batch_size=problem.batch, shuffle=False, verbose=0).history["loss"][-1])


def keras_of(name: str) -> Any:
    """The Keras that a candidate trains with."""
    if name in BACKENDS:
        if BACKENDS[name] == "torch":
            from .peers import threaded_torch

            threaded_torch()
        return importlib.import_module("keras")
    return importlib.import_module("minikeras.keras")


def environment_of(names: list[str]) -> dict[str, dict[str, str]]:
    """The variable that tells Keras its backend, for those who need it."""
    return {name: {"KERAS_BACKEND": BACKENDS[name]} for name in names if name in BACKENDS}


def installed_keras(settings: Settings) -> list[str]:
    """Keras on the backends that take part."""
    return [name for name, backend in BACKENDS.items() if settings.has("keras", backend)]


def prepare(name: str, label: str) -> Prepared:
    """Epochs of a fresh model; the answer is the loss of a short first one, by another model.

    `fit` by default has NumPy alone, as where llvmlite is not installed; otherwise a long run would be native by itself.
    """
    if name == FIT:
        sys.modules["llvmlite"] = None  # type: ignore[assignment]  # to importers: not installed
    keras, options = keras_of(name), fit_options(NATIVE) if name == NATIVE_FIT else {}
    first = fit_trainer(keras, label, FIRST, **options)()
    epoch = fit_trainer(keras, label, **options)
    epoch()
    return Prepared([first], epoch)


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row for each problem and candidate."""
    rows: list[dict[str, Any]] = []
    names = [FIT, *([NATIVE_FIT] if settings.has(*NATIVE.needs) else []), *installed_keras(settings)]
    for label in ("tiny",) if settings.quick else tuple(STEPS):
        with workers("training", {name: (name, label) for name in names}, environment_of(names)) as processes:
            wrong = agree({name: process.answer for name, process in processes.items()})
            seconds = clock.compare(processes, max(1, settings.rounds // 2), 0.0)
        each = {name: [value / STEPS[label] for value in values] for name, values in seconds.items()}
        found = clock.rows("training", f"step of fit, {PROBLEMS[label].title(label)}", each, FIT)
        rows += [{**row, "agrees": row["candidate"] not in wrong} for row in found]
    return rows
