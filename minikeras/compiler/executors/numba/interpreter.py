"""The bytecode interpreter: one compiled function that carries out programs written as integers.

Numba compiles it once for each dtype and kind of processor and keeps it on disk, so no step of a user is ever compiled.
Interpreting an integer costs nanoseconds, and each instruction works on a whole block or product.

Bytecode is a sequence of instructions, each `opcode, length, operands`; the length counts all three. Arrays are named by their
place in a list of addresses; they are C-contiguous, of the interpreter's dtype, indices of int64.

    PRODUCT                    10      out, a, b, m, n, k, transpose_a, transpose_b
                                       out (m, n) = a @ b, where a is stored as (m, k) or, transposed, (k, m), and b likewise
    LOOP                       length  rows, columns, inputs, outputs, steps, then for each input (pointer, kind),
                                       each output (pointer, register, how), each step (operation, register, a, b, c)
                                       input i is register i; each step writes a register of its own
    TAKE_AT  7       out, x, indices, rows, columns: out = x[index] for each row
    ADD_AT   8       out, x, indices, rows, columns, literal: out = x with a number added at an index in each row

What is written overlaps nothing that the instruction reads, except that a stored output of a LOOP may be a FULL input which no
step or output reads after the step that makes the output, and that ADD_AT may write into x.
"""

from __future__ import annotations

import pathlib
import zlib
from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

from ....types import Array
from .operations import compiled, operate, summing

PRODUCT, LOOP, TAKE_AT, ADD_AT = range(4)

REGISTERS_MAX = 64
"""Registers that one LOOP may have; the scratch memory of a run holds so many blocks."""

BLOCK = 512
"""Elements that a step works on at a time: few enough that all registers of a usual LOOP stay in the second-level cache."""

FULL, ROW, COLUMN, SCALAR, LITERAL = range(5)
"""How an input fills rows times columns: as it is, each row the same, each column the same, one number, one literal."""

STORE, OVER_ROWS, OVER_COLUMNS, OVER_ALL, LARGEST_OF_ROW = range(5)
"""What becomes of an output: stored, summed over the rows, over the columns, to one number, or the largest of each row."""


def _interpreter(sources: int) -> Any:
    """`run` for these sources: Numba watches this file only, but on disk it looks also by what a function closes over."""

    def run(code: Array, pointers: Array, literals: Array, scratch: Array) -> int:
        places = np.empty((REGISTERS_MAX, 3), np.int64)
        sums = np.empty(REGISTERS_MAX, np.float64)
        at = 0 * sources
        while at < code.size:
            opcode, instruction = code[at], code[at : at + code[at + 1]]
            fine = True
            if opcode == LOOP:
                loop(instruction, pointers, literals, scratch, places, sums)
            elif opcode == PRODUCT:
                product(instruction, pointers, scratch)
            elif opcode == TAKE_AT:
                fine = take_at(instruction, pointers, scratch)
            else:
                fine = add_at(instruction, pointers, literals, scratch)
            if not fine:
                return at
            at += instruction.size
        return -1

    return numba.njit(nogil=True, cache=True, error_model="numpy")(run)


_FILES = ("interpreter.py", "operations.py")
"""All that is compiled."""

_SOURCES = b"".join((pathlib.Path(__file__).parent / name).read_bytes() for name in _FILES)

run: Any = _interpreter(zlib.crc32(_SOURCES))
"""run(code, pointers, literals, scratch) carries out a program.

Args:
    code: int64, the program.
    pointers: int64, addresses of the arrays.
    literals: float64, the numbers that LITERAL inputs name.
    scratch: REGISTERS_MAX * BLOCK elements of the dtype of all arrays, float32 or float64; one for each thread.
Returns:
    -1, or the place in the code of the instruction that found an index outside its row and ended the run.
"""


def warm(dtype: Any) -> bool:
    """Makes the interpreter ready for a dtype, in seconds the first time; whether it was found on disk.

    >>> warm("float32") in (True, False)
    True
    """
    found = sum(run.stats.cache_hits.values())
    nothing = np.empty(0, np.int64)
    run(nothing, nothing, np.empty(0), np.empty(REGISTERS_MAX * BLOCK, dtype))
    return sum(run.stats.cache_hits.values()) > found


# Memory ------------------------------------------------------------------------------------------------------------------


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


@compiled
def _largest(x: Array) -> float:
    """The largest number of a vector, or nan if it holds one."""
    largest = x[0]
    for i in range(x.size):
        if x[i] > largest or x[i] != x[i]:
            largest = x[i]
    return largest


# LOOP --------------------------------------------------------------------------------------------------------------------
#
# Rows times columns elements are cut into blocks, and all steps run on one block before the next is looked at, so what lies
# between inputs and outputs never leaves the cache. A register is an address: that of a part of an array, which moves on with
# the blocks, or that of a piece of scratch memory of its own.

_HEAD, _INPUT, _OUTPUT, _STEP = 7, 2, 3, 5
"""Integers before the inputs, and those of each input, output and step."""


@compiled
def loop(code: Array, pointers: Array, literals: Array, scratch: Array, places: Array, sums: Array) -> None:
    """Carries out one LOOP; `places` and `sums` are working memory, three numbers and one for each register."""
    rows, columns = code[2], code[3]
    if _is_flat(code):
        rows, columns = 1, rows * columns
    if rows * columns == 0:
        _clear_sums(code, rows, columns, pointers, scratch)
        return
    height, width = max(1, min(rows, BLOCK // columns)), min(columns, BLOCK)
    _place_inputs(code, columns, height, width, pointers, literals, scratch, places)
    _place_outputs(code, columns, pointers, scratch, places)
    for row in range(0, rows, height):
        for column in range(0, columns, width):
            part = min(height, rows - row), min(width, columns - column)
            _repeat_columns(code, row, part, pointers, scratch, places)
            for at in range(_first_step(code), code[1], _STEP):
                operate(
                    code[at],
                    view(_address(places, code[at + 1], row, column), part[0] * part[1], scratch),
                    view(_address(places, code[at + 2], row, column), part[0] * part[1], scratch),
                    view(_address(places, code[at + 3], row, column), part[0] * part[1], scratch),
                    view(_address(places, code[at + 4], row, column), part[0] * part[1], scratch),
                )
            _collect(code, row, column, part, columns, pointers, scratch, places, sums)


@compiled
def _is_flat(code: Array) -> bool:
    """Whether rows and columns do not matter."""
    for i in range(code[4]):
        kind = code[_HEAD + _INPUT * i + 1]
        if kind in (ROW, COLUMN):
            return False
    for i in range(code[5]):
        how = code[_first_output(code) + _OUTPUT * i + 2]
        if how in (OVER_ROWS, OVER_COLUMNS, LARGEST_OF_ROW):
            return False
    return True


@compiled
def _first_output(code: Array) -> int:
    return _HEAD + _INPUT * code[4]


@compiled
def _first_step(code: Array) -> int:
    return _HEAD + _INPUT * code[4] + _OUTPUT * code[5]


@compiled
def _clear_sums(code: Array, rows: int, columns: int, pointers: Array, scratch: Array) -> None:
    """Sums of nothing are zero."""
    for i in range(code[5]):
        at = _first_output(code) + _OUTPUT * i
        how = code[at + 2]
        if how != STORE:
            size = columns if how == OVER_ROWS else (rows if how == OVER_COLUMNS else 1)
            fill(view(pointers[code[at]], size, scratch), 0.0)


@compiled
def _place(places: Array, register: int, address: int, by_row: int, by_column: int) -> None:
    """Gives a register its address in the first block, and how far that moves with each row and column."""
    places[register, 0] = address
    places[register, 1] = by_row
    places[register, 2] = by_column


@compiled
def _place_inputs(
    code: Array,
    columns: int,
    height: int,
    width: int,
    pointers: Array,
    literals: Array,
    scratch: Array,
    places: Array,
) -> None:
    """Inputs are read where they lie, if they can be; what is the same for all blocks is filled in once."""
    for i in range(code[4]):
        pointer, kind = code[_HEAD + _INPUT * i], code[_HEAD + _INPUT * i + 1]
        own = scratch.ctypes.data + i * BLOCK * scratch.itemsize
        if kind == FULL:
            _place(places, i, pointers[pointer], columns * scratch.itemsize, scratch.itemsize)
        elif kind == ROW and height == 1:
            _place(places, i, pointers[pointer], 0, scratch.itemsize)
        else:
            _place(places, i, own, 0, 0)
            if kind == ROW:
                source = view(pointers[pointer], columns, scratch)
                for row in range(height):
                    copy(view(own + row * columns * scratch.itemsize, columns, scratch), source)
            elif kind == LITERAL:
                fill(view(own, height * width, scratch), literals[pointer])
            elif kind != COLUMN:
                fill(view(own, height * width, scratch), view(pointers[pointer], 1, scratch)[0])


@compiled
def _place_outputs(code: Array, columns: int, pointers: Array, scratch: Array, places: Array) -> None:
    """A step writes straight to where its result is stored, unless it reads there: the loops are fast only without overlap."""
    for at in range(_first_step(code), code[1], _STEP):
        register = code[at + 1]
        _place(places, register, scratch.ctypes.data + register * BLOCK * scratch.itemsize, 0, 0)
        for output in range(_first_output(code), _first_step(code), _OUTPUT):
            home = pointers[code[output]]
            a, b, c = places[code[at + 2], 0], places[code[at + 3], 0], places[code[at + 4], 0]
            if code[output + 1] == register and code[output + 2] == STORE and a != home and b != home and c != home:
                _place(places, register, home, columns * scratch.itemsize, scratch.itemsize)


@compiled
def _address(places: Array, register: int, row: int, column: int) -> int:
    return places[register, 0] + row * places[register, 1] + column * places[register, 2]


@compiled
def _repeat_columns(code: Array, row: int, part: tuple[int, int], pointers: Array, scratch: Array, places: Array) -> None:
    """Repeats the numbers of COLUMN inputs along the rows of this block."""
    for i in range(code[4]):
        if code[_HEAD + _INPUT * i + 1] == COLUMN:
            source = view(pointers[code[_HEAD + _INPUT * i]], row + part[0], scratch)
            for j in range(part[0]):
                fill(view(places[i, 0] + j * part[1] * scratch.itemsize, part[1], scratch), source[row + j])


@compiled
def _collect(
    code: Array,
    row: int,
    column: int,
    part: tuple[int, int],
    columns: int,
    pointers: Array,
    scratch: Array,
    places: Array,
    sums: Array,
) -> None:
    """Stores what is not stored yet, and adds this block to the sums."""
    height, width = part
    for i in range(code[5]):
        at = _first_output(code) + _OUTPUT * i
        how, home = code[at + 2], pointers[code[at]]
        address = _address(places, code[at + 1], row, column)
        block = view(address, height * width, scratch)
        if how == STORE:
            target = home + (row * columns + column) * scratch.itemsize
            if target != address:
                copy(view(target, height * width, scratch), block)
        elif how == OVER_ALL:
            sums[i] = total(block) + (sums[i] if row + column else 0.0)
            view(home, 1, scratch)[0] = sums[i]
        elif how == OVER_COLUMNS:
            sums_of_rows = view(home, row + height, scratch)
            for j in range(height):
                sums[i] = total(block[j * width : (j + 1) * width]) + (sums[i] if column else 0.0)
                sums_of_rows[row + j] = sums[i]
        elif how == LARGEST_OF_ROW:
            largest_of_rows = view(home, row + height, scratch)
            for j in range(height):
                largest, earlier = _largest(block[j * width : (j + 1) * width]), largest_of_rows[row + j]
                stays = column > 0 and (earlier > largest or earlier != earlier)
                largest_of_rows[row + j] = earlier if stays else largest
        else:
            target = home + column * scratch.itemsize
            sums_of_columns = view(target, width, scratch)
            for j in range(height):
                part_row = block[j * width : (j + 1) * width]
                if row + j == 0:
                    copy(sums_of_columns, part_row)
                else:
                    for k in range(width):
                        sums_of_columns[k] += part_row[k]


# PRODUCT -----------------------------------------------------------------------------------------------------------------
#
# By BLAS, which Numba finds in SciPy. It was faster than plain loops also for 8 by 8 matrices.


@compiled
def product(code: Array, pointers: Array, scratch: Array) -> None:
    """Carries out one PRODUCT."""
    m, n, k, transpose_a, transpose_b = code[5], code[6], code[7], code[8], code[9]
    out = view(pointers[code[2]], (m, n), scratch)
    a = view(pointers[code[3]], (k, m) if transpose_a else (m, k), scratch)
    b = view(pointers[code[4]], (n, k) if transpose_b else (k, n), scratch)
    if m * n * k == 0:
        fill(out.reshape(m * n), 0.0)
    elif transpose_a and transpose_b:
        np.dot(a.T, b.T, out)
    elif transpose_a:
        np.dot(a.T, b, out)
    elif transpose_b:
        np.dot(a, b.T, out)
    else:
        np.dot(a, b, out)


# TAKE_AT and ADD_AT -----------------------------------------------------------------------------------------------------
#
# Negative indices count from the end, as in Python; an index outside its row ends the run.


@compiled
def take_at(code: Array, pointers: Array, scratch: Array) -> bool:
    """out = x[index] for each row x; whether all indices lie in their rows."""
    rows, columns = code[5], code[6]
    out, x = view(pointers[code[2]], rows, scratch), view(pointers[code[3]], (rows, columns), scratch)
    indices = view(pointers[code[4]], rows, code)
    for i in range(rows):
        column = _column_of(indices[i], columns)
        if column < 0:
            return False
        out[i] = x[i, column]
    return True


@compiled
def add_at(code: Array, pointers: Array, literals: Array, scratch: Array) -> bool:
    """out = x with a number added at an index in each row; whether all indices lie in their rows."""
    rows, columns = code[5], code[6]
    out, indices = view(pointers[code[2]], (rows, columns), scratch), view(pointers[code[4]], rows, code)
    if pointers[code[2]] != pointers[code[3]]:
        copy(out.reshape(rows * columns), view(pointers[code[3]], rows * columns, scratch))
    for i in range(rows):
        column = _column_of(indices[i], columns)
        if column < 0:
            return False
        out[i, column] += literals[code[7]]
    return True


@compiled
def _column_of(index: int, columns: int) -> int:
    """The column that an index stands for; negative if there is none."""
    column = index + columns if index < 0 else index
    return column if column < columns else -1
