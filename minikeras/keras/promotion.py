"""Keras's rules of dtypes: operands meet in one that holds them all, and Python's numbers follow the tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import Tensor, convert_to_tensor, holds_tensor
from ..functions import cast, tensor
from ..types import DType, DTypeLike, TensorLike, as_dtype
from . import config

_WEAK: dict[Any, type] = {int: int, "int": int, float: float, "float": float}


def result_type(*dtypes: Any) -> str:
    """The name of the dtype in which operands meet.

    Floats rule over integers and those over bools; two floats of 16 bits meet in float32, complex numbers keep the precision of
    the widest float. `int` and `float`, the dtypes of Python's numbers, give way to any dtype of their kind; alone they are
    int32 and `floatx()`.

    Args:
        dtypes: dtypes or their names, `int`, `float`; None is `floatx()`.

    >>> result_type("int64", "float16"), result_type("float32", float), result_type("int8", "uint8"), result_type(bool, int)
    ('float16', 'float32', 'int16', 'int32')
    """
    weak = {_WEAK[one] for one in dtypes if _is_weak(one)}
    named = [config.floatx() if one is None else one for one in dtypes]
    strong = [as_dtype(one) for one in named if not _is_weak(one)]
    floats = {one.name: one for one in strong if one.is_floating}
    if any(one.is_complex for one in strong):
        wide = any(one.name in ("float64", "complex128") for one in strong)
        return "complex128" if wide else "complex64"
    if floats:
        widest = max(floats.values(), key=lambda one: one.size)
        return "float32" if {"float16", "bfloat16"} == floats.keys() else widest.name
    integers = [one.numpy for one in strong if one.is_integer]
    if float in weak or not dtypes:
        return config.floatx()
    if not integers:
        return "int32" if weak else "bool"
    met = as_dtype(np.result_type(*integers))
    return met.name if met.is_integer else config.floatx()


def _is_weak(dtype: DTypeLike) -> bool:
    """True for the dtypes of Python's numbers; False for a DType, although one may equal `float`."""
    return isinstance(dtype, (type, str)) and dtype in _WEAK


def promoted(*values: TensorLike) -> list[Tensor]:
    """The values as Tensors of the dtype in which they meet; numbers of Python are weak, as in `result_type`."""
    weak = [type(value) in (int, float) for value in values]
    tensors = [value if lone else convert_to_tensor(value) for value, lone in zip(values, weak, strict=True)]
    kinds = {type(one) if lone else one.dtype for one, lone in zip(tensors, weak, strict=True)}
    if len(kinds) == 1 and not any(weak):
        return tensors
    dtype = result_type(*kinds)
    given = [one if isinstance(one, Tensor) else convert_to_tensor(one, dtype) for one in tensors]
    return [one if one.dtype == dtype else cast(one, dtype) for one in given]


def exact(x: Any, dtype: DTypeLike) -> Any:
    """Numbers of Python in a dtype of 64 bits for each part, since float32 would cut their digits; anything else as it is."""
    if dtype is None or as_dtype(dtype).name not in ("float64", "complex128") or hasattr(x, "dtype") or holds_tensor(x):
        return x
    return convert_to_tensor(x, dtype)


def wide(x: Tensor) -> Tensor:
    """16-bit floats as float32."""
    return cast(x, "float32") if x.dtype.size == 2 else x


def floating(value: TensorLike) -> Tensor:
    """The value as a Tensor of floats, or complex numbers; integers and bools become `floatx()`."""
    x = tensor(value)
    return x if x.array.dtype.kind in "fc" or is_float(x.dtype) else cast(x, config.floatx())


def is_float(dtype: DType) -> bool:
    """True if a dtype holds floats or complex numbers; bfloat16, whose kind NumPy does not know, does."""
    return dtype.is_floating or dtype.is_complex
