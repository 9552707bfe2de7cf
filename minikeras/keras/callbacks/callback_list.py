"""CallbackList: several callbacks as one.

Key idea: a hook that nobody overrides costs nothing, and the numbers of a batch are read from the device only if somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..logs import Logs, numbers
from .callback import Callback
from .history import History
from .progress_bar import ProgressBar

_SHORT = {"on_train_batch_begin": "on_batch_begin", "on_train_batch_end": "on_batch_end"}


class CallbackList:
    """The user's callbacks, then `History`, then the progress bar, then those that run last. Leaving its block closes the bar.

    Args:
        callbacks: the user's.
        model: the model that is trained.
        history: the History to append, or None.
        verbose: 0 for no progress bar, 1 or 'auto' for one, 2 for a line an epoch.
        group: call the hooks of a batch once for so many batches.
        params: handed to each, with `verbose`.

    Raises:
        TypeError: for anything that is no callback.
    """

    def __init__(
        self, callbacks: Any, model: Any, history: History | None, verbose: Any, group: int = 1, **params: Any
    ) -> None:
        given = [callbacks] if isinstance(callbacks, Callback) else list(callbacks or ())
        for callback in given:
            if not isinstance(callback, Callback):
                raise TypeError(f"callbacks: expected objects of keras.callbacks.Callback, found {callback!r}.")
        level = 1 if verbose == "auto" else int(verbose)
        self.history: Any = history
        self._progress = ProgressBar(level) if level else None
        present = [*given, *(one for one in (history, self._progress) if one is not None)]
        self.callbacks: list[Callback] = sorted(present, key=lambda one: one.runs_last)
        self._group = group
        self._held: tuple[int, Logs] | None = None
        self._hooks: dict[str, list[tuple[Callback, Callable[..., Any]]]] = {}
        for callback in self.callbacks:
            callback.set_params({**params, "verbose": level})
            callback.set_model(model)

    def _those(self, hook: str) -> list[tuple[Callback, Callable[..., Any]]]:
        """The callbacks that do anything at this hook, with their methods."""
        if hook not in self._hooks:
            found = [(one, getattr(one, hook)) for one in self.callbacks]
            self._hooks[hook] = [(one, method) for one, method in found if _does_something(one, hook, method)]
        return self._hooks[hook]

    def call(self, hook: str, *arguments: Any) -> None:
        """Call one hook of each, in order."""
        for _, method in self._those(hook):
            method(*arguments)

    def listens(self, phase: str) -> bool:
        """Whether anybody wants to hear of the batches of 'train' or 'test'."""
        return any(self._those(f"on_{phase}_batch_{when}") for when in ("begin", "end"))

    def batch_begin(self, phase: str, batch: int) -> None:
        """Before a batch."""
        if batch % self._group == 0:
            self.call(f"on_{phase}_batch_begin", batch, None)

    def batch_end(self, phase: str, batch: int, logs: Logs) -> None:
        """After a batch; once for each group of batches."""
        self._held = batch, logs
        if (batch + 1) % self._group == 0:
            self.report(phase)

    def report(self, phase: str) -> None:
        """Report the last batch if it was not yet: in plain numbers if anybody but the progress bar listens.

        On a GPU each number costs a wait.
        """
        if self._held is not None:
            (batch, logs), self._held = self._held, None
            listeners = self._those(f"on_{phase}_batch_end")
            plain = any(one is not self._progress for one, _ in listeners)
            for _, method in listeners:
                method(batch, numbers(logs) if plain else logs)

    def go_on(self, epoch: int, batch: int) -> None:
        """Go on in the middle of an epoch: nobody hears of its beginning again, but the bar shows it."""
        if self._progress is not None:
            self._progress.on_epoch_begin(epoch)
            self._progress.advance_to(batch)

    # What they remember ------------------------------------------------------------------------------------------------

    def _remembering(self) -> list[Callback]:
        return [one for one in self.callbacks if one is not self._progress]

    def get_state(self) -> list[dict[str, Any]]:
        """The state of each, in order, under the name of its class."""
        return [{"class": type(one).__name__, "state": one.get_state()} for one in self._remembering()]

    def set_state(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Give each its state back.

        Raises:
            ValueError: if these are not the callbacks whose states were saved; none is changed.
        """
        own = [type(one).__name__ for one in self._remembering()]
        saved = [state["class"] for state in states]
        if own != saved:
            raise ValueError(f"The saved state belongs to the callbacks {saved}, found {own}. Give fit the same, in order.")
        for callback, state in zip(self._remembering(), states, strict=True):
            callback.set_state(state["state"])

    def __enter__(self) -> CallbackList:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._progress is not None:
            self._progress.close()


def _does_something(callback: Callback, hook: str, method: Any) -> bool:
    """Whether a hook is overridden, itself or under its short name."""
    if getattr(method, "__func__", None) is not getattr(Callback, hook):
        return True
    short = _SHORT.get(hook)
    return short is not None and getattr(getattr(callback, short), "__func__", None) is not getattr(Callback, short)
