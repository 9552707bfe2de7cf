"""Callback: the hooks, and what a callback may remember over a restart."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ...distribute.world import is_first
from ..arguments import as_call
from ..logs import Logs

Hook = TypeVar("Hook", bound=Callable[..., None])


def used_if(condition: Callable[[Any], bool]) -> Callable[[Hook], Hook]:
    """Mark a hook that does nothing unless a condition holds of the callback; steps between hooks that do nothing are taken in
    a row.
    """

    def mark(hook: Hook) -> Hook:
        hook.used = condition  # type: ignore[attr-defined]
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
    """Whether its hooks come after those of all others, for a callback that looks at what they leave behind."""
    first_rank_only = False
    """Whether its hooks are called on the first of several ranks alone, for one that writes files."""
    _model: Any = None

    @property
    def model(self) -> Any:
        """The model; None until `set_model`."""
        return self._model

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
        """What training needs to go on after a restart as if nothing had happened: plain values, arrays, nests of both."""
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
        """Have them again."""
        for name in self.remembered:
            setattr(self, name, state[name])


def tell(text: str) -> None:
    """A line for the user, above a progress bar if there is one; of several ranks the first one's."""
    if not is_first():
        return
    tqdm = sys.modules.get("tqdm")
    if tqdm is not None:
        tqdm.tqdm.write(text)
    else:
        print(text, flush=True)
