"""Adam."""

from __future__ import annotations

import math
from typing import Any

from ...arrays import namespace
from ...core import Variable
from ...types import Array
from .optimizer import Optimizer


def adam_step(
    g: Array, w: Array, m: Array, v: Array, rate: float, beta_1: float, beta_2: float, epsilon: float
) -> tuple[Array, Array, Array]:
    """One step of Adam; `rate` holds the learning rate and both bias corrections.

        m <- m + (g - m) (1 - beta_1)
        v <- v + (g**2 - v) (1 - beta_2)
        w <- w - m * rate / (sqrt(v) + epsilon),  rate = lr sqrt(1 - beta_2**t) / (1 - beta_1**t)

    Source: Kingma and Ba, Adam: a method for stochastic optimization (2015), section 2, last paragraph ("epsilon hat").
    """
    xp = namespace(g)
    # Fresh arrays take the further operations in place: same numbers, a third of the memory traffic.
    mean = g - m
    mean *= 1.0 - beta_1
    mean += m
    square = g * g
    square -= v
    square *= 1.0 - beta_2
    square += v
    scale = xp.sqrt(square)
    scale += epsilon
    change = mean * rate
    change /= scale
    return w - change, mean, square


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and of its square. Formula: `adam_step`.

    Args:
        learning_rate: a float or a schedule.
        beta_1, beta_2: decay of the two running means, in [0, 1).
        epsilon: added to the root; outside the bias correction, unlike PyTorch's.
        amsgrad: use the largest second mean so far.
        options: `weight_decay`, `clipnorm`, `clipvalue`, `global_clipnorm`, `name`, as in `Optimizer`.

    Source: Kingma and Ba (2015), algorithm 1; Reddi, Kale and Kumar, On the convergence of Adam (2018), algorithm 2.

    >>> import minikeras as tf
    >>> w = tf.Variable(1.0)
    >>> optimizer = tf.keras.optimizers.Adam(0.1)
    >>> _ = optimizer.apply_gradients([(2.0 * w, w)])
    >>> print(w.numpy().round(4))
    0.9
    """

    elementwise = True

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta_1, self.beta_2, self.epsilon, self.amsgrad = (
            float(beta_1),
            float(beta_2),
            float(epsilon),
            bool(amsgrad),
        )
        self.slot_names = ("momentum", "velocity", "velocity_hat") if amsgrad else ("momentum", "velocity")

    @property
    def variables(self) -> list[Variable]:
        """As in `Optimizer`, but with Keras's place for the largest second means: behind all others."""
        if not self.amsgrad:
            return super().variables
        return sorted(super().variables, key=lambda variable: variable.name.removesuffix(":0").endswith("_velocity_hat"))

    def begin_step(self, t: int, learning_rate: float) -> float:
        """The learning rate with both bias corrections."""
        return learning_rate * math.sqrt(1.0 - self.beta_2**t) / (1.0 - self.beta_1**t)

    def formula(self, step: float, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        """See `adam_step`; with `amsgrad` the root is taken of the largest v so far."""
        if not self.amsgrad:
            return adam_step(gradient, value, slots[0], slots[1], step, self.beta_1, self.beta_2, self.epsilon)
        momentum, velocity, largest = slots
        momentum = momentum + (gradient - momentum) * (1.0 - self.beta_1)
        velocity = velocity + (gradient * gradient - velocity) * (1.0 - self.beta_2)
        xp = namespace(velocity)
        largest = xp.maximum(largest, velocity)
        return value - momentum * step / (xp.sqrt(largest) + self.epsilon), momentum, velocity, largest

    def get_config(self) -> dict[str, Any]:
        own = {"beta_1": self.beta_1, "beta_2": self.beta_2, "epsilon": self.epsilon, "amsgrad": self.amsgrad}
        return {**super().get_config(), **own}
