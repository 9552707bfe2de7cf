"""Which library an array belongs to, by its type, and the names that library may be asked for."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..types import Array

ALLOWED_NAMES: dict[str, str] = {
    "abs": "absolute value",
    "add": "sum; `add.at` adds at positions that may repeat",
    "angle": "argument of complex numbers",
    "arange": "0, 1, ..., n - 1",
    "arccos": "inverse cosine",
    "arccosh": "inverse hyperbolic cosine",
    "arcsin": "inverse sine",
    "arcsinh": "inverse hyperbolic sine",
    "arctan": "inverse tangent",
    "arctan2": "angle of a point",
    "arctanh": "inverse hyperbolic tangent",
    "argsort": "positions in sorted order; kind 'stable' or none",
    "asarray": "host array, number or device array as a device array",
    "bitwise_and": "conjunction, bit by bit",
    "bitwise_or": "disjunction, bit by bit",
    "bitwise_xor": "exclusive disjunction, bit by bit",
    "broadcast_to": "repeated to a shape",
    "ceil": "smallest integer not below",
    "concatenate": "joined along an axis",
    "conj": "complex conjugate",
    "cos": "cosine",
    "cosh": "hyperbolic cosine",
    "cumprod": "running product",
    "cumsum": "running sum",
    "divide": "quotient",
    "dtype": "element type from a name",
    "einsum": "Einstein's sum, with `optimize`",
    "equal": "equality",
    "exp": "exponential",
    "expand_dims": "a new axis of size 1",
    "expm1": "exponential minus one",
    "eye": "identity matrix",
    "flip": "reversed along axes",
    "floor": "largest integer not above",
    "from_dlpack": "array of another library, in the same memory",
    "full": "one value repeated",
    "greater": "order",
    "greater_equal": "order",
    "invert": "negation, bit by bit",
    "isfinite": "neither NaN nor infinite",
    "isinf": "infinite",
    "isnan": "NaN",
    "left_shift": "bits moved to higher places",
    "less": "order",
    "less_equal": "order",
    "log": "natural logarithm",
    "log1p": "logarithm of one plus x",
    "logical_and": "conjunction",
    "logical_not": "negation",
    "logical_or": "disjunction",
    "logical_xor": "exclusive disjunction",
    "max": "maximum along axes, without `initial` and `where`",
    "maximum": "larger of two",
    "min": "minimum along axes, without `initial` and `where`",
    "minimum": "smaller of two",
    "moveaxis": "axes to other places",
    "multiply": "product",
    "negative": "negation",
    "not_equal": "inequality",
    "ones": "ones of a shape",
    "ones_like": "ones of the shape of another array",
    "pad": "elements added around",
    "power": "power",
    "right_shift": "bits moved to lower places",
    "rint": "nearest integer",
    "roll": "elements moved around",
    "sign": "sign",
    "sin": "sine",
    "sinh": "hyperbolic sine",
    "sqrt": "square root",
    "square": "square",
    "stack": "joined along a new axis",
    "subtract": "difference",
    "swapaxes": "two axes exchanged",
    "take": "picked along an axis; indices are checked beforehand, since they wrap on a GPU",
    "take_along_axis": "picked along an axis, indices of the same rank",
    "tan": "tangent",
    "tanh": "hyperbolic tangent",
    "tile": "repeated along axes",
    "tril": "lower triangles",
    "triu": "upper triangles",
    "trunc": "integer part",
    "where": "choice between two, with three arguments",
    "zeros": "zeros of a shape",
    "zeros_like": "zeros of the shape of another array",
    "linalg.cholesky": "lower triangular factor",
    "linalg.det": "determinant",
    "linalg.eigh": "eigenvalues and eigenvectors of symmetric matrices",
    "linalg.inv": "inverse",
    "linalg.qr": "orthogonal times upper triangular",
    "linalg.slogdet": "sign and logarithm of the determinant",
    "linalg.solve": "solution of linear equations",
    "linalg.svd": "singular value decomposition",
}
"""What kernels may ask of a library: names that NumPy and CuPy both have, with the meaning that both share."""

BARE: set[type] = {np.ndarray, *np.sctypeDict.values(), float, int, bool, complex}
"""Types on which a NumPy kernel may run at once: NumPy's own arrays and scalars, and Python numbers."""

_FOREIGN: dict[type, tuple[Any, Callable[[Array], np.ndarray[Any, Any]]]] = {}

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


def register(array_type: type, namespace: Any, to_host: Callable[[Array], np.ndarray[Any, Any]]) -> None:
    """Make arrays of another library known: its type, its NumPy-like namespace, and how to copy one to the host."""
    _FOREIGN[array_type] = (namespace, to_host)


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


def is_array(value: Any) -> bool:
    """True for arrays and array scalars of every known library, not for Python numbers, lists or Tensors."""
    kind = type(value)
    if isinstance(value, (np.ndarray, np.generic)) or kind in _FOREIGN:
        return True
    return kind.__module__.startswith("cupy") and _register_cupy()


def to_numpy(array: Array) -> np.ndarray[Any, Any]:
    """The same numbers in host memory; NumPy arrays are returned as they are."""
    foreign = _FOREIGN.get(type(array))
    return foreign[1](array) if foreign is not None else array


def resolve(xp: Any, name: str) -> Callable[..., Any]:
    """The callable for an elementwise function of that name: an operator where there is one, else `xp`'s ufunc."""
    return _OPERATORS.get(name) or getattr(xp, name)
