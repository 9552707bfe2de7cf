"""The steps of one pass over data, many in a row where nothing has to happen between two."""

from __future__ import annotations

import itertools
import time
from typing import Any

from ...compiler import Function
from ...compiler.tracing.pace import Pace
from ...data.table import RowBatches, of_one_size
from ...errors import ShapeError
from .. import batches
from ..batches import Feed
from .compiled import StepFunction
from .snapshot import Transaction
from .steps import Logs


class Executions:
    """Takes the steps of an epoch: many in a row where a program carries them out, batches are rows of arrays and no callback
    has a say in between, so no code of the user runs between two; else one by one.

    Args:
        name: of the method of the model, for messages.
        attempt: runs a step as a whole or not at all.
        step: what happens to a batch.
        feed: the batches.
        done: how many of the epoch were taken before.
        group: callbacks have a say after each multiple of this number of batches; None for never.
        pace: how many steps take about 20 ms, as far as it is known.
    """

    def __init__(
        self, name: str, attempt: Transaction, step: StepFunction, feed: Feed, done: int, group: int | None, pace: Pace
    ) -> None:
        self._name, self._attempt, self._step, self._feed = name, attempt, step, feed
        self._source, self._group, self.done = feed.source, group, done
        self._elements = feed.epoch(done)
        self._next: list[Any] = []
        self._pace = pace

    def prepare(self) -> bool:
        """Look up the batches of the next steps; whether there are any."""
        left = 1 if self._feed.steps is None else self._feed.steps - self.done
        if self._group is not None:
            left = min(left, self._group - self.done % self._group)
        self._next = list(itertools.islice(self._elements, max(1, min(left, self._pace.steps))))
        return bool(self._next)

    def run(self) -> Logs:
        """Take these steps; the logs of the last one."""
        began, replayed = time.perf_counter(), True
        logs: Logs = {}
        for alike in of_one_size(self._next):
            found = self._replay(alike)
            if found is None:
                replayed = False
                for element in alike:
                    logs = self._run_one(self._source.batch(element))
            else:
                logs = found
        self.done += len(self._next)
        if replayed:
            self._pace.took(len(self._next), time.perf_counter() - began)
        else:  # Python carries out the step, and may decide in it that there is no next one
            self._pace.steps = 1
        return logs

    def _replay(self, elements: list[Any]) -> Logs | None:
        """Carry steps out in a row, if a program can."""
        if self._source.table is None or not isinstance(self._step, Function):
            return None
        rows = RowBatches(self._source.table, elements)
        self._check(rows.first)
        return self._attempt.replay(self._step, rows)

    def _run_one(self, batch: Any) -> Logs:
        self._check(batch)
        try:
            return self._attempt(self._step, batch)
        except ShapeError as error:
            if self._source.checked:
                raise
            raise ShapeError(f"{error}{batches.batching_hint(batch)}") from error

    def _check(self, batch: Any) -> None:
        if not self._source.checked:
            batches.check_rows(self._name, self.done, batch)
