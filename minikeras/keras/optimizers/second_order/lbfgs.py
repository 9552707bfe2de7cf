"""LBFGS: curvature from the last few steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.arrays import namespace
from ....files import limits
from ....types import Array
from ..state import Change
from .base import SecondOrder
from .problem import SUFFICIENT, LossProblem, number, rounding


class LBFGS(SecondOrder):
    """Limited-memory BFGS: the inverse Hessian is applied by two loops over the last `memory` steps and gradient changes.

    Each step ends where the strong Wolfe conditions hold, |slope| down to 0.9 of what it was, so that the pairs keep the matrix
    positive definite; a pair that does not (s^T y too small) is left out.

    Args, beside those of `SecondOrder`:
        learning_rate: factor of the step that the search found; leave it at 1.
        memory: pairs that are kept, 2 P numbers each.
        max_evaluations: of loss and gradient in a step at most.

    Logs:
        step_size, evaluations (in the last step), pairs (kept now).

    Source: Liu and Nocedal, On the limited memory BFGS method for large scale optimization (1989), algorithm 2.1; Nocedal and
    Wright (2006), algorithms 7.4, 7.5, 3.5 and 3.6.

    >>> w = tf.Variable([-1.2, 1.0], dtype=tf.float64)
    >>> rosenbrock = lambda: 100.0 * (w[1] - w[0] ** 2) ** 2 + (1.0 - w[0]) ** 2
    >>> optimizer = tf.keras.optimizers.LBFGS()
    >>> losses = [float(optimizer.minimize(rosenbrock, [w])) for _ in range(40)]
    >>> print(losses[-1] < 1e-10)
    True
    """

    slot_groups = (("steps", "changes"),)
    needs_curvature_record = False
    sweeps = ("record", "value_and_gradient")

    def __init__(
        self, learning_rate: float | Callable[..., Any] = 1.0, memory: int = 10, max_evaluations: int = 25, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        if memory < 1 or max_evaluations < 1:
            raise ValueError(f"LBFGS: memory and max_evaluations must be at least 1, found {memory} and {max_evaluations}.")
        self.memory, self.max_evaluations = int(memory), int(max_evaluations)
        self.add_number("step_size", 0.0)
        self.add_number("evaluations", 0)
        self.add_number("pairs", 0)

    def initial_slot(self, name: str, value: Array) -> Array:
        """Room for `memory` vectors like the variable, the newest last."""
        limits.spend_state((self.memory, *value.shape), value.dtype.itemsize, "steps to remember")
        return namespace(value).zeros((self.memory, *value.shape), dtype=value.dtype)

    def step(self, problem: LossProblem) -> tuple[Array, list[Change]]:
        gradient = problem.gradient
        xp = namespace(gradient)
        steps, changes = self.joined(problem, "steps"), self.joined(problem, "changes")
        room, count = len(steps), int(self.number("pairs"))
        if self.memory > room:
            raise ValueError(
                f"{self.name}: memory={self.memory}, but there is room for {room} pairs. Set a larger memory before the first "
                "step, or assign built = False, which drops what is kept."
            )
        if count and number(xp.abs(changes[-1]).max()) == 0.0:  # zeros again, since `built = False`
            count = 0
        kept = [(steps[i], changes[i]) for i in range(room - min(count, self.memory), room)]
        direction = two_loops(gradient, kept)
        slope = number(gradient @ direction)
        if slope >= 0:  # only rounding can do that; start afresh
            kept, direction = [], -gradient
            slope = number(gradient @ direction)
        if not kept:
            direction = direction * min(1.0, 1.0 / max(number(xp.abs(gradient).sum()), 1e-30))
            slope = number(gradient @ direction)
        loss = number(problem.loss)

        def evaluate(size: float) -> tuple[float, float, Array]:
            found, there = problem.value_and_gradient(direction * size)
            return found, number(there @ direction), there

        if slope == 0.0:
            return gradient * 0, self.change(step_size=0.0, evaluations=0)
        size, _, there, evaluations = strong_wolfe(evaluate, loss, slope, rounding(loss, gradient.dtype), self.max_evaluations)
        step = direction * size
        if there is None:  # no decrease along this direction: forget the pairs, so that the next step starts from the gradient
            return step, self.change(step_size=0.0, evaluations=evaluations, pairs=0)
        change = there - gradient
        if number(step @ change) > float(np.finfo(gradient.dtype).eps) * number(change @ change):
            kept = [*kept, (step, change)][-self.memory :]
        free = [xp.zeros_like(gradient)] * (room - len(kept))
        steps, changes = (xp.stack([*free, *[pair[which] for pair in kept]]) for which in (0, 1))
        slots = [*self.kept(problem, "steps", steps), *self.kept(problem, "changes", changes)]
        return step, [*slots, *self.change(step_size=size, evaluations=evaluations, pairs=len(kept))]


def two_loops(gradient: Array, pairs: list[tuple[Array, Array]]) -> Array:
    """Minus the inverse Hessian of the pairs (s, y), oldest first, times the gradient."""
    q = gradient
    factors = []
    for s, y in reversed(pairs):
        rho = 1.0 / number(s @ y)
        alpha = rho * number(s @ q)
        factors.append((alpha, rho))
        q = q - y * alpha
    if pairs:
        s, y = pairs[-1]
        q = q * (number(s @ y) / number(y @ y))
    for (s, y), (alpha, rho) in zip(pairs, reversed(factors), strict=True):
        q = q + s * (alpha - rho * number(y @ q))
    return -q


CURVATURE = 0.9


def strong_wolfe(
    evaluate: Callable[[float], tuple[float, float, Array]], loss: float, slope: float, noise: float, most: int = 25
) -> tuple[float, float, Array | None, int]:
    """A step size with sufficient decrease and |slope(a)| <= 0.9 |slope(0)|. Source: Nocedal and Wright, Numerical Optimization
    (2006), algorithms 3.5 and 3.6.

    Args:
        evaluate: from a step size to loss, slope and gradient there.
        loss, slope: at 0; the slope is negative.
        noise: a difference of losses that is rounding.
        most: evaluations at most.

    Returns:
        Size, loss and gradient there, evaluations. If `most` does not suffice, the best point that decreases enough; size 0 and
        no gradient if there is none.
    """
    count = 0
    best: tuple[float, float, Array | None] = (0.0, loss, None)

    def at(size: float) -> tuple[float, float]:
        nonlocal count, best
        count += 1
        found, inclination, gradient = evaluate(size)
        if found <= loss + SUFFICIENT * size * slope + noise and (best[2] is None or found <= best[1]):
            best = size, found, gradient
        done = best[0] == size and best[2] is not None and abs(inclination) <= -CURVATURE * slope
        if done:
            raise _Found(size, found, gradient)
        return found, inclination

    try:
        before, earlier, before_slope = 0.0, loss, slope
        size = 1.0
        while count < most:
            found, inclination = at(size)
            if found > loss + SUFFICIENT * size * slope + noise or (count > 1 and found >= earlier):
                low, high = (before, earlier, before_slope), (size, found)
                break
            if inclination >= 0:
                low, high = (size, found, inclination), (before, earlier)
                break
            before, earlier, before_slope, size = size, found, inclination, size * 2.0
        else:
            return (*best, count)
        while count < most:
            size = _between(low, high)
            found, inclination = at(size)
            if found > loss + SUFFICIENT * size * slope + noise or found >= low[1]:
                high = size, found
            else:
                if inclination * (high[0] - low[0]) >= 0:
                    high = low[0], low[1]
                low = size, found, inclination
    except _Found as found_point:
        return (*found_point.args, count)
    return (*best, count)


class _Found(Exception):
    """A point that satisfies both conditions: size, loss, gradient."""


def _between(low: tuple[float, float, float], high: tuple[float, float]) -> float:
    """The minimum of the parabola through two values and one slope, kept away from both ends."""
    width = high[0] - low[0]
    bend = 2.0 * (high[1] - low[1] - low[2] * width)
    guess = low[0] - low[2] * width**2 / bend if np.isfinite(bend) and bend > 0 else low[0] + 0.5 * width
    near, far = sorted((low[0] + 0.1 * width, high[0] - 0.1 * width))
    return min(max(guess, near), far)
