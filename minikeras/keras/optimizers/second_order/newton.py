"""Newton's method on whole models, and the generalized Gauss-Newton methods that share its step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....types import Array
from ..state import Change
from .base import SecondOrder, groups_of
from .blocks import BlockMatrix
from .problem import Problem, number
from .search import backtrack, judged, rounding, trust_region

SHRINK, GROW = 1.0 / 3.0, 2.0
"""Factors of adaptive damping; Nielsen, Damping parameter in Marquardt's method (1999), section 3."""


class Newton(SecondOrder):
    """The minimum of the quadratic model, for all variables at once.

        (H + damping I) s = -g,  w <- w + learning_rate a s

    with a by the `globalization`. Where H + damping I is not positive definite, it is repaired (see `repair`), so that the step
    goes downhill. How many blocks were treated so is counted in `indefinite` and shown in the logs.

    Args, beside those of `SecondOrder`:
        damping: added to the diagonal. The start value with `globalization='damping'`.
        blocks: 'full' takes H whole; 'layer' keeps one block for each layer, 'variable' one for each variable.
        globalization: 'line_search' halves the step until the loss falls enough; 'damping' adapts the damping by the
            Levenberg-Marquardt rule and repeats a step that does not lower the loss with more of it; 'trust_region' limits the
            step's norm to a radius that is adapted (use with `damping=0`); None takes the step as it is, as in a guide.
        radius: the first radius of the trust region.
        repair: of a block with negative curvature: 'shift' adds as much to its diagonal as makes it positive, at the cost of a
            few products; 'eigenvalues' takes the eigenvalues' absolute values, 9 n**3 multiplications.
        chunk_size: rows of the Hessian carried at once, as in `tf.autodiff.hessian`.
        max_parameters: more are refused; a Hessian takes P**2 numbers, and solving P**3 / 3 multiplications.

    Logs:
        damping, radius, step_size (the factor a, or 0 for a step that was refused), indefinite (blocks repaired so far).

    Source: Nocedal and Wright (2006), equations (3.30), (4.2) and algorithm 4.1.

    >>> w = tf.Variable([-1.2, 1.0], dtype=tf.float64)
    >>> rosenbrock = lambda: 100.0 * (w[1] - w[0] ** 2) ** 2 + (1.0 - w[0]) ** 2
    >>> newton = tf.keras.optimizers.Newton()
    >>> losses = [float(newton.minimize(rosenbrock, [w])) for _ in range(22)]
    >>> print(losses[-1] < 1e-10)
    True
    """

    settings: tuple[str, ...] = ("damping", "blocks", "globalization", "radius", "repair", "chunk_size", "max_parameters")
    curvature_sweeps: tuple[str, ...] = ("record", "hessian")

    def __init__(
        self,
        learning_rate: Any = 1.0,
        damping: float = 0.0,
        blocks: str = "full",
        globalization: str | None = "line_search",
        radius: float = 1.0,
        repair: str = "shift",
        chunk_size: int | None = None,
        max_parameters: int = 10_000,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.blocks = self._one_of("blocks", blocks, "full", "layer", "variable")
        self.globalization = self._one_of("globalization", globalization, "line_search", "damping", "trust_region", None)
        self.repair = self._one_of("repair", repair, "shift", "eigenvalues")
        if damping < 0 or radius <= 0 or (globalization == "damping" and damping == 0):
            raise ValueError(
                f"{type(self).__name__}: damping must be at least 0 and radius above 0; globalization='damping' needs a "
                f"damping above 0 to start from. Found damping={damping}, radius={radius}."
            )
        self.chunk_size, self.max_parameters = chunk_size, int(max_parameters)
        self.damping, self.radius = float(damping), float(radius)
        self.add_number("damping", self.damping)
        if globalization == "trust_region":
            self.add_number("radius", self.radius)
        self.add_number("step_size", 0.0)
        self.add_number("indefinite", 0)

    @property
    def sweeps(self) -> Sequence[str] | None:  # type: ignore[override]
        """Without globalization the loss is asked for at the present point only."""
        return (*self.curvature_sweeps, *(() if self.globalization is None else ("value",)))

    def curvature(self, problem: Problem) -> BlockMatrix:
        """The matrix of the quadratic model."""
        return problem.hessian(groups_of(problem.variables, self.blocks), self.chunk_size)

    def step(self, problem: Problem) -> tuple[Array, list[Change]]:
        matrix = self.curvature(problem)
        if self.globalization == "trust_region":
            return self._within_radius(problem, matrix)
        if self.globalization == "damping":
            return self._damped(problem, matrix)
        step, repaired = matrix.solve(-problem.gradient, self.number("damping"), self.repair)
        size = 1.0
        if self.globalization == "line_search":
            loss, slope = number(problem.loss), number(problem.gradient @ step)
            size, _ = backtrack(lambda a: problem.value(step * a), loss, slope, rounding(loss, step.dtype))
        return step * size, self.change(step_size=size, indefinite=self.number("indefinite") + repaired)

    def _damped(
        self, problem: Problem, matrix: Any, corrected: Callable[[Array, float], Array | None] | None = None
    ) -> tuple[Array, list[Change]]:
        """More damping until the loss falls; less for the next step if the model was good.

        Args:
            matrix: a `BlockMatrix`, or what multiplies and solves like one.
            corrected: from the step of the quadratic model, and its damping, to what is tried in its place; None to refuse it.
        """
        damping, growth, repaired = self.number("damping"), GROW, 0
        loss = number(problem.loss)
        noise = rounding(loss, problem.gradient.dtype)
        for _ in range(30):
            step, found = matrix.solve(-problem.gradient, damping, self.repair)
            repaired = max(repaired, found)
            predicted = -number(problem.gradient @ step) - 0.5 * number(step @ (matrix @ step))
            if corrected is not None:
                step = corrected(step, damping)
            ratio = -1.0 if step is None else judged(predicted, loss - problem.value(step), noise)
            if ratio > 0:
                if ratio > 0.75:
                    damping = max(damping * SHRINK, 1e-15)
                elif ratio < 0.25:
                    damping *= GROW
                done = self.number("indefinite") + repaired
                return step, self.change(damping=damping, step_size=1.0, indefinite=done)
            damping, growth = damping * growth, growth * 2.0
        return problem.gradient * 0, self.change(damping=damping, step_size=0.0)

    def _within_radius(self, problem: Problem, matrix: BlockMatrix) -> tuple[Array, list[Change]]:
        """The step within the radius of the trust region, which is adapted."""
        negative = sum(int(number(values.min()) <= 0) for values, _ in matrix.eigen())

        def step_within(radius: float) -> tuple[Array, Array, float, bool]:
            step, multiplier = matrix.trust_region(problem.gradient, radius)
            return step, matrix @ step, number(step @ step) ** 0.5, multiplier > 0

        step, size, radius = trust_region(problem, step_within, self.number("radius"), 30)
        done = self.number("indefinite") + negative
        return step * size, self.change(radius=radius, step_size=size, indefinite=done)


class GaussNewton(Newton):
    """Newton's step with the generalized Gauss-Newton matrix J^T H J in place of the Hessian.

    J holds the derivatives of the model's outputs, H the second derivatives of the loss in the outputs. The matrix has no
    negative curvature if the loss is convex in the outputs (squared error, cross-entropy of logits), and needs no second
    derivatives of the model. Penalties enter with their own Hessian.

    Args: as `Newton`. `minimize` needs an `Objective`; `fit` makes one.

    Source: Schraudolph, Fast curvature matrix-vector products (2002), section 3.

    >>> w = tf.Variable([1.0, 2.0])
    >>> fit = tf.keras.optimizers.Objective(lambda: w * 3.0 - 6.0, lambda r: tf.reduce_sum(r**2) / 2.0)
    >>> _ = tf.keras.optimizers.GaussNewton().minimize(fit, [w])
    >>> print(w.numpy())
    [2. 2.]
    """

    needs_curvature_record = False
    curvature_sweeps: tuple[str, ...] = ("linearized",)

    def record(self, problem: Problem) -> None:
        """Run the loss, and take gradient and curvature at once."""
        problem.record_linearized(groups_of(problem.variables, self.blocks), self.chunk_size)

    def curvature(self, problem: Problem) -> BlockMatrix:
        return problem.gauss_newton()
