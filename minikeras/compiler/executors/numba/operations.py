"""The element-wise operations of the machine: for each a loop over a block that LLVM vectorizes.

Key idea: names and values are those of NumPy's ufuncs. Conditions are 1.0 and 0.0, and any other number but zero counts as
true. All loops stand in one function, because Numba compiles one long function several times faster than many short ones.
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from ....types import Array
from .exponentials import exp, expm1, tanh
from .memory import compiled


class Operation(enum.IntEnum):
    """The number that stands for an operation in the steps of a LOOP."""

    ADD = 0
    SUBTRACT = 1
    MULTIPLY = 2
    DIVIDE = 3
    NEGATIVE = 4
    SQUARE = 5
    SQRT = 6
    ABSOLUTE = 7
    SIGN = 8
    MAXIMUM = 9
    MINIMUM = 10
    EXP = 11
    EXPM1 = 12
    LOG = 13
    LOG1P = 14
    SIN = 15
    COS = 16
    TANH = 17
    RECIPROCAL = 18
    POWER = 19
    FLOOR = 20
    CEIL = 21
    RINT = 22
    TRUNC = 23
    EQUAL = 24
    NOT_EQUAL = 25
    LESS = 26
    LESS_EQUAL = 27
    GREATER = 28
    GREATER_EQUAL = 29
    LOGICAL_AND = 30
    LOGICAL_OR = 31
    LOGICAL_NOT = 32
    WHERE = 33
    COPY = 34
    LERP = 35
    LERP_SQUARE = 36
    SQRT_ADD = 37
    MULTIPLY_DIVIDE = 38
    MULTIPLY_ADD = 39
    SUBTRACT_PRODUCT = 40


OPERATIONS: dict[str, int] = {operation.name.lower(): int(operation) for operation in Operation}
"""Operations by the name of NumPy's ufunc; `where` takes (condition, a, b)."""

COMBINED: dict[str, Any] = {
    "lerp_square": ("add", ("multiply", ("subtract", ("multiply", "a", "a"), "b"), "c"), "b"),
    "lerp": ("add", ("multiply", ("subtract", "a", "b"), "c"), "b"),
    "multiply_divide": ("divide", ("multiply", "a", "b"), "c"),
    "sqrt_add": ("add", ("sqrt", "a"), "b"),
    "multiply_add": ("add", ("multiply", "a", "b"), "c"),
    "subtract_product": ("subtract", "a", ("multiply", "b", "c")),
}
"""What several steps in a row amount to, larger ones first: less goes through memory, and the bits are the same.

The first two are the running means of an optimizer, mean + (value - mean) * weight.
"""

TRANSCENDENTAL = frozenset(["log", "log1p", "sin", "cos", "power"])
"""Operations that call the C library for each element: for large arrays NumPy's own vectorized ones are faster."""


@compiled
def operate(operation: int, y: Array, a: Array, b: Array, c: Array) -> None:
    """y = operation(a, b, c), element by element, for vectors of one length."""
    size = y.size
    if operation == Operation.ADD:
        for i in range(size):
            y[i] = a[i] + b[i]
    elif operation == Operation.SUBTRACT:
        for i in range(size):
            y[i] = a[i] - b[i]
    elif operation == Operation.MULTIPLY:
        for i in range(size):
            y[i] = a[i] * b[i]
    elif operation == Operation.DIVIDE:
        for i in range(size):
            y[i] = a[i] / b[i]
    elif operation == Operation.NEGATIVE:
        for i in range(size):
            y[i] = -a[i]
    elif operation == Operation.SQUARE:
        for i in range(size):
            y[i] = a[i] * a[i]
    elif operation == Operation.SQRT:
        for i in range(size):
            y[i] = np.sqrt(a[i])
    elif operation == Operation.ABSOLUTE:
        for i in range(size):
            y[i] = np.abs(a[i])
    elif operation == Operation.SIGN:
        for i in range(size):
            y[i] = 1.0 if a[i] > 0 else (-1.0 if a[i] < 0 else (0.0 if a[i] == 0 else a[i]))
    elif operation == Operation.MAXIMUM:
        for i in range(size):
            y[i] = a[i] if (a[i] >= b[i]) | (a[i] != a[i]) else b[i]
    elif operation == Operation.MINIMUM:
        for i in range(size):
            y[i] = a[i] if (a[i] <= b[i]) | (a[i] != a[i]) else b[i]
    elif operation == Operation.EXP:
        for i in range(size):
            y[i] = exp(a[i])
    elif operation == Operation.EXPM1:
        for i in range(size):
            y[i] = expm1(a[i])
    elif operation == Operation.LOG:
        for i in range(size):
            y[i] = np.log(a[i])
    elif operation == Operation.LOG1P:
        for i in range(size):
            y[i] = np.log1p(a[i])
    elif operation == Operation.SIN:
        for i in range(size):
            y[i] = np.sin(a[i])
    elif operation == Operation.COS:
        for i in range(size):
            y[i] = np.cos(a[i])
    elif operation == Operation.TANH:
        for i in range(size):
            y[i] = tanh(a[i])
    elif operation == Operation.RECIPROCAL:
        for i in range(size):
            y[i] = 1.0 / a[i]
    elif operation == Operation.POWER:
        for i in range(size):
            y[i] = a[i] ** b[i]
    elif operation == Operation.FLOOR:
        for i in range(size):
            y[i] = np.floor(a[i])
    elif operation == Operation.CEIL:
        for i in range(size):
            y[i] = np.ceil(a[i])
    elif operation == Operation.RINT:
        for i in range(size):
            y[i] = np.rint(a[i])
    elif operation == Operation.TRUNC:
        for i in range(size):
            y[i] = np.trunc(a[i])
    elif operation == Operation.EQUAL:
        for i in range(size):
            y[i] = 1.0 if a[i] == b[i] else 0.0
    elif operation == Operation.NOT_EQUAL:
        for i in range(size):
            y[i] = 1.0 if a[i] != b[i] else 0.0
    elif operation == Operation.LESS:
        for i in range(size):
            y[i] = 1.0 if a[i] < b[i] else 0.0
    elif operation == Operation.LESS_EQUAL:
        for i in range(size):
            y[i] = 1.0 if a[i] <= b[i] else 0.0
    elif operation == Operation.GREATER:
        for i in range(size):
            y[i] = 1.0 if a[i] > b[i] else 0.0
    elif operation == Operation.GREATER_EQUAL:
        for i in range(size):
            y[i] = 1.0 if a[i] >= b[i] else 0.0
    elif operation == Operation.LOGICAL_AND:
        for i in range(size):
            y[i] = 1.0 if (a[i] != 0) & (b[i] != 0) else 0.0
    elif operation == Operation.LOGICAL_OR:
        for i in range(size):
            y[i] = 1.0 if (a[i] != 0) | (b[i] != 0) else 0.0
    elif operation == Operation.LOGICAL_NOT:
        for i in range(size):
            y[i] = 1.0 if a[i] == 0 else 0.0
    elif operation == Operation.WHERE:
        for i in range(size):
            yes, no = b[i], c[i]
            y[i] = yes if a[i] != 0 else no
    elif operation == Operation.COPY:
        for i in range(size):
            y[i] = a[i]
    elif operation == Operation.LERP:
        for i in range(size):
            y[i] = (a[i] - b[i]) * c[i] + b[i]
    elif operation == Operation.LERP_SQUARE:
        for i in range(size):
            y[i] = (a[i] * a[i] - b[i]) * c[i] + b[i]
    elif operation == Operation.SQRT_ADD:
        for i in range(size):
            y[i] = np.sqrt(a[i]) + b[i]
    elif operation == Operation.MULTIPLY_DIVIDE:
        for i in range(size):
            y[i] = a[i] * b[i] / c[i]
    elif operation == Operation.MULTIPLY_ADD:
        for i in range(size):
            y[i] = a[i] * b[i] + c[i]
    elif operation == Operation.SUBTRACT_PRODUCT:
        for i in range(size):
            y[i] = a[i] - b[i] * c[i]
