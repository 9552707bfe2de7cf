# Made by tests/make_stubs.py from the functions themselves.
from collections.abc import Sequence
from minikeras.core.tensor import Tensor
from minikeras.keras.ops.numpy.creation import arange as arange
from minikeras.keras.ops.numpy.creation import array as array
from minikeras.keras.ops.numpy.creation import bartlett as bartlett
from minikeras.keras.ops.numpy.creation import blackman as blackman
from minikeras.keras.ops.numpy.creation import empty as empty
from minikeras.keras.ops.numpy.creation import eye as eye
from minikeras.keras.ops.numpy.creation import full_like as full_like
from minikeras.keras.ops.numpy.creation import geomspace as geomspace
from minikeras.keras.ops.numpy.creation import hamming as hamming
from minikeras.keras.ops.numpy.creation import hanning as hanning
from minikeras.keras.ops.numpy.creation import identity as identity
from minikeras.keras.ops.numpy.creation import kaiser as kaiser
from minikeras.keras.ops.numpy.creation import linspace as linspace
from minikeras.keras.ops.numpy.creation import logspace as logspace
from minikeras.keras.ops.numpy.creation import ones as ones
from minikeras.keras.ops.numpy.creation import tri as tri
from minikeras.keras.ops.numpy.creation import vander as vander
from minikeras.keras.ops.numpy.creation import view as view
from minikeras.keras.ops.numpy.creation import zeros as zeros
from minikeras.keras.ops.numpy.elementwise import clip as clip
from minikeras.keras.ops.numpy.elementwise import fmod as fmod
from minikeras.keras.ops.numpy.elementwise import heaviside as heaviside
from minikeras.keras.ops.numpy.elementwise import isclose as isclose
from minikeras.keras.ops.numpy.elementwise import isreal as isreal
from minikeras.keras.ops.numpy.elementwise import ldexp as ldexp
from minikeras.keras.ops.numpy.elementwise import logaddexp2 as logaddexp2
from minikeras.keras.ops.numpy.elementwise import nan_to_num as nan_to_num
from minikeras.keras.ops.numpy.elementwise import round as round
from minikeras.keras.ops.numpy.elementwise import signbit as signbit
from minikeras.keras.ops.numpy.elementwise import sinc as sinc
from minikeras.keras.ops.numpy.elementwise import square as square
from minikeras.keras.ops.numpy.elementwise import trunc as trunc
from minikeras.keras.ops.numpy.elementwise import vectorize as vectorize
from minikeras.keras.ops.numpy.indexing import diag as diag
from minikeras.keras.ops.numpy.indexing import diagflat as diagflat
from minikeras.keras.ops.numpy.indexing import diagonal as diagonal
from minikeras.keras.ops.numpy.indexing import get_item as get_item
from minikeras.keras.ops.numpy.indexing import nonzero as nonzero
from minikeras.keras.ops.numpy.indexing import select as select
from minikeras.keras.ops.numpy.indexing import take as take
from minikeras.keras.ops.numpy.indexing import take_along_axis as take_along_axis
from minikeras.keras.ops.numpy.indexing import trace as trace
from minikeras.keras.ops.numpy.indexing import tril as tril
from minikeras.keras.ops.numpy.indexing import triu as triu
from minikeras.keras.ops.numpy.indexing import unravel_index as unravel_index
from minikeras.keras.ops.numpy.indexing import where as where
from minikeras.keras.ops.numpy.products import cross as cross
from minikeras.keras.ops.numpy.products import diff as diff
from minikeras.keras.ops.numpy.products import dot as dot
from minikeras.keras.ops.numpy.products import einsum as einsum
from minikeras.keras.ops.numpy.products import inner as inner
from minikeras.keras.ops.numpy.products import kron as kron
from minikeras.keras.ops.numpy.products import matmul as matmul
from minikeras.keras.ops.numpy.products import outer as outer
from minikeras.keras.ops.numpy.products import slogdet as slogdet
from minikeras.keras.ops.numpy.products import tensordot as tensordot
from minikeras.keras.ops.numpy.products import trapezoid as trapezoid
from minikeras.keras.ops.numpy.products import vdot as vdot
from minikeras.keras.ops.numpy.reductions import average as average
from minikeras.keras.ops.numpy.shaping import array_split as array_split
from minikeras.keras.ops.numpy.shaping import concatenate as concatenate
from minikeras.keras.ops.numpy.shaping import expand_dims as expand_dims
from minikeras.keras.ops.numpy.shaping import flip as flip
from minikeras.keras.ops.numpy.shaping import hsplit as hsplit
from minikeras.keras.ops.numpy.shaping import hstack as hstack
from minikeras.keras.ops.numpy.shaping import meshgrid as meshgrid
from minikeras.keras.ops.numpy.shaping import moveaxis as moveaxis
from minikeras.keras.ops.numpy.shaping import pad as pad
from minikeras.keras.ops.numpy.shaping import roll as roll
from minikeras.keras.ops.numpy.shaping import rot90 as rot90
from minikeras.keras.ops.numpy.shaping import split as split
from minikeras.keras.ops.numpy.shaping import stack as stack
from minikeras.keras.ops.numpy.shaping import swapaxes as swapaxes
from minikeras.keras.ops.numpy.shaping import tile as tile
from minikeras.keras.ops.numpy.statistics import argpartition as argpartition
from minikeras.keras.ops.numpy.statistics import argsort as argsort
from minikeras.keras.ops.numpy.statistics import bincount as bincount
from minikeras.keras.ops.numpy.statistics import corrcoef as corrcoef
from minikeras.keras.ops.numpy.statistics import correlate as correlate
from minikeras.keras.ops.numpy.statistics import digitize as digitize
from minikeras.keras.ops.numpy.statistics import histogram as histogram
from minikeras.keras.ops.numpy.statistics import isin as isin
from minikeras.keras.ops.numpy.statistics import quantile as quantile
from minikeras.keras.ops.numpy.statistics import searchsorted as searchsorted
from minikeras.keras.ops.numpy.statistics import sort as sort
from minikeras.keras.ops.numpy.statistics import unique as unique
from minikeras.types import Axis
from minikeras.types import DTypeLike
from minikeras.types import ShapeLike
from minikeras.types import TensorLike
from typing import Any

def abs(x: TensorLike) -> Tensor: ...
def absolute(x: TensorLike) -> Tensor: ...
def add(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def all(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def allclose(x1: TensorLike, x2: TensorLike, rtol: float = ..., atol: float = ..., equal_nan: bool = ...) -> Tensor: ...
def amax(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def amin(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def angle(x: TensorLike) -> Tensor: ...
def any(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def append(x1: TensorLike, x2: TensorLike, axis: Axis = ...) -> Tensor: ...
def arccos(x: TensorLike) -> Tensor: ...
def arccosh(x: TensorLike) -> Tensor: ...
def arcsin(x: TensorLike) -> Tensor: ...
def arcsinh(x: TensorLike) -> Tensor: ...
def arctan(x: TensorLike) -> Tensor: ...
def arctan2(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def arctanh(x: TensorLike) -> Tensor: ...
def argmax(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def argmin(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def bitwise_and(x: TensorLike, y: TensorLike) -> Tensor: ...
def bitwise_invert(x: TensorLike) -> Tensor: ...
def bitwise_left_shift(x: TensorLike, y: TensorLike) -> Tensor: ...
def bitwise_not(x: TensorLike) -> Tensor: ...
def bitwise_or(x: TensorLike, y: TensorLike) -> Tensor: ...
def bitwise_right_shift(x: TensorLike, y: TensorLike) -> Tensor: ...
def bitwise_xor(x: TensorLike, y: TensorLike) -> Tensor: ...
def broadcast_to(x: TensorLike, shape: ShapeLike) -> Tensor: ...
def cbrt(x: TensorLike) -> Tensor: ...
def ceil(x: TensorLike) -> Tensor: ...
def conj(x: TensorLike) -> Tensor: ...
def conjugate(x: TensorLike) -> Tensor: ...
def copy(x: TensorLike) -> Tensor: ...
def cos(x: TensorLike) -> Tensor: ...
def cosh(x: TensorLike) -> Tensor: ...
def count_nonzero(x: TensorLike, axis: Axis = ...) -> Tensor: ...
def cumprod(x: TensorLike, axis: Axis = ..., dtype: DTypeLike = ...) -> Tensor: ...
def cumsum(x: TensorLike, axis: Axis = ..., dtype: DTypeLike = ...) -> Tensor: ...
def deg2rad(x: TensorLike) -> Tensor: ...
def divide(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def divide_no_nan(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def dsplit(x: TensorLike, indices_or_sections: Any) -> list[Tensor]: ...
def dstack(xs: Sequence[TensorLike]) -> Tensor: ...
def empty_like(x: TensorLike, dtype: DTypeLike = ...) -> Tensor: ...
def equal(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def exp(x: TensorLike) -> Tensor: ...
def exp2(x: TensorLike) -> Tensor: ...
def expm1(x: TensorLike) -> Tensor: ...
def fabs(x: TensorLike) -> Tensor: ...
def fliplr(x: TensorLike) -> Tensor: ...
def flipud(x: TensorLike) -> Tensor: ...
def floor(x: TensorLike) -> Tensor: ...
def floor_divide(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def fmax(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def fmin(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def full(shape: ShapeLike, fill_value: TensorLike, dtype: DTypeLike = ...) -> Tensor: ...
def gcd(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def greater(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def greater_equal(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def hypot(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def i0(x: TensorLike) -> Tensor: ...
def imag(x: TensorLike) -> Tensor: ...
def isfinite(x: TensorLike) -> Tensor: ...
def isinf(x: TensorLike) -> Tensor: ...
def isnan(x: TensorLike) -> Tensor: ...
def isneginf(x: TensorLike) -> Tensor: ...
def isposinf(x: TensorLike) -> Tensor: ...
def lcm(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def left_shift(x: TensorLike, y: TensorLike) -> Tensor: ...
def less(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def less_equal(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def log(x: TensorLike) -> Tensor: ...
def log10(x: TensorLike) -> Tensor: ...
def log1p(x: TensorLike) -> Tensor: ...
def log2(x: TensorLike) -> Tensor: ...
def logaddexp(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def logical_and(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def logical_not(x: TensorLike) -> Tensor: ...
def logical_or(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def logical_xor(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def max(x: TensorLike, axis: Axis = ..., keepdims: bool = ..., initial: float | None = ...) -> Tensor: ...
def maximum(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def mean(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def median(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def min(x: TensorLike, axis: Axis = ..., keepdims: bool = ..., initial: float | None = ...) -> Tensor: ...
def minimum(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def mod(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def multiply(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def nanargmax(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def nanargmin(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def nancumprod(x: TensorLike, axis: Axis = ..., dtype: DTypeLike = ...) -> Tensor: ...
def nancumsum(x: TensorLike, axis: Axis = ..., dtype: DTypeLike = ...) -> Tensor: ...
def nanmax(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def nanmean(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def nanmedian(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def nanmin(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def nanpercentile(x: TensorLike, q: TensorLike, axis: Axis = ..., method: str = ..., keepdims: bool = ...) -> Tensor: ...
def nanprod(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def nanquantile(x: TensorLike, q: TensorLike, axis: Axis = ..., method: str = ..., keepdims: bool = ...) -> Tensor: ...
def nanstd(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def nansum(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def nanvar(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def ndim(x: TensorLike) -> Tensor: ...
def negative(x: TensorLike) -> Tensor: ...
def nextafter(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def not_equal(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def ones_like(x: TensorLike, dtype: DTypeLike = ...) -> Tensor: ...
def percentile(x: TensorLike, q: TensorLike, axis: Axis = ..., method: str = ..., keepdims: bool = ...) -> Tensor: ...
def power(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def prod(x: TensorLike, axis: Axis = ..., keepdims: bool = ..., dtype: DTypeLike = ...) -> Tensor: ...
def ptp(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def rad2deg(x: TensorLike) -> Tensor: ...
def ravel(x: TensorLike) -> Tensor: ...
def real(x: TensorLike) -> Tensor: ...
def reciprocal(x: TensorLike) -> Tensor: ...
def repeat(x: TensorLike, repeats: ShapeLike, axis: Axis = ...) -> Tensor: ...
def reshape(x: TensorLike, newshape: ShapeLike) -> Tensor: ...
def right_shift(x: TensorLike, y: TensorLike) -> Tensor: ...
def sign(x: TensorLike) -> Tensor: ...
def sin(x: TensorLike) -> Tensor: ...
def sinh(x: TensorLike) -> Tensor: ...
def size(x: TensorLike) -> Tensor: ...
def sqrt(x: TensorLike) -> Tensor: ...
def squeeze(x: TensorLike, axis: Axis = ...) -> Tensor: ...
def std(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def subtract(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def sum(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def tan(x: TensorLike) -> Tensor: ...
def tanh(x: TensorLike) -> Tensor: ...
def transpose(x: TensorLike, axes: Axis = ...) -> Tensor: ...
def true_divide(x1: TensorLike, x2: TensorLike) -> Tensor: ...
def var(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def vsplit(x: TensorLike, indices_or_sections: Any) -> list[Tensor]: ...
def vstack(xs: Sequence[TensorLike]) -> Tensor: ...
def zeros_like(x: TensorLike, dtype: DTypeLike = ...) -> Tensor: ...

__all__ = [
    "abs",
    "absolute",
    "add",
    "all",
    "allclose",
    "amax",
    "amin",
    "angle",
    "any",
    "append",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "array",
    "array_split",
    "average",
    "bartlett",
    "bincount",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "blackman",
    "broadcast_to",
    "cbrt",
    "ceil",
    "clip",
    "concatenate",
    "conj",
    "conjugate",
    "copy",
    "corrcoef",
    "correlate",
    "cos",
    "cosh",
    "count_nonzero",
    "cross",
    "cumprod",
    "cumsum",
    "deg2rad",
    "diag",
    "diagflat",
    "diagonal",
    "diff",
    "digitize",
    "divide",
    "divide_no_nan",
    "dot",
    "dsplit",
    "dstack",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "eye",
    "fabs",
    "flip",
    "fliplr",
    "flipud",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "full",
    "full_like",
    "gcd",
    "geomspace",
    "get_item",
    "greater",
    "greater_equal",
    "hamming",
    "hanning",
    "heaviside",
    "histogram",
    "hsplit",
    "hstack",
    "hypot",
    "i0",
    "identity",
    "imag",
    "inner",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "kaiser",
    "kron",
    "lcm",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "linspace",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logspace",
    "matmul",
    "max",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "min",
    "minimum",
    "mod",
    "moveaxis",
    "multiply",
    "nan_to_num",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "ndim",
    "negative",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "percentile",
    "power",
    "prod",
    "ptp",
    "quantile",
    "rad2deg",
    "ravel",
    "real",
    "reciprocal",
    "repeat",
    "reshape",
    "right_shift",
    "roll",
    "rot90",
    "round",
    "searchsorted",
    "select",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "size",
    "slogdet",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "trace",
    "transpose",
    "trapezoid",
    "tri",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "unique",
    "unravel_index",
    "vander",
    "var",
    "vdot",
    "vectorize",
    "view",
    "vsplit",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]
