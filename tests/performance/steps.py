"""Section `steps`: one training step of an MLP at four sizes, and of one with BatchNormalization."""

import time
from typing import Any

from . import clock
from .candidates import available, named
from .executors import OWN
from .problems import PROBLEMS, agree, first_weights, one_batch
from .products import ALONE, alone
from .settings import Settings
from .worker import Prepared, workers

FIRST = 5
WARM = 2.0
"""Seconds that each candidate runs before it is measured: the loops of eager steps are compiled after half a second."""


def prepare(name: str, label: str, seconds: float) -> Prepared:
    """A candidate's step after so many seconds of it, and its first losses; the matrix products alone have none."""
    problem = PROBLEMS[label]
    if name in ALONE:
        return Prepared(None, alone(name, problem))
    step = named(name).setup(problem, first_weights(problem.sizes), one_batch(problem))
    losses, begun = [float(step()) for _ in range(FIRST)], time.perf_counter()
    while time.perf_counter() - begun < seconds:
        step()
    return Prepared(losses, step)


def measure(settings: Settings) -> list[dict[str, Any]]:
    """Rows for every size and candidate; a row holds the first losses, and whether they are the reference's."""
    found = []
    for label, problem in PROBLEMS.items():
        if settings.quick and label in ("medium", "large"):
            continue
        names = [one.name for one in available(settings, problem)]
        names += [name for name, needs in ALONE.items() if settings.has(needs)]
        seconds_before = 0.0 if settings.quick else WARM
        with workers("steps", {name: (name, label, seconds_before) for name in names}) as processes:
            losses = {name: process.answer for name, process in processes.items() if process.answer}
            seconds = clock.compare(processes, settings.rounds, settings.block)
        wrong = agree(losses)
        for row in clock.rows("steps", problem.title(label), seconds, OWN):
            name = row["candidate"]
            found.append({**row, "first_losses": losses[name], "agrees": name not in wrong} if name in losses else row)
    return found
