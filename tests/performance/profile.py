"""Where the time of a compiled step goes: `python -m tests.performance.profile large`, or with `numpy` behind it.

Natively each kernel is timed by itself, and finds its operands in the cache: their sum is what a step takes at best. By NumPy
each call is timed within the step.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from .settings import limit_threads

SECONDS = 0.15
"""For each kernel."""
STEPS = 200
"""By NumPy."""
Row = tuple[float, str]
"""Microseconds, and what took them."""


def fastest(run: Callable[[], Any]) -> float:
    """Microseconds of the fastest run."""
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def native(label: str) -> list[Row]:
    """The kernels of a step, each with the number of parts that threads share."""
    from minikeras.compiler.executors.llvm import segment

    from .candidates import minikeras_native
    from .problems import PROBLEMS, first_weights, one_batch

    found: list[tuple[Any, Any]] = []

    class Watched(segment.Segment):
        def __init__(self, calls: Any, *arguments: Any, **options: Any) -> None:
            super().__init__(calls, *arguments, **options)
            self.calls = calls

        def carry_out(self, job: Any) -> bool:
            found.append((self, job))
            return super().carry_out(job)

    segment.Segment = Watched  # type: ignore[misc]
    step = minikeras_native(PROBLEMS[label], first_weights(PROBLEMS[label].sizes), one_batch(PROBLEMS[label]))
    for _ in range(5):
        step()
    found.clear()
    step()
    rows = []
    for one, job in list(found):
        with one._one_thread:
            for call, (function, operands), parts in zip(one.calls, one._instructions, job._table[:, 2], strict=True):
                alone = segment.Job([(function, operands, int(parts))], job.addresses, flushes=True)
                rows.append((fastest(alone), f"{parts} {type(call.kernel).__name__} {_in_words(call)}"))
            job.alone = ()
            rows.append((fastest(job), "all of these in one call"))
    return [*rows, (fastest(step), "a step, called from Python")]


def by_numpy(label: str) -> list[Row]:
    """The calls of a step that NumPy carries out."""
    from minikeras.compiler.executors.numpy.replay import Replay

    from .candidates import minikeras_function
    from .problems import PROBLEMS, first_weights, one_batch

    made: list[tuple[Any, Any]] = []
    begin = Replay.__init__

    def watched(self: Any, program: Any, steps: Any, *arguments: Any, **options: Any) -> None:
        made.append((self, steps))
        begin(self, program, steps, *arguments, **options)

    Replay.__init__ = watched  # type: ignore[method-assign]
    step = minikeras_function(PROBLEMS[label], first_weights(PROBLEMS[label].sizes), one_batch(PROBLEMS[label]))
    for _ in range(4):
        step()
    whole = fastest(step)
    replay, steps = made[-1]
    best = [float("inf")] * len(steps)

    def timed(number: int, closure: Callable[[Any], None]) -> Callable[[Any], None]:
        def run(registers: Any) -> None:
            start = time.perf_counter()
            closure(registers)
            best[number] = min(best[number], time.perf_counter() - start)

        return run

    position = 0
    for closures, _, _ in replay._parts:
        closures[:] = [timed(position + number, closure) for number, closure in enumerate(closures)]
        position += len(closures)
    for _ in range(STEPS):
        step()
    return [*((seconds * 1e6, _in_words(call)) for seconds, (call, *_) in zip(best, steps, strict=True)), (whole, "a step")]


def _in_words(call: Any) -> str:
    return f"{call.record.primitive.name} -> {', '.join(map(repr, call.results))}"


if __name__ == "__main__":
    limit_threads(2)
    for microseconds, words in by_numpy(sys.argv[1]) if sys.argv[2:] == ["numpy"] else native(sys.argv[1]):
        print(f"{microseconds:10.1f} us  {words}")
