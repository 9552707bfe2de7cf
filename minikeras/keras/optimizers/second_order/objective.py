"""A loss in two stages, L(z(w)), and its curvature J^T H J: J = dz/dw, H = d2L/dz2. A penalty enters with its own Hessian.

Source: Schraudolph, Fast curvature matrix-vector products (2002), section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from .... import nest
from ....compiler import sweeps
from ....compiler.ir import Outdated
from ....core import Record, Tensor, Variable
from ....core.stack import BOTTOM, current
from ....core.tape import Tape
from ....derivatives.output_curvature import Decision, OutputCurvature
from ....errors import MinikerasError, ShapeError
from ....functions.elementwise import cast
from ....functions.operands import tensor
from ....functions.shaping import concat, reshape

REFUSALS = (MinikerasError, ValueError, TypeError, OverflowError, np.linalg.LinAlgError)


class Objective:
    """A loss in two stages, outputs and what is made of them, for methods that use this structure.

        loss = loss_of_outputs(outputs()) + penalty()

    Args:
        outputs: without arguments; the model's outputs z.
        loss_of_outputs: from z to a scalar, best convex in z.
        penalty: without arguments; a scalar such as the regularization losses of the run that gave z, or None for none.

    >>> w = tf.Variable([1.0, 2.0])
    >>> objective = tf.keras.optimizers.Objective(lambda: 3.0 * w, lambda z: tf.reduce_sum(z**2))
    >>> print(objective().numpy())
    45.0
    """

    def __init__(
        self, outputs: Callable[[], Any], loss_of_outputs: Callable[[Any], Any], penalty: Callable[[], Any] | None = None
    ) -> None:
        self.outputs, self.loss_of_outputs, self.penalty = outputs, loss_of_outputs, penalty

    def __call__(self) -> Any:
        loss = self.loss_of_outputs(self.outputs())
        extra = None if self.penalty is None else self.penalty()
        return loss if extra is None else loss + extra


class JoinedOutputs:
    """The outputs of an objective as one tensor of the variables' dtype: several are put side by side, row by row."""

    def __init__(self, objective: Objective, dtype: Any) -> None:
        self._objective, self._dtype = objective, dtype
        self._like: Any = None

    def outputs(self) -> Tensor:
        """Run the outputs."""
        self._like = found = self._objective.outputs()
        if not nest.is_nested(found):
            return found if type(found) is Tensor and found.dtype == self._dtype else cast(found, self._dtype)
        parts = [cast(part, self._dtype) for part in nest.flatten(found)]
        if any(part.ndim == 0 or part.shape[0] != parts[0].shape[0] for part in parts):
            shapes = ", ".join(str(part.shape) for part in parts)
            raise ShapeError(f"minimize: several outputs need the same number of rows to be put side by side, found {shapes}.")
        return concat([reshape(part, [part.shape[0], -1]) for part in parts], axis=1)

    def loss_of(self, z: Tensor) -> Tensor:
        """The loss of what `outputs` gave."""
        if z is self._like:
            return scalar(self._objective.loss_of_outputs(z))
        if not nest.is_nested(self._like):
            return scalar(self._objective.loss_of_outputs(_like(z, self._like)))
        parts, start = [], 0
        for part in nest.flatten(self._like):
            stop = start + math.prod(part.shape[1:])
            parts.append(_like(reshape(z[:, start:stop], part.shape), part))
            start = stop
        return scalar(self._objective.loss_of_outputs(nest.pack(self._like, parts)))


def _like(z: Tensor, original: Any) -> Tensor:
    """In the dtype of the original, with the mask that layers attached to it."""
    found = cast(z, original.dtype) if original.dtype.is_differentiable else z
    mask = getattr(original, "_keras_mask", None)
    if mask is not None:
        found.attached = mask
    return found


def run_objective(loss_fn: Any, variables: Sequence[Variable], decisions: list[Decision] | None) -> OutputCurvature:
    """Run an `Objective`; its outputs are one tensor of the variables' dtype."""
    objective = objective_of(loss_fn)
    joined = JoinedOutputs(objective, variables[0].dtype)
    return OutputCurvature.run(joined.outputs, joined.loss_of, variables, objective.penalty, decisions=decisions)


def noted(curvature: OutputCurvature, ask: Callable[[OutputCurvature], Sequence[Tensor]]) -> list[Any]:
    """What is asked of a curvature, its number in front, and what was decided on the way."""
    found = ask(curvature)
    return [len(found), *found, *[part for decision in curvature.decisions or () for part in decision]]


def decided(results: Sequence[Any]) -> Sequence[Any]:
    """What was asked of a curvature, of what `noted` gives.

    Raises:
        Outdated: in a replay, if its numbers decide otherwise than those of the recorded run.
    """
    count, *rest = results
    found, numbers = rest[:count], rest[count:]
    if not all(Decision(*numbers[i : i + 3]).holds() for i in range(0, len(numbers), 3)):
        raise Outdated("rows of a batch meet where they did not, or the other way round")
    return found


def planned(run: OutputCurvature, name: Hashable, ask: Callable[[OutputCurvature], Sequence[Tensor]]) -> list[Any] | None:
    """The flat gradient and what is asked of the curvature, the number of it in front, by a plan; None without one.

    Args:
        run: of an `Objective`; once the same one was seen several times, what follows from it is a program.
        name: of what is asked.
        ask: how.
    """
    if current() is not BOTTOM:
        return None
    targets = [run.outputs, run.bare, run.loss, *([] if run.penalty is None else [run.penalty])]
    asked = sweeps.describe(run.records, targets, run.variables, run.tracked)
    if asked is None:
        return None
    asked = asked._replace(key=("curvature of outputs", run.stage, name, asked.key))

    def compute(records: list[Record], stand_in: Callable[[Any], Any], tracked: set[int]) -> list[Any]:
        outputs, bare, loss, *penalty = map(stand_in, targets)
        chosen = [stand_in(variable) for variable in run.variables]
        extra, tape = penalty[0] if penalty else None, Tape(watch_accessed=False)
        tape.records, tape.tracked = records, tracked
        copy = OutputCurvature(tape, run.stage, outputs, bare, chosen, extra, loss, decisions=[])
        gradient, depends = copy.gradient()
        if not depends:
            raise ValueError("no variable is reached, which is said without a plan")
        return [gradient, *noted(copy, ask)]

    def make() -> Any:
        try:
            return sweeps.compiled_plan(run.records, asked, run.tracked, compute)
        except (LookupError, *REFUSALS):
            return None

    plan = sweeps.plans.find(asked, make)
    try:
        if plan is not None:
            gradient, *rest = plan(asked.arrays)
            return [gradient, rest[0], *decided(rest)]
    except (Outdated, *REFUSALS):
        pass  # the computation without a plan decides anew, or says what is wrong
    return None


def scalar(loss: Any) -> Tensor:
    loss = tensor(loss)
    if loss.ndim:
        raise ShapeError(
            f"minimize: the loss must be a scalar, found shape {loss.shape}. Use tf.reduce_mean or tf.reduce_sum; residuals "
            "go to LevenbergMarquardt as Objective(residuals, lambda r: tf.reduce_sum(r**2) / 2)."
        )
    return loss


def objective_of(loss_fn: Any) -> Objective:
    """A loss in two stages; TypeError for a plain function."""
    if isinstance(loss_fn, Objective) or all(hasattr(loss_fn, name) for name in ("outputs", "loss_of_outputs", "penalty")):
        return loss_fn
    raise TypeError(
        "minimize: this method uses the structure of the loss and needs "
        "tf.keras.optimizers.Objective(outputs, loss_of_outputs), a plain function was given. `fit` gives one to a model that "
        "overrides compute_loss or is compiled without a loss: use Newton, NewtonCG or LBFGS there."
    )
