"""Adam in NumPy, by hand: as one writes it down, and with `out=` on one flat array."""

import math

import numpy as np

from .problems import BETA_1, BETA_2, EPSILON, LEARNING_RATE, Array


def adam_rate(t: int) -> float:
    """The learning rate with both bias corrections."""
    return LEARNING_RATE * math.sqrt(1.0 - BETA_2**t) / (1.0 - BETA_1**t)


class Adam:
    """Adam with fresh arrays, also for candidates without an optimizer of their own."""

    def __init__(self, parameters: list[Array]) -> None:
        self.momenta = [np.zeros_like(w) for w in parameters]
        self.velocities = [np.zeros_like(w) for w in parameters]
        self.t = 0

    def step(self, parameters: list[Array], gradients: list[Array]) -> list[Array]:
        """The new parameters."""
        self.t += 1
        rate = adam_rate(self.t)
        for i, g in enumerate(gradients):
            self.momenta[i] = self.momenta[i] + (g - self.momenta[i]) * (1.0 - BETA_1)
            self.velocities[i] = self.velocities[i] + (g * g - self.velocities[i]) * (1.0 - BETA_2)
        return [
            w - m * rate / (np.sqrt(v) + EPSILON) for w, m, v in zip(parameters, self.momenta, self.velocities, strict=True)
        ]


class BufferedAdam:
    """Adam that changes an array in place, and makes none."""

    def __init__(self, parameters: Array) -> None:
        self.parameters = parameters
        self.m, self.v, self.scratch = (np.zeros_like(parameters) for _ in range(3))
        self.t = 0

    def step(self, g: Array) -> None:
        """Change the parameters by their gradient."""
        self.t += 1
        m, v, s = self.m, self.v, self.scratch
        np.subtract(g, m, out=s)
        np.multiply(s, 1.0 - BETA_1, out=s)
        np.add(m, s, out=m)
        np.multiply(g, g, out=s)
        np.subtract(s, v, out=s)
        np.multiply(s, 1.0 - BETA_2, out=s)
        np.add(v, s, out=v)
        np.sqrt(v, out=s)
        np.add(s, EPSILON, out=s)
        np.divide(m, s, out=s)
        np.multiply(s, adam_rate(self.t), out=s)
        np.subtract(self.parameters, s, out=self.parameters)
