"""What all parts of the machine are compiled with: how, and how an address becomes an array.

Key idea: programs name memory by address, so that one compiled function serves arrays of any number and shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.extending import intrinsic

from ....types import Array

_HELPER = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

compiled: Callable[[Any], Any] = numba.njit(**_HELPER)
"""Compiled for compiled callers only, without the GIL; a division by zero gives infinity, as in NumPy."""

scalar: Callable[[Any], Any] = numba.njit(forceinline=True, fastmath={"contract"}, **_HELPER)
"""Compiled into each loop that calls it: LLVM vectorizes no loop with a call."""

summing: Callable[[Any], Any] = numba.njit(fastmath={"reassoc", "nsz"}, **_HELPER)
"""Compiled so that the terms of a sum may be added in any order, several at once."""

BLOCK = 512
"""Elements that a step works on at a time: few enough that all registers of a usual LOOP stay in the second-level cache."""

FULL, ROW, COLUMN, SCALAR, LITERAL = range(5)
"""How an input fills rows times columns: as it is, each row the same, each column the same, one number, one literal."""

STORE, OVER_ROWS, OVER_COLUMNS, OVER_ALL = range(4)
"""What becomes of an output: stored as it is, summed over the rows, summed over the columns, summed to one number."""


def _typed_pointer(typing: Any, address: Any, like: Any) -> Any:
    """The address as a pointer to elements of the dtype of `like`."""
    pointer = numba.types.CPointer(like.dtype)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(address, like), generate


_pointer: Any = intrinsic(_typed_pointer)


@compiled
def view(address: int, shape: Any, like: Array) -> Array:
    """The C-contiguous array at an address, with the dtype of `like`."""
    return numba.carray(_pointer(address, like), shape)


@summing
def total(x: Array) -> Any:
    """The sum of a vector, in its dtype."""
    result = x.dtype.type(0)
    for i in range(x.size):
        result += x[i]
    return result


@compiled
def fill(x: Array, value: float) -> None:
    for i in range(x.size):
        x[i] = value


@compiled
def copy(y: Array, x: Array) -> None:
    for i in range(x.size):
        y[i] = x[i]
