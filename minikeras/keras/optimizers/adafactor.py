"""Adafactor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.arrays import namespace
from ...types import Array
from .optimizer import Optimizer


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
    settings = ("beta_2_decay", "epsilon_1", "epsilon_2", "clip_threshold", "relative_step")

    def __init__(
        self,
        learning_rate: Any = 0.001,
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
