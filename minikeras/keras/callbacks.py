"""Callbacks: what happens around epochs and batches of `fit`, `evaluate` and `predict`.

Key idea: training calls hooks in a fixed order and knows nothing of what they do; history and progress bar are callbacks like
any other. The user's run first, then `History`, then the progress bar.
"""

from __future__ import annotations

import math
import sys
import time
import weakref
from collections.abc import Mapping
from typing import Any

from .logs import Logs, numbers


class Callback:
    """Base class; override the hooks you need. Epochs and batches count from 0.

    Attributes:
        model: the model that is trained.
        params: 'epochs', 'steps' and 'verbose' of this call.
    """

    params: Mapping[str, Any] = {}
    _model: Any = None

    @property
    def model(self) -> Any:
        """The model, held weakly: it may hold its history, and that would be a cycle."""
        return None if self._model is None else self._model()

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Called first, with 'epochs', 'steps' and 'verbose'."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Called second."""
        self._model = weakref.ref(model)

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


class CallbackList:
    """Several callbacks as one: the user's, then `History`, then the progress bar. Leaving its block closes the bar.

    Args:
        callbacks: the user's.
        model: the model that is trained.
        history: the History to append, or None.
        verbose: 0 for no progress bar, 1 or 'auto' for one, 2 for a line an epoch.
        params: handed to each, with `verbose`.
    """

    def __init__(self, callbacks: Any, model: Any, history: History | None, verbose: Any, **params: Any) -> None:
        given = [callbacks] if isinstance(callbacks, Callback) else list(callbacks or ())
        for callback in given:
            if not isinstance(callback, Callback):
                raise TypeError(f"callbacks: expected objects of keras.callbacks.Callback, found {callback!r}.")
        level = 1 if verbose == "auto" else int(verbose)
        self.history: Any = history
        self._progress = ProgressBar(level) if level else None
        self._reported = bool(given)
        self.callbacks: list[Callback] = [*given, *(one for one in (history, self._progress) if one is not None)]
        for callback in self.callbacks:
            callback.set_params({**params, "verbose": level})
            callback.set_model(model)

    def call(self, hook: str, *arguments: Any) -> None:
        """Call one hook of each, in order."""
        for callback in self.callbacks:
            getattr(callback, hook)(*arguments)

    def batch_end(self, phase: str, batch: int, logs: Logs) -> None:
        """Report a batch, in plain numbers if anybody but the progress bar listens: on a GPU each number costs a wait."""
        self.call(f"on_{phase}_batch_end", batch, numbers(logs) if self._reported else logs)

    def __enter__(self) -> CallbackList:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._progress is not None:
            self._progress.close()


class History(Callback):
    """Keeps the logs of each epoch; `fit` returns it.

    Attributes:
        history: for each name the list of its values, one an epoch.
        epoch: the numbers of the epochs.
    """

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: list[int] = []

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Start with an empty list of epochs."""
        self.epoch = []

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Append the logs."""
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)
        self.model.history = self


class ProgressBar(Callback):
    """A line when an epoch, an evaluation or a prediction is done; on a terminal a bar, drawn by tqdm, until then.

    Args:
        verbose: 1 for a bar on a terminal, 2 for the lines alone.
    """

    def __init__(self, verbose: int = 1) -> None:
        self._live = verbose == 1 and sys.stderr.isatty()
        self._bar: Any = None
        self._label = ""
        self._seen = 0
        self._started = 0.0
        self._training = False

    def _begin(self, label: str) -> None:
        self._label, self._seen, self._started = label, 0, time.perf_counter()
        if self._live:
            from tqdm import tqdm

            layout = "{desc} {n_fmt}/{total_fmt} |{bar:12}| {remaining}{postfix}"
            self._bar = tqdm(total=self.params.get("steps"), desc=label, dynamic_ncols=True, bar_format=layout, leave=False)

    def _advance(self, logs: Logs | None) -> None:
        self._seen += 1
        if self._live:
            if self._bar.n + 1 - self._bar.last_print_n >= self._bar.miniters:
                self._bar.set_postfix_str(readable(logs), refresh=False)
            self._bar.update()

    def _finish(self, logs: Logs | None) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        steps = f"{self._seen} step{'' if self._seen == 1 else 's'} in {time.perf_counter() - self._started:.1f} s"
        print(", ".join(filter(None, [f"{self._label}: {steps}", readable(logs)])), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave a bar that was broken off as it is, and go to the next line."""
        if self._bar is not None:
            self._bar.leave = True
            self._bar.close()
            self._bar = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Validation within an epoch gets no line of its own."""
        self._training = True

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """A new bar."""
        self._begin(f"Epoch {epoch + 1}/{self.params.get('epochs')}")

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """One step further, with loss and metrics."""
        self._advance(logs)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """The final numbers, validation included."""
        self._finish(logs)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """A bar, if this is an evaluation by itself."""
        if not self._training:
            self._begin("Evaluate")

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """One step further."""
        if not self._training:
            self._advance(logs)

    def on_test_end(self, logs: Logs | None = None) -> None:
        """The final numbers."""
        if not self._training:
            self._finish(logs)

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        """A bar."""
        self._begin("Predict")

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """One step further."""
        self._advance(None)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        """Done."""
        self._finish(None)


def readable(logs: Logs | None) -> str:
    """'loss 0.1234, accuracy 0.9876': the loss first, then the others by name, validation last."""
    order = sorted(logs or {}, key=lambda name: (name.startswith("val_"), name.removeprefix("val_") != "loss", name))
    return ", ".join(f"{name} {_number((logs or {})[name])}" for name in order)


def _number(value: Any) -> str:
    number = float(value)
    return f"{number:.4f}" if number == 0 or 1e-3 <= abs(number) < 1e4 else f"{number:.3e}"


class LambdaCallback(Callback):
    """A callback from functions: `LambdaCallback(on_epoch_end=lambda epoch, logs: print(epoch))`."""

    def __init__(self, **hooks: Any) -> None:
        for name, function in hooks.items():
            if not name.startswith("on_") or not hasattr(Callback, name):
                raise ValueError(f"LambdaCallback: there is no hook {name!r}.")
            if function is not None:
                setattr(self, name, function)


class TerminateOnNaN(Callback):
    """Stops training when a loss is NaN or infinite, and says at which batch.

    Args:
        raise_error: raise NotFiniteError instead of stopping.
    """

    def __init__(self, raise_error: bool = False) -> None:
        self.raise_error = raise_error

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Look at the loss."""
        loss = (logs or {}).get("loss")
        if loss is not None and not math.isfinite(float(loss)):
            from ..errors import NotFiniteError

            message = (
                f"Batch {batch}: Invalid loss {float(loss)}, terminating training. Look for NaN in the data, or lower the "
                "learning rate."
            )
            if self.raise_error:
                raise NotFiniteError(message)
            print(message, file=sys.stderr)
            self.model.stop_training = True
