# Made by tests/make_stubs.py from the functions themselves.
from collections.abc import Callable
from minikeras.compiler.tracing.function import function as function
from minikeras.core.arrays.devices import device as device
from minikeras.core.convert import convert_to_tensor as convert_to_tensor
from minikeras.core.custom import custom_gradient as custom_gradient
from minikeras.core.custom import recompute_grad as recompute_grad
from minikeras.core.gradient_arguments import UnconnectedGradients as UnconnectedGradients
from minikeras.core.gradient_registry import RegisterGradient as RegisterGradient
from minikeras.core.gradient_registry import no_gradient as no_gradient
from minikeras.core.gradient_tape import GradientTape as GradientTape
from minikeras.core.indexed_slices import IndexedSlices as IndexedSlices
from minikeras.core.tensor import Tensor as Tensor
from minikeras.core.variable import Variable as Variable
from minikeras.core.variable import name_scope as name_scope
from minikeras.core.warnings import get_logger as get_logger
from minikeras.functions.assertions import Assert as Assert
from minikeras.functions.assertions import assert_rank as assert_rank
from minikeras.functions.contractions import einsum as einsum
from minikeras.functions.contractions import matmul as matmul
from minikeras.functions.contractions import tensordot as tensordot
from minikeras.functions.control_flow import TensorArray as TensorArray
from minikeras.functions.control_flow import case as case
from minikeras.functions.control_flow import cond as cond
from minikeras.functions.control_flow import grad_pass_through as grad_pass_through
from minikeras.functions.control_flow import map_fn as map_fn
from minikeras.functions.control_flow import scan as scan
from minikeras.functions.control_flow import switch_case as switch_case
from minikeras.functions.control_flow import vectorized_map as vectorized_map
from minikeras.functions.control_flow import while_loop as while_loop
from minikeras.functions.creation import constant as constant
from minikeras.functions.creation import eye as eye
from minikeras.functions.creation import fill as fill
from minikeras.functions.creation import linspace as linspace
from minikeras.functions.creation import meshgrid as meshgrid
from minikeras.functions.creation import one_hot as one_hot
from minikeras.functions.creation import ones as ones
from minikeras.functions.creation import ones_like as ones_like
from minikeras.functions.creation import range as range
from minikeras.functions.creation import rank as rank
from minikeras.functions.creation import sequence_mask as sequence_mask
from minikeras.functions.creation import shape as shape
from minikeras.functions.creation import size as size
from minikeras.functions.creation import zeros as zeros
from minikeras.functions.creation import zeros_like as zeros_like
from minikeras.functions.elementwise import add_n as add_n
from minikeras.functions.elementwise import bitcast as bitcast
from minikeras.functions.elementwise import cast as cast
from minikeras.functions.elementwise import clip_by_value as clip_by_value
from minikeras.functions.elementwise import complex as complex
from minikeras.functions.elementwise import identity as identity
from minikeras.functions.elementwise import round as round
from minikeras.functions.elementwise import saturate_cast as saturate_cast
from minikeras.functions.elementwise import scalar_mul as scalar_mul
from minikeras.functions.elementwise import where as where
from minikeras.functions.indexing import boolean_mask as boolean_mask
from minikeras.functions.indexing import dynamic_partition as dynamic_partition
from minikeras.functions.indexing import dynamic_stitch as dynamic_stitch
from minikeras.functions.indexing import gather as gather
from minikeras.functions.indexing import gather_nd as gather_nd
from minikeras.functions.indexing import reverse_sequence as reverse_sequence
from minikeras.functions.indexing import scatter_nd as scatter_nd
from minikeras.functions.indexing import slice_ as slice
from minikeras.functions.indexing import strided_slice as strided_slice
from minikeras.functions.indexing import take_along_axis as take_along_axis
from minikeras.functions.indexing import tensor_scatter_nd_update as tensor_scatter_nd_update
from minikeras.functions.indexing import unravel_index as unravel_index
from minikeras.functions.ordering import argsort as argsort
from minikeras.functions.ordering import histogram_fixed_width as histogram_fixed_width
from minikeras.functions.ordering import searchsorted as searchsorted
from minikeras.functions.ordering import sort as sort
from minikeras.functions.ordering import unique as unique
from minikeras.functions.ordering import unique_with_counts as unique_with_counts
from minikeras.functions.python import control_dependencies as control_dependencies
from minikeras.functions.python import executing_eagerly as executing_eagerly
from minikeras.functions.python import gradients as gradients
from minikeras.functions.python import group as group
from minikeras.functions.python import hessians as hessians
from minikeras.functions.python import init_scope as init_scope
from minikeras.functions.python import no_op as no_op
from minikeras.functions.python import numpy_function as numpy_function
from minikeras.functions.python import print_ as print
from minikeras.functions.python import py_function as py_function
from minikeras.functions.python import timestamp as timestamp
from minikeras.functions.reductions import clip_by_global_norm as clip_by_global_norm
from minikeras.functions.reductions import clip_by_norm as clip_by_norm
from minikeras.functions.reductions import cumsum as cumsum
from minikeras.functions.reductions import norm as norm
from minikeras.functions.shaping import broadcast_to as broadcast_to
from minikeras.functions.shaping import concat as concat
from minikeras.functions.shaping import ensure_shape as ensure_shape
from minikeras.functions.shaping import expand_dims as expand_dims
from minikeras.functions.shaping import is_tensor as is_tensor
from minikeras.functions.shaping import pad as pad
from minikeras.functions.shaping import repeat as repeat
from minikeras.functions.shaping import reshape as reshape
from minikeras.functions.shaping import reverse as reverse
from minikeras.functions.shaping import roll as roll
from minikeras.functions.shaping import split as split
from minikeras.functions.shaping import squeeze as squeeze
from minikeras.functions.shaping import stack as stack
from minikeras.functions.shaping import tile as tile
from minikeras.functions.shaping import transpose as transpose
from minikeras.functions.shaping import unstack as unstack
from minikeras.keras import initializers as initializers
from minikeras.keras import losses as losses
from minikeras.keras import metrics as metrics
from minikeras.keras import optimizers as optimizers
from minikeras.keras.initializers import Constant as constant_initializer
from minikeras.keras.initializers import Ones as ones_initializer
from minikeras.keras.initializers import RandomNormal as random_normal_initializer
from minikeras.keras.initializers import RandomUniform as random_uniform_initializer
from minikeras.keras.initializers import Zeros as zeros_initializer
from minikeras.module import Module as Module
from minikeras.types import Axis
from minikeras.types import DType as DType
from minikeras.types import DTypeLike
from minikeras.types import TensorLike
from minikeras.types import TensorShape as TensorShape
from minikeras.types import TensorSpec as TensorSpec
from minikeras.types import as_dtype as as_dtype
from typing import Any
import builtins

def abs(x: TensorLike, name: str | None = ...) -> Tensor: ...
def acos(x: TensorLike, name: str | None = ...) -> Tensor: ...
def acosh(x: TensorLike, name: str | None = ...) -> Tensor: ...
def add(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def argmax(input: TensorLike, axis: Axis = ..., output_type: DTypeLike = ..., name: str | None = ...) -> Tensor: ...
def argmin(input: TensorLike, axis: Axis = ..., output_type: DTypeLike = ..., name: str | None = ...) -> Tensor: ...
def asin(x: TensorLike, name: str | None = ...) -> Tensor: ...
def asinh(x: TensorLike, name: str | None = ...) -> Tensor: ...
def assert_equal(x: TensorLike, y: TensorLike, message: str | None = ..., summarize: Any = ..., name: str | None = ...) -> None: ...
def assert_greater(x: TensorLike, y: TensorLike, message: str | None = ..., summarize: Any = ..., name: str | None = ...) -> None: ...
def assert_less(x: TensorLike, y: TensorLike, message: str | None = ..., summarize: Any = ..., name: str | None = ...) -> None: ...
def atan(x: TensorLike, name: str | None = ...) -> Tensor: ...
def atan2(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def atanh(x: TensorLike, name: str | None = ...) -> Tensor: ...
bool: DType
complex128: DType
complex64: DType
def cos(x: TensorLike, name: str | None = ...) -> Tensor: ...
def cosh(x: TensorLike, name: str | None = ...) -> Tensor: ...
def divide(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
double: DType
def equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def exp(x: TensorLike, name: str | None = ...) -> Tensor: ...
float16: DType
float32: DType
float64: DType
def floor(x: TensorLike, name: str | None = ...) -> Tensor: ...
def foldl(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = ..., parallel_iterations: int = ..., back_prop: builtins.bool = ..., swap_memory: builtins.bool = ..., name: str | None = ...) -> Any: ...
def foldr(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = ..., parallel_iterations: int = ..., back_prop: builtins.bool = ..., swap_memory: builtins.bool = ..., name: str | None = ...) -> Any: ...
def greater(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def greater_equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
half: DType
int16: DType
int32: DType
int64: DType
int8: DType
def less(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def less_equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def logical_and(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def logical_not(x: TensorLike, name: str | None = ...) -> Tensor: ...
def logical_or(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def maximum(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def minimum(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def multiply(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def negative(x: TensorLike, name: str | None = ...) -> Tensor: ...
newaxis: None
def not_equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def pow(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def reduce_all(input_tensor: TensorLike, axis: Axis = ..., keepdims: builtins.bool = ..., name: str | None = ...) -> Tensor: ...
def reduce_any(input_tensor: TensorLike, axis: Axis = ..., keepdims: builtins.bool = ..., name: str | None = ...) -> Tensor: ...
def reduce_logsumexp(input_tensor: TensorLike, axis: Axis = ..., keepdims: builtins.bool = ..., name: str | None = ...) -> Tensor: ...
def reduce_max(input_tensor: TensorLike, axis: Axis = ..., keepdims: builtins.bool = ..., name: str | None = ...) -> Tensor: ...
def reduce_mean(input_tensor: TensorLike, axis: Axis = ..., keepdims: builtins.bool = ..., name: str | None = ...) -> Tensor: ...
def reduce_min(input_tensor: TensorLike, axis: Axis = ..., keepdims: builtins.bool = ..., name: str | None = ...) -> Tensor: ...
def reduce_prod(input_tensor: TensorLike, axis: Axis = ..., keepdims: builtins.bool = ..., name: str | None = ...) -> Tensor: ...
def reduce_sum(input_tensor: TensorLike, axis: Axis = ..., keepdims: builtins.bool = ..., name: str | None = ...) -> Tensor: ...
def sigmoid(x: TensorLike, name: str | None = ...) -> Tensor: ...
def sign(x: TensorLike, name: str | None = ...) -> Tensor: ...
def sin(x: TensorLike, name: str | None = ...) -> Tensor: ...
def sinh(x: TensorLike, name: str | None = ...) -> Tensor: ...
def sqrt(x: TensorLike, name: str | None = ...) -> Tensor: ...
def square(x: TensorLike, name: str | None = ...) -> Tensor: ...
def stop_gradient(x: TensorLike, name: str | None = ...) -> Tensor: ...
string: DType
def subtract(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
def tan(x: TensorLike, name: str | None = ...) -> Tensor: ...
def tanh(x: TensorLike, name: str | None = ...) -> Tensor: ...
def tensor_scatter_nd_add(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = ...) -> Tensor: ...
def tensor_scatter_nd_max(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = ...) -> Tensor: ...
def tensor_scatter_nd_min(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = ...) -> Tensor: ...
def tensor_scatter_nd_sub(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = ...) -> Tensor: ...
def truediv(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor: ...
uint16: DType
uint32: DType
uint64: DType
uint8: DType

__all__ = [
    "Assert",
    "DType",
    "GradientTape",
    "IndexedSlices",
    "Module",
    "RegisterGradient",
    "Tensor",
    "TensorArray",
    "TensorShape",
    "TensorSpec",
    "UnconnectedGradients",
    "Variable",
    "abs",
    "acos",
    "acosh",
    "add",
    "add_n",
    "argmax",
    "argmin",
    "argsort",
    "as_dtype",
    "asin",
    "asinh",
    "assert_equal",
    "assert_greater",
    "assert_less",
    "assert_rank",
    "atan",
    "atan2",
    "atanh",
    "bitcast",
    "bool",
    "boolean_mask",
    "broadcast_to",
    "case",
    "cast",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "complex",
    "complex128",
    "complex64",
    "concat",
    "cond",
    "constant",
    "constant_initializer",
    "control_dependencies",
    "convert_to_tensor",
    "cos",
    "cosh",
    "cumsum",
    "custom_gradient",
    "device",
    "divide",
    "double",
    "dynamic_partition",
    "dynamic_stitch",
    "einsum",
    "ensure_shape",
    "equal",
    "executing_eagerly",
    "exp",
    "expand_dims",
    "eye",
    "fill",
    "float16",
    "float32",
    "float64",
    "floor",
    "foldl",
    "foldr",
    "function",
    "gather",
    "gather_nd",
    "get_logger",
    "grad_pass_through",
    "gradients",
    "greater",
    "greater_equal",
    "group",
    "half",
    "hessians",
    "histogram_fixed_width",
    "identity",
    "init_scope",
    "initializers",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_tensor",
    "less",
    "less_equal",
    "linspace",
    "logical_and",
    "logical_not",
    "logical_or",
    "losses",
    "map_fn",
    "matmul",
    "maximum",
    "meshgrid",
    "metrics",
    "minimum",
    "multiply",
    "name_scope",
    "negative",
    "newaxis",
    "no_gradient",
    "no_op",
    "norm",
    "not_equal",
    "numpy_function",
    "one_hot",
    "ones",
    "ones_initializer",
    "ones_like",
    "optimizers",
    "pad",
    "pow",
    "print",
    "py_function",
    "random_normal_initializer",
    "random_uniform_initializer",
    "range",
    "rank",
    "recompute_grad",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "repeat",
    "reshape",
    "reverse",
    "reverse_sequence",
    "roll",
    "round",
    "saturate_cast",
    "scalar_mul",
    "scan",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "shape",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "size",
    "slice",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stop_gradient",
    "strided_slice",
    "string",
    "subtract",
    "switch_case",
    "take_along_axis",
    "tan",
    "tanh",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_max",
    "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
    "tensordot",
    "tile",
    "timestamp",
    "transpose",
    "truediv",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unique",
    "unique_with_counts",
    "unravel_index",
    "unstack",
    "vectorized_map",
    "where",
    "while_loop",
    "zeros",
    "zeros_initializer",
    "zeros_like",
]
