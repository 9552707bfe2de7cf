"""Monitor: which of two values of a log is better. Base of the callbacks that decide by one."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..logs import Logs
from .callback import Remembering


class Monitor(Remembering):
    """A callback that watches one value of the logs: which is better ('auto' asks the metric), by how much, what to beat."""

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0, best: float | None = None) -> None:
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{type(self).__name__}: mode must be 'auto', 'min' or 'max', found {mode!r}.")
        self.monitor, self.mode, self.min_delta, self.best = monitor, mode, abs(min_delta), best

    def is_better(self, value: float, reference: float | None) -> bool:
        """Whether a value beats another by more than `min_delta`; NaN beats nothing, and every other number beats None."""
        direction = self.direction()
        if reference is None:
            return not math.isnan(value)
        return value - self.min_delta > reference if direction == "max" else value + self.min_delta < reference

    def is_best(self, value: float) -> bool:
        """Whether a value beats the best so far, which it then is."""
        better = self.is_better(value, self.best)
        if better:
            self.best = value
        return better

    def direction(self) -> str:
        """'min' or 'max'; ValueError if the metric does not say."""
        if self.mode != "auto":
            return self.mode
        found = self.model.metric_direction(self.monitor.removeprefix("val_"))
        if found is None:
            raise ValueError(
                f"{type(self).__name__}: monitor={self.monitor!r} names no metric that says whether more or less is better. "
                "Pass mode='max' or mode='min'."
            )
        self.mode = found
        return found

    def value(self, logs: Logs | None) -> Any:
        """The value in the logs; None, with a warning, if there is none."""
        found = (logs or {}).get(self.monitor)
        if found is None:
            warnings.warn(
                f"{type(self).__name__}: {self.monitor!r} is not in the logs. There are: {', '.join(logs or ()) or 'none'}.",
                stacklevel=3,
            )
        return found
