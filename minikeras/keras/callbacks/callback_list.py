"""CallbackList: several callbacks as one.

A hook that no callback overrides costs nothing; numbers are read from the device only if a callback wants them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import nest
from ...ranks import is_first
from .callback import Callback, History, Logs, numbers
from .progress_bar import ProgressBar

_SHORT = {"on_train_batch_begin": "on_batch_begin", "on_train_batch_end": "on_batch_end"}


def _forward(hook: str) -> Any:
    """The hook of a list, which calls that of each callback, with logs as plain numbers except for the outputs of predict."""
    plain = (lambda logs: logs) if hook == "on_predict_batch_end" else numbers
    whole: Any = lambda self, logs=None: self.call(hook, plain(logs or {}))
    part: Any = lambda self, index, logs=None: self.call(hook, index, plain(logs or {}))
    call = part if "epoch" in hook or "batch" in hook else whole
    call.__name__, call.__qualname__, call.__doc__ = hook, f"CallbackList.{hook}", f"Call `{hook}` of each callback."
    return call


class CallbackList:
    """Several callbacks as one, for a custom training loop: each hook calls that of every callback, with logs as plain numbers.

    The order is the user's, then `History`, then the progress bar, then those that run last. Used in `with`, leaving the block
    closes the bar.

    Args:
        callbacks: a callback, or a list of callbacks and CallbackLists; None for none.
        add_history: add a `History`, unless there is one.
        add_progbar: add a progress bar, unless there is one.
        model: the model that is trained; it may also be given later by `set_model`.
        group: call the hooks of a batch once for this number of batches, the steps of one execution.
        params: handed to each callback: 'epochs', 'steps'; 'verbose' is 1 or 'auto' for a bar, 2 for a line an epoch.

    Attributes:
        history: the `History`, or None.

    Raises:
        TypeError: for anything that is no callback.

    >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> callbacks = tf.keras.callbacks.CallbackList([], add_history=True, model=model, epochs=2)
    >>> callbacks.on_train_begin()
    >>> for epoch in range(2):
    ...     callbacks.on_epoch_begin(epoch)
    ...     callbacks.on_epoch_end(epoch, {"loss": tf.constant(0.5)})
    >>> callbacks.on_train_end()
    >>> callbacks.history.history
    {'loss': [0.5, 0.5]}
    """

    def __init__(
        self,
        callbacks: Any = None,
        add_history: bool = False,
        add_progbar: bool = False,
        model: Any = None,
        group: int = 1,
        **params: Any,
    ) -> None:
        given = list(_flat(callbacks))
        if params.get("verbose") == "auto":
            params["verbose"] = 1
        if add_history and not any(isinstance(one, History) for one in given):
            given.append(History())
        if add_progbar and not any(isinstance(one, ProgressBar) for one in given):
            given.append(ProgressBar(int(params.get("verbose", 1))))
        self._group = group
        self._held: tuple[int, Logs] | None = None
        self._hooks: dict[str, list[tuple[Callback, Callable[..., Any]]]] = {}
        self.callbacks: list[Callback] = sorted(given, key=lambda one: one.runs_last)
        self.params: Mapping[str, Any] = params
        if params:
            self.set_params(params)
        if model is not None:
            self.set_model(model)

    history = property(lambda self: _first(self, History), doc="The `History` among the callbacks; None if there is none.")
    _progress = property(lambda self: _first(self, ProgressBar))

    def append(self, callback: Callback) -> None:
        """Add a callback at the end; it is told of parameters and model by `set_params` and `set_model`."""
        self.callbacks.extend(_flat(callback))
        self._hooks.clear()

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Hand 'epochs', 'steps' and 'verbose' to each."""
        self.params = params
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model: Any) -> None:
        """Hand the model to each."""
        for callback in self.callbacks:
            callback.set_model(model)

    # Hooks ---------------------------------------------------------------------------------------------------------------

    def _those(self, hook: str) -> list[tuple[Callback, Callable[..., Any]]]:
        """The callbacks that do anything at this hook, with their methods."""
        if hook not in self._hooks:
            found = [(one, getattr(one, hook)) for one in self.callbacks]
            self._hooks[hook] = [(one, method) for one, method in found if _does_something(one, hook, method)]
        return self._hooks[hook]

    def _called(self, hook: str) -> list[tuple[Callback, Callable[..., Any]]]:
        """The callbacks that do anything at this hook and are called on this rank, with their methods."""
        found = self._those(hook)
        return found if is_first() else [(one, method) for one, method in found if not one.first_rank_only]

    def call(self, hook: str, *arguments: Any) -> None:
        """Call one hook of each, in order; the last argument are logs."""
        for _, method in self._called(hook):
            method(*arguments)

    on_train_begin, on_train_end = _forward("on_train_begin"), _forward("on_train_end")
    on_test_begin, on_test_end = _forward("on_test_begin"), _forward("on_test_end")
    on_predict_begin, on_predict_end = _forward("on_predict_begin"), _forward("on_predict_end")
    on_epoch_begin, on_epoch_end = _forward("on_epoch_begin"), _forward("on_epoch_end")
    on_batch_begin = on_train_batch_begin = _forward("on_train_batch_begin")
    on_batch_end = on_train_batch_end = _forward("on_train_batch_end")
    on_test_batch_begin, on_test_batch_end = _forward("on_test_batch_begin"), _forward("on_test_batch_end")
    on_predict_batch_begin, on_predict_batch_end = _forward("on_predict_batch_begin"), _forward("on_predict_batch_end")

    # Batches of a model ----------------------------------------------------------------------------------------------------

    def listens(self, phase: str) -> bool:
        """True if a callback has a hook for the batches of 'train' or 'test'."""
        return bool(self._listeners(phase))

    def group(self, phase: str) -> int | None:
        """The number of batches for which these hooks are called once; None if all are those of a progress bar, which can be
        told of any number at a time.
        """
        own = vars(ProgressBar).values()  # not an override in a user's subclass
        return None if all(getattr(method, "__func__", self) in own for _, method in self._listeners(phase)) else self._group

    def _listeners(self, phase: str) -> list[tuple[Callback, Callable[..., Any]]]:
        return [*self._those(f"on_{phase}_batch_begin"), *self._those(f"on_{phase}_batch_end")]

    def batch_begin(self, phase: str, batch: int) -> None:
        """Before a batch, or several in a row."""
        if batch % self._group == 0:
            self.call(f"on_{phase}_batch_begin", batch, {})

    def batch_end(self, phase: str, batch: int, logs: Logs) -> None:
        """After the batch of this number, and after each multiple of the group."""
        self._held = batch, logs
        if (batch + 1) % self._group == 0 or self.group(phase) is None:
            self.report(phase)

    def report(self, phase: str) -> None:
        """Report the last batch if it was not yet; on a GPU each number costs a wait, and the bar alone needs none."""
        if self._held is not None:
            (batch, logs), self._held = self._held, None
            listeners = self._called(f"on_{phase}_batch_end")
            plain = phase != "predict" and any(not isinstance(one, ProgressBar) for one, _ in listeners)
            for _, method in listeners:
                method(batch, numbers(logs) if plain else logs)

    def go_on(self, epoch: int, batch: int) -> None:
        """Go on in the middle of an epoch: the hooks of its beginning are not called again, but the bar shows it."""
        if self._progress is not None:
            self._progress.on_epoch_begin(epoch)
            self._progress.advance(batch - 1, None)

    # What they remember ------------------------------------------------------------------------------------------------

    def _remembering(self) -> list[Callback]:
        return [one for one in self.callbacks if getattr(one.get_state, "__func__", None) is not Callback.get_state]

    def get_state(self) -> list[dict[str, Any]]:
        """The state of each that has one, in order, under the name of its class."""
        return [{"class": type(one).__name__, "state": one.get_state()} for one in self._remembering()]

    def set_state(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Give each its state back; those without one need not be the same.

        Raises:
            ValueError: if these are not the callbacks whose states were saved; none is changed.
        """
        own = [type(one).__name__ for one in self._remembering()]
        states = [one for one in states if one["state"] or one["class"] in own]  # older files name the others too
        saved = [state["class"] for state in states]
        if own != saved:
            raise ValueError(f"The saved state belongs to the callbacks {saved}, found {own}. Give fit the same, in order.")
        for callback, state in zip(self._remembering(), states, strict=True):
            if is_first() or not callback.first_rank_only:
                callback.set_state(state["state"])

    def __enter__(self) -> CallbackList:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._progress is not None:
            self._progress.close()


def _first(callbacks: CallbackList, kind: type[Callback]) -> Any:
    return next((one for one in callbacks.callbacks if isinstance(one, kind)), None)


def _flat(callbacks: Any) -> list[Callback]:
    found: list[Callback] = []
    for one in [] if callbacks is None else nest.flatten(callbacks):
        if isinstance(one, CallbackList):
            found += one.callbacks
        elif isinstance(one, Callback):
            found.append(one)
        else:
            raise TypeError(f"callbacks: expected objects of keras.callbacks.Callback, found {one!r}.")
    return found


def _does_something(callback: Callback, hook: str, method: Any) -> bool:
    """True if a callback overrides a hook, under its full name or its short one, and the condition of `used_if` holds."""
    if getattr(method, "__func__", None) is not getattr(Callback, hook):
        used = getattr(method, "used", None)
        return used is None or bool(used(callback))
    short = _SHORT.get(hook)
    return short is not None and getattr(getattr(callback, short), "__func__", None) is not getattr(Callback, short)
