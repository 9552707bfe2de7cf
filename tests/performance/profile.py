"""Where the time of a native step goes: `python -m tests.performance.profile large` times each of its kernels by itself.

A kernel that runs again and again finds its operands in the cache, so their sum is what the step would take at best.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from .settings import limit_threads

SECONDS = 0.15
"""For each kernel."""


def fastest(run: Callable[[], Any]) -> float:
    """Microseconds of the fastest run."""
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def profile(label: str) -> list[tuple[str, int, float]]:
    """What a step is made of: in words, in how many parts, and microseconds; the last row is the whole call."""
    import minikeras.compiler.executors.llvm.segment as native

    from .candidates import minikeras_native
    from .problems import PROBLEMS, first_weights, one_batch

    found: list[tuple[Any, Any]] = []

    class Watched(native.Segment):
        def __init__(self, calls: Any, *args: Any, **options: Any) -> None:
            super().__init__(calls, *args, **options)
            self.calls = calls

        def carry_out(self, job: Any) -> bool:
            found.append((self, job))
            return super().carry_out(job)

    native.Segment = Watched  # type: ignore[misc]
    step = minikeras_native(PROBLEMS[label], first_weights(PROBLEMS[label].sizes), one_batch(PROBLEMS[label]))
    for _ in range(5):
        step()
    found.clear()
    step()
    rows = []
    for segment, job in list(found):
        with segment._one_thread:
            for call, (function, operands), parts in zip(segment.calls, segment._instructions, job._table[:, 2], strict=True):
                alone = native.Job([(function, operands, int(parts))], job.addresses, flushes=True)
                rows.append((_in_words(call), int(parts), fastest(alone)))
            job.alone = ()
            rows.append(("all of them in one call", 0, fastest(job)))
    return [*rows, ("a step, called from Python", 0, fastest(step))]


def _in_words(call: Any) -> str:
    made = ", ".join(f"{y.dtype.name}{list(y.shape)}" for y in call.results)
    return f"{type(call.kernel).__name__} {call.record.primitive.name} -> {made}"


if __name__ == "__main__":
    limit_threads(2)
    for words, parts, microseconds in profile(sys.argv[1]):
        print(f"{microseconds:10.1f} us {parts or '':>3}  {words}")
