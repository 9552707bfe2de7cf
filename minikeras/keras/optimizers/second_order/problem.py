"""A loss for a second-order optimizer: its value, gradient and curvature at the present point, and values elsewhere.

All vectors are flat. Each sweep over the record of the loss has a name, by which a compiled step replays it (`loss_step.py`).
A loss in two stages, L(z(w)), has the curvature J^T H J: J = dz/dw, H = d2L/dz2. A penalty enters with its own Hessian.

Source: Schraudolph, Fast curvature matrix-vector products (2002), section 3.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from .... import nest
from ....compiler.sweeps import computed_by_plan
from ....core import BOTTOM, ForwardAccumulator, Record, Tape, Tensor, Variable, current, restore, snapshot, to_numpy
from ....derivatives.curvature import random_signs
from ....derivatives.first_order import run_once
from ....derivatives.flat import flatten, unflatten
from ....derivatives.hessian import RecordedGradient
from ....derivatives.output_curvature import OutputCurvature
from ....errors import ShapeError
from ....functions import cast, concat, reshape, tensor
from ....layout import Layout
from ....nn_ops import streams
from ....types import Array, DTypeLike
from ..loss_step import Repeatable, Sweep, SweepRecorder, run_directly
from ..state import names_of
from .blocks import BlockMatrix


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


def joined(found: Any, dtype: DTypeLike) -> Tensor:
    """Outputs as one tensor of a dtype: several are put side by side, row by row."""
    if not nest.is_nested(found):
        return found if type(found) is Tensor and found.dtype == dtype else cast(found, dtype)
    parts = [cast(part, dtype) for part in nest.flatten(found)]
    if any(part.ndim == 0 or part.shape[0] != parts[0].shape[0] for part in parts):
        shapes = ", ".join(str(part.shape) for part in parts)
        raise ShapeError(f"minimize: several outputs need the same number of rows to be put side by side, found {shapes}.")
    return concat([reshape(part, [part.shape[0], -1]) for part in parts], axis=1)


def parted(z: Tensor, like: Any) -> Any:
    """The outputs that were `joined`, from what they became."""
    if not nest.is_nested(like):
        return z if z is like else _like(z, like)
    parts, start = [], 0
    for part in nest.flatten(like):
        stop = start + math.prod(part.shape[1:])
        parts.append(_like(reshape(z[:, start:stop], part.shape), part))
        start = stop
    return nest.pack(like, parts)


def _like(z: Tensor, original: Any) -> Tensor:
    """`z` in the dtype of the original, with the mask that layers attached to that."""
    found = cast(z, original.dtype) if original.dtype.is_differentiable else z
    mask = getattr(original, "_keras_mask", None)
    if mask is not None:
        found.attached = mask
    return found


def run_objective(loss_fn: Any, variables: Sequence[Variable], decides: bool) -> OutputCurvature:
    """Run an `Objective`; its outputs are one tensor of the variables' dtype."""
    objective = objective_of(loss_fn)
    found: Any = None

    def outputs() -> Tensor:
        nonlocal found
        found = objective.outputs()
        return joined(found, variables[0].dtype)

    loss_of = lambda z: scalar(objective.loss_of_outputs(parted(z, found)))
    return OutputCurvature.run(outputs, loss_of, variables, objective.penalty, decides=decides)


def planned(run: OutputCurvature, name: Hashable, ask: Callable[[OutputCurvature], Sequence[Tensor]]) -> list[Any] | None:
    """The flat gradient, and the answers to `ask`, by a plan; None without one.

    Args:
        run: of an `Objective`; once the same one was seen several times, what follows from it is a program.
        name: of the question.
        ask: the question, a function of the curvature.
    """
    targets = [run.outputs, run.bare, run.loss, *([] if run.penalty is None else [run.penalty])]

    def compute(records: list[Record], stand_in: Callable[[Any], Any], tracked: set[int]) -> list[Any]:
        outputs, bare, loss, *penalty = map(stand_in, targets)
        chosen = [stand_in(variable) for variable in run.variables]
        extra, tape = penalty[0] if penalty else None, Tape(watch_accessed=False)
        tape.records, tape.tracked = records, tracked
        copy = OutputCurvature(tape, run.stage, outputs, bare, chosen, extra, loss, decides=True)
        gradient, depends = copy.gradient()
        if not depends:
            raise ValueError("no variable is reached, which is said without a plan")
        return [gradient, *ask(copy)]

    asked = "curvature of outputs", run.stage, name
    if current() is not BOTTOM:
        return None
    return computed_by_plan(run.records, targets, run.variables, run.tracked, compute, asked)


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


class LossProblem:
    """A loss at the present value of some variables.

    Args:
        loss_fn: without arguments; returns a scalar. May be an `Objective`.
        variables: trainable ones, all float32 or all float64.
        runs: keeps the state of a loss that several problems share from moving more than once.
        sweep: carries out a sweep, given its name, the function and its Tensors.

    Attributes:
        layout, size: of the variables in a flat vector.
        curvature: for the functions of sweeps: a `RecordedGradient`, after `record_stages` an `OutputCurvature`.
        loss: at the present point, a Tensor.
        gradient: there, a flat array.
        answers: to the question of `record_stages`.

    Raises:
        ShapeError: if the loss is no scalar.
        ValueError: if it depends on none of the variables, if there are none, or if their dtypes differ.
        TypeError: for variables that are neither float32 nor float64.
    """

    def __init__(
        self,
        loss_fn: Callable[[], Any],
        variables: Sequence[Variable],
        runs: Repeatable | None = None,
        sweep: Sweep = run_directly,
    ) -> None:
        if not variables:
            raise ValueError("minimize: no variables are given.")
        if len({variable.dtype for variable in variables}) > 1:
            found = ", ".join(f"{variable.name} {variable.dtype.name}" for variable in variables)
            raise ValueError(f"minimize: all variables must have one dtype to be joined into one vector, found {found}.")
        if variables[0].dtype.name not in ("float32", "float64"):
            raise TypeError(
                f"minimize: equations are solved in float32 or float64, the variables are {variables[0].dtype.name}. "
                "With a mixed policy such as 'mixed_bfloat16' variables stay float32."
            )
        self.variables = list(variables)
        self.layout = _layout(tuple([variable.array.shape for variable in self.variables]))
        self.loss_fn = loss_fn
        self.runs = runs or Repeatable(loss_fn)
        self.size = self.layout.size
        self._sweep = sweep
        self.answers: Sequence[Any] = ()
        self.curvature: Any
        self.loss: Tensor
        self.gradient: Array

    def sweep(self, name: str, function: Sweep, *given: Array) -> Sequence[Any]:
        """Carry out a sweep: `function` of these arrays as Tensors, once for a recording."""
        return self._sweep(name, function, *map(Tensor, given))

    def record(self, twice: bool = True) -> None:
        """Run the loss, and take its gradient; with `twice` keep the record from which curvature is taken."""
        self.loss, whole = self.sweep("record", lambda: self._run(twice, True))
        self.gradient = whole.array

    def record_stages(self, ask: Callable[[OutputCurvature], Sequence[Any]], plan: Hashable = None) -> None:
        """Run the loss, an `Objective`, take its gradient, and ask something of its curvature: `answers` are set.

        Args:
            ask: the question, a function of the curvature.
            plan: a name of the question, if the run serves nothing else: then a plan may carry it out.
        """

        def run() -> list[Any]:
            decides = isinstance(current().interpreter, SweepRecorder)
            found = self.curvature = self.runs.again(lambda: run_objective(self.loss_fn, self.variables, decides))
            known = None if plan is None else planned(found, plan, ask)
            if known is None:
                gradient, depends = found.gradient()
                self._check_depends(depends)
                known = [gradient, *ask(found)]
            return [found.loss, *known]

        self.loss, gradient, *self.answers = self.sweep("record", run)
        self.gradient = gradient.array

    def _check_depends(self, depends: bool) -> None:
        if not depends:
            raise ValueError(f"minimize: the loss does not depend on any of the variables {names_of(self.variables)}.")

    def _run(self, twice: bool, must_depend: bool) -> tuple[Tensor, Tensor]:
        """The loss and its gradient; with `twice` their record is kept."""
        tape, loss = run_once(lambda: scalar(self.runs()), self.variables)
        if twice:
            self.curvature = RecordedGradient(tape, loss, self.variables)
            gradient = self.curvature.flat
        else:
            gradient = flatten(tape.gradient(loss, self.variables, unconnected_gradients="zero"))
        self._check_depends(tape.found_any or not must_depend)
        return loss, gradient

    # Curvature ---------------------------------------------------------------------------------------------------------

    def product(self, vector: Array) -> Array:
        """The Hessian, or after `record_stages` J^T H J, times a flat vector: one more sweep over the record."""
        return self._one("product", lambda given: self.curvature.flat_product(given), vector)

    def _one(self, name: str, function: Callable[..., Tensor], *given: Array) -> Array:
        """The array of the only result of a sweep."""
        (found,) = self.sweep(name, lambda *tensors: (function(*tensors),), *given)
        result: Array = found.array
        return result

    def probed(self, product: Callable[[Array], Array], count: int) -> Iterator[Array]:
        """z * (B z) for `count` vectors z of random signs: estimates of the diagonal of B, whose product is given."""
        for _ in range(count):
            probe = random_signs(streams.global_stream().key(), self.gradient)
            yield probe * product(probe)

    def hessian(self, groups: Sequence[Sequence[int]], chunk_size: int | None = None) -> BlockMatrix:
        """The Hessian's blocks for groups of variables, given by their positions; what lies between groups is left out."""

        def matrix(group: Sequence[int]) -> Callable[[], Tensor]:
            return lambda: self.curvature.matrix(group, chunk_size)

        return self.blocks(groups, [self._one(f"hessian {place}", matrix(group)) for place, group in enumerate(groups)])

    def acceleration(self, vector: Array) -> Array:
        """J^T H z'', with z'' the second derivative of the outputs along a flat vector. Runs the outputs once more."""

        def bend(given: Tensor) -> Tensor:
            parts = unflatten(given, self.variables)
            again = lambda: joined(objective_of(self.loss_fn).outputs(), self.variables[0].dtype)
            with ForwardAccumulator(self.variables, parts) as outer:
                with ForwardAccumulator(self.variables, parts) as inner:
                    z = self.runs.again(again)
                slope = inner.jvp(z, "zero")
            return flatten(self.curvature.back(self.curvature.bent(outer.jvp(slope, "zero"))))

        return self._one("acceleration", bend, vector)

    def blocks(self, groups: Sequence[Sequence[int]], blocks: Sequence[Array]) -> BlockMatrix:
        """A matrix of blocks, each for a group of variables."""
        places, parts = np.arange(self.size), self.layout.slices
        chosen = [np.concatenate([places[parts[i]] for i in group]) if len(group) < len(parts) else places for group in groups]
        return BlockMatrix(blocks, chosen)

    # Elsewhere ---------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def offset_by(self, step: Array) -> Iterator[None]:
        """Within the block the variables hold their values plus a flat step."""
        before = snapshot(self.variables)
        try:
            for variable, part in zip(self.variables, self.layout.pieces(step), strict=True):
                variable.array = variable.array + part
            yield
        finally:
            restore(before)

    def value(self, step: Array) -> float:
        """The loss after a flat step, as a number; infinity in place of NaN."""
        with self.offset_by(step):
            (loss,) = self.sweep("value", lambda: (scalar(self.runs()),))
        return _not_nan(number(loss))

    def value_and_gradient(self, step: Array) -> tuple[float, Array]:
        """The loss and its gradient after a flat step."""
        with self.offset_by(step):
            loss, gradient = self.sweep("value_and_gradient", lambda: self._run(False, False))
        return _not_nan(number(loss)), gradient.array


_layout = functools.lru_cache(64)(Layout)


def number(value: Any) -> float:
    """An array or Tensor without axes as a Python number."""
    return float(to_numpy(value.array if isinstance(value, Tensor) else value))


def _not_nan(loss: float) -> float:
    return loss if loss == loss else float("inf")


SUFFICIENT = 1e-4
"""The least decrease of the loss along a line, as a share of that which the slope promises."""


def rounding(loss: float, dtype: DTypeLike) -> float:
    """A difference of losses that is nothing but rounding."""
    return 10.0 * float(np.finfo(dtype).eps) * abs(loss)
