"""Products of matrices by cublasLt, called through ctypes: CuPy refuses cuBLAS while a stream is captured, CUDA does not.

cublasLt counts in columns: the rows of a matrix of ours are the columns of its transpose there. So of y = a @ b it is asked
y^T = b^T @ a^T; its vectors along the rows of y^T, a bias, then lie along the columns of y, as a layer's do.
Source: NVIDIA, cuBLAS 13 documentation, "Using the cuBLASLt API", whose numbers stand below.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from ...loops import Body
from ...planning import DEVICE_ALIGNMENT

WORKSPACE = 32 << 20
"""Bytes that algorithms may use. They are fixed: memory that cuBLAS allocates itself would become a part of the graph."""


class Epilogue(IntEnum):
    """Operations on a product before it is written."""

    NONE = 1
    BIAS = 4
    RELU_BIAS = 6
    RELU_MASK_BIAS = 134
    """RELU_BIAS, and a bit for each element, 1 if it was above 0 (RELU_AUX_BIAS)."""
    MASKED = 136
    """The gradient of such a ReLU: elements whose bit is 0 become 0 (DRELU)."""
    MASKED_BIAS_GRADIENT = 152
    """The same, and the sum over rows goes into the vector (DRELU_BGRAD)."""
    BIAS_GRADIENT = 256
    """The sum of the second factor over its rows goes into the vector (BGRADA: it is cublasLt's first matrix)."""


def epilogue_of(body: Body | None) -> Epilogue | None:
    """The epilogue that equals a body of two operands; None without one."""
    if body is None:
        return None
    functions = [step.function for step in body.steps]
    if body.numbers or len(body.inputs) != 2 or functions[:1] != ["add"] or sorted(body.steps[0].operands) != [0, 1]:
        return None
    total = body.steps[0].register
    if functions == ["add"]:
        return Epilogue.BIAS if body.outputs == (total,) and not body.literals else None
    literals = dict(body.literals)
    last = body.steps[-1]
    zero = functions == ["add", "maximum"] and last.operands[0] == total and literals.get(last.operands[1]) == 0
    return Epilogue.RELU_BIAS if zero and body.outputs == (last.register,) else None


class MatrixProduct(NamedTuple):
    """y = a @ b with rows one after another: (rows, depth) @ (depth, columns), each factor perhaps held as its transpose."""

    rows: int
    columns: int
    depth: int
    a_is_transposed: bool
    b_is_transposed: bool
    dtype: np.dtype[Any]
    epilogue: Epilogue = Epilogue.NONE

    @property
    def matrices(self) -> list[tuple[int, ...]]:
        """Rows and columns in memory of cublasLt's a, b and d, in column-major order: its first matrix is our second one.

        >>> MatrixProduct(32, 10, 64, False, True, np.dtype("float32")).matrices
        [(64, 10), (64, 32), (10, 32)]
        """
        shapes = (self.columns, self.depth), (self.depth, self.rows), (self.columns, self.rows)
        turned = self.b_is_transposed, self.a_is_transposed, False
        return [shape[::-1] if flag else shape for shape, flag in zip(shapes, turned, strict=True)]


def mask_width(rows: int) -> int:
    """The bits of a mask from a column to the next, for so many elements: a multiple of 128."""
    return -(-rows // 128) * 128


class Operands(NamedTuple):
    """Addresses: of cublasLt's a, b and d, and of the vector and the mask of the epilogue, or 0."""

    a: int
    b: int
    d: int
    vector: int = 0
    mask: int = 0


class ProductDtype(NamedTuple):
    """cublasLt's numbers for a dtype: of the elements, of the accumulation, and of the scale factors, with their C type."""

    elements: int
    compute: int
    scale: int
    factor: Any


KINDS = {
    "float32": ProductDtype(0, 68, 0, ctypes.c_float),
    "float64": ProductDtype(1, 70, 1, ctypes.c_double),
    "float16": ProductDtype(2, 68, 0, ctypes.c_float),
    "bfloat16": ProductDtype(14, 68, 0, ctypes.c_float),
}
"""By name. float32 is computed as float32: TF32 would keep 10 bits of each factor. Those of 16 bits are added up in float32,
with the bias, and rounded once."""
_TRANSPOSE_A, _TRANSPOSE_B, _EPILOGUE, _VECTOR, _MASK, _MASK_LEADING = 3, 4, 7, 8, 11, 12
"""Attributes of a product."""
_WORKSPACE_BYTES, _REDUCTIONS = 1, 3
"""Attributes of a preference."""
_IN_WORKSPACE = 2
"""The reduction over parts of the depth: in the workspace, in the precision of the computation, in one order."""


class _Heuristic(ctypes.Structure):
    _fields_ = [
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    ]


class CublasLt:
    """The library, with a workspace on the current device.

    Args:
        library: of ctypes.
        workspace: its address; `WORKSPACE` bytes.
    """

    def __init__(self, library: Any, workspace: int) -> None:
        self._library, self._workspace = library, workspace
        self._handle = self._made("cublasLtCreate")
        self._algorithms: dict[MatrixProduct, Any] = {}

    def prepare(self, product: MatrixProduct, operands: Operands) -> Callable[[int], None] | None:
        """A function of a stream that enqueues the product; None if the library has no algorithm for it, or for such addresses.

        Algorithms are asked for once for each shape, and never while a stream is captured, where CUDA 13.3 fails.
        """
        if any(address % DEVICE_ALIGNMENT for address in operands):
            return None
        kind = KINDS[product.dtype.name]
        description = self._made("cublasLtMatmulDescCreate", ctypes.c_int(kind.compute), ctypes.c_int(kind.scale))
        self._set("cublasLtMatmulDescSetAttribute", description, _TRANSPOSE_A, ctypes.c_int(product.b_is_transposed))
        self._set("cublasLtMatmulDescSetAttribute", description, _TRANSPOSE_B, ctypes.c_int(product.a_is_transposed))
        self._set("cublasLtMatmulDescSetAttribute", description, _EPILOGUE, ctypes.c_uint32(product.epilogue))
        if operands.vector:
            self._set("cublasLtMatmulDescSetAttribute", description, _VECTOR, ctypes.c_void_p(operands.vector))
        if operands.mask:
            self._set("cublasLtMatmulDescSetAttribute", description, _MASK, ctypes.c_void_p(operands.mask))
            leading = ctypes.c_int64(mask_width(product.columns))
            self._set("cublasLtMatmulDescSetAttribute", description, _MASK_LEADING, leading)
        layouts = [self._layout(kind, *shape) for shape in product.matrices]
        if product not in self._algorithms:
            self._algorithms[product] = self._algorithm(description, layouts)
        algorithm = self._algorithms[product]
        if algorithm is None:
            self._destroy(description, layouts)
            return None
        one, zero = kind.factor(1.0), kind.factor(0.0)
        a, b, d = [ctypes.c_void_p(address) for address in operands[:3]]
        arguments = [self._handle, description, ctypes.byref(one), a, layouts[0], b, layouts[1], ctypes.byref(zero)]
        arguments += [d, layouts[2], d, layouts[2], ctypes.byref(algorithm), ctypes.c_void_p(self._workspace)]
        arguments.append(ctypes.c_size_t(WORKSPACE))

        def enqueue(stream: int) -> None:
            self._call("cublasLtMatmul", *arguments, ctypes.c_void_p(stream))

        weakref.finalize(enqueue, self._destroy, description, layouts)
        return enqueue

    def _destroy(self, description: Any, layouts: list[Any]) -> None:
        self._library.cublasLtMatmulDescDestroy(description)
        for layout in layouts:
            self._library.cublasLtMatrixLayoutDestroy(layout)

    def _algorithm(self, description: Any, layouts: list[Any]) -> Any:
        """The first algorithm that the library proposes, or None."""
        a, b, d = layouts
        preference = self._made("cublasLtMatmulPreferenceCreate")
        self._set("cublasLtMatmulPreferenceSetAttribute", preference, _WORKSPACE_BYTES, ctypes.c_uint64(WORKSPACE))
        self._set("cublasLtMatmulPreferenceSetAttribute", preference, _REDUCTIONS, ctypes.c_uint32(_IN_WORKSPACE))
        found, count = _Heuristic(), ctypes.c_int(0)
        ask = self._library.cublasLtMatmulAlgoGetHeuristic
        status = ask(self._handle, description, a, b, d, d, preference, 1, ctypes.byref(found), ctypes.byref(count))
        self._call("cublasLtMatmulPreferenceDestroy", preference)
        return (ctypes.c_uint64 * 8)(*found.algorithm) if status == 0 and count.value and found.state == 0 else None

    def _layout(self, kind: ProductDtype, rows: int, columns: int) -> Any:
        sizes = ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows)
        return self._made("cublasLtMatrixLayoutCreate", ctypes.c_int(kind.elements), *sizes)

    def _made(self, function: str, *arguments: Any) -> Any:
        """The object that a function creates behind its first pointer."""
        made = ctypes.c_void_p()
        self._call(function, ctypes.byref(made), *arguments)
        return made

    def _set(self, function: str, of: Any, attribute: int, value: Any) -> None:
        self._call(function, of, ctypes.c_int(attribute), ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise RuntimeError(f"{function} failed with cuBLAS status {status}.")


def library() -> Any:
    """The library cublasLt, found where CuPy finds its libraries."""
    from cuda import pathfinder

    return ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("cublasLt").abs_path)
