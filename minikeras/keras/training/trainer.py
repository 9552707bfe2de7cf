"""fit, evaluate, predict: the loops over batches and epochs, and the same for a single batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ... import nest
from ...arrays import to_numpy
from ...boundary import explaining
from ...errors import ShapeError
from .. import batches
from ..arguments import takes_numpy, whole
from ..batches import Feed
from ..callbacks import CallbackList, History
from ..logs import numbers
from . import state as states
from .snapshot import Snapshot, Transaction
from .state import Run
from .steps import Logs, Steps


class Trainer(Steps):
    """What `Model` adds to `Layer`."""

    # One batch -----------------------------------------------------------------------------------------------------------

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """One step on one batch; metrics start anew.

        Returns:
            The loss, [loss, metrics...], or logs by name with `return_dict`.
        """
        self._need_compile("train_on_batch")
        data = batches.source("train_on_batch", x, y, sample_weight, None, False, class_weight, whole=True).first()
        return self._on_batch(self._compiled_steps.of(self, "train_step"), data, return_dict)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False) -> Any:
        """Loss and metrics of one batch, which start anew."""
        self._need_compile("test_on_batch")
        data = batches.source("test_on_batch", x, y, sample_weight, None, False, whole=True).first()
        return self._on_batch(self._compiled_steps.of(self, "test_step"), data, return_dict)

    def _on_batch(self, step: Callable[[Any], Logs], data: Any, return_dict: bool) -> Any:
        self.reset_metrics()
        with np.errstate(all="ignore"):
            logs = numbers(Transaction(self)(step, data))
        return logs if return_dict else _listed(logs)

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch, as NumPy arrays."""
        data = batches.source("predict_on_batch", x, None, None, None, False, whole=True).first()
        with np.errstate(all="ignore"):
            return nest.map_structure(_as_numpy, self.predict_step(data))

    # Whole data sets -----------------------------------------------------------------------------------------------------

    @explaining
    @takes_numpy
    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool | str = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: Any = 1,
    ) -> History:
        """Train for a number of epochs.

        Args:
            x, y: arrays, Tensors, data frames, lists or dicts of them; or a Dataset, PyDataset, generator or loader of batches
                as `x`.
            batch_size: rows a step, 32 by default; the last batch of an epoch may be smaller.
            epochs: index of the last epoch, counted from 0 and not from `initial_epoch`.
            verbose: 0 silent, 1 or 'auto' a progress bar (a line an epoch where there is no terminal), 2 a line an epoch.
            callbacks: a list of `Callback`.
            validation_split: share of the rows, from the end, kept for validation; cut off before shuffling.
            validation_data: (x, y), (x, y, sample_weight) or batches.
            shuffle: whether the rows of arrays, or the batches of a PyDataset, are shuffled anew for each epoch; 'batch' keeps
                the rows of a batch together.
            class_weight: weight of each class in the loss.
            sample_weight: weight of each row in the loss; for several outputs a list or dict as for `y`.
            initial_epoch: where to start counting.
            steps_per_epoch: end an epoch after so many steps; needed for data without end.
            validation_steps, validation_batch_size: likewise for validation.
            validation_freq: validate every so many epochs, or a list of epochs counted from 1.

        Returns:
            The `History`: `.history` holds a list for each name, `.epoch` the epochs.

        Raises:
            ValueError: if the model is not compiled or the data does not fit together.
            TypeError: if a number of epochs, rows or steps is no whole number.

        >>> import minikeras as tf
        >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> history = model.fit([[0.0], [1.0]], [[0.0], [1.0]], epochs=3, verbose=0)
        >>> sorted(history.history), history.epoch
        (['loss'], [0, 1, 2])
        """
        self._need_compile("fit")
        _check_counts("fit", epochs=epochs, initial_epoch=initial_epoch)
        _check_counts("fit", 1, batch_size=batch_size, steps_per_epoch=steps_per_epoch)
        _check_counts("fit", 1, validation_steps=validation_steps, validation_batch_size=validation_batch_size)
        due = _due(validation_freq)
        if validation_split:
            if batches.is_iterable_of_batches(x):
                raise ValueError("validation_split needs arrays; split batches yourself and give validation_data.")
            columns = batches.as_columns(x), batches.as_columns(y), batches.as_columns(sample_weight)
            (x, y, sample_weight), validation_data = batches.split(columns, validation_split)
        feed = Feed(batches.source("fit", x, y, sample_weight, batch_size, shuffle, class_weight), steps_per_epoch)
        validation = None
        if validation_data is not None:
            size = validation_batch_size or (None if batches.is_iterable_of_batches(x) else batch_size)
            validation = self._validation(validation_data, size, validation_steps)
        hooks = self._hooks(callbacks, True, verbose, epochs, feed.steps)
        self._compiled_steps.planned = epochs * (feed.steps or 0)
        self.stop_training = False
        logs: Logs = {}
        with hooks:
            self._run = run = Run(initial_epoch, feed, hooks)
            try:
                hooks.call("on_train_begin", {})
                self._go_on(run)
                while run.epoch < epochs and not self.stop_training:
                    logs = self._fit_epoch(run, validation if validation and due(run.epoch) else None) or logs
                if self.optimizer is not None and run.epoch > initial_epoch:
                    self.optimizer.finalize_variable_values(self.trainable_variables)  # type: ignore[attr-defined]
                hooks.call("on_train_end", logs)
            finally:
                self._run = None
        return hooks.history

    def _hooks(self, callbacks: Any, history: bool, verbose: Any, epochs: int, steps: int | None) -> CallbackList:
        level = 1 if verbose == "auto" else int(verbose)
        params = {"epochs": epochs, "steps": steps, "verbose": level}
        return CallbackList(callbacks, history, level > 0, self, self.steps_per_execution, **params)

    def _fit_epoch(self, run: Run, validation: Feed | None) -> Logs:
        """One epoch, or the rest of it, with its validation; the logs of both, empty if the data had come to its end."""
        if run.batch:
            run.hooks.go_on(run.epoch, run.batch)
        else:
            self.reset_metrics()
            run.hooks.call("on_epoch_begin", run.epoch, {})
        found = self._pass(run.hooks, "train", run.feed, run)
        if not run.batch:
            self.stop_training = True
            return found
        if validation is not None:
            run.testing = True
            found |= {f"val_{name}": value for name, value in self._validate(run.hooks, validation).items()}
            run.testing = False
        logs = dict(sorted(found.items()))
        epoch, run.epoch, run.batch = run.epoch, run.epoch + 1, 0
        run.hooks.call("on_epoch_end", epoch, logs)
        return logs

    def _pass(self, hooks: CallbackList, phase: str, feed: Feed, run: Run) -> Logs:
        """The batches of one epoch; the logs after the last one as numbers."""
        attempt, checked, heard = Transaction(self), feed.source.checked, hooks.listens(phase)
        step = self._compiled_steps.of(self, f"{phase}_step")
        with np.errstate(all="ignore"):
            for batch in feed.epoch(run.batch):
                if not checked:
                    batches.check_rows("fit" if phase == "train" else "evaluate", run.batch, batch)
                if heard:
                    hooks.batch_begin(phase, run.batch)
                try:
                    run.logs = attempt(step, batch)
                except ShapeError as error:
                    if checked:
                        raise
                    raise ShapeError(f"{error}{batches.batching_hint(batch)}") from error
                run.batch += 1
                if heard:
                    hooks.batch_end(phase, run.batch - 1, run.logs)
                if self.stop_training if phase == "train" else self.stop_evaluating:
                    break
            hooks.report(phase)
        if not run.batch and run.goes_on:
            warnings.warn(
                f"Your input ran out of data after {run.epoch} epochs; training ends here. A generator can be used up only "
                "once: for several epochs give a Dataset, a PyDataset, or a generator without end with `steps_per_epoch`.",
                stacklevel=6,
            )
            return {}
        if not run.batch:
            raise ValueError("The data gave no batches. Check its length; a generator can be used up only once.")
        stopped = self.stop_training if phase == "train" else self.stop_evaluating
        if feed.wanted is not None and run.batch < feed.wanted and not stopped:
            warnings.warn(f"The data gave {run.batch} batches instead of the {feed.wanted} steps asked for.", stacklevel=6)
        return numbers(run.logs)

    def _validation(self, data: Any, batch_size: int | None, steps: int | None) -> Feed:
        """The batches of validation data."""
        x, y, weight = batches.unpack_x_y_sample_weight(data)
        size = None if batches.is_iterable_of_batches(x) else batch_size
        return Feed(batches.source("evaluate", x, y, weight, size, False), steps)

    def _validate(self, hooks: CallbackList, feed: Feed) -> Logs:
        """Loss and metrics on validation data; the training metrics are not touched."""
        kept = [(variable, variable._array) for metric in self.metrics for variable in metric.variables]
        try:
            return self._tested(hooks, Feed(feed.source, feed.wanted))
        finally:
            for variable, array in kept:
                variable._array = array

    def _tested(self, hooks: CallbackList, feed: Feed) -> Logs:
        self.reset_metrics()
        self.stop_evaluating = False
        hooks.call("on_test_begin", {})
        logs = self._pass(hooks, "test", feed, Run(0, feed, hooks))
        hooks.call("on_test_end", logs)
        return logs

    @explaining
    @takes_numpy
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Loss and metrics over data, which may come in every form that `fit` takes.

        Returns:
            The loss; [loss, losses of the outputs, metrics...], as in `metrics_names`; or results by name with `return_dict`.

        >>> import minikeras as tf
        >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> model.evaluate([[1.0]], [[3.0]], verbose=0)
        4.0
        """
        self._need_compile("evaluate")
        _check_counts("evaluate", 1, batch_size=batch_size, steps=steps)
        feed = Feed(batches.source("evaluate", x, y, sample_weight, batch_size, False), steps)
        with self._hooks(callbacks, False, verbose, 1, feed.steps) as hooks:
            logs = self._tested(hooks, feed)
        return dict(sorted(logs.items())) if return_dict else _listed(logs)

    @explaining
    @takes_numpy
    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """The outputs for all rows, as NumPy arrays.

        >>> import minikeras as tf
        >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
        >>> model.predict([[1.0], [2.0]], verbose=0).ravel().tolist()
        [1.0, 2.0]
        """
        _check_counts("predict", 1, batch_size=batch_size, steps=steps)
        feed = Feed(batches.source("predict", x, None, None, batch_size, False), steps)
        collected: list[list[Any]] = []
        structure: Any = None
        with self._hooks(callbacks, False, verbose, 1, feed.steps) as hooks, np.errstate(all="ignore"):
            self.stop_predicting = False
            hooks.call("on_predict_begin", {})
            for count, batch in enumerate(feed.epoch()):
                hooks.batch_begin("predict", count)
                try:
                    structure = self.predict_step(batch)
                except ShapeError as error:
                    if feed.source.checked:
                        raise
                    raise ShapeError(f"{error}{batches.batching_hint(batch)}") from error
                collected.append([_as_numpy(output) for output in nest.flatten(structure)])
                hooks.batch_end("predict", count, {"outputs": structure})
                if self.stop_predicting:
                    break
            hooks.report("predict")
            hooks.call("on_predict_end", {})
        if not collected:
            raise ValueError("predict: the data gave no batches. Check its length; a generator can be used up only once.")
        if len(collected) == 1:
            return nest.pack(structure, collected[0])
        return nest.pack(structure, [np.concatenate(parts) for parts in zip(*collected, strict=True)])

    def _snapshot(self) -> Snapshot:
        """What a step may change, to go back to."""
        return Transaction(self).snapshot()

    # Going on -------------------------------------------------------------------------------------------------------------

    def get_training_state(self) -> states.State:
        """All that training depends on, as arrays and plain values: see `training/state.py` for what is in it.

        In a callback it also holds where `fit` stands; a callback with `runs_last = True` sees what all others have done.

        Raises:
            RuntimeError: during validation, while the metrics hold other numbers.

        >>> import minikeras as tf
        >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> state = model.get_training_state()
        >>> sorted(state["arrays"])[0], state["values"]["position"]
        ('metrics/loss/0/total', None)
        """
        if self._run is not None and self._run.testing:
            raise RuntimeError("The state of training cannot be taken during validation. Take it after a batch or an epoch.")
        return states.capture(self, self._run)

    def set_training_state(self, state: states.State) -> None:
        """Have what `get_training_state` gave. If it was taken within `fit`, the next `fit` (or the one under way, in
        `on_train_begin`) goes on from that batch and equals one that was never interrupted, bit for bit.

        A model, optimizer or metric that has no Variables yet gets them by a step on the first batch, which is then undone.

        Raises:
            ValueError: if the state belongs to another model; nothing is changed.
        """
        if self._run is None:
            self._resume = None if states.put_back(self, state) is None else state
        else:
            self._resume = state

    def _go_on(self, run: Run) -> None:
        """Stand where the state says that was set last, if one was."""
        state, self._resume = self._resume, None
        if state is None:
            return
        if states.differences(self, state) and (first := run.feed.source.first()) is not None:
            with np.errstate(all="ignore"):
                Transaction(self)(self.train_step, first)
        position = states.put_back(self, state)
        if position is not None:
            self.stop_training = run.go_to(position)


def _check_counts(name: str, least: int = 0, **counts: int | None) -> None:
    """Refuse counts that are no whole numbers; None says nothing."""
    for argument, count in counts.items():
        whole(f"{name}: {argument}", count, least, optional=True)


def _as_numpy(output: Any) -> Any:
    """An output in host memory."""
    return to_numpy(output._array) if hasattr(output, "_array") else output


def _listed(logs: Logs) -> Any:
    """The loss alone, or a list with the loss first."""
    values = list(logs.values())
    return values[0] if len(values) == 1 else values


def _due(frequency: Any) -> Callable[[int], bool]:
    """Whether an epoch, counted from 0, is validated."""
    if isinstance(frequency, int) and frequency > 0:
        return lambda epoch: (epoch + 1) % frequency == 0
    if isinstance(frequency, (list, tuple, set)):
        return lambda epoch: epoch + 1 in frequency
    raise ValueError(f"Expected `validation_freq` to be a list or an int above 0. Received: validation_freq={frequency!r}.")
