"""One progress bar over all runs of an experiment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from ..keras.callbacks import ProgressBar
from ..keras.callbacks.progress_bar import readable
from ..keras.logs import in_notebook

Logs = Callable[[], Any]
"""Gives the numbers to show; it is not called if there is no bar."""


class RunsProgress:
    """A bar with the number of runs that have ended, or none. Used in `with`, leaving the block closes it.

    Args:
        label: what runs.
        runs: how many.
        verbose: as in `Model.fit`.
    """

    def __init__(self, label: str, runs: int, verbose: Any) -> None:
        self._done, self._label, self._started = 0, label, time.perf_counter()
        self._bar = ProgressBar(1 if verbose == "auto" else int(verbose)) if verbose not in (0, False) else None
        if self._bar is not None:
            self._bar.set_params({"steps": runs})
            self._bar.begin(label)

    def __enter__(self) -> RunsProgress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, done: int, logs: Logs = dict) -> None:
        """So many have ended."""
        if self._bar is not None and done > self._done:
            self._done = done
            self._bar.advance(done - 1, logs())

    def finish(self, logs: Logs = dict) -> None:
        """The line that stays."""
        if self._bar is not None:
            self._bar.end()
            seconds, runs = time.perf_counter() - self._started, f"{self._done} run{'' if self._done == 1 else 's'}"
            line = ", ".join(filter(None, [f"{self._label}: {runs} in {seconds:.1f} s", readable(logs())]))
            print(f"{line}\n", end="", file=sys.stdout if in_notebook() else sys.stderr, flush=True)
