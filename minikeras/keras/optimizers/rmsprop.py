"""RMSprop."""

from __future__ import annotations

from typing import Any

from ...arrays import namespace
from ...types import Array
from .optimizer import Optimizer


def rmsprop_step(g: Array, v: Array, rate: float, rho: float, epsilon: float, mean: Array = None) -> tuple[Array, ...]:
    """The increment of RMSprop and its new means; with a `mean` of gradients, centered on it.

        v <- rho v + (1 - rho) g**2
        mean <- rho mean + (1 - rho) g                          (centered)
        increment = rate g / sqrt(v + epsilon)                  (plain)
        increment = rate g / sqrt(v - mean**2 + epsilon)        (centered)

    Source: Hinton, Neural networks for machine learning, lecture 6e (2012); centered: Graves, Generating sequences with
    recurrent neural networks (2013), equations (38) to (41).
    """
    square = g * g
    square *= 1.0 - rho
    square += v * rho
    if mean is None:
        return (*_increment(g, square + epsilon, rate), square)
    mean = mean * rho + g * (1.0 - rho)
    return (*_increment(g, square - mean * mean + epsilon, rate), square, mean)


def _increment(g: Array, scale: Array, rate: float) -> tuple[Array]:
    increment = g * rate
    increment /= namespace(scale).sqrt(scale)
    return (increment,)


class RMSprop(Optimizer):
    """Steps scaled by a running mean of the gradient's square. Formula: `rmsprop_step`; then

        w <- w - increment                                      (without momentum)
        m <- momentum m + increment,  w <- w - m                (with momentum)

    Args:
        learning_rate: a float or a schedule.
        rho: decay of the running means, in [0, 1).
        momentum: 0 for none, then there is no slot for it.
        epsilon: added under the root.
        centered: subtract the squared mean of the gradient, so that the root is that of its variance.
        options: `weight_decay`, `clipnorm`, `use_ema` and so on, as in `Optimizer`.

    >>> import minikeras as tf
    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.RMSprop(0.1, rho=0.75).apply([tf.constant(3.0)], [w])
    >>> print(w.numpy().round(4))
    0.8
    """

    elementwise = True
    settings = ("rho", "momentum", "epsilon", "centered")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.rho, self.momentum, self.epsilon, self.centered = float(rho), float(momentum), float(epsilon), bool(centered)
        optional = (("momentum",), self.momentum > 0), (("average_gradient",), self.centered)
        self.slot_groups = (("velocity",), *(group for group, wanted in optional if wanted))

    def formula(self, step: float, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        mean = slots[-1] if self.centered else None
        increment, *means = rmsprop_step(gradient, slots[0], step, self.rho, self.epsilon, mean)
        if not self.momentum > 0:
            return value - increment, *means
        momentum = slots[1] * self.momentum + increment
        return value - momentum, means[0], momentum, *means[1:]
