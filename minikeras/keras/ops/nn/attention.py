"""Attention of several heads as a function."""

from __future__ import annotations

import math
from typing import Any

from ....core import Tensor, convert_to_tensor
from ....errors import ShapeError
from ....functions.contractions import einsum
from ....functions.creation import ones
from ....functions.elementwise import cast, where
from ....functions.linalg import band_part
from ....functions.nn import softmax
from ....functions.publish import rounded_once
from ....functions.shaping import reshape
from ....types import TensorLike
from ...promotion import floating, promoted
from ...symbolic.operation import operation

__all__ = ["dot_product_attention"]


def _cost(shapes: list[tuple[int, ...]], given: Any) -> tuple[int, int]:
    scores = math.prod(shapes[0][:-1]) * max(shape[1] if len(shape) == 4 else 1 for shape in shapes)
    return scores, 2 * scores * shapes[0][-1]


@operation(named="bias mask scale", cost=_cost)
def dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    bias: TensorLike | None = None,
    mask: TensorLike | None = None,
    scale: TensorLike | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
) -> Tensor:
    """softmax(q k^T scale + bias) v for each head.

    Args:
        query: (batch, places, heads, size).
        key, value: (batch, sources, heads, size); of their heads each may serve as many of the query's.
        bias: added to the scores (batch, heads, places, sources), or what can be broadcast to them.
        mask: of the same shape, bool; what is False counts nothing.
        scale: 1 / sqrt(size) if None.
        is_causal: whether a place sees only sources up to its own number.
        flash_attention: accepted for compatibility, ignored.

    Raises:
        ShapeError: if a tensor has not four axes, or heads do not fit.
        ValueError: for attn_logits_soft_cap, which Keras has on TPUs only.

    Source: Vaswani et al. (2017), Attention Is All You Need, equation (1).

    >>> tf.keras.ops.dot_product_attention(tf.ones([1, 4, 2, 8]), tf.ones([1, 3, 2, 8]), tf.ones([1, 3, 2, 8])).shape
    TensorShape([1, 4, 2, 8])
    """
    if attn_logits_soft_cap is not None:
        raise ValueError("dot_product_attention: attn_logits_soft_cap works on TPUs only; leave it out.")
    return _attended(*map(floating, promoted(query, key, value)), bias, mask, scale, is_causal)


@rounded_once
def _attended(q: Tensor, k: Tensor, v: Tensor, bias: Any, mask: Any, scale: Any, is_causal: bool) -> Tensor:
    if not q.ndim == k.ndim == v.ndim == 4 or k.shape[2] < 1 or q.shape[2] % k.shape[2] or v.shape[2] != k.shape[2]:
        raise ShapeError(
            "dot_product_attention: needs (batch, places, heads, size), heads of the query being a multiple of those of key "
            f"and value; found query {q.shape}, key {k.shape}, value {v.shape}."
        )
    n, places, heads, size = q.shape
    shared = k.shape[2]
    q = reshape(q, (n, places, shared, heads // shared, size))
    scores = einsum("btkgh,bskh->bkgts", q, k) * (1.0 / math.sqrt(size) if scale is None else cast(scale, q.dtype))
    scores = reshape(scores, (n, heads, places, k.shape[1]))
    if bias is not None:
        scores = scores + cast(convert_to_tensor(bias), q.dtype)
    visible = [] if mask is None else [cast(convert_to_tensor(mask), "bool")]
    if is_causal:
        visible.append(cast(band_part(ones(scores.shape[-2:]), -1, 0), "bool"))
    for one in visible:
        scores = where(one, scores, -0.7 * float(scores.dtype.max))
    weights = reshape(softmax(scores), (n, shared, heads // shared, places, k.shape[1]))
    return reshape(einsum("bkgts,bskh->btkgh", weights, v), (n, places, heads, v.shape[-1]))
