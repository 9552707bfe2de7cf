"""Nadam."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...arrays import namespace
from ...core import Variable
from ...types import Array
from ..config import floatx
from .adam import moments
from .optimizer import Optimizer
from .state import Change, host_variable


class Weights(NamedTuple):
    """What a step of Nadam needs beside arrays: lr, u_t, u_(t + 1), the product u_1 ... u_t, and 1 - beta_2**t."""

    rate: float
    now: float
    next: float
    product: float
    correction: float


def nadam_step(
    g: Array, w: Array, m: Array, v: Array, step: Weights, beta_1: float, beta_2: float, epsilon: float
) -> tuple[Array, Array, Array]:
    """One step of Nadam, where P is the product of all u so far.

        m, v <- moments(g, m, v)
        m^ = u_(t + 1) m / (1 - P u_(t + 1)) + (1 - u_t) g / (1 - P),  u_t = beta_1 (1 - 0.96**t / 2)
        w <- w - lr m^ / (sqrt(v / (1 - beta_2**t)) + epsilon)

    Source: Dozat, Incorporating Nesterov momentum into Adam (2016), algorithm 2.
    """
    mean, square = moments(g, m, v, beta_1, beta_2)
    ahead = mean * (step.rate * step.next / (1.0 - step.product * step.next))
    ahead += g * (step.rate * (1.0 - step.now) / (1.0 - step.product))
    scale = square / step.correction
    scale = namespace(scale).sqrt(scale)
    scale += epsilon
    ahead /= scale
    return w - ahead, mean, square


class Nadam(Optimizer):
    """Adam with Nesterov's look ahead. Formula: `nadam_step`.

    Args:
        learning_rate: a float or a schedule.
        beta_1, beta_2: decay of the two running means, in [0, 1).
        epsilon: added to the root.
        options: `weight_decay`, `clipnorm`, `use_ema` and so on, as in `Optimizer`.

    >>> import minikeras as tf
    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.Nadam(0.1).apply([tf.constant(3.0)], [w])
    >>> print(w.numpy().round(4))
    0.8937
    """

    elementwise = True
    slot_groups = (("momentum", "velocity"),)
    settings = ("beta_1", "beta_2", "epsilon")

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-7, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta_1, self.beta_2, self.epsilon = float(beta_1), float(beta_2), float(epsilon)
        self._product = host_variable(1.0, "u_product", floatx())

    @property
    def variables(self) -> list[Variable]:
        """As in `Optimizer`, and the product of all u at the end."""
        return [*super().variables, self._product]

    def begin_step(self, t: int, learning_rate: float) -> Weights:
        now, ahead = (self.beta_1 * (1.0 - 0.5 * 0.96**s) for s in (t, t + 1))
        return Weights(learning_rate, now, ahead, float(self._product._array) * now, 1.0 - self.beta_2**t)

    def formula(self, step: Weights, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        return nadam_step(gradient, value, slots[0], slots[1], step, self.beta_1, self.beta_2, self.epsilon)

    def end_step(self, step: Weights) -> list[Change]:
        """The new product."""
        return [(self._product, self._product._array.dtype.type(step.product))]
