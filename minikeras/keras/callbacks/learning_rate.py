"""Callbacks that set the learning rate. An optimizer made of several has one for each."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arguments import made_with_numpy
from ..logs import Logs
from .callback import Callback, tell
from .monitor import Monitor


def learning_rates(optimizer: Any, which: str = "optimizers") -> dict[str, Any]:
    """The optimizers within by the name under which their learning rate is logged; 'leaders' are those that may be set."""
    several = getattr(optimizer, which, None)
    return {f"learning_rate_{one.name}": one for one in several} if several else {"learning_rate": optimizer}


def _log(logs: Any, optimizer: Any) -> None:
    """Add the present learning rates to the logs of an epoch."""
    if logs is not None:
        logs.update({name: float(one.learning_rate) for name, one in learning_rates(optimizer).items()})


@made_with_numpy
class LearningRateScheduler(Callback):
    """Sets the learning rate at the beginning of each epoch, and logs it.

    Args:
        schedule: `schedule(epoch, learning_rate)`, or `schedule(epoch)`, gives the new one: a float, or a scalar Tensor or
            array of a float dtype.
        verbose: 1 to say so.

    Raises:
        ValueError: at the beginning of an epoch, if the schedule gives anything else.

    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> model.compile(tf.keras.optimizers.SGD(0.5), "mse")
    >>> halve = tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
    >>> model.fit([[1.0]], [[1.0]], epochs=3, callbacks=[halve], verbose=0).history["learning_rate"]
    [0.25, 0.125, 0.0625]
    """

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        self.schedule, self.verbose = schedule, verbose
        self._takes_rate = _takes_two(schedule)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        for name, optimizer in learning_rates(self.model.optimizer, "leaders").items():
            found = self.schedule(epoch, float(optimizer.learning_rate)) if self._takes_rate else self.schedule(epoch)
            if isinstance(found, int) or np.ndim(found) or np.asarray(found).dtype.kind != "f":
                raise ValueError(f"The output of the `schedule` function should be a float. Got: {found!r} at epoch {epoch}.")
            optimizer.learning_rate = rate = float(found)
            if self.verbose:
                tell(f"Epoch {epoch + 1}: LearningRateScheduler setting {name.replace('_', ' ', 1)} to {rate}.")

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        _log(logs, self.model.optimizer)


def _takes_two(schedule: Callable[..., Any]) -> bool:
    """Whether a schedule asks for the present rate as well as for the epoch."""
    try:
        inspect.signature(schedule).bind(0, 0.0)
    except TypeError:
        return False
    except ValueError:  # a function in C that does not tell
        return True
    return True


@made_with_numpy
class ReduceLROnPlateau(Monitor):
    """Makes the learning rate smaller when a value has not become better for some epochs, and logs it.

    Args:
        monitor: the value in the logs to watch.
        factor: the learning rate is multiplied by it; below 1.
        patience: epochs without improvement after which to do so.
        verbose: 1 to say so.
        mode: 'min', 'max' or 'auto'.
        min_delta: by how much the value must be better to count.
        cooldown: epochs after a reduction in which nothing is counted.
        min_lr: the learning rate does not fall below it.

    Raises:
        ValueError: for a factor of 1 or more.

    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    >>> model.compile(tf.keras.optimizers.SGD(0.5), "mse")
    >>> reduce = tf.keras.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=2)
    >>> model.fit([[1.0]], [[1.0]], epochs=4, callbacks=[reduce], verbose=0).history["learning_rate"]
    [0.5, 0.5, 0.5, 0.25]
    """

    remembered = ("best", "wait", "cooldown_counter")

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau does not support a factor >= 1.0. Received factor={factor}.")
        self.factor, self.patience, self.verbose, self.cooldown, self.min_lr = factor, patience, verbose, cooldown, min_lr
        self.wait = self.cooldown_counter = 0

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Start anew, so that the object can serve again."""
        self.best = None
        self.wait = self.cooldown_counter = 0

    def in_cooldown(self) -> bool:
        """Whether a reduction is so recent that nothing is counted."""
        return self.cooldown_counter > 0

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        _log(logs, self.model.optimizer)
        current = self.value(logs)
        if current is None:
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self.is_best(current):
            self.wait = 0
        elif not self.in_cooldown():
            self.wait += 1
            if self.wait >= self.patience and self._reduced(epoch):
                self.cooldown_counter, self.wait = self.cooldown, 0

    def _reduced(self, epoch: int) -> bool:
        """Make every learning rate smaller; whether any could be."""
        reduced = False
        for name, optimizer in learning_rates(self.model.optimizer, "leaders").items():
            old = float(optimizer.learning_rate)
            if old > np.float32(self.min_lr):
                optimizer.learning_rate = new = max(old * self.factor, self.min_lr)
                reduced = True
                if self.verbose:
                    tell(f"Epoch {epoch + 1}: ReduceLROnPlateau reducing {name.replace('_', ' ', 1)} to {new}.")
        return reduced
