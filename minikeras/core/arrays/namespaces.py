"""The library of an array, by its type; the names that kernels may ask of a library; and copies between host and device."""

from __future__ import annotations

import contextvars
import operator
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Self

import numpy as np

from ...types import Array

_NAMES = """
    abs add angle arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argsort asarray bincount bitwise_and
    bitwise_or bitwise_xor broadcast_to cbrt ceil concatenate conj cos cosh cumprod cumsum divide dtype einsum equal exp
    exp2 expand_dims expm1 eye flip floor fmax fmin from_dlpack full gcd greater greater_equal hypot invert isfinite isinf
    isnan lcm left_shift less less_equal log log10 log1p log2 logical_and logical_not logical_or logical_xor max maximum min
    minimum moveaxis multiply negative nextafter not_equal ones ones_like pad power repeat right_shift rint roll
    searchsorted sign sin sinh sort sqrt square stack subtract swapaxes take take_along_axis tan tanh tile tril triu trunc
    where zeros zeros_like fft.fftn fft.ifftn fft.irfft fft.rfft linalg.cholesky linalg.det linalg.eigh linalg.inv linalg.qr
    linalg.slogdet linalg.solve linalg.svd lib.stride_tricks.as_strided
"""
ALLOWED_NAMES = tuple(_NAMES.split())
"""The names that kernels may ask of a library: NumPy and CuPy both have them, with the same meaning.

CuPy's `max` and `min` have no `initial` and no `where`, `argsort` knows the kind 'stable' only, and `take` wraps indices
that are not checked beforehand.
"""

BARE: set[type] = {np.ndarray, *np.sctypeDict.values(), float, int, bool, complex}
"""Types on which a NumPy kernel may run at once: NumPy's own arrays and scalars, and Python numbers."""

_FOREIGN: dict[type, tuple[Any, Callable[[Array], np.ndarray[Any, Any]], str]] = {}

# NumPy's scalars have a fast path for operators (50 ns where the ufunc takes 570), arrays take the same time either
# way, and every array type implements them.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "negative": operator.neg,
    "power": operator.pow,
    "matmul": operator.matmul,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def register(array_type: type, namespace: Any, to_host: Callable[[Array], np.ndarray[Any, Any]], kind: str = "GPU") -> None:
    """Make arrays of another library known: its type, its NumPy-like namespace, how to copy one to the host, and the name
    of its kind of device."""
    _FOREIGN[array_type] = (namespace, to_host, kind)


def _register_cupy() -> bool:
    """Make CuPy's arrays known if some code has imported CuPy; nothing here imports it."""
    cupy = sys.modules.get("cupy")
    if cupy is None or not hasattr(cupy, "ndarray") or cupy.ndarray in _FOREIGN:
        return False
    register(cupy.ndarray, cupy, cupy.asnumpy)
    return True


def namespace(*arrays: Array) -> Any:
    """The library that works on these arrays: `numpy`, `cupy`, or a registered one. Python numbers fit any."""
    for array in arrays:
        if type(array) not in BARE:
            foreign = _FOREIGN.get(type(array))
            if foreign is not None:
                return foreign[0]
            if _register_cupy():
                return namespace(*arrays)
    return np


def is_array(value: object) -> bool:
    """True for arrays and array scalars of every known library, not for Python numbers, lists or Tensors."""
    kind = type(value)
    if isinstance(value, (np.ndarray, np.generic)) or kind in _FOREIGN:
        return True
    return kind.__module__.startswith("cupy") and _register_cupy()


def is_on_host(array: Array) -> bool:
    """True for an array or array scalar of NumPy, not for a Python number."""
    return isinstance(array, (np.ndarray, np.generic))


def to_numpy(array: Array) -> np.ndarray[Any, Any]:
    """The same numbers in host memory; NumPy arrays are returned as they are."""
    foreign = _FOREIGN.get(type(array))
    if foreign is None:
        return array
    for counter in counters:
        counter.note("host", array.nbytes)
    return foreign[1](array)


def device_name(array: Array) -> str:
    """'CPU:0', or 'GPU:' with the index for an array in GPU memory."""
    foreign = _FOREIGN.get(type(array))
    return "CPU:0" if foreign is None else f"{foreign[2]}:{array.device.id}"


def resolve(xp: ModuleType, name: str) -> Callable[..., Any]:
    """The callable for an elementwise function of that name: an operator where there is one, else `xp`'s ufunc."""
    return _OPERATORS.get(name) or getattr(xp, name)


# Warnings -------------------------------------------------------------------------------------------------------------

# Computing without NumPy's warnings about infinities and NaN, where those are legitimate results.
#
# NumPy keeps its error state in a context variable, so a function can run in a context of its own: 0.03 us, `errstate` 0.7.

_context = contextvars.Context()
_context.run(np.seterr, all="ignore")

quiet_context = _context.copy
"""`quiet_context().run(function, *arguments)` runs it with NumPy's floating-point warnings off."""


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, run with NumPy's floating-point warnings off.

    >>> float(quiet(np.log)(0.0))
    -inf
    """
    return lambda *arguments, **options: quiet_context().run(function, *arguments, **options)


# Transfers ------------------------------------------------------------------------------------------------------------

# What is copied between host and device, for those who count it. The two ways are `to_device` and `to_numpy`.


class Transfers:
    """Copies between the memory of the host and that of devices within a `with` block, in all threads.

    Attributes:
        to_device, to_host: how many copies there were.
        bytes_to_device, bytes_to_host: how much they moved.
    """

    def __init__(self) -> None:
        self.to_device = self.to_host = self.bytes_to_device = self.bytes_to_host = 0

    def __enter__(self) -> Self:
        counters.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        counters.remove(self)

    def __repr__(self) -> str:
        there, back = (f"{vars(self)[f'to_{to}']} of {vars(self)[f'bytes_to_{to}']:,} bytes" for to in ("device", "host"))
        return f"<Transfers to devices: {there}, to the host: {back}>"

    def note(self, to: str, size: int) -> None:
        """Count a copy of `size` bytes to the 'device' or the 'host'."""
        vars(self)[f"to_{to}"] += 1
        vars(self)[f"bytes_to_{to}"] += size


counters: list[Transfers] = []
"""The counters that are active now."""
