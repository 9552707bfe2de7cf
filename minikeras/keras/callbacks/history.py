"""History: the logs of each epoch."""

from __future__ import annotations

import importlib.util
import weakref
from collections.abc import Sequence
from typing import Any

from ... import markup
from ..logs import Logs
from .callback import Remembering
from .progress_bar import as_number, readable

_FEW_EPOCHS = 20
"""So many epochs are shown as a table."""


class History(Remembering):
    """Keeps the logs of each epoch; `fit` returns it.

    Attributes:
        history: for each name the list of its values, one an epoch.
        epoch: the numbers of the epochs.
        logged_at: for each name the epochs of its values; validation may take place at some epochs only.

    >>> history = History()
    >>> history.history = {"loss": [3.0, 2.0], "val_loss": [4.0, 3.0]}
    >>> len(history.plot(title="a run").axes[0].lines)
    2
    """

    remembered = ("history", "epoch", "logged_at")

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: list[int] = []
        self.logged_at: dict[str, list[int]] = {}

    @property
    def model(self) -> Any:
        """The model, held weakly: it holds its history, and that would be a cycle."""
        return None if self._model is None else self._model()

    def set_model(self, model: Any) -> None:
        """Keep a weak link."""
        self._model = weakref.ref(model)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self.epoch = []

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)
            self.logged_at.setdefault(name, []).append(epoch)
        self.model.history = self

    def __repr__(self) -> str:
        count = len(self.epoch)
        last = readable({name: values[-1] for name, values in self.history.items() if len(values)})
        return f"<History of {count} epoch{'' if count == 1 else 's'}{': ' if last else ''}{last}>"

    def _repr_png_(self) -> bytes | None:
        """What a notebook shows: the curves, if there are any and matplotlib is there."""
        if importlib.util.find_spec("matplotlib") is None or not self.history:
            return None
        from ...figures.runs import picture

        return picture(self)

    def _repr_html_(self) -> str | None:
        """What a notebook shows without matplotlib: the last epochs as a table."""
        if importlib.util.find_spec("matplotlib") is not None or not self.history:
            return None
        names, epochs = list(self.history), self.epoch[-_FEW_EPOCHS:]
        known = {name: dict(zip(self.logged_at[name], values, strict=True)) for name, values in self.history.items()}
        rows = [
            [f"{epoch + 1}", *(as_number(known[name][epoch]) if epoch in known[name] else "" for name in names)]
            for epoch in epochs
        ]
        return markup.table(["epoch", *names], rows, range(len(names) + 1))

    def plot(self, names: Sequence[str] | None = None, **options: Any) -> Any:
        """Loss and metrics over the epochs as a matplotlib Figure; arguments as in `keras.utils.plot_history`."""
        from ...figures import plot_history

        return plot_history(self, names, **options)
