"""Stochastic gradient descent; Lion, its sign; and Muon, its momentum made orthogonal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core import Variable, namespace
from ...types import Array
from .adam import adam_step
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
    slot_groups: tuple[tuple[str, ...] | dict[str, str], ...] = ({"momentum": "momentum"},)

    def __init__(
        self, learning_rate: float | Callable[..., Any] = 0.01, momentum: float = 0.0, nesterov: bool = False, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        if not 0.0 <= momentum <= 1.0:
            raise ValueError(f"`momentum` must be a float between [0, 1]. Received: momentum={momentum}.")
        self.momentum, self.nesterov = float(momentum), bool(nesterov)

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
    rule = staticmethod(lion_step)

    def __init__(
        self, learning_rate: float | Callable[..., Any] = 0.001, beta_1: float = 0.9, beta_2: float = 0.99, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        if not 0.0 < beta_1 <= 1.0:
            raise ValueError(
                f"`beta_1` must be between ]0, 1]. Otherwise, the optimizer degenerates to SignSGD. Found {beta_1}."
            )
        self.beta_1, self.beta_2 = float(beta_1), float(beta_2)


_META = frozenset("\\^$*+?{}[]()|")
"""Characters of a regular expression that a keyword is not likely to contain."""


def _keywords(given: Sequence[str] | None) -> list[str]:
    """Keywords to look for in paths. No patterns: a model file could hold one that takes years to match."""
    keywords = [given] if isinstance(given, str) else list(given or ())
    for keyword in keywords:
        if not isinstance(keyword, str) or not _META.isdisjoint(keyword):
            raise ValueError(
                f"Muon: exclude_layers takes keywords, plain parts of the names of layers, found {keyword!r:.80}. "
                "Give one keyword for each of the names, such as exclude_layers=['output_dense']."
            )
    return keywords


def orthogonalized(x: Array, steps: int, a: float, b: float, c: float) -> Array:
    """Nearly the orthogonal matrix U V^T of x = U S V^T, by Newton's and Schulz's iteration.

        x <- x / |x|
        x <- a x + (b x x^T + c (x x^T)**2) x               (`steps` times)

    Source: Jordan et al., Muon: an optimizer for hidden layers in neural networks (2024).
    """
    tall = x.shape[-2] > x.shape[-1]
    x = namespace(x).swapaxes(x, -1, -2) if tall else x
    x = x / (namespace(x).sqrt((x * x).sum()) + 1e-7)
    for _ in range(steps):
        square = x @ namespace(x).swapaxes(x, -1, -2)
        x = x * a + (square * b + square @ square * c) @ x
    return namespace(x).swapaxes(x, -1, -2) if tall else x


def muon_step(
    g: Array, w: Array, m: Array, rate: float, momentum: float, nesterov: bool, steps: int, a: float, b: float, c: float
) -> tuple[Array, Array]:
    """One step of Muon for a matrix.

        m <- momentum m + g
        w <- w - rate orthogonalized(m)                     (plain)
        w <- w - rate orthogonalized(g + momentum m)        (nesterov)

    Source: Jordan et al. (2024); the rate of Liu et al., Muon is scalable for LLM training (2025), equation (4):
    lr rms_rate sqrt(max(rows, columns)).
    """
    mean = m * momentum + g
    direction = g + mean * momentum if nesterov else mean
    return w - orthogonalized(direction, steps, a, b, c) * rate, mean


class Muon(Optimizer):
    """Orthogonal steps for matrices, Adam for everything else. Formulas: `muon_step`, `adam_step`.

    Args, beside those of `Optimizer`:
        adam_beta_1, adam_beta_2, epsilon: as in `Adam`.
        adam_weight_decay: weight decay where Adam steps.
        weight_decay: weight decay where Muon steps.
        exclude_layers: keywords, plain text; Adam takes the matrices in whose path one of them is found.
        exclude_embeddings: Adam takes the matrices with 'embedding' in their path.
        muon_a, muon_b, muon_c: coefficients of the iteration.
        adam_lr_ratio: Adam's learning rate in units of Muon's.
        momentum: decay of the sum of gradients.
        ns_steps: number of iterations.
        nesterov: look ahead.
        rms_rate: the root mean square that a step has in units of the learning rate; None for the bare orthogonal matrix.

    >>> w = tf.Variable([[1.0, 0.0], [0.0, 1.0]])
    >>> _ = tf.keras.optimizers.Muon(0.1, weight_decay=None).apply([tf.constant([[5.0, 0.0], [0.0, 5.0]])], [w])
    >>> print(w.numpy().round(2))
    [[0.97 0.  ]
     [0.   0.97]]
    """

    slot_groups = (("momentum", "velocity"),)

    def __init__(
        self,
        learning_rate: float | Callable[..., Any] = 0.001,
        adam_beta_1: float = 0.9,
        adam_beta_2: float = 0.999,
        adam_weight_decay: float | None = 0.004,
        epsilon: float = 1e-7,
        weight_decay: float | None = 0.004,
        exclude_layers: Sequence[str] | None = None,
        exclude_embeddings: bool = True,
        muon_a: float = 3.4445,
        muon_b: float = -4.7750,
        muon_c: float = 2.0315,
        adam_lr_ratio: float = 1,
        momentum: float = 0.95,
        ns_steps: int = 5,
        nesterov: bool = True,
        rms_rate: float | None = 0.2,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, **options)
        self.adam_beta_1, self.adam_beta_2, self.adam_weight_decay = adam_beta_1, adam_beta_2, adam_weight_decay
        self.epsilon, self.adam_lr_ratio, self.rms_rate = epsilon, adam_lr_ratio, rms_rate
        self.exclude_layers, self.exclude_embeddings = _keywords(exclude_layers), exclude_embeddings
        self.muon_a, self.muon_b, self.muon_c = muon_a, muon_b, muon_c
        self.momentum, self.ns_steps, self.nesterov = momentum, ns_steps, nesterov

    def is_for_adam(self, variable: Variable) -> bool:
        path = getattr(variable, "path", variable.name)
        if variable.array.ndim != 2 or (self.exclude_embeddings and "embedding" in path.lower()):
            return True
        return any(keyword in path for keyword in self.exclude_layers)

    def slot_names(self, variable: Variable) -> Sequence[str]:
        return ("momentum", "velocity") if self.is_for_adam(variable) else ("momentum",)

    def decay_of(self, variable: Variable) -> float | None:
        return self.adam_weight_decay if self.is_for_adam(variable) else self.weight_decay

    def begin_step(self, t: int, learning_rate: float) -> tuple[float, float]:
        correction = math.sqrt(1.0 - self.adam_beta_2**t) / (1.0 - self.adam_beta_1**t)
        return learning_rate, learning_rate * self.adam_lr_ratio * correction

    def formula(self, step: tuple[float, float], gradient: Array, value: Array, *slots: Array) -> tuple[Array, ...]:
        rate, adam_rate = step
        if len(slots) == 2:
            numbers = adam_rate, self.adam_beta_1, self.adam_beta_2, self.epsilon
            return adam_step(gradient, value, slots[0], slots[1], *numbers)
        if self.rms_rate is not None:
            rate *= self.rms_rate * math.sqrt(max(gradient.shape))
        iteration = self.ns_steps, self.muon_a, self.muon_b, self.muon_c
        return muon_step(gradient, value, slots[0], rate, self.momentum, self.nesterov, *iteration)
