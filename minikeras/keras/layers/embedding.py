"""Embedding: a table whose rows stand for integers; ReversibleEmbedding, which leads back to them."""

from __future__ import annotations

import warnings
from typing import Any

from ...core import Tensor
from ...functions.contractions import matmul
from ...functions.elementwise import cast, not_equal, tanh
from ...functions.indexing import gather
from . import building
from .inputs import attach
from .layer import Layer


class Embedding(Layer, described=True, takes_one_tensor=True, gives_floats=True):
    """The row of a table for each integer.

    Args:
        input_dim: number of rows; inputs lie in [0, input_dim).
        output_dim: length of a row.
        embeddings_initializer: first values, evenly distributed in [-0.05, 0.05) by default.
        embeddings_regularizer, embeddings_constraint: as in `Dense`.
        mask_zero: whether 0 stands for no entry; the layers after it then see a mask, true where the input is not 0.
        weights: first values as an array of shape (input_dim, output_dim).
        options: `name`, `dtype`, `trainable`, as in `Layer`.

    Shapes: input (batch, ...) of integers, output (batch, ..., output_dim).

    Raises:
        InvalidArgumentError: if an integer is out of range.

    >>> layer = tf.keras.layers.Embedding(3, 2, weights=[[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    >>> print(layer([[2, 1]]).numpy())
    [[[3. 4.]
      [1. 2.]]]
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        weights: Any = None,
        **options: Any,
    ) -> None:
        if options.pop("input_length", None) is not None:
            warnings.warn("Embedding: input_length is left out, as in Keras: sequences may have any length.", stacklevel=4)
        autocast = options.pop("autocast", False)  # large integers would not survive half precision
        super().__init__(autocast=autocast, **building.without_absent(self, options))
        for name, value in (("input_dim", input_dim), ("output_dim", output_dim)):
            if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
                raise ValueError(f"Embedding: `{name}` must be a positive integer. Received: {name}={value!r}.")
        self.input_dim, self.output_dim = input_dim, output_dim
        building.keep(self, "embeddings", embeddings_initializer, embeddings_regularizer, embeddings_constraint)
        self.mask_zero = self.supports_masking = bool(mask_zero)
        if weights is not None:
            self.build()
            single = isinstance(weights, list) and len(weights) == 1 and getattr(weights[0], "ndim", 1) == 2
            self.set_weights(weights if single else [weights])

    def build(self, input_shape: Any = None) -> None:
        self.embeddings = building.add(self, "embeddings", (self.input_dim, self.output_dim), autocast=False)

    def call(self, inputs: Tensor) -> Tensor:
        indices = inputs if inputs.dtype.is_integer else cast(inputs, "int32")
        return cast(gather(self.embeddings, indices), self.compute_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """True where the input is not 0, if 0 stands for no entry."""
        return not_equal(inputs, 0) if self.mask_zero else None

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """(batch, ..., output_dim)."""
        return (*input_shape, self.output_dim)


class ReversibleEmbedding(Embedding, described=True):
    """An Embedding that is called with reverse=True to score each integer: the products of a vector with all rows.

    Args:
        input_dim, output_dim, embeddings_initializer, embeddings_regularizer, embeddings_constraint, mask_zero: as in
            `Embedding`.
        tie_weights: whether both ways use the same table; else `reverse_embeddings` is another weight.
        reverse_dtype: of the products; that of the inputs and the table if None.
        logit_soft_cap: bounds the scores: cap * tanh(score / cap); None for no bound.
        options: `name`, `dtype`, `trainable`, as in `Layer`.

    Shapes: input (batch, ...) of integers, output (batch, ..., output_dim); the other way (batch, ..., output_dim) to
    (batch, ..., input_dim).

    Source: Press and Wolf (2017).

    >>> layer = tf.keras.layers.ReversibleEmbedding(3, 2, weights=[[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    >>> print(layer([[1.0, 0.0]], reverse=True).numpy())
    [[0. 1. 3.]]
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        tie_weights: bool = True,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        reverse_dtype: Any = None,
        logit_soft_cap: float | None = None,
        **options: Any,
    ) -> None:
        if logit_soft_cap is not None and not logit_soft_cap > 0:
            raise ValueError(f"ReversibleEmbedding: logit_soft_cap must be positive or None, found {logit_soft_cap!r}.")
        self.tie_weights, self.reverse_dtype, self.logit_soft_cap = bool(tie_weights), reverse_dtype, logit_soft_cap
        first, penalty, projection = embeddings_initializer, embeddings_regularizer, embeddings_constraint
        super().__init__(input_dim, output_dim, first, penalty, projection, mask_zero, **options)

    def build(self, input_shape: Any = None) -> None:
        super().build(input_shape)
        if not self.tie_weights:
            shape = (self.output_dim, self.input_dim)
            self.reverse_embeddings = self.add_weight(shape, self.embeddings_initializer, name="reverse_embeddings")

    def call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        if not reverse:
            y = super().call(inputs)
            attach(super().compute_mask(inputs), y)
            return y
        kernel = self.embeddings if self.tie_weights else self.reverse_embeddings
        dtype = self.reverse_dtype or self.compute_dtype
        scores = matmul(cast(inputs, dtype), cast(kernel, dtype), transpose_b=self.tie_weights)
        return scores if self.logit_soft_cap is None else tanh(scores / self.logit_soft_cap) * self.logit_soft_cap

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None: `call` itself attaches the mask, on the way from integers only."""
        return None

    def compute_output_shape(self, input_shape: Any, reverse: bool = False) -> tuple[Any, ...]:
        """(batch, ..., output_dim), or the other way (batch, ..., input_dim)."""
        return (*input_shape[:-1], self.input_dim) if reverse else super().compute_output_shape(input_shape)
