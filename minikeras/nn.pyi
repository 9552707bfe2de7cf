# Made by tests/make_stubs.py from the functions themselves.
from minikeras.core.tensor import Tensor
from minikeras.distribute.functions import compute_average_loss as compute_average_loss
from minikeras.distribute.functions import scale_regularization_loss as scale_regularization_loss
from minikeras.functions.convolution import avg_pool as avg_pool
from minikeras.functions.convolution import avg_pool as avg_pool1d
from minikeras.functions.convolution import avg_pool as avg_pool2d
from minikeras.functions.convolution import avg_pool as avg_pool3d
from minikeras.functions.convolution import conv_transpose as conv1d_transpose
from minikeras.functions.convolution import conv_transpose as conv2d_transpose
from minikeras.functions.convolution import conv_transpose as conv3d_transpose
from minikeras.functions.convolution import conv_transpose as conv_transpose
from minikeras.functions.convolution import convolution as conv2d
from minikeras.functions.convolution import convolution as conv3d
from minikeras.functions.convolution import convolution as convolution
from minikeras.functions.convolution import depthwise_conv as depthwise_conv2d
from minikeras.functions.convolution import max_pool as max_pool
from minikeras.functions.convolution import max_pool as max_pool1d
from minikeras.functions.convolution import max_pool as max_pool2d
from minikeras.functions.convolution import max_pool as max_pool3d
from minikeras.functions.convolution import separable_conv as separable_conv2d
from minikeras.functions.elementwise import log_sigmoid as log_sigmoid
from minikeras.functions.nn import batch_normalization as batch_normalization
from minikeras.functions.nn import bias_add as bias_add
from minikeras.functions.nn import crelu as crelu
from minikeras.functions.nn import dropout as dropout
from minikeras.functions.nn import elu as elu
from minikeras.functions.nn import embedding_lookup as embedding_lookup
from minikeras.functions.nn import gelu as gelu
from minikeras.functions.nn import l2_loss as l2_loss
from minikeras.functions.nn import leaky_relu as leaky_relu
from minikeras.functions.nn import local_response_normalization as local_response_normalization
from minikeras.functions.nn import local_response_normalization as lrn
from minikeras.functions.nn import log_poisson_loss as log_poisson_loss
from minikeras.functions.nn import log_softmax as log_softmax
from minikeras.functions.nn import moments as moments
from minikeras.functions.nn import selu as selu
from minikeras.functions.nn import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
from minikeras.functions.nn import silu as silu
from minikeras.functions.nn import silu as swish
from minikeras.functions.nn import softmax as softmax
from minikeras.functions.nn import softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits
from minikeras.functions.nn import softsign as softsign
from minikeras.functions.nn import sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits
from minikeras.functions.nn import weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits
from minikeras.functions.nn import weighted_moments as weighted_moments
from minikeras.functions.ordering import in_top_k as in_top_k
from minikeras.functions.ordering import top_k as top_k
from minikeras.functions.reductions import l2_normalize as l2_normalize
from minikeras.functions.sampling import nce_loss as nce_loss
from minikeras.functions.sampling import sampled_softmax_loss as sampled_softmax_loss
from minikeras.functions.shaping import depth_to_space as depth_to_space
from minikeras.functions.shaping import space_to_depth as space_to_depth
from minikeras.types import TensorLike
from typing import Any

def conv1d(input: TensorLike, filters: TensorLike, stride: Any, padding: Any, data_format: str | None = ..., dilations: Any = ..., name: str | None = ...) -> Tensor: ...
def relu(x: TensorLike, name: str | None = ...) -> Tensor: ...
def relu6(x: TensorLike, name: str | None = ...) -> Tensor: ...
def sigmoid(x: TensorLike, name: str | None = ...) -> Tensor: ...
def softplus(x: TensorLike, name: str | None = ...) -> Tensor: ...
def tanh(x: TensorLike, name: str | None = ...) -> Tensor: ...
def zero_fraction(value: TensorLike, name: str | None = ...) -> Tensor: ...

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_normalization",
    "bias_add",
    "compute_average_loss",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "crelu",
    "depth_to_space",
    "depthwise_conv2d",
    "dropout",
    "elu",
    "embedding_lookup",
    "gelu",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "local_response_normalization",
    "log_poisson_loss",
    "log_sigmoid",
    "log_softmax",
    "lrn",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "moments",
    "nce_loss",
    "relu",
    "relu6",
    "sampled_softmax_loss",
    "scale_regularization_loss",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits",
    "swish",
    "tanh",
    "top_k",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "zero_fraction",
]
