"""EnsembleHistory: the logs of many members, epoch by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..keras.callbacks import History


class EnsembleHistory:
    """What `Ensemble.fit` returns.

    Attributes:
        members: the `History` of each member.
        epoch: the numbers of the epochs.

    >>> def build():
    ...     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    ...     model.compile("sgd", "mse")
    ...     return model
    >>> history = tf.experiments.Ensemble(build, 3).fit([[0.0], [1.0]], [[1.0], [3.0]], epochs=2, verbose=0)
    >>> history.history["loss"].shape, history.epoch
    ((2, 3), [0, 1])
    """

    def __init__(self, members: Sequence[History]) -> None:
        self.members = list(members)
        self.epoch = max((one.epoch for one in members), key=len)

    @property
    def history(self) -> dict[str, np.ndarray[Any, Any]]:
        """For each name the values of all members, of shape (epochs, members); NaN where there is none. Metrics of several
        numbers have further axes.
        """
        return {name: self._values(name) for name in sorted({name for one in self.members for name in one.history})}

    def _values(self, name: str) -> np.ndarray[Any, Any]:
        shape = next(np.shape(one.history[name][0]) for one in self.members if name in one.history)
        found = np.full((len(self.epoch), len(self.members), *shape), np.nan)
        for place, one in enumerate(self.members):
            for epoch, value in zip(one.logged_at.get(name, ()), one.history.get(name, ()), strict=True):
                if epoch in self.epoch:
                    found[self.epoch.index(epoch), place] = value
        return found

    def plot(self, names: Sequence[str] | None = None, **options: Any) -> Any:
        """Mean and deviation over the members against epochs, a panel for each name, as a matplotlib Figure.

        Args:
            names: of the logs; 'loss' by default, with 'val_loss' where there is one.
            options: `title`, and `axes` to draw into, one for each name.

        Raises:
            ValueError: for names that are not in the logs, or not of single numbers.
            MissingExtraError: without matplotlib.
        """
        from ..figures.runs import Band, plot_bands

        known = {name: values for name, values in self.history.items() if values.ndim == 2}
        chosen = [name for name in ("loss", "val_loss") if name in known] if names is None else list(names)
        if not chosen or any(name not in known for name in chosen):
            raise ValueError(f"plot: names must be among the numbers in the logs, {sorted(known)}; found {chosen}.")
        panels = {}
        for name in chosen:
            logged = ~np.isnan(known[name]).all(axis=1)
            values = np.ma.masked_invalid(known[name][logged])
            mean, deviation = (np.asarray(one) for one in (values.mean(axis=1), values.std(axis=1)))
            panels[name] = [Band(f"{len(self.members)} members", np.array(self.epoch)[logged], mean, deviation)]
        return plot_bands(panels, **options)

    def __repr__(self) -> str:
        return f"<EnsembleHistory members={len(self.members)}, epochs={len(self.epoch)}, names={sorted(self.history)}>"
