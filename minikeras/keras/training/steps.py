"""The work of training on one batch: the steps and losses that `Model` offers for overriding, plain Python as in a custom
training loop. A step happens as a whole or not at all (`state.py`).

Ranks take a step together: each computes on its rows, and one exchange makes of it the step on the whole batch. With the
gradient g of the mean loss of n rows, that of all rows is the sum of n g, divided by the sum of n. What metrics gather is added
up, what layers keep (moving statistics) becomes the mean over rows. Clipping, accumulation and the optimizer come after that,
so all ranks have the same bits again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from itertools import islice
from types import SimpleNamespace
from typing import Any, NamedTuple

from ... import nest
from ...core import GradientTape, Tensor, Variable, convert_to_tensor
from ...core.arrays import namespace
from ...core.warnings import warn_caller
from ...distribute.functions import combine
from ...distribute.replica import BatchPart, computing_on
from ...distribute.strategy import BatchSplit
from ...errors import InvalidArgumentError, ShapeError
from ...functions.elementwise import cast
from ...functions.operands import tensor
from ...nn_ops.streams import global_stream
from ...types import TensorLike
from .. import batches, optimizers
from ..batches import cut
from ..metrics.metric import noted_results, result_of
from ..symbolic.trial import returned_none
from . import steps
from .state import Logs, ModelLike
from .targets import track


class Predicted(NamedTuple):
    """A batch, what the model made of it, and the loss."""

    x: Any
    y: Any
    y_pred: Any
    sample_weight: Any
    loss: Tensor

    def measure(self, model: ModelLike) -> Logs:
        """Let it enter all metrics."""
        track(model.training_loops.loss_tracker, self.loss, _rows(self.x))
        return model.compute_metrics(self.x, self.y, self.y_pred, self.sample_weight)


def train_step(model: ModelLike, data: Any) -> Logs:
    """One batch of training."""
    if getattr(model.optimizer, "needs_loss", False):
        return _minimize(model, *batches.unpack_x_y_sample_weight(data))
    gradients, variables, found = gradients_of(model, data)
    if variables:
        model.optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return found.measure(model)


def gradients_of(model: ModelLike, data: Any) -> tuple[list[Any], list[Variable], Predicted]:
    """The gradients of the scaled loss of a batch, for which Variables, and what they were computed from."""
    x, y, sample_weight = batches.unpack_x_y_sample_weight(data)
    optimizer = model.optimizer
    if optimizer is None:
        raise ValueError(f"Model '{model.name}' was compiled without an optimizer; give one: compile(optimizer='adam').")
    with GradientTape() as tape:
        y_pred = model(x, training=True)
        loss = _loss(model, x, y, y_pred, sample_weight, True)
        scaled = optimizer.scale_loss(loss)
    optimizer.prepare(model.learning_variables())
    variables = _trained(model)
    return tape.gradient(scaled, variables) if variables else [], variables, Predicted(x, y, y_pred, sample_weight, loss)


def _minimize(model: ModelLike, x: TensorLike, y: TensorLike, sample_weight: TensorLike) -> Logs:
    """A step of an optimizer that is given the loss as a function; metrics see the predictions before it."""
    if not model.trainable_variables:
        model(x, training=False)  # builds the layers
    model.optimizer.prepare(model.learning_variables())
    predicted: list[Any] = []
    objective = _objective(model, x, y, sample_weight, predicted)
    variables = _trained(model)
    loss = model.optimizer.minimize(objective, variables) if variables else objective()
    track(model.training_loops.loss_tracker, loss, _rows(x))
    logs: Logs = model.compute_metrics(x, y, predicted[0], sample_weight) | model.optimizer.logs()
    return logs


def _objective(
    model: ModelLike, x: TensorLike, y: TensorLike, sample_weight: TensorLike, predicted: list[Any]
) -> Callable[[], Any]:
    """The loss of a batch as a function, in two stages unless `compute_loss` is overridden; keeps the first predictions."""

    def outputs() -> Any:
        y_pred = model(x, training=True)
        predicted[:] = predicted or [y_pred]
        return y_pred

    def loss_of_outputs(y_pred: TensorLike) -> Any:
        return total(model.training_loops.settle(model, y, y_pred).loss(y, y_pred, sample_weight))

    def penalty() -> Any:
        terms = model.losses
        return total(terms) if terms else None

    if model.loss is None or model.is_overridden("compute_loss"):
        return lambda: _loss(model, x, y, outputs(), sample_weight, True)
    return optimizers.Objective(outputs, loss_of_outputs, penalty)


def _trained(model: ModelLike) -> list[Variable]:
    """The Variables that a step changes; a warning if there are none."""
    variables: list[Variable] = model.trainable_variables
    if not variables:
        warn_caller(
            f"The model does not have any trainable weights: '{model.name}' is only measured. "
            "Set `trainable = True` for the layers that are to learn, as of a discriminator each time before its own step; "
            "make layers in `__init__` or `build`, not in `call`."
        )
    return variables


def test_step(model: ModelLike, data: Any) -> Logs:
    """One batch of evaluation."""
    x, y, sample_weight = batches.unpack_x_y_sample_weight(data)
    y_pred = model(x, training=False)
    return Predicted(x, y, y_pred, sample_weight, _loss(model, x, y, y_pred, sample_weight, False)).measure(model)


def predict_step(model: ModelLike, data: Any) -> Any:
    """One batch of prediction."""
    y_pred = model(batches.unpack_x_y_sample_weight(data)[0], training=False)
    if y_pred is None:
        raise ValueError(returned_none(model))
    return y_pred


def compute_loss(model: ModelLike, y: TensorLike, y_pred: TensorLike, sample_weight: TensorLike) -> Tensor:
    """The loss of a batch, with everything that `add_loss` and regularizers add."""
    terms = [] if model.loss is None else model.training_loops.settle(model, y, y_pred).loss(y, y_pred, sample_weight)
    terms += model.losses
    if not terms:
        raise ValueError("No loss to compute. Provide a `loss` argument in `compile()`, or call `add_loss` in a layer.")
    return total(terms)


def compiled_loss(
    model: ModelLike, y: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None, regularization_losses: Any = None
) -> Tensor:
    """`compute_loss` as steps for TensorFlow 2 call it: the mean of a training shows it, and regularizers are in it anyway."""
    loss = _loss(model, None, y, y_pred, sample_weight, True)
    track(model.training_loops.loss_tracker, loss, _rows(y))
    return loss


def compiled_metrics(model: ModelLike) -> SimpleNamespace:
    """`compute_metrics` as steps for TensorFlow 2 call it: `compiled_metrics.update_state(y, y_pred)`."""
    return SimpleNamespace(update_state=functools.partial(model.compute_metrics, None))


def _loss(
    model: ModelLike, x: TensorLike, y: TensorLike, y_pred: TensorLike, sample_weight: TensorLike, training: bool
) -> Tensor:
    """`compute_loss`, which need not take `training` if it is overridden."""
    if not model.is_overridden("compute_loss") or "training" in inspect.signature(model.compute_loss).parameters:
        return model.compute_loss(x, y, y_pred, sample_weight, training=training)
    return model.compute_loss(x, y, y_pred, sample_weight)


def _rows(x: TensorLike) -> int:
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


# Ranks -----------------------------------------------------------------------------------------------------------------


def shared_step(model: ModelLike, name: str, split: BatchSplit, data: Any) -> Logs:
    """The step `name` of a model, on a batch of which `data` are the rows of this rank."""
    state, drawn, built = _State(model), global_stream().position, model.built
    parts = [_run_part(model, name, split, part, data, state) for part in split.parts]
    if split.pairs and built and global_stream().position != drawn:
        raise InvalidArgumentError(
            f"model '{model.name}': with virtual_shards a step cannot draw from the stream of tf.random, whose numbers would "
            "depend on how many ranks there are. Draw with keras.random and a keras.random.SeedGenerator that the layer holds."
        )
    first = parts[0]
    given = [[*part.present, *part.plain.values(), *part.changes, *part.sums] for part in parts]
    weighted = len(given[0]) - len(first.sums)
    sums = iter(combine(given, split.shares, weighted, split.pairs))
    present = iter(list(islice(sums, len(first.present))))
    if first.variables:
        gradients = [None if g is None else next(present) for g in first.gradients]
        model.optimizer.apply_gradients(zip(gradients, first.variables, strict=True))
    plain = dict(zip(first.plain, islice(sums, len(first.plain)), strict=True))
    state.change(list(sums))
    return {key: plain[key] if key in plain else result_of(first.measured[key]) for key in first.logs}


class _Part:
    """The results of a step on some rows.

    Attributes:
        gradients, variables: for the optimizer, once they cover all rows; none if the step has called the optimizer itself.
        logs: as the step gave them: `measured` are results of metrics, `plain` the others, which become means over rows.
        changes, sums: the changes of `means` and `sums`, see `_State`.
    """

    def __init__(self, gradients: list[Any], variables: list[Variable], logs: Logs, measured: Logs, state: _State) -> None:
        self.gradients, self.variables, self.logs, self.measured = gradients, variables, logs, measured
        self.present = [convert_to_tensor(g) for g in gradients if g is not None]
        plain = {key: convert_to_tensor(value) for key, value in logs.items() if key not in measured}
        self.plain = {key: one if one.dtype.is_floating else cast(one, "float32") for key, one in plain.items()}
        self.changes, self.sums = state.changes()


def _run_part(model: ModelLike, name: str, split: BatchSplit, part: BatchPart, data: Any, state: _State) -> _Part:
    state.begin(part)
    start = split.rows.start
    rows = data if len(split.parts) == 1 else cut(data, slice(part.first - start, part.first - start + part.rows))
    gradients: list[Any] = []
    variables: list[Variable] = []
    with computing_on(part), noted_results() as known:
        if name == "train_step" and not model.is_overridden(name):
            gradients, variables, predicted = steps.gradients_of(model, rows)
            logs = predicted.measure(model)
        else:
            logs = getattr(model, name)(rows)
    measured = {key: known[value.key] for key, value in logs.items() if getattr(value, "key", None) in known}
    return _Part(gradients, variables, logs, measured, state)


class _State:
    """The state that a step changes beside weights: each part of a batch begins with the same.

    Attributes:
        means: Variables that all parts change by the mean over rows, such as moving statistics.
        sums: Variables to which all parts add, and those that only the first part changes; those of metrics begin with zeros.
    """

    def __init__(self, model: ModelLike) -> None:
        self._model = model
        self.means: list[Variable] = []
        self.sums: list[Variable] = []
        self._others: list[Variable] = []
        self._firsts: set[int] = set()
        self._from_zero: set[int] = set()
        self._before: dict[int, Tensor] = {}
        for variable in _variables_of_metrics(model):
            self._keep(variable, True)
        for variable in model.collect_contents().variables:
            if not getattr(variable, "learns", variable.trainable):
                self._keep(variable, False)
        self._number, self._is_first = 0, True

    def _keep(self, variable: Variable, gathers: bool) -> None:
        """Remember what a Variable holds, and how the changes of parts become one."""
        if variable.key in self._before:
            return
        self._before[variable.key] = variable.read_value()
        rule = getattr(variable, "aggregation", "sum" if gathers else "none")
        if rule == "only_first_replica":
            self._firsts.add(variable.key)
        elif gathers and rule == "sum":
            self._from_zero.add(variable.key)
        is_sum = rule in ("sum", "only_first_replica")
        (self.sums if is_sum else self.means if variable.dtype.is_floating else self._others).append(variable)

    def begin(self, part: BatchPart) -> None:
        """Assign the values with which this part begins."""
        self._is_first = part.first == 0
        for variable in (*self.means, *self.sums, *self._others):
            if self._number or variable.key in self._from_zero:
                variable.assign(self._start(variable))
        self._number += 1

    def _start(self, variable: Variable) -> Tensor:
        before = self._before[variable.key]
        return _zeros(before) if variable.key in self._from_zero else before

    def changes(self) -> tuple[list[Any], list[Any]]:
        """The changes of means and sums by the part that has just ended; those of a part without effect are 0, so bits stay."""
        for variable in _variables_of_metrics(self._model):
            if variable.key not in self._before:  # made for the first batch
                self._keep(variable, True)
                self._before[variable.key] = _zeros(variable.read_value())
        return [self._change(one) for one in self.means], [self._change(one) for one in self.sums]

    def _change(self, variable: Variable) -> Any:
        start, value = self._before[variable.key], variable.read_value()
        if variable.key in self._from_zero:
            return value
        return value - start if self._is_first or variable.key not in self._firsts else _zeros(start)

    def change(self, by: list[Any]) -> None:
        """Change means and sums by what all parts give."""
        for variable, change in zip((*self.means, *self.sums), by, strict=True):
            variable.assign(self._before[variable.key] + change)


def _variables_of_metrics(model: ModelLike) -> list[Variable]:
    return [variable for metric in model.metrics for variable in metric.variables]


def _zeros(value: Tensor) -> Tensor:
    return Tensor(namespace(value.array).zeros_like(value.array))
