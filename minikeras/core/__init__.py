# mypy: implicit-reexport
"""Dispatch, Tensors, Variables, tapes, the families of operations, and the operations that derivatives are made of.

It stands alone: it may import `errors`, `types` and `nest`, and floors above register their hooks. Read `primitive.py` first.
"""

from .arrays import brought_together, creation_namespace, current_device, device, is_array, namespace, to_device, to_numpy
from .backward import sweep
from .batch import Batch, BatchedTensor, all_values, check_values, innermost, own_values
from .convert import adopt, convert_to_tensor, from_capsule, holds_tensor, read
from .custom import custom_gradient, recompute_grad
from .effects import Outdated, State, Write, checked, clock, decide, draw_key, effect, is_told, is_watched, only_checks, watched
from .families import bilinear, by_elements, elementwise, linear, primitive, unbroadcast
from .forward import ForwardAccumulator
from .gradient_arguments import seeds_of
from .gradient_registry import RegisterGradient, no_gradient
from .gradient_tape import GradientTape, UnconnectedGradients, tapes_that_track
from .indexed_slices import IndexedSlices
from .locks import LONGEST, Before, ForkSafeLock, HeldLocks, UpdateLock, UpdateLocks, cached_property, importing
from .ownership import IS_LOCKED, Owned, called_with_others
from .precision import in_float32, is_short
from .primitive import Primitive, Record, Rule
from .registry import hook, operations, register_hooks
from .stack import BOTTOM, Frame, Interpreter, bind, current, is_in_step, notify, on_top, only_shapes, perform
from .tape import Tape
from .tensor import Operand, Tensor, array_of, arrays_of, tensors_of
from .variable import Snapshot, Variable, are_held, assigned, name_scope, preserved, read_variable, restore, snapshot
from .warnings import call_place, describe, explained, logger, warn_caller

from . import ops  # isort: skip  they are made with what stands above
