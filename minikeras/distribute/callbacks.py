"""Callbacks under Horovod's names, for `fit` with a `DistributedOptimizer`, where each rank has data of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..keras.callbacks import Callback
from ..keras.callbacks.callback import tell, used_if
from ..ranks import world
from .functions import broadcast_variables

__all__ = ["BroadcastGlobalVariablesCallback", "LearningRateWarmupCallback", "MetricAverageCallback"]


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
        optimizer.prepare(model.learning_variables())
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


class LearningRateWarmupCallback(Callback):
    """Raises the learning rate before each batch of the first epochs, from its share of a rank to all of it:

        rate = initial_lr / size * (1 + (size - 1) * (epoch + (batch + 1) / steps) / warmup_epochs)

    Args:
        initial_lr: the rate from then on, such as the rate for one rank times the number of ranks.
        warmup_epochs: how many epochs it takes.
        steps_per_epoch: the batches of an epoch; None for what `fit` knows.
        verbose: 1 to say when it is done.

    Raises:
        ValueError: before the first batch, if the number of steps is not known.

    Source: Goyal et al., Accurate, large minibatch SGD (2017), section 2.2; the momentum stays as it is.

    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> slowly = tf.distribute.LearningRateWarmupCallback(0.5, warmup_epochs=1)
    >>> model.fit([[1.0]], [[1.0]], verbose=0, callbacks=[slowly]).history["learning_rate"]
    [0.5]
    """

    def __init__(
        self, initial_lr: float, warmup_epochs: int = 5, *, steps_per_epoch: int | None = None, verbose: int = 0
    ) -> None:
        super().__init__()
        self.initial_lr, self.warmup_epochs = float(initial_lr), warmup_epochs
        self.steps_per_epoch, self.verbose = steps_per_epoch, verbose
        self._epoch = 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Note the epoch."""
        self._epoch = epoch

    @used_if(lambda self: self._epoch < self.warmup_epochs)
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Set the rate."""
        if self._epoch >= self.warmup_epochs:
            return
        if (steps := self.steps_per_epoch or self.params.get("steps")) is None:
            raise ValueError("LearningRateWarmupCallback: the number of batches is not known; give steps_per_epoch.")
        size, done = world().size, self._epoch + (batch + 1) / steps
        self.model.optimizer.learning_rate = self.initial_lr / size * (1 + (size - 1) * done / self.warmup_epochs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Log the rate."""
        rate = float(self.model.optimizer.learning_rate)
        if logs is not None:
            logs["learning_rate"] = rate
        if self.verbose and epoch == self.warmup_epochs - 1:
            tell(f"Epoch {epoch + 1}: the warm-up of the learning rate is done, at {rate:g}.")
