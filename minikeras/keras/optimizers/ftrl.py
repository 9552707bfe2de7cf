"""FTRL-Proximal."""

from __future__ import annotations

from typing import Any

from ...arrays import namespace
from ...types import Array
from .optimizer import Optimizer


def ftrl_step(
    g: Array, w: Array, n: Array, z: Array, rate: float, power: float, l1: float, l2: float, shrinkage: float, beta: float
) -> tuple[Array, Array, Array]:
    """One step of "follow the regularized leader".

        n' = n + g**2
        z <- z + g + 2 shrinkage w - (n'**-power - n**-power) / rate w
        w <- (clip(z, -l1, l1) - z) / (n'**-power / rate + 2 l2 + beta / rate)

    Source: McMahan et al., Ad click prediction: a view from the trenches (2013), algorithm 1, with power = -1/2.
    """
    xp = namespace(g)
    total = n + g * g
    root = xp.power(total, -power)
    z = z + (g + w * (2.0 * shrinkage) - (root - xp.power(n, -power)) / rate * w)
    inside = xp.minimum(xp.maximum(z, -l1), l1)
    return (inside - z) / (root / rate + (2.0 * l2 + beta / rate)), total, z


class Ftrl(Optimizer):
    """Online learning with sparse weights. Formula: `ftrl_step`.

    The new weight follows from all gradients so far, not from the old weight: what else changes a weight, such as weight
    decay, a moving average or `assign`, acts through the formula's w only.

    Args:
        learning_rate: a float or a schedule, not 0.
        learning_rate_power: at most 0; 0 for steps of one size.
        initial_accumulator_value: where the sum of squared gradients starts, at least 0.
        l1_regularization_strength, l2_regularization_strength: at least 0.
        l2_shrinkage_regularization_strength: a penalty on the weights as they are, at least 0.
        beta: at least 0.
        options: `weight_decay`, `clipnorm`, `use_ema` and so on, as in `Optimizer`.

    >>> import minikeras as tf
    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.Ftrl(0.5, initial_accumulator_value=0.0).apply([tf.constant(4.0)], [w])
    >>> print(w.numpy().round(4))
    0.5
    """

    elementwise = True
    slot_groups = (("accumulator", "linear"),)
    settings = (
        *("learning_rate_power", "initial_accumulator_value", "l1_regularization_strength", "l2_regularization_strength"),
        *("l2_shrinkage_regularization_strength", "beta"),
    )

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.learning_rate_power, self.initial_accumulator_value = float(learning_rate_power), float(initial_accumulator_value)
        self.l1_regularization_strength = float(l1_regularization_strength)
        self.l2_regularization_strength = float(l2_regularization_strength)
        self.l2_shrinkage_regularization_strength, self.beta = float(l2_shrinkage_regularization_strength), float(beta)
        if learning_rate_power > 0:
            raise ValueError(f"Ftrl: `learning_rate_power` must be <= 0, found {learning_rate_power}.")
        for name in self.settings[1:]:
            if getattr(self, name) < 0:
                raise ValueError(f"Ftrl: `{name}` must be >= 0, found {getattr(self, name)}.")

    def initial_slot(self, name: str, value: Array) -> Array:
        zeros = super().initial_slot(name, value)
        return zeros + self.initial_accumulator_value if name == "accumulator" else zeros

    def formula(self, step: float, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        strengths = self.l1_regularization_strength, self.l2_regularization_strength, self.l2_shrinkage_regularization_strength
        return ftrl_step(gradient, value, slots[0], slots[1], step, self.learning_rate_power, *strengths, self.beta)
