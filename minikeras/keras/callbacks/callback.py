"""Callback: the hooks, what a callback may remember over a restart, and callbacks of a few lines."""

from __future__ import annotations

import difflib
import importlib.util
import math
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from ... import markup
from ...errors import NotFiniteError
from ...ranks import is_first
from ..arguments import as_call

Logs = Mapping[str, Any]
"""What a step or an epoch reports, by name. Results may stay on the device until a callback reads them as numbers."""
Hook = TypeVar("Hook", bound=Callable[..., None])


def used_if(condition: Callable[[Any], bool]) -> Callable[[Hook], Hook]:
    """Mark a hook that does nothing unless a condition on the callback holds; steps between hooks that do nothing are taken in
    a row.
    """

    def mark(hook: Hook) -> Hook:
        marked: Any = hook
        marked.used = condition
        return hook

    return mark


class Callback:
    """Base class; override the hooks you need. Epochs and batches count from 0.

    Attributes:
        model: the model that is trained.
        params: 'epochs', 'steps' and 'verbose' of this call.

    >>> class Losses(tf.keras.callbacks.Callback):
    ...     def on_epoch_end(self, epoch, logs=None):
    ...         print(epoch, sorted(logs))
    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> history = model.fit([[1.0]], [[2.0]], epochs=2, verbose=0, callbacks=[Losses()])
    0 ['loss']
    1 ['loss']
    """

    params: Mapping[str, Any] = {}
    runs_last = False
    """True if its hooks run after those of all others, for a callback that looks at what they leave behind."""
    first_rank_only = False
    """True if its hooks run on the first rank alone, for a callback that writes files."""
    _model: Any = None
    model = property(attrgetter("_model"), doc="The model; None until `set_model`.")

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Called first, with 'epochs', 'steps' and 'verbose'."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Called second."""
        self._model = model

    def __repr__(self) -> str:
        return as_call(self)

    def __getstate__(self) -> dict[str, Any]:
        """A copy or pickle belongs to no model until one is set, rather than to a copy of the model."""
        return {name: value for name, value in vars(self).items() if name != "_model"}

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Before the first epoch."""

    def on_train_end(self, logs: Logs | None = None) -> None:
        """After the last epoch, with its logs; not if training raised."""

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Before an epoch."""

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """After an epoch and its validation, with the logs of both."""

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Before a step; forwards to `on_batch_begin`."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """After a step, with the means so far; forwards to `on_batch_end`."""
        self.on_batch_end(batch, logs)

    def on_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Another name of `on_train_batch_begin`."""

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Another name of `on_train_batch_end`."""

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """Before evaluation or validation."""

    def on_test_end(self, logs: Logs | None = None) -> None:
        """After evaluation or validation."""

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Before a batch of evaluation."""

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """After a batch of evaluation."""

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        """Before prediction."""

    def on_predict_end(self, logs: Logs | None = None) -> None:
        """After prediction."""

    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Before a batch of prediction."""

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """After a batch of prediction, with its 'outputs'."""

    def get_state(self) -> dict[str, Any]:
        """The state with which training goes on after a restart, bit for bit: plain values, arrays, nests of both."""
        return {}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` gave; called after `on_train_begin`."""


class Remembering(Callback):
    """A callback whose memory is a few attributes, named in `remembered`."""

    remembered: tuple[str, ...] = ()

    def get_state(self) -> dict[str, Any]:
        """The attributes."""
        return {name: getattr(self, name) for name in self.remembered}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore the attributes."""
        for name in self.remembered:
            setattr(self, name, state[name])


def tell(text: str) -> None:
    """Print a line for the user, above a progress bar if there is one; only the first rank prints."""
    if not is_first():
        return
    tqdm = sys.modules.get("tqdm")
    if tqdm is not None:
        tqdm.tqdm.write(text)
    else:
        print(text, flush=True)


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
    model = property(
        lambda history: history._model and history._model(),
        doc="The model, held weakly: it holds its history, and that would be a cycle.",
    )

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: list[int] = []
        self.logged_at: dict[str, list[int]] = {}

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
        """The picture in a notebook: the curves, if there are any and matplotlib is there."""
        if importlib.util.find_spec("matplotlib") is None or not self.history:
            return None
        from ...figures import picture

        return picture(self)

    def _repr_html_(self) -> str | None:
        """The last epochs as a table, in a notebook without matplotlib."""
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
                known = [hook for hook in dir(Callback) if hook.startswith("on_")]
                near = "".join(f" Did you mean {one}?" for one in difflib.get_close_matches(name, known, n=1))
                raise ValueError(f"LambdaCallback: there is no hook {name!r}.{near}")
            if function is not None:
                setattr(self, name, function)


class TerminateOnNaN(Callback):
    """Stops training when a loss is NaN or infinite, and says at which batch. The step with this loss is rolled back.

    So weights, slots and statistics are still good, unlike in Keras. (With `steps_per_execution` above 1, all steps since the
    loss was last looked at are rolled back.)

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


# Logs -----------------------------------------------------------------------------------------------------------------


def numbers(logs: Logs) -> dict[str, Any]:
    """Results as Python floats, or as arrays if they have axes."""
    if not isinstance(logs, Mapping):
        raise TypeError(f"train_step and test_step return a dict, such as {{'loss': loss}}, found {logs!r}.")
    arrays = {name: value.numpy() if hasattr(value, "numpy") else np.asarray(value) for name, value in logs.items()}
    return {name: values if values.ndim else float(values) for name, values in arrays.items()}


def readable(logs: Logs | None) -> str:
    """'accuracy: 0.9876 - loss: 0.1234', by name."""
    return " - ".join(f"{name}: {as_number(value)}" for name, value in sorted((logs or {}).items()))


def as_number(value: Any) -> str:
    """A number; of a metric with several their mean, as Keras shows it."""
    several = bool(getattr(value, "shape", ()))
    number = float(np.mean(value.numpy() if hasattr(value, "numpy") else value)) if several else float(value)
    return f"{number:.4f}" if number == 0 or abs(number) > 1e-3 else f"{number:.4e}"


def in_notebook() -> bool:
    """True if a notebook shows what is printed."""
    return type(sys.stdout).__module__.partition(".")[0] == "ipykernel"
