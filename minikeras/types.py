"""Dtypes by name, shapes that compare like tuples, and the type aliases used in annotations."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""An array of any backend: `numpy.ndarray` or a NumPy scalar, `cupy.ndarray`, or a test's strict array."""

TensorLike: TypeAlias = Any
"""A value that public operations accept: Tensor, Variable, array, Python number, or nested lists of these."""

Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None
"""One axis, several of them, or None for all."""

newaxis = None
"""A new axis of size 1 in an index."""

ShapeLike: TypeAlias = Any
"""A shape as users give it: an int, a TensorShape, a list of ints and scalar tensors, or a vector of integers."""


class DType:
    """An element type, such as `tf.float32`. Equal to its name, to the NumPy dtype and to the NumPy scalar type.

    Attributes:
        name: such as 'float32'.
        numpy: the NumPy dtype.
        as_numpy_dtype: the NumPy scalar type, for example `numpy.float32`.
        size: bytes of one element.
        is_floating, is_complex, is_integer, is_bool: its kind; a bool is no integer.
        is_unsigned: whether it holds integers from 0 on.
        is_differentiable: whether it carries gradients: floating and complex types do.

    >>> tf.float32 == "float32" == tf.float32.name, tf.float32.is_floating
    (True, True)
    """

    __slots__ = (
        *("as_numpy_dtype", "is_bool", "is_complex", "is_differentiable", "is_floating", "is_integer"),
        *("is_unsigned", "kind", "name", "numpy", "size"),
    )

    def __init__(self, name: str, numpy_dtype: Any) -> None:
        self.name = name
        self.numpy: np.dtype[Any] = np.dtype(numpy_dtype)
        self.as_numpy_dtype: Any = self.numpy.type
        self.size = self.numpy.itemsize
        self.kind = "f" if name == "bfloat16" else self.numpy.kind
        self.is_floating, self.is_complex = self.kind == "f", self.kind == "c"
        self.is_integer, self.is_bool = self.kind in "iu", self.kind == "b"
        self.is_differentiable, self.is_unsigned = self.kind in "fc", self.kind == "u"

    @property
    def min(self) -> Any:
        """Smallest finite value."""
        return self.info.min

    @property
    def max(self) -> Any:
        """Largest finite value."""
        return self.info.max

    @property
    def info(self) -> Any:
        """The limits that `np.finfo` or `np.iinfo` give, such as `info.eps`."""
        if self.is_integer:
            return np.iinfo(self.numpy)
        if self.name == "bfloat16":  # NumPy does not know it
            import ml_dtypes

            return ml_dtypes.finfo(self.numpy)  # type: ignore[no-untyped-call]
        return np.finfo(self.numpy)

    @property
    def real_dtype(self) -> DType:
        """The dtype of the parts of a complex number; of real numbers the dtype itself."""
        return as_dtype(self.numpy.type(0).real.dtype) if self.is_complex else self

    @property
    def base_dtype(self) -> DType:
        """The dtype itself: there are no reference dtypes."""
        return self

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if isinstance(other, DType):
            return self.name == other.name
        if isinstance(other, str) and other == "bfloat16":
            return self.name == other  # a comparison needs no ml_dtypes
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


DTypeLike: TypeAlias = DType | str | type | np.dtype[Any] | None
"""A dtype as users give it, for `as_dtype`; None where a function has a dtype of its own."""


_NAMES = (
    *("float16", "float32", "float64", "complex64", "complex128", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
_BY_NAME: dict[str, DType] = {name: DType(name, name) for name in _NAMES}
_BY_NAME["string"] = DType("string", object)
_BY_NUMPY: dict[Any, DType] = {dtype.numpy: dtype for dtype in _BY_NAME.values()}
_BY_PYTHON: dict[Any, DType] = {float: _BY_NAME["float32"], int: _BY_NAME["int32"], bool: _BY_NAME["bool"]}
_BY_PYTHON |= {str: _BY_NAME["string"], "float": _BY_NAME["float32"]}  # to NumPy 'float' is float64

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


def __getattr__(name: str) -> DType:
    """`bfloat16`, which needs the package ml_dtypes."""
    if name == "bfloat16":
        return _bfloat16()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
    if isinstance(value, (type, str)) and value in _BY_PYTHON:
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


def _size(size: Any) -> int:
    try:
        found = operator.index(size)
    except TypeError:
        raise TypeError(f"TensorShape: a size must be an integer or None, found {size!r:.80}.") from None
    if found < 0:
        raise ValueError(f"TensorShape: a size must be 0 or more, found {found}. None stands for any size.")
    return found


class TensorShape(tuple[int, ...]):
    """The shape of a Tensor: a tuple of ints that also equals lists. None stands for an axis of any size, and for any shape.

    >>> shape = tf.zeros([3, 2]).shape
    >>> shape == (3, 2), shape == [3, 2], shape.rank, shape.num_elements(), shape.as_list()
    (True, True, 2, 6, [3, 2])
    >>> tf.TensorShape([None, 2]).is_compatible_with(shape), tf.TensorShape(None).rank
    (True, None)
    """

    __slots__ = ()

    def __new__(cls, dims: Any = ()) -> TensorShape:
        if dims is None or isinstance(dims, _AnyShape):
            return tuple.__new__(_AnyShape)
        if isinstance(dims, str):
            raise TypeError(f"TensorShape: needs sizes, found the text {dims!r:.80}.")
        sizes = (dims,) if hasattr(dims, "__index__") and not getattr(dims, "ndim", 0) else dims
        return tuple.__new__(cls, [None if size is None else _size(size) for size in sizes])

    @property
    def rank(self) -> Any:
        """Number of axes; None if it may be any."""
        return len(self)

    @property
    def ndims(self) -> Any:
        """The same as `rank`."""
        return self.rank

    @property
    def dims(self) -> Any:
        """The sizes as a list; None if there may be any number."""
        return None if self.rank is None else list(self)

    def as_list(self) -> list[int]:
        """The sizes as a list.

        Raises:
            ValueError: if the number of axes is not known.
        """
        return list(self)

    def num_elements(self) -> Any:
        """Product of the sizes, 1 for a scalar; None if a size is not known."""
        return math.prod(self) if self.is_fully_defined() else None

    def is_fully_defined(self) -> bool:
        """True if all sizes are known: always for a tensor, not always for a TensorSpec."""
        return self.rank is not None and None not in self

    def concatenate(self, other: Iterable[int]) -> TensorShape:
        """This shape followed by another."""
        other = TensorShape(other)
        return TensorShape(None) if None in (self.rank, other.rank) else tuple.__new__(TensorShape, (*self, *other))

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    # Shapes that leave something open ----------------------------------------------------------------------------------

    def is_compatible_with(self, other: Any) -> bool:
        """True if some shape fits both."""
        other = TensorShape(other)
        if None in (self.rank, other.rank):
            return True
        return len(self) == len(other) and all(None in pair or pair[0] == pair[1] for pair in zip(self, other, strict=True))

    def is_subtype_of(self, other: Any) -> bool:
        """True if every shape that fits this one fits the other."""
        other = TensorShape(other)
        if None in (self.rank, other.rank):
            return other.rank is None
        return len(self) == len(other) and all(wide in (None, size) for size, wide in zip(self, other, strict=True))

    def merge_with(self, other: Any) -> TensorShape:
        """The intersection of two partial shapes.

        Raises:
            ValueError: if no shape fits both.
        """
        other = TensorShape(other)
        self.assert_is_compatible_with(other)
        if None in (self.rank, other.rank):
            return other if self.rank is None else self
        return TensorShape([a if b is None else b for a, b in zip(self, other, strict=True)])

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The most specific shape that both fit: the sizes in which they agree, and None elsewhere."""
        other = TensorShape(other)
        if self.rank is None or self.rank != other.rank:
            return TensorShape(None)
        return TensorShape([a if a == b else None for a, b in zip(self, other, strict=True)])

    def with_rank(self, rank: int) -> TensorShape:
        """This shape, which must have `rank` axes; of TensorShape(None), the shape of that many open axes.

        Raises:
            ValueError: if it has another number.
        """
        return self.merge_with([None] * int(rank))

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape, if it has no fewer axes, or ValueError."""
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}.")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """This shape, if it has no more axes, or ValueError."""
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}.")
        return self

    def assert_is_compatible_with(self, other: Any) -> None:
        """ValueError if no shape fits both."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are incompatible.")

    def assert_has_rank(self, rank: int) -> None:
        """ValueError if it has another number of axes."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}.")

    def assert_same_rank(self, other: Any) -> None:
        """ValueError if the numbers of axes differ."""
        other = TensorShape(other)
        if None not in (self.rank, other.rank) and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank.")

    def assert_is_fully_defined(self) -> None:
        """ValueError if a size is not known."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined.")

    def __getitem__(self, key: Any) -> Any:
        item = tuple.__getitem__(self, key)
        return TensorShape(item) if isinstance(key, slice) else item

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (self.dims,)

    def __str__(self) -> str:
        return tuple.__repr__(self)

    def __repr__(self) -> str:
        return f"TensorShape({self.dims})"


class _AnyShape(TensorShape):
    """`TensorShape(None)`: neither the sizes nor their number are known."""

    __slots__ = ()

    @property
    def rank(self) -> None:
        """None: the number of axes is not known."""
        return None

    def _refuse(self, *key: Any) -> Any:
        raise ValueError("The number of axes of TensorShape(None) is not known, so it has no sizes. Give it by with_rank(n).")

    __len__ = __iter__ = as_list = _refuse

    def __getitem__(self, key: Any) -> Any:
        return TensorShape(None) if isinstance(key, slice) else None

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, _AnyShape)

    def __hash__(self) -> int:
        return hash(None)

    def __str__(self) -> str:
        return "<unknown>"


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

    def __init__(self, shape: Iterable[int | None] | None, dtype: DTypeLike = "float32", name: str | None = None) -> None:
        sizes = None if shape is None or isinstance(shape, _AnyShape) else shape
        self.shape = None if sizes is None else TensorShape([None if size is None else int(size) for size in sizes])
        self.dtype = as_dtype(dtype)
        self.name = name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The spec that a tensor has itself."""
        return cls(tensor.shape, tensor.dtype, name)

    def is_compatible_with(self, value: Any) -> bool:
        """True if a tensor, or another spec, has this dtype and fits this shape."""
        if as_dtype(value.dtype) != self.dtype:
            return False
        return TensorShape(self.shape).is_compatible_with(value.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def _facts(self) -> tuple[Any, ...]:
        return None if self.shape is None else tuple(self.shape), self.dtype.name, self.name

    def __repr__(self) -> str:
        named = f", name={self.name!r}" if self.name else ""
        return f"TensorSpec(shape={None if self.shape is None else tuple(self.shape)}, dtype={self.dtype!r}{named})"
