"""What a second-order optimizer asks of a loss: its value, gradient and curvature at the present point, and values elsewhere.

All vectors are flat. Each sweep over the record of the loss has a name, by which a compiled step replays it (`compiled.py`).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from ....core import Tensor, Variable
from ....core.arrays import to_numpy
from ....core.forward import ForwardAccumulator
from ....core.stack import current
from ....core.variable import restore, snapshot
from ....derivatives.curvature import random_signs
from ....derivatives.first_order import run_once
from ....derivatives.flat import flatten, unflatten
from ....derivatives.hessian import RecordedGradient
from ....derivatives.output_curvature import Decision, OutputCurvature
from ....layout import Layout
from ....nn_ops import streams
from ....types import Array
from ..repeat import Repeatable
from ..state import names_of
from .blocks import BlockMatrix
from .compiled import Sweep, SweepRecorder, run_directly
from .objective import JoinedOutputs, decided, noted, objective_of, planned, run_objective, scalar


class LossProblem:
    """A loss at the present value of some variables.

    Args:
        loss_fn: without arguments; returns a scalar. May be an `Objective`.
        variables: trainable ones, all float32 or all float64.
        runs: where a loss is shared by several problems, what keeps its state from moving more than once.
        sweep: carries out a sweep, given its name, the function and its Tensors.

    Attributes:
        layout: of the variables in a flat vector.
        loss: at the present point, a Tensor.
        gradient: there, a flat array.

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
        self._sweep = sweep
        self._recorded: RecordedGradient | None = None
        self._curvature: OutputCurvature | None = None
        self._answers: Sequence[Any] = ()
        self.loss: Tensor
        self.gradient: Array

    @property
    def size(self) -> int:
        return self.layout.size

    def record(self, twice: bool = True) -> None:
        """Run the loss, and take its gradient; with `twice` keep the record from which curvature is taken."""
        self.loss, whole = self._sweep("record", functools.partial(self._first_run, twice))
        self.gradient = whole.array

    def record_stages(self, ask: Callable[[OutputCurvature], Sequence[Any]], plan: Hashable = None) -> None:
        """Run the loss, an `Objective`, take its gradient, and ask something of its curvature: `answers` gives it.

        Args:
            ask: how.
            plan: names what is asked, if no more follows from the run: then it may be carried out by a plan.
        """

        def run() -> list[Any]:
            decisions: list[Decision] | None = [] if isinstance(current().interpreter, SweepRecorder) else None
            found = self._curvature = self.runs.again(lambda: run_objective(self.loss_fn, self.variables, decisions))
            known = None if plan is None else planned(found, plan, ask)
            if known is None:
                gradient, depends = found.gradient()
                self._check_depends(depends)
                known = [gradient, *noted(found, ask)]
            return [found.loss, *known]

        self.loss, gradient, *self._answers = self._sweep("linearized", run)
        self.gradient = gradient.array

    def answers(self) -> Sequence[Any]:
        """What was asked of the curvature."""
        return decided(self._answers)

    def _first_run(self, twice: bool) -> tuple[Tensor, Tensor]:
        loss, gradient, depends = self._run(twice)
        self._check_depends(depends)
        return loss, gradient

    def _check_depends(self, depends: bool) -> None:
        if not depends:
            raise ValueError(f"minimize: the loss does not depend on any of the variables {names_of(self.variables)}.")

    def _run(self, twice: bool) -> tuple[Tensor, Tensor, bool]:
        """The loss, its gradient, and whether it depends on any variable."""
        tape, loss = run_once(lambda: scalar(self.runs()), self.variables)
        if twice:
            self._recorded = RecordedGradient(tape, loss, self.variables)
            gradient = self._recorded.flat
        else:
            gradient = flatten(tape.gradient(loss, self.variables, unconnected_gradients="zero"))
        return loss, gradient, tape.found_any

    # Curvature ---------------------------------------------------------------------------------------------------------

    def product(self, vector: Array) -> Array:
        """The Hessian times a flat vector: one more sweep over the record."""
        (found,) = self._sweep("product", self._product, Tensor(vector))
        return found.array

    def _product(self, vector: Tensor) -> tuple[Tensor]:
        assert self._recorded is not None
        return (self._recorded.flat_product(vector),)

    def probed(self, product: Callable[[Array], Array], count: int) -> Iterator[Array]:
        """z * (B z) for `count` vectors z of random signs: estimates of the diagonal of B, whose product is given."""
        for _ in range(count):
            probe = random_signs(streams.global_stream().key(), self.gradient)
            yield probe * product(probe)

    def hessian(self, groups: Sequence[Sequence[int]], chunk_size: int | None = None) -> BlockMatrix:
        """The Hessian's blocks for groups of variables, given by their positions; what lies between groups is left out."""
        blocks = []
        for number_of_group, group in enumerate(groups):
            (block,) = self._sweep(f"hessian {number_of_group}", functools.partial(self._block, group, chunk_size))
            blocks.append(block.array)
        return self.blocks(groups, blocks)

    def _block(self, group: Sequence[int], chunk_size: int | None) -> tuple[Tensor]:
        assert self._recorded is not None
        return (self._recorded.matrix(group, chunk_size),)

    def output_product(self, vector: Array) -> Array:
        """J^T H J, and the penalty's Hessian, times a flat vector."""

        def product(given: Tensor) -> list[Tensor]:
            return [flatten(self.curvature.product(unflatten(given, self.variables)))]

        (found,) = self._sweep("output_product", product, Tensor(vector))
        result: Array = found.array
        return result

    def acceleration(self, vector: Array) -> Array:
        """J^T H z'', with z'' the second derivative of the outputs along a flat vector. Runs the outputs once more."""

        def bend(given: Tensor) -> list[Tensor]:
            parts = unflatten(given, self.variables)
            again = JoinedOutputs(objective_of(self.loss_fn), self.variables[0].dtype)
            with ForwardAccumulator(self.variables, parts) as outer:
                with ForwardAccumulator(self.variables, parts) as inner:
                    z = self.runs.again(again.outputs)
                slope = inner.jvp(z, "zero")
            return [flatten(self.curvature.back(self.curvature.bent(outer.jvp(slope, "zero"))))]

        (found,) = self._sweep("acceleration", bend, Tensor(vector))
        result: Array = found.array
        return result

    @property
    def curvature(self) -> OutputCurvature:
        """The curvature of the outputs, for the functions of sweeps."""
        assert self._curvature is not None
        return self._curvature

    def sweep(self, name: str, function: Sweep, *given: Array) -> Sequence[Any]:
        """Carry out a sweep of a method's own: `function` of these arrays as Tensors, once for a recording."""
        return self._sweep(name, function, *map(Tensor, given))

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
            (loss,) = self._sweep("value", lambda: (scalar(self.runs()),))
        return _not_nan(number(loss))

    def value_and_gradient(self, step: Array) -> tuple[float, Array]:
        """The loss and its gradient after a flat step."""
        with self.offset_by(step):
            loss, gradient = self._sweep("value_and_gradient", lambda: self._run(False)[:2])
        return _not_nan(number(loss)), gradient.array


@functools.lru_cache(64)
def _layout(shapes: tuple[tuple[int, ...], ...]) -> Layout:
    return Layout(shapes)


def number(value: Any) -> float:
    """An array or Tensor without axes as a Python number."""
    return float(to_numpy(value.array if isinstance(value, Tensor) else value))


def _not_nan(loss: float) -> float:
    return loss if loss == loss else float("inf")
