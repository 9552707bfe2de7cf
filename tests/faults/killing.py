"""SIGKILL at a random moment of a loop that saves: the last acknowledged state must load, complete."""

import os
import pathlib
import random
import select
import signal
import tempfile
import time

import numpy as np

from . import kinds
from .children import forked
from .report import Row

UNITS = 4096
"""About 64 KB of weights and as much of slots, so that a save takes long enough to be hit in its middle."""


def killed(kind: kinds.Kind, count: int, seed: int = 0) -> Row:
    """Kill `count` processes that save again and again."""
    rng = random.Random(seed)
    bad = lost = 0
    for _ in range(count):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            acknowledged = _run_and_kill(kind, folder, rng.uniform(0.0, 0.06))
            found = _found(kind, folder)
            bad += found is None
            lost += found is not None and found < acknowledged
    return Row(f"kill -9 during {kind.name}", count, bad + lost, f"{bad} not loadable, {lost} older than acknowledged")


def _run_and_kill(kind: kinds.Kind, folder: pathlib.Path, after: float) -> int:
    """The number of the last save that was acknowledged before the kill, which comes some time after the first."""
    reading, writing = os.pipe()

    def save() -> None:
        made = kinds.model(UNITS)
        for number in range(1, 10_000):
            kinds.fill(made, float(number))
            kind.save(made, folder)
            os.write(writing, number.to_bytes(4, "little"))

    child = forked(save)
    os.close(writing)
    select.select([reading], [], [], 60)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as stream:
        content = stream.read()
    return int.from_bytes(content[-4:], "little")


def _found(kind: kinds.Kind, folder: pathlib.Path) -> int | None:
    """The number of the save that loads; None if none does, or if it is a mixture."""
    made = kinds.model(UNITS, 0.0)
    try:
        kind.load(made, folder)
    except (ValueError, OSError, kinds.tf.errors.NotFoundError):
        return None
    values = np.unique(np.concatenate([weight.ravel() for weight in made.get_weights()]))
    return int(values[0]) if len(values) == 1 else None
