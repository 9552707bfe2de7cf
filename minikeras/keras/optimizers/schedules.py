"""Learning rates that depend on the step.

An optimizer asks for `rate(step)` at the number of steps taken so far, so the first step is step 0.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import Tensor
from ...functions.operands import tensor
from ...types import as_dtype
from ..arguments import Catalogue, Configured
from ..config import floatx

_catalogue = Catalogue("learning rate schedule")
serialize, deserialize = _catalogue.serialize, _catalogue.deserialize


class LearningRateSchedule(Configured):
    """Base class: override `rate(step)`, a number from a number, or `__call__(step)`, a Tensor from a Tensor.

    >>> class Halved(tf.keras.optimizers.schedules.LearningRateSchedule):
    ...     def rate(self, step):
    ...         return 0.1 / (1 + step)
    >>> print(tf.keras.optimizers.SGD(Halved()).learning_rate.numpy())
    0.1
    """

    settings: tuple[str, ...] = ()
    """Names of the constructor's arguments, which are attributes too; a schedule of the user's own gives them here."""

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {name: getattr(self, name) for name in self.settings}

    def __call__(self, step: Any) -> Tensor:
        """The learning rate at a step, a scalar of the default float dtype; at an array of steps, an array of its shape."""
        kind = as_dtype(floatx()).numpy
        if np.ndim(step):
            steps = np.asarray(step)
            return tensor(np.array([self.rate(float(one)) for one in steps.ravel()], kind).reshape(steps.shape))
        return tensor(kind.type(self.rate(float(step))))

    def rate(self, step: float) -> float:
        """The learning rate at a step."""
        raise NotImplementedError(f"{type(self).__name__} must implement rate(step) or __call__(step).")


def _register(kind: type[LearningRateSchedule]) -> Any:
    """Enter one of the package's classes, whose settings are all arguments of its constructor."""
    kind.settings = tuple([name for name in kind.__init__.__annotations__ if name != "return"])
    return _catalogue.add()(kind)


class _Decay(LearningRateSchedule):
    """A decay by a rate in each period; the name is that of the class."""

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        decay_rate: float,
        staircase: bool = False,
        name: str | None = None,
    ) -> None:
        self.initial_learning_rate, self.decay_rate, self.staircase = initial_learning_rate, decay_rate, staircase
        self.decay_steps, self.name = _positive("decay_steps", decay_steps), name or type(self).__name__

    def _periods(self, step: float) -> float:
        return step // self.decay_steps if self.staircase else step / self.decay_steps


@_register
class ExponentialDecay(_Decay):
    """initial * decay_rate ** (step / decay_steps).

    Args:
        initial_learning_rate: the rate at step 0.
        decay_steps: the number of steps in which it falls to `decay_rate` times that, above 0.
        decay_rate: the factor.
        staircase: let the rate fall at multiples of `decay_steps` only.

    >>> schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.1, decay_steps=10, decay_rate=0.5)
    >>> print(schedule(20).numpy())
    0.025
    """

    def rate(self, step: float) -> float:
        return float(self.initial_learning_rate * self.decay_rate ** self._periods(step))


@_register
class InverseTimeDecay(_Decay):
    """initial / (1 + decay_rate * step / decay_steps).

    Args:
        initial_learning_rate, decay_steps, staircase: as in `ExponentialDecay`.
        decay_rate: how much the divisor grows in `decay_steps`.

    >>> schedule = tf.keras.optimizers.schedules.InverseTimeDecay(0.1, decay_steps=10, decay_rate=1.0)
    >>> print(schedule(10).numpy())
    0.05
    """

    def rate(self, step: float) -> float:
        return self.initial_learning_rate / (1.0 + self.decay_rate * self._periods(step))


@_register
class PiecewiseConstantDecay(LearningRateSchedule):
    """values[k] from behind boundaries[k - 1] up to and including boundaries[k].

    Args:
        boundaries: steps in ascending order.
        values: one rate more than there are boundaries.

    >>> schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay([100, 200], [0.1, 0.01, 0.001])
    >>> print(schedule(100).numpy(), schedule(101).numpy())
    0.1 0.01
    """

    def __init__(self, boundaries: Sequence[float], values: Sequence[float], name: str = "PiecewiseConstant") -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError(
                f"The length of boundaries should be 1 less than the length of values. Received: boundaries={boundaries} of "
                f"length {len(boundaries)}, and values={values} of length {len(values)}."
            )
        if list(boundaries) != sorted(boundaries):
            raise ValueError(f"boundaries must be in ascending order. Received: boundaries={boundaries}.")
        self.boundaries, self.values, self.name = list(boundaries), list(values), name

    def rate(self, step: float) -> float:
        return self.values[bisect.bisect_left(self.boundaries, step)]


@_register
class PolynomialDecay(LearningRateSchedule):
    """end + (initial - end) * (1 - step / decay_steps) ** power, and end from decay_steps on.

    Args:
        initial_learning_rate: the rate at step 0.
        decay_steps: when the end is reached, above 0.
        end_learning_rate: the last rate.
        power: 1 for a straight line.
        cycle: instead of staying at the end, stretch `decay_steps` to its next multiple, so that the rate rises again.

    >>> schedule = tf.keras.optimizers.schedules.PolynomialDecay(0.1, decay_steps=10, end_learning_rate=0.02)
    >>> print(schedule(5).numpy(), schedule(50).numpy())
    0.06 0.02
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        end_learning_rate: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        name: str = "PolynomialDecay",
    ) -> None:
        self.initial_learning_rate, self.end_learning_rate = initial_learning_rate, end_learning_rate
        self.decay_steps, self.power, self.cycle, self.name = _positive("decay_steps", decay_steps), power, cycle, name

    def rate(self, step: float) -> float:
        cycles = max(1, math.ceil(step / self.decay_steps)) if self.cycle else 1
        left = max(0.0, 1.0 - step / (self.decay_steps * cycles))
        return float((self.initial_learning_rate - self.end_learning_rate) * left**self.power + self.end_learning_rate)


@_register
class CosineDecay(LearningRateSchedule):
    """peak * (alpha + (1 - alpha) * (1 + cos(pi * s / decay_steps)) / 2), with s the steps since the warm-up, after a warm-up
    in a straight line from the initial rate to the peak.

    Args:
        initial_learning_rate: the rate at step 0; without a warm-up that is the peak.
        decay_steps: length of the decay, which begins after the warm-up; above 0.
        alpha: the last rate as a fraction of the peak.
        warmup_target: the peak, or None for no warm-up.
        warmup_steps: length of the warm-up.

    Source: Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts (2017), equation (5).

    >>> schedule = tf.keras.optimizers.schedules.CosineDecay(0.0, decay_steps=10, warmup_target=0.1, warmup_steps=5)
    >>> print([round(float(schedule(step)), 3) for step in (0, 2, 5, 10, 15)])
    [0.0, 0.04, 0.1, 0.05, 0.0]
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        alpha: float = 0.0,
        name: str = "CosineDecay",
        warmup_target: float | None = None,
        warmup_steps: int = 0,
    ) -> None:
        self.initial_learning_rate, self.alpha, self.name = initial_learning_rate, alpha, name
        self.decay_steps = _positive("decay_steps", decay_steps)
        self.warmup_target, self.warmup_steps = warmup_target, warmup_steps

    def rate(self, step: float) -> float:
        if self.warmup_target is None:
            return _cosine(self.initial_learning_rate, self.alpha, step / self.decay_steps)
        if step < self.warmup_steps:
            slope = (self.warmup_target - self.initial_learning_rate) / self.warmup_steps
            return self.initial_learning_rate + slope * step
        return _cosine(self.warmup_target, self.alpha, (step - self.warmup_steps) / self.decay_steps)


@_register
class CosineDecayRestarts(LearningRateSchedule):
    """Cosine decays in turn: each period is `t_mul` times as long as the one before and its peak `m_mul` times
    as high.

    Args:
        initial_learning_rate: the first peak.
        first_decay_steps: length of the first period, above 0.
        t_mul: at least 1.
        m_mul: factor of the peaks.
        alpha: the lowest rate as a fraction of the first peak.

    Source: Loshchilov and Hutter, SGDR: stochastic gradient descent with warm restarts (2017), equation (5) and below.

    >>> schedule = tf.keras.optimizers.schedules.CosineDecayRestarts(0.1, first_decay_steps=10, m_mul=0.5)
    >>> print([round(float(schedule(step)), 3) for step in (0, 5, 10, 20, 30)])
    [0.1, 0.05, 0.05, 0.025, 0.025]
    """

    def __init__(
        self,
        initial_learning_rate: float,
        first_decay_steps: int,
        t_mul: float = 2.0,
        m_mul: float = 1.0,
        alpha: float = 0.0,
        name: str = "SGDRDecay",
    ) -> None:
        if t_mul < 1.0:
            raise ValueError(f"Argument `t_mul` must be >= 1, or the periods shrink to nothing. Received: t_mul={t_mul}.")
        self.first_decay_steps = _positive("first_decay_steps", first_decay_steps)
        self.initial_learning_rate, self.t_mul, self.m_mul, self.alpha = initial_learning_rate, t_mul, m_mul, alpha
        self.name = name

    def rate(self, step: float) -> float:
        # Periods are counted off: the quotient of logarithms misses exact multiples, such as log(243) / log(3) < 5.
        period, length = divmod(step, self.first_decay_steps) if self.t_mul == 1.0 else (0, step)
        steps = float(self.first_decay_steps)
        while self.t_mul > 1.0 and length >= steps:
            period, length, steps = period + 1, length - steps, steps * self.t_mul
        cosine = self.m_mul**period * (1.0 + math.cos(math.pi * length / steps)) / 2.0
        return float(self.initial_learning_rate * (self.alpha + (1.0 - self.alpha) * cosine))


def _cosine(peak: float, alpha: float, fraction: float) -> float:
    """From the peak to alpha times it, while the fraction goes from 0 to 1."""
    return peak * (alpha + (1.0 - alpha) * (1.0 + math.cos(math.pi * min(fraction, 1.0))) / 2.0)


def _positive(name: str, value: int) -> int:
    if value <= 0:
        raise ValueError(f"Argument `{name}` must be > 0. Received: {name}={value}.")
    return value


__all__ = [
    "CosineDecay",
    "CosineDecayRestarts",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LearningRateSchedule",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
    "deserialize",
    "serialize",
]
