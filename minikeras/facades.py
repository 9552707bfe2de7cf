"""Modules that hold names alone, such as `tf.math` and `keras.ops.numpy`: rows of a table. No file stands for one of them.

Python asks `minikeras/__init__.py` for a module without a file, and `fill` gives it its names. Its stub, which
`tests/make_stubs.py` writes, shows editors and type checkers the signatures.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import module_from_spec
from types import FunctionType, ModuleType
from typing import Any

from .absent import late, own_names, read_rows

FACADES = read_rows("""
[_names]
doc: The names of `tf`.
types: DType TensorShape TensorSpec as_dtype complex64 complex128 float16 float32 float64 int8 int16 int32 int64 string uint8
  uint16 uint32 uint64 bool:boolean half:float16 double:float64 newaxis
functions.contractions: einsum matmul tensordot
functions.control_flow: case cond foldl foldr grad_pass_through map_fn scan switch_case vectorized_map while_loop
functions.creation: constant eye fill linspace meshgrid one_hot ones ones_like range rank sequence_mask shape size zeros
  zeros_like
functions.elementwise: abs acos acosh add add_n asin asinh atan atan2 atanh bitcast cast clip_by_value complex cos cosh divide
  equal exp floor greater greater_equal identity less less_equal logical_and logical_not logical_or maximum minimum multiply
  negative not_equal pow round saturate_cast scalar_mul sigmoid sign sin sinh sqrt square stop_gradient subtract tan tanh
  truediv where
functions.indexing: boolean_mask dynamic_partition dynamic_stitch gather gather_nd reverse_sequence scatter_nd strided_slice
  take_along_axis tensor_scatter_nd_add tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub
  tensor_scatter_nd_update unravel_index slice:slice_
functions.ordering: argsort histogram_fixed_width searchsorted sort unique unique_with_counts
functions.python: control_dependencies executing_eagerly gradients group hessians init_scope no_op numpy_function py_function
  timestamp print:print_
functions.reductions: argmax argmin clip_by_global_norm clip_by_norm cumsum norm reduce_all reduce_any reduce_logsumexp
  reduce_max reduce_mean reduce_min reduce_prod reduce_sum
functions.shaping: broadcast_to concat ensure_shape expand_dims is_tensor pad repeat reshape reverse roll split squeeze stack
  tile transpose unstack
compiler: function
core: GradientTape IndexedSlices RegisterGradient Tensor UnconnectedGradients Variable convert_to_tensor custom_gradient
  no_gradient recompute_grad
core.arrays: device
core.variable: name_scope
core.warnings: get_logger
module: Module
unlisted types: bfloat16
late keras: initializers losses metrics optimizers
late functions.assertions: Assert assert_equal assert_greater assert_less assert_rank
late functions.control_flow: TensorArray
late keras.initializers: constant_initializer:Constant ones_initializer:Ones zeros_initializer:Zeros
  random_normal_initializer:RandomNormal random_uniform_initializer:RandomUniform
[bitwise]
doc: `tf.bitwise`: functions of the bits of integers.
functions.elementwise: bitwise_and bitwise_or bitwise_xor invert left_shift right_shift
[image]
doc: `tf.image`: images turned, cut, padded, resized, recolored, and boxes in them.
functions.image: transpose:_transposed adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation
  central_crop convert_image_dtype crop_and_resize crop_to_bounding_box extract_patches flip_left_right flip_up_down
  grayscale_to_rgb non_max_suppression pad_to_bounding_box per_image_standardization psnr random_brightness random_contrast
  random_crop random_flip_left_right random_flip_up_down random_hue random_saturation resize_with_crop_or_pad resize_with_pad
  rgb_to_grayscale rot90 stateless_random_brightness stateless_random_contrast stateless_random_crop
  stateless_random_flip_left_right stateless_random_flip_up_down stateless_random_hue stateless_random_saturation
  total_variation
functions.resizing: ResizeMethod resize
[linalg]
doc: `tf.linalg`: linear algebra over stacks of matrices.
functions.contractions: einsum matmul matvec tensordot
functions.creation: eye
functions.linalg: adjoint band_part cholesky cholesky_solve cross det diag diag_part eig eigh eigvals eigvalsh expm inv logdet
  logm lstsq lu lu_matrix_inverse lu_reconstruct lu_solve matrix_rank matrix_transpose pinv qr set_diag slogdet solve sqrtm
  svd tensor_diag tensor_diag_part trace triangular_solve
functions.nn: normalize
functions.reductions: global_norm l2_normalize norm
[math]
doc: `tf.math`: elementwise functions and reductions.
functions.elementwise: abs acos acosh add add_n angle asin asinh atan atan2 atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e
  ceil conj cos cosh digamma divide divide_no_nan equal erf erfc erfcinv erfinv exp expm1 floor floordiv floormod greater
  greater_equal imag is_finite is_inf is_nan less less_equal lgamma log log1p log_sigmoid logical_and logical_not logical_or
  logical_xor maximum minimum mod multiply multiply_no_nan ndtri negative nextafter not_equal polygamma polyval pow real
  reciprocal reciprocal_no_nan rint round rsqrt scalar_mul sigmoid sign sin sinh softplus sqrt square squared_difference
  subtract tan tanh truediv xdivy xlog1py xlogy zeta accumulate_n:add_n
functions.indexing: segment_max segment_mean segment_min segment_prod segment_sum unsorted_segment_max unsorted_segment_mean
  unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum
functions.nn: log_softmax softmax softsign
functions.ordering: bincount confusion_matrix in_top_k invert_permutation top_k
functions.reductions: argmax argmin count_nonzero cumprod cumsum cumulative_logsumexp is_non_decreasing is_strictly_increasing
  l2_normalize lbeta reduce_all reduce_any reduce_euclidean_norm reduce_logsumexp reduce_max reduce_mean reduce_min
  reduce_prod reduce_std reduce_sum reduce_variance zero_fraction
[nn]
doc: `tf.nn`: activations, losses and normalization.
functions.convolution: conv1d conv1d_transpose conv2d conv2d_transpose conv3d conv3d_transpose conv_transpose convolution
  depthwise_conv2d separable_conv2d avg_pool avg_pool1d avg_pool2d avg_pool3d max_pool max_pool1d max_pool2d max_pool3d
functions.elementwise: log_sigmoid sigmoid softplus tanh
functions.nn: batch_normalization bias_add compute_average_loss crelu dropout elu embedding_lookup gelu l2_loss leaky_relu
  local_response_normalization log_poisson_loss log_softmax moments relu relu6 scale_regularization_loss selu
  sigmoid_cross_entropy_with_logits silu softmax softmax_cross_entropy_with_logits softsign
  sparse_softmax_cross_entropy_with_logits swish weighted_cross_entropy_with_logits weighted_moments
  lrn:local_response_normalization
functions.ordering: in_top_k top_k
functions.reductions: l2_normalize zero_fraction
functions.sampling: nce_loss sampled_softmax_loss
functions.shaping: depth_to_space space_to_depth
[random]
doc: `tf.random`: random tensors and generators.
functions.random: Generator categorical fold_in gamma get_global_generator normal poisson set_seed shuffle split
  stateless_categorical stateless_gamma stateless_normal stateless_poisson stateless_truncated_normal stateless_uniform
  truncated_normal uniform
functions.sampling: log_uniform_candidate_sampler uniform_candidate_sampler
[signal]
doc: `tf.signal`: Fourier transforms, and frames of signals with windows.
functions.signal: fft fft2d fftshift frame hamming_window hann_window ifft ifft2d ifftshift inverse_stft
  inverse_stft_window_fn irfft irfft2d overlap_and_add rfft rfft2d stft
[autodiff]
doc: `tf.autodiff`: differentiation.
core: ForwardAccumulator GradientTape
core.batch: loop_fallbacks
derivatives.curvature: Estimate block_hessian fisher gauss_newton ggnvp hessian hessian_diag hessian_trace hvp
derivatives.first_order: jacobian jvp per_example_gradients vjp
derivatives.own_operations: bilinear elementwise linear primitive
figures: plot_batch_jacobian plot_hessian plot_jacobian
[train]
doc: Checkpoints: Checkpoint, CheckpointManager, and looking into what was saved; moving averages. TensorFlow's names.
averages: ExponentialMovingAverage
checkpoint: Checkpoint CheckpointManager CheckpointOptions
bundle: CheckpointState get_checkpoint_state latest_checkpoint list_variables load_checkpoint load_variable
[config.experimental]
doc: `tf.config.experimental`: programs begin with it, though there is little to choose.
core.arrays.devices: list_physical_devices set_memory_growth
config: get_visible_devices list_logical_devices set_visible_devices
[config.threading]
doc: `tf.config.threading`: how many threads compute.
parallel: get_inter_op_parallelism_threads get_intra_op_parallelism_threads set_inter_op_parallelism_threads
  set_intra_op_parallelism_threads
[keras.optimizers.legacy]
doc: `keras.optimizers.legacy`: the optimizers themselves, under the names of Keras 2.
keras.optimizers.adagrad: Adadelta Adagrad Ftrl RMSprop
keras.optimizers.adam: Adam Adamax Nadam
keras.optimizers.optimizer: Optimizer
keras.optimizers.sgd: SGD
[keras.mixed_precision]
doc: `keras.mixed_precision`: policies of dtypes, and the optimizer that scales losses. With 'mixed_float16' weights stay
  float32, so that small updates are not lost; small gradients vanish in float16 unless LossScaleOptimizer scales the loss.
keras.config: DTypePolicy Policy dtype_policy global_policy set_dtype_policy set_global_policy
late keras.optimizers: LossScaleOptimizer
[keras.preprocessing.image]
doc: Images as arrays and back.
keras.utils.files: array_to_img img_to_array load_img save_img smart_resize
[keras.preprocessing.sequence]
doc: Sequences of one length.
keras.utils.arrays: pad_sequences
[keras.distribution]
doc: Models that several processes train together: names of `keras.distribution`. `tf.distribute` holds what else ranks do.
distribute.strategy: DataParallel distribution set_distribution
distribute.world: get_device_count initialize list_devices
[dtypes]
doc: `tf.dtypes`: dtypes, and functions that change them.
functions.elementwise: cast complex saturate_cast
types: DType as_dtype complex64 complex128 float16 float32 float64 int8 int16 int32 int64 string uint8 uint16 uint32 uint64
  bool:boolean half:float16 double:float64
unlisted types: bfloat16
[keras.ops.image]
doc: `keras.ops.image`: colors, sizes, filters and transforms of images, one or a batch, the channels last or first.
keras.ops.images: *
[keras.ops.linalg]
doc: `keras.ops.linalg`: linear algebra over stacks of matrices.
keras.ops.matrices: *
[keras.ops.math]
doc: `keras.ops.math`: segments, order, distances, special functions, Fourier transforms.
keras.ops.analysis: *
[keras.ops.nn]
doc: `keras.ops.nn`: activations, layers as functions, losses of each element, normalization, attention.
keras.ops.networks: *
keras.ops.sliding: adaptive_average_pool adaptive_max_pool average_pool conv conv_transpose depth_to_space depthwise_conv fold
  max_pool polar separable_conv space_to_depth unfold
[keras.ops.numpy]
doc: `keras.ops.numpy`: what NumPy has under the same names.
keras.ops.arithmetic: *
keras.ops.reductions: *
keras.ops.shaping: *
""")
"""By module its docstring and its names, by the file that defines them: 'public', or 'public:own' where they differ; '*' is all
that a file defines. Behind 'late' are names that are loaded at their first use, behind 'unlisted' those that `import *` leaves
out too, since they need another package."""

_NAMES = "_names"
"""The names of `minikeras` itself, which it loads when one of them is first used."""


def fill(module: ModuleType) -> None:
    """Give a module the names of its rows; what it lacks is explained."""
    package = __name__.rpartition(".")[0]
    inside = module.__name__.removeprefix(f"{package}.")
    holder, up = (package, "") if inside == _NAMES else (module.__name__, "." * (inside.count(".") + 1))
    namespace, late_ones, unlisted = vars(module), dict[str, str | None](), dict[str, str]()
    for source, names in FACADES[inside]:
        kind, _, place = source.rpartition(" ")
        pairs = [(public, own or public) for public, _, own in (name.partition(":") for name in names.split())]
        if source == "doc":
            namespace["__doc__"] = names
        elif kind == "unlisted":
            unlisted |= dict.fromkeys(names.split(), f"{package}.{place}")
        elif kind:
            late_ones |= {public: f"{up}{place}:{own}" for public, own in pairs}
        else:
            file = importlib.import_module(f"{package}.{place}")
            for public, own in pairs if names != "*" else [(name, name) for name in own_names(vars(file))]:
                found = getattr(file, own)
                if names == "*" and isinstance(found, FunctionType):
                    found.__module__ = holder  # a pickle names the public module, and holds when the file is moved
                namespace[public] = _taking_symbols(found, public, holder) if place.startswith("functions.") else found
    asked, _ = late(holder, late_ones)
    take: Any = lambda name: getattr(importlib.import_module(unlisted[name]), name) if name in unlisted else asked(name)
    namespace["__getattr__"], namespace["__dir__"] = take, lambda: sorted({*namespace, *late_ones})
    namespace["__all__"] = [public for public in (*namespace, *late_ones) if not public.startswith("_")]


def _taking_symbols(function: object, public: str, module: str) -> object:
    """A function that takes symbolic tensors too; those of one or two tensors, which are called most often, do so already."""
    from .functions.catalogue import name_like_definition, takes_symbols

    if not isinstance(function, FunctionType) or hasattr(function, "takes_symbols"):
        return function
    taking = takes_symbols(function)
    return name_like_definition(taking, public, module) if taking.__module__ == function.__module__ else taking


def load(name: str) -> ModuleType:
    """A module of names, also where a folder of its name is left, from a version in which it was a package."""
    if name not in sys.modules:
        spec = sys.modules[__name__.rpartition(".")[0]]._Finder.find_spec(name)
        sys.modules[name] = module = module_from_spec(spec)
        try:
            fill(module)
        except BaseException:  # an interrupt too: half a module would be taken for a whole one
            del sys.modules[name]
            raise
    return sys.modules[name]


def home_of(file: str) -> str:
    """The last name of the module of names that shows what a file defines; the file's own where there is none.

    >>> home_of("keras.ops.sliding"), home_of("keras.ops.core")
    ('nn', 'core')
    """
    found = (inside for inside, rows in FACADES.items() for source, _ in rows if source == file)
    return next(found, file).rpartition(".")[2]
