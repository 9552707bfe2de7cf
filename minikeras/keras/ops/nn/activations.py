"""Activations under Keras's names. Those of `keras.activations`, of integers and bools too."""

from ....functions import nn as _nn
from ....functions.elementwise import log_sigmoid as _log_sigmoid
from ....functions.elementwise import sigmoid as _sigmoid
from ....functions.elementwise import softplus as _softplus
from ... import activations as _activations
from ..rows import of_any as _of_any
from ..rows import of_floats as _of_floats
from ..rows import of_floats_and_options as _of_floats_and_options

relu = _of_any("relu", _nn.relu)
relu6 = _of_floats("relu6", _nn.relu6)
selu = _of_floats("selu", _nn.selu)
sigmoid = _of_floats("sigmoid", _sigmoid)
silu = swish = _of_floats("silu", _nn.silu, "x sigmoid(x).")
softplus = _of_floats("softplus", _softplus)
softsign = _of_floats("softsign", _nn.softsign)
log_sigmoid = _of_floats("log_sigmoid", _log_sigmoid)
hard_sigmoid = _of_floats("hard_sigmoid", _activations.hard_sigmoid)
hard_silu = hard_swish = _of_floats("hard_silu", _activations.hard_silu)
hard_tanh = _of_floats("hard_tanh", _activations.hard_tanh)
sparse_plus = _of_floats("sparse_plus", _activations.sparse_plus)
sparse_sigmoid = _of_floats("sparse_sigmoid", _activations.sparse_sigmoid)
tanh_shrink = _of_floats("tanh_shrink", _activations.tanh_shrink)
celu = _of_floats_and_options(_activations.celu)
elu = _of_floats_and_options(_activations.elu)
gelu = _of_floats_and_options(_activations.gelu, approximate=True)
glu = _of_floats_and_options(_activations.glu)
hard_shrink = _of_floats_and_options(_activations.hard_shrink)
leaky_relu = _of_floats_and_options(_activations.leaky_relu)
log_softmax = _of_floats_and_options(_activations.log_softmax)
soft_shrink = _of_floats_and_options(_activations.soft_shrink)
softmax = _of_floats_and_options(_activations.softmax)
sparsemax = _of_floats_and_options(_activations.sparsemax)
squareplus = _of_floats_and_options(_activations.squareplus, b=4)
threshold = _of_floats_and_options(_activations.threshold)
