"""Adam and its kin: steps scaled by running means of the gradient and of its square."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core import Variable, namespace
from ...types import Array
from ..config import floatx
from .optimizer import Optimizer
from .state import Change


def running(mean: Array, value: Array, beta: float) -> Array:
    """A running mean, m <- m + (x - m) (1 - beta)."""
    # A fresh array takes the further operations in place: same numbers, a third of the memory traffic.
    new = value - mean
    new *= 1.0 - beta
    new += mean
    return new


def moments(g: Array, m: Array, v: Array, beta_1: float, beta_2: float) -> tuple[Array, Array]:
    """Running means of the gradient and of its square, which Adam and its kin share.

        m <- m + (g - m) (1 - beta_1)
        v <- v + (g**2 - v) (1 - beta_2)

    Source: Kingma and Ba, Adam: a method for stochastic optimization (2015), algorithm 1.
    """
    return running(m, g, beta_1), running(v, g * g, beta_2)


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

    Args, beside those of `Optimizer`:
        beta_1, beta_2: decay of the two running means, in [0, 1).
        epsilon: added to the root; outside the bias correction, unlike PyTorch's.
        amsgrad: use the largest second mean so far.

    >>> w = tf.Variable(1.0)
    >>> optimizer = tf.keras.optimizers.Adam(0.1)
    >>> _ = optimizer.apply_gradients([(2.0 * w, w)])
    >>> print(w.numpy().round(4))
    0.9
    """

    elementwise = True
    slot_groups: tuple[tuple[str, ...] | dict[str, str], ...] = ("momentum", "velocity"), {"velocity_hat": "amsgrad"}

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta_1, self.beta_2, self.epsilon, self.amsgrad = float(beta_1), float(beta_2), float(epsilon), bool(amsgrad)

    def begin_step(self, t: int, learning_rate: float) -> float:
        return learning_rate * math.sqrt(1.0 - self.beta_2**t) / (1.0 - self.beta_1**t)

    def formula(self, step: float, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        rule: Callable[..., tuple[Array, ...]] = amsgrad_step if self.amsgrad else adam_step
        return rule(gradient, value, *slots, step, self.beta_1, self.beta_2, self.epsilon)


class AdamW(Adam):
    """Adam with decoupled weight decay by default: w <- w - w * weight_decay * lr before each step.

    Args: as `Adam`; ValueError if `weight_decay` is None.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization (2019), algorithm 2.

    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.AdamW(0.1, weight_decay=0.5).apply([tf.constant(3.0)], [w])
    >>> print(w.numpy().round(4))
    0.85
    """

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] = 0.001,
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


class MomentOptimizer(Optimizer):
    """Base class of optimizers with two decays, `beta_1` and `beta_2`, and an `epsilon`."""

    elementwise = True
    slot_groups: tuple[tuple[str, ...], ...] = (("momentum", "velocity"),)

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta_1, self.beta_2, self.epsilon = float(beta_1), float(beta_2), float(epsilon)


def adamax_step(
    g: Array, w: Array, m: Array, u: Array, rate: float, beta_1: float, beta_2: float, epsilon: float
) -> tuple[Array, Array, Array]:
    """One step of Adamax; `rate` holds the learning rate and the bias correction.

        m <- m + (g - m) (1 - beta_1)
        u <- max(beta_2 u, |g|)
        w <- w - rate m / (u + epsilon),  rate = lr / (1 - beta_1**t)

    Source: Kingma and Ba, Adam: a method for stochastic optimization (2015), algorithm 2; epsilon as in Keras.
    """
    xp, mean = namespace(g), running(m, g, beta_1)
    norm = xp.maximum(u * beta_2, xp.abs(g))
    change = mean * rate
    change /= norm + epsilon
    return w - change, mean, norm


class Adamax(MomentOptimizer):
    """Adam with the largest gradient of late in the place of the mean square. Formula: `adamax_step`.

    Args: as `Adam`, without `amsgrad`; `beta_2` is the decay of the largest gradient.

    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.Adamax(0.25).apply([tf.constant(3.0)], [w])
    >>> print(w.numpy().round(4))
    0.75
    """

    slot_groups = (("momentum", "norm"),)
    rule = staticmethod(adamax_step)

    def begin_step(self, t: int, learning_rate: float) -> float:
        return learning_rate / (1.0 - self.beta_1**t)


def nadam_step(
    g: Array, w: Array, m: Array, v: Array, step: tuple[float, ...], beta_1: float, beta_2: float, epsilon: float
) -> tuple[Array, Array, Array]:
    """One step of Nadam; `step` is (lr, u_t, u_(t + 1), P, 1 - beta_2**t), where P is the product of all u so far.

        m, v <- moments(g, m, v)
        m^ = u_(t + 1) m / (1 - P u_(t + 1)) + (1 - u_t) g / (1 - P),  u_t = beta_1 (1 - 0.96**t / 2)
        w <- w - lr m^ / (sqrt(v / (1 - beta_2**t)) + epsilon)

    Source: Dozat, Incorporating Nesterov momentum into Adam (2016), algorithm 2.
    """
    rate, now, following, product, correction = step
    mean, square = moments(g, m, v, beta_1, beta_2)
    ahead = mean * (rate * following / (1.0 - product * following))
    ahead += g * (rate * (1.0 - now) / (1.0 - product))
    scale = square / correction
    scale = namespace(scale).sqrt(scale)
    scale += epsilon
    ahead /= scale
    return w - ahead, mean, square


class Nadam(MomentOptimizer):
    """Adam with Nesterov's look ahead. Formula: `nadam_step`.

    Args: as `Adam`, without `amsgrad`.

    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.Nadam(0.1).apply([tf.constant(3.0)], [w])
    >>> print(w.numpy().round(4))
    0.8937
    """

    rule = staticmethod(nadam_step)

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **options)
        self._product = self.state.add_number(1.0, "u_product", floatx())

    @property
    def variables(self) -> list[Variable]:
        """As in `Optimizer`, then the product of all u."""
        return [*super().variables, self._product]

    def begin_step(self, t: int, learning_rate: float) -> tuple[float, ...]:
        now, ahead = (self.beta_1 * (1.0 - 0.5 * 0.96**s) for s in (t, t + 1))
        return learning_rate, now, ahead, float(self._product.array) * now, 1.0 - self.beta_2**t

    def end_step(self, step: tuple[float, ...]) -> list[Change]:
        return [(self._product, self._product.array.dtype.type(step[3]))]


def lamb_step(
    g: Array, w: Array, m: Array, v: Array, step: tuple[float, ...], beta_1: float, beta_2: float, epsilon: float
) -> tuple[Array, Array, Array]:
    """One step of Lamb; `step` is (lr, 1 - beta_1**t, 1 - beta_2**t).

        m, v <- moments(g, m, v)
        u = m / (1 - beta_1**t) / (sqrt(v / (1 - beta_2**t)) + epsilon)
        w <- w - lr |w| / |u| u, with 1 for |w| / |u| where either is 0

    Source: You et al., Large batch optimization for deep learning (2020), algorithm 2, with the identity as scaling function.
    """
    xp, (rate, first, second) = namespace(g), step
    mean, square = moments(g, m, v, beta_1, beta_2)
    scale = xp.sqrt(square / second)
    scale += epsilon
    update = mean / first
    update /= scale
    w_norm, u_norm = xp.sqrt((w * w).sum()), xp.sqrt((update * update).sum())
    one, both = xp.ones_like(w_norm), (w_norm > 0) & (u_norm > 0)
    ratio = xp.where(both, w_norm, one) / xp.where(both, u_norm, one)
    return w - update * (ratio * rate), mean, square


class Lamb(MomentOptimizer):
    """Adam with a step as long as the weight, for large batches. Formula: `lamb_step`.

    Args: as `Adam`, without `amsgrad`; the learning rate is the length of a step relative to the weight's.

    >>> w = tf.Variable([3.0, 4.0])
    >>> _ = tf.keras.optimizers.Lamb(0.1).apply([tf.constant([1.0, 0.0])], [w])
    >>> print(w.numpy().round(4))
    [2.5 4. ]
    """

    elementwise, sums = False, True  # norms of whole weights
    rule = staticmethod(lamb_step)

    def begin_step(self, t: int, learning_rate: float) -> tuple[float, ...]:
        return learning_rate, 1.0 - self.beta_1**t, 1.0 - self.beta_2**t


def schedule_free_step(
    g: Array, y: Array, z: Array, v: Array, step: tuple[float, ...], beta_1: float, beta_2: float, epsilon: float
) -> tuple[Array, Array, Array]:
    """One step of schedule-free AdamW: y is the weight, z takes the steps, x is the mean of all z, `step`
    is (lr after warm-up, 1 - beta_2**t, 1 / t).

        v <- v + (g**2 - v) (1 - beta_2)
        x = (y - (1 - beta_1) z) / beta_1
        z <- z - lr g / (sqrt(v / (1 - beta_2**t)) + epsilon)
        x <- x + (z - x) / t
        y <- (1 - beta_1) z + beta_1 x

    Source: Defazio et al., The road less scheduled (2024), algorithm 1; x is not stored but recovered from y and z.
    """
    (rate, correction, weight), square = step, running(v, g * g, beta_2)
    scale = namespace(g).sqrt(square / correction)
    scale += epsilon
    x = (y - z * (1.0 - beta_1)) / beta_1
    z = z - g * rate / scale
    x = x * (1.0 - weight) + z * weight
    return z * (1.0 - beta_1) + x * beta_1, z, square


class ScheduleFreeAdamW(MomentOptimizer):
    """AdamW that needs no schedule, since it averages its iterates. Formula: `schedule_free_step`.

    Args, beside those of `Optimizer`:
        beta_1: weight of the mean against the last iterate, in (0, 1).
        beta_2: decay of the mean square, in [0, 1).
        epsilon: added to the root.
        warmup_steps: number of updates over which the learning rate rises in a straight line; 0 for none.

    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.ScheduleFreeAdamW(0.1).apply([tf.constant(3.0)], [w])
    >>> print(w.numpy().round(4))
    0.9
    """

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] = 0.0025,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        warmup_steps: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **options)
        if not 0.0 < beta_1 < 1.0:
            raise ValueError(f"ScheduleFreeAdamW: `beta_1` must be in (0, 1), found {beta_1}.")
        self.warmup_steps = warmup_steps

    def initial_slot(self, name: str, value: Array) -> Array:
        """z, called momentum, starts at the weight."""
        return value if name == "momentum" else super().initial_slot(name, value)

    def begin_step(self, t: int, learning_rate: float) -> tuple[float, ...]:
        warm = min(t / self.warmup_steps, 1.0) if self.warmup_steps > 0 else 1.0
        return learning_rate * warm, 1.0 - self.beta_2**t, 1.0 / t

    def formula(self, step: tuple[float, ...], gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        return schedule_free_step(gradient, value, slots[0], slots[1], step, self.beta_1, self.beta_2, self.epsilon)
