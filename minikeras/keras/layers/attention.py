"""Attention of one head without projections, of several with them, and the masks that say which steps may attend to which."""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Callable
from typing import Any

from ...core import Tensor
from ...errors import ShapeError
from ...functions import abs, cast, cumsum, einsum, logical_and, matmul, ones, reduce_sum, tanh, tensor, where
from ...functions.nn import softmax
from ...functions.shaping import expand_dims, repeat, reshape
from ...types import ShapeLike, TensorLike, as_dtype
from .. import regularizers
from ..initializers import GlorotUniform
from ..random import SeedGenerator
from ..saving.objects import described
from .activations import Softmax
from .core import EinsumDense
from .inputs import called, unmarked
from .layer import Layer
from .options import Constraint, Flag, Initializer, Kept, Positive, Rate, Regularizer, check_positive
from .regularization import Dropout, dropped


def order(rows: int, columns: int, causal: bool, window: int | None = None) -> Tensor | None:
    """A mask (rows, columns), true where a step may attend to another by their positions; None if each may attend to all.

    Args:
        rows, columns: numbers of steps.
        causal: whether steps attend only to steps up to their own.
        window: None, or the distance below which steps attend to one another.
    """
    if not causal and window is None:
        return None
    counts = ones([rows, columns], "int32")  # positions are sums of ones: so a graph that is exported has any number of steps
    row, column = cumsum(counts, 0), cumsum(counts, 1)
    masks = [row >= column if causal else None, abs(row - column) < window if window is not None else None]
    return joined(masks)


def joined(masks: list[Any]) -> Tensor | None:
    """True where all of the masks are; None without any."""
    bools = [cast(tensor(mask), "bool") for mask in masks if mask is not None]
    return functools.reduce(logical_and, bools) if bools else None


def of_rows(mask: TensorLike) -> Any:
    """A mask of the steps that attend, as a column."""
    return None if mask is None else expand_dims(tensor(mask), -1)


def of_columns(mask: TensorLike) -> Any:
    """A mask of the steps that are attended to, as a row."""
    return None if mask is None else expand_dims(tensor(mask), -2)


class Attention(Layer, described=True, gives_floats=True):
    """Dot-product attention: softmax(q k^T) v, after Luong.

    Args:
        use_scale: whether a weight of shape () multiplies the scores.
        score_mode: 'dot' for q k^T, or 'concat' for a weight times the sum of tanh(q + k) over the features.
        dropout: rate at which weights of the attention are dropped in training.
        seed: of the dropout.

    The call takes a list of query (batch, T, features), value (batch, S, ...), and key, which is the value if there is none;
    `mask`, a list of their masks: values left out are not attended to, queries left out give zeros; `use_causal_mask` allows
    only steps up to the own; `return_attention_scores` adds the weights (batch, T, S) to what is returned.

    Returns:
        (batch, T, features of the value), with the mask of the query.

    Source: Luong, Pham and Manning (2015), section 3.1.

    >>> query, value = tf.constant([[[1.0, 0.0]]]), tf.constant([[[9.0, 0.0], [0.0, 9.0]]])
    >>> print(tf.keras.layers.Attention()([query, value]).numpy().round(2))
    [[[9. 0.]]]
    """

    _member_numbers = ("dropout",)

    def __init__(
        self, use_scale: Flag = False, score_mode: str = "dot", dropout: Rate = 0.0, seed: int | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        if score_mode not in ("dot", "concat"):
            raise ValueError(
                "Invalid value for argument score_mode. Expected one of {'dot', 'concat'}. Received: "
                f"score_mode={score_mode!r}"
            )
        self.score_mode, self.seed = score_mode, seed
        self.seed_generator = SeedGenerator(seed) if self.dropout > 0 else None

    def build(self, input_shape: ShapeLike) -> None:
        self._listed(input_shape)
        self.scale = self.add_weight((), "ones", name="scale") if self.use_scale else None
        is_sum = self.score_mode == "concat"
        self.concat_score_weight = self.add_weight((), "ones", name="concat_score_weight") if is_sum else None

    def _calculate_scores(self, query: Tensor, key: Tensor) -> Tensor:
        """The score of each query with each key, (batch, T, S)."""
        if self.score_mode == "dot":
            scores = matmul(query, key, transpose_b=True)
            return scores * self.scale if self.use_scale else scores
        sums = expand_dims(query, -2) + expand_dims(key, -3)
        return reduce_sum(tanh(sums * self.scale if self.use_scale else sums), -1) * self.concat_score_weight

    def call(
        self,
        inputs: TensorLike,
        mask: TensorLike = None,
        training: bool | None = False,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> Any:
        query, value, *rest = [unmarked(x) for x in self._listed(inputs)]
        query_mask, value_mask, *_ = (None, None) if mask is None else self._listed(mask, "mask")
        scores = self._calculate_scores(query, rest[0] if rest else value)
        counts = joined([of_columns(value_mask), order(query.shape[-2], value.shape[-2], use_causal_mask)])
        if counts is not None:
            scores = where(counts, scores, scores - (65504.0 if scores.dtype == "float16" else 1e9))
        weights = softmax(scores)
        if training and self.seed_generator is not None:
            weights = dropped(weights, self.dropout, self.seed_generator.key)
        result = matmul(weights, value)
        if query_mask is not None:
            result = where(joined([of_rows(query_mask)]), result, 0.0)
        return (result, weights) if return_attention_scores else result

    def compute_mask(self, inputs: TensorLike, mask: TensorLike = None) -> Any:
        """The query's."""
        return None if mask is None else self._listed(mask, "mask")[0]

    def compute_output_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """The query's, with the features of the value."""
        query, value, *_ = self._listed(input_shape)
        return (*query[:-1], value[-1])

    def scores_shape(self, input_shape: ShapeLike) -> tuple[Any, ...]:
        """The shape of the attention weights that are returned beside the outputs."""
        query, value, *_ = self._listed(input_shape)
        return (*query[:-1], value[-2])

    def _listed(self, given: Any, what: str = "inputs") -> list[Any]:
        if not isinstance(given, (list, tuple)) or not 2 <= len(given) <= 3 or isinstance(given[-1], (int, float)):
            raise ValueError(
                f"{called(self)} must be called on a list, [query, value] or [query, value, key], and so must be its mask; "
                f"found {what} {given!r:.100}."
            )
        return list(given)


class AdditiveAttention(Attention, described=True):
    """Additive attention: softmax(scores) v, where a score is the sum of scale * tanh(q + k) over the features, after Bahdanau.

    Args:
        use_scale: whether `scale` is a weight for each feature; else it is 1.
        dropout, seed: as in `Attention`, as is the call.

    Source: Bahdanau, Cho and Bengio (2015), section A.1.2.

    >>> query, value = tf.constant([[[1.0, 0.0]]]), tf.constant([[[9.0, 0.0], [0.0, 9.0]]])
    >>> print(tf.keras.layers.AdditiveAttention(use_scale=False)([query, value]).numpy().round(2))
    [[[2.86 6.14]]]
    """

    _not_described = ("score_mode",)

    def __init__(self, use_scale: bool = True, dropout: float = 0.0, **options: Any) -> None:
        super().__init__(use_scale, dropout=dropout, **options)

    def build(self, input_shape: ShapeLike) -> None:
        features = self._listed(input_shape)[0][-1]
        self.scale = self.add_weight((features,), GlorotUniform(), name="scale") if self.use_scale else None

    def _calculate_scores(self, query: Tensor, key: Tensor) -> Tensor:
        found = tanh(expand_dims(query, -2) + expand_dims(key, -3))
        return reduce_sum(found * self.scale if self.use_scale else found, -1)


class MultiHeadAttention(Layer, described=True, gives_floats=True):
    """Attention of several heads: softmax(q k^T / sqrt(key_dim)) v for each head, with q, k, v and the result projected.

    Args:
        num_heads: number of heads.
        key_dim: features of a head's queries and keys.
        value_dim: features of a head's values; key_dim if None.
        dropout: rate at which weights of the attention are dropped in training.
        use_bias: whether the projections have biases.
        output_shape: an int or a shape, the features of the output; those of the query if None.
        attention_axes: the axes of the inputs that are attended over; all but the batch and the features if None.
        sliding_window: None, or the distance below which steps attend to one another.
        flash_attention: accepted for compatibility; there is no kernel of that name here, so it may not be True.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer, kernel_constraint,
            bias_constraint: of the projections, as in `EinsumDense`.
        use_gate: whether each head's result is multiplied by the sigmoid of another projection of the query.
        seed: of the dropout.

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

    _member_numbers = ("dropout",)
    supports_masking = True
    _projections = ""
    """The prefix of the names of the attributes that hold the projections; Keras's files have these names."""

    def __init__(
        self,
        num_heads: Positive,
        key_dim: Positive,
        value_dim: int | None = None,
        dropout: Rate = 0.0,
        use_bias: Flag = True,
        output_shape: ShapeLike = None,
        attention_axes: Any = None,
        sliding_window: Kept[int | None] = None,
        flash_attention: bool | None = None,
        kernel_initializer: Initializer = "glorot_uniform",
        bias_initializer: Initializer = "zeros",
        kernel_regularizer: Regularizer = None,
        bias_regularizer: Regularizer = None,
        activity_regularizer: Any = None,
        kernel_constraint: Constraint = None,
        bias_constraint: Constraint = None,
        use_gate: Flag = False,
        seed: Kept[int | None] = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        for name, value in (("value_dim", value_dim), ("sliding_window", sliding_window)):
            if value is not None:
                check_positive(self, name, value)
        if flash_attention:
            raise NotImplementedError(f"{type(self).__name__}: there is no flash attention here. Leave flash_attention out.")
        self.value_dim = value_dim or key_dim
        self._output_shape = (output_shape,) if isinstance(output_shape, int) else tuple(output_shape or ()) or None
        axes = (attention_axes,) if isinstance(attention_axes, int) else attention_axes
        self.attention_axes = None if axes is None else tuple(int(axis) for axis in axes)
        self._penalty = regularizers.get(activity_regularizer)
        self._heads_of_values = num_heads

    def get_config(self) -> dict[str, Any]:
        own = {"output_shape": self._output_shape, "activity_regularizer": described(self._penalty)}
        return {name: one for name, one in (super().get_config() | own).items() if name not in self._not_described}

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

    def _projection(
        self, name: str, equation: str, sizes: Any, shape: ShapeLike, activation: str | Callable[..., Any] | None = None
    ) -> EinsumDense:
        """A linear map of the last axes of an input of this shape, with the options of all the projections."""
        kept = [f"{weight}_{kind}" for weight in ("kernel", "bias") for kind in ("initializer", "regularizer", "constraint")]
        options: dict[str, Any] = {key: getattr(self, key) for key in kept}
        options |= {"activity_regularizer": self._penalty, "dtype": self.dtype_policy, "name": name}
        made = EinsumDense(equation, sizes, activation, equation.rpartition("...")[2] if self.use_bias else None, **options)
        made.build(shape)
        return made

    def _build_attention(self, rank: int) -> None:
        """Set the einsum equations, the softmax and the dropout for a query with `rank` axes."""
        axes = self.attention_axes or tuple(range(1, rank - 1))
        if not axes or any(not -rank <= axis < rank or axis % rank in (0, rank - 1) for axis in axes):
            raise ShapeError(
                f"{called(self)}: attention_axes {axes} must lie between batch and features of a query with {rank} axes."
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
        query: TensorLike,
        value: Any,
        key: Any = None,
        query_mask: Any = None,
        value_mask: Any = None,
        key_mask: Any = None,
        attention_mask: TensorLike = None,
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
        if len(self._axes) != 1:
            raise ValueError(
                f"{called(self)}: a causal mask or a window needs one attention axis, found axes {self._axes}. Give "
                "attention_mask instead."
            )
        axis = self._axes[0]
        return order(query.shape[axis], value.shape[axis], causal, self.sliding_window)

    def _spread(self, mask: TensorLike, rank: int) -> Any:
        """A mask with axes of size 1, for the heads and for what is not attended over, before those of the attention."""
        ends = 2 * len(self._axes)
        missing = rank + len(self._axes) - mask.ndim
        return reshape(mask, (*mask.shape[:-ends], *(1,) * missing, *mask.shape[-ends:])) if mask.ndim > ends else mask

    def _for_each(self, of_groups: Tensor) -> Tensor:
        return of_groups

    def _compute_attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: TensorLike = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """The outputs of all heads and the attention weights; subclasses may override it."""
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
                f"{called(self)}: all axes of value and key but the last must be equal, found {tuple(value_shape)} and "
                f"{tuple(key_shape)}."
            )
        return (*query_shape[:-1], *(self._output_shape or query_shape[-1:]))

    def scores_shape(self, query_shape: Any, value_shape: Any, key_shape: Any = None) -> tuple[Any, ...]:
        """The shape of the attention weights that are returned beside the outputs."""
        axes = self._axes
        rows = [size for axis, size in enumerate(query_shape[:-1]) if axis not in axes]
        return (*rows, self.num_heads, *(query_shape[axis] for axis in axes), *(value_shape[axis] for axis in axes))


class GroupedQueryAttention(MultiHeadAttention, described=True):
    """Attention of several heads, groups of which share the projected key and value.

    Args:
        head_dim: features of a head.
        num_query_heads: number of heads.
        num_key_value_heads: number of groups, which divides that of the heads.
        dropout, use_bias: as in `MultiHeadAttention`, as is the call.
        options: `sliding_window`, `flash_attention`, `use_gate`, `seed` and the options of the projections, as in
            `MultiHeadAttention`; `name`, `dtype`, `trainable`, as in `Layer`.

    Source: Ainslie et al., GQA (2023), section 2.2.

    >>> layer = tf.keras.layers.GroupQueryAttention(head_dim=3, num_query_heads=4, num_key_value_heads=2)
    >>> x = tf.ones([5, 6, 8])
    >>> layer(x, x).shape, [weight.shape[1] for weight in layer.weights if weight.name == "kernel"]
    (TensorShape([5, 6, 8]), [4, 2, 2, 3])
    """

    _not_described = ("num_heads", "key_dim", "value_dim", "output_shape", "attention_axes")
    _projections = "_"
    query_dense = property(lambda self: self._query_dense)
    key_dense = property(lambda self: self._key_dense)
    value_dense = property(lambda self: self._value_dense)
    output_dense = property(lambda self: self._output_dense)

    def __init__(
        self,
        head_dim: Kept[int],
        num_query_heads: Kept[int],
        num_key_value_heads: Kept[int],
        dropout: float = 0.0,
        use_bias: bool = True,
        **options: Any,
    ) -> None:
        if alien := sorted(options.keys() & set(self._not_described)):
            raise TypeError(f"GroupQueryAttention: there is no {alien}; use MultiHeadAttention.")
        super().__init__(num_query_heads, head_dim, dropout=dropout, use_bias=use_bias, **options)
        if not isinstance(num_key_value_heads, int) or num_key_value_heads < 1 or num_query_heads % num_key_value_heads:
            raise ValueError(
                "`num_query_heads` must be divisible by `num_key_value_heads`, a positive int. Received: "
                f"num_query_heads={num_query_heads!r}, num_key_value_heads={num_key_value_heads!r}."
            )
        self._heads_of_values = num_key_value_heads

    def _for_each(self, of_groups: Tensor) -> Tensor:
        return repeat(of_groups, self.num_heads // self.num_key_value_heads, axis=2)


GroupQueryAttention = GroupedQueryAttention  # Keras's name of it in `keras.layers`; the class has the other one
