"""Comparing candidates on a machine whose speed changes from minute to minute.

Each lives in a process of its own (`worker.py`), and they are timed in turn, in blocks of about 100 ms, in an order that
rotates: what slows the computer down slows all of them, so ratios hold where seconds do not.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Runner = Callable[[int], float]
"""Carries out that many steps of a candidate and returns the seconds that they took."""

# OpenBLAS lets idle threads spin for 2^26 cycles and more. With a shorter pause they would spin into the next candidate's block
# and take its second processor: with 40 ms a step of 0.41 ms takes 0.52, with 70 ms 0.46, with 100 ms 0.41.
PAUSE = 0.12


def compare(runners: Mapping[str, Runner], rounds: int, block: float) -> dict[str, list[float]]:
    """Seconds a step of each candidate, one number a block.

    Args:
        runners: by name.
        rounds: blocks for each candidate.
        block: seconds a block; 0 for blocks of one step.
    """
    counts = {name: _count(runner, block) for name, runner in runners.items()}
    names = list(runners)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            time.sleep(PAUSE)
            if block:
                runners[name](1)
            seconds[name].append(runners[name](counts[name]) / counts[name])
    return seconds


def _count(runner: Runner, block: float) -> int:
    """Warm up, and find how many steps fill a block."""
    count = 1
    elapsed = runner(1)
    while elapsed < block / 2:
        count *= 2
        elapsed = runner(count)
    return max(1, round(count * block / elapsed)) if block else 1


def rows(section: str, problem: str, seconds: Mapping[str, list[float]], own: str, unit: str = "ms") -> list[dict[str, Any]]:
    """A row for each candidate: median and minimum, and how much of them the candidate `own` takes."""
    scale = {"ms": 1e3, "s": 1.0}[unit]
    found = []
    for name, values in seconds.items():
        median, minimum = statistics.median(values), min(values)
        row = {"section": section, "problem": problem, "candidate": name, "unit": unit, "blocks": len(values)}
        row |= {"median": median * scale, "minimum": minimum * scale}
        if own in seconds:
            row["own"] = own
            row["ratio_of_medians"] = statistics.median(seconds[own]) / median
            row["ratio_of_minima"] = min(seconds[own]) / minimum
        found.append(row)
    return found
