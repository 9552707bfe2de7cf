"""Section `ensembles`: many members trained at once, beside one of them; how much memory they take; a sweep beside loops.

`python -m tests.performance.ensembles LABEL MEMBERS` is a process whose peak memory is measured.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import clock
from .candidates import keras_model
from .executors import NATIVE, OWN, fit_options
from .memory import peak_memory
from .problems import LEARNING_RATE, PROBLEMS
from .settings import ROOT, Settings
from .training import KERAS, environment_of, keras_of
from .worker import Prepared, workers

MEMBERS = {"tiny": 32, "small": 16, "medium": 8}
STEPS = {"tiny": 1000, "small": 500, "medium": 50}
"""Of an epoch."""
EPOCHS = 10
"""Of a `fit`, so that recording and compiling are a small part, as they are in a training."""
TOGETHER = {f"{OWN}, members at once": False, f"{OWN}, members at once, native": True}
ALONE = {f"{OWN}, one model": False, f"{OWN}, one model, native": True}
BEYOND = "beyond members x one model"
SWEEP, LOOP, JAX = f"{OWN}, Sweep", f"{OWN}, a loop of fit", KERAS.format("jax")
RATES, WIDTHS, SEEDS = (1e-3, 3e-3, 1e-2, 3e-2), (8, 16, 32), 8


def _without_llvm() -> None:
    sys.modules["llvmlite"] = None  # type: ignore[assignment]  # to importers: not installed


def trainer(label: str, members: int, native: bool) -> Callable[[int], float]:
    """Trains a model or an ensemble for a number of epochs; the loss of its first member."""
    if not native:
        _without_llvm()
    import minikeras.keras as keras
    from minikeras.experiments import Ensemble

    problem, options = PROBLEMS[label], fit_options(NATIVE) if native else {}
    random = np.random.default_rng(0)
    rows = STEPS[label] * problem.batch
    x = random.standard_normal((rows, problem.sizes[0]), np.float32)
    y = random.integers(0, problem.sizes[-1], rows)

    def build() -> Any:
        model = keras_model(keras, problem.sizes)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.Adam(LEARNING_RATE), loss, metrics=["accuracy"], **options)
        return model

    keras.utils.set_random_seed(0)
    trained = Ensemble(build, members) if members > 1 else build()

    def train(epochs: int) -> float:
        history = trained.fit(x, y, batch_size=problem.batch, epochs=epochs, verbose=0).history
        return float(np.reshape(history["loss"][0], -1)[0])

    return train


def sweep(name: str, runs: int) -> float:
    """Seconds of the first runs of the sweep over rates, widths and seeds, ten epochs each on digits."""
    keras = keras_of(name)
    from minikeras.keras.datasets import digits

    x, y = digits.load_data()[0]
    x = x / np.float32(16)
    options = {"batch_size": 64, "epochs": EPOCHS, "verbose": 0}

    def build(rate: float, width: int) -> Any:
        model = keras_model(keras, (64, width, 10))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=keras.optimizers.Adam(rate), loss=loss, metrics=["accuracy"])
        return model

    seeds = range(SEEDS)[:runs]
    pairs = [(rate, width) for rate in RATES for width in WIDTHS][: -(-runs // SEEDS)]
    start = time.perf_counter()
    if name == SWEEP:
        from minikeras.experiments import Sweep

        found = Sweep(build, [{"rate": rate, "width": width} for rate, width in pairs], seeds=list(seeds))
        found.fit(x, y, **options)
    else:
        for rate, width in pairs:
            for seed in seeds:
                keras.utils.set_random_seed(seed)
                build(rate, width).fit(x, y, **options)
    return time.perf_counter() - start


def prepare(name: str, label: str, members: int) -> Prepared:
    """A candidate that has trained for an epoch; the answer is the loss then. A sweep runs once: the answer is its seconds."""
    if name in (SWEEP, LOOP, JAX):
        return Prepared(sweep(name, members), lambda: 0.0)
    train = trainer(label, members, (TOGETHER | ALONE)[name])
    return Prepared(train(1), lambda: train(EPOCHS))


def peak(label: str, members: int) -> float:
    """Peak memory in MiB of a training by NumPy; without members of a process that has the data and trains nothing."""
    train = trainer(label, max(members, 1), native=False)
    if members:
        train(2)
    return peak_memory()


def _peak_in_a_process(label: str, members: int) -> float:
    program = [sys.executable, "-m", f"{__package__}.ensembles", label, str(members)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    return float(done.stdout.splitlines()[-1])


def measure(settings: Settings) -> list[dict[str, Any]]:
    """Rows of an epoch for each size, of memory, and of the sweep."""
    labels = ("tiny",) if settings.quick else tuple(MEMBERS)
    kinds = (False, True) if settings.has(*NATIVE.needs) else (False,)
    rows: list[dict[str, Any]] = []
    for label in labels:
        count = 2 if settings.quick else MEMBERS[label]
        own = [name for name, native in TOGETHER.items() if native in kinds]
        alone = [name for name, native in ALONE.items() if native in kinds]
        given = {name: (name, label, count) for name in own} | {name: (name, label, 1) for name in alone}
        with workers("ensembles", given, {}) as processes:
            seconds = clock.compare(processes, max(1, settings.rounds // 3), 0.0)
        each = {name: [one / EPOCHS for one in values] for name, values in seconds.items()}
        rows += clock.rows("ensembles", f"epoch, {count} members, {PROBLEMS[label].title(label)}", each, own[-1])
    return [*rows, _memory(labels[-1], count), *_sweeps(settings)]


def _memory(label: str, count: int) -> dict[str, Any]:
    none, one, many = [_peak_in_a_process(label, members) for members in (0, 1, count)]
    beyond = many - none - count * (one - none)
    row = {"section": "ensembles", "problem": f"peak memory of {count} members, {label}", "candidate": BEYOND, "unit": "MiB"}
    return {**row, "blocks": 1, "median": beyond, "minimum": beyond}


def _sweeps(settings: Settings) -> list[dict[str, Any]]:
    runs = 4 if settings.quick else len(RATES) * len(WIDTHS) * SEEDS
    names = [SWEEP, LOOP, *([JAX] if settings.has("keras", "jax") and not settings.quick else [])]
    seconds: dict[str, list[float]] = {}
    for name in names:  # in turn: each runs once, as long as it takes
        with workers("ensembles", {name: (name, "", runs)}, environment_of([name])) as processes:
            seconds[name] = [processes[name].answer]
    return clock.rows("ensembles", f"{runs} runs on digits, {EPOCHS} epochs", seconds, SWEEP, unit="s")


if __name__ == "__main__":
    print(peak(sys.argv[1], int(sys.argv[2])))
