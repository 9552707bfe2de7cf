"""Adadelta."""

from __future__ import annotations

from typing import Any

from ...arrays import namespace
from ...types import Array
from .optimizer import Optimizer


def adadelta_step(g: Array, w: Array, a: Array, d: Array, rate: float, rho: float, epsilon: float) -> tuple[Array, ...]:
    """One step of Adadelta.

        a <- rho a + (1 - rho) g**2
        delta = -sqrt(d + epsilon) / sqrt(a + epsilon) g
        d <- rho d + (1 - rho) delta**2
        w <- w + rate delta

    Source: Zeiler, Adadelta: an adaptive learning rate method (2012), algorithm 1, which has rate = 1.
    """
    xp = namespace(g)
    a = a * rho + g * g * (1.0 - rho)
    delta = xp.sqrt(d + epsilon)
    delta /= xp.sqrt(a + epsilon)
    delta *= g
    d = d * rho + delta * delta * (1.0 - rho)
    return w - delta * rate, a, d


class Adadelta(Optimizer):
    """Steps of the size of earlier steps, relative to earlier gradients. Formula: `adadelta_step`.

    Args:
        learning_rate: a float or a schedule; 1.0 is the paper's.
        rho: decay of both running means, in [0, 1).
        epsilon: added under the roots; it makes the first steps possible.
        options: `weight_decay`, `clipnorm`, `use_ema` and so on, as in `Optimizer`.

    >>> import minikeras as tf
    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.Adadelta(1.0, rho=0.75, epsilon=0.01).apply([tf.constant(6.0)], [w])
    >>> print(w.numpy().round(4))
    0.8001
    """

    elementwise = True
    slot_groups = (("accumulated_grad", "accumulated_delta_var"),)
    settings = ("rho", "epsilon")

    def __init__(self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float = 1e-7, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self.rho, self.epsilon = float(rho), float(epsilon)

    def formula(self, step: float, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        return adadelta_step(gradient, value, slots[0], slots[1], step, self.rho, self.epsilon)
