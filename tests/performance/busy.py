"""Section `busy`: an epoch of `fit` alone, and of two and of four trainings at once: the slowest of them.

BLAS has the threads that this project gives it: the trainings know nothing of one another.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import clock
from .executors import NATIVE
from .problems import PROBLEMS
from .settings import THREADS_OF_BLAS, Settings
from .training import FIT, KERAS, NATIVE_FIT, environment_of
from .worker import Worker, workers

AT_ONCE = (2, 4)
LABEL = "medium"


def together(processes: list[Worker]) -> clock.Runner:
    """Epochs of all of them at the same time; seconds of the slowest."""

    def run(count: int) -> float:
        with ThreadPoolExecutor(len(processes)) as pool:
            return max(pool.map(lambda process: process(count), processes))

    return run


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row for each candidate and number of trainings."""
    label = "tiny" if settings.quick else LABEL
    jax = [KERAS.format("jax")] if settings.has("keras", "jax") else []
    names = [FIT, *([NATIVE_FIT] if settings.has(*NATIVE.needs) else []), *jax]
    rows: list[dict[str, Any]] = []
    for name in names:
        numbers = [str(number) for number in range(max(AT_ONCE))]
        given = environment_of([name]).get(name, THREADS_OF_BLAS)
        with workers("training", dict.fromkeys(numbers, (name, label)), dict.fromkeys(numbers, given)) as processes:
            everyone = list(processes.values())
            runners = {f"{name}, {count} at once": together(everyone[:count]) for count in AT_ONCE}
            seconds = clock.compare({name: everyone[0], **runners}, max(1, settings.rounds // 3), 0.0)
        rows += clock.rows("busy", f"epoch of fit, {PROBLEMS[label].title(label)}", seconds, name)
    return rows
