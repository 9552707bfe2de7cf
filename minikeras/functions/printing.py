"""`tf.print`, which prints in each run of a compiled function."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .. import nest
from ..arrays import to_numpy
from ..core import Tensor, Variable, convert_to_tensor
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
    given = list(inputs)
    leaves = nest.flatten(given)
    tensors = [convert_to_tensor(leaf) for leaf in leaves if isinstance(leaf, (Tensor, Variable))]

    def show(arrays: list[np.ndarray[Any, Any]]) -> None:
        values = iter(arrays)
        filled = [Shown(text(next(values), summarize)) if isinstance(leaf, (Tensor, Variable)) else leaf for leaf in leaves]
        line = sep.join(map(str, nest.pack(given, filled))) + end
        if isinstance(output_stream, str):
            with open(output_stream.removeprefix("file://"), "a", encoding="utf-8") as file:
                file.write(line)
        else:
            (output_stream or sys.stderr).write(line)

    show([_values(one) for one in tensors])
    frame = current()
    if frame is not BOTTOM:
        notify(frame, printed, tuple(tensors), {"show": show}, ())


class Shown(str):
    """A text that stands in a nest as it is, without quotes."""

    def __repr__(self) -> str:
        return str(self)


def text(array: Any, count: int) -> str:
    """The elements of an array as TensorFlow prints them.

    >>> text(np.arange(8), 2)
    '[0 1 ... 6 7]'
    """
    if array.ndim == 0:
        value = array.item()
        return f"{value:.8g}" if isinstance(value, float) else str(int(value) if isinstance(value, bool) else value)
    short = 0 <= 2 * count < len(array)
    rows = (
        [text(row, count) for row in (*array[:count], *array[len(array) - count :])]
        if short
        else [text(row, count) for row in array]
    )
    if short:
        rows.insert(count, "...")
    return "[" + (" " if array.ndim == 1 else "\n" * (array.ndim - 1) + " ").join(rows) + "]"
