"""The step of a network with BatchNormalization after each hidden layer, in NumPy by hand.

h' = (h - mean) / sqrt(variance + epsilon), y = gamma h' + beta, over the rows of the batch. The moving averages
are kept as Keras keeps them: they cost time, though no training step reads them.
"""

from typing import Any

import numpy as np

from .adam import Adam
from .problems import MOMENTUM, VARIANCE_EPSILON, Array, Weights, loss_and_cotangent


class Normalized:
    """A new array for every result."""

    def __init__(self, weights: Weights) -> None:
        self.depth = len(weights) - 1
        self.parameters: list[Array] = []
        for kernel, bias in weights:
            self.parameters += [kernel.copy(), bias.copy(), np.ones_like(bias), np.zeros_like(bias)]
        del self.parameters[-2:]
        self.averages = [(np.zeros_like(bias), np.ones_like(bias)) for _, bias in weights[:-1]]
        self.adam = Adam(self.parameters)

    def step(self, x: Array, labels: Array) -> Any:
        """Train on one batch; the loss."""
        kept, h = [], x
        for i in range(self.depth):
            kernel, bias, gamma, beta = self.parameters[4 * i : 4 * i + 4]
            z = np.maximum(h @ kernel + bias, 0)
            mean, variance = z.mean(axis=0), z.var(axis=0)
            slope = 1.0 / np.sqrt(variance + np.float32(VARIANCE_EPSILON))
            normal = (z - mean) * slope
            kept.append((h, z, normal, slope))
            h = normal * gamma + beta
            self.averages[i] = tuple(
                old * MOMENTUM + new * (1.0 - MOMENTUM) for old, new in zip(self.averages[i], (mean, variance), strict=True)
            )
        loss, g = loss_and_cotangent(h @ self.parameters[-2] + self.parameters[-1], labels)
        gradients = [h.T @ g, g.sum(axis=0)]
        g = g @ self.parameters[-2].T
        for i in reversed(range(self.depth)):
            h, z, normal, slope = kept[i]
            kernel, _, gamma, _ = self.parameters[4 * i : 4 * i + 4]
            by_gamma, by_beta = (g * normal).sum(axis=0), g.sum(axis=0)
            g = (g - (by_beta + normal * by_gamma) / len(x)) * (gamma * slope) * (z > 0)
            gradients = [h.T @ g, g.sum(axis=0), by_gamma, by_beta, *gradients]
            if i:
                g = g @ kernel.T
        self.parameters = self.adam.step(self.parameters, gradients)
        return loss
