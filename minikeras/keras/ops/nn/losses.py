"""Numbers of classes as rows of zeros and ones, losses of each element or row before any mean, and labels of sequences."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ....core import Tensor, convert_to_tensor
from ....core.batch import all_values
from ....errors import ShapeError
from ....functions import creation
from ....functions.creation import range as numbers
from ....functions.elementwise import cast, log, where
from ....functions.indexing import take_along_axis
from ....functions.nn import check_labels, log_softmax, sigmoid_cross_entropy_with_logits
from ....functions.operands import beside
from ....functions.ordering import argsort
from ....functions.reductions import argmax, reduce_max, reduce_mean, reduce_sum
from ....functions.shaping import concat
from ....types import Array, DTypeLike, TensorLike, as_dtype
from ... import config
from ...losses import crossentropy
from ...losses.classification import unlikelihood
from ...promotion import floating, promoted, wide
from ...symbolic.operation import operation
from ..rows import row


def _cost(shapes: list[tuple[int, ...]], given: Any) -> tuple[int, int]:
    return (math.prod(shapes[0]) * max(1, int(given[-1].get("num_classes") or 0)),) * 2


def _settled(config: dict[str, Any]) -> dict[str, Any]:
    return config | {"dtype": _named(config["dtype"])}


def _named(dtype: DTypeLike) -> str:
    return config.floatx() if dtype is None else as_dtype(dtype).name


@operation(cost=_cost, settle=_settled)
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


@operation(cost=_cost, settle=_settled)
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
    scores, counts = all_values(log_softmax(x)), all_values(lengths)
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
