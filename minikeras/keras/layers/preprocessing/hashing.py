"""Hashing and HashedCrossing: a bin for each value, or combination of values, without a vocabulary."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import Tensor
from ....errors import DTypeError, ShapeError
from ....types import Array, as_dtype
from ...arguments import whole
from ...config import floatx
from ...symbolic.keras_tensor import KerasTensor, Spec
from ..layer import Layer
from .columns import ColumnLayer, as_column, as_integers, by_elements, texts
from .encoding import Shape, check_mode, encode, encoded_shape, encoded_spec
from .fingerprints import fingerprints, joined

_FIRST = 0xDECAFCAFFE
"""What TensorFlow begins a crossing with."""


def hashes(values: list[Any], key: list[int] | None = None) -> Array:
    """64 bits for each value: of text by its bytes, of an integer by its digits. Equal values are hashed once."""
    distinct = list(dict.fromkeys(values))
    table = dict(zip(distinct, fingerprints(list(map(_bytes, distinct)), key).tolist(), strict=True))
    return np.fromiter(map(table.__getitem__, values), np.uint64, len(values))


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else str(value).lower()).encode()  # true and false, as TensorFlow writes them


def bins_of(x: Array, bins: int, key: list[int] | None = None, mask: Any = None) -> Array:
    """The bin of each element: its hash modulo their number. With a mask bin 0 is kept for it."""
    first = int(mask is not None and bins > 1)
    found = (hashes(x.ravel().tolist(), key) % (bins - first)).astype(np.int64).reshape(x.shape) + first
    return np.where(np.array([one == mask for one in texts(x)], bool).reshape(x.shape), 0, found) if first else found


_bins = by_elements("hash_bins", bins_of)


def checked_salt(kind: str, salt: Any) -> list[int] | None:
    """Two integers from two, one or None."""
    salt = [salt, salt] if isinstance(salt, int) else salt
    if salt is None or (isinstance(salt, (list, tuple)) and len(salt) == 2 and all(isinstance(one, int) for one in salt)):
        return None if salt is None else list(salt)
    raise ValueError(
        f"The `salt` argument for `{kind}` can only be a tuple of size 2 integers, or a single integer. Received: {salt!r}."
    )


def _dtype(mode: str, dtype: Any) -> Any:
    """That of the result: int64 or the default float dtype if none is given."""
    return dtype if dtype is not None else "int64" if mode == "int" else floatx()


class Hashing(ColumnLayer):
    """A bin for each text or integer, by its hash modulo the number of bins.

    The hash is FarmHash's fingerprint of the text (of an integer, of its digits), or SipHash with a salt, as in TensorFlow: the
    same on every machine and in every run.

    Args:
        num_bins: how many bins there are.
        mask_value: a value that gets bin 0 for itself; all others then share `num_bins` - 1.
        salt: an integer or two, the key of SipHash; None for FarmHash.
        output_mode: 'int', 'one_hot', 'multi_hot' or 'count', as in `CategoryEncoding`.
        sparse: not available; False.
        options: `name`; `dtype`, of the result: int64 in mode 'int' by default, else the default float dtype.

    Raises:
        ValueError: for fewer than one bin, another salt or mode, or a float dtype in mode 'int'.

    >>> print(tf.keras.layers.Hashing(3)([["A"], ["B"], ["E"]]).numpy().T)
    [[1 0 2]]
    >>> print(tf.keras.layers.Hashing(3, salt=[133, 137])([["A"], ["B"], ["D"]]).numpy().T)
    [[1 2 0]]
    """

    _makes_nothing = True

    def __init__(
        self,
        num_bins: int,
        mask_value: Any = None,
        salt: Any = None,
        output_mode: str = "int",
        sparse: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**{**options, "dtype": _dtype(output_mode, options.get("dtype"))})
        whole("Hashing: num_bins", num_bins, 1)
        self.num_bins, self.mask_value, self.salt = num_bins, mask_value, checked_salt("Hashing", salt)
        self.output_mode, self.sparse = check_mode(self, output_mode, ("int", "one_hot", "multi_hot", "count"), sparse), False
        if self.output_mode == "int" and self.dtype not in ("int32", "int64"):
            raise ValueError(
                "When `output_mode=\"int\"`, `dtype` should be an integer type, 'int32' or 'int64'. "
                f"Received: dtype={self.dtype}"
            )

    @property
    def output_dtype(self) -> str:
        """The dtype of the result."""
        return self.compute_dtype

    def call(self, inputs: Tensor) -> Tensor:
        text = inputs.dtype.name == "string"
        if self.mask_value is not None and isinstance(self.mask_value, str) != text:
            raise DTypeError(
                f"Layer '{self.name}' (Hashing): mask_value={self.mask_value!r} cannot be found among {inputs.dtype.name} "
                "values. Give a mask of their kind."
            )
        x = as_integers(self, inputs) if inputs.dtype.is_floating else inputs
        found = _bins(x, bins=self.num_bins, key=self.salt, mask=self.mask_value)
        return encode(found, self.output_mode, self.num_bins, self.compute_dtype)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """By `output_mode`."""
        return encoded_shape(input_shape, self.output_mode, self.num_bins)

    output_spec = encoded_spec


def _crossed(*columns: Array, bins: int) -> Array:
    found = np.full(columns[0].size, _FIRST, np.uint64)
    for column in columns:
        text = column.dtype.kind in "OSU"
        found = joined(found, hashes(column.ravel().tolist()) if text else column.ravel().astype(np.int64).view(np.uint64))
    return (found % bins).astype(np.int64).reshape(columns[0].shape)


_cross = by_elements("cross_hashed", _crossed)


class HashedCrossing(Layer):
    """A bin for each combination of values of several columns, by a hash of all of them modulo the number of bins.

    Args:
        num_bins: how many bins there are.
        output_mode: 'int' or 'one_hot'.
        sparse: not available; False.
        options: `name`; `dtype`, of the result: int64 in mode 'int' by default, else the default float dtype.

    Called on a list or tuple of at least two columns of integers or text, all of shape (), (batch,) or (batch, 1).

    >>> print(tf.keras.layers.HashedCrossing(5)((["A", "B", "A", "B", "A"], [101, 101, 101, 102, 102])).numpy())
    [1 4 1 1 3]
    """

    _makes_nothing = True

    def __init__(self, num_bins: int, output_mode: str = "int", sparse: bool = False, **options: Any) -> None:
        super().__init__(**{"autocast": False, **options, "dtype": _dtype(output_mode, options.get("dtype"))})
        whole("HashedCrossing: num_bins", num_bins, 1)
        self.num_bins = num_bins
        self.output_mode, self.sparse = check_mode(self, output_mode, ("int", "one_hot"), sparse), False

    @property
    def output_dtype(self) -> str:
        """The dtype of the result."""
        return self.compute_dtype

    def __call__(self, inputs: Any, **options: Any) -> Any:
        if not isinstance(inputs, (list, tuple)):
            raise ValueError(f"`HashedCrossing` should be called on a list or tuple of inputs. Received: {inputs!r:.80}")
        if len(inputs) < 2:
            raise ValueError(f"`HashedCrossing` should be called on at least two inputs. Received: {inputs!r:.80}")
        return super().__call__([as_column(one) for one in inputs], **options)

    def call(self, inputs: Any) -> Tensor:
        self.compute_output_shape([one.shape for one in inputs])
        if wrong := [one.dtype.name for one in inputs if not (one.dtype.is_integer or one.dtype.name == "string")]:
            raise ValueError(f"All `HashedCrossing` inputs should have an integer or string dtype. Found: {', '.join(wrong)}.")
        return encode(_cross(*inputs, bins=self.num_bins), self.output_mode, self.num_bins, self.compute_dtype)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """That of the columns, and in mode 'one_hot' of a row for each."""
        first, *others = map(tuple, input_shape)
        if len(first) > 2 or (len(first) == 2 and first[1] != 1):
            raise ShapeError(
                "All `HashedCrossing` inputs should have shape `()`, `(batch_size)` or `(batch_size, 1)`. "
                f"Received: {[first, *others]}"
            )
        if any(one != first for one in others):
            raise ShapeError(f"All `HashedCrossing` inputs should have equal shape. Received: {[first, *others]}")
        return encoded_shape(first, self.output_mode, self.num_bins)

    def output_spec(self, inputs: list[KerasTensor]) -> Spec:
        """Shape and dtype of what comes out."""
        return Spec(self.compute_output_shape([one.shape for one in inputs]), as_dtype(self.output_dtype))
