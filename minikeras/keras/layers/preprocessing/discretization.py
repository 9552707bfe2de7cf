"""Discretization: the interval that each number lies in, between boundaries that are given or are quantiles of data."""

from __future__ import annotations

import math
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from ....core import Tensor
from ....core.primitive import Primitive
from ....errors import DTypeError
from ....files.limits import spend_work
from ....functions.elementwise import cast
from ....types import Array, DTypeLike
from ...arguments import plain, whole
from ..layer import Layer
from .encoding import ColumnLayer, batches, encode

_MODES = ("int", "one_hot", "multi_hot", "count")


def _intervals_of(xp: ModuleType, x: Array, boundaries: tuple[float, ...]) -> Array:
    return xp.searchsorted(xp.asarray(boundaries, dtype=x.dtype), x, side="right").astype("int32")


_intervals = Primitive(
    "intervals", lambda xp: partial(_intervals_of, xp), differentiable=False, batching="keep", registered=False
)


class Discretization(ColumnLayer, described=True, makes_nothing=True):
    """The number of boundaries at or below each number: 0 below the first one, k for k boundaries from the last one on.

    Args:
        bin_boundaries: increasing numbers, given instead of `adapt`.
        num_bins: how many intervals `adapt` finds, with about as many numbers of the data in each.
        epsilon: `adapt` sums data up in about 1 / epsilon quantiles; smaller is more exact.
        output_mode: 'int', 'one_hot', 'multi_hot' or 'count', as in `CategoryEncoding`.
        sparse: not available; False.
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
        num_bins: int | None = None,
        epsilon: float = 0.01,
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
        self.num_bins, self.epsilon = num_bins, float(epsilon)
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

    @property
    def _can_adapt(self) -> bool:
        return self.num_bins is not None

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Take boundaries from data: its quantiles, up to `epsilon`.

        Args:
            data: an array, or an iterable of batches, such as a Dataset.
            steps: the number of batches; all by default.

        Raises:
            ValueError: if the boundaries were given, or there is no data.
        """
        if self.num_bins is None:
            raise ValueError(
                "Cannot adapt a Discretization layer that has been initialized with `bin_boundaries`, use `num_bins` instead."
            )
        self.reset_state()
        for batch in batches(data, steps, listed=False):
            self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: Any) -> None:
        """Add a batch to the summary."""
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

    @property
    def output_dtype(self) -> str:
        """The dtype of the result."""
        return "int32" if self.output_mode == "int" else self.compute_dtype

    def call(self, inputs: Tensor) -> Tensor:
        if self._boundaries is None:
            raise ValueError(
                "You need to either pass the `bin_boundaries` argument at construction time or call `adapt(dataset)` before "
                "you can start using the `Discretization` layer."
            )
        if inputs.dtype.name == "string" or inputs.dtype.is_complex:
            raise DTypeError(f"Layer '{self.name}' (Discretization) takes numbers, found {inputs.dtype.name}.")
        x = inputs if inputs.dtype.is_floating and inputs.dtype.size >= 4 else cast(inputs, "float64")
        found = _intervals(x, boundaries=tuple(self._boundaries))
        return encode(found, self.output_mode, len(self._boundaries) + 1, self.output_dtype)

    @property
    def _depth(self) -> int | None:
        return self.num_bins if self._boundaries is None else len(self._boundaries) + 1

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | {"bin_boundaries": self._boundaries}
        return {name: value for name, value in config.items() if name != "trainable"}

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
