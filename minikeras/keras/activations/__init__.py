# mypy: implicit-reexport
"""Activation functions by name, each a plain function of a Tensor. May import the catalogue and all below keras."""

from ...absent import late as _late
from .along_axis import glu, log_softmax, softmax, sparsemax
from .elementwise import (
    celu,
    elu,
    exponential,
    gelu,
    hard_shrink,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    leaky_relu,
    linear,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_shrink,
    softplus,
    softsign,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
    tanh_shrink,
    threshold,
)
from .table import deserialize, get, serialize

__getattr__, __dir__ = _late(__name__, {})
__all__ = [name for name in __dir__() if not name.startswith("_")]
