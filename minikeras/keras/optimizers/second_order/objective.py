"""A loss in two stages, L(z(w)), and its curvature J^T H J: J = dz/dw, H = d2L/dz2. A penalty enters with its own Hessian.

Source: Schraudolph, Fast curvature matrix-vector products (2002), section 3.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .... import nest
from ....core import GradientTape, Tensor, Variable
from ....core.forward import ForwardAccumulator
from ....core.tape import Tape
from ....derivatives.first_order import found_any
from ....derivatives.flat import flatten, unflatten
from ....derivatives.hessian import RecordedGradient
from ....derivatives.output_curvature import Decision, OutputCurvature, tape_of
from ....errors import ShapeError
from ....functions.elementwise import cast
from ....functions.publish import tensor
from ....functions.shaping import concat, reshape
from ..repeat import Repeatable


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


class ObjectiveCurvature:
    """J^T H J plus the penalty's Hessian, as a matrix or as a product, from one run.

    Args:
        loss_fn: an `Objective`.
        variables: as in `Problem`.
        runs: has it run from the state in which the loss was run.
        decisions: as in `OutputCurvature`.

    Attributes:
        bare: without the penalty.
    """

    def __init__(
        self, loss_fn: Any, variables: Sequence[Variable], runs: Repeatable, decisions: list[Decision] | None = None
    ) -> None:
        objective = objective_of(loss_fn)
        concatenated, extra = self._begin(objective, variables, runs), list[Any]()

        def outputs() -> Tensor:
            z = concatenated.outputs()
            extra.append(None if objective.penalty is None else objective.penalty())
            return z

        def run() -> OutputCurvature:
            bare = OutputCurvature(outputs, concatenated.loss_of, variables, decisions=decisions)
            bare.bending()  # runs the loss of the outputs
            return bare

        self.bare: OutputCurvature = runs.again(run)
        self._penalize(self.bare.tape, extra[0])

    @classmethod
    def of_run(
        cls, run: ObjectiveRun, variables: Sequence[Variable], runs: Repeatable, decisions: Any = None
    ) -> ObjectiveCurvature:
        """From a run that was recorded, if it shows all; else from another one."""
        if not run.shows_all(variables[0].dtype):
            return cls(run.objective, variables, runs, decisions)
        found = cls.__new__(cls)
        found._begin(run.objective, variables, runs)
        found.bare = OutputCurvature.of_record(run.tape, run.stage, run.outputs, run.loss_of_outputs, variables, decisions)
        found._penalize(run.gradient_tape(), run.extra)
        return found

    def _begin(self, objective: Objective, variables: Sequence[Variable], runs: Repeatable) -> _ConcatenatedOutputs:
        concatenated = _ConcatenatedOutputs(objective, variables[0].dtype)
        self.variables, self._again = list(variables), functools.partial(runs.again, concatenated.outputs)
        return concatenated

    def _penalize(self, tape: GradientTape, extra: Any) -> None:
        self._penalty = None if extra is None else RecordedGradient(tape, scalar(extra), self.variables)

    def matrix(self, places: Sequence[int] | None = None, chunk_size: int | None = None) -> Tensor:
        """The block of some of the variables, by their places; the whole matrix without."""
        chosen = self.variables if places is None else [self.variables[place] for place in places]
        block = self.bare.matrix(chosen, chunk_size)
        if self._penalty is not None:
            block = block + self._penalty.matrix(places, chunk_size)
        return block

    def product(self, vector: Tensor) -> Tensor:
        """The curvature times a flat vector."""
        parts = unflatten(vector, self.variables)
        result = flatten(self.bare.product(parts))
        if self._penalty is not None:
            result = result + flatten(self._penalty.product(parts))
        return result

    def acceleration(self, vector: Tensor) -> Tensor:
        """J^T H z'': the second derivative of the outputs along a flat vector, as a gradient. Runs the outputs once more."""
        parts = unflatten(vector, self.variables)
        with ForwardAccumulator(self.variables, parts) as outer:
            with ForwardAccumulator(self.variables, parts) as inner:
                z = self._again()
            slope = inner.jvp(z, "zero")
        return flatten(self.bare.back(self.bare.bent(outer.jvp(slope, "zero"))))


class ObjectiveRun(NamedTuple):
    """One run of both stages and the penalty.

    Attributes:
        tape, stage: what recorded it, and how many of its Records are those of the outputs.
        outputs, loss_of_outputs, extra: what the stages and the penalty gave.
        loss: all together.
    """

    objective: Objective
    tape: Tape
    stage: int
    outputs: Any
    loss_of_outputs: Tensor
    extra: Tensor | None
    loss: Tensor

    @classmethod
    def of(cls, objective: Objective, variables: Sequence[Variable]) -> ObjectiveRun:
        """Run an objective."""
        tape = Tape(watch_accessed=False)
        tape.tracked.update([variable.key for variable in variables])
        with tape:
            outputs = objective.outputs()
            stage = len(tape.records)
            if type(outputs) is Tensor and outputs.dtype.is_differentiable:
                tape.tracked.add(outputs.key)
            bare = loss = tensor(objective.loss_of_outputs(outputs))
            extra = None if objective.penalty is None else objective.penalty()
            if extra is not None:
                extra = tensor(extra)
                loss = bare + extra
        return cls(objective, tape, stage, outputs, bare, extra, scalar(loss))

    def shows_all(self, dtype: Any) -> bool:
        """Whether curvature follows from this very run: not for outputs that are several, cast, or Variables."""
        return type(self.outputs) is Tensor and self.outputs.dtype == dtype and self.outputs.ndim > 0

    def gradient_tape(self) -> GradientTape:
        """A tape of the run."""
        return tape_of(self.tape.records, self.tape.tracked)

    def gradient(self, variables: Sequence[Any]) -> tuple[Tensor, bool]:
        """Of the loss, flat, and whether it depends on any of the variables."""
        tape = self.gradient_tape()
        return flatten(tape.gradient(self.loss, list(variables), unconnected_gradients="zero")), found_any(tape)


class _ConcatenatedOutputs:
    """The outputs of an objective as one tensor of the variables' dtype: several are concatenated, row by row."""

    def __init__(self, objective: Objective, dtype: Any) -> None:
        self._objective, self._dtype = objective, dtype
        self._like: Any = None

    def outputs(self) -> Tensor:
        self._like = found = self._objective.outputs()
        if not nest.is_nested(found):
            return cast(found, self._dtype)
        parts = [cast(part, self._dtype) for part in nest.flatten(found)]
        if any(part.ndim == 0 or part.shape[0] != parts[0].shape[0] for part in parts):
            shapes = ", ".join(str(part.shape) for part in parts)
            raise ShapeError(f"minimize: several outputs need the same number of rows to be put side by side, found {shapes}.")
        return concat([reshape(part, [part.shape[0], -1]) for part in parts], axis=1)

    def loss_of(self, z: Tensor) -> Any:
        if not nest.is_nested(self._like):
            return self._objective.loss_of_outputs(_masked_like(z, self._like))
        parts, start = [], 0
        for part in nest.flatten(self._like):
            stop = start + math.prod(part.shape[1:])
            parts.append(_masked_like(reshape(z[:, start:stop], part.shape), part))
            start = stop
        return self._objective.loss_of_outputs(nest.pack(self._like, parts))


def _masked_like(z: Tensor, original: Any) -> Tensor:
    """With the mask that layers attached to the original."""
    mask = getattr(original, "_keras_mask", None)
    if mask is not None:
        z.attached = mask
    return z


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
