"""`tf.TensorArray`: a list of tensors of one dtype, written and read by number."""

from __future__ import annotations

from typing import Any

from ..core import Tensor, convert_to_tensor
from ..errors import DTypeError, InvalidArgumentError, ShapeError
from ..types import TensorLike, TensorShape, as_dtype
from .creation import zeros
from .publish import integer, static_shape, tensor
from .shaping import concat, split, stack, unstack


class TensorArray:
    """A list of tensors of one dtype, and of one shape unless `infer_shape` is False.

    `write`, `unstack`, `scatter` and `split` change it and return it, so that code written for graphs runs.

    Args:
        dtype: of the elements.
        size: how many there are, 0 by default.
        dynamic_size: whether writing beyond the end makes it longer.
        clear_after_read: whether an element can be read only once.
        infer_shape: whether all elements must have one shape.
        element_shape: that shape, if it is known.
        tensor_array_name, handle, flow, colocate_with_first_write_call, name: accepted for compatibility, ignored.

    >>> array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    >>> for i in range(3):
    ...     array = array.write(i, tf.constant(i * i, tf.float32))
    >>> print(array.stack().numpy())
    [0. 1. 4.]
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        self.dtype = as_dtype(dtype)
        self.dynamic_size = bool(dynamic_size)
        self._once = clear_after_read is None or bool(clear_after_read)
        self._infers = bool(infer_shape)
        self._shape = TensorShape(element_shape)
        count = 0 if size is None else integer(size)
        if count < 0:
            raise InvalidArgumentError(f"TensorArray: size must be 0 or more, found {count}.")
        self._elements: list[Tensor | None] = [None] * count
        self._read: set[int] = set()

    @property
    def element_shape(self) -> TensorShape:
        """The shape that all elements have, as far as it is known."""
        return self._shape

    def size(self, name: str | None = None) -> Tensor:
        """How many elements there are."""
        return convert_to_tensor(len(self._elements), "int32")

    def __len__(self) -> int:
        return len(self._elements)

    def write(self, index: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """Set an element.

        Raises:
            InvalidArgumentError: if there is no such place, or the shape differs from that of the others.
            DTypeError: if the dtype differs.
        """
        place, element = integer(index), convert_to_tensor(value, None if hasattr(value, "dtype") else self.dtype)
        if element.dtype != self.dtype:
            raise DTypeError(f"TensorArray.write: it holds {self.dtype.name}, found {element.dtype.name}. Use tf.cast.")
        if place < 0 or (place >= len(self._elements) and not self.dynamic_size):
            raise InvalidArgumentError(
                f"TensorArray.write: index {place} of {len(self._elements)} elements. Give a larger size, or dynamic_size=True."
            )
        if not self._shape.is_compatible_with(element.shape):
            raise ShapeError(f"TensorArray.write: elements have shape {self._shape}, found {element.shape}; infer_shape=False.")
        if self._infers:
            self._shape = self._shape.merge_with(element.shape)
        self._elements += [None] * (place + 1 - len(self._elements))
        self._elements[place] = element
        self._read.discard(place)
        return self

    def read(self, index: TensorLike, name: str | None = None) -> Tensor:
        """An element; of one that was never written zeros.

        Raises:
            InvalidArgumentError: if there is none, or it was read before and `clear_after_read` holds.
        """
        place = integer(index)
        if not 0 <= place < len(self._elements):
            raise InvalidArgumentError(f"TensorArray.read: index {place} of {len(self._elements)} elements.")
        if place in self._read:
            raise InvalidArgumentError(
                f"TensorArray.read: element {place} was read before, and is cleared then. Give clear_after_read=False."
            )
        element = self._element(place)
        if self._once:
            self._read.add(place)
            self._elements[place] = None
        return element

    def _element(self, place: int) -> Tensor:
        element = self._elements[place]
        if element is not None:
            return element
        if not self._shape.is_fully_defined():
            raise InvalidArgumentError(f"TensorArray: element {place} was never written, and its shape is not known.")
        return zeros(self._shape, self.dtype)

    def stack(self, name: str | None = None) -> Tensor:
        """All elements along a new first axis."""
        return self.gather(range(len(self._elements)))

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Some elements along a new first axis."""
        chosen = [self._element(place) for place in static_shape(indices)]
        return stack(chosen) if chosen else zeros((0, *self._shape), self.dtype)

    def concat(self, name: str | None = None) -> Tensor:
        """All elements along their first axis."""
        return concat([self._element(place) for place in range(len(self._elements))], 0)

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """Set all elements to the slices of a tensor."""
        slices = unstack(tensor(value))
        return self.scatter(range(len(slices)), slices)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Set some elements to the slices of a tensor."""
        slices = value if isinstance(value, list) else unstack(tensor(value))
        before = self._elements[:], self._shape, self._read.copy()
        try:
            for place, one in zip(static_shape(indices), slices, strict=True):
                self.write(place, one)
        except Exception:
            self._elements, self._shape, self._read = before
            raise
        return self

    def split(self, value: TensorLike, lengths: Any, name: str | None = None) -> TensorArray:
        """Set all elements to pieces of a tensor, of these lengths along the first axis."""
        self._infers = False
        return self.scatter(range(len(static_shape(lengths))), split(tensor(value), lengths))

    def identity(self) -> TensorArray:
        """The array itself."""
        return self

    def close(self, name: str | None = None) -> None:
        """Let go of all elements."""
        self._elements = []
