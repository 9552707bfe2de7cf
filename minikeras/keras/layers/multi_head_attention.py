"""MultiHeadAttention, and GroupedQueryAttention, in which several heads of the query share one of the key and value."""

from __future__ import annotations

import math
import string
from typing import Any

from ...core import Tensor
from ...errors import ShapeError
from ...functions.contractions import einsum
from ...functions.elementwise import where
from ...functions.shaping import repeat, reshape
from ...types import as_dtype
from .. import regularizers
from . import weight_options
from .activations import Softmax
from .attention_masks import joined, of_columns, of_rows, order, unmarked
from .description import described
from .einsum_dense import EinsumDense
from .layer import Layer
from .regularization import Dropout, checked_rate


class MultiHeadAttention(Layer):
    """Attention of several heads: softmax(q k^T / sqrt(key_dim)) v for each head, with q, k, v and the result projected.

    Args:
        num_heads: number of heads.
        key_dim: features of a head's queries and keys.
        value_dim: features of a head's values; key_dim if None.
        dropout: rate at which weights of the attention are dropped in training.
        use_bias: whether the projections have biases.
        output_shape: an int or a shape, the features of the output; those of the query if None.
        attention_axes: the axes of the inputs that are attended over; all but the batch and the features if None.
        sliding_window: a step attends only to those fewer than so many steps away, if given.
        flash_attention: accepted for compatibility; there is no kernel of that name here, so it may not be True.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer, kernel_constraint,
            bias_constraint: of the projections, as in `EinsumDense`.
        use_gate: whether each head's result is multiplied by the sigmoid of another projection of the query.
        seed: of the dropout.
        options: `name`, `dtype`, `trainable`, as in `Layer`.

    The call takes `query` (batch, T, features), `value` (batch, S, ...), `key` (that of `value` if None), and
    `attention_mask`, bools that broadcast to (batch, T, S) or (batch, heads, T, S), true where T may attend to S;
    `use_causal_mask` allows only steps up to the own; `return_attention_scores` adds the weights (batch, heads, T, S) to what
    is returned. Masks that the inputs carry, or `query_mask`, `value_mask`, `key_mask`, are joined with these. A step that may
    attend to nothing gets the mean of all values; with dropout or where the weights are returned, it gets none: as in Keras.

    Returns:
        (batch, T, features), or (batch, T, *output_shape), with the mask of the query.

    Raises:
        ShapeError: if value and key differ in other axes than the last.

    Source: Vaswani et al., Attention Is All You Need (2017), section 3.2; the gate: Qiu et al. (2025).

    >>> layer = tf.keras.layers.MultiHeadAttention(num_heads=2, key_dim=3)
    >>> x = tf.ones([5, 4, 8])
    >>> y, weights = layer(x, x, use_causal_mask=True, return_attention_scores=True)
    >>> y.shape, weights.shape
    (TensorShape([5, 4, 8]), TensorShape([5, 2, 4, 4]))
    >>> print(weights.numpy()[0, 0].round(2))
    [[1.   0.   0.   0.  ]
     [0.5  0.5  0.   0.  ]
     [0.33 0.33 0.33 0.  ]
     [0.25 0.25 0.25 0.25]]
    """

    supports_masking = True
    _gives_floats = True
    _projections = ""
    """How the names of the attributes that hold the projections begin: Keras's files have them."""

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: Any = None,
        attention_axes: Any = None,
        sliding_window: int | None = None,
        flash_attention: bool | None = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        use_gate: bool = False,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        for name, value, optional in (
            ("num_heads", num_heads, False),
            ("key_dim", key_dim, False),
            ("value_dim", value_dim, True),
            ("sliding_window", sliding_window, True),
        ):
            if not (optional and value is None) and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise ValueError(
                    f"Received an invalid value for argument `{name}`, expected a positive integer. Received: {name}={value!r}."
                )
        if flash_attention:
            raise NotImplementedError(f"{type(self).__name__}: there is no flash attention here. Leave flash_attention out.")
        self.num_heads, self.key_dim, self.value_dim = num_heads, key_dim, value_dim or key_dim
        self.dropout, self.seed = checked_rate(dropout), seed
        self.use_bias, self.use_gate = bool(use_bias), bool(use_gate)
        self._output_shape = (output_shape,) if isinstance(output_shape, int) else tuple(output_shape or ()) or None
        axes = (attention_axes,) if isinstance(attention_axes, int) else attention_axes
        self.attention_axes = None if axes is None else tuple(int(axis) for axis in axes)
        self.sliding_window = sliding_window
        weight_options.keep(self, "kernel", kernel_initializer, kernel_regularizer, kernel_constraint)
        weight_options.keep(self, "bias", bias_initializer, bias_regularizer, bias_constraint)
        self._penalty = regularizers.get(activity_regularizer)
        self._heads_of_values = num_heads

    def get_config(self) -> dict[str, Any]:
        own = {"output_shape": self._output_shape, "activity_regularizer": described(self._penalty)}
        return {**super().get_config(), **own}

    # Building ------------------------------------------------------------------------------------------------------------

    def build(self, query_shape: Any, value_shape: Any, key_shape: Any = None) -> None:
        query_shape, value_shape = tuple(query_shape), tuple(value_shape)
        key_shape = value_shape if key_shape is None else tuple(key_shape)
        self.compute_output_shape(query_shape, value_shape, key_shape)
        heads, equation = self.num_heads, "...x,xnh->...nh"
        self._project("query_dense", "query", equation, (heads, self.key_dim), query_shape)
        self._project("key_dense", "key", equation, (self._heads_of_values, self.key_dim), key_shape)
        if self.use_gate:
            self._gate_dense = self._projection("gate", equation, (heads, self.value_dim), query_shape, activation="sigmoid")
        self._project("value_dense", "value", equation, (self._heads_of_values, self.value_dim), value_shape)
        self._build_attention(len(query_shape))
        features = self._output_shape or query_shape[-1:]
        labels = string.ascii_uppercase[: len(features)]
        of_heads = (*query_shape[:-1], heads, self.value_dim)
        self._project("output_dense", "attention_output", f"...nh,nh{labels}->...{labels}", features, of_heads)

    def _project(self, attribute: str, *arguments: Any) -> None:
        setattr(self, self._projections + attribute, self._projection(*arguments))

    def _projection(self, name: str, equation: str, sizes: Any, shape: Any, activation: Any = None) -> EinsumDense:
        """A linear map of the last axes of an input of this shape, with the options of all the projections."""
        made = EinsumDense(
            equation,
            sizes,
            activation,
            equation.rpartition("...")[2] if self.use_bias else None,
            self.kernel_initializer,
            self.bias_initializer,
            self.kernel_regularizer,
            self.bias_regularizer,
            self.kernel_constraint,
            self.bias_constraint,
            activity_regularizer=self._penalty,
            dtype=self.dtype_policy,
            name=name,
        )
        made.build(shape)
        return made

    def _build_attention(self, rank: int) -> None:
        """What depends on the number of axes of the query: the products, and the axes of the softmax."""
        axes = self.attention_axes or tuple(range(1, rank - 1))
        if not axes or any(not -rank <= axis < rank or axis % rank in (0, rank - 1) for axis in axes):
            raise ShapeError(
                f"Layer '{self.name}' ({type(self).__name__}): attention_axes {axes} must lie between batch and features of a "
                f"query with {rank} axes."
            )
        self._axes = tuple(axis % rank for axis in axes)
        letters = string.ascii_letters
        query, ends = letters[: rank + 1], dict(zip(self._axes, letters[rank + 1 :], strict=False))
        value = "".join(ends.get(axis, letter) for axis, letter in enumerate(query))
        rows = "".join(letter for axis, letter in enumerate(query[:-1]) if axis not in self._axes)
        scores = rows + "".join(query[axis] for axis in self._axes) + "".join(ends[axis] for axis in self._axes)
        self._dot_product_equation, self._combine_equation = f"{value},{query}->{scores}", f"{scores},{value}->{query}"
        self._softmax = Softmax(tuple(range(-len(axes), 0)), dtype=self.dtype_policy)
        self._dropout_layer = Dropout(self.dropout, dtype=self.dtype_policy, seed=self.seed)

    # Computing -----------------------------------------------------------------------------------------------------------

    def call(
        self,
        query: Any,
        value: Any,
        key: Any = None,
        query_mask: Any = None,
        value_mask: Any = None,
        key_mask: Any = None,
        attention_mask: Any = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        use_causal_mask: bool = False,
    ) -> Any:
        key = value if key is None else key
        masks = [attention_mask, of_rows(query_mask), of_columns(value_mask), of_columns(key_mask)]
        if use_causal_mask or self.sliding_window is not None:
            masks.append(self._order(query, value, use_causal_mask))
        mask = joined([None if mask is None else self._spread(mask, query.ndim) for mask in masks])
        query, key, value = unmarked(query), unmarked(key), unmarked(value)
        gate = self._gate_dense(query) if self.use_gate else None
        heads = self.query_dense(query), self._for_each(self.key_dense(key)), self._for_each(self.value_dense(value))
        y, scores = self._compute_attention(*heads, mask, training, return_attention_scores)
        y = self.output_dense(y if gate is None else y * gate)
        return (y, scores) if return_attention_scores else y

    def _order(self, query: Tensor, value: Tensor, causal: bool) -> Tensor | None:
        """The mask that positions give."""
        if len(self._axes) != 1:
            raise ValueError(
                f"Layer '{self.name}' ({type(self).__name__}): a causal mask or a window needs one attention axis, found axes "
                f"{self._axes}. Give attention_mask instead."
            )
        axis = self._axes[0]
        return order(query.shape[axis], value.shape[axis], causal, self.sliding_window)

    def _spread(self, mask: Any, rank: int) -> Any:
        """A mask with axes of size 1, for the heads and for what is not attended over, before those of the attention."""
        ends = 2 * len(self._axes)
        missing = rank + len(self._axes) - mask.ndim
        return reshape(mask, (*mask.shape[:-ends], *(1,) * missing, *mask.shape[-ends:])) if mask.ndim > ends else mask

    def _for_each(self, of_groups: Tensor) -> Tensor:
        """Keys or values for each head of the query."""
        return of_groups

    def _compute_attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Any = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """What the heads of the query find among the values, and their weights; a subclass may have another way."""
        scores = einsum(self._dot_product_equation, key, query * (1.0 / math.sqrt(self.key_dim)))
        if attention_mask is not None and not (self.dropout > 0 or return_attention_scores or query.ndim != 4):
            scores = where(attention_mask, scores, 0.7 * float(as_dtype(scores.dtype).min))
            attention_mask = None  # as Keras's fused function: where all is masked, all is equal
        weights = self._softmax(scores, mask=attention_mask)
        dropped = self._dropout_layer(weights, training=training) if self.dropout > 0 else weights
        return einsum(self._combine_equation, dropped, value), weights

    def compute_output_shape(  # type: ignore[override]  # a shape for each argument of the call
        self, query_shape: Any, value_shape: Any, key_shape: Any = None
    ) -> tuple[Any, ...]:
        """The query's, with other features if there is an `output_shape`."""
        if key_shape is not None and tuple(value_shape)[1:-1] != tuple(key_shape)[1:-1]:
            raise ShapeError(
                f"Layer '{self.name}' ({type(self).__name__}): all axes of value and key but the last must be equal, found "
                f"{tuple(value_shape)} and {tuple(key_shape)}."
            )
        return (*query_shape[:-1], *(self._output_shape or query_shape[-1:]))

    def scores_shape(self, query_shape: Any, value_shape: Any, key_shape: Any = None) -> tuple[Any, ...]:
        """The shape of the weights that are returned beside."""
        axes = self._axes
        rows = [size for axis, size in enumerate(query_shape[:-1]) if axis not in axes]
        return (*rows, self.num_heads, *(query_shape[axis] for axis in axes), *(value_shape[axis] for axis in axes))


class GroupedQueryAttention(MultiHeadAttention):
    """Attention of several heads, groups of which share the projected key and value.

    Args:
        head_dim: features of a head.
        num_query_heads: number of heads.
        num_key_value_heads: number of groups, which divides that of the heads.
        dropout, use_bias, sliding_window, flash_attention, use_gate, seed: as in `MultiHeadAttention`, as are the options of
            the projections, and the call.
        options: `name`, `dtype`, `trainable`, as in `Layer`.

    Source: Ainslie et al., GQA (2023), section 2.2.

    >>> layer = tf.keras.layers.GroupQueryAttention(head_dim=3, num_query_heads=4, num_key_value_heads=2)
    >>> x = tf.ones([5, 6, 8])
    >>> layer(x, x).shape, [weight.shape[1] for weight in layer.weights if weight.name == "kernel"]
    (TensorShape([5, 6, 8]), [4, 2, 2, 3])
    """

    _projections = "_"
    query_dense = property(lambda self: self._query_dense)
    key_dense = property(lambda self: self._key_dense)
    value_dense = property(lambda self: self._value_dense)
    output_dense = property(lambda self: self._output_dense)

    def __init__(
        self,
        head_dim: int,
        num_query_heads: int,
        num_key_value_heads: int,
        dropout: float = 0.0,
        use_bias: bool = True,
        sliding_window: int | None = None,
        flash_attention: bool | None = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        use_gate: bool = False,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            num_query_heads,
            head_dim,
            None,
            dropout,
            use_bias,
            None,
            None,
            sliding_window,
            flash_attention,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            activity_regularizer,
            kernel_constraint,
            bias_constraint,
            use_gate,
            seed,
            **options,
        )
        if not isinstance(num_key_value_heads, int) or num_key_value_heads < 1 or num_query_heads % num_key_value_heads:
            raise ValueError(
                "`num_query_heads` must be divisible by `num_key_value_heads`, a positive int. Received: "
                f"num_query_heads={num_query_heads!r}, num_key_value_heads={num_key_value_heads!r}."
            )
        self.head_dim, self.num_query_heads, self.num_key_value_heads = head_dim, num_query_heads, num_key_value_heads
        self._heads_of_values = num_key_value_heads

    def get_config(self) -> dict[str, Any]:
        foreign = ("num_heads", "key_dim", "value_dim", "output_shape", "attention_axes")
        return {name: value for name, value in super().get_config().items() if name not in foreign}

    def _for_each(self, of_groups: Tensor) -> Tensor:
        return repeat(of_groups, self.num_heads // self.num_key_value_heads, axis=2)


GroupQueryAttention = GroupedQueryAttention  # Keras's name of it in `keras.layers`; the class has the other one
