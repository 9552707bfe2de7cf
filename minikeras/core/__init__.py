"""Dispatch, Tensors, Variables, tapes and the families of operations. Read `primitive.py` first.

May import `errors`, `types`, `nest` and `arrays`; knows no layer and no particular operation.
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

__all__ = [
    "ForwardAccumulator",
    "GradientTape",
    "IndexedSlices",
    "Primitive",
    "Record",
    "RegisterGradient",
    "Tensor",
    "UnconnectedGradients",
    "Variable",
    "bilinear",
    "bind",
    "convert_to_tensor",
    "custom_gradient",
    "elementwise",
    "linear",
    "no_gradient",
    "primitive",
    "recompute_grad",
]
