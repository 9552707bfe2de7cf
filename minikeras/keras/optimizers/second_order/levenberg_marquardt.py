"""LevenbergMarquardt: Gauss-Newton for fits from any start."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ....core.arrays import namespace
from ....types import Array
from ..state import Change
from ..step import all_finite
from .blocks import BlockMatrix
from .newton import GaussNewton
from .problem import LossProblem, number

FORGOTTEN = 0.5
"""Factor of a scale's square in each step. The fits of NIST take the fewest steps from 0.1 to 0.5, all of them right."""


class LevenbergMarquardt(GaussNewton):
    """Gauss-Newton with adaptive damping: between its step and a short one along the gradient.

        (J^T H J + damping D) s = -g

    The damping shrinks by 3 after a step that the quadratic model foresaw well, and grows, by ever larger factors, until a step
    lowers the loss. D is I. With `scaling` it is the diagonal of J^T H J, or half of what it was a step before where that is
    more: then the units of the parameters do not matter, which curves with parameters of many sizes need.

    With `acceleration` a step follows the curve on which the outputs change evenly, to second order:

        (J^T H J + damping D) a = -J^T H z'',  w <- w + s + a / 2

    z'' is the second derivative of the outputs along s. A step is refused, and damped more, where |a| > acceleration |s| in the
    norm of D. It leads along narrow, curved valleys in large steps.

    Args: as `Newton`, with `damping` as the start value, and
        scaling: whether D is that diagonal.
        acceleration: the bound of |a| / |s|, such as 0.75; None leaves a out.

    Source: Marquardt (1963); Madsen, Nielsen and Tingleff, Methods for non-linear least squares problems (2004), algorithm
    3.16; for D Moré, The Levenberg-Marquardt algorithm (1978), section 6, without forgetting; for a Transtrum and Sethna,
    Improvements to the Levenberg-Marquardt algorithm for nonlinear least-squares minimization (2012), geodesic acceleration.

    >>> x = tf.linspace(0.0, 1.0, 20)
    >>> w = tf.Variable([1.0, 1.0])
    >>> residuals = lambda: w[0] * tf.exp(w[1] * x) - 2.0 * tf.exp(-1.5 * x)
    >>> fit = tf.keras.optimizers.Objective(residuals, lambda r: tf.reduce_sum(r**2) / 2.0)
    >>> optimizer = tf.keras.optimizers.LevenbergMarquardt()
    >>> for _ in range(15):
    ...     loss = optimizer.minimize(fit, [w])
    >>> print(w.numpy().round(3))
    [ 2.  -1.5]
    """

    settings = (*GaussNewton.settings, "scaling", "acceleration")

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] = 1.0,
        damping: float = 1e-3,
        scaling: bool = False,
        acceleration: float | None = None,
        globalization: str | None = "damping",
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, damping, globalization=globalization, **options)
        if (scaling or acceleration is not None) and self.globalization != "damping":
            raise ValueError("LevenbergMarquardt: scaling and acceleration go with globalization='damping'.")
        if scaling not in (True, False):
            raise ValueError(f"LevenbergMarquardt: scaling must be True or False, found {scaling!r}.")
        if acceleration is not None and not acceleration > 0:
            raise ValueError(f"LevenbergMarquardt: acceleration must be above 0, or None, found {acceleration}.")
        self.scaling, self.acceleration = bool(scaling), acceleration
        self.slot_groups = (("scale",),) if scaling else ()
        if acceleration is not None:
            self.curvature_sweeps = ("record", "acceleration")

    def _damped(
        self, problem: LossProblem, matrix: Any, corrected: Callable[[Array, float], Array | None] | None = None
    ) -> tuple[Array, list[Change]]:
        if not self.scaling and self.acceleration is None:
            return super()._damped(problem, matrix)
        squares, changes = self._squares(problem, matrix)
        scaled = ScaledMatrix(matrix, namespace(squares).sqrt(squares))
        step, others = super()._damped(problem, scaled, functools.partial(self._accelerated, problem, scaled))
        return step, [*changes, *others]

    def _squares(self, problem: LossProblem, matrix: BlockMatrix) -> tuple[Array, list[Change]]:
        """D, and the changes that keep it; a parameter that the outputs do not depend on has a 1."""
        xp = namespace(problem.gradient)
        if not self.scaling:
            return xp.ones_like(problem.gradient), []
        squares = xp.maximum(self.joined(problem, "scale") * FORGOTTEN, matrix.diagonal())
        return xp.where(squares > 0, squares, xp.ones_like(squares)), self.kept(problem, "scale", squares)

    def _accelerated(self, problem: LossProblem, matrix: ScaledMatrix, step: Array, damping: float) -> Array | None:
        if self.acceleration is None:
            return step
        bend = problem.acceleration(step)
        if not all_finite([bend]):
            return step  # the loss at its end decides
        acceleration, _ = matrix.solve(-bend, damping, self.repair)
        return step + acceleration * 0.5 if matrix.norm(acceleration) <= self.acceleration * matrix.norm(step) else None


class ScaledMatrix:
    """A matrix whose equations are solved for w * scale, so that damping is added to its diagonal times scale**2."""

    def __init__(self, matrix: BlockMatrix, scale: Array) -> None:
        self._matrix, self._scale = matrix, scale
        pairs = zip(matrix.blocks, [scale[place] for place in matrix.places], strict=True)
        self._scaled = BlockMatrix([block / part / part[:, None] for block, part in pairs], matrix.places)

    def __matmul__(self, vector: Array) -> Array:
        return self._matrix @ vector

    def solve(self, vector: Array, damping: float, repair: str) -> tuple[Array, int]:
        """As `BlockMatrix.solve`."""
        found, repaired = self._scaled.solve(vector / self._scale, damping, repair)
        return found / self._scale, repaired

    def norm(self, vector: Array) -> float:
        """The norm of w * scale."""
        scaled = vector * self._scale
        return number(scaled @ scaled) ** 0.5
