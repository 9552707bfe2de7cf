"""Section `derivatives`: Jacobians, Hessians, Hessian-vector products and per-example gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import clock
from .candidates import Step
from .derivative_candidates import GRADIENT, SETUPS
from .derivative_tasks import TASKS, comparable, expected, numbers
from .executors import OWN
from .settings import Settings


def arrived(result: Any) -> None:
    """Wait for a result, or a list of them."""
    for part in result if isinstance(result, (list, tuple)) else [result]:
        np.asarray(part)


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row for every task and candidate; `agrees` says whether it finds what the formulas say."""
    found = []
    for task in TASKS:
        if settings.quick and task.chunk:
            continue
        given = numbers(task)
        steps: dict[str, Step] = {}
        for needs, setup in SETUPS.items():
            if settings.has(needs):
                steps |= setup(task, given)
        truth = expected(task, given)
        close = {"rtol": 1e-3, "atol": 1e-4 * float(np.abs(truth).max())}
        right = {
            name: name == GRADIENT or bool(np.allclose(comparable(task, given, step()), truth, **close))
            for name, step in steps.items()
        }
        seconds = clock.compare(steps, settings.rounds, 0.0 if task.chunk else settings.block, finish=arrived)
        found += [{**row, "agrees": right[row["candidate"]]} for row in clock.rows("derivatives", task.title, seconds, OWN)]
    return found
