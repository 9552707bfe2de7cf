"""fit, evaluate, predict: the loops over batches and epochs, and the same for a single batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ... import nest
from .. import batches
from ..callbacks import CallbackList, History
from ..logs import numbers
from .steps import Logs, Steps


class Trainer(Steps):
    """What `Model` adds to `Layer`."""

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """One step on one batch; metrics start anew.

        Returns:
            The loss, [loss, metrics...], or logs by name with `return_dict`.
        """
        self._need_compile("train_on_batch")
        return self._on_batch(self.train_step, x, y, self._row_weights(y, sample_weight, class_weight), return_dict)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False) -> Any:
        """Loss and metrics of one batch."""
        self._need_compile("test_on_batch")
        return self._on_batch(self.test_step, x, y, sample_weight, return_dict)

    def _on_batch(self, step: Callable[[Any], Logs], x: Any, y: Any, sample_weight: Any, return_dict: bool) -> Any:
        data = self._single(x, y, sample_weight)
        batches.check_rows("on_batch", 0, data)
        self.reset_metrics()
        with np.errstate(all="ignore"):
            logs = numbers(self._attempt(step, data))
        return logs if return_dict else _listed(logs)

    @staticmethod
    def _single(x: Any, y: Any, sample_weight: Any) -> Any:
        """One batch of Tensors from arrays."""
        x, y, sample_weight = (batches.as_columns(value) for value in (x, y, sample_weight))
        rows = batches.count_rows("on_batch", x, y, sample_weight)
        (data,) = batches.from_arrays("on_batch", x, y, sample_weight, rows, False).batches
        return data

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch, as NumPy arrays."""
        return nest.map_structure(lambda output: output.numpy(), self.predict_step((self._single(x, None, None)[0],)))

    @staticmethod
    def _row_weights(y: Any, sample_weight: Any, class_weight: Mapping[int, float] | None) -> Any:
        if class_weight is None:
            return sample_weight
        if sample_weight is not None:
            raise ValueError("You cannot `class_weight` and `sample_weight` at the same time.")
        return batches.class_weights(batches.as_columns(y), class_weight)

    # Whole data sets -----------------------------------------------------------------------------------------------------

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
        shuffle: bool = True,
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
            x, y: arrays, Tensors, lists or dicts of them; or a Dataset, generator or sequence of batches as `x`.
            batch_size: rows a step, 32 by default; the last batch of an epoch may be smaller.
            epochs: index of the last epoch, counted from `initial_epoch`.
            verbose: 0 silent, 1 or 'auto' a progress bar (a line an epoch where there is no terminal), 2 a line an epoch.
            callbacks: a list of `Callback`.
            validation_split: share of the rows, from the end, kept for validation; cut off before shuffling.
            validation_data: (x, y), (x, y, sample_weight) or a Dataset.
            shuffle: whether arrays are shuffled anew for each epoch.
            class_weight: weight of each class in the loss.
            sample_weight: weight of each row in the loss.
            initial_epoch: where to start counting.
            steps_per_epoch: end an epoch after so many steps; needed for endless generators.
            validation_steps, validation_batch_size: likewise for validation.
            validation_freq: validate every so many epochs, or a list of epochs counted from 1.

        Returns:
            The `History`: `.history` holds a list for each name, `.epoch` the epochs.

        Raises:
            ValueError: if the model is not compiled or the data does not fit together.

        >>> import minikeras as tf
        >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> history = model.fit([[0.0], [1.0]], [[0.0], [1.0]], epochs=3, verbose=0)
        >>> sorted(history.history), history.epoch
        (['loss'], [0, 1, 2])
        """
        self._need_compile("fit")
        if not batches.is_iterable_of_batches(x):
            x, y, sample_weight = (batches.as_columns(value) for value in (x, y, sample_weight))
            if validation_split:
                (x, y, sample_weight), validation_data = batches.split((x, y, sample_weight), validation_split)
            sample_weight = self._row_weights(y, sample_weight, class_weight)
        elif validation_split or class_weight:
            raise ValueError("validation_split and class_weight need arrays; with batches, split and weight them yourself.")
        data = batches.source("fit", x, y, sample_weight, batch_size, shuffle)
        next_pass = batches.passes(data, steps_per_epoch)
        self.stop_training = False
        logs: Logs = {}
        with CallbackList(callbacks, self, History(), verbose, epochs=epochs, steps=steps_per_epoch or data.steps) as hooks:
            hooks.call("on_train_begin", None)
            for epoch in range(initial_epoch, epochs):
                self.reset_metrics()
                hooks.call("on_epoch_begin", epoch, None)
                logs = self._epoch(hooks, "train", self.train_step, next_pass(), steps_per_epoch)
                if validation_data is not None and _due(epoch, validation_freq):
                    found = self._validate(hooks, validation_data, validation_batch_size or batch_size, validation_steps)
                    logs |= {f"val_{name}": value for name, value in found.items()}
                logs = dict(sorted(logs.items()))
                hooks.call("on_epoch_end", epoch, logs)
                if self.stop_training:
                    break
            hooks.call("on_train_end", logs)
        return hooks.history

    def _epoch(
        self, hooks: CallbackList, phase: str, step: Callable[[Any], Logs], data: Iterator[Any], steps: int | None
    ) -> Logs:
        """All batches of one pass; the logs after the last one as numbers."""
        logs: Logs = {}
        count = 0
        with np.errstate(all="ignore"):
            for batch in data:
                batches.check_rows("fit" if phase == "train" else "evaluate", count, batch)
                hooks.call(f"on_{phase}_batch_begin", count, None)
                logs = self._attempt(step, batch)
                hooks.batch_end(phase, count, logs)
                count += 1
                if self.stop_training and phase == "train":
                    break
        if not count:
            raise ValueError("The data gave no batches. Check its length; a generator can be used up only once.")
        if steps is not None and count < steps and not self.stop_training:
            warnings.warn(f"The data gave {count} batches instead of the {steps} steps asked for.", stacklevel=3)
        return numbers(logs)

    def _validate(self, hooks: CallbackList, data: Any, batch_size: int | None, steps: int | None) -> Logs:
        """Loss and metrics on validation data; the training metrics are not touched."""
        x, y, weight = batches.unpack_x_y_sample_weight(data)
        size = None if batches.is_iterable_of_batches(x) else batch_size
        kept = [(variable, variable._array) for metric in self.metrics for variable in metric.variables]
        try:
            return self._tested(hooks, batches.source("evaluate", x, y, weight, size, False), steps)
        finally:
            for variable, array in kept:
                variable._array = array

    def _tested(self, hooks: CallbackList, data: batches.Source, steps: int | None) -> Logs:
        self.reset_metrics()
        hooks.call("on_test_begin", None)
        logs = self._epoch(hooks, "test", self.test_step, batches.passes(data, steps)(), steps)
        hooks.call("on_test_end", logs)
        return logs

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
        """Loss and metrics over data.

        Returns:
            The loss, [loss, metrics...], or results by name with `return_dict`.

        >>> import minikeras as tf
        >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> model.evaluate([[1.0]], [[3.0]], verbose=0)
        4.0
        """
        self._need_compile("evaluate")
        data = batches.source("evaluate", x, y, sample_weight, batch_size, False)
        with CallbackList(callbacks, self, None, verbose, epochs=1, steps=steps or data.steps) as hooks:
            logs = self._tested(hooks, data, steps)
        return dict(sorted(logs.items())) if return_dict else _listed(logs)

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
        data = batches.source("predict", x, None, None, batch_size, False)
        collected: list[list[Any]] = []
        structure: Any = None
        with (
            CallbackList(callbacks, self, None, verbose, epochs=1, steps=steps or data.steps) as hooks,
            np.errstate(all="ignore"),
        ):
            hooks.call("on_predict_begin", None)
            for count, batch in enumerate(batches.passes(data, steps)()):
                hooks.call("on_predict_batch_begin", count, None)
                structure = self.predict_step(batch)
                collected.append([output.numpy() for output in nest.flatten(structure)])
                hooks.call("on_predict_batch_end", count, {"outputs": structure})
            hooks.call("on_predict_end", None)
        if not collected:
            raise ValueError("predict: the data gave no batches. Check its length; a generator can be used up only once.")
        return nest.pack(structure, [np.concatenate(parts) for parts in zip(*collected, strict=True)])


def _listed(logs: Logs) -> Any:
    """The loss alone, or a list with the loss first."""
    values = list(logs.values())
    return values[0] if len(values) == 1 else values


def _due(epoch: int, frequency: Any) -> bool:
    """Whether this epoch, counted from 0, is validated."""
    return epoch + 1 in frequency if isinstance(frequency, (list, tuple, set)) else (epoch + 1) % int(frequency) == 0
