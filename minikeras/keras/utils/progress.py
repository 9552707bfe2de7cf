"""A progress bar for custom loops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..callbacks.progress_bar import ProgressBar


class Progbar:
    """The bar of `fit`, moved on by hand: `update` with the number of steps done and the values to show.

    Args:
        target: number of steps; None if it is not known.
        width: of the bar, in characters.
        verbose: 0 for nothing, 1 for a bar where one can be drawn, 2 for the line at the end alone.
        interval: seconds between two drawings.
        stateful_metrics: names of values that are shown as they are; all others are averaged over the steps.
        stateless_metrics: names of values that are averaged, instead; all others are shown as they are.
        unit_name: what a step is called.

    >>> bar = tf.keras.utils.Progbar(3, verbose=0)
    >>> for step in range(3):
    ...     bar.update(step + 1, [("loss", 1.0 / (step + 1))])
    """

    def __init__(
        self,
        target: int | None,
        width: int = 20,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Iterable[str] | None = None,
        stateless_metrics: Iterable[str] | None = None,
        unit_name: str = "step",
    ) -> None:
        if stateful_metrics is not None and stateless_metrics is not None:
            raise ValueError("Progbar: give either stateful_metrics or stateless_metrics.")
        self.target, self.unit_name = target, unit_name
        self._stateful = set(stateful_metrics or ())
        self._averaged = None if stateless_metrics is None else set(stateless_metrics)
        self._sums: dict[str, tuple[float, float]] = {}
        self._seen = 0
        self._bar = ProgressBar(verbose) if verbose else None
        if self._bar is not None:
            self._bar.params = {"steps": target}
            self._bar.begin("Progress", width, interval)

    def update(self, current: int, values: Iterable[tuple[str, Any]] | None = None, finalize: bool | None = None) -> None:
        """Steps done so far, and pairs of name and value.

        Args:
            current: the number of steps done.
            values: of the last of them.
            finalize: whether it is the last update; None for when `target` is reached. Values are then shown as they are.
        """
        last = self.target is not None and current >= self.target if finalize is None else finalize
        for name, value in values or ():
            averaged = name not in self._stateful if self._averaged is None else name in self._averaged
            steps = max(current - self._seen, 1) if averaged and not last else 1
            total, count = self._sums.get(name, (0.0, 0)) if averaged and not last else (0.0, 0)
            self._sums[name] = total + float(np.mean(value)) * steps, count + steps
        self._seen = current
        if self._bar is not None:
            logs = {name: total / count for name, (total, count) in self._sums.items()}
            self._bar.advance(current - 1, logs)
            if last:
                self._bar.finish(logs, self.unit_name)

    def add(self, n: int, values: Iterable[tuple[str, Any]] | None = None) -> None:
        """`n` more steps."""
        self.update(self._seen + n, values)
