"""LOOP: many element-wise steps and sums in one pass over memory.

Key idea: rows times columns elements are cut into blocks, and all steps run on one block before the next is looked at, so what
lies between inputs and outputs never leaves the cache. A register is an address: that of a part of an array, which moves on
with the blocks, or that of a piece of scratch memory of its own.
"""

from __future__ import annotations

from ....types import Array
from .memory import (
    BLOCK,
    COLUMN,
    FULL,
    LITERAL,
    OVER_ALL,
    OVER_COLUMNS,
    OVER_ROWS,
    ROW,
    STORE,
    compiled,
    copy,
    fill,
    total,
    view,
)
from .operations import operate

_HEAD, _INPUT, _OUTPUT, _STEP = 7, 2, 3, 5
"""Words before the inputs, and words of each input, output and step."""


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
        if how in (OVER_ROWS, OVER_COLUMNS):
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
