# mypy: implicit-reexport
"""The names of `tf`: this file holds nothing else. `minikeras` loads it when one of them is first used."""

from . import compiler, core, module, types
from .core import arrays, variable, warnings
from .functions import contractions, control_flow, creation, elementwise, indexing, ordering, python, reductions, shaping
from .functions.catalogue import publish as _publish

newaxis = None
_LATE = {
    **dict.fromkeys(("initializers", "losses", "metrics", "optimizers"), "keras"),
    "TensorArray": "functions.control_flow",
    **dict.fromkeys(("Assert", "assert_equal", "assert_greater", "assert_less", "assert_rank"), "functions.assertions"),
    **{f"{name}_initializer": f"keras.initializers:{name.capitalize()}" for name in ("constant", "ones", "zeros")},
    "random_normal_initializer": "keras.initializers:RandomNormal",
    "random_uniform_initializer": "keras.initializers:RandomUniform",
}
_publish(
    globals(),
    {
        contractions: "einsum matmul tensordot",
        control_flow: "case cond foldl foldr grad_pass_through map_fn scan switch_case vectorized_map while_loop",
        creation: """constant eye fill linspace meshgrid one_hot ones ones_like range rank sequence_mask shape size zeros
            zeros_like""",
        elementwise: """abs acos acosh add add_n asin asinh atan atan2 atanh bitcast cast clip_by_value complex cos cosh
            divide equal exp floor greater greater_equal identity less less_equal logical_and logical_not logical_or maximum
            minimum multiply negative not_equal pow round saturate_cast scalar_mul sigmoid sign sin sinh sqrt square
            stop_gradient subtract tan tanh truediv where""",
        indexing: """boolean_mask dynamic_partition dynamic_stitch gather gather_nd reverse_sequence scatter_nd
            strided_slice take_along_axis tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min
            tensor_scatter_nd_sub tensor_scatter_nd_update unravel_index slice:slice_""",
        ordering: "argsort histogram_fixed_width searchsorted sort unique unique_with_counts",
        python: """control_dependencies executing_eagerly gradients group hessians init_scope no_op numpy_function
            py_function timestamp print:print_""",
        reductions: """argmax argmin clip_by_global_norm clip_by_norm cumsum norm reduce_all reduce_any reduce_logsumexp
            reduce_max reduce_mean reduce_min reduce_prod reduce_sum""",
        shaping: """broadcast_to concat ensure_shape expand_dims is_tensor pad repeat reshape reverse roll split squeeze
            stack tile transpose unstack""",
    },
    {
        compiler: "function",
        core: """GradientTape IndexedSlices RegisterGradient Tensor UnconnectedGradients Variable convert_to_tensor
            custom_gradient no_gradient recompute_grad""",
        arrays: "device",
        variable: "name_scope",
        warnings: "get_logger",
        module: "Module",
        types: """DType TensorShape TensorSpec as_dtype complex64 complex128 float16 float32 float64 int8 int16 int32 int64
            string uint8 uint16 uint32 uint64 bool:boolean half:float16 double:float64""",
    },
    _LATE,
    __package__,
)
