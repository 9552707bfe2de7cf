"""IndexedSlices: rows of a tensor that is zero elsewhere, as the gradient of a gather along the first axis.

Only additions and reads of Variables keep the rows apart on the way to the source; every rule computes with the whole.
"""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..types import DType, TensorLike, TensorShape, as_dtype
from .convert import convert_to_tensor
from .registry import operations
from .tensor import Tensor


class IndexedSlices:
    """Slices along the first axis of a tensor that is zero elsewhere. An index that occurs twice counts twice.

    `tf.convert_to_tensor` and every operation make a Tensor of it; it has no arithmetic of its own but negation and addition.

    Args:
        values: shape (n, ...), the slices.
        indices: shape (n,), the position of each along the first axis.
        dense_shape: of the whole tensor; may be left out where it is not needed.

    >>> table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> with tf.GradientTape() as tape:
    ...     rows = tf.gather(table, [2, 0, 2])
    >>> gradient = tape.gradient(rows, table)
    >>> print(gradient.indices.numpy(), tf.convert_to_tensor(gradient).numpy().tolist())
    [2 0 2] [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]
    """

    __slots__ = ("_shape", "indices", "values")
    __array_ufunc__ = None  # NumPy would add it to each element of an array

    def __init__(self, values: Any, indices: TensorLike, dense_shape: Any = None) -> None:
        self.values = values if hasattr(values, "dtype") else convert_to_tensor(values)
        self.indices = indices if hasattr(indices, "dtype") else convert_to_tensor(indices)
        if dense_shape is not None and not isinstance(dense_shape, tuple):
            dense_shape = tuple(int(size) for size in convert_to_tensor(dense_shape).numpy())
        self._shape: tuple[int, ...] | None = dense_shape

    @property
    def dense_shape(self) -> Tensor | None:
        """The shape of the whole as an int32 Tensor, None if it is not known."""
        return None if self._shape is None else convert_to_tensor(list(self._shape), "int32")

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole.

        Raises:
            ShapeError: if it is not known.
        """
        return TensorShape(self._whole())

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return as_dtype(self.values.dtype)

    @property
    def device(self) -> str:
        """The device of the values."""
        return str(self.values.device)

    def read_value(self) -> Any:
        """The whole tensor, as Variables have it: duplicates are added up."""
        shape = self._whole()
        operations.check_rows(self.indices, shape[0])
        return operations.add_rows(self.values, self.indices, axis=-len(shape), size=shape[0])

    def lifted(self) -> IndexedSlices:
        """The same with Tensors in place of bare arrays."""
        return IndexedSlices(Tensor(self.values), Tensor(self.indices), self._shape)

    def _whole(self) -> tuple[int, ...]:
        if self._shape is None:
            raise ShapeError(
                f"IndexedSlices without dense_shape: its {tuple(self.values.shape)} values cannot be placed in a whole tensor. "
                "Give dense_shape."
            )
        return self._shape

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self.values, self.indices, self._shape)

    def __add__(self, other: TensorLike) -> Any:
        if not isinstance(other, IndexedSlices):
            return self.read_value() + other
        values = operations.concat(self.values, other.values, axis=-len(self.values.shape))
        return IndexedSlices(values, operations.concat(self.indices, other.indices, axis=-1), self._shape)

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self.indices!r}, values={self.values!r}, dense_shape={self._shape})"
