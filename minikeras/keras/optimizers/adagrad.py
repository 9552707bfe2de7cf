"""Adagrad, Adafactor and their kin: steps scaled by a sum or running mean of squared gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.arrays import namespace
from ...types import Array
from .optimizer import Optimizer


def adagrad_step(g: Array, w: Array, a: Array, rate: float, epsilon: float) -> tuple[Array, Array]:
    """One step of Adagrad.

        a <- a + g**2
        w <- w - rate g / sqrt(a + epsilon)

    Source: Duchi, Hazan and Singer, Adaptive subgradient methods (2011), figure 1 with diagonal G; epsilon as in Keras.
    """
    total = g * g
    total += a
    change = g * rate
    change /= namespace(total).sqrt(total + epsilon)
    return w - change, total


class Adagrad(Optimizer):
    """Steps scaled by the sum of all squared gradients so far. Formula: `adagrad_step`.

    Args, beside those of `Optimizer`:
        initial_accumulator_value: where the sum starts, at least 0.
        epsilon: added under the root.

    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.Adagrad(0.5, initial_accumulator_value=7.0).apply([tf.constant(3.0)], [w])
    >>> print(w.numpy().round(4))
    0.625
    """

    elementwise = True
    slot_groups = (("accumulator",),)

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        if initial_accumulator_value < 0:
            raise ValueError(f"Adagrad: `initial_accumulator_value` must be >= 0, found {initial_accumulator_value}.")
        self.initial_accumulator_value, self.epsilon = float(initial_accumulator_value), float(epsilon)

    def initial_slot(self, name: str, value: Array) -> Array:
        return super().initial_slot(name, value) + self.initial_accumulator_value

    def formula(self, step: float, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        return adagrad_step(gradient, value, slots[0], step, self.epsilon)


def adadelta_step(g: Array, w: Array, a: Array, d: Array, rate: float, rho: float, epsilon: float) -> tuple[Array, ...]:
    """One step of Adadelta.

        a <- rho a + (1 - rho) g**2
        delta = -sqrt(d + epsilon) / sqrt(a + epsilon) g
        d <- rho d + (1 - rho) delta**2
        w <- w + rate delta

    Source: Zeiler, Adadelta: an adaptive learning rate method (2012), algorithm 1, which has rate = 1.
    """
    xp = namespace(g)
    a = a * rho + g * g * (1.0 - rho)
    delta = xp.sqrt(d + epsilon)
    delta /= xp.sqrt(a + epsilon)
    delta *= g
    d = d * rho + delta * delta * (1.0 - rho)
    return w - delta * rate, a, d


class Adadelta(Optimizer):
    """Steps of the size of earlier steps, relative to earlier gradients. Formula: `adadelta_step`.

    Args, beside those of `Optimizer`:
        learning_rate: a float or a schedule; 1.0 is the paper's.
        rho: decay of both running means, in [0, 1).
        epsilon: added under the roots; it makes the first steps possible.

    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.Adadelta(1.0, rho=0.75, epsilon=0.01).apply([tf.constant(6.0)], [w])
    >>> print(w.numpy().round(4))
    0.8001
    """

    elementwise = True
    slot_groups = (("accumulated_grad", "accumulated_delta_var"),)
    rule = staticmethod(adadelta_step)

    def __init__(
        self, learning_rate: float | Callable[..., Any] = 0.001, rho: float = 0.95, epsilon: float = 1e-7, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        self.rho, self.epsilon = float(rho), float(epsilon)


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

    Args, beside those of `Optimizer`:
        rho: decay of the running means, in [0, 1).
        momentum: 0 for none, then there is no slot for it.
        epsilon: added under the root.
        centered: subtract the squared mean of the gradient, so that the root is that of its variance.

    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.RMSprop(0.1, rho=0.75).apply([tf.constant(3.0)], [w])
    >>> print(w.numpy().round(4))
    0.8
    """

    elementwise = True
    slot_groups = ("velocity",), {"momentum": "momentum"}, {"average_gradient": "centered"}

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.rho, self.momentum, self.epsilon, self.centered = float(rho), float(momentum), float(epsilon), bool(centered)

    def formula(self, step: float, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        mean = slots[-1] if self.centered else None
        increment, *means = rmsprop_step(gradient, slots[0], step, self.rho, self.epsilon, mean)
        if len(slots) == 1 + self.centered:  # no momentum
            return value - increment, *means
        momentum = slots[1] * self.momentum + increment
        return value - momentum, means[0], momentum, *means[1:]


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

    Args, beside those of `Optimizer`:
        learning_rate: a float or a schedule, not 0.
        learning_rate_power: at most 0; 0 for steps of one size.
        initial_accumulator_value: where the sum of squared gradients starts, at least 0.
        l1_regularization_strength, l2_regularization_strength: at least 0.
        l2_shrinkage_regularization_strength: a penalty on the weights as they are, at least 0.
        beta: at least 0.

    >>> w = tf.Variable(1.0)
    >>> _ = tf.keras.optimizers.Ftrl(0.5, initial_accumulator_value=0.0).apply([tf.constant(4.0)], [w])
    >>> print(w.numpy().round(4))
    0.5
    """

    elementwise = True
    slot_groups = (("accumulator", "linear"),)

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] = 0.001,
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

    def begin_step(self, t: int, learning_rate: float) -> float:
        if learning_rate == 0.0:
            raise ValueError(
                "Ftrl: the learning rate is 0, and the formula divides by it. Nothing was changed. Start a schedule above 0, "
                "or leave the step out."
            )
        return learning_rate

    def formula(self, step: float, gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        strengths = self.l1_regularization_strength, self.l2_regularization_strength, self.l2_shrinkage_regularization_strength
        return ftrl_step(gradient, value, slots[0], slots[1], step, self.learning_rate_power, *strengths, self.beta)


def second_moment(g: Array, r: Array, c: Array, v: Array, decay: float, epsilon: float) -> tuple[Array, Array, Array]:
    """The running mean of squared gradients; for matrices, of which only the means of rows and columns are remembered.

        s = g**2 + epsilon
        r <- decay r + (1 - decay) mean(s, columns)
        c <- decay c + (1 - decay) mean(s, rows)
        v = r c / mean(r)
        v <- decay v + (1 - decay) s                        (vectors and scalars; r and c stay unused)

    Source: Shazeer and Stern, Adafactor: adaptive learning rates with sublinear memory cost (2018), algorithms 4 and 5.
    """
    square = g * g + epsilon
    if g.ndim < 2:
        return r, c, v * decay + square * (1.0 - decay)
    r = r * decay + square.mean(axis=-1) * (1.0 - decay)
    c = c * decay + square.mean(axis=-2) * (1.0 - decay)
    return r, c, (r / r.mean(axis=-1, keepdims=True))[..., None] * c[..., None, :]


def adafactor_step(g: Array, w: Array, v: Array, rate: float, epsilon: float, threshold: float) -> Array:
    """The new weight.

        u = g / sqrt(v)
        w <- w - rate max(epsilon, rms(w)) u / max(1, rms(u) / threshold)

    Source: Shazeer and Stern (2018), algorithms 4 and 5, with the update clipping of section 6.
    """
    xp = namespace(g)
    update = g / xp.sqrt(v)
    size = xp.maximum(_root_mean_square(w), epsilon) * rate
    return w - update * (size / xp.maximum(_root_mean_square(update) / threshold, 1.0))


def _root_mean_square(array: Array) -> Array:
    return namespace(array).sqrt((array * array).mean())


class Adafactor(Optimizer):
    """Adam's scaling with memory for rows and columns only. Formulas: `second_moment`, `adafactor_step`.

    Args, beside those of `Optimizer`:
        learning_rate: an upper bound of the relative step, a float or a schedule.
        beta_2_decay: exponent of the decay 1 - t**beta_2_decay, below 0.
        epsilon_1: added to squared gradients.
        epsilon_2: the least size that weights are taken to have.
        clip_threshold: the largest root mean square of an update before it is scaled.
        relative_step: kept in the configuration. The rate is min(learning_rate, 1 / sqrt(t)) either way, as in Keras.

    >>> w = tf.Variable([[3.0, 4.0], [4.0, 3.0]])
    >>> _ = tf.keras.optimizers.Adafactor(0.1).apply([tf.ones([2, 2])], [w])
    >>> print(w.numpy().round(3))
    [[2.646 3.646]
     [3.646 2.646]]
    """

    slot_groups = (("row_mean", "column_mean", "velocity"),)

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] = 0.001,
        beta_2_decay: float = -0.8,
        epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3,
        clip_threshold: float = 1.0,
        relative_step: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta_2_decay, self.epsilon_1, self.epsilon_2 = float(beta_2_decay), float(epsilon_1), float(epsilon_2)
        self.clip_threshold, self.relative_step = float(clip_threshold), bool(relative_step)

    def initial_slot(self, name: str, value: Array) -> Array:
        """Zeros: one for each row, for each column, or for each element; a single one where it stays unused."""
        if name == "velocity":
            return super().initial_slot(name, value)
        shape: Sequence[int] = value.shape
        if len(shape) < 2:
            kept: Sequence[int] = ()
        else:
            kept = shape[:-1] if name == "row_mean" else (*shape[:-2], shape[-1])
        return namespace(value).zeros(kept, dtype=value.dtype)

    def begin_step(self, t: int, learning_rate: float) -> tuple[float, float]:
        return min(learning_rate, 1.0 / math.sqrt(t)), 1.0 - t**self.beta_2_decay

    def formula(self, step: tuple[float, float], gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        rate, decay = step
        rows, columns, velocity = second_moment(gradient, slots[0], slots[1], slots[2], decay, self.epsilon_1)
        return (
            adafactor_step(gradient, value, velocity, rate, self.epsilon_2, self.clip_threshold),
            *(rows, columns, velocity),
        )
