"""Section `derivatives`: Jacobians, Hessians, Hessian-vector products and per-example gradients."""

from typing import Any

import numpy as np

from . import clock
from .derivative_candidates import GRADIENT, SETUPS, taking_part
from .derivative_tasks import TASKS, comparable, expected, numbers
from .executors import OWN
from .settings import Settings
from .worker import Prepared, workers


def arrived(result: Any) -> None:
    """Wait for a result, or a list of them."""
    for part in result if isinstance(result, (list, tuple)) else [result]:
        np.asarray(part)


def prepare(name: str, title: str) -> Prepared:
    """A candidate's step, and whether it finds what the formulas say."""
    (task,) = [task for task in TASKS if task.title == title]
    given = numbers(task)
    step, truth = SETUPS[name][1](task, given)[name], expected(task, given)
    close = {"rtol": 1e-3, "atol": 1e-4 * float(np.abs(truth).max())}
    return Prepared(name == GRADIENT or bool(np.allclose(comparable(task, given, step()), truth, **close)), step, arrived)


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row for every task and candidate; `agrees` says whether it finds what the formulas say."""
    found = []
    for task in TASKS:
        if settings.quick and task.chunk:
            continue
        names = taking_part(task, settings)
        with workers("derivatives", {name: (name, task.title) for name in names}) as processes:
            right = {name: process.answer for name, process in processes.items()}
            rounds = min(settings.rounds, 5) if task.chunk else settings.rounds
            seconds = clock.compare(processes, rounds, 0.0 if task.chunk else settings.block)
        found += [{**row, "agrees": right[row["candidate"]]} for row in clock.rows("derivatives", task.title, seconds, OWN)]
    return found
