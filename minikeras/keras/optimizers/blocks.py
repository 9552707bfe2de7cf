"""Running an elementwise formula over large arrays in pieces that stay in the cache.

Key idea: an optimizer's step reads and writes several arrays as large as the model. Taken whole, every temporary goes through
memory; in blocks of 32k elements, only the arrays themselves do. Measured on two cores of an x86-64 server, Adam over a million
float32 values: whole arrays 9.8 ms, blocks 3.6 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...arrays import namespace
from ...core import Variable
from ...types import Array

BLOCK = 32_768


def stepped(formula: Callable[..., tuple[Array, ...]], variables: Sequence[Variable], gradient: Array) -> list[Array]:
    """New values of the Variables: formula(gradient, *values), which must work on each element by itself.

    Nothing is assigned. Large results are written into the arrays that the Variables held one step earlier, if nobody else
    refers to those.
    """
    values = [variable._array for variable in variables]
    whole = values[0]
    alike = all(value.shape == whole.shape and value.flags.c_contiguous for value in values)
    if whole.size <= 2 * BLOCK or namespace(whole) is not np or not alike:
        return list(formula(gradient, *values))
    results = [_space(variable, value) for variable, value in zip(variables, values, strict=True)]
    flat = [np.ascontiguousarray(gradient).reshape(-1), *(value.reshape(-1) for value in values)]
    targets = [result.reshape(-1) for result in results]
    for start in range(0, whole.size, BLOCK):
        piece = slice(start, start + BLOCK)
        for target, part in zip(targets, formula(*[array[piece] for array in flat]), strict=True):
            target[piece] = part
    return results


def _space(variable: Variable, value: Array) -> Array:
    """Memory for a result like `value`: the Variable's spare array if it fits, else a new one."""
    spare = variable.spare()
    fits = spare is not None and spare.shape == value.shape and spare.dtype == value.dtype and spare.flags.c_contiguous
    return spare if fits else np.empty_like(value)
