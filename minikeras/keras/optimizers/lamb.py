"""Lamb."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...arrays import namespace
from ...types import Array
from .adam import moments
from .optimizer import Optimizer


class Rates(NamedTuple):
    """The learning rate and both bias corrections: lr, 1 - beta_1**t, 1 - beta_2**t."""

    rate: float
    first: float
    second: float


def lamb_step(
    g: Array, w: Array, m: Array, v: Array, step: Rates, beta_1: float, beta_2: float, epsilon: float
) -> tuple[Array, Array, Array]:
    """One step of Lamb.

        m, v <- moments(g, m, v)
        u = m / (1 - beta_1**t) / (sqrt(v / (1 - beta_2**t)) + epsilon)
        w <- w - lr |w| / |u| u, with 1 for |w| / |u| where either is 0

    Source: You et al., Large batch optimization for deep learning (2020), algorithm 2, with the identity as scaling function.
    """
    xp = namespace(g)
    mean, square = moments(g, m, v, beta_1, beta_2)
    scale = xp.sqrt(square / step.second)
    scale += epsilon
    update = mean / step.first
    update /= scale
    w_norm, u_norm = xp.sqrt((w * w).sum()), xp.sqrt((update * update).sum())
    one, both = xp.ones_like(w_norm), (w_norm > 0) & (u_norm > 0)
    ratio = xp.where(both, w_norm, one) / xp.where(both, u_norm, one)
    return w - update * (ratio * step.rate), mean, square


class Lamb(Optimizer):
    """Adam with a step as long as the weight, for large batches. Formula: `lamb_step`.

    Args:
        learning_rate: length of a step relative to the weight's, a float or a schedule.
        beta_1, beta_2: decay of the two running means, in [0, 1).
        epsilon: added to the root.
        options: `weight_decay`, `clipnorm`, `use_ema` and so on, as in `Optimizer`.

    >>> import minikeras as tf
    >>> w = tf.Variable([3.0, 4.0])
    >>> _ = tf.keras.optimizers.Lamb(0.1).apply([tf.constant([1.0, 0.0])], [w])
    >>> print(w.numpy().round(4))
    [2.5 4. ]
    """

    slot_groups = (("momentum", "velocity"),)
    settings = ("beta_1", "beta_2", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta_1, self.beta_2, self.epsilon = float(beta_1), float(beta_2), float(epsilon)

    def begin_step(self, t: int, learning_rate: float) -> Rates:
        return Rates(learning_rate, 1.0 - self.beta_1**t, 1.0 - self.beta_2**t)

    def formula(self, step: Rates, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        return lamb_step(gradient, value, slots[0], slots[1], step, self.beta_1, self.beta_2, self.epsilon)
