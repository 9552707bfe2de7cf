"""The work of training on one batch: the steps and losses that `Model` offers for overriding, plain Python as in a custom
training loop. A step happens as a whole or not at all (`state.py`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from ... import nest
from ...core import GradientTape, Tensor, Variable, warn_caller
from ...errors import ShapeError
from ...functions.operands import tensor
from ...functions.reductions import reduce_sum
from ...types import TensorLike
from .. import batches, optimizers
from ..symbolic.trial import returned_none
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
        terms = _added(model)
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
    terms += _added(model)
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


def _added(model: ModelLike) -> list[Any]:
    """The sum that `add_loss` and regularizers add to the loss: an array counts with all its elements."""
    return [reduce_sum(one) if getattr(one, "ndim", 0) else one for one in model.losses]


def total(terms: Sequence[Any]) -> Tensor:
    """The sum of the terms of a loss, which has to be a scalar."""
    found = tensor(terms[0])
    for term in terms[1:]:
        found = found + tensor(term)
    if found.ndim:
        raise ShapeError(
            f"The loss of a batch has shape {found.shape}, a scalar is needed to train. Use a reduction other than 'none'."
        )
    return found
