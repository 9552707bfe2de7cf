"""The same step in NumPy, written by hand: what no framework's overhead can be blamed on.

Two forms: `FreshArrays` as one writes it down, and `Buffers`, where every result goes to memory that exists already and
all weights lie in one flat array, so that Adam is twelve calls however many layers there are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .candidates import Step, candidate
from .problems import BETA_1, BETA_2, EPSILON, LEARNING_RATE, Array, Data, Weights


def adam_rate(t: int) -> float:
    """The learning rate with both bias corrections."""
    return LEARNING_RATE * math.sqrt(1.0 - BETA_2**t) / (1.0 - BETA_1**t)


class Adam:
    """Adam with fresh arrays, for candidates without an optimizer of their own."""

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


class FreshArrays:
    """A new array for every result."""

    def __init__(self, weights: Weights) -> None:
        self.parameters = [array.copy() for pair in weights for array in pair]
        self.adam = Adam(self.parameters)

    def step(self, x: Array, labels: Array) -> Any:
        """Train on one batch; the loss."""
        inputs, h = [], x
        layers = list(zip(self.parameters[::2], self.parameters[1::2], strict=True))
        for kernel, bias in layers:
            inputs.append(h)
            z = h @ kernel + bias
            h = np.maximum(z, 0)
        shifted = z - z.max(axis=1, keepdims=True)
        exponentials = np.exp(shifted)
        sums = exponentials.sum(axis=1, keepdims=True)
        rows = np.arange(len(x))
        loss = (np.log(sums[:, 0]) - shifted[rows, labels]).mean()
        g = exponentials / sums
        g[rows, labels] -= 1
        g = g / len(x)
        gradients: list[Array] = []
        for (kernel, _), h in zip(reversed(layers), reversed(inputs), strict=True):
            gradients += [g.sum(axis=0), h.T @ g]
            if h is not x:
                g = (g @ kernel.T) * (h > 0)
        self.parameters = self.adam.step(self.parameters, gradients[::-1])
        return loss

    def logits(self, x: Array) -> Array:
        """The forward pass alone."""
        for kernel, bias in zip(self.parameters[:-2:2], self.parameters[1:-2:2], strict=True):
            x = np.maximum(x @ kernel + bias, 0)
        return x @ self.parameters[-2] + self.parameters[-1]


class Buffers:
    """`out=` everywhere, and one flat array each for weights, gradients and Adam's two means."""

    def __init__(self, weights: Weights, batch: int) -> None:
        arrays = [array for pair in weights for array in pair]
        self.flat = np.concatenate([array.ravel() for array in arrays])
        self.gradient, self.m, self.v, self.scratch = (np.zeros_like(self.flat) for _ in range(4))
        self.layers = _pairs(self.flat, arrays)
        self.gradients = _pairs(self.gradient, arrays)
        widths = [kernel.shape[1] for kernel, _ in weights]
        self.outputs = [np.empty((batch, width), np.float32) for width in widths]
        self.cotangents = [np.empty((batch, width), np.float32) for width in widths]
        self.masks = [np.empty((batch, width), bool) for width in widths]
        self.column = np.empty((batch, 1), np.float32)
        self.rows = np.arange(batch)
        self.t = 0

    def step(self, x: Array, labels: Array) -> Any:
        """Train on one batch, which may be smaller than the buffers; the loss."""
        n = len(x)
        outputs = [output[:n] for output in self.outputs]
        cotangents = [cotangent[:n] for cotangent in self.cotangents]
        h = x
        for i, ((kernel, bias), z) in enumerate(zip(self.layers, outputs, strict=True)):
            np.matmul(h, kernel, out=z)
            np.add(z, bias, out=z)
            if i < len(outputs) - 1:
                np.maximum(z, 0, out=z)
            h = z
        z, g, column, rows = outputs[-1], cotangents[-1], self.column[:n], self.rows[:n]
        np.max(z, axis=1, keepdims=True, out=column)
        np.subtract(z, column, out=z)
        np.exp(z, out=g)
        np.sum(g, axis=1, keepdims=True, out=column)
        np.divide(g, column, out=g)
        loss = (np.log(column[:, 0], out=column[:, 0]) - z[rows, labels]).mean()
        g[rows, labels] -= 1
        np.multiply(g, 1.0 / n, out=g)
        for i in range(len(self.layers) - 1, -1, -1):
            h = outputs[i - 1] if i else x
            np.matmul(h.T, g, out=self.gradients[i][0])
            np.sum(g, axis=0, out=self.gradients[i][1])
            if i:
                below, mask = cotangents[i - 1], self.masks[i - 1][:n]
                np.matmul(g, self.layers[i][0].T, out=below)
                np.greater(h, 0, out=mask)
                g = np.multiply(below, mask, out=below)
        self._adam()
        return loss

    def _adam(self) -> None:
        self.t += 1
        g, m, v, s = self.gradient, self.m, self.v, self.scratch
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
        np.subtract(self.flat, s, out=self.flat)


def _pairs(flat: Array, arrays: list[Array]) -> Weights:
    """Views into a flat array, shaped like kernels and biases."""
    ends = np.cumsum([array.size for array in arrays])
    views = [flat[end - array.size : end].reshape(array.shape) for end, array in zip(ends, arrays, strict=True)]
    return list(zip(views[::2], views[1::2], strict=True))


@candidate("NumPy by hand")
def fresh_arrays(sizes: tuple[int, ...], weights: Weights, data: Data) -> Step:
    network = FreshArrays(weights)
    return lambda: network.step(*data)


@candidate("NumPy by hand, out=")
def buffers(sizes: tuple[int, ...], weights: Weights, data: Data) -> Step:
    network = Buffers(weights, len(data[0]))
    return lambda: network.step(*data)
