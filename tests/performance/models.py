"""Section `models`: an epoch of `fit` and a `predict` of eight models, by default, natively, by Keras on JAX and by PyTorch.

`predict` has a smaller last batch. BLAS has the threads that this project gives it, unless the environment says otherwise.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import clock
from .executors import NATIVE, OWN, fit_options
from .keras_models import MODELS, keras_trained
from .problems import agree
from .settings import THREADS_OF_BLAS, Settings
from .training import FIT, KERAS, NATIVE_FIT, environment_of, keras_of
from .worker import Prepared, workers

JAX, TORCH = KERAS.format("jax"), "PyTorch eager"
PREDICTS = {FIT: f"{OWN} predict", NATIVE_FIT: f"{OWN} predict, native"}
FIRST = 3
"""Batches of the epochs whose losses are compared."""
LESS = 10
"""Rows fewer in the last batch of `predict`."""


def trainer(name: str, label: str, rows: int | None = None) -> Callable[[], float]:
    """One epoch of a candidate; its loss."""
    if name == TORCH:
        from .torch_models import torch_trainer

        return torch_trainer(label, rows)
    model = keras_trained(keras_of(name), label, **(fit_options(NATIVE) if name == NATIVE_FIT else {}))
    x, y = MODELS[label].data(rows)
    options = {"batch_size": MODELS[label].batch, "shuffle": False, "verbose": 0}
    given = x if len(x) > 1 else x[0]
    return lambda: float(model.fit(given, y, **options).history["loss"][-1])


def predictor(name: str, label: str) -> Callable[[], Any]:
    """The outputs of a candidate for rows that are no multiple of a batch."""
    x, _ = MODELS[label].data()
    x = [one[:-LESS] for one in x]
    if name == TORCH:
        from .torch_models import torch_predictor

        return torch_predictor(label, x)
    model = keras_trained(keras_of(name), label, **(fit_options(NATIVE) if name == NATIVE_FIT else {}))
    given = x if len(x) > 1 else x[0]
    return lambda: model.predict(given, batch_size=MODELS[label].batch, verbose=0)


def prepare(name: str, label: str, task: str) -> Prepared:
    """Epochs or predictions; answers are the losses of two short epochs of another model, or some outputs.

    By default means by NumPy alone, as where llvmlite is not installed; otherwise a long run would be native by itself.
    """
    if name == FIT:
        sys.modules["llvmlite"] = None  # type: ignore[assignment]  # to importers: not installed
    if name == TORCH:
        from .peers import threaded_torch

        threaded_torch()
    if task == "predict":
        predict = predictor(name, label)
        outputs = np.asarray(predict())
        answer = [float(np.abs(outputs).mean()), float(outputs[0].std()), float(outputs[-1].std()) or 1.0]
        predict()
        return Prepared(answer, predict, lambda outputs: None)
    first = trainer(name, label, FIRST * MODELS[label].batch)
    answer, epoch = [first(), first()], trainer(name, label)
    epoch()
    return Prepared(answer, epoch)


def candidates(settings: Settings) -> list[str]:
    """Those that take part."""
    peers = [name for name, needs in ((JAX, ("keras", "jax")), (TORCH, ("torch",))) if settings.has(*needs)]
    return [FIT, *([NATIVE_FIT] if settings.has(*NATIVE.needs) else []), *peers]


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row for each model, task and candidate."""
    rows: list[dict[str, Any]] = []
    names = candidates(settings)
    environment = {name: {**THREADS_OF_BLAS} for name in PREDICTS} | environment_of(names)
    for label in settings.models or (("deep",) if settings.quick else tuple(MODELS)):
        for task, blocks in (("fit", settings.rounds // 3), ("predict", settings.rounds // 2)):
            arguments = {name: (name, label, task) for name in names}
            with workers("models", arguments, environment) as processes:
                wrong = agree({name: process.answer for name, process in processes.items()})
                seconds = clock.compare(processes, max(1, blocks), 0.0)
            titles = PREDICTS if task == "predict" else {}
            each = {titles.get(name, name): values for name, values in seconds.items()}
            found = clock.rows("models", f"{task}, {label}", each, next(iter(each)))
            rows += [{**row, "agrees": row["candidate"] not in {titles.get(one, one) for one in wrong}} for row in found]
    return rows
