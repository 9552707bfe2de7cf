"""Cross-entropy of labels and its derivative, row by row.

Key idea: the largest logit is subtracted first, so that no exponential overflows. Negative labels count from the end, as
indices do in Python; a label outside a row stops the machine.
"""

from __future__ import annotations

import numpy as np

from ....types import Array
from .exponentials import exp
from .memory import compiled, total, view


@compiled
def sparse_cross_entropy(code: Array, pointers: Array, scratch: Array) -> bool:
    """out = log(sum(exp(x - max))) - (x[label] - max) for each row x of the logits; whether all labels lie in their rows."""
    rows, columns = code[5], code[6]
    losses, labels = view(pointers[code[2]], rows, scratch), view(pointers[code[3]], rows, code)
    logits = view(pointers[code[4]], (rows, columns), scratch)
    height = max(scratch.size // columns, 1)
    for first in range(0, rows, height):
        part = logits[first : first + height]
        weights = scratch[: part.size].reshape(part.shape)
        _exponentials(weights, part)
        for i in range(part.shape[0]):
            label = _place(labels[first + i], columns)
            if label < 0:
                return False
            losses[first + i] = np.log(total(weights[i])) - (part[i, label] - _largest(part[i]))
    return True


@compiled
def label_excess(code: Array, pointers: Array, scratch: Array) -> bool:
    """out = softmax(x) for each row x of the logits, less one at its label; whether all labels lie in their rows."""
    rows, columns = code[5], code[6]
    excess, labels = view(pointers[code[2]], (rows, columns), scratch), view(pointers[code[3]], rows, code)
    _exponentials(excess, view(pointers[code[4]], (rows, columns), scratch))
    for i in range(rows):
        label = _place(labels[i], columns)
        if label < 0:
            return False
        y = excess[i]
        terms = total(y)
        for j in range(columns):
            y[j] /= terms
        y[label] -= 1
    return True


@compiled
def _exponentials(y: Array, x: Array) -> None:
    """y = exp(x - max of its row): all in one loop, since rows are often too short for one of their own."""
    for i in range(x.shape[0]):
        largest, shifted, row = _largest(x[i]), y[i], x[i]
        for j in range(row.size):
            shifted[j] = row[j] - largest
    flat = y.reshape(y.size)
    for i in range(flat.size):
        flat[i] = exp(flat[i])


@compiled
def _place(label: int, columns: int) -> int:
    """The column of a label; negative if there is none."""
    column = label + columns if label < 0 else label
    return column if column < columns else -1


@compiled
def _largest(x: Array) -> float:
    """The largest number of a row, or nan if it holds one."""
    largest = x[0]
    for i in range(x.size):
        if x[i] > largest or x[i] != x[i]:
            largest = x[i]
    return largest
