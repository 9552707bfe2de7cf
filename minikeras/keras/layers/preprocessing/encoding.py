"""The columns that the layers of this folder take, and integers as rows: their output modes, and CategoryEncoding."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from .... import nest
from ....core import Tensor, convert_to_tensor
from ....core.arrays import to_numpy
from ....core.batch import check_values
from ....core.ops.indexing import add_along
from ....core.primitive import Primitive
from ....core.tensor import Operand
from ....errors import DTypeError, InvalidArgumentError
from ....functions.elementwise import cast
from ....functions.operands import tensor
from ....functions.shaping import expand_dims, transpose
from ....types import Array, DTypeLike, ShapeLike, TensorLike, as_dtype
from ...arguments import whole
from ...symbolic.keras_tensor import KerasTensor, Spec, is_data
from ..layer import Layer

Shape = tuple[int | None, ...]


class EncodedLayer(Layer):
    """Base of layers whose results are integers, or rows of `depth` elements for them, as `output_mode` says."""

    output_mode: str

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"autocast": False, **options})

    @property
    def _depth(self) -> int | None:
        raise NotImplementedError

    @property
    def output_dtype(self) -> str:
        """The dtype of the result."""
        return self.compute_dtype

    def compute_output_shape(self, input_shape: ShapeLike) -> Shape:
        """By `output_mode`."""
        return encoded_shape(input_shape, self.output_mode, self._depth)

    def output_spec(self, x: TensorLike) -> Spec:
        """Shape and dtype of the result, by rule: nothing is tried, whatever sizes a file has."""
        shapes = nest.map_structure(lambda one: one.shape, x)
        return Spec(self.compute_output_shape(shapes), as_dtype(self.output_dtype))

    def _check_mode(self, mode: Any, modes: tuple[str, ...], sparse: bool) -> str:
        """An output mode, which must be one of these; sparse results are refused."""
        mode = {"binary": "multi_hot", "tf-idf": "tf_idf"}.get(mode, mode)
        kind = type(self).__name__
        if mode not in modes:
            raise ValueError(f"{kind}: Invalid value for argument `output_mode`. Expected one of {modes}, received: {mode!r}.")
        if sparse and mode == "int":
            encoded = ", ".join(repr(one) for one in modes[1:])
            raise ValueError(
                f"{kind}: `sparse` may only be true if `output_mode` is one of {encoded}; integers are never sparse."
            )
        if sparse:
            raise ValueError(
                f"{kind}: sparse=True is not available: all tensors are dense here, as on Keras's backends other than "
                "TensorFlow. Leave it out; for many columns use output_mode='int' and an Embedding."
            )
        return str(mode)

    def _as_integers(self, x: Tensor) -> Tensor:
        """Integers as int64, floats cut off.

        Raises:
            DTypeError: for text.
            ValueError: for NaN and infinity.
        """
        if x.dtype.name == "string" or x.dtype.is_complex:
            raise DTypeError(
                f"Layer '{self.name}' ({type(self).__name__}) takes integers, found {x.dtype.name}{list(x.shape)}."
            )
        if x.dtype.is_floating:
            check_values(x, _finite)
        return cast(x, "int64")


class ColumnLayer(EncodedLayer):
    """Base of layers whose input is a column of text or integers."""

    _takes_text = True
    encoding = "utf-8"

    def __call__(self, inputs: TensorLike, **options: Any) -> Any:
        return super().__call__(as_column(inputs), **options)


def as_column(values: Any) -> Any:
    """Values as a Tensor; a KerasTensor as it is, and integers that a data frame holds as objects as integers."""
    if isinstance(values, (Operand, KerasTensor)):
        return values
    if is_data(values) and (array := np.asarray(values)).dtype == object and array.size and type(array.flat[0]) is int:
        return convert_to_tensor(array.astype(np.int64) if set(map(type, array.flat)) == {int} else array)
    return convert_to_tensor(values)


def _finite(values: Array) -> None:
    if not np.isfinite(values).all():
        raise ValueError(
            "a column to be read as integers holds NaN or infinity. Fill missing values in first: column.fillna(0)."
        )


def texts(x: Array, encoding: str = "utf-8") -> list[Any]:
    """The elements as Python's values, bytes as text."""
    found = x.ravel().tolist()
    if bytes in set(map(type, found)):
        return [one.decode(encoding) if isinstance(one, bytes) else one for one in found]
    return found


def batches(data: Any, steps: int | None, listed: bool) -> Iterator[Array]:
    """The batches that `adapt` is given, as arrays: one array is one batch of rows; of a Dataset or another iterable `steps`,
    all by default, and of pairs the first. `listed` says whether a list is one array.
    """
    if is_data(data) or (listed and isinstance(data, (list, tuple))):
        x = to_numpy(as_column(data).array)
        yield x[:, None] if x.ndim == 1 else x
        return
    for batch in itertools.islice(data, steps):
        first = batch[0] if isinstance(batch, tuple) and batch and is_data(batch[0]) else batch
        yield to_numpy(as_column(first).array)


def _rows_of(xp: ModuleType, indices: Array, depth: int, dtype: DTypeLike, counts: bool, some_absent: bool) -> Array:
    """A row for the integers along the last axis: the count of each, or 1 for each that occurs; negative ones do not count."""
    length = indices.shape[-1]
    rest = indices.shape[:-1]
    lines = indices.reshape(math.prod(rest), length)
    width = depth + some_absent  # what is not there counts in a column that is cut off
    places = xp.arange(lines.shape[0])[:, None] * width + (xp.where(lines < 0, depth, lines) if some_absent else lines)
    if counts:
        rows = xp.bincount(places.reshape(-1), minlength=lines.shape[0] * width).astype(dtype)
    else:
        rows = xp.zeros(lines.shape[0] * width, dtype=dtype)
        rows[places] = 1
    return rows.reshape(*rest, width)[..., :depth]


_rows = Primitive(
    "encoded_rows", lambda xp: partial(_rows_of, xp), differentiable=False, uniform=False, batching="keep", registered=False
)


def encode(
    indices: Tensor, mode: str, depth: int, dtype: DTypeLike, weights: Tensor | None = None, some_absent: bool = False
) -> Tensor:
    """Integers in one of Keras's output modes.

    Args:
        indices: integers in [0, depth).
        mode: 'int' as they are; 'one_hot' a row for each; 'multi_hot' and 'count' one row for the integers along the axis after
            the batch, or of all if there is no other axis.
        depth: the length of a row.
        dtype: of the result.
        weights: what each integer counts, in mode 'count'; 1 by default.
        some_absent: whether negative integers stand for no entry.
    """
    if mode == "int":
        return cast(indices, dtype)
    if not indices.ndim:
        indices = expand_dims(indices, -1)
    if mode == "one_hot":
        single = indices.ndim > 1 and indices.shape[-1] == 1
        indices = indices if single else expand_dims(indices, -1)
    elif indices.ndim > 2:
        order = [0, *range(2, indices.ndim), 1]
        indices = transpose(indices, order)
        weights = None if weights is None else transpose(weights, order)
    if weights is not None:
        rows: Tensor = add_along(weights, indices, axis=-1, size=depth)
    else:
        rows = _rows(indices, depth=depth, dtype=as_dtype(dtype).numpy, counts=mode == "count", some_absent=some_absent)
    return rows


def encoded_shape(shape: ShapeLike, mode: str, depth: int | None) -> Shape:
    """The shape that `encode` gives for indices of a shape."""
    if mode == "int":
        return tuple(shape)
    shape = tuple(shape) or (1,)
    if mode == "one_hot":
        return (*(shape[:-1] if len(shape) > 1 and shape[-1] == 1 else shape), depth)
    return (*shape[:1], *shape[2:], depth) if len(shape) > 1 else (depth,)


class CategoryEncoding(EncodedLayer, described=True, makes_nothing=True):
    """Integers as one-hot rows, as multi-hot rows, or as counts.

    Args:
        num_tokens: how many integers there are, and so the length of a row.
        output_mode: 'one_hot', 'multi_hot' or 'count'.
        sparse: not available; False.
        options: `name`, `dtype`, as in `Layer`.

    Shapes: 'one_hot' (..., n) to (..., n, num_tokens), or (..., 1) to (..., num_tokens); the others (batch, n) to
    (batch, num_tokens), (n,) to (num_tokens,), and of more axes the one after the batch is summed up.

    Raises:
        InvalidArgumentError: for integers that are not in [0, num_tokens).

    >>> print(tf.keras.layers.CategoryEncoding(4, "one_hot")([3, 0]).numpy())
    [[0. 0. 0. 1.]
     [1. 0. 0. 0.]]
    >>> print(tf.keras.layers.CategoryEncoding(4, "count")([[0, 1], [2, 2]], count_weights=[[0.1, 0.2], [1.0, 2.0]]).numpy())
    [[0.1 0.2 0.  0. ]
     [0.  0.  3.  0. ]]
    """

    def __init__(
        self, num_tokens: int | None = None, output_mode: str = "multi_hot", sparse: bool = False, **options: Any
    ) -> None:
        super().__init__(**options)
        self.output_mode = self._check_mode(output_mode, ("one_hot", "multi_hot", "count"), sparse)
        self.sparse = False
        if num_tokens is None:
            raise ValueError(
                "CategoryEncoding: num_tokens must be set to use this layer. If the number of tokens is not known beforehand, "
                "use the IntegerLookup layer instead."
            )
        whole("CategoryEncoding: num_tokens", num_tokens, 1)
        self.num_tokens = num_tokens

    @property
    def _depth(self) -> int:
        return self.num_tokens

    def call(self, inputs: Tensor, count_weights: Any = None) -> Tensor:
        if count_weights is not None:
            if self.output_mode != "count":
                raise ValueError(
                    "CategoryEncoding: `count_weights` is not used when `output_mode` is not 'count'. Received: "
                    f"output_mode={self.output_mode!r}. Leave the weights out, or count."
                )
            count_weights = cast(tensor(count_weights), self.compute_dtype)
        indices = self._as_integers(tensor(inputs))
        check_values(indices, self._within)
        return encode(indices, self.output_mode, self.num_tokens, self.compute_dtype, count_weights)

    def _within(self, values: np.ndarray[Any, Any]) -> None:
        if values.size and (values.min() < 0 or values.max() >= self.num_tokens):
            raise InvalidArgumentError(
                f"Layer '{self.name}' (CategoryEncoding): Input values must be in the range 0 <= values < num_tokens with "
                f"num_tokens={self.num_tokens}, found {values.min()} to {values.max()}. Use IntegerLookup for other integers."
            )
