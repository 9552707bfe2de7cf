"""Adagrad."""

from __future__ import annotations

from typing import Any

from ...arrays import namespace
from ...types import Array
from .optimizer import Optimizer


def adagrad_step(g: Array, w: Array, a: Array, rate: float, epsilon: float) -> tuple[Array, Array]:
    """One step of Adagrad.

        a <- a + g**2
        w <- w - rate g / sqrt(a + epsilon)

    Source: Duchi, Hazan and Singer, Adaptive subgradient methods (2011), figure 1 with diagonal G; epsilon as in Keras.
    """
    total = g * g
    total += a
    change = g * rate
    change /= namespace(total).sqrt(total + epsilon)
    return w - change, total


class Adagrad(Optimizer):
    """Steps scaled by the sum of all squared gradients so far. Formula: `adagrad_step`.

    Args:
        learning_rate: a float or a schedule.
        initial_accumulator_value: where the sum starts, at least 0.
        epsilon: added under the root.
        options: `weight_decay`, `clipnorm`, `use_ema` and so on, as in `Optimizer`.

    >>> import minikeras as tf
    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.Adagrad(0.5, initial_accumulator_value=7.0).apply([tf.constant(3.0)], [w])
    >>> print(w.numpy().round(4))
    0.625
    """

    elementwise = True
    slot_groups = (("accumulator",),)
    settings = ("initial_accumulator_value", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.001, initial_accumulator_value: float = 0.1, epsilon: float = 1e-7, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        if initial_accumulator_value < 0:
            raise ValueError(f"Adagrad: `initial_accumulator_value` must be >= 0, found {initial_accumulator_value}.")
        self.initial_accumulator_value, self.epsilon = float(initial_accumulator_value), float(epsilon)

    def initial_slot(self, name: str, value: Array) -> Array:
        return super().initial_slot(name, value) + self.initial_accumulator_value

    def formula(self, step: float, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        return adagrad_step(gradient, value, slots[0], step, self.epsilon)
