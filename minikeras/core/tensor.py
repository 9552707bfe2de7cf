"""Tensor: an immutable value with a key, by which a tape recognises it without keeping it alive; and its operators."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..types import Array, DType, TensorLike, TensorShape, as_dtype
from .arrays import device_name, is_array, to_numpy
from .registry import operations

_FLAGGED = (1, 0)
"""The first version of DLPack that can say that memory is read-only. A library that asks for an older one is trusted."""

_SHARED = "biufc"
"""Kinds of elements that other libraries know: not strings, nor bfloat16, which NumPy takes for raw bytes."""


Method = Callable[[Any, TensorLike], Any]


class Reference:
    """A hashable stand-in for a Tensor or Variable, equal only to references to the same object."""

    __slots__ = ("__weakref__", "_referent")

    def __init__(self, referent: Any) -> None:
        self._referent = referent

    def deref(self) -> Any:
        """The Tensor or Variable itself."""
        return self._referent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._referent is other._referent

    def __hash__(self) -> int:
        return id(self._referent)

    def __lt__(self, other: Reference) -> bool:
        """An order that lasts as long as the objects do: nests sort the keys of dicts."""
        return id(self._referent) < id(other._referent)


_new = tuple.__new__  # skips checks that a user's TensorShape may need


def _operator(name: str, reflected: str | None = None, of_bools: str | None = None) -> tuple[Method, Method]:
    """The methods of an operator, for a Tensor before it and for one behind it.

    Args:
        name: of the operation; it is looked up at the call, since operations are defined later.
        reflected: the method of another operand with which Python may go on, see `bind`.
        of_bools: the operation for truth values, where that is another one.
    """
    known = vars(operations)

    def before(self: Operand, other: TensorLike) -> Any:
        chosen = name if of_bools is None or self.array.dtype.kind != "b" else of_bools
        return known["bind"](known[chosen], (self, other), {}, reflected)

    def behind(self: Operand, other: TensorLike) -> Any:
        chosen = name if of_bools is None or self.array.dtype.kind != "b" else of_bools
        return known["bind"](known[chosen], (other, self), {})

    return before, behind


class Operand:
    """Base of Tensor and Variable: everything that only needs `array`, the values at this moment."""

    __slots__ = ()
    __array_priority__ = 100
    array: Array
    key: int

    @property
    def shape(self) -> TensorShape:
        """The sizes of the axes."""
        return _new(TensorShape, self.array.shape)

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return as_dtype(self.array.dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return int(self.array.ndim)

    @property
    def device(self) -> str:
        """The device of the values, for example 'CPU:0'."""
        return device_name(self.array)

    def get_shape(self) -> TensorShape:
        """The sizes of the axes."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Check the shape, which a value cannot change: another one raises a ShapeError. None fits any size."""
        if not self.shape.is_compatible_with(shape):
            raise ShapeError(f"Tensor's shape {self.shape} is not compatible with supplied shape {shape}.")

    def ref(self) -> Reference:
        """A hashable reference, for sets and keys of dicts."""
        return Reference(self)

    def numpy(self) -> Any:
        """A copy of the values as an ndarray, or a NumPy scalar if there are no axes."""
        values = to_numpy(self.array)
        operations.leave(self, ".numpy()")
        return np.array(values) if values.ndim else values[()]

    def __hash__(self) -> int:
        kind = "Variable" if hasattr(self, "assign") else "Tensor"
        raise TypeError(f"{kind} is unhashable. Instead, use {kind.lower()}.ref() as the key.")

    # Leaving for Python ------------------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        if self.array.size != 1:
            raise ValueError(
                f"The truth value of a tensor with {self.array.size} elements (shape {self.shape}) is ambiguous. "
                "Use tf.reduce_any or tf.reduce_all."
            )
        return self._leave("bool()", bool(to_numpy(self.array)))

    def __float__(self) -> float:
        return self._leave("float()", float(to_numpy(self.array).reshape(()) if self.array.size == 1 else self.array))

    def __int__(self) -> int:
        return self._leave("int()", int(to_numpy(self.array).reshape(()) if self.array.size == 1 else self.array))

    def __complex__(self) -> complex:
        return self._leave("complex()", complex(to_numpy(self.array)))

    def _leave(self, conversion: str, value: Any) -> Any:
        """The value, after notifying the interpreters that it leaves."""
        operations.leave(self, conversion, value)
        return value

    def __index__(self) -> int:
        if self.array.ndim or self.array.dtype.kind not in "iu":
            raise TypeError(f"only scalar integer tensors serve as an index, got shape {self.shape}, {self.dtype.name}.")
        return self._leave("an index", int(to_numpy(self.array)))

    def __len__(self) -> int:
        if not self.array.ndim:
            raise TypeError("Scalar tensor has no `len()`.")
        return int(self.array.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.array.ndim:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return (self[index] for index in range(len(self)))

    def __format__(self, specification: str) -> str:
        return format(self.numpy() if not self.array.ndim else str(self), specification)

    # In other libraries, without a copy: the array itself, marked as read-only -------------------------------------------

    def _shared(self, how: str) -> Array:
        """The array, after notifying the interpreters that it leaves; NumPy's scalars as arrays without axes."""
        operations.leave(self, how)
        return np.asarray(self.array) if isinstance(self.array, np.generic) else self.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self._shared("a NumPy function")
        if copy is False and not isinstance(array, np.ndarray):
            raise ValueError("A tensor on a GPU cannot become a NumPy array without a copy; leave out copy=False.")
        return np.array(_read_only(to_numpy(array)), dtype=dtype, copy=copy)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        array = self._shared("DLPack")
        if array.dtype.kind not in _SHARED:
            raise BufferError(
                f"A tensor of dtype {self.dtype.name} cannot be shared by DLPack. Cast it: tf.cast(x, 'float32')."
            )
        if isinstance(array, np.ndarray):
            flagged = max_version is not None and tuple(max_version) >= _FLAGGED
            if not (array.flags.forc and (flagged or array.flags.writeable)):  # PyTorch has no negative strides, JAX no gaps
                array = array.copy()
            elif flagged:
                array = _read_only(array)
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return array.__dlpack__(**{name: value for name, value in options.items() if value is not None})

    def _interface(self, name: str) -> dict[str, Any]:
        """NumPy's or CUDA's description of the array by its address, read-only; a missing attribute if there is none."""
        array = self.array
        found = None if isinstance(array, np.generic) or array.dtype.kind not in _SHARED else getattr(array, name, None)
        if found is None:
            raise AttributeError(f"a tensor of dtype {self.dtype.name} on this device has no {name}.")
        self._shared("a NumPy function" if name == "__array_interface__" else name)
        return {**found, "data": (found["data"][0], True)}

    def __dlpack_device__(self) -> tuple[int, int]:
        array = self.array
        return (np.asarray(array) if isinstance(array, np.generic) else array).__dlpack_device__()

    # Operators ---------------------------------------------------------------------------------------------------

    __add__, __radd__ = _operator("add", "__radd__")
    __sub__, __rsub__ = _operator("subtract", "__rsub__")
    __mul__, __rmul__ = _operator("multiply", "__rmul__")
    __truediv__, __rtruediv__ = _operator("divide", "__rtruediv__")
    __floordiv__, __rfloordiv__ = _operator("floor_divide", "__rfloordiv__")
    __mod__, __rmod__ = _operator("floor_modulus", "__rmod__")
    __pow__, __rpow__ = _operator("power", "__rpow__")
    __matmul__, __rmatmul__ = _operator("matrix_product", "__rmatmul__")
    __and__, __rand__ = _operator("bitwise_and", of_bools="logical_and")
    __or__, __ror__ = _operator("bitwise_or", of_bools="logical_or")
    __xor__, __rxor__ = _operator("bitwise_xor", of_bools="logical_xor")
    __lt__, __gt__ = _operator("less")[0], _operator("greater")[0]
    __le__, __ge__ = _operator("less_equal")[0], _operator("greater_equal")[0]

    def __neg__(self) -> Any:
        return operations.negative(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return operations.absolute(self)

    def __invert__(self) -> Any:
        return (operations.logical_not if self.array.dtype.kind == "b" else operations.bitwise_not)(self)

    def __eq__(self, other: object) -> Any:
        return operations.elementwise_equality(self, other, True)

    def __ne__(self, other: object) -> Any:
        return operations.elementwise_equality(self, other, False)

    def __getitem__(self, key: Any) -> Any:
        return operations.getitem(self, key)


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    view = array.view()
    view.flags.writeable = False
    return view


next_key = itertools.count().__next__
"""Serial numbers shared by Tensors and Variables: a lower one was made earlier."""


class Tensor(Operand):
    """An n-dimensional array of one dtype that remembers nothing and never changes.

    Made by `tf.constant`, `tf.convert_to_tensor` and by every operation.

    >>> x = tf.constant([1.0, 2.0])
    >>> print(x * x + 1)
    tf.Tensor([2. 5.], shape=(2,), dtype=float32)
    """

    __slots__ = ("__weakref__", "array", "attached", "key")

    def __init__(self, array: Array) -> None:
        self.array = array
        self.attached: Any = None  # what a floor above keeps with it
        self.key = next_key()

    # An address is good as long as the value stays where it is, so Variables have neither of these two.

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._interface("__array_interface__")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._interface("__cuda_array_interface__")

    def __str__(self) -> str:
        return f"tf.Tensor({to_numpy(self.array)}, shape={self.shape}, dtype={self.dtype.name})"

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={values_text(self.array)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Tensor, (self.numpy(),)

    def __copy__(self, *memo: Any) -> Tensor:
        return self

    __deepcopy__ = __copy__


def values_text(array: Array) -> str:
    """The values as NumPy prints them, on lines of their own if they need several."""
    values = to_numpy(array)[()]
    text = str(values) if isinstance(values, np.generic) else repr(values)
    return "\n" + text if "\n" in text else text


# TensorFlow's guides print the class of a tensor; code that was written beside them compares that name.
Tensor.__name__ = "EagerTensor"


def array_of(value: Any) -> Any:
    """The bare array of a Tensor or Variable; anything else as it is."""
    return value.array if isinstance(value, Operand) else value


def arrays_of(values: Any) -> Array:
    """The bare array of a Tensor, or of each in a tuple or list; anything else as it is."""
    if isinstance(values, Tensor):
        return values.array
    if type(values) is tuple or type(values) is list:
        return type(values)([arrays_of(value) for value in values])
    return values


def tensors_of(values: Any) -> Any:
    """A bare array as a Tensor, or each in a tuple or list; anything else as it is."""
    if type(values) is tuple or type(values) is list:
        return type(values)([tensors_of(value) for value in values])
    return Tensor(values) if is_array(values) else values
