"""Where the time of a compiled step goes: `python -m tests.performance.profile large [numpy]`, or `resnet calls predict`.

Natively each kernel is timed by itself, and finds its operands in the cache: their sum is what a step takes at best. By NumPy
each call is timed within the step; natively too what NumPy carries out between kernels, and a run of kernels as one call.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from .candidates import CANDIDATES
from .executors import NATIVE, NUMPY, Executor, fit_options
from .keras_models import MODELS, keras_trained
from .problems import PROBLEMS, first_weights, one_batch
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


def step_of(label: str, executor: Executor, predict: bool) -> Callable[[], Any]:
    """A compiled step of one of the problems, or of training or predicting with one of the models."""
    if label in PROBLEMS:
        problem = PROBLEMS[label]
        return CANDIDATES[executor.title].setup(problem, first_weights(problem.sizes), one_batch(problem))
    import minikeras as tf

    model = keras_trained(tf.keras, label, **fit_options(executor))
    x, y = MODELS[label].data(MODELS[label].batch)
    batch = tf.nest.map_structure(tf.constant, (tuple(x) if len(x) > 1 else x[0], y))
    step = model._trainer.steps.of(model, "predict_step" if predict else "train_step")
    return lambda: (model, step(batch))[1]  # the step keeps no reference to its model


def native(step: Callable[[], Any]) -> list[Row]:
    """The kernels of a step, each with the number of parts that threads share."""
    from minikeras.compiler.executors.llvm import segment

    found: list[tuple[Any, Any]] = []

    class Watched(segment.Segment):
        def __init__(self, calls: Any, *arguments: Any, **options: Any) -> None:
            super().__init__(calls, *arguments, **options)
            self.calls = calls

        def carry_out(self, job: Any) -> bool:
            found.append((self, job))
            return super().carry_out(job)

    segment.Segment = Watched  # type: ignore[misc]
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


def by_calls(step: Callable[[], Any]) -> list[Row]:
    """The calls of a step: those that NumPy carries out and, natively, runs of kernels."""
    from minikeras.compiler.executors.numpy.replay import Replay

    made: list[tuple[Any, Any]] = []
    begin = Replay.__init__

    def watched(self: Any, program: Any, steps: Any, *arguments: Any, **options: Any) -> None:
        made.append((self, steps))
        begin(self, program, steps, *arguments, **options)

    Replay.__init__ = watched  # type: ignore[method-assign]
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
    for _ in range(max(5, min(STEPS, int(4e6 / whole)))):
        step()
    return [*((seconds * 1e6, _in_words(call)) for seconds, (call, *_) in zip(best, steps, strict=True)), (whole, "a step")]


def _in_words(call: Any) -> str:
    return f"{call.record.primitive.name} -> {', '.join(map(repr, call.results))}"


if __name__ == "__main__":
    limit_threads(2)
    options = sys.argv[2:]
    step = step_of(sys.argv[1], NUMPY if "numpy" in options else NATIVE, "predict" in options)
    for microseconds, words in by_calls(step) if {"numpy", "calls"} & {*options} else native(step):
        print(f"{microseconds:10.1f} us  {words}")
