"""compile, and what training does with one batch.

Key idea: a step is plain Python, the same as in a loop of one's own: predict, loss, gradient, apply. It runs inside a
transaction: if it raises, for whatever reason, weights, statistics, slots, metrics and random state are as they were before it.
Next: `trainer.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ... import nest
from ...core import GradientTape, Tensor, Variable
from ...errors import ShapeError
from ...functions.elementwise import cast
from ...functions.publish import tensor
from .. import batches, losses, metrics, optimizers
from ..metrics import Metric
from ..optimizers import Optimizer
from .snapshot import Snapshot

Logs = dict[str, Any]


class Steps:
    """What happens to one batch: `train_step`, `test_step` and `predict_step`, each of which may be overridden."""

    _not_walked: tuple[str, ...] = ("optimizer", "loss", "history", "_metrics", "_loss_tracker")

    def _start_training_state(self) -> None:
        self.optimizer: Any = None
        self.loss: Any = None
        self.stop_training = False
        self.history: Any = None
        self.run_eagerly = False
        self._compiled = False
        self._metrics: list[tuple[Any, bool]] = []
        self._loss_tracker = metrics.Mean(name="loss")

    # Configuration -------------------------------------------------------------------------------------------------------

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        loss_weights: Any = None,
        metrics: Any = None,
        weighted_metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: Any = "auto",
        auto_scale_loss: bool = True,
    ) -> None:
        """Choose optimizer, loss and metrics.

        Args:
            optimizer: by name or object.
            loss: by name, function or object; None if only `add_loss` is used.
            loss_weights: a factor for the loss.
            metrics: names, functions or objects; 'accuracy' picks the kind that fits the shapes.
            weighted_metrics: likewise, for metrics that use sample weights.
            run_eagerly, steps_per_execution, jit_compile, auto_scale_loss: accepted for compatibility; steps run eagerly.

        >>> import minikeras as tf
        >>> model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
        >>> model.compile(optimizer="sgd", loss="mse", metrics=["mae"])
        """
        chosen = _chosen(nest.flatten(metrics or []), nest.flatten(weighted_metrics or []))
        self.optimizer, self.loss = optimizers.get(optimizer), losses.get(loss)
        self._loss_weight = 1.0 if loss_weights is None else float(nest.flatten(loss_weights)[0])
        self._metrics = chosen
        self._loss_tracker.reset_state()
        self._compiled = True

    def _need_compile(self, name: str) -> None:
        if not self._compiled:
            raise ValueError(f"You must call `compile()` before calling `{name}()`: model.compile(optimizer=..., loss=...).")

    @property
    def metrics(self) -> list[Any]:
        """The loss tracker, the compiled metrics ('accuracy' once a batch has shown which), and those held as attributes."""
        held = self._collect().metrics  # type: ignore[attr-defined]
        if not self._compiled:
            return list(held)
        return [self._loss_tracker, *(metric for metric, _ in self._metrics if not isinstance(metric, _Pending)), *held]

    @property
    def metrics_names(self) -> list[str]:
        """'loss' and the names of the metrics."""
        return [metric.name for metric in self.metrics]

    def reset_metrics(self) -> None:
        """Let all metrics forget."""
        for metric in self.metrics:
            metric.reset_state()

    # One batch -----------------------------------------------------------------------------------------------------------

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Tensor:
        """The loss of a batch, with everything that `add_loss` and regularizers add."""
        terms = list(self.losses)  # type: ignore[attr-defined]
        if self.loss is not None:
            if y is None:
                raise ValueError(f"The loss '{self.loss.name}' compares predictions with labels, but the data holds no y.")
            own = self.loss(y, y_pred, sample_weight)
            terms.insert(0, own if self._loss_weight == 1.0 else own * self._loss_weight)
        if not terms:
            raise ValueError("No loss to compute. Provide a `loss` argument in `compile()`, or call `add_loss` in a layer.")
        total = tensor(terms[0])
        for term in terms[1:]:
            total = total + term
        if total.ndim:
            raise ShapeError(
                f"The loss of a batch has shape {total.shape}, a scalar is needed to train. Use a reduction other than "
                f"'none', or reduce the term that add_loss was given."
            )
        return total

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Logs:
        """Let a batch enter the metrics and return all results."""
        for metric, weighted in self._resolved_metrics(y, y_pred):
            if weighted and sample_weight is not None:
                metric.update_state(y, y_pred, sample_weight=sample_weight)
            else:
                metric.update_state(y, y_pred)
        return self.get_metrics_result()

    def get_metrics_result(self) -> Logs:
        """The results of all metrics by name."""
        logs: Logs = {}
        for metric in self.metrics:
            result = metric.result()
            logs.update(result if isinstance(result, dict) else {metric.name: result})
        return logs

    def _resolved_metrics(self, y: Any, y_pred: Any) -> list[tuple[Metric, bool]]:
        """The metrics as objects: 'accuracy' needs the shapes of a batch to be told apart."""
        if any(isinstance(metric, _Pending) for metric, _ in self._metrics):
            self._metrics = [(_settled(metric, tensor(y), y_pred), weighted) for metric, weighted in self._metrics]
        return self._metrics

    def train_step(self, data: Any) -> Logs:
        """One batch of training: predict, loss, gradient, apply. Override it for a step of your own.

        Args:
            data: x, (x, y) or (x, y, sample_weight).

        Returns:
            Logs by name.
        """
        x, y, sample_weight = batches.unpack_x_y_sample_weight(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True)  # type: ignore[operator]
            loss = self.compute_loss(x, y, y_pred, sample_weight, training=True)
        if self.optimizer is None:
            raise ValueError(f"Model '{self.name}' was compiled without an optimizer; give one: compile(optimizer='adam').")  # type: ignore[attr-defined]
        variables = self.trainable_variables  # type: ignore[attr-defined]
        if not variables:
            raise ValueError(f"Model '{self.name}' has no trainable weights; nothing can be trained.")  # type: ignore[attr-defined]
        self.optimizer.build(self._learning_variables())
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        self._track_loss(loss, x)
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def test_step(self, data: Any) -> Logs:
        """One batch of evaluation."""
        x, y, sample_weight = batches.unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)  # type: ignore[operator]
        self._track_loss(self.compute_loss(x, y, y_pred, sample_weight, training=False), x)
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def predict_step(self, data: Any) -> Any:
        """One batch of prediction."""
        return self(batches.unpack_x_y_sample_weight(data)[0], training=False)  # type: ignore[operator]

    def _learning_variables(self) -> list[Variable]:
        """All that may ever be trained, frozen or not: their slots survive freezing."""
        return [variable for variable in self.variables if getattr(variable, "learns", variable.trainable)]  # type: ignore[attr-defined]

    def _track_loss(self, loss: Tensor, x: Any) -> None:
        """Let a batch's loss enter the epoch's, weighted by its number of rows."""
        rows = float(nest.flatten(x)[0].shape[0])
        tracker = self._loss_tracker
        tracker.total.assign_add(cast(loss * rows, tracker.dtype))
        tracker.count.assign_add(rows)

    def _attempt(self, step: Callable[[Any], Any], data: Any) -> Any:
        """Run a step as a transaction: if it raises, all state is as it was before."""
        chosen = self._metrics
        optimizers = [value for value in vars(self).values() if isinstance(value, Optimizer)]
        before = Snapshot(self._state(optimizers), (self, *self._collect().sublayers), optimizers)  # type: ignore[attr-defined, arg-type]
        try:
            return step(data)
        except BaseException:
            before.restore()
            self._metrics = chosen
            raise

    def _state(self, optimizers: list[Optimizer]) -> list[Variable]:
        """Every Variable that a step may change."""
        found = list(self.variables)  # type: ignore[attr-defined]
        for holder in (*self.metrics, *optimizers):
            found += holder.variables
        return found


class _Pending(NamedTuple):
    """'accuracy' or 'crossentropy', until a batch shows which kind is meant."""

    task: str
    name: str


def _chosen(plain: list[Any], weighted: list[Any]) -> list[tuple[Any, bool]]:
    """The metrics with a flag for the weighted ones, each under a name of its own."""
    chosen: list[tuple[Any, bool]] = []
    taken = {"loss"}
    for given, uses_weights in [*((one, False) for one in plain), *((one, True) for one in weighted)]:
        pending = isinstance(given, str) and given in metrics.TASKS
        metric = None if pending else metrics.get(given)
        name = given if metric is None else metric.name
        if name in taken and uses_weights:
            name = f"weighted_{name}"
        while name in taken:
            name += "_again"
        taken.add(name)
        if metric is not None:
            metric.name = name
        chosen.append((metric or _Pending(given, name), uses_weights))
    return chosen


def _settled(metric: Any, y_true: Tensor, y_pred: Tensor) -> Any:
    """The metric that is meant, if that was open."""
    if not isinstance(metric, _Pending):
        return metric
    found = metrics.for_task(metric.task, y_true, y_pred)
    found.name = metric.name
    return found
