"""Comparing candidates on a machine whose speed changes from minute to minute.

All candidates live in one run and are timed in turn, in blocks of about 100 ms, in an order that rotates. Whatever
slows the computer down then slows all of them, so ratios hold where seconds do not. Medians are compared with medians,
minima with minima; a difference below 20 % means nothing.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Any

Step = Callable[[], Any]

# OpenBLAS and OpenMP let idle threads spin for some milliseconds. Without this pause they would spin into the next
# candidate's block and take its second processor.
PAUSE = 0.04


def compare(
    steps: Mapping[str, Step], rounds: int, block: float, finish: Callable[[Any], Any] = float
) -> dict[str, list[float]]:
    """Seconds a step of each candidate, one number a block.

    Args:
        steps: by name; each returns something that `finish` accepts.
        rounds: blocks for each candidate.
        block: seconds a block; 0 for blocks of one step.
        finish: waits for a result: some candidates return before they have computed.
    """
    counts = {name: _count(step, block, finish) for name, step in steps.items()}
    names = list(steps)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    # What setting up has left behind, some frameworks' millions of objects, must not be searched for garbage in
    # the blocks of those candidates that allocate Python objects.
    gc.collect()
    gc.freeze()
    try:
        for turn in range(rounds):
            start = turn % len(names)
            for name in names[start:] + names[:start]:
                time.sleep(PAUSE if block else 0.0)
                _run(steps[name], 1 if block else 0, finish)
                seconds[name].append(_run(steps[name], counts[name], finish) / counts[name])
    finally:
        gc.unfreeze()
    return seconds


def _run(step: Step, count: int, finish: Callable[[Any], Any]) -> float:
    """Seconds for `count` steps."""
    result = None
    start = time.perf_counter()
    for _ in repeat(None, count):
        result = step()
    if count:
        finish(result)
    return time.perf_counter() - start


def _count(step: Step, block: float, finish: Callable[[Any], Any]) -> int:
    """Warm up, and find how many steps fill a block."""
    count = 1
    elapsed = _run(step, 1, finish)
    while elapsed < block / 2:
        count *= 2
        elapsed = _run(step, count, finish)
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
