"""The same step in NumPy, written by hand: what no framework's overhead can be blamed on.

Two forms: `FreshArrays` as one writes it down, and `Buffers`, where every result goes to memory that exists already and
all weights lie in one flat array, so that Adam is twelve calls however many layers there are.
"""

from typing import Any

import numpy as np

from .adam import Adam, BufferedAdam
from .candidates import Step, candidate
from .normalized import Normalized
from .problems import Array, Data, Problem, Weights, loss_and_cotangent


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
        loss, g = loss_and_cotangent(z, labels)
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
        self.gradient = np.zeros_like(self.flat)
        self.adam = BufferedAdam(self.flat)
        self.layers = _pairs(self.flat, arrays)
        self.gradients = _pairs(self.gradient, arrays)
        widths = [kernel.shape[1] for kernel, _ in weights]
        self.outputs = [np.empty((batch, width), np.float32) for width in widths]
        self.cotangents = [np.empty((batch, width), np.float32) for width in widths]
        self.masks = [np.empty((batch, width), bool) for width in widths]
        self.column = np.empty((batch, 1), np.float32)
        self.rows = np.arange(batch)

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
        self.adam.step(self.gradient)
        return loss


def _pairs(flat: Array, arrays: list[Array]) -> Weights:
    """Views into a flat array, shaped like kernels and biases."""
    ends = np.cumsum([array.size for array in arrays])
    views = [flat[end - array.size : end].reshape(array.shape) for end, array in zip(ends, arrays, strict=True)]
    return list(zip(views[::2], views[1::2], strict=True))


@candidate("NumPy by hand", "numpy", normalizes=True)
def fresh_arrays(problem: Problem, weights: Weights, data: Data) -> Step:
    network = Normalized(weights) if problem.normalized else FreshArrays(weights)
    return lambda: network.step(*data)


@candidate("NumPy by hand, out=", "numpy")
def buffers(problem: Problem, weights: Weights, data: Data) -> Step:
    network = Buffers(weights, problem.batch)
    return lambda: network.step(*data)
