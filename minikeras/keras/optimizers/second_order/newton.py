"""Newton's method on whole models, the generalized Gauss-Newton methods that share its step (with Levenberg-Marquardt), and
NewtonCG.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ....core.arrays import namespace
from ....derivatives.output_curvature import OutputCurvature
from ....types import Array
from ..state import Change
from ..step import all_finite
from .base import SecondOrder, groups_of
from .blocks import BlockMatrix
from .problem import SUFFICIENT, LossProblem, number, rounding

SHRINK, GROW = 1.0 / 3.0, 2.0
"""Factors of adaptive damping; Nielsen, Damping parameter in Marquardt's method (1999), section 3."""
FORGOTTEN = 0.5
"""Factor of a scale's square in each step. The fits of NIST take the fewest steps from 0.1 to 0.5, all of them right."""


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
        learning_rate: float | Callable[..., Any] = 1.0,
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

    def curvature(self, problem: LossProblem) -> BlockMatrix:
        """The matrix of the quadratic model."""
        return problem.hessian(groups_of(problem.variables, self.blocks), self.chunk_size)

    def step(self, problem: LossProblem) -> tuple[Array, list[Change]]:
        matrix = self.curvature(problem)
        if self.globalization == "trust_region":
            return self._within_radius(problem, matrix)
        if self.globalization == "damping":
            return self._damped(problem, matrix)
        step, repaired = matrix.solve(-problem.gradient, self.number("damping"), self.repair)
        size = 1.0
        if self.globalization == "line_search":
            loss, slope = number(problem.loss), number(problem.gradient @ step)
            size = backtrack(lambda a: problem.value(step * a), loss, slope, rounding(loss, step.dtype))
        return step * size, self.change(step_size=size, indefinite=self.number("indefinite") + repaired)

    def _damped(
        self, problem: LossProblem, matrix: Any, corrected: Callable[[Array, float], Array | None] | None = None
    ) -> tuple[Array, list[Change]]:
        """More damping until the loss falls; less for the next step if the model was good.

        Args:
            matrix: a `BlockMatrix`, or what multiplies and solves like one.
            corrected: from the step of the quadratic model, and its damping, to what is tried in its place; None to refuse it.
        """
        damping, growth, repaired = self.number("damping"), GROW, 0
        for _ in range(30):
            step, found = matrix.solve(-problem.gradient, damping, self.repair)
            repaired = max(repaired, found)
            taken = step if corrected is None else corrected(step, damping)
            if taken is not None and (ratio := quality(problem, step, matrix @ step, taken)) > 0:
                if ratio > 0.75:
                    damping = max(damping * SHRINK, 1e-15)
                elif ratio < 0.25:
                    damping *= GROW
                done = self.number("indefinite") + repaired
                return taken, self.change(damping=damping, step_size=1.0, indefinite=done)
            damping, growth = damping * growth, growth * 2.0
        return problem.gradient * 0, self.change(damping=damping, step_size=0.0)

    def _within_radius(self, problem: LossProblem, matrix: BlockMatrix) -> tuple[Array, list[Change]]:
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

    curvature_sweeps: tuple[str, ...] = ("record",)

    def record(self, problem: LossProblem) -> None:
        """Run the loss, and take gradient and curvature at once."""
        groups = groups_of(problem.variables, self.blocks)
        problem.record_stages(
            lambda curvature: [curvature.matrix(group, self.chunk_size) for group in groups],
            plan=(tuple(map(tuple, groups)), self.chunk_size),
        )

    def curvature(self, problem: LossProblem) -> BlockMatrix:
        blocks = [block.array for block in problem.answers]
        return problem.blocks(groups_of(problem.variables, self.blocks), blocks)


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
    slot_groups = ({"scale": "scaling"},)

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


Product = Callable[[Array], Array]


class NewtonCG(SecondOrder):
    """The trust-region step by conjugate gradients: only products of the curvature with vectors, never a matrix.

    Minimizes g^T s + s^T (B + damping) s / 2 within a radius and stops, after Steihaug, at the boundary, at negative curvature
    (followed to the boundary) or when the residual is below min(1/2, sqrt(|g|)) |g|, which keeps the last steps superlinear.
    Memory is that of a few vectors and one record.

    Args, beside those of `SecondOrder`:
        curvature: 'hessian', or 'gauss_newton' for J^T H J, which is never negative for a convex loss and needs an `Objective`.
        damping: added to the diagonal.
        max_iterations: products in a step at most; the number of parameters, but at most 250, if None.
        radius: the first radius of the trust region.
        preconditioner: 'diagonal' scales by an estimate of the curvature's diagonal from `probes` products a step; None for
            none.
        probes: see there.

    Logs:
        radius, iterations (products of the last step), negative_curvature (steps that met it so far), step_size (0 if refused).

    Source: Steihaug (1983); Nocedal and Wright (2006), algorithms 7.2 and 4.1; the diagonal as in `tf.autodiff.hessian_diag`.

    >>> w = tf.Variable([-1.2, 1.0], dtype=tf.float64)
    >>> rosenbrock = lambda: 100.0 * (w[1] - w[0] ** 2) ** 2 + (1.0 - w[0]) ** 2
    >>> optimizer = tf.keras.optimizers.NewtonCG()
    >>> losses = [float(optimizer.minimize(rosenbrock, [w])) for _ in range(40)]
    >>> print(losses[-1] < 1e-10)
    True
    """

    settings = ("curvature", "damping", "max_iterations", "radius", "preconditioner", "probes")
    sweeps = ("record", "product", "value")

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] = 1.0,
        curvature: str = "hessian",
        damping: float = 0.0,
        max_iterations: int | None = None,
        radius: float = 1.0,
        preconditioner: str | None = None,
        probes: int = 4,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.curvature = self._one_of("curvature", curvature, "hessian", "gauss_newton")
        self.preconditioner = self._one_of("preconditioner", preconditioner, "diagonal", None)
        if damping < 0 or radius <= 0 or probes < 1 or (max_iterations is not None and max_iterations < 1):
            raise ValueError(
                "NewtonCG: damping must be at least 0, radius above 0, probes and max_iterations at least 1. Found "
                f"damping={damping}, radius={radius}, probes={probes}, max_iterations={max_iterations}."
            )
        self.damping, self.max_iterations = float(damping), max_iterations
        self.probes, self.radius = int(probes), float(radius)
        self.add_number("radius", float(radius))
        self.add_number("step_size", 0.0)
        self.add_number("iterations", 0)
        self.add_number("negative_curvature", 0)

    def record(self, problem: LossProblem) -> None:
        """Run the loss, if need be in its two stages, and take its gradient."""
        if self.curvature == "hessian":
            problem.record()
        else:
            problem.record_stages(OutputCurvature.prepare)

    def step(self, problem: LossProblem) -> tuple[Array, list[Change]]:
        product = self._product(problem)
        scale = self._scale(problem, product)
        most = self.max_iterations or min(problem.size, 250)
        total, negative = 0, self.number("negative_curvature")

        def step_within(radius: float) -> tuple[Array, Array, float, bool]:
            nonlocal total, negative
            step, bent, met, count = steihaug(product, problem.gradient, radius, most, scale)
            total, negative = total + count, negative + met
            norm = _scaled_norm(step, scale)
            return step, bent, norm, norm > 0.99 * radius

        step, size, radius = trust_region(problem, step_within, self.number("radius"), 20)
        return step * size, self.change(radius=radius, step_size=size, iterations=total, negative_curvature=negative)

    def _product(self, problem: LossProblem) -> Product:
        if not self.damping:
            return problem.product
        return lambda vector: problem.product(vector) + vector * self.damping

    def _scale(self, problem: LossProblem, product: Product) -> Array:
        """The preconditioner's diagonal: sqrt of the mean square of the estimates, with a floor; ones without one."""
        xp = namespace(problem.gradient)
        if self.preconditioner is None:
            return xp.ones_like(problem.gradient)
        squares = xp.zeros_like(problem.gradient)
        for estimate in problem.probed(product, self.probes):
            squares += estimate**2
        diagonal = xp.sqrt(squares / self.probes)
        return xp.maximum(diagonal, xp.maximum(diagonal.max() * 1e-3, 1e-30))


def steihaug(product: Product, gradient: Array, radius: float, most: int, scale: Array) -> tuple[Array, Array, int, int]:
    """Conjugate gradients on B s = -g, stopped at |s|_M = radius, with the diagonal preconditioner M.

    Returns:
        The step, B times it, whether negative curvature was met (0 or 1), and the number of products.
    """
    s, bent = gradient * 0, gradient * 0
    r = gradient
    z = r / scale
    d = -z
    inner = number(r @ z)
    target = inner * min(0.25, math.sqrt(inner)) if inner > 0 else 0.0
    count = 0
    while count < most and inner > target and inner > 0:
        image = product(d)
        count += 1
        bend = number(d @ image)
        if bend <= 0:
            length = _to_boundary(s, d, radius, scale)
            return s + d * length, bent + image * length, 1, count
        length = inner / bend
        if _scaled_norm(s + d * length, scale) >= radius:
            length = _to_boundary(s, d, radius, scale)
            return s + d * length, bent + image * length, 0, count
        s, bent, r = s + d * length, bent + image * length, r + image * length
        z = r / scale
        before, inner = inner, number(r @ z)
        d = d * (inner / before) - z
    return s, bent, 0, count


def _scaled_norm(vector: Array, scale: Array) -> float:
    return math.sqrt(max(number((vector * scale) @ vector), 0.0))


def _to_boundary(s: Array, d: Array, radius: float, scale: Array) -> float:
    """The positive t with |s + t d| = radius."""
    a, b, c = number((d * scale) @ d), number((s * scale) @ d), number((s * scale) @ s) - radius**2
    return (-b + math.sqrt(max(b * b - a * c, 0.0))) / a if a > 0 else 0.0


# Lengths of steps ---------------------------------------------------------------------------------------------------------


def backtrack(value: Callable[[float], float], loss: float, slope: float, noise: float) -> float:
    """The first of 1, 1/2, 1/4, ... with value(a) <= loss + 1e-4 a slope, up to rounding; 0 if there is none.

    Source: Nocedal and Wright, Numerical Optimization (2006), algorithm 3.1.
    """
    sizes = (0.5**count for count in range(30))
    return next((size for size in sizes if value(size) <= loss + SUFFICIENT * size * slope + noise), 0.0)


def trust_region(
    problem: LossProblem, step_within: Callable[[float], tuple[Array, Array, float, bool]], radius: float, most: int
) -> tuple[Array, float, float]:
    """A smaller radius until the loss falls; a larger one for the next step if the model was good. Source: as of `backtrack`,
    algorithm 4.1.

    Args:
        step_within: from a radius to the step, the curvature times it, its norm, and whether the radius limits it.
        most: tries at most.

    Returns:
        The last step, its factor (0 if no step lowered the loss), and the radius for the next one.
    """
    for _ in range(most):
        step, bent, norm, limited = step_within(radius)
        ratio = quality(problem, step, bent, step)
        if ratio < 0.25:
            radius = 0.25 * norm
        elif ratio > 0.75 and limited:
            radius *= 2.0
        if ratio > 1e-4:
            return step, 1.0, radius
    return step, 0.0, radius


def quality(problem: LossProblem, step: Array, bent: Array, taken: Array) -> float:
    """The reduction of the loss by the step that is taken, over that which the quadratic model predicts of a step whose product
    with the curvature is `bent`; 1 where both are rounding.
    """
    loss = number(problem.loss)
    noise = rounding(loss, problem.gradient.dtype)
    predicted = -number(problem.gradient @ step) - 0.5 * number(step @ bent)
    actual = loss - problem.value(taken)
    if abs(actual) <= noise and abs(predicted) <= noise:
        return 1.0
    return actual / predicted if predicted > 0 else -1.0
