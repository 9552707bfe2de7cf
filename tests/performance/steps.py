"""Section `steps`: one training step of an MLP at four sizes, and of one with BatchNormalization."""

from __future__ import annotations

from typing import Any

from . import clock
from .candidates import available
from .executors import OWN
from .problems import PROBLEMS, agree, first_weights, one_batch
from .products import alone
from .settings import Settings

FIRST = 5


def measure(settings: Settings) -> list[dict[str, Any]]:
    """Rows for every size and candidate; a row holds the first losses, and whether they are the reference's.

    The matrix products alone stand beside them; they have no loss.
    """
    found = []
    for label, problem in PROBLEMS.items():
        if settings.quick and label in ("medium", "large"):
            continue
        weights, data = first_weights(problem.sizes), one_batch(problem)
        steps = {one.name: one.setup(problem, weights, data) for one in available(settings, problem)}
        losses = {name: [float(step()) for _ in range(FIRST)] for name, step in steps.items()}
        wrong = agree(losses)
        steps |= alone(problem, settings)
        seconds = clock.compare(steps, settings.rounds, settings.block)
        for row in clock.rows("steps", problem.title(label), seconds, OWN):
            name = row["candidate"]
            found.append({**row, "first_losses": losses[name], "agrees": name not in wrong} if name in losses else row)
    return found
