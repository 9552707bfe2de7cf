"""Cross-entropy of labels and its derivative, row by row.

Key idea: the largest logit is subtracted first, so that no exponential overflows. Negative labels count from the end, as
indices do in Python; a label outside a row stops the machine.
"""

from __future__ import annotations

import numpy as np

from ...types import Array
from .exponentials import exp
from .memory import compiled, total, view


@compiled
def sparse_cross_entropy(code: Array, pointers: Array, scratch: Array) -> bool:
    """out = log(sum(exp(x - max))) - (x[label] - max) for each row x of the logits; whether all labels lie in their rows."""
    rows, columns = code[5], code[6]
    losses, labels = view(pointers[code[2]], rows, scratch), view(pointers[code[3]], rows, code)
    logits = view(pointers[code[4]], (rows, columns), scratch)
    for i in range(rows):
        label = labels[i] + columns if labels[i] < 0 else labels[i]
        if not 0 <= label < columns:
            return False
        x = logits[i]
        largest = _largest(x)
        terms = 0.0
        for j in range(columns):
            terms += exp(x[j] - largest)
        losses[i] = np.log(terms) - (x[label] - largest)
    return True


@compiled
def label_excess(code: Array, pointers: Array, scratch: Array) -> bool:
    """out = softmax(x) for each row x of the logits, less one at its label; whether all labels lie in their rows."""
    rows, columns = code[5], code[6]
    excess, labels = view(pointers[code[2]], (rows, columns), scratch), view(pointers[code[3]], rows, code)
    logits = view(pointers[code[4]], (rows, columns), scratch)
    for i in range(rows):
        label = labels[i] + columns if labels[i] < 0 else labels[i]
        if not 0 <= label < columns:
            return False
        x, y = logits[i], excess[i]
        largest = _largest(x)
        for j in range(columns):
            y[j] = exp(x[j] - largest)
        terms = total(y)
        for j in range(columns):
            y[j] /= terms
        y[label] -= 1
    return True


@compiled
def _largest(x: Array) -> float:
    """The largest number of a row, or nan if it holds one."""
    largest = x[0]
    for i in range(x.size):
        if x[i] > largest or x[i] != x[i]:
            largest = x[i]
    return largest
