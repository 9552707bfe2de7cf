"""AdaHessian: Adam with the Hessian's diagonal in place of the squared gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....types import Array
from ..state import Change
from .base import SecondOrder
from .problem import LossProblem


class AdaHessian(SecondOrder):
    """Steps scaled by a running mean of the Hessian's diagonal, which one product with random signs z estimates.

        D = z * (H z), averaged over the rows of a kernel (`average`)
        m <- b1 m + (1 - b1) g,    v <- b2 v + (1 - b2) D**2
        w <- w - lr (m / (1 - b1**t)) / ((v / (1 - b2**t))**(k/2) + epsilon)

    Args, beside those of `SecondOrder`:
        beta_1, beta_2: decay of the two running means.
        epsilon: added to the root.
        hessian_power: k, in [0, 1].
        average: whether |D| is averaged over all axes but the last of variables with two or more axes.
        probes: products that are averaged in a step.

    Source: Yao et al., ADAHESSIAN: an adaptive second order optimizer for machine learning (2021), algorithm 1, equation (9).

    >>> w = tf.Variable([1.0, 1.0])
    >>> optimizer = tf.keras.optimizers.AdaHessian(0.1)
    >>> losses = [float(optimizer.minimize(lambda: w[0] ** 2 + 100.0 * w[1] ** 2, [w])) for _ in range(30)]
    >>> print(w.numpy().round(2))  # both coordinates move alike, however different their curvature
    [-0.13 -0.13]
    """

    slot_groups = (("momentum", "curvature"),)
    sweeps = ("record", "product")

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] = 0.15,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-4,
        hessian_power: float = 1.0,
        average: bool = True,
        probes: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        if not 0.0 <= hessian_power <= 1.0 or probes < 1:
            raise ValueError(
                f"AdaHessian: hessian_power must be in [0, 1] and probes at least 1, found {hessian_power} and {probes}."
            )
        self.beta_1, self.beta_2, self.epsilon = float(beta_1), float(beta_2), float(epsilon)
        self.hessian_power, self.average, self.probes = float(hessian_power), bool(average), int(probes)

    def step(self, problem: LossProblem) -> tuple[Array, list[Change]]:
        t, curvature = int(self.iterations.array) + 1, self._diagonal(problem)
        m = self.joined(problem, "momentum") * self.beta_1 + problem.gradient * (1.0 - self.beta_1)
        v = self.joined(problem, "curvature") * self.beta_2 + curvature * curvature * (1.0 - self.beta_2)
        root = (v / (1.0 - self.beta_2**t)) ** (0.5 * self.hessian_power)
        step = -(m / (1.0 - self.beta_1**t)) / (root + self.epsilon)
        return step, [*self.kept(problem, "momentum", m), *self.kept(problem, "curvature", v)]

    def _diagonal(self, problem: LossProblem) -> Array:
        """The size of the mean of z * (H z), that of kernels averaged over their rows."""
        total = problem.gradient * 0
        for estimate in problem.probed(problem.product, self.probes):
            total = total + estimate
        found = abs(total / self.probes)
        for part in problem.layout.pieces(found) if self.average else ():
            if part.ndim > 1:
                part[...] = part.mean(axis=tuple(range(part.ndim - 1)), keepdims=True)
        return found
