"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from ...types import Array
from .optimizer import Optimizer


def momentum_step(g: Array, w: Array, m: Array, rate: float, momentum: float, nesterov: bool) -> tuple[Array, Array]:
    """One step of gradient descent with momentum.

        m <- momentum m - rate g
        w <- w + m                      (plain)
        w <- w + momentum m - rate g    (nesterov)

    Source: Sutskever et al., On the importance of initialization and momentum in deep learning (2013), equations (1) to (4).
    """
    change = g * rate
    velocity = m * momentum
    velocity -= change
    if not nesterov:
        return w + velocity, velocity
    ahead = velocity * momentum
    ahead -= change
    ahead += w
    return ahead, velocity


class SGD(Optimizer):
    """Gradient descent, w <- w - lr g, with momentum if asked for. Formula: `momentum_step`.

    Args:
        learning_rate: lr, a float or a schedule.
        momentum: in [0, 1]; 0 for none, then there is no slot.
        nesterov: look ahead, see the formula.
        options: `weight_decay`, `clipnorm`, `use_ema` and so on, as in `Optimizer`.

    Source: Robbins and Monro, A stochastic approximation method (1951), equation (6); for momentum see the formula.

    >>> import minikeras as tf
    >>> w = tf.Variable(1.0)
    >>> optimizer = tf.keras.optimizers.SGD(0.1)
    >>> _ = optimizer.apply_gradients([(tf.constant(2.0), w)])
    >>> print(w.numpy().round(4))
    0.8
    """

    elementwise = True
    settings = ("momentum", "nesterov")

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        if not 0.0 <= momentum <= 1.0:
            raise ValueError(f"`momentum` must be a float between [0, 1]. Received: momentum={momentum}.")
        self.momentum, self.nesterov = float(momentum), bool(nesterov)
        self.slot_groups = (("momentum",),) if momentum else ()

    def formula(self, step: float, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        if not slots:
            return (value - gradient * step,)
        return momentum_step(gradient, value, slots[0], step, self.momentum, self.nesterov)
