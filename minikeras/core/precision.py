"""Reductions of many 16-bit floats to one number: float32 accumulates the sum, and the result is rounded once.

In bfloat16 256 + 1 is 256 and in float16 2048 + 1 is 2048, so ten thousand ones would add up to that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..types import TensorLike
from .registry import operations
from .tensor import array_of

FLOAT32 = np.dtype("float32")
_NUMPY = np.ndarray


def is_short(dtype: np.dtype[Any]) -> bool:
    """True for float16 and bfloat16, which is of kind 'V' to NumPy."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of arrays; of 16-bit floats it is computed in float32, and its results are rounded once."""

    def accurate(*arrays: Any, **params: Any) -> Any:
        for x in arrays:
            if (x.itemsize if type(x) is _NUMPY else getattr(x, "itemsize", 0)) == 2 and is_short(x.dtype):
                wide = [one.astype(FLOAT32) if hasattr(one, "dtype") and is_short(one.dtype) else one for one in arrays]
                return _rounded(function(*wide, **params), x.dtype)
        return function(*arrays, **params)

    return accurate


def _rounded(result: Any, dtype: np.dtype[Any]) -> Any:
    if type(result) is tuple:
        return tuple([_rounded(part, dtype) for part in result])
    return result.astype(dtype) if result.dtype == FLOAT32 else result


def rule_in_float32(vjp: Callable[..., list[Any]], compute: Callable[..., Any]) -> Callable[..., list[Any]]:
    """The same rule; for 16-bit floats it works in float32, with the result as it was before it was rounded.

    Args:
        vjp: the rule of a primitive.
        compute: the primitive.
    """

    def accurate(
        wanted: Sequence[int], g: TensorLike, y: TensorLike, inputs: Sequence[Any], params: dict[str, Any]
    ) -> list[Any]:
        if not is_short(_numpy_dtype(y)):
            return vjp(wanted, g, y, inputs, params)
        wide = [_widened_operand(x) for x in inputs]
        found = vjp(wanted, _widened_operand(g), compute(*wide, **params), wide, params)
        names = [inputs[i].dtype.name for i in wanted]
        return [None if c is None else operations.cast(c, dtype=name) for c, name in zip(found, names, strict=True)]

    return accurate


def _widened_operand(value: Any) -> Any:
    short = hasattr(value, "dtype") and is_short(_numpy_dtype(value))
    return operations.cast(value, dtype=FLOAT32.name) if short else value


def _numpy_dtype(value: Any) -> np.dtype[Any]:
    """The dtype of an array, or of the array in a Tensor."""
    dtype: np.dtype[Any] = array_of(value).dtype
    return dtype
