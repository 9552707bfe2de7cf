"""The steps of one pass over data, recorded and replayed, many in a row where nothing has to happen between two."""

from __future__ import annotations

import itertools
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from ... import nest
from ...compiler import CompiledFunction
from ...compiler.scan import Pace
from ...core import Operand, to_numpy
from ...data.table import RowBatches, of_one_size
from ...errors import ShapeError
from ...functions.elementwise import identity
from .. import batches
from ..batches import Feed
from ..calls import mask_of
from .state import Transaction

StepFunction = Callable[[Any], Any]
MOST = 64
"""The most steps that are recorded: where ranks bring batches of ever new sizes, further ones run eagerly."""


class CompiledSteps:
    """The compiled steps of one model, by name; `planned` is the number of steps of the present `fit`."""

    __slots__ = ("_steps", "planned")

    def __init__(self, planned: int = 0) -> None:
        self._steps: dict[tuple[str, Any], CompiledFunction] = {}
        self.planned = planned

    def of(self, model: Any, name: str, split: Any = None) -> StepFunction:
        """The step of that name, for the rows of this rank if batches are split, compiled if the model was told so and it can
        be of use.
        """
        step: StepFunction = getattr(model, name) if split is None else partial(split.step, model, name)
        wanted = False if model.run_eagerly else model.jit_compile
        decides = name == "train_step" and getattr(model.optimizer, "needs_loss", False)
        if not wanted or (wanted == "auto" and decides and getattr(model.optimizer, "sweeps", None) is None):
            return step
        key = name, split
        if key not in self._steps:
            if len(self._steps) >= MOST:
                return step
            self._steps[key] = _recorded(model, name, split, wanted is True)
        if wanted == "auto" and not (split is not None and split.pairs):  # whose bits do not depend on what LLVM is worth
            self._steps[key].plan(self.planned)
        return self._steps[key]

    def __getitem__(self, name: str) -> CompiledFunction:
        """The function of a step, for its counters and programs."""
        return self._steps[name, None]

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledSteps, ()  # a copied model has other Variables


def _recorded(model: Any, name: str, split: Any, strict: bool) -> CompiledFunction:
    """A step of a model as a function of its batch."""
    # The model holds the function, and is freed with its last other reference.
    reference: Callable[[], Any] = weakref.ref(model)

    def run(data: Any) -> Any:
        found = getattr(reference(), name)(data) if split is None else split.step(reference(), name, data)
        if name != "predict_step":
            return found  # masks that predictions carry end here, since NumPy has none
        return nest.map_structure(lambda one: one if mask_of(one) is None else identity(one), found)

    return CompiledFunction(run, name=f"{model.name}.{name}", jit_compile=strict or None)


class Turn(NamedTuple):
    """The work on batches of one size.

    Attributes:
        step: for each.
        elements: stand for the rows of each that this rank computes on.
        whole: from an output for these rows, an array on the host, to that for all.
        around: a block around the steps.
    """

    step: StepFunction
    elements: list[Any]
    whole: Callable[[Any], Any] = lambda output: output
    around: AbstractContextManager[None] = nullcontext()


class Steps:
    """The steps of one pass over data, on all rows of each batch. Ranks share them out (`RankSteps` in `distribute`).

    Args:
        step_on: gives the step on a part of a batch; on all of it for None.

    Attributes:
        ended: whether training was told to stop.
    """

    ended = False

    def __init__(self, step_on: Callable[[Any], StepFunction]) -> None:
        self.step_on = cache(step_on)

    def take(self, elements: Iterator[Any], count: int, stop: bool) -> list[Any]:
        """The elements that stand for the batches of the next steps, `count` at most; none if training is told to stop, and
        `ended` is set then.
        """
        self.ended = stop
        return [] if stop else list(itertools.islice(elements, count))

    def on(self, elements: list[Any]) -> Turn:
        """The work on batches of one size."""
        return Turn(self.step_on(None), elements)


class Executions:
    """Takes the steps of an epoch: many in a row where a program carries them out, batches are rows of arrays and no callback
    has a say in between, so no code of the user runs between two; else one by one.

    Args:
        name: of the method of the model, for messages.
        attempt: runs a step as a whole or not at all.
        steps: what happens to a batch on this rank.
        feed: the batches.
        done: how many of the epoch were taken before.
        group: callbacks have a say after each multiple of this number of batches; None for never.
        pace: how many steps take about 20 ms, as far as it is known.
    """

    def __init__(
        self, name: str, attempt: Transaction | Unchanged, steps: Steps, feed: Feed, done: int, group: int | None, pace: Pace
    ) -> None:
        self._name, self._attempt, self.steps, self._feed = name, attempt, steps, feed
        self._source, self._group, self.done = feed.source, group, done
        self._elements = feed.epoch(done)
        self._next: list[Any] = []
        self._pace = pace

    def prepare(self, stop: bool = False) -> bool:
        """Look up the batches of the next steps, unless training is to stop; True if there are any."""
        left = 1 if self._feed.steps is None else self._feed.steps - self.done
        if self._group is not None:
            left = min(left, self._group - self.done % self._group)
        self._next = self.steps.take(self._elements, max(1, min(left, self._pace.steps)), stop)
        return bool(self._next)

    def run(self) -> Any:
        """Take these steps; the logs of the last one."""
        began, replayed = time.perf_counter(), True
        result: Any = {}
        for alike in of_one_size(self._next):
            turn = self.steps.on(alike)
            with turn.around:
                found = self._replay(turn.step, turn.elements)
                replayed = replayed and found is not None
                for element in turn.elements if found is None else ():
                    result = self._run_one(turn.step, self._source.batch(element))
                    self.keep(result, turn)
            if found is not None:
                result = found
                self.keep_many(found, turn)
        self.done += len(self._next)
        if replayed:
            self._pace.took(len(self._next), time.perf_counter() - began)
        else:  # Python carries out the step, and may decide in it that there is no next one
            self._pace.steps = 1
        return result

    def keep(self, result: Any, turn: Turn) -> None:
        """Keep the result of a step, if it is wanted."""

    def keep_many(self, results: Any, turn: Turn) -> None:
        """Keep the results of steps in a row."""

    def _replay(self, step: StepFunction, elements: list[Any]) -> Any:
        """Carry steps out in a row, if a program can."""
        if self._source.table is None or not isinstance(step, CompiledFunction):
            return None
        rows = RowBatches(self._source.table, elements)
        self._check(rows.first)
        return self._attempt.replay(step, rows)

    def _run_one(self, step: StepFunction, batch: Any) -> Any:
        self._check(batch)
        try:
            return self._attempt(step, batch)
        except ShapeError as error:
            if self._source.checked:
                raise
            shapes = [tuple(leaf.shape) for leaf in nest.flatten(batch) if leaf is not None]
            hint = f"The data gave a batch of shapes {shapes}; if that is a single row, use dataset.batch(32)."
            raise ShapeError(f"{error} {hint}") from error

    def _check(self, batch: Any) -> None:
        if not self._source.checked:
            batches.check_rows(self._name, self.done, batch)


class Unchanged:
    """Runs steps that predict: they change nothing, so there is no state to go back to."""

    def __call__(self, step: StepFunction, data: Any) -> Any:
        """Run a step."""
        return step(data)

    def replay(self, step: CompiledFunction, batches: RowBatches) -> Any:
        """Replay a compiled step for each batch: all results, stacked; or None, and nothing was done, without a program."""
        found = step.replay_many(batches, (batches.first,), lambda: None, stacked=True)
        return None if found is None else found[0]


class Predictions(Executions):
    """Takes steps that predict, and keeps what they give.

    Args:
        steps, feed, group: as in `Executions`.
        reduced: what is kept of an output; all of it by default.

    Attributes:
        structure: of the outputs.
        parts: the outputs of each batch for the rows of all ranks, on the host.
    """

    def __init__(
        self, steps: Steps, feed: Feed, group: int | None, reduced: Callable[[Any], Any] = lambda output: output
    ) -> None:
        super().__init__("predict", Unchanged(), steps, feed, 0, group, Pace())
        self._reduced = reduced
        self.structure: Any = None
        self.parts: list[list[Any]] = []

    def keep(self, result: Any, turn: Turn) -> None:
        self.structure = result
        self.parts.append([turn.whole(self._reduced(on_host(output))) for output in nest.flatten(result)])

    def keep_many(self, results: Any, turn: Turn) -> None:
        leaves = [on_host(output) for output in nest.flatten(results)]
        for number in range(len(turn.elements)):
            self.keep(nest.pack(results, [leaf[number] for leaf in leaves]), turn)

    def joined(self, first: int = 0, axis: int = 0) -> Any:
        """The outputs from the `first` batch on, whose rows are along an axis.

        Raises:
            ValueError: if there were no batches.
        """
        parts = self.parts[first:]
        if not parts:
            raise ValueError("predict: the data gave no batches. Check its length; a generator can be used up only once.")
        leaves = parts[0] if len(parts) == 1 else [np.concatenate(found, axis) for found in zip(*parts, strict=True)]
        return nest.pack(self.structure, leaves)


def on_host(output: Any) -> Any:
    """An output in host memory."""
    return to_numpy(output.array) if isinstance(output, Operand) else output
