"""Activation functions by name, each a plain function of a Tensor. May import the catalogue and all below keras."""

from .along_axis import glu, log_softmax, softmax, sparsemax
from .elementwise import celu, elu, exponential, gelu, hard_shrink, hard_sigmoid, hard_silu, hard_swish, hard_tanh, leaky_relu
from .elementwise import linear, log_sigmoid, mish, relu, relu6, selu, sigmoid, silu, soft_shrink, softplus, softsign
from .elementwise import sparse_plus, sparse_sigmoid, squareplus, swish, tanh, tanh_shrink, threshold
from .table import deserialize, get, serialize

__all__ = ["celu", "deserialize", "elu", "exponential", "gelu", "get", "glu", "hard_shrink", "hard_sigmoid", "hard_silu"]
__all__ += ["hard_swish", "hard_tanh", "leaky_relu", "linear", "log_sigmoid", "log_softmax", "mish", "relu", "relu6", "selu"]
__all__ += ["serialize", "sigmoid", "silu", "soft_shrink", "softmax", "softplus", "softsign", "sparse_plus", "sparse_sigmoid"]
__all__ += ["sparsemax", "squareplus", "swish", "tanh", "tanh_shrink", "threshold"]
