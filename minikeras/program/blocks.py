"""Loops over long arrays in NumPy: all steps for one block of elements, then for the next.

Key idea: a block of each array fits the fast memory of a processor, so what lies between two steps never leaves it, and only
the operands and results themselves go through main memory. Each step is the NumPy function that the eager run would call, with
memory to write into, so results are the same bits.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays.threads import in_parallel
from ..types import Array
from .loop import Body, Step

BLOCK = 1 << 15
"""Elements of a block in one thread."""

_scratch = threading.local()


def _registers(count: int, dtype: Any) -> Array:
    """Memory of this thread for what lies between two steps."""
    known: dict[Any, Array] = _scratch.__dict__
    if dtype.str not in known or len(known[dtype.str]) < count:
        known[dtype.str] = np.empty((count, BLOCK), dtype)
    return known[dtype.str]


class BlockLoop:
    """A body as a function of arrays: `loop(*operands, *outputs)` writes the outputs.

    Operands are arrays of the outputs' shape, such as broadcast to it, and Python numbers.
    """

    __slots__ = ("_counts", "_last", "_plan", "body")

    def __init__(self, body: Body) -> None:
        self.body = body
        self._last = _last_uses(body)
        self._plan: list[tuple[Callable[..., Any], tuple[int, ...], int, tuple[Any, int] | None]] = []
        """For each step its function, the registers of its operands, that of its result, and memory of it unless an output."""
        self._counts: dict[Any, int] = {}
        free: dict[Any, list[int]] = {}
        places: dict[int, tuple[Any, int]] = {}
        for position, step in enumerate(body.steps):
            place = None
            if step.register not in body.outputs:
                # A choice writes its result while it still reads, so it never takes the place of an operand.
                if step.function != "where":
                    self._free(position, step, places, free)
                place = places[step.register] = self._place(step.dtype, free)
                if step.function == "where":
                    self._free(position, step, places, free)
            else:
                self._free(position, step, places, free)
            self._plan.append((_function(step, body), step.operands, step.register, place))

    def _free(self, position: int, step: Step, places: dict[int, Any], free: dict[Any, list[int]]) -> None:
        for register in set(step.operands):
            if register in places and self._last[register] == position:
                dtype, number = places.pop(register)
                free.setdefault(dtype, []).append(number)

    def _place(self, dtype: Any, free: dict[Any, list[int]]) -> tuple[Any, int]:
        if free.get(dtype):
            return dtype, free[dtype].pop()
        number = self._counts.get(dtype, 0)
        self._counts[dtype] = number + 1
        return dtype, number

    def reusable(self, output: int) -> list[int]:
        """The operands whose memory an output may be written into: those that no step reads after it."""
        register = self.body.outputs[output]
        made = {step.register: (position, step) for position, step in enumerate(self.body.steps)}
        if register not in made:
            return []
        position, step = made[register]
        return [
            operand
            for operand, dtype in enumerate(self.body.inputs)
            if dtype is not float
            and (self._last[operand] < position or (self._last[operand] == position and step.function != "where"))
        ]

    def __call__(self, *arrays: Any) -> None:
        body, count = self.body, len(self.body.inputs)
        operands, outputs = list(arrays[:count]), list(arrays[count:])
        whole = outputs[0]
        numbers = self._numbers(operands)
        if whole.ndim != 1:
            operands, outputs = _flattened(operands, outputs)
        rows = len(outputs[0])
        width = outputs[0].size // max(rows, 1)
        step = max(BLOCK // max(width, 1), 1)
        cut = [type(x) not in (float, int) and x.ndim == outputs[0].ndim and len(x) == rows != 1 for x in operands]

        def work(start: int, stop: int) -> None:
            memory = {dtype: _registers(need, np.dtype(dtype)) for dtype, need in self._counts.items()}
            for first in range(start, stop, step):
                part = slice(first, min(first + step, stop))
                values = dict(numbers)
                values.update(enumerate([x[part] if many else x for x, many in zip(operands, cut, strict=True)]))
                targets = {register: y[part] for register, y in zip(body.outputs, outputs, strict=True)}
                self._block(values, targets, memory, targets[body.outputs[0]])

        in_parallel(work, rows, max(LEAST // max(width, 1), 1), align=step)

    def _numbers(self, operands: Sequence[Any]) -> dict[int, Any]:
        """Literals, and what the steps on Python numbers give."""
        values: dict[int, Any] = dict(enumerate(operands)) | dict(self.body.literals)
        for step in self.body.numbers:
            values[step.register] = getattr(operator, step.function)(*[values[register] for register in step.operands])
        return {register: value for register, value in values.items() if register >= len(operands)}

    def _block(self, values: dict[int, Any], targets: dict[int, Array], memory: dict[Any, Array], like: Array) -> None:
        for function, registers, register, place in self._plan:
            out = targets[register] if place is None else memory[place[0]][place[1]][: like.size].reshape(like.shape)
            function(*[values[one] for one in registers], out)
            values[register] = out
        for register, target in targets.items():
            if values[register] is not target:  # an operand that is a result as it is
                target[...] = values[register]


LEAST = 1 << 20
"""Elements for each thread: between the calls of two steps Python's lock passes from thread to thread, which costs more than a
second thread gives for short arrays."""


def _last_uses(body: Body) -> dict[int, int]:
    """For each register the position of the last step that reads it; -1 if none does, the end for outputs."""
    last = dict.fromkeys(range(len(body.inputs)), -1)
    for position, step in enumerate(body.steps):
        last[step.register] = position
        last.update(dict.fromkeys(step.operands, position))
    last.update({register: len(body.steps) for register in body.outputs})
    return last


def _function(step: Step, body: Body) -> Callable[..., Any]:
    literals = dict(body.literals)
    return writing(step.function, [literals.get(register) for register in step.operands])


def writing(name: str, operands: Sequence[Any]) -> Callable[..., Any]:
    """The function of a step that writes into its last argument; Python numbers among the operands are known."""
    if name == "astype":
        return copied
    if name == "where":
        return chosen(operands)
    function: Callable[..., Any] = getattr(np, name)
    if name in ("maximum", "minimum"):  # NumPy wants their memory named
        return lambda a, b, out: function(a, b, out=out)
    return function


def copied(x: Array, out: Array) -> None:
    """The same values in another dtype."""
    np.copyto(out, x, casting="unsafe")


def chosen(operands: Sequence[Any]) -> Callable[..., None]:
    """`where` for operands of which the Python numbers are known: beside the number 0, an array's bits times 0 or 1."""
    _, a, b = operands
    if type(b) is int and b == 0 and type(a) not in (int, float):
        return lambda condition, x, zero, out: _kept(condition, x, out)
    if type(a) is int and a == 0 and type(b) not in (int, float):
        return lambda condition, zero, x, out: _kept(np.logical_not(condition), x, out)
    return _chosen


def _chosen(condition: Array, a: Any, b: Any, out: Array) -> None:
    np.copyto(out, np.where(condition, a, b))


def _kept(condition: Array, x: Array, out: Array) -> None:
    """The elements where the condition holds, a true zero elsewhere, also in place of infinity and NaN."""
    if x.dtype.kind != "f" or not x.flags.c_contiguous or condition.dtype != np.bool_ or x.dtype != out.dtype:
        np.copyto(out, np.where(condition, x, 0))
        return
    bits = f"i{x.dtype.itemsize}"
    np.multiply(x.view(bits), condition, out.view(bits))


def _flattened(operands: Sequence[Any], outputs: list[Array]) -> tuple[list[Any], list[Array]]:
    """Arrays of one axis, if all lie one element behind the other; else as they are, to be cut along their first axis."""
    shape = outputs[0].shape
    arrays = [x for x in operands if type(x) not in (float, int)]
    if all(x.flags.c_contiguous and (x.shape == shape or x.size == 1) for x in (*arrays, *outputs)):
        flat = [x if type(x) in (float, int) else x.reshape(-1) if x.shape == shape else x.reshape(()) for x in operands]
        return flat, [y.reshape(-1) for y in outputs]
    return list(operands), outputs
