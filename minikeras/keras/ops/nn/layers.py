"""Functions of layers: activations, which take integers and bools too, moments, normalization and attention."""

from __future__ import annotations

import math
from typing import Any

from ....core import Tensor, convert_to_tensor
from ....distribute.functions import moments_of_all_ranks
from ....distribute.world import world
from ....errors import ShapeError
from ....functions import elementwise, nn
from ....functions.contractions import einsum
from ....functions.creation import ones
from ....functions.elementwise import cast, maximum, minimum, rsqrt, saturate_cast, square, where
from ....functions.linalg import band_part
from ....functions.operands import negative_axes, negative_axis, rounded_once
from ....functions.reductions import norm, reduce_mean, reduce_sum
from ....functions.shaping import reshape, squeeze
from ....types import Axis, TensorLike
from ... import activations, config
from ...promotion import floating, promoted
from ...symbolic.operation import operation
from ..rows import of_any, of_floats, of_floats_and_options

relu = of_any("relu", nn.relu)
relu6 = of_floats("relu6", nn.relu6)
selu = of_floats("selu", nn.selu)
sigmoid = of_floats("sigmoid", elementwise.sigmoid)
silu = swish = of_floats("silu", nn.silu, "x sigmoid(x).")
softplus = of_floats("softplus", elementwise.softplus)
softsign = of_floats("softsign", nn.softsign)
log_sigmoid = of_floats("log_sigmoid", elementwise.log_sigmoid)
hard_sigmoid = of_floats("hard_sigmoid", activations.hard_sigmoid)
hard_silu = hard_swish = of_floats("hard_silu", activations.hard_silu)
hard_tanh = of_floats("hard_tanh", activations.hard_tanh)
sparse_plus = of_floats("sparse_plus", activations.sparse_plus)
sparse_sigmoid = of_floats("sparse_sigmoid", activations.sparse_sigmoid)
tanh_shrink = of_floats("tanh_shrink", activations.tanh_shrink)
celu = of_floats_and_options(activations.celu)
elu = of_floats_and_options(activations.elu, same=nn.elu)
gelu = of_floats_and_options(activations.gelu, approximate=True)
glu = of_floats_and_options(activations.glu)
hard_shrink = of_floats_and_options(activations.hard_shrink)
leaky_relu = of_floats_and_options(activations.leaky_relu, same=nn.leaky_relu)
log_softmax = of_floats_and_options(activations.log_softmax, same=nn.log_softmax)
soft_shrink = of_floats_and_options(activations.soft_shrink)
softmax = of_floats_and_options(activations.softmax, same=nn.softmax)
sparsemax = of_floats_and_options(activations.sparsemax)
squareplus = of_floats_and_options(activations.squareplus, b=4)
threshold = of_floats_and_options(activations.threshold)


@operation
def moments(x: TensorLike, axes: Axis, keepdims: bool = False, synchronized: bool = False) -> tuple[Tensor, Tensor]:
    """Mean and population variance along axes; those of 16-bit floats are computed in float32 and moved into their range.

    Args:
        x: the values.
        axes: over which to take them: an int, or several.
        keepdims: whether these axes are kept, of size 1.
        synchronized: whether the values are those of all ranks (see `tf.distribute`), which must all call it.

    >>> mean, variance = tf.keras.ops.moments([1.0, 3.0], axes=0)
    >>> print(mean.numpy(), variance.numpy())
    2.0 1.0
    """
    x = floating(x)
    wide = x if x.dtype.size > 2 else cast(x, "float32")
    if synchronized and world().size > 1:
        listed = negative_axes(axes, x.ndim, "moments")
        _, mean, variance = moments_of_all_ranks(wide, listed)
        mean, variance = (mean, variance) if keepdims else (squeeze(mean, listed), squeeze(variance, listed))
    else:
        mean, variance = nn.moments(wide, axes, keepdims=keepdims)
    return (mean, variance) if wide is x else (saturate_cast(mean, x.dtype), saturate_cast(variance, x.dtype))


@operation(name="BatchNorm")
def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    axis: int,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    epsilon: float = 1e-3,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, with one number of each along an axis.

    >>> print(tf.keras.ops.batch_normalization([[4.0]], [2.0], [1.0], axis=-1, epsilon=0.0).numpy())
    [[2.]]
    """
    x = floating(x)
    shape = (-1, *[1] * (-1 - negative_axis(axis, x.ndim, "batch_normalization")))
    center, spread, shift, factor = [_shaped(one, shape) for one in (mean, variance, offset, scale)]
    return nn.batch_normalization(x, center, spread, shift, factor, epsilon)


@operation(name="LayerNorm")
@rounded_once
def layer_normalization(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: Axis = -1,
    epsilon: float | None = None,
    rms_scaling: bool = False,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, with the moments along one axis or several.

    Args:
        x: tensor of any shape.
        gamma, beta: of the shape of these axes, or None.
        epsilon: `keras.config.epsilon()` if None.
        rms_scaling: divide by the deviation only: no mean is taken away and `beta` is ignored.

    >>> print(tf.keras.ops.layer_normalization([[0.0, 2.0]], epsilon=0.0).numpy())
    [[-1.  1.]]
    """
    x = floating(x)
    shape, centered = _beside(x, axis), x - reduce_mean(x, axis, keepdims=True)
    scale = rsqrt(reduce_mean(square(centered), axis, keepdims=True) + _positive(epsilon))
    if gamma is not None:
        scale = scale * cast(_shaped(gamma, shape), x.dtype)
    if rms_scaling:
        return x * scale
    return centered * scale if beta is None else centered * scale + cast(_shaped(beta, shape), x.dtype)


@operation(name="RMSNorm", named="scale")
@rounded_once
def rms_normalization(x: TensorLike, scale: TensorLike | None = None, axis: Axis = -1, epsilon: float | None = None) -> Tensor:
    """x / sqrt(mean(x**2) + epsilon) * scale, with the mean along one axis or several.

    Args:
        x: tensor of any shape.
        scale: whatever can be broadcast to it, or None.
        epsilon: `keras.config.epsilon()` if None.

    Source: Zhang and Sennrich (2019), Root Mean Square Layer Normalization, equation (4).

    >>> print(tf.keras.ops.rms_normalization([[1.0, 7.0]], epsilon=0.0).numpy())
    [[0.2 1.4]]
    """
    x = floating(x)
    result = x * rsqrt(reduce_mean(square(x), axis, keepdims=True) + _positive(epsilon))
    return result if scale is None else result * cast(convert_to_tensor(scale), x.dtype)


@operation
@rounded_once
def normalize(x: TensorLike, axis: Axis = -1, order: int = 2, epsilon: float | None = None) -> Tensor:
    """x divided by its norm along an axis, which counts as `epsilon` at least.

    Args:
        x: tensor of any shape.
        order: of the norm, 1 or more.
        epsilon: `keras.config.epsilon()` if None.

    >>> print(tf.keras.ops.normalize([3.0, 4.0]).numpy())
    [0.6 0.8]
    """
    if not isinstance(order, int) or order < 1:
        raise ValueError(f"normalize: order must be an int >= 1, found {order!r}.")
    x = floating(x)
    x = x if x.ndim else reshape(x, (1,))
    if order == 2:
        return x * minimum(rsqrt(reduce_sum(square(x), axis, keepdims=True)), 1.0 / _positive(epsilon))
    return x / maximum(norm(x, order, axis, True), _positive(epsilon))


def _shaped(value: TensorLike | None, shape: tuple[int, ...]) -> Any:
    return None if value is None else reshape(convert_to_tensor(value), shape)


def _positive(epsilon: float | None) -> float:
    return config.epsilon() if epsilon is None else epsilon


def _beside(x: Tensor, axis: Axis) -> tuple[int, ...]:
    """The shape of x from the first of the axes on, with size 1 for axes that are not among them."""
    axes = negative_axes(axis, x.ndim, "layer_normalization")
    if not axes:
        raise ShapeError("layer_normalization: no axis was given.")
    return tuple([x.shape[place] if place in axes else 1 for place in range(axes[0], 0)])


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
    q, k, v = map(floating, promoted(query, key, value))
    return _attended(q, k, v, bias, mask, scale, is_causal)


@rounded_once
def _attended(
    q: Tensor, k: Tensor, v: Tensor, bias: TensorLike, mask: TensorLike, scale: TensorLike, is_causal: bool
) -> Tensor:
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
    weights = reshape(nn.softmax(scores), (n, shared, heads // shared, places, k.shape[1]))
    return reshape(einsum("bkgts,bskh->btkgh", weights, v), (n, places, heads, v.shape[-1]))
