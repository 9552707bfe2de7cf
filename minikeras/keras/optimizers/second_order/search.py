"""Lengths of steps: line searches and the trust region.

Source: Nocedal and Wright, Numerical Optimization (2006), algorithms 3.1, 3.5, 3.6 and 4.1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....types import Array, DTypeLike
from .problem import LossProblem, number

SUFFICIENT, CURVATURE = 1e-4, 0.9


def rounding(loss: float, dtype: DTypeLike) -> float:
    """A difference of losses that is nothing but rounding."""
    return 10.0 * float(np.finfo(dtype).eps) * abs(loss)


def backtrack(
    value: Callable[[float], float], loss: float, slope: float, noise: float, factor: float = 0.5, most: int = 30
) -> float:
    """The first of 1, 1/2, 1/4, ... with value(a) <= loss + 1e-4 a slope, up to rounding; 0 if there is none."""
    sizes = (factor**count for count in range(most))
    return next((size for size in sizes if value(size) <= loss + SUFFICIENT * size * slope + noise), 0.0)


def strong_wolfe(
    evaluate: Callable[[float], tuple[float, float, Array]], loss: float, slope: float, noise: float, most: int = 25
) -> tuple[float, float, Array | None, int]:
    """A step size with sufficient decrease and |slope(a)| <= 0.9 |slope(0)|.

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


def trust_region(
    problem: LossProblem, step_within: Callable[[float], tuple[Array, Array, float, bool]], radius: float, most: int
) -> tuple[Array, float, float]:
    """A smaller radius until the loss falls; a larger one for the next step if the model was good. Algorithm 4.1.

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
