"""Functions of networks: activations, moments, normalization, attention, losses of each element, labels of sequences."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...core import Tensor, all_values, convert_to_tensor, hook
from ...errors import ShapeError
from ...functions import argsort, concat, creation, einsum, elementwise, nn, ones, reshape, squeeze, take_along_axis
from ...functions.creation import range as numbers
from ...functions.elementwise import cast, log, maximum, minimum, rsqrt, saturate_cast, square, where
from ...functions.linalg import band_part
from ...functions.nn import check_labels, sigmoid_cross_entropy_with_logits
from ...functions.operands import beside, negative_axes, negative_axis, rounded_once
from ...functions.reductions import argmax, norm, reduce_max, reduce_mean, reduce_sum
from ...types import Array, Axis, DTypeLike, TensorLike, as_dtype
from .. import activations, config
from ..losses import crossentropy
from ..losses.classification import unlikelihood
from ..promotion import floating, promoted, wide
from ..symbolic.operation import operation
from .rows import of_any, of_floats, of_floats_and_options, row

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
    listed = negative_axes(axes, x.ndim, "moments") if synchronized else ()
    if synchronized and (found := hook("moments_of_ranks")(wide, listed)) is not None:
        _, mean, variance = found
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
    if not (axes := negative_axes(axis, x.ndim, "layer_normalization")):
        raise ShapeError("layer_normalization: no axis was given.")
    shape = tuple([x.shape[place] if place in axes else 1 for place in range(axes[0], 0)])  # from the first of them on
    centered = x - reduce_mean(x, axis, keepdims=True)
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


def _cost_of_classes(shapes: list[tuple[int, ...]], given: Any) -> tuple[int, int]:
    return (math.prod(shapes[0]) * max(1, int(given[-1].get("num_classes") or 0)),) * 2


def _settled(config: dict[str, Any]) -> dict[str, Any]:
    return config | {"dtype": _named(config["dtype"])}


def _named(dtype: DTypeLike) -> str:
    return config.floatx() if dtype is None else as_dtype(dtype).name


@operation(cost=_cost_of_classes, settle=_settled)
def one_hot(x: TensorLike, num_classes: int, axis: int = -1, dtype: DTypeLike = None, sparse: bool = False) -> Tensor:
    """1 at the place of each number along a new axis, 0 elsewhere; nothing but zeros for numbers out of range.

    Args:
        x: integers of any shape.
        num_classes: size of the new axis.
        axis: where the new axis lies in the result.
        dtype: of the result; `floatx()` if None.

    Raises:
        ValueError: for sparse=True: tensors are dense here.

    >>> print(tf.keras.ops.one_hot([2, 0], 3).numpy())
    [[0. 0. 1.]
     [1. 0. 0.]]
    """
    if sparse:
        raise ValueError("one_hot: tensors are dense here; leave out sparse=.")
    return creation.one_hot(cast(convert_to_tensor(x), "int32"), num_classes, axis=axis, dtype=_named(dtype))


@operation(cost=_cost_of_classes, settle=_settled)
def multi_hot(
    inputs: TensorLike, num_classes: int | None = None, axis: int = -1, dtype: DTypeLike = None, sparse: bool = False
) -> Tensor:
    """1 at the places of all numbers of a row, 0 elsewhere. Arguments and errors as in `one_hot`.

    >>> print(tf.keras.ops.multi_hot([[2, 0]], 4).numpy())
    [[1. 0. 1. 0.]]
    """
    if num_classes is None:
        raise ValueError("multi_hot: give num_classes, the size of the rows.")
    x = convert_to_tensor(inputs)
    return reduce_max(one_hot(x, num_classes, axis, dtype, sparse), 1 if x.ndim > 1 else 0)


def _of_one_shape(name: str, first: TensorLike, second: TensorLike) -> list[Tensor]:
    """Both as floats of one dtype."""
    tensors = [floating(one) for one in promoted(first, second)]
    if tensors[0].shape != tensors[1].shape:
        raise ShapeError(f"{name}: both must have one shape, found {tensors[0].shape} and {tensors[1].shape}.")
    return tensors


@operation
def binary_crossentropy(target: TensorLike, output: TensorLike, from_logits: bool = False) -> Tensor:
    """-(y log p + (1 - y) log(1 - p)) for each element.

    Args:
        target: labels y in [0, 1].
        output: probabilities p, kept epsilon away from 0 and 1, or logits with `from_logits`, which is more accurate.

    >>> print(tf.keras.ops.binary_crossentropy([1.0, 0.0], [0.5, 0.25]).numpy().round(4))
    [0.6931 0.2877]
    """
    y, p = _of_one_shape("binary_crossentropy", target, output)
    if from_logits:
        return sigmoid_cross_entropy_with_logits(y, p)
    return crossentropy.binary_terms(y, crossentropy.clip_probabilities(p))


@operation
def categorical_crossentropy(target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1) -> Tensor:
    """-sum(y log p) over the classes, which lie along an axis.

    Args:
        target: probabilities y, such as one-hot labels.
        output: probabilities p, divided by their sum first, or logits with `from_logits`, which is more accurate.

    >>> print(tf.keras.ops.categorical_crossentropy([[1.0, 0.0]], [[0.5, 0.5]]).numpy().round(4))
    [0.6931]
    """
    y, p = _of_one_shape("categorical_crossentropy", target, output)
    return crossentropy.categorical_crossentropy(y, p, from_logits, axis=axis)


@operation
def sparse_categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """-log p[label] over the classes.

    Args:
        target: integer labels (...) or (..., 1) in [0, classes).
        output: probabilities or logits as in `categorical_crossentropy`.

    Raises:
        InvalidArgumentError: if a label is out of range.

    >>> print(tf.keras.ops.sparse_categorical_crossentropy([1], [[0.5, 0.5]]).numpy().round(4))
    [0.6931]
    """
    labels = cast(convert_to_tensor(target), "int32")
    return crossentropy.sparse_categorical_crossentropy(labels, floating(output), from_logits, axis=axis)


@operation(name="CTCLoss")
def ctc_loss(
    target: TensorLike, output: TensorLike, target_length: TensorLike, output_length: TensorLike, mask_index: int = 0
) -> Tensor:
    """-ln of the probability of the labels of each row, over all ways to stretch them with repetitions and blanks.

    Args:
        target: integer labels (n, length).
        output: logits (n, steps, classes).
        target_length, output_length: (n,), how many labels and steps of each row count.
        mask_index: the class that is the blank.

    Returns:
        (n,); infinite where there are too few steps for the labels.

    Source: Graves et al. (2006), Connectionist Temporal Classification, equations (5) to (8).

    >>> print(tf.keras.ops.ctc_loss([[1]], tf.zeros([1, 2, 2]), [1], [2]).numpy().round(4))
    [0.2877]
    """
    labels, logits = cast(convert_to_tensor(target), "int32"), wide(floating(output))
    lengths = [cast(convert_to_tensor(one), "int32") for one in (target_length, output_length)]
    n = logits.shape[0]
    if logits.ndim != 3 or labels.ndim != 2 or labels.shape[0] != n or any(tuple(one.shape) != (n,) for one in lengths):
        raise ShapeError(
            "ctc_loss: needs labels (n, length), logits (n, steps, classes) and lengths (n,), found target "
            f"{labels.shape}, output {logits.shape}, lengths {lengths[0].shape} and {lengths[1].shape}."
        )
    check_labels(labels, logits.shape[-1])
    return unlikelihood(labels, logits, lengths[0], lengths[1], mask_index)


@operation(name="CTCDecode")
def ctc_decode(
    inputs: TensorLike,
    sequence_lengths: TensorLike,
    strategy: str = "greedy",
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
    mask_index: int = 0,
) -> tuple[Tensor, Tensor]:
    """The labels that logits or probabilities (n, steps, classes) say.

    Args:
        inputs: (n, steps, classes); log-probabilities or logits for the beam search.
        sequence_lengths: (n,), how many steps of each row count.
        strategy: 'greedy', the likeliest class of each step, or 'beam_search', the likeliest labels.
        beam_width: how many beginnings the beam search keeps.
        top_paths: how many sequences of labels the beam search gives.
        merge_repeated: whether a class in steps that follow one another is one label, for 'greedy'.
        mask_index: the class that is the blank.

    Returns:
        Labels (paths, n, steps), filled up with -1, and scores (n, paths): for 'greedy' the sum of the largest inputs with a
        minus, else the logarithm of the probability.

    >>> labels, score = tf.keras.ops.ctc_decode([[[0.0, 2.0], [0.0, 2.0], [3.0, 0.0]]], [3])
    >>> print(labels.numpy().tolist(), score.numpy().tolist())
    [[[1, -1, -1]]] [[-7.0]]
    """
    x, lengths = wide(floating(inputs)), cast(convert_to_tensor(sequence_lengths), "int32")
    if x.ndim != 3 or tuple(lengths.shape) != (x.shape[0],):
        raise ShapeError(f"ctc_decode: needs inputs (n, steps, classes) and lengths (n,), found {x.shape}, {lengths.shape}.")
    if strategy not in ("greedy", "beam_search"):
        raise ValueError(f"ctc_decode: strategy must be 'greedy' or 'beam_search', found {strategy!r}.")
    if strategy == "greedy":
        return _greedy(x, lengths, merge_repeated, mask_index)
    scores, counts = all_values(nn.log_softmax(x)), all_values(lengths)
    found = [_beams(one[:count], mask_index, beam_width)[:top_paths] for one, count in zip(scores, counts, strict=True)]
    paths, values = np.full((top_paths, *x.shape[:2]), -1, "int32"), np.full((x.shape[0], top_paths), -np.inf, scores.dtype)
    for i, beams in enumerate(found):
        for place, (labels, score) in enumerate(beams):
            paths[place, i, : len(labels)], values[i, place] = labels, score
    return beside(x, paths), beside(x, values)


def _greedy(x: Tensor, lengths: Tensor, merge: bool, blank: int) -> tuple[Tensor, Tensor]:
    steps = x.shape[1]
    place = beside(x, numbers(steps))
    counts = place < lengths[:, None]
    labels = where(counts, cast(argmax(x, -1), "int32"), blank)
    scores = -reduce_sum(where(counts, reduce_max(x, -1), 0.0), 1, keepdims=True)
    said = labels != blank
    if merge:
        said = said & concat([said[:, :1] | True, labels[:, 1:] != labels[:, :-1]], 1)
    order = argsort(where(said, place, steps), -1, stable=True)
    return take_along_axis(where(said, labels, -1), order, -1)[None], scores


def _beams(scores: Array, blank: int, width: int) -> list[tuple[tuple[int, ...], float]]:
    """The likeliest sequences of labels and the logarithms of their probabilities, the best ones first.

    Source: Graves (2012), Sequence Transduction with Recurrent Neural Networks, section 2.5, without a language model.
    """
    never = -np.inf
    beams: dict[tuple[int, ...], Any] = {(): (0.0, never)}  # of what ends with a blank, and of what does not
    for step in scores:
        following: dict[tuple[int, ...], Any] = {}

        def add(labels: tuple[int, ...], blanks: float, others: float, following: Any = following) -> None:
            before = following.get(labels, (never, never))
            following[labels] = np.logaddexp(before[0], blanks), np.logaddexp(before[1], others)

        for labels, (blanks, others) in beams.items():
            total = np.logaddexp(blanks, others)
            for kind, score in enumerate(step):
                if kind == blank:
                    add(labels, total + score, never)
                elif labels and labels[-1] == kind:
                    add(labels, never, others + score)
                    add((*labels, kind), never, blanks + score)
                else:
                    add((*labels, kind), never, total + score)
        best = sorted(following.items(), key=lambda item: -np.logaddexp(*item[1]))
        beams = dict(best[:width])
    return [(labels, float(np.logaddexp(*both))) for labels, both in beams.items()]


# fmt: off
psnr = row("psnr", lambda x1, x2, max_val: log(max_val**2 / reduce_mean((x1 - x2) ** 2)) * (10.0 / math.log(10.0)),
    "Peak signal-to-noise ratio in decibels: 20 log10(max_val) - 10 log10(mean((x1 - x2)**2)).",
    'print(f"{tf.keras.ops.psnr([0.0, 1.0], [0.1, 0.9], max_val=1.0):.2f}") -> 20.00',
    takes=functools.partial(_of_one_shape, "psnr"), types={"max_val": "float"}, name="PSNR")
# fmt: on
