# mypy: implicit-reexport
"""Dispatch, Tensors, Variables, tapes, the families of operations, and the operations that derivatives are made of.

It stands alone: it may import `errors`, `types` and `nest`, and floors above register their hooks. Read `primitive.py` first.
"""

from .convert import convert_to_tensor
from .custom import custom_gradient, recompute_grad
from .families import bilinear, elementwise, linear, primitive
from .forward import ForwardAccumulator
from .gradient_registry import RegisterGradient, no_gradient
from .gradient_tape import GradientTape, UnconnectedGradients
from .indexed_slices import IndexedSlices
from .primitive import Primitive, Record
from .stack import bind
from .tensor import Tensor
from .variable import Variable

from . import ops  # isort: skip  they are made with what stands above
