# mypy: implicit-reexport
"""Dispatch, Tensors, Variables, tapes, the families of operations, and the operations that derivatives are made of.

It stands alone: it may import `errors`, `types` and `nest`, and floors above register their hooks. Read `primitive.py` first.
"""

from .arrays import creation_namespace, current_device, device, is_array, namespace, to_device, to_numpy
from .batch import Batch, BatchedTensor, all_values, check_values, innermost
from .convert import convert_to_tensor
from .custom import custom_gradient, recompute_grad
from .effects import State, Write, clock, decide, effect, watched
from .families import bilinear, by_elements, elementwise, linear, primitive
from .forward import ForwardAccumulator
from .gradient_registry import RegisterGradient, no_gradient
from .gradient_tape import GradientTape, UnconnectedGradients
from .indexed_slices import IndexedSlices
from .primitive import Primitive, Record
from .registry import hook, operations
from .stack import BOTTOM, Frame, Interpreter, bind, current, on_top, only_shapes, perform
from .tensor import Operand, Tensor, array_of
from .variable import Snapshot, Variable, preserved, read_variable, restore, snapshot
from .warnings import call_place, logger, warn_caller

from . import ops  # isort: skip  they are made with what stands above
