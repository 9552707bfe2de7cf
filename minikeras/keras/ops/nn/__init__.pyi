# Made by tests/make_stubs.py from the functions themselves.
from minikeras.core.tensor import Tensor
from minikeras.keras.ops.nn.layers import batch_normalization as batch_normalization
from minikeras.keras.ops.nn.layers import dot_product_attention as dot_product_attention
from minikeras.keras.ops.nn.layers import layer_normalization as layer_normalization
from minikeras.keras.ops.nn.layers import moments as moments
from minikeras.keras.ops.nn.layers import normalize as normalize
from minikeras.keras.ops.nn.layers import rms_normalization as rms_normalization
from minikeras.keras.ops.nn.losses import binary_crossentropy as binary_crossentropy
from minikeras.keras.ops.nn.losses import categorical_crossentropy as categorical_crossentropy
from minikeras.keras.ops.nn.losses import ctc_decode as ctc_decode
from minikeras.keras.ops.nn.losses import ctc_loss as ctc_loss
from minikeras.keras.ops.nn.losses import multi_hot as multi_hot
from minikeras.keras.ops.nn.losses import one_hot as one_hot
from minikeras.keras.ops.nn.losses import sparse_categorical_crossentropy as sparse_categorical_crossentropy
from minikeras.keras.ops.nn.sliding import conv as conv
from minikeras.keras.ops.nn.sliding import conv_transpose as conv_transpose
from minikeras.keras.ops.nn.sliding import depth_to_space as depth_to_space
from minikeras.keras.ops.nn.sliding import fold as fold
from minikeras.keras.ops.nn.sliding import max_pool as max_pool
from minikeras.keras.ops.nn.sliding import space_to_depth as space_to_depth
from minikeras.keras.ops.nn.sliding import unfold as unfold
from minikeras.types import ShapeLike
from minikeras.types import TensorLike
from typing import Any

def adaptive_average_pool(inputs: TensorLike, output_size: ShapeLike, data_format: str | None = ...) -> Tensor: ...
def adaptive_max_pool(inputs: TensorLike, output_size: ShapeLike, data_format: str | None = ...) -> Tensor: ...
def average_pool(inputs: TensorLike, pool_size: Any, strides: Any = ..., padding: str = ..., data_format: str | None = ...) -> Tensor: ...
def celu(x: TensorLike, alpha: float = ...) -> Tensor: ...
def depthwise_conv(inputs: TensorLike, kernel: TensorLike, strides: Any = ..., padding: str = ..., data_format: str | None = ..., dilation_rate: Any = ...) -> Tensor: ...
def elu(x: TensorLike, alpha: float = ...) -> Tensor: ...
def gelu(x: TensorLike, approximate: bool = ...) -> Tensor: ...
def glu(x: TensorLike, axis: int = ...) -> Tensor: ...
def hard_shrink(x: TensorLike, threshold: float = ...) -> Tensor: ...
def hard_sigmoid(x: TensorLike) -> Tensor: ...
def hard_silu(x: TensorLike) -> Tensor: ...
def hard_swish(x: TensorLike) -> Tensor: ...
def hard_tanh(x: TensorLike) -> Tensor: ...
def leaky_relu(x: TensorLike, negative_slope: float = ...) -> Tensor: ...
def log_sigmoid(x: TensorLike) -> Tensor: ...
def log_softmax(x: TensorLike, axis: Any = ...) -> Tensor: ...
def polar(abs_: TensorLike, angle: TensorLike) -> Tensor: ...
def psnr(x1: TensorLike, x2: TensorLike, max_val: float) -> Tensor: ...
def relu(x: TensorLike) -> Tensor: ...
def relu6(x: TensorLike) -> Tensor: ...
def selu(x: TensorLike) -> Tensor: ...
def separable_conv(inputs: TensorLike, depthwise_kernel: TensorLike, pointwise_kernel: TensorLike, strides: Any = ..., padding: str = ..., data_format: str | None = ..., dilation_rate: Any = ...) -> Tensor: ...
def sigmoid(x: TensorLike) -> Tensor: ...
def silu(x: TensorLike) -> Tensor: ...
def soft_shrink(x: TensorLike, threshold: float = ...) -> Tensor: ...
def softmax(x: TensorLike, axis: Any = ...) -> Tensor: ...
def softplus(x: TensorLike) -> Tensor: ...
def softsign(x: TensorLike) -> Tensor: ...
def sparse_plus(x: TensorLike) -> Tensor: ...
def sparse_sigmoid(x: TensorLike) -> Tensor: ...
def sparsemax(x: TensorLike, axis: int = ...) -> Tensor: ...
def squareplus(x: TensorLike, b: float = ...) -> Tensor: ...
def swish(x: TensorLike) -> Tensor: ...
def tanh_shrink(x: TensorLike) -> Tensor: ...
def threshold(x: TensorLike, threshold: float, default_value: float) -> Tensor: ...

__all__ = [
    "adaptive_average_pool",
    "adaptive_max_pool",
    "average_pool",
    "batch_normalization",
    "binary_crossentropy",
    "categorical_crossentropy",
    "celu",
    "conv",
    "conv_transpose",
    "ctc_decode",
    "ctc_loss",
    "depth_to_space",
    "depthwise_conv",
    "dot_product_attention",
    "elu",
    "fold",
    "gelu",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "layer_normalization",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "max_pool",
    "moments",
    "multi_hot",
    "normalize",
    "one_hot",
    "polar",
    "psnr",
    "relu",
    "relu6",
    "rms_normalization",
    "selu",
    "separable_conv",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "space_to_depth",
    "sparse_categorical_crossentropy",
    "sparse_plus",
    "sparse_sigmoid",
    "sparsemax",
    "squareplus",
    "swish",
    "tanh_shrink",
    "threshold",
    "unfold",
]
