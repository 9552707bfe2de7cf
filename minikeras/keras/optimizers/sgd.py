"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from ...types import Array
from .optimizer import Optimizer


class SGD(Optimizer):
    """Gradient descent, with momentum if asked for.

        m <- momentum * m - lr * g
        w <- w + m                          (plain)
        w <- w + momentum * m - lr * g      (nesterov)

    Args:
        learning_rate: lr, a float or a schedule.
        momentum: in [0, 1]; 0 for none, then there is no slot.
        nesterov: see above.
        options: `weight_decay`, `clipnorm`, `clipvalue`, `global_clipnorm`, `name`, as in `Optimizer`.

    Source: Sutskever et al., On the importance of initialization and momentum in deep learning (2013), equations (1) to (4).

    >>> import minikeras as tf
    >>> w = tf.Variable(1.0)
    >>> optimizer = tf.keras.optimizers.SGD(0.1)
    >>> _ = optimizer.apply_gradients([(tf.constant(2.0), w)])
    >>> print(w.numpy().round(4))
    0.8
    """

    elementwise = True

    def __init__(self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        if not 0.0 <= momentum <= 1.0:
            raise ValueError(f"`momentum` must be a float between [0, 1]. Received: momentum={momentum}.")
        self.momentum, self.nesterov = float(momentum), bool(nesterov)
        self.slot_names = ("momentum",) if momentum else ()

    def formula(self, step: float, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        """See the class."""
        change = gradient * step
        if not slots:
            return (value - change,)
        velocity = slots[0] * self.momentum - change
        return (value + velocity * self.momentum - change if self.nesterov else value + velocity), velocity

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "momentum": self.momentum, "nesterov": self.nesterov}
