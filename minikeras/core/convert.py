"""Conversion of Python numbers, lists and arrays to Tensors by TensorFlow's dtype rules: a Tensor beside them decides."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError
from ..types import Array, DType, TensorShape, as_dtype
from .arrays import creation_namespace, device, is_array, namespace, to_device, to_numpy
from .primitive import Primitive
from .registry import operations, register
from .tensor import Operand, Tensor
from .warnings import mixed_dtypes

_NUMBERS = (bool, int, float, complex)
_USUAL = (Operand, np.ndarray, *_NUMBERS, str, bytes, list, tuple)
_RANK_OF_KIND = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Tensor:
    """The value as a Tensor; a Tensor is returned as it is, a Variable is read, anything else is copied.

    Args:
        value: Tensor, Variable, array, number, string, or nested lists of these. Tensors inside are stacked, and numbers
            beside them take their dtype.
        dtype: required dtype, or None: float32 for Python floats, int32 for ints (int64 if too large), an array's own.
            Tensors inside a list are cast to it.
        dtype_hint: used if `dtype` is None and the value can take it.
        name: accepted for compatibility, ignored.

    Returns:
        A Tensor of the value's shape.

    Raises:
        ValueError: for None, ragged lists, or a Tensor of another dtype than asked for.
        TypeError: if a number does not fit the dtype, such as 1.5 and int32.

    >>> convert_to_tensor([1, 2.5]).dtype
    tf.float32
    """
    if hasattr(value, "read_value"):
        value = value.read_value()
    if isinstance(value, Tensor):
        if dtype is not None and as_dtype(dtype) != value.dtype:
            raise ValueError(
                f"Tensor conversion requested dtype {as_dtype(dtype).name} for Tensor with dtype {value.dtype.name}. "
                f"Convert it: tf.cast(x, '{as_dtype(dtype).name}')."
            )
        return value
    if isinstance(value, (list, tuple)) and holds_tensor(value):
        return _stacked(value, None if dtype is None else as_dtype(dtype))
    if dtype is None and dtype_hint is not None:
        try:
            return convert_to_tensor(value, dtype_hint)
        except TypeError:
            pass
    return Tensor(to_array(value, None if dtype is None else as_dtype(dtype)))


def holds_tensor(value: object) -> bool:
    """True for a Tensor, a Variable, and for nested lists with one somewhere inside."""
    if isinstance(value, (list, tuple)):
        return any(holds_tensor(element) for element in value)
    return hasattr(value, "key") or hasattr(value, "read_value")


def read(value: Any) -> Any:
    """A value that holds a Tensor, as a Tensor: Variables are read, lists are stacked. Other values are returned as they are.

    Every function asks this of what it is given before it looks at values. So a list of Tensors reaches tapes, stacks of values
    and recordings as the operation that it is.
    """
    if isinstance(value, Tensor) or not holds_tensor(value):
        return value
    return convert_to_tensor(value)


def _stacked(value: Any, dtype: DType | None) -> Tensor:
    """Nested lists with Tensors inside as one Tensor: of `dtype`, or of the dtype of the first one inside."""
    first = value  # the one that gives the others dtype and device
    while isinstance(first, (list, tuple)):
        first = next(element for element in first if holds_tensor(element))
    first = convert_to_tensor(first)
    return _element(value, dtype or first.dtype, first, cast=dtype is not None)


def _element(value: Any, dtype: DType, beside: Tensor, cast: bool) -> Tensor:
    """An element of a list with Tensors, as a Tensor."""
    if not holds_tensor(value):
        return convert_to_tensor(_operand(value, dtype, beside), dtype)
    if isinstance(value, (list, tuple)):
        return operations.stack([_element(one, dtype, beside, cast) for one in value])
    tensor = convert_to_tensor(value)
    if not cast or tensor.dtype == dtype:
        return tensor
    if _RANK_OF_KIND.get(tensor.dtype.kind, 4) > _RANK_OF_KIND.get(dtype.kind, -1):
        raise DTypeError(f"Cannot convert a list that holds a tensor of dtype {tensor.dtype.name} to {dtype.name}; cast it.")
    return operations.cast(tensor, dtype=dtype.name)


def to_array(value: Any, dtype: DType | None = None) -> Array:
    """A new array on the current device, by the rules of `convert_to_tensor`."""
    value = _native(value)
    if is_array(value):
        wanted = value.dtype if dtype is None else dtype.numpy
        if (namespace(value) is not np or creation_namespace() is not np) and wanted.kind not in "USO":
            array = to_device(value)
            return array.astype(wanted) if array.dtype != wanted else array.copy()
        array = np.array(value, dtype=None if wanted.kind in "USO" else wanted)
        if array.dtype.kind in "US" or (array.dtype.kind == "O" and dtype is not None):
            array = array.astype(object)
        if array.dtype.kind == "O" and not all(isinstance(item, (str, bytes)) for item in array.flat):
            kinds = ", ".join(sorted({type(item).__name__ for item in array.flat}))
            raise ValueError(
                f"an object array of shape {array.shape} that holds {kinds} is no tensor; convert it to numbers, or make it "
                "text: in a column of a data frame fill in what is missing, column.fillna('')."
            )
        return _scalar_or_array(array)
    if value is None:
        raise ValueError("Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a Tensor.")
    array = _from_python(value)
    if dtype is None:
        fits = array.dtype == np.int64 and (not array.size or (array.min() >= -(2**31) and array.max() < 2**31))
        array = array.astype(np.float32) if array.dtype == np.float64 else array.astype(np.int32) if fits else array
    elif array.dtype != dtype.numpy:
        _check_fits(value, array, dtype)
        array = array.astype(dtype.numpy)
    if creation_namespace() is not np:
        return to_device(array)
    return _scalar_or_array(array)


def _native(value: Any) -> Any:
    """An array, series or image of another library as one of ours; anything else as it is."""
    known = isinstance(value, _USUAL) or is_array(value)
    return value if known or not (hasattr(value, "__dlpack__") or hasattr(value, "__array__")) else adopt(value)


def _scalar_or_array(array: np.ndarray[Any, Any]) -> Array:
    """NumPy's own scalar for an array without axes: its operators are faster. A string has none, so it stays an array."""
    return array if array.ndim or array.dtype.kind == "O" else array[()]


def _from_python(value: Any) -> np.ndarray[Any, Any]:
    """NumPy's reading of a number, string, list or range."""
    if isinstance(value, Operand):
        value = to_numpy(value.array)
    try:
        array = np.array(value, "int32" if isinstance(value, TensorShape) and value.rank == 0 else None)
    except ValueError as error:
        raise ValueError(f"Can't convert non-rectangular Python sequence to Tensor: {error}.") from None
    if array.dtype.kind in "US":
        if not all(isinstance(item, (str, bytes)) for item in np.array(value, dtype=object).flat):
            raise ValueError(f"Can't convert Python sequence with mixed types to Tensor: text beside numbers in {value!r:.80}.")
        return array.astype(object)
    if array.dtype.kind not in "biufc" and not all(isinstance(item, (str, bytes)) for item in array.flat):
        raise ValueError(f"Attempt to convert a value ({value!r:.80}) with an unsupported type ({type(value)}) to a Tensor.")
    return array


def _check_fits(value: Any, array: np.ndarray[Any, Any], dtype: DType) -> None:
    """Refuse a Python value whose kind the dtype cannot hold: 1.5 as int32, 1j as float32, 'a' as a number."""
    found, wanted = array.dtype.kind, dtype.kind
    fits = array.size == 0 or (
        found in _RANK_OF_KIND and wanted in _RANK_OF_KIND and _RANK_OF_KIND[found] <= _RANK_OF_KIND[wanted]
    )
    if not fits:
        raise DTypeError(f"Cannot convert {value!r:.60} to EagerTensor of dtype {dtype.name}.")
    if wanted in "iu" and array.size and found in "iu":
        limits = np.iinfo(dtype.numpy)
        if array.min() < limits.min or array.max() > limits.max:
            raise DTypeError(f"Cannot convert {value!r:.60} to EagerTensor of dtype {dtype.name}: out of range.")


def operands(primitive: Primitive, inputs: Sequence[Any]) -> Sequence[Any]:
    """The inputs as Tensors of one dtype; Python numbers stay numbers beside a Tensor, since they take its dtype.

    Raises:
        DTypeError: if two Tensors differ in dtype, or a number does not fit the Tensor's dtype.
    """
    given = [read(x) for x in inputs]
    if not primitive.uniform:
        return [x if isinstance(x, Tensor) or type(x) in _NUMBERS else convert_to_tensor(x) for x in given]
    tensors = [x for x in given if isinstance(x, Tensor)]
    if not tensors:
        first = convert_to_tensor(given[0])
        tensors, given = [first], [first, *given[1:]]
    if any(x.array.dtype != tensors[0].array.dtype for x in tensors[1:]):
        raise mixed_dtypes(primitive.name, given)
    if len(tensors) == len(given):
        return given
    return [_operand(x, tensors[0].dtype, tensors[0]) for x in given]


def _operand(value: Any, dtype: DType, beside: Tensor) -> Any:
    """One input, made fit to stand beside a Tensor of `dtype`."""
    if isinstance(value, Tensor):
        return value
    kind, of_numpy = type(value), dtype.numpy.kind  # bfloat16 is a float to us, but turns into float32 beside a number
    if (kind is float and of_numpy in "fc") or (kind is int and of_numpy in "iufc") or (kind is complex and of_numpy == "c"):
        return value
    if hasattr(value, "beside"):
        return value.beside(dtype, beside.array)  # a number of its own for each member of an ensemble
    value = _native(value)
    array = np.asarray(to_numpy(value)) if is_array(value) else None
    if array is not None and array.dtype.kind in "biufc":
        if _RANK_OF_KIND[array.dtype.kind] > _RANK_OF_KIND.get(dtype.kind, -1):
            raise DTypeError(f"Cannot convert {array!r:.60} to EagerTensor of dtype {dtype.name}.")
        return Tensor(to_device(array.astype(dtype.numpy), namespace(beside.array)))
    return Tensor(to_device(to_array(value, dtype), namespace(beside.array)))


register("operands", operands)


# Arrays of other libraries --------------------------------------------------------------------------------------------

# Arrays of other libraries as NumPy's or CuPy's own, in the same memory where that is possible.

_HOST, _GPU = (1, 3), (2, 13)
"""Numbers of DLPack for memory that the CPU reads (3: pinned) and that CUDA reads (13: managed)."""

_REFUSALS = (BufferError, RuntimeError, TypeError, ValueError)


def adopt(value: Any) -> Array:
    """The numbers of a foreign array as an ndarray, or as a CuPy array if they are on a GPU; not copied if they can be shared.

    Raises:
        ValueError: if neither way works, with what the other library said.
    """
    if not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    try:
        return _shared(value)
    except _REFUSALS as error:
        reason = error  # of bfloat16, for example; some libraries still give an ndarray
    with contextlib.suppress(*_REFUSALS):
        if hasattr(value, "__array__"):
            return np.asarray(value)
    raise _refused(value, reason) from reason


def from_capsule(capsule: Any) -> Array:
    """The array in a bare DLPack capsule, which does not say where it lies: on the current device, it is assumed."""
    xp = creation_namespace()
    return xp.from_dlpack(_Capsule(capsule, (_HOST if xp is np else _GPU)[0]))


def _shared(value: Any) -> Array:
    kind, index = value.__dlpack_device__()
    if kind in _HOST:
        return np.from_dlpack(value)
    if kind in _GPU:
        with device(f"GPU:{index}"):
            return creation_namespace().from_dlpack(value)
    raise BufferError(f"device type {int(kind)} of DLPack is neither CPU nor CUDA")


def _refused(value: Any, reason: Exception) -> ValueError:
    kind = type(value)
    return ValueError(
        f"a {kind.__module__}.{kind.__name__} cannot become a tensor: {str(reason).rstrip('.')}. "
        "Bring it to the CPU, detach it from its gradient and cast it to a dtype of NumPy first."
    )


class _Capsule:
    """A capsule, in the form in which libraries take it."""

    def __init__(self, capsule: Any, kind: int) -> None:
        self._capsule, self._kind = capsule, kind

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._kind, 0
