"""Variable: a cell that holds a value and can be given another. Reading it is an operation, which tapes record."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from copy import deepcopy
from typing import Any

import numpy as np

from ..errors import InvalidArgumentError, ShapeError
from ..types import Array, TensorLike, TensorShape, as_dtype
from .arrays import namespace, to_device, to_numpy
from .convert import convert_to_tensor, holds_tensor, to_array
from .effects import State, Write, clock, decide, effect
from .locks import UpdateLock, acquired
from .precision import is_short
from .primitive import Primitive
from .registry import operations
from .stack import BOTTOM, current, notify, redirected
from .tensor import Operand, Tensor, next_key, values_text

# Name scopes ----------------------------------------------------------------------------------------------------------

# `tf.name_scope`: a prefix for the names of the Variables made within it.

_prefix: ContextVar[str] = ContextVar("prefix", default="")


def scoped(name: str) -> str:
    """A name with the prefix of the scopes around it."""
    return _prefix.get() + name


class name_scope:
    """A context within which names of new `tf.Variable`s begin with its own; scopes nest. One that ends with '/' stands alone.

    Args:
        name: what the names begin with; None or '' for no prefix.

    >>> with tf.name_scope("encoder") as scope:
    ...     v = tf.Variable(1.0, name="scale")
    >>> print(scope, v.name)
    encoder/ encoder/scale:0
    """

    def __init__(self, name: str | None) -> None:
        if name is not None and not isinstance(name, str):
            raise ValueError(f"name_scope: name must be a string, found {name!r:.80}.")
        self._name = name or ""
        self._tokens: list[Token[str]] = []

    @property
    def name(self) -> str:
        """The name that it was given."""
        return self._name

    def __enter__(self) -> str:
        name = self._name
        whole = name if not name or name.endswith("/") else f"{_prefix.get()}{name}/"
        self._tokens.append(_prefix.set(whole))
        return whole

    def __exit__(self, *exception: object) -> None:
        _prefix.reset(self._tokens.pop())


read_variable = Primitive(
    "read_variable",
    lambda xp: lambda variable: variable.array,
    vjp=lambda wanted, g, y, inputs, params: [g],
    jvp=lambda tangents, y, inputs, params: tangents[0],
    reads=(State.OPERANDS,),
)


def _write(variable: Variable, value: Any, *, conversion: Write) -> tuple[()]:
    variable._combine(value.array if isinstance(value, Variable) else value, _COMBINING[conversion])
    return ()


_COMBINING: dict[Write, Callable[[Array, Array], Array]] = {
    Write.ASSIGN: lambda old, new: new,
    Write.ADD: operator.add,
    Write.SUBTRACT: operator.sub,
}
assigned = effect("assign", _write, writes=(State.OPERANDS,), escapes=True)
"""Stands on the stack for an assignment, of which the derivatives see nothing."""


_new = object.__new__


class Variable(Operand):
    """A mutable value that gradient tapes watch by themselves when it is read.

    Args:
        initial_value: number, list, array, Tensor, Variable (copied) or a function without arguments that returns one.
        trainable: whether tapes watch it by themselves.
        name: shown with TensorFlow's suffix ':0'.
        dtype: as in `tf.convert_to_tensor`.
        shape: if given, all values must have it. None in it, or `tf.TensorShape(None)`, lets values have different shapes;
            functions that use such a Variable are not compiled.
        constraint: a function of a Tensor that an optimizer applies after its step; `assign` does not.

    Raises:
        ValueError: if there is no initial value or its shape is not `shape`.

    >>> v = tf.Variable([1.0, 2.0], name="v")
    >>> v.assign_add([1.0, 1.0])
    <tf.Variable 'v:0' shape=(2,) dtype=float32, numpy=array([2., 3.], dtype=float32)>
    """

    __slots__ = ("__weakref__", "_constraint", "_name", "_open", "_trainable", "array", "key", "update_lock")

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        shape: Any = None,
        constraint: Callable[[Any], Any] | None = None,
    ) -> None:
        if callable(initial_value) and not hasattr(initial_value, "key"):
            initial_value = initial_value()
        if initial_value is None:
            raise ValueError("Variable: an initial value is needed, None was given. Write for example tf.Variable(0.0).")
        if holds_tensor(initial_value) and not isinstance(initial_value, Operand):
            initial_value = convert_to_tensor(initial_value, dtype)
        if isinstance(initial_value, Operand):
            array = _one_value(initial_value).astype((initial_value.dtype if dtype is None else as_dtype(dtype)).numpy)
        else:
            array = to_array(initial_value, None if dtype is None else as_dtype(dtype))
        declared = TensorShape(array.shape if shape is None else shape)
        if not declared.is_compatible_with(array.shape):
            raise ValueError(f"Variable: the initial value's shape {array.shape} is not the given shape {declared}.")
        self.array = array
        self._trainable = bool(trainable)
        self._name = scoped(name or "Variable") if type(self) is Variable else name or "Variable"
        self._open: TensorShape | None = None if declared.is_fully_defined() else declared
        self.constraint = constraint
        self.update_lock: UpdateLock | None = None
        self.key = next_key()
        self.note_assignment(initial_value, array, Write.INITIAL)

    @property
    def name(self) -> str:
        """The name with TensorFlow's suffix."""
        return f"{self._name}:0"

    @property
    def trainable(self) -> bool:
        """True if tapes watch it by themselves."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        clock.tick()

    @property
    def constraint(self) -> Callable[[Any], Any] | None:
        """A function of a Tensor that an optimizer applies after its step, or None."""
        return self._constraint

    @constraint.setter
    def constraint(self, value: Callable[[Any], Any] | None) -> None:
        if value is not None and not callable(value):
            raise ValueError(f"Variable: the constraint must be a function of a Tensor or None, found {value!r:.80}.")
        self._constraint = value
        clock.tick()

    # Reading -----------------------------------------------------------------------------------------------------

    def read_value(self) -> Tensor:
        """The value at this moment, as a Tensor that later assignments do not change."""
        frame = current()
        if frame is BOTTOM:
            tensor = _new(Tensor)  # without the call of __init__: 0.05 us less
            tensor.array, tensor.attached, tensor.key = self.array, None, next_key()
            return tensor
        if self._open is not None:
            decide(self)  # what is computed next depends on the shape that it has now
        return frame.interpreter.process(read_variable, (self,), {}, frame.below)

    def value(self) -> Tensor:
        """The same as `read_value`."""
        return self.read_value()

    def initialized_value(self) -> Tensor:
        """The same as `read_value`."""
        return self.read_value()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.read_value())

    # Assigning ---------------------------------------------------------------------------------------------------

    def assign(self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Hold another value of the same dtype, and of the same shape or another that the Variable may have.

        Of several threads the last one's value stays, whole; an optimizer's step in another thread comes before it or after it.

        Returns:
            The Variable itself, or None with `read_value=False`.

        Raises:
            ValueError: if the shape or a Tensor's dtype differs. The old value stays.
        """
        if current() is not BOTTOM and redirected(self, value, Write.ASSIGN):
            return self if read_value else None
        value = self._stacked(value)
        array = self.convert(value)
        if self._open is not None and self._open.is_compatible_with(array.shape):
            decide(self)
        elif array.shape != self.array.shape:
            raise ShapeError(
                f"Cannot assign value to variable ' {self.name}': Shape mismatch. The variable shape "
                f"{self._open or self.shape}, and the assigned value shape {tuple(array.shape)} are incompatible."
            )
        self._combine(array, _COMBINING[Write.ASSIGN], value, Write.ASSIGN)
        return self if read_value else None

    def note_assignment(self, value: Any, array: Array, how: Write) -> None:
        """Notify the interpreters that a value goes into this Variable, which still holds the old one."""
        frame = current()
        if frame is not BOTTOM:
            inputs = (value,) if isinstance(value, Operand) else ()
            notify(frame, assigned, inputs, {"conversion": how, "array": array}, self)

    def assign_add(self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Hold the value plus `delta`, which has the same shape; otherwise as `assign`."""
        return self._change(delta, Write.ADD, read_value)

    def assign_sub(self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Hold the value minus `delta`, which has the same shape; otherwise as `assign`."""
        return self._change(delta, Write.SUBTRACT, read_value)

    def _change(self, delta: Any, what: Write, read_value: bool) -> Any:
        if current() is not BOTTOM and redirected(self, delta, what):
            return self if read_value else None
        delta = self._stacked(delta)
        change = self.convert(delta)
        if change.shape != self.array.shape:
            raise ShapeError(
                f"{what}: variable '{self.name}' has shape {self.shape}, the change has shape {tuple(change.shape)}. "
                "Broadcast it first: tf.broadcast_to(delta, variable.shape)."
            )
        self._combine(change, _COMBINING[what], delta, what)
        return self if read_value else None

    def _combine(
        self, change: Array, combine: Callable[[Array, Array], Array], value: Any = None, noted: Write | None = None
    ) -> None:
        lock = acquired(self)  # other threads see the old value or the new one, and lose no update
        try:
            if noted is not None:
                self.note_assignment(value, change, noted)
            self.array = combine(self.array, change)
        finally:
            lock.release()

    def _stacked(self, value: Any) -> Any:
        """A list that holds Tensors as one Tensor of this Variable's dtype; anything else as it is."""
        return convert_to_tensor(value, self.dtype) if isinstance(value, (list, tuple)) and holds_tensor(value) else value

    def convert(self, value: Any) -> Array:
        """The value as an array of this Variable's dtype, on its device, that nothing else will write to."""
        if hasattr(value, "read_value") or isinstance(value, Operand):
            array = _one_value(convert_to_tensor(value, self.dtype))
        elif callable(value):
            return self.convert(value())
        else:
            array = to_array(value, self.dtype)
        return to_device(array, namespace(self.array))

    def exchange(self, array: Array) -> None:
        """Hold an array that the caller gives away."""
        self.array = array

    # Parts -------------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        part = operations.getitem(self, key)
        return VariablePart(part, self, key) if type(part) is Tensor else part

    def scatter_nd_update(self, indices: TensorLike, updates: Any, name: str | None = None) -> Variable:
        """Replace the elements at `indices`, an integer tensor of shape (..., n), by `updates`."""
        return self._scatter(indices, updates, np.ndarray.__setitem__, nd=True)

    def scatter_nd_add(self, indices: TensorLike, updates: Any, name: str | None = None) -> Variable:
        """Add `updates` to the elements at `indices`, an integer tensor of shape (..., n); repeated ones add up."""
        return self._scatter(indices, updates, _at(np.add), nd=True)

    def scatter_nd_sub(self, indices: TensorLike, updates: Any, name: str | None = None) -> Variable:
        """Subtract `updates` from the elements at `indices`."""
        return self._scatter(indices, updates, _at(np.subtract), nd=True)

    def scatter_nd_max(self, indices: TensorLike, updates: Any, name: str | None = None) -> Variable:
        """Replace the elements at `indices` by updates that are larger."""
        return self._scatter(indices, updates, _at(np.maximum), nd=True)

    def scatter_nd_min(self, indices: TensorLike, updates: Any, name: str | None = None) -> Variable:
        """Replace the elements at `indices` by updates that are smaller."""
        return self._scatter(indices, updates, _at(np.minimum), nd=True)

    def gather_nd(self, indices: TensorLike, name: str | None = None) -> Any:
        """The elements or rows at `indices`, an integer tensor of shape (..., n)."""
        return operations.gather_nd(self.read_value(), convert_to_tensor(indices))

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Any:
        """The rows at `indices`."""
        return operations.sparse_read(self.read_value(), convert_to_tensor(indices))

    def scatter_sub(self, sparse_delta: Any, name: str | None = None) -> Variable:
        """Subtract from the rows named by `IndexedSlices(values, indices)`."""
        return self._scatter(sparse_delta.indices, sparse_delta.values, _at(np.subtract), nd=False)

    def scatter_mul(self, sparse_delta: Any, name: str | None = None) -> Variable:
        """Multiply the rows named by `IndexedSlices(values, indices)`."""
        return self._scatter(sparse_delta.indices, sparse_delta.values, _at(np.multiply), nd=False)

    def scatter_div(self, sparse_delta: Any, name: str | None = None) -> Variable:
        """Divide the rows named by `IndexedSlices(values, indices)`."""
        return self._scatter(sparse_delta.indices, sparse_delta.values, _at(np.divide), nd=False)

    def scatter_max(self, sparse_delta: Any, name: str | None = None) -> Variable:
        """Replace the rows named by `IndexedSlices(values, indices)` where these are larger."""
        return self._scatter(sparse_delta.indices, sparse_delta.values, _at(np.maximum), nd=False)

    def scatter_min(self, sparse_delta: Any, name: str | None = None) -> Variable:
        """Replace the rows named by `IndexedSlices(values, indices)` where these are smaller."""
        return self._scatter(sparse_delta.indices, sparse_delta.values, _at(np.minimum), nd=False)

    def scatter_update(self, sparse_delta: Any, name: str | None = None) -> Variable:
        """Replace the rows named by `IndexedSlices(values, indices)`."""
        return self._scatter(sparse_delta.indices, sparse_delta.values, np.ndarray.__setitem__, nd=False)

    def scatter_add(self, sparse_delta: Any, name: str | None = None) -> Variable:
        """Add to the rows named by `IndexedSlices(values, indices)`; repeated indices add up."""
        return self._scatter(sparse_delta.indices, sparse_delta.values, _at(np.add), nd=False)

    def _scatter(self, indices: TensorLike, updates: Any, write: Callable[..., Any], nd: bool) -> Variable:
        if current() is not BOTTOM and redirected(self, updates, Write.SCATTER):
            return self
        where = np.asarray(to_numpy(convert_to_tensor(indices).array))
        if where.dtype.kind not in "iu" or (nd and not (where.ndim and 1 <= where.shape[-1] <= self.ndim)):
            raise InvalidArgumentError(
                f"scatter: indices {where.dtype.name}{list(where.shape)} into variable '{self.name}' of shape {self.shape} "
                f"must be integers{f', 1 to {self.ndim} in the last axis' if nd else ''}."
            )
        positions = tuple(np.moveaxis(where, -1, 0)) if nd else (where,)
        for axis, (position, size) in enumerate(zip(positions, self.shape, strict=False)):
            if position.size and not 0 <= position.min() <= position.max() < size:
                raise InvalidArgumentError(f"scatter: an index of axis {axis} of variable '{self.name}' is not in [0, {size}).")
        updates = self._stacked(updates)
        if isinstance(updates, Tensor) and updates.dtype.is_integer and self.dtype.is_floating:
            updates = operations.cast(updates, dtype=self.dtype.name)  # IndexedSlices made of Python ints
        new = to_numpy(self.convert(updates))
        expected = (*positions[0].shape, *self.shape[len(positions) :])
        if new.shape != expected and (nd or new.ndim):  # rows may be given as one number, as in TensorFlow
            raise ShapeError(
                f"scatter: indices {list(where.shape)} into variable '{self.name}' of shape {self.shape} need updates of shape "
                f"{expected}, found {tuple(new.shape)}."
            )
        self.note_assignment(updates, new, Write.SCATTER)
        return self._rewrite(lambda values: write(values, positions, new))

    def _rewrite(self, write: Callable[[np.ndarray[Any, Any]], None]) -> Variable:
        """Hold a copy of the value that `write` has changed in some places."""
        lock = acquired(self)
        try:
            values = np.array(to_numpy(self.array))
            write(values)
            self.array = self.convert(values)
        finally:
            lock.release()
        return self

    # In-place operators of Python would re-bind the name and lose the Variable ------------------------------------

    def __iadd__(self, other: TensorLike) -> Any:
        raise RuntimeError("`variable += value` with `tf.Variable`s is not supported. Use `variable.assign_add(value)`.")

    def __isub__(self, other: TensorLike) -> Any:
        raise RuntimeError("`variable -= value` with `tf.Variable`s is not supported. Use `variable.assign_sub(value)`.")

    def __imul__(self, other: TensorLike) -> Any:
        raise RuntimeError("`variable *= value` with `tf.Variable`s is not supported. Use `variable.assign(variable * value)`.")

    def __itruediv__(self, other: TensorLike) -> Any:
        raise RuntimeError("`variable /= value` with `tf.Variable`s is not supported. Use `variable.assign(variable / value)`.")

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, numpy={values_text(self.array)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.numpy(), self.trainable, self._name, None, self._open)

    def __copy__(self) -> Variable:
        """The Variable itself: a shallow copy shares the state."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        """A Variable of its own with the same value."""
        copy = Variable.__new__(type(self))
        for owner in type(self).__mro__:
            for slot in getattr(owner, "__slots__", ()):
                if slot != "__weakref__":
                    setattr(copy, slot, getattr(self, slot))
        copy.key = next_key()
        copy.update_lock = deepcopy(self.update_lock, memo)
        memo[id(self)] = copy
        return copy


class VariablePart(Tensor):
    """A part of a Variable, as indexing gives it: a Tensor, with `assign` to write that part of the Variable."""

    __slots__ = ("_index", "_read", "_variable")

    def __init__(self, read: Tensor, variable: Variable, index: Any) -> None:
        self.array, self.key, self._variable, self._index = read.array, read.key, variable, index
        self.attached = None
        self._read = read  # the tangent of a result is kept as long as the result itself

    def assign(self, value: TensorLike) -> Variable:
        """Write this part of the Variable; the rest stays."""
        index = tuple(self._index) if isinstance(self._index, list) else self._index
        value = self._variable._stacked(value)
        new = to_numpy(self._variable.convert(value))
        self._variable.note_assignment(value, new, Write.PART)
        return self._variable._rewrite(lambda values: values.__setitem__(index, new))


def _at(combine: np.ufunc) -> Callable[..., None]:
    """A function that combines values at positions that may repeat; 16-bit floats in float32, rounded once."""

    def write(values: np.ndarray[Any, Any], positions: Any, new: np.ndarray[Any, Any]) -> None:
        total = values.astype("float32") if is_short(values.dtype) else values
        combine.at(total, positions, new)
        values[...] = total

    return write


def _one_value(value: Operand) -> Array:
    """The array of a Tensor or Variable; a stack of many values is refused, since a cell holds one."""
    if hasattr(value, "stacked"):
        value.numpy()
    return value.array


# See tensor.py: the class name that TensorFlow's guides print.
Variable.__name__ = "ResourceVariable"
VariablePart.__name__ = Tensor.__name__


# States of Variables --------------------------------------------------------------------------------------------------

# What Variables hold, to go back to. Arrays are not written while anything refers to them, so a copy costs one reference each.

Snapshot = list[tuple[Variable, Array]]
"""Variables, each with the array that it held."""


def snapshot(variables: Iterable[Variable]) -> Snapshot:
    """The values that Variables hold now.

    >>> v = tf.Variable(1.0)
    >>> before = snapshot([v])
    >>> _ = v.assign(2.0)
    >>> restore(before)
    >>> float(v)
    1.0
    """
    return [(variable, variable.array) for variable in variables]


def are_held(arrays: Iterable[Array], variables: Sequence[Variable]) -> bool:
    """True if Variables hold these very arrays."""
    for variable, array in zip(variables, arrays, strict=False):  # noqa: SIM110 (0.39 us for 12; `all` takes 0.58)
        if variable.array is not array:
            return False
    return True


def restore(state: Iterable[tuple[Variable, Array]]) -> None:
    """Have Variables hold these arrays."""
    for variable, array in state:
        variable.array = array


@contextmanager
def preserved(variables: Iterable[Variable]) -> Iterator[None]:
    """Within the block Variables may change; if it raises, they have what they held before."""
    before = snapshot(variables)
    try:
        yield
    except BaseException:
        restore(before)
        raise
