"""`tf.print`, which prints in each run of a compiled function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import nest
from ..core import Tensor, Variable, convert_to_tensor
from ..core.arrays import to_numpy
from ..core.batch import _values
from ..core.effects import effect
from ..core.stack import BOTTOM, current, notify

printed = effect("print", lambda *arrays, show: show([to_numpy(one) for one in arrays]) or (), escapes=True)
"""Stands on the stack for what is shown of the values of tensors."""


def print_(
    *inputs: Any, output_stream: Any = None, summarize: int = 3, sep: str = " ", end: str = "\n", name: str | None = None
) -> None:
    """Print text, numbers, tensors and nests of them: in a compiled function in each run, in the first twice with LLVM.

    Args:
        inputs: what to print.
        output_stream: a stream such as sys.stdout, or 'file://' and a path, to which is appended; sys.stderr by default.
        summarize: so many elements are shown of the beginning and the end of each axis; -1 for all.
        sep, end: between and behind what is printed.

    >>> import sys
    >>> tf.print("loss", tf.constant([1.0, 2.5]), output_stream=sys.stdout)
    loss [1 2.5]
    """
    to_file = isinstance(output_stream, str)
    if to_file and not output_stream.startswith("file://"):
        raise ValueError(f"tf.print: output_stream must be a stream, or 'file://' and a path, found {output_stream!r:.80}.")
    given = list(inputs)
    leaves = nest.flatten(given)
    tensors = [convert_to_tensor(leaf) for leaf in leaves if isinstance(leaf, (Tensor, Variable))]

    def show(arrays: list[np.ndarray[Any, Any]]) -> None:
        values = iter(arrays)
        filled = [
            Shown(text(next(values), summarize, quoted=all(leaf is not one for one in given)))
            if isinstance(leaf, (Tensor, Variable))
            else leaf
            for leaf in leaves
        ]
        line = sep.join(map(str, nest.pack(given, filled))) + end
        if to_file:
            with open(output_stream.removeprefix("file://"), "a", encoding="utf-8") as file:
                file.write(line)
        else:
            (output_stream or sys.stderr).write(line)

    tell(tensors, show)


def tell(tensors: list[Tensor], show: Callable[[list[np.ndarray[Any, Any]]], None]) -> None:
    """Give the values of tensors to a function; in a compiled function in each run."""
    show([_values(one) for one in tensors])
    frame = current()
    if frame is not BOTTOM:
        notify(frame, printed, tuple(tensors), {"show": show}, ())


class Shown(str):
    """A text that stands in a nest as it is, without quotes."""

    def __repr__(self) -> str:
        return str(self)


def text(array: Any, count: int, depth: int = 1, quoted: bool = False) -> str:
    """The elements of an array as TensorFlow prints them; text within an array or a nest has quotes.

    >>> text(np.arange(8), 2)
    '[0 1 ... 6 7]'
    """
    if isinstance(array, (str, bytes)):
        plain = array if isinstance(array, str) else array.decode(errors="replace")
        return f'"{plain}"' if quoted else plain
    if array.ndim == 0:
        return text(array.item(), count, depth, quoted) if array.dtype.kind == "O" else _number(array.item(), array.dtype)
    short = 0 <= 2 * count < len(array)
    rows = [text(row, count, depth + 1, True) for row in ([*array[:count], *array[len(array) - count :]] if short else array)]
    if short:
        rows.insert(count, "...")
    between = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * depth
    return "[" + between.join(rows) + "]"


def _number(value: Any, dtype: Any) -> str:
    """A number: a float with few digits if these tell it from all others, else with as many as always do."""
    if not isinstance(value, float):
        return str(int(value) if isinstance(value, bool) else value)
    few, enough, kind = (15, 17, np.float64) if dtype == "float64" else (6, 9, np.float32)
    short = f"{value:.{few}g}"
    return short if value != value or kind(float(short)) == value else f"{value:.{enough}g}"
