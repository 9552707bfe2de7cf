"""Section `steps`: one training step of an MLP at four sizes."""

from __future__ import annotations

from typing import Any

from . import clock
from .candidates import OWN, available
from .problems import PROBLEMS, agree, first_weights, one_batch
from .settings import Settings

FIRST = 5


def measure(settings: Settings) -> list[dict[str, Any]]:
    """Rows for every size and candidate; a row holds the first losses, and whether they are the reference's."""
    found = []
    for label, problem in PROBLEMS.items():
        if settings.quick and label in ("medium", "large"):
            continue
        weights, data = first_weights(problem.sizes), one_batch(problem)
        steps = {one.name: one.setup(problem.sizes, weights, data) for one in available(settings)}
        losses = {name: [float(step()) for _ in range(FIRST)] for name, step in steps.items()}
        wrong = agree(losses)
        title = f"{label} {'-'.join(map(str, problem.sizes))}, batch {problem.batch}"
        for row in clock.rows("steps", title, clock.compare(steps, settings.rounds, settings.block), OWN):
            name = row["candidate"]
            found.append({**row, "first_losses": losses[name], "agrees": name not in wrong})
    return found
