"""Callbacks under Horovod's names, for `fit` with a `DistributedOptimizer`, where each rank has data of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..keras.callbacks import Callback
from ..keras.callbacks.callback import used_if
from .functions import broadcast_variables
from .world import world


class BroadcastGlobalVariablesCallback(Callback):
    """Gives all ranks the weights, the optimizer's state and the metrics of one of them: when training begins, or after the
    first batch if the model has no weights before.

    Args:
        root_rank: the rank whose Variables they are.

    >>> tf.distribute.BroadcastGlobalVariablesCallback(0).root_rank
    0
    """

    def __init__(self, root_rank: int = 0) -> None:
        super().__init__()
        self.root_rank, self._done = int(root_rank), False

    def on_train_begin(self, logs: Any = None) -> None:
        """Broadcast, if there is what to."""
        self._done = False
        if self.model.built:
            self._broadcast()

    @used_if(lambda self: not self._done)
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Broadcast what the first batch has made."""
        if not self._done:
            self._broadcast()

    def _broadcast(self) -> None:
        model, optimizer = self.model, self.model.optimizer
        optimizer.prepare(model._learning_variables())
        found = [*model.variables, *optimizer.variables, *(one for metric in model.metrics for one in metric.variables)]
        broadcast_variables({variable.key: variable for variable in found}.values(), self.root_rank)
        self._done = True


class MetricAverageCallback(Callback):
    """Averages the logs of an epoch over the ranks. Callbacks that come after it, and `History`, see the same on all ranks.

    >>> logs = {"loss": 0.5}
    >>> tf.distribute.MetricAverageCallback().on_epoch_end(0, logs)
    >>> logs
    {'loss': 0.5}
    """

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Average them in place."""
        names, ranks = sorted(logs or {}), world()
        if names and ranks.size > 1:
            means = ranks.all_reduce(np.array([logs[name] for name in names], np.float64), "sum") / ranks.size
            logs.update(zip(names, means.tolist(), strict=True))
