"""Connectionist temporal classification: losses and decoding of sequences of labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import Tensor, convert_to_tensor
from ....core.batch import all_values
from ....errors import ShapeError
from ....functions.creation import range as numbers
from ....functions.elementwise import cast, where
from ....functions.indexing import take_along_axis
from ....functions.nn import check_labels, log_softmax
from ....functions.ordering import argsort
from ....functions.publish import beside
from ....functions.reductions import argmax, reduce_max, reduce_sum
from ....functions.shaping import concat
from ....types import Array, TensorLike
from ...losses.classification import unlikelihood
from ...promotion import floating, wide
from ...symbolic.operation import operation

__all__ = ["ctc_decode", "ctc_loss"]


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
    found = [_beams(row[:count], mask_index, beam_width)[:top_paths] for row, count in zip(scores, counts, strict=True)]
    paths, values = np.full((top_paths, *x.shape[:2]), -1, "int32"), np.full((x.shape[0], top_paths), -np.inf, scores.dtype)
    for row, beams in enumerate(found):
        for place, (labels, score) in enumerate(beams):
            paths[place, row, : len(labels)], values[row, place] = labels, score
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
