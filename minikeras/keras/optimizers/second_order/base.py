"""SecondOrder: what optimizers share that are given the loss as a function. A subclass turns a `LossProblem` into a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core import BOTTOM, GradientTape, Tensor, Variable, current, namespace, to_device
from ....functions.elementwise import cast
from ....types import Array
from ..loss_step import Repeatable, Sweep, run_directly, run_step
from ..optimizer import Optimizer
from ..state import Change, constrained
from ..step import OnArrays, all_finite, counted
from .problem import LossProblem


class SecondOrder(Optimizer):
    """Base class.

    `minimize(loss_fn, variables)` takes one step; `fit` calls it with the loss of the batch, regularization included. The loss
    is run several times in a step, always from the same state: layers' statistics move once and random masks stay. Where loss,
    gradient or step are not finite, the variables stay where they are.

    Args:
        learning_rate: factor of the step; 1 takes it whole.
        options: `use_ema`, `ema_momentum`, `ema_overwrite_frequency`, `name`, as in `Optimizer`. The other common options
            change gradients or weights behind the back of the curvature and are refused.

    Attributes:
        max_parameters: refuse more, before any memory is asked for; None for methods that need no matrix.

    >>> class Descent(tf.keras.optimizers.SecondOrder):
    ...     def step(self, problem):
    ...         return -problem.gradient, []
    >>> w = tf.Variable(1.0)
    >>> print(Descent(0.25).minimize(lambda: w * w, [w]).numpy(), w.numpy())
    1.0 0.5
    """

    needs_loss = True
    needs_curvature_record = True
    """True if the gradient's own record is kept, for Hessians and products."""
    max_parameters: int | None = None
    sweeps: Sequence[str] | None = None
    """Names of the sweeps of every step, by which a compiled step can record them; None lets steps run eagerly."""

    def __init__(self, learning_rate: float | Callable[..., Any] = 1.0, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self._numbers: dict[str, Variable] = {}
        unfit = ("weight_decay", "clipnorm", "clipvalue", "global_clipnorm", "loss_scale_factor", "gradient_accumulation_steps")
        given = [name for name in unfit if getattr(self, name) is not None]
        if given:
            raise ValueError(
                f"{type(self).__name__}: {given} would change gradients or weights behind the back of the curvature. Put a "
                "penalty into the loss (kernel_regularizer=...), limit steps by damping or a trust region, or use larger "
                "batches."
            )

    def _one_of(self, name: str, value: Any, *choices: Any) -> Any:
        if value not in choices:
            *others, last = map(repr, choices)
            raise ValueError(f"{type(self).__name__}: {name} must be {', '.join(others)} or {last}, found {value!r}.")
        return value

    # State -------------------------------------------------------------------------------------------------------------

    def add_number(self, name: str, value: float | int) -> None:
        """Keep a number that outlives a step: saved with the optimizer, and shown in the logs."""
        first = np.int64(value) if isinstance(value, int) else np.float64(value)
        self._numbers[name] = self.state.add_number(first, name)

    def number(self, name: str) -> float:
        """The present value of a number."""
        if name not in self._numbers:
            raise ValueError(
                f"{self.name} keeps no number '{name}'; it keeps {list(self._numbers)}. Options of the constructor ask for "
                "them: make a new optimizer."
            )
        return float(self._numbers[name].array)

    def change(self, **numbers: float) -> list[Change]:
        """New values of numbers by name, to be assigned with the step."""
        held = [(self._numbers[name], value) for name, value in numbers.items()]
        return [(variable, variable.array.dtype.type(value)) for variable, value in held]

    @property
    def variables(self) -> list[Variable]:
        return [*super().variables, *self._numbers.values()]

    def logs(self) -> dict[str, Any]:
        """The numbers by name, for the logs of training; as Tensors where an interpreter listens."""
        if current() is not BOTTOM:
            return {name: cast(variable, "float64") for name, variable in self._numbers.items()}
        return {name: self.number(name) for name in self._numbers}

    # The step ----------------------------------------------------------------------------------------------------------

    def minimize(self, loss: Any, var_list: Any, tape: GradientTape | None = None) -> Tensor:
        """Take one step. If anything fails, nothing has changed.

        Args:
            loss: a function without arguments; returns a scalar. An `Objective` where the method asks for one.
            var_list: the Variables to change; trainable, all float32 or all float64.
            tape: refused: the loss is run several times.

        Returns:
            The loss before the step.

        Raises:
            ValueError: without variables, for more than `max_parameters`, or if the loss depends on none of them.
            ShapeError: if the loss is no scalar.
            FloatingPointError: if the curvature is not finite where the loss and its gradient are.
        """
        if tape is not None or not callable(loss):
            raise TypeError(_NEEDS_LOSS.format(type(self).__name__, "one that a tape recorded"))
        chosen = list(var_list)
        self._check_size(chosen)
        with self.state.step(chosen):
            self.build(chosen)
            return run_step(self, loss, chosen)

    def loss_and_changes(
        self,
        loss_fn: Callable[[], Any],
        variables: Sequence[Variable],
        runs: Repeatable | None = None,
        sweep: Sweep = run_directly,
    ) -> tuple[Tensor, list[Change]]:
        """The loss, and all changes of one step. Nothing is assigned."""
        chosen = list({variable.key: variable for variable in variables}.values())
        self._check_size(chosen)
        self.build(chosen)
        problem = LossProblem(loss_fn, chosen, runs, sweep)
        self.record(problem)
        with np.errstate(all="ignore"):
            step, others = self._finite_step(problem)
            averaging = OnArrays(self, (), changes=self._offset_by(problem, step) + others)
        averaging.step(())
        return problem.loss, averaging.changes + counted(self, ())

    def record(self, problem: LossProblem) -> None:
        """Run the loss, and take its gradient."""
        problem.record(twice=self.needs_curvature_record)

    def _finite_step(self, problem: LossProblem) -> tuple[Array, list[Change]]:
        """The step; none where loss, gradient or step are not finite."""
        if all_finite([problem.loss.array, problem.gradient]):
            try:
                step, others = self.step(problem)
            except np.linalg.LinAlgError as error:
                raise FloatingPointError(
                    f"{self.name}: no step can be computed, since the curvature at this point is not finite ({error}). Nothing "
                    "was changed. The loss needs a second derivative here; look for a root or a logarithm of 0 in it."
                ) from error
            if all_finite([step]):
                return step, others
        return namespace(problem.gradient).zeros_like(problem.gradient), []

    def step(self, problem: LossProblem) -> tuple[Array, list[Change]]:
        """The flat step, and the other changes to assign with it. Override it."""
        raise NotImplementedError(f"{type(self).__name__} must implement step(problem).")

    def slots(self, problem: LossProblem, name: str) -> list[Variable]:
        """The slots of one name, in the order of the problem's variables."""
        return [self.slot(variable, name) for variable in problem.variables]

    def joined(self, problem: LossProblem, name: str) -> Array:
        """The slots of one name as one vector, or as rows of it if they have one more axis in front."""
        slots = self.slots(problem, name)
        axes = slots[0].array.ndim - problem.variables[0].array.ndim
        parts = [slot.array.reshape((*slot.array.shape[:axes], -1 if slot.array.size else 0)) for slot in slots]
        return namespace(parts[0]).concatenate(parts, axis=-1)

    def kept(self, problem: LossProblem, name: str, whole: Array) -> list[Change]:
        """Changes that put an array as of `joined` back into the slots of one name, to be assigned with the step."""
        slots = zip(self.slots(problem, name), problem.layout.slices, strict=True)
        return [(slot, whole[..., part].copy().reshape(slot.array.shape)) for slot, part in slots]

    def _offset_by(self, problem: LossProblem, step: Array) -> list[Change]:
        flat = to_device(step * self._rate_now(), namespace(problem.variables[0].array))
        return [
            constrained(variable, variable.array + part.astype(variable.array.dtype, copy=False))
            for variable, part in zip(problem.variables, problem.layout.pieces(flat), strict=True)
        ]

    def _check_size(self, variables: Sequence[Variable]) -> None:
        size = sum({variable.key: int(variable.array.size) for variable in variables}.values())
        if self.max_parameters is not None and size > self.max_parameters:
            mebibytes = size**2 * variables[0].array.dtype.itemsize / 2**20
            raise ValueError(
                f"{type(self).__name__}: {size} parameters are more than max_parameters={self.max_parameters}; a matrix for "
                f"all of them takes {mebibytes:.0f} MiB. Give a larger max_parameters, with blocks='layer' if that is enough, "
                "or use NewtonCG, which needs no matrix."
            )

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Variable] | None = None) -> Any:
        """Refused: gradients are not enough."""
        raise TypeError(_NEEDS_LOSS.format(type(self).__name__, "gradients"))


_NEEDS_LOSS = "{} needs the loss as a function, not {}: optimizer.minimize(loss_fn, variables)."


def groups_of(variables: Sequence[Variable], blocks: str) -> list[list[int]]:
    """Positions of variables by block: 'full' is one, 'layer' one for each layer, 'variable' one for each variable."""
    if blocks == "full":
        return [list(range(len(variables)))]
    if blocks == "variable":
        return [[i] for i in range(len(variables))]
    layers: dict[str, list[int]] = {}
    for i, variable in enumerate(variables):
        layer = getattr(variable, "path", "").rpartition("/")[0]
        layers.setdefault(layer or f"variable {i}", []).append(i)
    return list(layers.values())
