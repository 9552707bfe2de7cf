"""NewtonCG: Newton's method without a matrix, by conjugate gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....core.arrays import namespace
from ....types import Array
from ..state import Change
from .base import SecondOrder
from .problem import Problem, number
from .search import trust_region

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

    def __init__(
        self,
        learning_rate: Any = 1.0,
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
        self.needs_curvature_record = curvature == "hessian"
        own = ("product",) if curvature == "hessian" else ("outputs", "output_product")
        self.sweeps = ("record", *own, "value")
        self.add_number("radius", float(radius))
        self.add_number("step_size", 0.0)
        self.add_number("iterations", 0)
        self.add_number("negative_curvature", 0)

    def step(self, problem: Problem) -> tuple[Array, list[Change]]:
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

    def _product(self, problem: Problem) -> Product:
        bare = problem.product
        if self.curvature == "gauss_newton":
            problem.linearize()
            bare = problem.output_product
        return lambda vector: bare(vector) + vector * self.damping if self.damping else bare(vector)

    def _scale(self, problem: Problem, product: Product) -> Array:
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
