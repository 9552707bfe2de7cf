"""Section `recording`: what the first call of a compiled step takes, in eager steps of this project.

The step runs eagerly a few times before, so that its optimizer has its slots and the first call is the one that
records. Whatever an executor leaves for later shows in the second call.
"""

import statistics
import time
from typing import Any

from .candidates import CANDIDATES, Step, minikeras
from .executors import OWN, compiled, installed
from .problems import PROBLEMS, Problem, first_weights, one_batch
from .settings import Settings

EAGER = 5
OTHERS = ("tf.function", "JAX jit")
Calls = dict[str, list[tuple[float, float]]]


def _seconds(step: Step) -> float:
    """Of one call."""
    start = time.perf_counter()
    float(step())
    return time.perf_counter() - start


def _calls(problem: Problem, settings: Settings, turns: int) -> Calls:
    """By candidate the first and the second call of each turn, in eager steps."""
    weights, data = first_weights(problem.sizes), one_batch(problem)
    found: Calls = {OWN: [(1.0, 1.0)] * turns}
    for _ in range(turns):
        for executor in installed(settings):
            step = minikeras(problem, weights, data)
            step()
            eager = statistics.median(_seconds(step) for _ in range(EAGER))
            function = compiled(step, executor)
            found.setdefault(executor.title, []).append((_seconds(function) / eager, _seconds(function) / eager))
        for name in OTHERS:
            if settings.has(*CANDIDATES[name].needs):
                step = CANDIDATES[name].setup(problem, weights, data)
                found.setdefault(name, []).append((_seconds(step) / eager, _seconds(step) / eager))
    return found


def measure(settings: Settings) -> list[dict[str, Any]]:
    """Rows of the first and of the second call for every size and candidate."""
    from . import peers  # noqa: F401  (it enters its candidates)

    rows = []
    turns = max(1, settings.rounds // 3)
    for label, problem in PROBLEMS.items():
        if settings.quick and label != "tiny":
            continue
        calls = _calls(problem, settings, turns)
        for which, call in enumerate(("first", "second")):
            for name, pairs in calls.items():
                numbers = [pair[which] for pair in pairs]
                row = {"section": "recording", "problem": f"{call} call, {problem.title(label)}", "candidate": name}
                row |= {"unit": "eager steps", "blocks": turns}
                rows.append({**row, "median": statistics.median(numbers), "minimum": min(numbers)})
    return rows
