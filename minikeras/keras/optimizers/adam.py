"""Adam, and AdamW, which is Adam with another default."""

from __future__ import annotations

import math
from typing import Any

from ...arrays import namespace
from ...types import Array
from .optimizer import Optimizer


def moments(g: Array, m: Array, v: Array, beta_1: float, beta_2: float) -> tuple[Array, Array]:
    """Running means of the gradient and of its square, which Adam and its kin share.

        m <- m + (g - m) (1 - beta_1)
        v <- v + (g**2 - v) (1 - beta_2)

    Source: Kingma and Ba, Adam: a method for stochastic optimization (2015), algorithm 1.
    """
    # Fresh arrays take the further operations in place: same numbers, a third of the memory traffic.
    mean = g - m
    mean *= 1.0 - beta_1
    mean += m
    square = g * g
    square -= v
    square *= 1.0 - beta_2
    square += v
    return mean, square


def adam_step(
    g: Array, w: Array, m: Array, v: Array, rate: float, beta_1: float, beta_2: float, epsilon: float
) -> tuple[Array, Array, Array]:
    """One step of Adam; `rate` holds the learning rate and both bias corrections.

        m, v <- moments(g, m, v)
        w <- w - m * rate / (sqrt(v) + epsilon),  rate = lr sqrt(1 - beta_2**t) / (1 - beta_1**t)

    Source: Kingma and Ba (2015), section 2, last paragraph ("epsilon hat").
    """
    mean, square = moments(g, m, v, beta_1, beta_2)
    return w - _change(mean, square, rate, epsilon), mean, square


def amsgrad_step(
    g: Array, w: Array, m: Array, v: Array, largest: Array, rate: float, beta_1: float, beta_2: float, epsilon: float
) -> tuple[Array, Array, Array, Array]:
    """One step of Adam with the largest v so far under the root.

        m, v <- moments(g, m, v)
        l <- max(l, v)
        w <- w - m * rate / (sqrt(l) + epsilon)

    Source: Reddi, Kale and Kumar, On the convergence of Adam and beyond (2018), algorithm 2.
    """
    mean, square = moments(g, m, v, beta_1, beta_2)
    largest = namespace(square).maximum(largest, square)
    return w - _change(mean, largest, rate, epsilon), mean, square, largest


def _change(mean: Array, square: Array, rate: float, epsilon: float) -> Array:
    """mean * rate / (sqrt(square) + epsilon)."""
    scale = namespace(square).sqrt(square)
    scale += epsilon
    change = mean * rate
    change /= scale
    return change


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and of its square. Formulas: `adam_step`, `amsgrad_step`.

    Args:
        learning_rate: a float or a schedule.
        beta_1, beta_2: decay of the two running means, in [0, 1).
        epsilon: added to the root; outside the bias correction, unlike PyTorch's.
        amsgrad: use the largest second mean so far.
        options: `weight_decay`, `clipnorm`, `use_ema` and so on, as in `Optimizer`.

    >>> import minikeras as tf
    >>> w = tf.Variable(1.0)
    >>> optimizer = tf.keras.optimizers.Adam(0.1)
    >>> _ = optimizer.apply_gradients([(2.0 * w, w)])
    >>> print(w.numpy().round(4))
    0.9
    """

    elementwise = True
    slot_groups: tuple[tuple[str, ...], ...] = (("momentum", "velocity"),)
    settings = ("beta_1", "beta_2", "epsilon", "amsgrad")

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
        self.beta_1, self.beta_2, self.epsilon, self.amsgrad = float(beta_1), float(beta_2), float(epsilon), bool(amsgrad)
        if amsgrad:
            self.slot_groups = (("momentum", "velocity"), ("velocity_hat",))

    def begin_step(self, t: int, learning_rate: float) -> float:
        """The learning rate with both bias corrections."""
        return learning_rate * math.sqrt(1.0 - self.beta_2**t) / (1.0 - self.beta_1**t)

    def formula(self, step: float, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        numbers = step, self.beta_1, self.beta_2, self.epsilon
        if self.amsgrad:
            return amsgrad_step(gradient, value, slots[0], slots[1], slots[2], *numbers)
        return adam_step(gradient, value, slots[0], slots[1], *numbers)


class AdamW(Adam):
    """Adam with decoupled weight decay by default: w <- w - w * weight_decay * lr before each step.

    Args:
        learning_rate: a float or a schedule.
        weight_decay: a float; needed.
        beta_1, beta_2, epsilon, amsgrad: as in `Adam`.
        options: `clipnorm`, `use_ema` and so on, as in `Optimizer`.

    Raises:
        ValueError: if `weight_decay` is None.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization (2019), algorithm 2.

    >>> import minikeras as tf
    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.AdamW(0.1, weight_decay=0.5).apply([tf.constant(3.0)], [w])
    >>> print(w.numpy().round(4))
    0.85
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        weight_decay: float | None = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        if weight_decay is None:
            raise ValueError("AdamW: `weight_decay` is required and must be a float; for none of it use Adam.")
        super().__init__(learning_rate, beta_1, beta_2, epsilon, amsgrad, weight_decay=weight_decay, **options)
