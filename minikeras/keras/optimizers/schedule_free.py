"""Schedule-free AdamW."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...arrays import namespace
from ...types import Array
from .optimizer import Optimizer


class Numbers(NamedTuple):
    """What a step needs beside arrays: the learning rate after warm-up, 1 - beta_2**t, and 1 / t."""

    rate: float
    correction: float
    weight: float


def schedule_free_step(
    g: Array, y: Array, z: Array, v: Array, step: Numbers, beta_1: float, beta_2: float, epsilon: float
) -> tuple[Array, Array, Array]:
    """One step of schedule-free AdamW: y is the weight, z takes the steps, x is the mean of all z.

        v <- v + (g**2 - v) (1 - beta_2)
        x = (y - (1 - beta_1) z) / beta_1
        z <- z - lr g / (sqrt(v / (1 - beta_2**t)) + epsilon)
        x <- x + (z - x) / t
        y <- (1 - beta_1) z + beta_1 x

    Source: Defazio et al., The road less scheduled (2024), algorithm 1; x is not stored but recovered from y and z.
    """
    square = g * g
    square -= v
    square *= 1.0 - beta_2
    square += v
    scale = namespace(g).sqrt(square / step.correction)
    scale += epsilon
    x = (y - z * (1.0 - beta_1)) / beta_1
    z = z - g * step.rate / scale
    x = x * (1.0 - step.weight) + z * step.weight
    return z * (1.0 - beta_1) + x * beta_1, z, square


class ScheduleFreeAdamW(Optimizer):
    """AdamW that needs no schedule, since it averages its iterates. Formula: `schedule_free_step`.

    Args:
        learning_rate: a float or a schedule.
        beta_1: weight of the mean against the last iterate, in (0, 1).
        beta_2: decay of the mean square, in [0, 1).
        epsilon: added to the root.
        warmup_steps: number of updates over which the learning rate rises in a straight line; 0 for none.
        options: `weight_decay`, `clipnorm`, `use_ema` and so on, as in `Optimizer`.

    >>> import minikeras as tf
    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.ScheduleFreeAdamW(0.1).apply([tf.constant(3.0)], [w])
    >>> print(w.numpy().round(4))
    0.9
    """

    elementwise = True
    slot_groups = (("momentum", "velocity"),)
    settings = ("beta_1", "beta_2", "epsilon", "warmup_steps")

    def __init__(
        self,
        learning_rate: Any = 0.0025,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        warmup_steps: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        if not 0.0 < beta_1 < 1.0:
            raise ValueError(f"ScheduleFreeAdamW: `beta_1` must be in (0, 1), found {beta_1}.")
        self.beta_1, self.beta_2, self.epsilon, self.warmup_steps = float(beta_1), float(beta_2), float(epsilon), warmup_steps

    def initial_slot(self, name: str, value: Array) -> Array:
        """z, called momentum, starts at the weight."""
        return value if name == "momentum" else super().initial_slot(name, value)

    def begin_step(self, t: int, learning_rate: float) -> Numbers:
        warm = min(t / self.warmup_steps, 1.0) if self.warmup_steps > 0 else 1.0
        return Numbers(learning_rate * warm, 1.0 - self.beta_2**t, 1.0 / t)

    def formula(self, step: Numbers, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        return schedule_free_step(gradient, value, slots[0], slots[1], step, self.beta_1, self.beta_2, self.epsilon)
