"""Activations under Keras's names. Those of `keras.activations`, of integers and bools too."""

from __future__ import annotations

from ....functions import nn
from ....functions.elementwise import log_sigmoid as _log_sigmoid
from ....functions.elementwise import sigmoid as _sigmoid
from ....functions.elementwise import softplus as _softplus
from ... import activations
from ..rows import of_any, of_floats, of_floats_and_options

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "sparse_plus",
    "sparse_sigmoid",
    "sparsemax",
    "squareplus",
    "swish",
    "tanh_shrink",
    "threshold",
]

relu = of_any("relu", nn.relu)
relu6 = of_floats("relu6", nn.relu6)
selu = of_floats("selu", nn.selu)
sigmoid = of_floats("sigmoid", _sigmoid)
silu = swish = of_floats("silu", nn.silu, "x sigmoid(x).")
softplus = of_floats("softplus", _softplus)
softsign = of_floats("softsign", nn.softsign)
log_sigmoid = of_floats("log_sigmoid", _log_sigmoid)
hard_sigmoid = of_floats("hard_sigmoid", activations.hard_sigmoid)
hard_silu = hard_swish = of_floats("hard_silu", activations.hard_silu)
hard_tanh = of_floats("hard_tanh", activations.hard_tanh)
sparse_plus = of_floats("sparse_plus", activations.sparse_plus)
sparse_sigmoid = of_floats("sparse_sigmoid", activations.sparse_sigmoid)
tanh_shrink = of_floats("tanh_shrink", activations.tanh_shrink)
celu = of_floats_and_options(activations.celu)
elu = of_floats_and_options(activations.elu)
gelu = of_floats_and_options(activations.gelu, approximate=True)
glu = of_floats_and_options(activations.glu)
hard_shrink = of_floats_and_options(activations.hard_shrink)
leaky_relu = of_floats_and_options(activations.leaky_relu)
log_softmax = of_floats_and_options(activations.log_softmax)
soft_shrink = of_floats_and_options(activations.soft_shrink)
softmax = of_floats_and_options(activations.softmax)
sparsemax = of_floats_and_options(activations.sparsemax)
squareplus = of_floats_and_options(activations.squareplus, b=4)
threshold = of_floats_and_options(activations.threshold)
