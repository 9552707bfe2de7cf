# mypy: implicit-reexport
"""The names of `tf`: this file holds nothing else. `minikeras` loads it when one of them is first used."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .compiler import function
from .core import (
    GradientTape, IndexedSlices, RegisterGradient, Tensor, UnconnectedGradients, Variable, convert_to_tensor, custom_gradient,
    no_gradient, recompute_grad
)
from .core.arrays import device
from .core.variable import name_scope
from .core.warnings import get_logger
from .functions.contractions import einsum, matmul, tensordot
from .functions.control_flow import (
    case, cond, foldl, foldr, grad_pass_through, map_fn, scan, switch_case, vectorized_map, while_loop
)
from .functions.creation import (
    constant, eye, fill, linspace, meshgrid, one_hot, ones, ones_like, range, rank, sequence_mask, shape, size, zeros,
    zeros_like
)
from .functions.elementwise import (
    abs, acos, acosh, add, add_n, asin, asinh, atan, atan2, atanh, bitcast, cast, clip_by_value, complex, cos, cosh, divide,
    equal, exp, floor, greater, greater_equal, identity, less, less_equal, logical_and, logical_not, logical_or, maximum,
    minimum, multiply, negative, not_equal, pow, round, saturate_cast, scalar_mul, sigmoid, sign, sin, sinh, sqrt, square,
    stop_gradient, subtract, tan, tanh, truediv, where
)
from .functions.indexing import (
    boolean_mask, dynamic_partition, dynamic_stitch, gather, gather_nd, reverse_sequence, scatter_nd, strided_slice,
    take_along_axis, tensor_scatter_nd_add, tensor_scatter_nd_max, tensor_scatter_nd_min, tensor_scatter_nd_sub,
    tensor_scatter_nd_update, unravel_index
)
from .functions.indexing import slice_ as slice
from .functions.ordering import argsort, histogram_fixed_width, searchsorted, sort, unique, unique_with_counts
from .functions.python import (
    control_dependencies, executing_eagerly, gradients, group, hessians, init_scope, no_op, numpy_function, py_function,
    timestamp
)
from .functions.python import print_ as print
from .functions.reductions import (
    argmax, argmin, clip_by_global_norm, clip_by_norm, cumsum, norm, reduce_all, reduce_any, reduce_logsumexp, reduce_max,
    reduce_mean, reduce_min, reduce_prod, reduce_sum
)
from .functions.shaping import (
    broadcast_to, concat, ensure_shape, expand_dims, is_tensor, pad, repeat, reshape, reverse, roll, split, squeeze, stack,
    tile, transpose, unstack
)
from .functions.symbols import publish as _publish
from .module import Module
from .types import (
    DType, TensorShape, TensorSpec, as_dtype, complex64, complex128, float16, float32, float64, int8, int16, int32, int64,
    string, uint8, uint16, uint32, uint64
)
from .types import boolean as bool
from .types import float16 as half
from .types import float64 as double

if _TYPE_CHECKING:
    from .aliases import (
        constant_initializer, ones_initializer, random_normal_initializer, random_uniform_initializer, zeros_initializer
    )
    from .functions.assertions import Assert, assert_equal, assert_greater, assert_less, assert_rank
    from .functions.control_flow import TensorArray
    from .keras import initializers, losses, metrics, optimizers

newaxis = None
_LATE = {
    **dict.fromkeys(("initializers", "losses", "metrics", "optimizers"), "keras"),
    "TensorArray": "functions.control_flow",
    **dict.fromkeys(("Assert", "assert_equal", "assert_greater", "assert_less", "assert_rank"), "functions.assertions"),
    **{f"{kind}_initializer": "aliases" for kind in ("constant", "ones", "random_normal", "random_uniform", "zeros")},
}
_publish(globals(), __package__, _LATE)
