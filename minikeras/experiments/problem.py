"""Problem: a model with data and a loss, on which optimizers are compared; and its timed steps."""

from __future__ import annotations

import inspect
import itertools
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..compiler.scan import Pace
from ..data.table import of_one_size
from ..errors import kind_of
from ..keras.arguments import whole
from ..keras.batches import Feed, is_iterable_of_batches, source, unpack_x_y_sample_weight
from ..keras.callbacks.callback import numbers
from ..keras.models import Model, clone_model
from ..keras.optimizers import SecondOrder
from ..keras.training.executions import Executions, Steps
from ..keras.training.state import Transaction
from .grid import built_with
from .runs import own_data

_OPTIONS = [name for name in inspect.signature(Model.compile).parameters if name not in ("self", "optimizer", "loss")]
_FEWEST_ROWS = 1024
"""Rows of a batch in which the loss is evaluated, at least; it is the same for all sizes, and large batches are faster."""
_WARM_UP = 3
"""Number of steps after which nothing is recorded, compiled or planned any more."""


class Problem:
    """A problem on which optimizers are compared: a model, data, a loss, and the batches in which the data comes.

    Args:
        build: a function that returns a new model, called as `build()`, or as `build(seed)` if its first parameter has no
            default. Or a model, which is cloned with its weights. A compiled model brings loss, metrics and the other options
            of `compile`; its optimizer is replaced.
        x, y: the data, as in `fit`: arrays or what holds them; or a Dataset or PyDataset of batches as `x`.
        loss: as in `compile`; needed unless the model is compiled, and before that of the model if both are there.
        batch_size: rows of a step. None for full batches: each step sees all rows, in order.
        sample_weight: the weight of each row in the loss.
        validation_data: (x, y) or (x, y, sample_weight); its loss and metrics are measured beside those of the data.
        shuffle: whether the rows come in a new order in each epoch, the same for all optimizers.
        options: further arguments of `compile`, such as `metrics` and `jit_compile`.

    Attributes:
        steps_per_epoch: the number of steps that take all rows once; None if it is not known.

    Raises:
        TypeError: for a `build` that cannot be called, an unknown option, or data that can be gone through only once.
        ValueError: for numbers of rows that do not fit together.

    >>> layers = lambda: [tf.keras.Input((1,)), tf.keras.layers.Dense(4, "tanh"), tf.keras.layers.Dense(1)]
    >>> x = tf.linspace(-1.0, 1.0, 50)[:, None]
    >>> problem = tf.experiments.Problem(lambda: tf.keras.Sequential(layers()), x, x**2, loss="mse", batch_size=20)
    >>> problem.steps_per_epoch
    3
    """

    def __init__(
        self,
        build: Callable[..., Any],
        x: Any,
        y: Any = None,
        *,
        loss: Any = None,
        batch_size: int | None = None,
        sample_weight: Any = None,
        validation_data: Any = None,
        shuffle: bool = True,
        **options: Any,
    ) -> None:
        whole("Problem: batch_size", batch_size, 1, optional=True)
        if not callable(build):
            raise TypeError(f"Problem: build should be a function that returns a model, or a model, found {kind_of(build)}.")
        if unknown := [name for name in options if name not in _OPTIONS]:
            raise TypeError(f"Problem: {unknown} are no arguments of compile; there are {', '.join(_OPTIONS)}.")
        self.build, self.loss, self.options = build, loss, options
        self.batch_size, self.shuffle = batch_size, shuffle
        self.data, self.validation_data = {"x": x, "y": y, "sample_weight": sample_weight}, validation_data
        self.is_full_batch = batch_size is None and not is_iterable_of_batches(x)
        if isinstance(x, Iterator):
            raise TypeError(f"Problem: {kind_of(x)} can be gone through only once; give arrays, a Dataset or a PyDataset.")
        steps = self.feed(1).source.steps
        self.steps_per_epoch = None if steps in (None, np.inf) else int(steps)

    def feed(self, steps: int) -> Feed:
        """The batches of a new run, so many at a time."""
        shuffle = self.shuffle and not self.is_full_batch
        with own_data(self.data) as data:
            return Feed(source("compare", **data, batch_size=self.batch_size, shuffle=shuffle, whole=self.is_full_batch), steps)

    def rows(self) -> str:
        """The number of rows, if that is known, and the kind of batches, for a caption."""
        table = self.feed(1).source.table
        size = "full batches" if self.is_full_batch else f"batches of {self.batch_size or 32}"
        size = "batches as they come" if is_iterable_of_batches(self.data["x"]) else size
        return size if table is None else f"{table.length:,} rows, {size}"

    def model(self, seed: int) -> Model:
        """A new model."""
        if isinstance(self.build, Model):
            model = clone_model(self.build)
            if self.build.built:
                model.set_weights(self.build.get_weights())
            return model
        model = built_with(self.build, seed)
        if not isinstance(model, Model):
            raise TypeError(f"Problem: build should return a model, found {kind_of(model)}.")
        return model

    def compile(self, model: Model, optimizer: Any) -> None:
        """Give a model an optimizer, and loss and options of this problem or its own."""
        given = self.build if isinstance(self.build, Model) else model
        own = dict(given.training_loops.arguments) if given.compiled else {}
        arguments = {**own, **self.options, "optimizer": optimizer}
        if self.loss is not None:
            arguments["loss"] = self.loss
        model.compile(**arguments)

    def measure(self, model: Model) -> dict[str, float]:
        """Loss and metrics of a model over all rows, those of the validation data with `val_` before their names."""
        found = self._evaluated(model, self.data)
        if self.validation_data is not None:
            validation = dict(zip(self.data, unpack_x_y_sample_weight(self.validation_data), strict=True))
            found |= {f"val_{name}": value for name, value in self._evaluated(model, validation).items()}
        return found

    def _evaluated(self, model: Model, data: dict[str, Any]) -> dict[str, float]:
        size = None if is_iterable_of_batches(data["x"]) else max(self.batch_size or 0, _FEWEST_ROWS)
        with own_data(data) as own:
            logs = model.evaluate(**own, batch_size=size, verbose=0, return_dict=True)
        return {name: float(value) for name, value in logs.items()}


class TimedSteps:
    """Steps of a compiled model, taken as `fit` takes them, and the time they need; nothing else is in that time.

    Attributes:
        steps, seconds: taken so far, without the warm-up.
    """

    def __init__(self, model: Model, problem: Problem, planned: int) -> None:
        optimizer = model.optimizer
        model.training_loops.steps.planned = planned
        self._model, self._problem, self._feed, self._pace = model, problem, problem.feed(1), Pace()
        self._attempt = Transaction(model)
        self._counts_itself = isinstance(optimizer, SecondOrder) and "evaluations" in optimizer.logs()
        self._needs_loss = optimizer.needs_loss
        self.steps, self.seconds, self._counted = 0, 0.0, 0

    @property
    def evaluations(self) -> int | None:
        """The number of evaluations of loss and gradient in these steps; None if the optimizer does not count them."""
        return self._counted if self._counts_itself else None if self._needs_loss else self.steps

    def warm_up(self) -> float:
        """Take a few steps, so that recording and compiling are done, and restore the model's state before them.

        Returns:
            The seconds of the first one, with recording and compiling.
        """
        self._model.optimizer.build(self._model.trainable_variables)
        source, before = self._feed.source, self._attempt.snapshot()
        known = source.table is not None and source.steps not in (None, np.inf)  # else sizes show when batches are made
        with own_data(self._problem.data):
            sizes = of_one_size(list(itertools.islice(source.from_position(0), None if known else 1)))
            feeds = [SimpleNamespace(source=source, steps=1, epoch=lambda done, one=alike[:1]: iter(one)) for alike in sizes]
            times = [self._timed(feed) for feed in feeds for _ in range(_WARM_UP)]
        before.restore()
        return times[0]

    def take(self, steps: int) -> None:
        """Take so many steps; in turn, if the optimizer is to be asked for its evaluations after each."""
        at_once = 1 if self._counts_itself else steps
        self._feed.wanted = self._feed.steps = at_once
        for _ in range(0, steps, at_once):
            self.seconds += self._timed(self._feed)
            self._counted += int(self._model.optimizer.logs().get("evaluations", 0)) if self._counts_itself else 0
        self.steps += steps

    def _timed(self, feed: Any) -> float:
        """Train for an epoch of a feed; the seconds it took."""
        self._model.reset_metrics()
        step = self._model.training_loops.steps.of(self._model, "train_step")
        steps = Steps(lambda split: step)
        began = time.perf_counter()
        executions = Executions("compare", self._attempt, steps, feed, 0, None, self._pace)
        logs: Any = {}
        with np.errstate(all="ignore"):
            while executions.prepare():
                logs = executions.run()
        numbers(logs)  # waits for the GPU
        return time.perf_counter() - began
