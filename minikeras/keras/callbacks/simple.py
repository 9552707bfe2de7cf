"""Callbacks of a few lines: functions as hooks, and stopping at a loss that is not finite."""

from __future__ import annotations

import difflib
import math
from typing import Any

from ...errors import NotFiniteError
from ..logs import Logs
from .callback import Callback, tell


class LambdaCallback(Callback):
    """A callback from functions.

    Args:
        hooks: functions by the names of the hooks, `on_epoch_end=...`; None for none. Other names become attributes.

    Raises:
        ValueError: for a name that begins like that of a hook and is none.

    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> shout = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print(epoch, sorted(logs)))
    >>> _ = model.fit([[1.0]], [[1.0]], epochs=2, callbacks=[shout], verbose=0)
    0 ['loss']
    1 ['loss']
    """

    def __init__(self, **hooks: Any) -> None:
        for name, function in hooks.items():
            if name.startswith("on_") and not hasattr(Callback, name):
                raise ValueError(f"LambdaCallback: there is no hook {name!r}.{_near(name)}")
            if function is not None:
                setattr(self, name, function)


def _near(name: str) -> str:
    """The hook that was probably meant."""
    found = difflib.get_close_matches(name, [hook for hook in dir(Callback) if hook.startswith("on_")], n=1)
    return f" Did you mean {found[0]}?" if found else ""


class TerminateOnNaN(Callback):
    """Stops training when a loss is NaN or infinite, and says at which batch. The step that gave it is taken back.

    So weights, slots and statistics are still good, unlike after the same in Keras. (With `steps_per_execution` above 1, the
    steps since the loss was last looked at.)

    Args:
        raise_error: raise NotFiniteError instead of stopping.

    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> model.fit([[float("nan")]], [[1.0]], epochs=9, callbacks=[tf.keras.callbacks.TerminateOnNaN()], verbose=0).epoch
    Batch 0: Invalid loss nan, terminating training. Look for NaN in the data, or lower the learning rate.
    [0]
    """

    def __init__(self, raise_error: bool = False) -> None:
        self.raise_error = raise_error
        self._before: Any = None

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Keep what the step may change: one reference for each Variable."""
        self._before = self.model._snapshot()

    def on_train_end(self, logs: Logs | None = None) -> None:
        self._before = None

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        loss = (logs or {}).get("loss")
        if loss is not None and not math.isfinite(float(loss)):
            message = (
                f"Batch {batch}: Invalid loss {float(loss)}, terminating training. Look for NaN in the data, or lower the "
                "learning rate."
            )
            self._before.restore()
            if self.raise_error:
                raise NotFiniteError(message)
            tell(message)
            self.model.stop_training = True
