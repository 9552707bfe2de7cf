"""Adamax."""

from __future__ import annotations

from typing import Any

from ...arrays import namespace
from ...types import Array
from .optimizer import Optimizer


def adamax_step(
    g: Array, w: Array, m: Array, u: Array, rate: float, beta_1: float, beta_2: float, epsilon: float
) -> tuple[Array, Array, Array]:
    """One step of Adamax; `rate` holds the learning rate and the bias correction.

        m <- m + (g - m) (1 - beta_1)
        u <- max(beta_2 u, |g|)
        w <- w - rate m / (u + epsilon),  rate = lr / (1 - beta_1**t)

    Source: Kingma and Ba, Adam: a method for stochastic optimization (2015), algorithm 2; epsilon as in Keras.
    """
    xp = namespace(g)
    mean = g - m
    mean *= 1.0 - beta_1
    mean += m
    norm = xp.maximum(u * beta_2, xp.abs(g))
    change = mean * rate
    change /= norm + epsilon
    return w - change, mean, norm


class Adamax(Optimizer):
    """Adam with the largest gradient of late in the place of the mean square. Formula: `adamax_step`.

    Args:
        learning_rate: a float or a schedule.
        beta_1: decay of the mean gradient, in [0, 1).
        beta_2: decay of the largest gradient, in [0, 1).
        epsilon: added to the divisor.
        options: `weight_decay`, `clipnorm`, `use_ema` and so on, as in `Optimizer`.

    >>> import minikeras as tf
    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.Adamax(0.25).apply([tf.constant(3.0)], [w])
    >>> print(w.numpy().round(4))
    0.75
    """

    elementwise = True
    slot_groups = (("momentum", "norm"),)
    settings = ("beta_1", "beta_2", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta_1, self.beta_2, self.epsilon = float(beta_1), float(beta_2), float(epsilon)

    def begin_step(self, t: int, learning_rate: float) -> float:
        """The learning rate with the bias correction."""
        return learning_rate / (1.0 - self.beta_1**t)

    def formula(self, step: float, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        return adamax_step(gradient, value, slots[0], slots[1], step, self.beta_1, self.beta_2, self.epsilon)
