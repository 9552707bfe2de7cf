"""One progress bar over all runs of an experiment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..keras.callbacks import ProgressBar

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
        self._done = 0
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
            self._bar.finish(logs(), "run")
