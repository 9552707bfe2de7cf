"""Activations, losses of logits and normalization of neural networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import Tensor, check_values, convert_to_tensor, namespace
from ..core.ops import arithmetic, shaping, transcendental
from ..errors import InvalidArgumentError, ShapeError
from ..nn_ops import draws, nn, special
from ..ranks import rows_here, world
from ..types import Axis, ShapeLike, TensorLike
from .catalogue import row, unary
from .elementwise import cast, divide_no_nan, log_sigmoid, sigmoid, softplus, tanh
from .indexing import gather
from .operands import beside, inexact, integer, negative_axis, rounded_once, tensor, tensors
from .ordering import top_k
from .random import keys_of
from .reductions import clip_by_norm, l2_normalize, norm, reduce_mean, reduce_sum, reduce_variance
from .shaping import concat, reshape, transpose

__all__ = ["l2_normalize", "log_sigmoid", "sigmoid", "softplus", "tanh", "top_k"]

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805

# fmt: off
relu = unary(nn.relu, "relu", "Rectifier: max(x, 0)", "1 where x > 0, else 0",
    "print(tf.nn.relu([-1.0, 2.0]).numpy()) -> [0. 2.]", "iuf")
relu6 = unary(nn.relu6, "relu6", "Rectifier with a ceiling: min(max(x, 0), 6)", "1 where 0 < x < 6, else 0",
    "print(tf.nn.relu6([-1.0, 8.0]).numpy()) -> [0. 6.]", "iuf")
# fmt: on


def leaky_relu(features: TensorLike, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """x where x > 0, else alpha x; the slope at 0 is alpha. Integers are cast to float32.

    >>> print(tf.nn.leaky_relu([-1.0, 2.0], alpha=0.5).numpy())
    [-0.5  2. ]
    """
    x = tensor(features)
    x = arithmetic.cast(x, dtype="float32") if x.dtype.is_integer else x
    return nn.leaky_relu(inexact("leaky_relu", x, "f"), alpha=float(alpha))


def gelu(features: TensorLike, approximate: bool = False, name: str | None = None) -> Tensor:
    """x Phi(x), with Phi the normal distribution function; by tanh if `approximate`.

    Source: Hendrycks and Gimpel (2016), section 2.

    >>> print(tf.nn.gelu([0.0, 1.0]).numpy().round(4))
    [0.     0.8413]
    """
    x = inexact("gelu", tensor(features), "f")
    if approximate:
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1.0 + transcendental.tanh(inner))
    return x * special.ndtr(x)


def crelu(features: TensorLike, axis: int = -1, name: str | None = None) -> Tensor:
    """max(x, 0) and max(-x, 0) side by side along an axis.

    Source: Shang et al., Understanding and Improving Convolutional Neural Networks via Concatenated ReLU (2016).

    >>> print(tf.nn.crelu([-1.0, 2.0]).numpy())
    [0. 2. 1. 0.]
    """
    x = tensor(features)
    return relu(concat([x, -x], axis))


def _logits(name: str, logits: TensorLike, labels: TensorLike, *others: TensorLike) -> list[Tensor]:
    """Logits, labels of their shape and what stands beside them, in one dtype."""
    x, y, *rest = tensors(logits, labels, *others)
    inexact(name, x, "f")
    if x.shape != y.shape:
        raise ShapeError(f"{name}: logits and labels must have one shape, found {x.shape} and {y.shape}.")
    return [x, y, *rest]


def softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, axis: int = -1, name: str | None = None
) -> Tensor:
    """-sum(labels * log_softmax(logits)) along the last axis.

    Args:
        labels: probabilities, of the shape of `logits`.
        logits: float tensor (..., classes).
        axis: the axis of the classes.

    Returns:
        One loss for each row. Gradients: softmax(logits) - labels, and -log_softmax(logits) for the labels.

    >>> print(tf.nn.softmax_cross_entropy_with_logits([[1.0, 0.0]], [[0.0, 0.0]]).numpy().round(4))
    [0.6931]
    """
    x, y = _logits("softmax_cross_entropy_with_logits", logits, labels)
    place = negative_axis(axis, x.ndim, "softmax_cross_entropy_with_logits")
    if place != -1:
        order = [i for i in range(x.ndim) if i != place + x.ndim] + [place + x.ndim]
        x, y = transpose(x, order), transpose(y, order)
    return nn.softmax_cross_entropy(y, x)


def sparse_softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, name: str | None = None) -> Tensor:
    """-log_softmax(logits)[label], for integer labels of the shape of `logits` without its last axis.

    Raises:
        InvalidArgumentError: if a label is out of range.
        ShapeError: if the shapes do not fit.

    >>> print(tf.nn.sparse_softmax_cross_entropy_with_logits([1], [[0.0, 0.0]]).numpy().round(4))
    [0.6931]
    """
    x = tensor(logits)
    if x.array.dtype.kind != "f":
        inexact("sparse_softmax_cross_entropy_with_logits", x, "f")
    y = labels if type(labels) is Tensor else beside(x, labels)
    if y.array.dtype.kind not in "iu":
        raise TypeError(f"sparse_softmax_cross_entropy_with_logits: labels must be integers, found {y.dtype.name}.")
    if y.array.shape != x.array.shape[:-1]:
        raise ShapeError(
            f"sparse_softmax_cross_entropy_with_logits: logits {x.shape} need labels of shape {x.shape[:-1]}, found {y.shape}."
        )
    check_labels(y, x.array.shape[-1])
    return nn.sparse_softmax_cross_entropy(y, x)


def check_labels(labels: Tensor, classes: int) -> None:
    """Refuse a label outside [0, classes): it would read some other class, or past the end."""

    unsigned = np.dtype(f"u{labels.array.dtype.itemsize}")

    def within(values: np.ndarray[Any, Any]) -> None:
        # A negative number read without its sign is larger than any number of classes: one pass instead of two.
        if values.size and (found := values.view(unsigned)).item(found.argmax()) >= classes:
            bad = values[(values < 0) | (values >= classes)].flat[0]
            raise InvalidArgumentError(
                f"Received a label value of {bad} which is outside the valid range of [0, {classes}). Count labels from 0, and "
                "have the last layer give a logit or probability for each class."
            )

    check_values(labels, within)


def sigmoid_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, name: str | None = None) -> Tensor:
    """max(x, 0) - x z + ln(1 + exp(-|x|)), elementwise, for logits x and labels z.

    >>> print(tf.nn.sigmoid_cross_entropy_with_logits(1.0, -1000.0).numpy())
    1000.0
    """
    x, z = _logits("sigmoid_cross_entropy_with_logits", logits, labels)
    return nn.sigmoid_cross_entropy(z, x)


def weighted_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, pos_weight: TensorLike, name: str | None = None
) -> Tensor:
    """-(q z ln(sigmoid(x)) + (1 - z) ln(1 - sigmoid(x))), elementwise, for logits x, labels z and the weight q of the positive.

    >>> print(tf.nn.weighted_cross_entropy_with_logits(1.0, 0.0, 2.0).numpy().round(4))
    1.3863
    """
    x, z, q = _logits("weighted_cross_entropy_with_logits", logits, labels, pos_weight)
    return (1.0 - z) * x + (1.0 + (q - 1.0) * z) * softplus(-x)


def local_response_normalization(
    input: TensorLike, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5, name: str | None = None
) -> Tensor:
    """x / (bias + alpha s)**beta, s the sum of squares over the channels that are at most `depth_radius` away.

    Source: Krizhevsky, Sutskever and Hinton, ImageNet classification with deep networks (2012), section 3.3.

    >>> print(tf.nn.local_response_normalization([[[[3.0, 4.0]]]], bias=0.0).numpy().ravel())
    [0.6 0.8]
    """
    x = inexact("local_response_normalization", tensor(input), "f")
    if x.ndim != 4:
        raise ShapeError(f"local_response_normalization: needs (batch, height, width, channels), found shape {x.shape}.")
    radius = integer(depth_radius)
    total = sum(shaping.shifted(x * x, -1, by, 0) for by in range(-radius, radius + 1))
    return x / (bias + alpha * total) ** beta


def log_poisson_loss(
    targets: TensorLike, log_input: TensorLike, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """exp(c) - z c, elementwise, for the logarithm c of a rate and a count z.

    `compute_full_loss` adds Stirling's z ln(z) - z + ln(2 pi z) / 2 for z > 1, without which the loss lacks ln(z!).

    >>> print(tf.nn.log_poisson_loss(2.0, 0.0).numpy())
    1.0
    """
    c, z = tensors(log_input, targets)
    result = transcendental.exp(inexact("log_poisson_loss", c, "f")) - z * c
    if not compute_full_loss:
        return result
    counted = arithmetic.maximum(z, 1.0)
    rest = counted * transcendental.log(counted) - counted + 0.5 * transcendental.log(2.0 * math.pi * counted)
    return result + arithmetic.select(z > 1.0, rest, 0.0)


def bias_add(value: TensorLike, bias: TensorLike, data_format: str | None = None, name: str | None = None) -> Tensor:
    """A vector added along the last axis (or along axis 1 with data_format 'NC...').

    Args:
        value: at least two axes.
        bias: one number for each channel.
        data_format: None or 'N...C', or 'NC...'.

    Raises:
        ShapeError: if the bias is no vector of the channels.
        ValueError: for another data format.

    >>> print(tf.nn.bias_add([[1.0, 2.0]], [10.0, 20.0]).numpy())
    [[11. 22.]]
    """
    x, b = tensors(value, bias)
    first = bool(data_format) and str(data_format).startswith("NC")
    if data_format and not first and not (data_format.startswith("N") and data_format.endswith("C")):
        raise ValueError(f"bias_add: data_format must be of the form 'N...C' or 'NC...', found {data_format!r}.")
    if x.ndim < 2:
        raise ShapeError(f"bias_add: needs a value of at least two axes, found shape {x.shape}. Write value + bias.")
    channels = x.shape[1 if first else -1]
    if tuple(b.shape) != (channels,):
        raise ShapeError(
            f"bias_add: needs a vector with one number for each of the {channels} channels of {x.shape}, found shape {b.shape}."
        )
    return x + (reshape(b, (-1,) + (1,) * (x.ndim - 2)) if first else b)


@rounded_once
def moments(
    x: TensorLike, axes: Axis, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and population variance along axes.

    >>> mean, variance = tf.nn.moments([1.0, 3.0], axes=[0])
    >>> print(mean.numpy(), variance.numpy())
    2.0 1.0
    """
    return reduce_mean(x, axes, keepdims), reduce_variance(x, axes, keepdims)


@rounded_once
def weighted_moments(
    x: TensorLike, axes: Axis, frequency_weights: TensorLike, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and population variance along axes, where each element counts as often as its weight says.

    >>> mean, variance = tf.nn.weighted_moments([1.0, 3.0], [0], [3.0, 1.0])
    >>> print(mean.numpy(), variance.numpy())
    1.5 0.75
    """
    value, weights = tensors(x, frequency_weights)
    weights = arithmetic.zeros_like(value) + weights
    total = reduce_sum(weights, axes, True)
    mean = reduce_sum(weights * value, axes, True) / total
    variance = reduce_sum(weights * arithmetic.squared_difference(value, mean), axes, True) / total
    return (mean, variance) if keepdims else (reduce_sum(mean, axes), reduce_sum(variance, axes))


def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike,
    scale: TensorLike,
    variance_epsilon: float,
    name: str | None = None,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset; `offset` and `scale` may be None.

    For 16-bit `x` the others may be float32; all is computed in float32 and rounded to the dtype of `x`.

    >>> print(tf.nn.batch_normalization([4.0], 2.0, 1.0, None, None, 0.0).numpy())
    [2.]
    """
    value = tensor(x)
    held = value.dtype
    if held.size == 2:  # statistics of 16-bit numbers are float32 or widened to it
        value = arithmetic.cast(value, dtype="float32")
    mean, variance, *rest = (_statistic(value, one) for one in (mean, variance, offset, scale))
    offset, scale = rest
    factor = transcendental.rsqrt(variance + float(variance_epsilon))
    if scale is not None:
        factor = factor * scale
    shift = -(factor * mean) if offset is None else offset - factor * mean
    result = value * factor + shift
    return result if result.dtype == held else arithmetic.cast(result, dtype=held.name)


def _statistic(value: Tensor, statistic: TensorLike) -> Any:
    """A mean or the like beside the values; one of 16 bits is widened."""
    if statistic is None:
        return None
    found = tensors(value, statistic)[1]
    return arithmetic.cast(found, dtype="float32") if found.dtype.size == 2 else found


def dropout(
    x: TensorLike, rate: float, noise_shape: ShapeLike = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Each element zeroed with probability `rate`, the others scaled by 1 / (1 - rate).

    >>> sorted(set(tf.nn.dropout(tf.ones([100]), 0.5).numpy().tolist()))
    [0.0, 2.0]
    """
    value = tensor(x)
    if rate is None or isinstance(rate, (str, list, tuple)) or not 0.0 <= rate < 1.0:
        raise ValueError(f"dropout: rate must be a number in [0, 1), found {rate!r}.")
    whole = tuple(value.shape)
    shape = whole if noise_shape is None else _noise_sizes(noise_shape, whole)
    sizes = (None, *shape[1:]) if shape[:1] == whole[:1] != () else shape
    return dropped(value, keys_of(seed), sizes, float(rate)) if rate else inexact("dropout", value, "f")


def _noise_sizes(noise_shape: ShapeLike, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of a random mask; None stands for the size of the tensor."""
    listed = noise_shape.numpy().tolist() if hasattr(noise_shape, "numpy") else list(noise_shape)
    listed = [1] * (len(shape) - len(listed)) + listed
    sizes = tuple(size if wanted in (None, -1) else integer(wanted) for wanted, size in zip(listed, shape, strict=False))
    if len(listed) != len(shape) or any(size not in (1, whole) for size, whole in zip(sizes, shape, strict=True)):
        raise ShapeError(
            f"dropout: noise_shape {listed} does not fit {list(shape)}: give 1 or the size, or None, for each axis."
        )
    return sizes


Sizes = Sequence[int | None]
"""The sizes of a mask, None for that of the values; of a part of a batch all rows have one mask if the first is 1."""


def dropout_mask(keys: Callable[[], Tensor], sizes: Sizes, rate: float, like: Tensor) -> Tensor:
    """Zeros with probability `rate` and 1 / (1 - rate) elsewhere, for the key of `keys()`."""
    kind, xp = like.array.dtype, namespace(like.array)
    result: Tensor = draws.dropout_mask(keys(), dtype=kind, xp=xp, rate=rate, **_place(sizes, like))
    return result


def dropped(x: Tensor, keys: Callable[[], Tensor], sizes: Sizes, rate: float) -> Tensor:
    """Floats times such a mask. In the memory of a GPU the mask is not kept, but drawn again in the backward pass."""
    inexact("dropout", x, "f")
    if namespace(x.array) is not np:
        found: Tensor = draws.times_dropout_mask(x, keys(), rate=rate, **_place(sizes, x))
        return found
    return x * dropout_mask(keys, sizes, rate, x)


def _place(sizes: Sizes, like: Tensor) -> dict[str, Any]:
    """The shape of a mask, and its start in that of the whole batch."""
    shape = tuple([whole if size is None else size for size, whole in zip(sizes, like.shape, strict=True)])
    return {"shape": shape} | (rows_here().draw(shape) if sizes and sizes[0] != 1 else {})


def embedding_lookup(params: TensorLike, ids: TensorLike, max_norm: float | None = None, name: str | None = None) -> Tensor:
    """Rows of a table, picked by integer ids.

    >>> print(tf.nn.embedding_lookup([[1.0], [2.0]], [1, 1]).numpy().ravel())
    [2. 2.]
    """
    rows = gather(params, ids)
    return rows if max_norm is None else clip_by_norm(rows, max_norm, axes=[-1])


@rounded_once
def normalize(tensor: TensorLike, ord: Any = "euclidean", axis: Axis = None, name: str | None = None) -> tuple[Tensor, Tensor]:
    """A tensor divided by its norm, and the norm.

    >>> print(tf.linalg.normalize([3.0, 4.0])[0].numpy())
    [0.6 0.8]
    """
    x = convert_to_tensor(tensor)
    length = norm(x, ord, axis, True)
    return x / (arithmetic.cast(length, dtype=x.dtype.name) if x.dtype.is_complex else length), length


def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """The weighted sum of the losses of this rank's rows, divided by the rows of all ranks: by default as many on each.

    Raises:
        ShapeError: for one number in place of losses.

    >>> print(tf.nn.compute_average_loss([1.0, 3.0], sample_weight=[1.0, 0.5], global_batch_size=4).numpy())
    0.625
    """
    losses = convert_to_tensor(per_example_loss)
    if not losses.ndim:
        raise ShapeError("compute_average_loss: needs a loss for each row, found one number. Write reduction='none'.")
    if sample_weight is not None:
        weights = cast(convert_to_tensor(sample_weight), losses.dtype)
        losses = losses * reshape(weights, (*weights.shape, *(1,) * (losses.ndim - weights.ndim)))
    rows = losses.shape[0] * world().size if global_batch_size is None else global_batch_size
    return divide_no_nan(reduce_sum(losses), cast(convert_to_tensor(rows), losses.dtype))


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of penalties, divided by the number of ranks, which add it up again.

    >>> print(tf.nn.scale_regularization_loss([1.0, 2.0]).numpy())
    3.0
    """
    return reduce_sum(regularization_loss) / world().size


# fmt: off
softsign = row("softsign",
    lambda features, name=None: (x := inexact("softsign", tensor(features), "f")) / (1.0 + arithmetic.absolute(x)),
    "x / (1 + |x|).", "print(tf.nn.softsign([-1.0, 1.0]).numpy()) -> [-0.5  0.5]")
softmax = row("softmax",
    lambda logits, axis=-1, name=None:
        nn.softmax(x := inexact("softmax", tensor(logits), "f"), axis=negative_axis(axis, x.ndim, "softmax")),
    "exp(x) / sum(exp(x)) along an axis, without overflow.", "print(tf.nn.softmax([1000.0, 1000.0]).numpy()) -> [0.5 0.5]",
    types={"axis": "int"})
log_softmax = row("log_softmax",
    lambda logits, axis=-1, name=None:
        nn.log_softmax(x := inexact("log_softmax", tensor(logits), "f"), axis=negative_axis(axis, x.ndim, "log_softmax")),
    "The logarithm of softmax, exact where softmax underflows.",
    "print(tf.nn.log_softmax([1000.0, 0.0]).numpy()) -> [    0. -1000.]", types={"axis": "int"})
l2_loss = row("l2_loss", rounded_once(lambda t, name=None: reduce_sum((x := inexact("l2_loss", tensor(t), "f")) * x) * 0.5),
    "sum(t**2) / 2.", "print(tf.nn.l2_loss([3.0, 4.0]).numpy()) -> 12.5")
silu = swish = row("silu",
    lambda features, beta=1.0, name=None:
        (x := inexact("silu", tensor(features))) * transcendental.sigmoid(x * beta if beta != 1.0 else x),
    "x sigmoid(beta x), also known as swish.", "print(tf.nn.silu([0.0, 1.0]).numpy().round(4)) -> [0.     0.7311]",
    types={"beta": "float"})
elu = row("elu",
    lambda features, alpha=1.0, name=None: transcendental.elu(inexact("elu", tensor(features), "f"), alpha=float(alpha)),
    "x where x > 0, else alpha (e**x - 1).\n\nSource: Clevert, Unterthiner and Hochreiter (2015), equation (15).",
    "print(tf.nn.elu([-1000.0, 2.0]).numpy()) -> [-1.  2.]", types={"alpha": "float"})
selu = row("selu", lambda features, name=None: elu(inexact("selu", tensor(features), "f"), _SELU_ALPHA) * _SELU_SCALE,
    "1.0507 elu(x, 1.6733): keeps mean 0 and variance 1 across layers.\n\n"
    "Source: Klambauer et al., Self-Normalizing Neural Networks (2017), equation (2).",
    "print(tf.nn.selu([0.0, 1.0]).numpy().round(4)) -> [0.     1.0507]")
# fmt: on
