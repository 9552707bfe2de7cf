"""Attention of one head without projections, by products of query and key or by functions of their sum."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...functions.contractions import matmul
from ...functions.elementwise import tanh, where
from ...functions.nn import softmax
from ...functions.reductions import reduce_sum
from ...functions.shaping import expand_dims
from ..initializers import GlorotUniform
from ..seeds import SeedGenerator
from .attention_masks import joined, of_columns, of_rows, order, unmarked
from .layer import Layer
from .regularization import checked_rate, dropped


class Attention(Layer):
    """Dot-product attention: softmax(q k^T) v, after Luong.

    Args:
        use_scale: whether a weight of shape () multiplies the scores.
        score_mode: 'dot' for q k^T, or 'concat' for a weight times the sum of tanh(q + k) over the features.
        dropout: rate at which weights of the attention are dropped in training.
        seed: of the dropout.
        options: `name`, `dtype`, `trainable`, as in `Layer`.

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

    _gives_floats = True

    def __init__(
        self, use_scale: bool = False, score_mode: str = "dot", dropout: float = 0.0, seed: int | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        if score_mode not in ("dot", "concat"):
            raise ValueError(
                "Invalid value for argument score_mode. Expected one of {'dot', 'concat'}. Received: "
                f"score_mode={score_mode!r}"
            )
        self.use_scale, self.score_mode, self.seed = bool(use_scale), score_mode, seed
        self.dropout = checked_rate(dropout)
        self.seed_generator = SeedGenerator(seed) if self.dropout > 0 else None
        self.scale: Any = None
        self.concat_score_weight: Any = None

    def build(self, input_shape: Any) -> None:
        self._listed(input_shape)
        if self.use_scale:
            self.scale = self.add_weight((), "ones", name="scale")
        if self.score_mode == "concat":
            self.concat_score_weight = self.add_weight((), "ones", name="concat_score_weight")

    def _calculate_scores(self, query: Tensor, key: Tensor) -> Tensor:
        """(batch, T, S): how much each query has to do with each key."""
        if self.score_mode == "dot":
            scores = matmul(query, key, transpose_b=True)
            return scores if self.scale is None else scores * self.scale
        sums = expand_dims(query, -2) + expand_dims(key, -3)
        return reduce_sum(tanh(sums if self.scale is None else sums * self.scale), -1) * self.concat_score_weight

    def call(
        self,
        inputs: Any,
        mask: Any = None,
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
        noise = self.seed_generator if training else None
        result = matmul(weights if noise is None else dropped(weights, self.dropout, noise.key), value)
        if query_mask is not None:
            result = where(joined([of_rows(query_mask)]), result, 0.0)
        return (result, weights) if return_attention_scores else result

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The query's."""
        return None if mask is None else self._listed(mask, "mask")[0]

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """The query's, with the features of the value."""
        query, value, *_ = self._listed(input_shape)
        return (*query[:-1], value[-1])

    def scores_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """The shape of the weights that are returned beside."""
        query, value, *_ = self._listed(input_shape)
        return (*query[:-1], value[-2])

    def _listed(self, given: Any, what: str = "inputs") -> list[Any]:
        """Two or three of something, for query, value and key."""
        if not isinstance(given, (list, tuple)) or not 2 <= len(given) <= 3 or isinstance(given[0], (int, float)):
            raise ValueError(
                f"Layer '{self.name}' ({type(self).__name__}) must be called on a list, [query, value] or [query, value, key], "
                f"and so must be its mask; found {what} {given!r:.100}."
            )
        return list(given)


class AdditiveAttention(Attention):
    """Additive attention: softmax(scores) v, where a score is the sum of scale * tanh(q + k) over the features, after Bahdanau.

    Args:
        use_scale: whether `scale` is a weight for each feature; else it is 1.
        dropout, seed: as in `Attention`, as is the call.
        options: `name`, `dtype`, `trainable`, as in `Layer`.

    Source: Bahdanau, Cho and Bengio (2015), section A.1.2.

    >>> query, value = tf.constant([[[1.0, 0.0]]]), tf.constant([[[9.0, 0.0], [0.0, 9.0]]])
    >>> print(tf.keras.layers.AdditiveAttention(use_scale=False)([query, value]).numpy().round(2))
    [[[2.86 6.14]]]
    """

    def __init__(self, use_scale: bool = True, dropout: float = 0.0, **options: Any) -> None:
        super().__init__(use_scale, dropout=dropout, **options)

    def build(self, input_shape: Any) -> None:
        features = self._listed(input_shape)[0][-1]
        if self.use_scale:
            self.scale = self.add_weight((features,), GlorotUniform(), name="scale")

    def _calculate_scores(self, query: Tensor, key: Tensor) -> Tensor:
        found = tanh(expand_dims(query, -2) + expand_dims(key, -3))
        return reduce_sum(found if self.scale is None else found * self.scale, -1)

    def get_config(self) -> dict[str, Any]:
        return {name: value for name, value in super().get_config().items() if name != "score_mode"}
