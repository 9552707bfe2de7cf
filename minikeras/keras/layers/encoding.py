"""The columns that the layers of this folder take, and integers as rows: their output modes, CategoryEncoding, and
Discretization: the interval that each number lies in, between boundaries that are given or are quantiles of data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from types import ModuleType
from typing import Any

import numpy as np

from ... import nest
from ...core import Operand, Primitive, Tensor, check_values, convert_to_tensor, to_numpy
from ...core.ops.indexing import add_along
from ...errors import DTypeError, InvalidArgumentError
from ...files.limits import spend_work
from ...functions import cast, expand_dims, tensor, transpose
from ...types import Array, DTypeLike, ShapeLike, TensorLike, as_dtype
from ..arguments import plain, whole
from ..symbolic import KerasTensor, Spec, is_data
from .inputs import called
from .layer import Layer
from .options import Kept, Number

Shape = tuple[int | None, ...]


class EncodedLayer(Layer):
    """Base of layers whose results are integers, or rows of `depth` elements for them, as `output_mode` says."""

    output_mode: str

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"autocast": False, **options})

    _depth: Any
    """The length of a row; None if it is not known yet."""
    output_dtype: Any = property(attrgetter("compute_dtype"), doc="The dtype of the result.")

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
            raise DTypeError(f"{called(self)} takes integers, found {x.dtype.name}{list(x.shape)}.")
        if x.dtype.is_floating:
            check_values(x, _finite)
        return cast(x, "int64")


class ColumnLayer(EncodedLayer):
    """Base of layers whose input is a column of text or integers."""

    _takes_text = True
    encoding = "utf-8"

    def __call__(self, inputs: TensorLike, **options: Any) -> Any:
        return super().__call__(as_column(inputs), **options)


class AdaptedLayer(ColumnLayer):
    """Base of layers that learn what they need to know of a column: what they count of each batch becomes final at the end."""

    _lists_are_arrays = True

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Learn anew from data: a lookup its vocabulary, a Discretization its boundaries.

        Args:
            data: a column, or an iterable of batches, such as a Dataset.
            steps: the number of batches; all by default.

        Raises:
            ValueError: if what is to be learned was given to the constructor, or there is no data.
        """
        self.reset_state()
        for batch in batches(data, steps, self._lists_are_arrays):
            self.update_state(batch)
        self.finalize_state()


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
        self, num_tokens: Kept[int | None] = None, output_mode: str = "multi_hot", sparse: bool = False, **options: Any
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

    _depth = property(attrgetter("num_tokens"))

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
                f"{called(self)}: Input values must be in the range 0 <= values < num_tokens with "
                f"num_tokens={self.num_tokens}, found {values.min()} to {values.max()}. Use IntegerLookup for other integers."
            )


# Intervals ------------------------------------------------------------------------------------------------------------

_MODES = ("int", "one_hot", "multi_hot", "count")


_intervals = Primitive(
    "intervals",
    lambda xp: lambda x, boundaries: xp.searchsorted(xp.asarray(boundaries, x.dtype), x, side="right").astype("int32"),
    differentiable=False,
    batching="keep",
    registered=False,
)


class Discretization(AdaptedLayer, described=True, makes_nothing=True):
    """The number of boundaries at or below each number: 0 below the first one, k for k boundaries from the last one on.

    Args:
        bin_boundaries: increasing numbers, given instead of `adapt`.
        num_bins: how many intervals `adapt` finds, with about as many numbers of the data in each: their quantiles.
        epsilon: `adapt` sums data up in about 1 / epsilon quantiles; smaller is more exact.
        output_mode: 'int', 'one_hot', 'multi_hot' or 'count', as in `CategoryEncoding`.
        dtype: of the rows; in mode 'int' the result is int32.
        name: as in `Layer`.

    Raises:
        ValueError: if not exactly one of `bin_boundaries` and `num_bins` is given, or the layer is called before `adapt`.

    >>> layer = tf.keras.layers.Discretization(num_bins=4, epsilon=0.01)
    >>> x = [[-1.5, 1.0, 3.4, 0.5], [0.0, 3.0, 1.3, 0.0]]
    >>> layer.adapt(np.array(x))
    >>> print(layer(x).numpy())
    [[0 2 3 2]
     [1 3 3 1]]
    """

    def __init__(
        self,
        bin_boundaries: Any = None,
        num_bins: Kept[int | None] = None,
        epsilon: Number = 0.01,
        output_mode: str = "int",
        sparse: bool = False,
        dtype: DTypeLike = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.output_mode, self.sparse = self._check_mode(output_mode, _MODES, sparse), False
        whole("Discretization: num_bins", num_bins, 1, optional=True)
        if not 0 < epsilon <= 1:
            raise ValueError(f"Discretization: epsilon must be above 0 and at most 1, found {epsilon}.")
        if num_bins is not None and bin_boundaries is not None:
            raise ValueError(
                f"Both `num_bins` and `bin_boundaries` should not be set. Received: `num_bins={num_bins}` and "
                f"`bin_boundaries={bin_boundaries}`"
            )
        if num_bins is None and bin_boundaries is None:
            raise ValueError("You need to set either `num_bins` or `bin_boundaries`.")
        self.bin_boundaries = bin_boundaries
        self._summary = np.zeros((2, 0), np.float32)

    @property
    def bin_boundaries(self) -> list[float] | None:
        """The boundaries as a list; None before `adapt`."""
        return self._boundaries

    @bin_boundaries.setter
    def bin_boundaries(self, boundaries: Any) -> None:
        given = None if boundaries is None else list(boundaries)
        spend_work(4 * len(given or ()), "boundaries")
        listed = None if given is None else [float(one) for one in plain(given)]
        if listed is not None and not np.all(np.diff(listed, prepend=-math.inf) >= 0):
            raise ValueError(f"Discretization: bin_boundaries must increase, found {listed!r:.80}.")
        self._boundaries = listed

    _can_adapt = property(lambda self: self.num_bins is not None)

    def update_state(self, data: Any) -> None:
        """Add a batch to the summary."""
        if self.num_bins is None:
            raise ValueError(
                "Cannot adapt a Discretization layer that has been initialized with `bin_boundaries`, use `num_bins` instead."
            )
        values = np.asarray(data, np.float32).reshape(-1)
        if not np.isfinite(values).all():
            raise ValueError(
                f"Cannot `adapt` layer '{self.name}': the data holds NaN or infinity. Fill missing values in first."
            )
        if values.size:
            self._summary = merged(summary_of(values, self.epsilon), self._summary, self.epsilon)

    def finalize_state(self) -> None:
        """Take the quantiles of the summary as boundaries."""
        if not self._summary.size:
            raise ValueError(f"Cannot `adapt` layer '{self.name}': there is no data.")
        self.bin_boundaries = compressed(self._summary, 1.0 / (self.num_bins or 1))[0, :-1].tolist()
        self.reset_state()

    def reset_state(self) -> None:
        """Forget the summary; the boundaries stay."""
        self._summary = np.zeros((2, 0), np.float32)

    output_dtype = property(
        lambda self: "int32" if self.output_mode == "int" else self.compute_dtype, doc="The dtype of the result."
    )

    def call(self, inputs: Tensor) -> Tensor:
        if self._boundaries is None:
            raise ValueError(
                "You need to either pass the `bin_boundaries` argument at construction time or call `adapt(dataset)` before "
                "you can start using the `Discretization` layer."
            )
        if inputs.dtype.name == "string" or inputs.dtype.is_complex:
            raise DTypeError(f"{called(self)} takes numbers, found {inputs.dtype.name}.")
        x = inputs if inputs.dtype.is_floating and inputs.dtype.size >= 4 else cast(inputs, "float64")
        found = _intervals(x, boundaries=tuple(self._boundaries))
        return encode(found, self.output_mode, len(self._boundaries) + 1, self.output_dtype)

    _depth = property(lambda self: self.num_bins if self._boundaries is None else len(self._boundaries) + 1)
    _not_described, _lists_are_arrays = ("trainable",), False

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"bin_boundaries": self._boundaries}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        """A new layer from `get_config`, with the boundaries that `adapt` found."""
        found = config.get("bin_boundaries") if config.get("num_bins") is not None else None
        layer = cls(**(config if found is None else {**config, "bin_boundaries": None}))
        if found is not None:
            layer.bin_boundaries = found
        return layer

    def load_own_variables(self, store: Any) -> None:
        """Nothing: files of older versions hold a summary, which the boundaries were made of."""


# Summaries: numbers in order, and how many each stands for, shape (2, n) -----------------------------------------------


def summary_of(values: Array, epsilon: float) -> Array:
    """About 1 / epsilon of the values, evenly spaced in their order.

    >>> summary_of(np.float32([3.0, 1.0, 2.0, 4.0]), 0.5).tolist()
    [[2.0, 4.0], [2.0, 2.0]]
    """
    step = max(values.size / (1.0 / epsilon), 1)
    chosen = np.sort(values)[int(step - 1) :: int(step)]
    return np.stack([chosen, np.ones_like(chosen) * step])


def merged(first: Array, second: Array, epsilon: float) -> Array:
    """The summary of the data of two."""
    both = np.concatenate((first, second), axis=1)
    return compressed(both[:, np.argsort(both[0])], epsilon)


def compressed(summary: Array, epsilon: float) -> Array:
    """A summary in 1 / epsilon numbers, interpolated at as many evenly spaced quantiles.

    >>> compressed(np.float32([[1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0]]), 0.5).tolist()
    [[2.0, 4.0], [2.0, 2.0]]
    """
    if summary.shape[1] * epsilon < 1:
        return summary
    shares = epsilon + np.arange(0.0, 1.0, epsilon)
    totals = summary[1].cumsum()
    values = np.interp(shares, totals / totals[-1], summary[0])
    counts = np.diff(np.interp(shares, totals / totals[-1], totals), prepend=0)
    return np.stack((values, counts)).astype(np.float32)
