"""Section `curve`: a step of Levenberg-Marquardt on a curve of two parameters and 50 points in float64: overhead alone.

y = a exp(b x), from (1, 1), which every step starts from again: setting the parameters is part of the step.
"""

from typing import Any

import numpy as np

from . import clock
from .executors import NATIVE, NUMPY, OWN, compiled, installed
from .settings import Settings
from .worker import Prepared, workers

START = [1.0, 1.0]
EXECUTORS = {executor.title: executor for executor in (NUMPY, NATIVE)}


def _points() -> tuple[Any, Any]:
    x = np.linspace(0.0, 1.0, 50)
    return x, 2.0 * np.exp(-1.5 * x) + np.random.default_rng(0).normal(0.0, 0.01, 50)


def prepare(name: str) -> Prepared:
    """A candidate's step, and the parameters after it."""
    import minikeras as tf

    x, y = map(tf.constant, _points())
    w = tf.Variable(START, dtype=tf.float64)
    fit = tf.keras.optimizers.Objective(lambda: w[0] * tf.exp(w[1] * x) - y, lambda r: tf.reduce_mean(r**2))
    optimizer = tf.keras.optimizers.LevenbergMarquardt()

    def minimize() -> Any:
        return optimizer.minimize(fit, [w])

    run = compiled(minimize, EXECUTORS[name]) if name in EXECUTORS else minimize

    def step() -> Any:
        w.assign(START)
        return run()

    step()
    return Prepared(w.numpy().tolist(), step)


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row for each way to call it; `agrees` says whether its first step leads where the eager one leads."""
    names = [OWN, *(executor.title for executor in installed(settings))]
    with workers("curve", {name: (name,) for name in names}) as processes:
        truth = processes[OWN].answer
        right = {name: bool(np.allclose(process.answer, truth, rtol=1e-9)) for name, process in processes.items()}
        seconds = clock.compare(processes, settings.rounds, settings.block)
    rows = clock.rows("curve", "a step of Levenberg-Marquardt, 2 parameters, 50 points", seconds, OWN)
    return [{**row, "agrees": right[row["candidate"]]} for row in rows]
