"""Connectionist temporal classification: a sequence of labels, without knowing which step says which."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...core import Tensor, convert_to_tensor
from ...core.batch import check_values
from ...core.ops.indexing import take_along
from ...errors import InvalidArgumentError, ShapeError
from ...functions.elementwise import cast, logical_and, where
from ...functions.nn import check_labels, log_softmax
from ...functions.publish import beside
from ...functions.reductions import reduce_logsumexp, reduce_sum
from ...functions.shaping import broadcast_to, concat, reshape, stack
from ...types import TensorLike
from .alignment import as_integers, as_predictions
from .loss import FunctionLoss, catalogue

_NEVER = -float("inf")


def ctc(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """-ln of the probability of the labels, over all ways to stretch them with repetitions and blanks.

    Args:
        y_true: integer labels (n, length) from 1 on, filled up with 0 at the end. Class 0 is the blank.
        y_pred: logits (n, steps, classes).

    Raises:
        ShapeError: if the shapes are others.
        InvalidArgumentError: if a label is out of range, a 0 stands before a label, or there are too few steps for the labels.

    Source: Graves et al. (2006), Connectionist Temporal Classification, equations (5) to (8).

    >>> print(tf.keras.losses.ctc([[1]], [[[0.0, 0.0], [0.0, 0.0]]]).numpy().round(4))  # of 4 ways only 'blank blank' is wrong
    [0.2877]
    """
    logits, labels = as_predictions(y_pred), as_integers("ctc", convert_to_tensor(y_true))
    _check(labels, logits)
    return unlikelihood(labels, logits, reduce_sum(cast(labels != 0, labels.dtype), -1))


def unlikelihood(
    labels: Tensor, logits: Tensor, label_lengths: Tensor, step_lengths: Tensor | None = None, blank: int = 0
) -> Tensor:
    """-ln of the probability of the first labels of each row, read in the first steps; infinite where these are too few.

    Args:
        labels: (n, length).
        logits: (n, steps, classes).
        label_lengths, step_lengths: (n,), how many count; all steps if None.
        blank: the class that is no label.
    """
    rows, steps, _ = logits.shape
    blanks = labels * 0 + blank
    path = concat([reshape(stack([blanks, labels], -1), (rows, -1)), blanks[:, :1]], -1)
    length = path.shape[-1]
    emitted = take_along(log_softmax(logits), broadcast_to(reshape(path, (rows, 1, length)), (rows, steps, length)), axis=-1)
    place = beside(logits, [list(range(length))], path.dtype)
    may_skip = logical_and(path != blank, path != _later(path, 2, blank))
    alpha = where(place < 2, emitted[:, 0], _NEVER)
    for step in range(1, steps):
        ways = [alpha, _later(alpha, 1, _NEVER), where(may_skip, _later(alpha, 2, _NEVER), _NEVER)]
        following = emitted[:, step] + reduce_logsumexp(stack(ways), 0)
        alpha = following if step_lengths is None else where(reshape(step_lengths, (rows, 1)) > step, following, alpha)
    last = 2 * reshape(label_lengths, (rows, 1))
    complete = logical_and(place <= last, place >= last - 1)
    return -reduce_logsumexp(where(complete, alpha, _NEVER), -1)


def _later(x: Tensor, places: int, filler: Any) -> Tensor:
    """Each row moved to the right."""
    return concat([broadcast_to(beside(x, filler, x.dtype), (x.shape[0], places)), x[:, :-places]], -1)


def _check(labels: Tensor, logits: Tensor) -> None:
    if labels.ndim != 2 or logits.ndim != 3 or labels.shape[0] != logits.shape[0] or not labels.shape[1]:
        raise ShapeError(
            f"ctc: expected labels (n, length) and logits (n, steps, classes), found y_true {labels.shape} and "
            f"y_pred {logits.shape}."
        )
    check_labels(labels, logits.shape[-1])
    check_values(labels, partial(_check_rows, steps=logits.shape[1], shape=logits.shape))


def _check_rows(values: np.ndarray[Any, Any], steps: int, shape: Any) -> None:
    """Refuse labels that no path through this number of steps can spell."""
    if ((values[..., 1:] != 0) & (values[..., :-1] == 0)).any():
        raise InvalidArgumentError("ctc: a label follows a 0; zeros fill up the end of a row, and class 0 is the blank.")
    needed = (values != 0).sum(-1) + ((values[..., 1:] == values[..., :-1]) & (values[..., 1:] != 0)).sum(-1)
    if needed.size and needed.max() > steps:
        raise InvalidArgumentError(
            f"ctc: a row of labels needs {needed.max()} steps (one for each, one more between equal ones), y_pred has "
            f"{steps}: shape {shape}."
        )


@catalogue.add()
class CTC(FunctionLoss, fn=ctc):
    """Connectionist temporal classification. Labels and logits as in `ctc`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.CTC()([[1]], tf.zeros([1, 2, 2])).numpy().round(4))
    0.2877
    """

    _float_labels = False
