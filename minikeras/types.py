"""Dtypes by name, shapes that compare like tuples, and the type aliases used in annotations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""An array of any backend: `numpy.ndarray` or a NumPy scalar, `cupy.ndarray`, or a test's strict array."""

TensorLike: TypeAlias = Any
"""What public operations accept: Tensor, Variable, array, Python number, or nested lists of these."""


class DType:
    """An element type, such as `tf.float32`. Equal to its name, to the NumPy dtype and to the NumPy scalar type.

    Attributes:
        name: such as 'float32'.
        numpy: the NumPy dtype.
        as_numpy_dtype: the NumPy scalar type, for example `numpy.float32`.
        size: bytes of one element.
        is_floating, is_complex, is_integer, is_bool: what it holds; a bool is no integer.
        is_differentiable: whether it carries gradients: floating and complex types do.

    >>> tf.float32 == "float32" == tf.float32.name, tf.float32.is_floating
    (True, True)
    """

    __slots__ = (
        *("as_numpy_dtype", "is_bool", "is_complex", "is_differentiable", "is_floating", "is_integer", "kind", "name", "numpy"),
        "size",
    )

    def __init__(self, name: str, numpy_dtype: Any) -> None:
        self.name = name
        self.numpy: np.dtype[Any] = np.dtype(numpy_dtype)
        self.as_numpy_dtype: Any = self.numpy.type
        self.size = self.numpy.itemsize
        self.kind = "f" if name == "bfloat16" else self.numpy.kind
        self.is_floating, self.is_complex = self.kind == "f", self.kind == "c"
        self.is_integer, self.is_bool = self.kind in "iu", self.kind == "b"
        self.is_differentiable = self.kind in "fc"

    @property
    def min(self) -> Any:
        """Smallest finite value."""
        return self._limits().min

    @property
    def max(self) -> Any:
        """Largest finite value."""
        return self._limits().max

    def _limits(self) -> Any:
        if self.is_integer:
            return np.iinfo(self.numpy)
        if self.name == "bfloat16":  # NumPy does not know it
            import ml_dtypes

            return ml_dtypes.finfo(self.numpy)  # type: ignore[no-untyped-call]
        return np.finfo(self.numpy)

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if isinstance(other, DType):
            return self.name == other.name
        try:
            return as_dtype(other).name == self.name
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: '{self.name}'>"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


_NAMES = (
    *("float16", "float32", "float64", "complex64", "complex128", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
_BY_NAME: dict[str, DType] = {name: DType(name, name) for name in _NAMES}
_BY_NAME["string"] = DType("string", object)
_BY_NUMPY: dict[Any, DType] = {dtype.numpy: dtype for dtype in _BY_NAME.values()}
_BY_PYTHON = {float: _BY_NAME["float32"], int: _BY_NAME["int32"], bool: _BY_NAME["bool"], str: _BY_NAME["string"]}

float16, float32, float64 = _BY_NAME["float16"], _BY_NAME["float32"], _BY_NAME["float64"]
int8, int16, int32, int64 = (_BY_NAME[f"int{bits}"] for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_BY_NAME[f"uint{bits}"] for bits in (8, 16, 32, 64))
complex64, complex128, boolean, string = (_BY_NAME[name] for name in ("complex64", "complex128", "bool", "string"))


def _bfloat16() -> DType:
    """The sixteen-bit brain float, which NumPy learns from the package `ml_dtypes`."""
    from .errors import MissingExtraError

    try:
        import ml_dtypes
    except ImportError as error:
        raise MissingExtraError("bfloat16 needs the package ml_dtypes: pip install ml_dtypes") from error
    dtype = _BY_NAME.setdefault("bfloat16", DType("bfloat16", ml_dtypes.bfloat16))
    return _BY_NUMPY.setdefault(dtype.numpy, dtype)


def as_dtype(value: Any) -> DType:
    """The `DType` that a DType, a name, a NumPy dtype, a scalar type or a Python type stands for.

    Raises:
        TypeError: if it names no dtype of this package.

    >>> as_dtype("float32"), as_dtype(int), as_dtype("f8")
    (tf.float32, tf.int32, tf.float64)
    """
    if isinstance(value, np.dtype) and value in _BY_NUMPY:
        return _BY_NUMPY[value]
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if isinstance(value, str) and value == "bfloat16":
        return _bfloat16()
    if isinstance(value, type) and value in _BY_PYTHON:
        return _BY_PYTHON[value]
    if value is None:
        raise TypeError("None is no dtype; write for example 'float32'.")
    try:
        found = _BY_NUMPY.get(np.dtype(value))
    except (TypeError, ValueError):
        raise TypeError(f"{value!r} is no dtype; there are {', '.join(_BY_NAME)}.") from None
    if found is None:
        if np.dtype(value).kind in "USO":
            return string
        if np.dtype(value).name == "bfloat16":
            return _bfloat16()
        raise TypeError(f"{value!r} is no dtype of minikeras; there are {', '.join(_BY_NAME)}.")
    return found


class TensorShape(tuple[int, ...]):
    """The shape of a Tensor: a tuple of ints that also equals lists.

    >>> shape = tf.zeros([3, 2]).shape
    >>> shape == (3, 2), shape == [3, 2], shape.rank, shape.num_elements(), shape.as_list()
    (True, True, 2, 6, [3, 2])
    """

    __slots__ = ()

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self)

    ndims = rank

    @property
    def dims(self) -> list[int]:
        """The sizes as a list."""
        return list(self)

    def as_list(self) -> list[int]:
        """The sizes as a list."""
        return list(self)

    def num_elements(self) -> Any:
        """Product of the sizes, 1 for a scalar; None if a TensorSpec leaves one open."""
        if None in self:
            return None
        count = 1
        for size in self:
            count *= size
        return count

    def concatenate(self, other: Iterable[int]) -> TensorShape:
        """This shape followed by another."""
        return TensorShape((*self, *other))

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape((*other, *self))

    def is_fully_defined(self) -> bool:
        """Whether all sizes are known: always those of a tensor, but not all of a TensorSpec need be."""
        return None not in self

    def __getitem__(self, key: Any) -> Any:
        item = tuple.__getitem__(self, key)
        return TensorShape(item) if isinstance(key, slice) else item

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __str__(self) -> str:
        return tuple.__repr__(self)

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"


class TensorSpec:
    """The shape and dtype that a tensor is to have, as in a signature. None stands for an axis of any size, or for any shape.

    Args:
        shape: sizes of the axes, or None.
        dtype: of the elements.
        name: shown.

    >>> spec = tf.TensorSpec([None, 3])
    >>> spec, spec.is_compatible_with(tf.zeros((5, 3))), spec.is_compatible_with(tf.zeros((5, 4)))
    (TensorSpec(shape=(None, 3), dtype=tf.float32), True, False)
    """

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, shape: Iterable[int | None] | None, dtype: Any = "float32", name: str | None = None) -> None:
        sizes: Any = shape if shape is None else [None if size is None else int(size) for size in shape]
        self.shape: TensorShape | None = None if sizes is None else TensorShape(sizes)
        self.dtype = as_dtype(dtype)
        self.name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The spec that a tensor has itself."""
        return cls(tensor.shape, tensor.dtype, name)

    def is_compatible_with(self, value: Any) -> bool:
        """Whether a tensor, or another spec, has this dtype and fits this shape."""
        if as_dtype(value.dtype) != self.dtype:
            return False
        if self.shape is None or value.shape is None:
            return True
        pairs = zip(self.shape, value.shape, strict=False)
        return len(self.shape) == len(value.shape) and all(None in pair or pair[0] == pair[1] for pair in pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def _facts(self) -> tuple[Any, ...]:
        return None if self.shape is None else tuple(self.shape), self.dtype.name, self.name

    def __repr__(self) -> str:
        named = f", name={self.name!r}" if self.name else ""
        return f"TensorSpec(shape={None if self.shape is None else tuple(self.shape)}, dtype={self.dtype!r}{named})"
