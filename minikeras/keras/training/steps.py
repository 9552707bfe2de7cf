"""compile, and what training does with one batch.

Key idea: a step is plain Python, the same as in a loop of one's own: predict, loss, gradient, apply. It runs inside a
transaction: if it raises, for whatever reason, weights, statistics, slots, metrics and random state are as they were before it.
Read `snapshot.py` for that, `targets.py` for several outputs. Next: `trainer.py`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ... import nest
from ...boundary import explaining
from ...core import GradientTape, Tensor, Variable
from ...errors import ShapeError
from ...functions.publish import tensor
from .. import batches, metrics, optimizers
from ..arguments import takes_numpy, whole
from ..layers.inputs import returned_none
from .compiled import CompiledSteps
from .targets import Compiled, Targets, track

Logs = dict[str, Any]


class Steps:
    """What happens to one batch: `train_step`, `test_step` and `predict_step`, each of which may be overridden."""

    _checkpointed = ("optimizer",)
    _not_walked: tuple[str, ...] = (
        *("optimizer", "loss", "history", "_compiled", "_targets", "_loss_tracker", "_compile_arguments", "_run", "_resume"),
        "_compiled_steps",
    )
    _passing: tuple[str, ...] = (
        *("history", "stop_training", "stop_evaluating", "stop_predicting", "_run", "_resume"),
        *("_collected", "_compiled_steps"),
    )

    def _start_training_state(self) -> None:
        self.optimizer: Any = None
        self.loss: Any = None
        self.stop_training = self.stop_evaluating = self.stop_predicting = False
        self.history: Any = None
        self.run_eagerly, self.jit_compile, self.steps_per_execution = False, False, 1
        self._compile_arguments: dict[str, Any] = {}
        self._compiled: Compiled | None = None
        self._targets: Targets | None = None
        self._loss_tracker = metrics.Mean(name="loss")
        self._run: Any = None
        self._resume: Any = None
        self._compiled_steps = CompiledSteps()

    # Configuration -------------------------------------------------------------------------------------------------------

    @explaining
    @takes_numpy
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

        With several outputs, losses, weights and metrics are a list with an entry for each, or a dict by the names of the
        outputs; an entry of a list of losses or metrics may itself be a list. One loss alone serves every output. The losses of
        the outputs are added up, and logged one by one as 'name_loss'.

        Args:
            optimizer: by name or object.
            loss: by name, function or object; None if only `add_loss` is used.
            loss_weights: factors of the losses.
            metrics: names, functions or objects; 'accuracy' picks the kind that fits the shapes.
            weighted_metrics: likewise, for metrics that use sample weights.
            run_eagerly: let Python carry out every step, as for `jit_compile=False`.
            jit_compile: 'auto' records a step once and replays it, and runs it eagerly, which is logged once, where Python asks
                for the value of a tensor; True raises a `CompileError` there; False runs all steps eagerly.
            steps_per_execution: call the hooks of a batch once for so many batches.
            auto_scale_loss: under the policy 'mixed_float16', wrap the optimizer in a `LossScaleOptimizer`.

        Raises:
            TypeError, ValueError: for an unknown name, or steps_per_execution that is no whole number from 1 on.

        >>> import minikeras as tf
        >>> model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
        >>> model.compile(optimizer="sgd", loss="mse", metrics=["mae"])
        """
        if jit_compile not in ("auto", True, False, None):
            raise ValueError(f"compile: jit_compile must be 'auto', True or False, found {jit_compile!r}.")
        whole("compile: steps_per_execution", steps_per_execution, 1)
        arguments = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        compiled = Compiled.of(loss, loss_weights, metrics, weighted_metrics)
        chosen = optimizers.get(optimizer)
        policy = getattr(getattr(self, "dtype_policy", None), "name", None)
        unscaled = isinstance(chosen, optimizers.Optimizer) and chosen.loss_scale_factor is None
        if auto_scale_loss and policy == "mixed_float16" and unscaled and not hasattr(chosen, "dynamic_scale"):
            chosen = optimizers.LossScaleOptimizer(chosen)
        self.optimizer, self.loss = chosen, loss
        self.run_eagerly, self.jit_compile, self.steps_per_execution = run_eagerly, jit_compile, steps_per_execution
        self._compile_arguments, self._compiled_steps = arguments, CompiledSteps()
        self._compiled, self._targets = compiled, None
        self._loss_tracker.reset_state()

    @property
    def compiled(self) -> bool:
        """Whether `compile` was called."""
        return self._compiled is not None

    def _need_compile(self, name: str) -> None:
        if self._compiled is None:
            raise ValueError(f"You must call `compile()` before calling `{name}()`: model.compile(optimizer=..., loss=...).")

    # Metrics -------------------------------------------------------------------------------------------------------------

    def _labelled_metrics(self) -> list[tuple[str, Any]]:
        """Loss tracker, losses of the outputs, compiled metrics, and those held as attributes, with their names in logs."""
        held = [(metric.name, metric) for metric in self._collect().metrics]  # type: ignore[attr-defined]
        if self._compiled is None:
            return held
        settled = self._targets
        chosen = [(one.name, one) for one in self._compiled.own_metrics()] if settled is None else settled.labelled()
        return [("loss", self._loss_tracker), *chosen, *held]

    @property
    def metrics(self) -> list[Any]:
        """The loss tracker, the compiled metrics (all once a batch has shown the outputs), and those held as attributes."""
        return [metric for _, metric in self._labelled_metrics()]

    @property
    def metrics_names(self) -> list[str]:
        """Their names in logs: 'loss' first, then the losses of the outputs, then the metrics."""
        return [label for label, _ in self._labelled_metrics()]

    def metric_direction(self, name: str) -> str | None:
        """'min' or 'max', whichever is better for a value of the logs; None if its metric does not say."""
        for label, metric in self._labelled_metrics():
            if label == name:
                if metric is self._loss_tracker or (name.endswith("_loss") and type(metric) is metrics.Mean):
                    return "min"
                return {"up": "max", "down": "min"}.get(getattr(metric, "_direction", None) or "")
        return "min" if name == "loss" else None

    def reset_metrics(self) -> None:
        """Let all metrics forget."""
        for metric in self.metrics:
            metric.reset_state()

    def _settle(self, y: Any, y_pred: Any) -> Targets:
        """Losses and metrics for the outputs, made at the first batch."""
        if self._targets is None:
            if self._compiled is None:
                self._need_compile("fit")
            if y_pred is None:
                raise ValueError(returned_none(self))
            names = None if getattr(self, "_graph", None) is None else self.output_names  # type: ignore[attr-defined]
            self._targets = Targets(self._compiled, y, y_pred, names)  # type: ignore[arg-type]
        return self._targets

    # One batch -----------------------------------------------------------------------------------------------------------

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Tensor:
        """The loss of a batch, with everything that `add_loss` and regularizers add."""
        terms = [] if self.loss is None else self._settle(y, y_pred).loss(y, y_pred, sample_weight)
        terms += self.losses  # type: ignore[attr-defined]
        if not terms:
            raise ValueError("No loss to compute. Provide a `loss` argument in `compile()`, or call `add_loss` in a layer.")
        return total(terms)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Logs:
        """Let a batch enter the metrics and return all results."""
        self._settle(y, y_pred).update(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def get_metrics_result(self) -> Logs:
        """The results of all metrics by name."""
        logs: Logs = {}
        for label, metric in self._labelled_metrics():
            result = metric.result()
            if isinstance(result, dict):
                logs.update(result)
            else:
                logs[label] = result
        return logs

    def train_step(self, data: Any) -> Logs:
        """One batch of training: predict, loss, gradient, apply. Override it for a step of your own.

        Args:
            data: x, (x, y) or (x, y, sample_weight).

        Returns:
            Logs by name.
        """
        x, y, sample_weight = batches.unpack_x_y_sample_weight(data)
        optimizer = self.optimizer
        if optimizer is None:
            raise ValueError(f"Model '{self.name}' was compiled without an optimizer; give one: compile(optimizer='adam').")  # type: ignore[attr-defined]
        if getattr(optimizer, "needs_loss", False):
            return self._minimize(x, y, sample_weight)
        with GradientTape() as tape:
            y_pred = self(x, training=True)  # type: ignore[operator]
            loss = self._own_loss(x, y, y_pred, sample_weight, True)
            scaled = optimizer.scale_loss(loss)
        optimizer.build(self._learning_variables())
        if variables := self._trained():
            optimizer.apply_gradients(zip(tape.gradient(scaled, variables), variables, strict=True))
        track(self._loss_tracker, loss, _rows(x))
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def _minimize(self, x: Any, y: Any, sample_weight: Any) -> Logs:
        """A step of an optimizer that is given the loss as a function; metrics see the predictions before it."""
        if not self.trainable_variables:  # type: ignore[attr-defined]
            self(x, training=False)  # type: ignore[operator]  # builds the layers
        self.optimizer.build(self._learning_variables())
        predicted: list[Any] = []
        objective = self._objective(x, y, sample_weight, predicted)
        variables = self._trained()
        loss = self.optimizer.minimize(objective, variables) if variables else objective()
        track(self._loss_tracker, loss, _rows(x))
        return self.compute_metrics(x, y, predicted[0], sample_weight) | self.optimizer.logs()

    def _objective(self, x: Any, y: Any, sample_weight: Any, predicted: list[Any]) -> Callable[[], Any]:
        """The loss of a batch as a function, in two stages unless `compute_loss` is overridden; keeps the first predictions."""

        def outputs() -> Any:
            y_pred = self(x, training=True)  # type: ignore[operator]
            predicted[:] = predicted or [y_pred]
            return y_pred

        def loss_of_outputs(y_pred: Any) -> Any:
            return total(self._settle(y, y_pred).loss(y, y_pred, sample_weight))

        def penalty() -> Any:
            terms = self.losses  # type: ignore[attr-defined]
            return total(terms) if terms else None

        if self.loss is None or type(self).compute_loss is not Steps.compute_loss:
            return lambda: self._own_loss(x, y, outputs(), sample_weight, True)
        return optimizers.Objective(outputs, loss_of_outputs, penalty)

    def _trained(self) -> list[Variable]:
        """The Variables that a step changes; a warning if there are none."""
        variables: list[Variable] = self.trainable_variables  # type: ignore[attr-defined]
        if not variables:
            warnings.warn(
                f"The model does not have any trainable weights: '{self.name}' is only measured. "  # type: ignore[attr-defined]
                "Set `trainable = True` for the layers that are to learn, as of a discriminator each time before its own step; "
                "make layers in `__init__` or `build`, not in `call`.",
                stacklevel=2,
            )
        return variables

    def test_step(self, data: Any) -> Logs:
        """One batch of evaluation."""
        x, y, sample_weight = batches.unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)  # type: ignore[operator]
        track(self._loss_tracker, self._own_loss(x, y, y_pred, sample_weight, False), _rows(x))
        return self.compute_metrics(x, y, y_pred, sample_weight)

    def predict_step(self, data: Any) -> Any:
        """One batch of prediction."""
        y_pred = self(batches.unpack_x_y_sample_weight(data)[0], training=False)  # type: ignore[operator]
        if y_pred is None:
            raise ValueError(returned_none(self))
        return y_pred

    def _own_loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any, training: bool) -> Tensor:
        """`compute_loss`, which need not take `training` if it is overridden."""
        if type(self).compute_loss is Steps.compute_loss or "training" in inspect.signature(self.compute_loss).parameters:
            return self.compute_loss(x, y, y_pred, sample_weight, training=training)
        return self.compute_loss(x, y, y_pred, sample_weight)

    def _learning_variables(self) -> list[Variable]:
        """All that may ever be trained, frozen or not: their slots survive freezing."""
        return [variable for variable in self.variables if getattr(variable, "learns", variable.trainable)]  # type: ignore[attr-defined]


def _rows(x: Any) -> int:
    """The number of rows of a batch."""
    return next(int(leaf.shape[0]) for leaf in nest.flatten(x) if leaf is not None)


def total(terms: Sequence[Any]) -> Tensor:
    """The sum of the terms of a loss, which has to be a scalar."""
    found = tensor(terms[0])
    for term in terms[1:]:
        found = found + tensor(term)
    if found.ndim:
        raise ShapeError(
            f"The loss of a batch has shape {found.shape}, a scalar is needed to train. Use a reduction other than 'none', or "
            "reduce the term that add_loss was given."
        )
    return found
