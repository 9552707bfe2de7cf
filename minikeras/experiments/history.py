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
    """

    def __init__(self, members: Sequence[History]) -> None:
        self.members = list(members)
        self.epoch = max((one.epoch for one in members), key=len)

    @property
    def history(self) -> dict[str, np.ndarray[Any, Any]]:
        """For each name the values of all members, of shape (epochs, members); NaN where there is none."""
        names = sorted({name for one in self.members for name in one.history})
        found = {name: np.full((len(self.epoch), len(self.members)), np.nan) for name in names}
        for place, one in enumerate(self.members):
            for name, values in one.history.items():
                for epoch, value in zip(one.logged_at[name], values, strict=True):
                    if epoch in self.epoch:
                        found[name][self.epoch.index(epoch), place] = value
        return found

    def __repr__(self) -> str:
        return f"<EnsembleHistory members={len(self.members)}, epochs={len(self.epoch)}, names={sorted(self.history)}>"
