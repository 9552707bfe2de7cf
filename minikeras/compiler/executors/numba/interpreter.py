"""The machine: one compiled function that carries out programs written as numbers.

Key idea: the program is data. Numba compiles this interpreter once for each dtype and kind of processor and keeps it on disk,
so no step of a user is ever compiled. An interpreted word costs nanoseconds, and each works on a whole block or product.

A program is a sequence of instructions, each `opcode, length, operands`; the length counts all words. Arrays are named by their
place in a list of addresses; they are C-contiguous, of the machine's dtype, labels of int64.

    PRODUCT               10      out, a, b, m, n, k, transpose_a, transpose_b
                                  out (m, n) = a @ b, where a is stored as (m, k) or, transposed, (k, m), and b likewise
    LOOP                  length  rows, columns, inputs, outputs, steps, then for each input (pointer, kind),
                                  each output (pointer, register, how), each step (operation, register, a, b, c)
                                  input i is register i; each step writes a register of its own
    SPARSE_CROSS_ENTROPY  7       out, labels, logits, rows, columns
    LABEL_EXCESS          7       out, labels, logits, rows, columns

What is written overlaps nothing that the instruction reads, except that a stored output of a LOOP may be a FULL input which no
step or output reads after the step that makes the output.
"""

from __future__ import annotations

import pathlib
import zlib
from typing import Any

import numba
import numpy as np

from ....types import Array
from .loop import loop
from .losses import label_excess, sparse_cross_entropy
from .memory import (
    BLOCK,
    COLUMN,
    FULL,
    LITERAL,
    OVER_ALL,
    OVER_COLUMNS,
    OVER_ROWS,
    ROW,
    SCALAR,
    STORE,
)
from .operations import COMBINED, OPERATIONS, TRANSCENDENTAL
from .product import product

__all__ = [
    "BLOCK",
    "COLUMN",
    "COMBINED",
    "FULL",
    "LABEL_EXCESS",
    "LITERAL",
    "LOOP",
    "OPERATIONS",
    "OVER_ALL",
    "OVER_COLUMNS",
    "OVER_ROWS",
    "PRODUCT",
    "REGISTERS_MAX",
    "ROW",
    "SCALAR",
    "SPARSE_CROSS_ENTROPY",
    "STORE",
    "TRANSCENDENTAL",
    "run",
    "warm",
]

PRODUCT, LOOP, SPARSE_CROSS_ENTROPY, LABEL_EXCESS = range(4)

REGISTERS_MAX = 64
"""Registers that one LOOP may have; the scratch memory of a run holds so many blocks."""


def _machine(sources: int) -> Any:
    """`run` for these sources: Numba watches this file only, but on disk it looks also by what a function closes over."""

    def run(code: Array, pointers: Array, literals: Array, scratch: Array) -> int:
        places = np.empty((REGISTERS_MAX, 3), np.int64)
        sums = np.empty(REGISTERS_MAX, np.float64)
        at = 0 * sources
        while at < code.size:
            opcode, words = code[at], code[at : at + code[at + 1]]
            fine = True
            if opcode == LOOP:
                loop(words, pointers, literals, scratch, places, sums)
            elif opcode == PRODUCT:
                product(words, pointers, scratch)
            elif opcode == SPARSE_CROSS_ENTROPY:
                fine = sparse_cross_entropy(words, pointers, scratch)
            else:
                fine = label_excess(words, pointers, scratch)
            if not fine:
                return at
            at += words.size
        return -1

    return numba.njit(nogil=True, cache=True, error_model="numpy")(run)


_FILES = ("exponentials.py", "loop.py", "losses.py", "interpreter.py", "memory.py", "operations.py", "product.py")
"""All that is compiled."""

_SOURCES = b"".join((pathlib.Path(__file__).parent / name).read_bytes() for name in _FILES)

run: Any = _machine(zlib.crc32(_SOURCES))
"""run(code, pointers, literals, scratch) carries out a program.

Args:
    code: int64, the program.
    pointers: int64, addresses of the arrays.
    literals: float64, the numbers that LITERAL inputs name.
    scratch: REGISTERS_MAX * BLOCK elements of the dtype of all arrays, float32 or float64; one for each thread.
Returns:
    -1, or the place in the code of the instruction that found a label outside its row and ended the run.
"""


def warm(dtype: Any) -> bool:
    """Makes the machine ready for a dtype, in seconds the first time; whether it was found on disk.

    >>> warm("float32") in (True, False)
    True
    """
    found = sum(run.stats.cache_hits.values())
    words = np.empty(0, np.int64)
    run(words, words, np.empty(0), np.empty(REGISTERS_MAX * BLOCK, dtype))
    return sum(run.stats.cache_hits.values()) > found
