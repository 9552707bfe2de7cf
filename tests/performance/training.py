"""Section `training`: milliseconds a step of `fit`, everything around the step included, beside Keras on its backends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from . import clock
from .candidates import keras_model
from .executors import NATIVE, OWN, fit_options
from .keras_worker import BACKENDS, KerasWorker
from .problems import LEARNING_RATE, PROBLEMS, first_weights, one_batch
from .settings import Settings

STEPS = {"tiny": 400, "small": 400, "medium": 100, "large": 30}
FIT = f"{OWN} fit"
NATIVE_FIT = f"{FIT}, native"


def fit_trainer(keras: Any, name: str, **options: Any) -> Callable[[], float]:
    """One epoch of `fit` over the same batch again and again; the loss at its end. The options are those of `compile`."""
    problem = PROBLEMS[name]
    model = keras_model(keras, problem.sizes, first_weights(problem.sizes))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(LEARNING_RATE), loss=loss, **options)
    x, y = (np.concatenate([part] * STEPS[name]) for part in one_batch(problem))
    return lambda: float(model.fit(x, y, batch_size=problem.batch, shuffle=False, verbose=0).history["loss"][-1])


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row for each problem and candidate."""
    from minikeras import keras

    rows: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        workers = {}
        for backend, module in BACKENDS.items():
            if settings.has("keras") and settings.has(module):
                workers[backend] = KerasWorker(backend, "6k" if settings.quick else None)
                stack.callback(workers[backend].close)
        for name in ("tiny",) if settings.quick else tuple(STEPS):
            epochs: dict[str, Callable[[], float]] = {FIT: fit_trainer(keras, name)}
            if settings.has(*NATIVE.needs):
                epochs[NATIVE_FIT] = fit_trainer(keras, name, **fit_options(NATIVE))
            for backend, worker in workers.items():
                worker.ask("steps", name)
                epochs[f"Keras fit on {backend} (own process)"] = lambda worker=worker: worker.ask("epoch")
            for epoch in epochs.values():
                epoch()
            seconds = clock.compare(epochs, max(1, settings.rounds // 3), 0.0)
            each = {candidate: [value / STEPS[name] for value in values] for candidate, values in seconds.items()}
            rows += clock.rows("training", f"step of fit, {PROBLEMS[name].title(name)}", each, FIT)
    return rows
