"""Stochastic gradient descent, and Lion, its sign."""

from __future__ import annotations

from typing import Any

from ...core.arrays import namespace
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

    Args, beside those of `Optimizer`:
        learning_rate: lr, a float or a schedule.
        momentum: in [0, 1]; 0 for none, then there is no slot.
        nesterov: look ahead, see the formula.

    Source: Robbins and Monro, A stochastic approximation method (1951), equation (6); for momentum see the formula.

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


def lion_step(g: Array, w: Array, m: Array, rate: float, beta_1: float, beta_2: float) -> tuple[Array, Array]:
    """One step of Lion.

        w <- w - rate sign(beta_1 m + (1 - beta_1) g)
        m <- beta_2 m + (1 - beta_2) g

    Source: Chen et al., Symbolic discovery of optimization algorithms (2023), algorithm 2.
    """
    direction = m * beta_1
    direction += g * (1.0 - beta_1)
    mean = m * beta_2
    mean += g * (1.0 - beta_2)
    return w - namespace(g).sign(direction) * rate, mean


class Lion(Optimizer):
    """Steps of one size in the direction of the sign. Formula: `lion_step`.

    Use a learning rate three to ten times smaller, and a weight decay as much larger, than with Adam.

    Args, beside those of `Optimizer`:
        learning_rate: the size of the steps, a float or a schedule.
        beta_1: weight of the mean against the gradient in the direction, in (0, 1].
        beta_2: decay of the mean, in [0, 1).

    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.Lion(0.25).apply([tf.constant(3.0)], [w])
    >>> print(w.numpy())
    0.75
    """

    elementwise = True
    slot_groups = (("momentum",),)
    settings = ("beta_1", "beta_2")
    rule = staticmethod(lion_step)

    def __init__(self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.99, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        if not 0.0 < beta_1 <= 1.0:
            raise ValueError(
                f"`beta_1` must be between ]0, 1]. Otherwise, the optimizer degenerates to SignSGD. Found {beta_1}."
            )
        self.beta_1, self.beta_2 = float(beta_1), float(beta_2)
