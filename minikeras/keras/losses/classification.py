"""Losses of classes beside the cross-entropies: hinges, overlaps of regions, the circle loss, CTC.

For hinges labels 0 and 1 are turned into -1 and 1: no loss once the right answer leads by a margin of 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...absent import hide_imports
from ...core import Tensor, check_values, convert_to_tensor
from ...core.ops.indexing import take_along
from ...errors import InvalidArgumentError, ShapeError
from ...functions import beside, matmul, one_hot, range, reduce_all, reduce_logsumexp, reduce_max, reduce_mean, reduce_sum
from ...functions.elementwise import cast, equal, logical_and, logical_not, logical_or, minimum, softplus, square, where
from ...functions.nn import check_labels, log_softmax, relu
from ...functions.shaping import broadcast_to, concat, reshape, stack
from ...ranks import rows_here
from ...types import Axis, ShapeLike, TensorLike
from ..config import epsilon
from .loss import FunctionLoss, PlainLoss, aligned, as_floats, as_integers, as_predictions, loss


def hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(max(1 - y_true y_pred, 0)) over the last axis.

    Args:
        y_true: -1 and 1; if all are 0 or 1, 0 is read as -1.
        y_pred: scores of any size.

    >>> print(tf.keras.losses.hinge([[1.0, -1.0]], [[0.5, -2.0]]).numpy())
    [0.25]
    """
    return reduce_mean(_shortfall("hinge", y_true, y_pred), -1)


def squared_hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """mean(max(1 - y_true y_pred, 0)**2) over the last axis. Labels as in `hinge`.

    >>> print(tf.keras.losses.squared_hinge([[1.0, 0.0]], [[0.5, -2.0]]).numpy())
    [0.125]
    """
    return reduce_mean(square(_shortfall("squared_hinge", y_true, y_pred)), -1)


def categorical_hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """max(1 + max((1 - y_true) y_pred) - sum(y_true y_pred), 0) over the last axis, for one-hot labels.

    >>> print(tf.keras.losses.categorical_hinge([[0.0, 1.0]], [[0.5, 1.0]]).numpy())
    [0.5]
    """
    labels, predictions = aligned("categorical_hinge", y_true, y_pred)
    return relu(1.0 + reduce_max((1.0 - labels) * predictions, -1) - reduce_sum(labels * predictions, -1))


def _shortfall(name: str, y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """The shortfall of each product of label and prediction below 1: the hinge."""
    labels, predictions = aligned(name, y_true, y_pred)
    binary = reduce_all(logical_or(labels == 0.0, labels == 1.0))
    return relu(1.0 - where(binary, 2.0 * labels - 1.0, labels) * predictions)


@loss(hinge)
class Hinge(PlainLoss):
    """mean(max(1 - y_true y_pred, 0)). Labels as in `hinge`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.Hinge()([[1.0, -1.0]], [[0.5, 0.0]]).numpy().round(4))
    0.75
    """


@loss(squared_hinge)
class SquaredHinge(PlainLoss):
    """mean(max(1 - y_true y_pred, 0)**2). Labels as in `hinge`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.SquaredHinge()([[1.0, -1.0]], [[0.5, 0.0]]).numpy().round(4))
    0.625
    """


@loss(categorical_hinge)
class CategoricalHinge(PlainLoss):
    """The margin of the right class over the best wrong one. As `categorical_hinge`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.CategoricalHinge()([[0.0, 1.0]], [[0.6, 0.4]]).numpy().round(4))
    1.2
    """


def dice(y_true: TensorLike, y_pred: TensorLike, axis: Axis = None) -> Tensor:
    """1 - 2 sum(y_true y_pred) / (sum(y_true) + sum(y_pred)).

    Args:
        y_true, y_pred: memberships in [0, 1], of one shape.
        axis: over which to add; None for all. All but the first gives one value for each image.

    Source: Milletari, Navab and Ahmadi (2016), V-Net, section 3; here without squares in the denominator.

    >>> print(tf.keras.losses.dice([[1.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]]).numpy().round(4))
    0.3333
    """
    labels, predictions = aligned("dice", y_true, y_pred)
    common, true, found = _sums([labels * predictions, labels, predictions], axis)
    return 1.0 - 2.0 * common / (true + found + epsilon())


def tversky(y_true: TensorLike, y_pred: TensorLike, alpha: float = 0.5, beta: float = 0.5, axis: Axis = None) -> Tensor:
    """1 - s / (s + alpha sum((1 - y_true) y_pred) + beta sum(y_true (1 - y_pred))), for s = sum(y_true y_pred).

    Args:
        y_true, y_pred: memberships in [0, 1], of one shape.
        alpha: weight of what is too much, the false positives.
        beta: weight of what is missing, the false negatives.
        axis: over which to add; None for all.

    Source: Salehi, Erdogmus and Gholipour (2017), Tversky Loss Function, equation (3).

    >>> print(tf.keras.losses.tversky([[1.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]]).numpy().round(4))
    0.3333
    """
    labels, predictions = aligned("tversky", y_true, y_pred)
    terms = [labels * predictions, (1.0 - labels) * predictions, labels * (1.0 - predictions)]
    common, surplus, missing = _sums(terms, axis)
    return 1.0 - common / (common + alpha * surplus + beta * missing + epsilon())


def _sums(terms: list[Tensor], axis: Axis) -> Sequence[Tensor]:
    """The sums over an axis; where that is the axis of the rows, over those of the whole batch."""
    sums = [reduce_sum(term, axis) for term in terms]
    rank = terms[0].ndim
    over_rows = axis is None or any(one % rank == 0 for one in (axis if isinstance(axis, (list, tuple)) else (axis,)))
    return rows_here().sums(sums) if over_rows else sums


@loss(dice)
class Dice(FunctionLoss):
    """1 - Dice's coefficient. Options as in `dice`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.Dice()([[1.0, 0.0]], [[1.0, 1.0]]).numpy().round(4))
    0.3333
    """

    reduction: str | None = "sum_over_batch_size"
    name: str | None = "dice"
    axis: Any = None
    dtype: Any = None


@loss(tversky)
class Tversky(FunctionLoss):
    """1 - Tversky's index. Options as in `tversky`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.Tversky(alpha=0.25, beta=0.75)([[1.0, 0.0]], [[1.0, 1.0]]).numpy().round(4))
    0.2
    """

    alpha: float = 0.5
    beta: float = 0.5
    reduction: str | None = "sum_over_batch_size"
    name: str | None = "tversky"
    axis: Any = None
    dtype: Any = None


def circle(
    y_true: TensorLike,
    y_pred: TensorLike,
    ref_labels: TensorLike = None,
    ref_embeddings: TensorLike = None,
    remove_diagonal: bool = True,
    gamma: float = 80.0,
    margin: float = 0.4,
) -> Tensor:
    """softplus(ln sum exp(gamma a_n (s_n - m)) + ln sum exp(-gamma a_p (s_p - 1 + m))) for each row, m the margin.

    s_p are the similarities of a row with others of its class, s_n with those of other classes; a_p = max(1 + m - s_p, 0),
    a_n = max(s_n + m, 0). A row without any of either gives 0.

    Args:
        y_true: integer labels (n,) or (n, 1).
        y_pred: embeddings (n, d) of length 1.
        ref_labels, ref_embeddings: (k,) and (k, d) to compare with; the batch itself if None.
        remove_diagonal: leave out the pairs of row i with reference i.
        gamma: > 0, scale.
        margin: in [0, 1].

    Raises:
        ShapeError: if there is not one label for each embedding.

    Source: Sun et al. (2020), Circle Loss, equations (4) to (8).

    >>> rows = [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]
    >>> print(tf.keras.losses.circle([0, 0, 1], rows, gamma=1.0).numpy().round(4))
    [0.6163 0.6163 0.    ]
    """
    embeddings, labels = _rows("y_pred", y_true, as_predictions(y_pred))
    first, here = 0, rows_here()
    if ref_embeddings is None and ref_labels is None:
        first, others, other_labels = here.first, here.all(embeddings), here.all(labels)
    else:
        given = labels if ref_labels is None else ref_labels
        reference = embeddings if ref_embeddings is None else as_floats(ref_embeddings, embeddings.dtype)
        others, other_labels = _rows("ref_embeddings", given, reference)
    similarity = minimum(matmul(embeddings, others, transpose_b=True), 1.0)
    alike = equal(reshape(labels, (-1, 1)), cast(reshape(other_labels, (1, -1)), labels.dtype))
    partners = alike
    if remove_diagonal:
        rows, count = similarity.shape
        itself = beside(embeddings, one_hot(range(first, first + rows), count, dtype="bool"))
        partners = logical_and(alike, logical_not(itself))
    near = -gamma * relu(1.0 + margin - similarity) * (similarity - (1.0 - margin))
    far = gamma * relu(similarity + margin) * (similarity - margin)
    return softplus(_total(near, partners) + _total(far, logical_not(alike)))


def _rows(name: str, y_true: TensorLike, embeddings: Tensor) -> tuple[Tensor, Tensor]:
    labels = as_integers("circle", convert_to_tensor(y_true))
    if embeddings.ndim != 2 or tuple(labels.shape) not in ((embeddings.shape[0],), (embeddings.shape[0], 1)):
        raise ShapeError(
            f"circle: {name} has shape {embeddings.shape}, its labels {labels.shape}; expected (n, d) and a label for each row."
        )
    return embeddings, reshape(labels, (-1,))


def _total(terms: Tensor, mask: Tensor) -> Tensor:
    return reduce_logsumexp(where(mask, terms, -float("inf")), -1)


@loss(circle)
class Circle(FunctionLoss):
    """Circle loss of embeddings. Options as in `circle`; reduction, name, dtype as in `Loss`.

    Rows without a partner of their class, or without one of another, do not count for the mean.

    >>> rows = [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]
    >>> print(tf.keras.losses.Circle(gamma=1.0)([0, 0, 1], rows).numpy().round(4))
    0.6163
    """

    _float_labels = False

    gamma: float = 80.0
    margin: float = 0.4
    remove_diagonal: bool = True
    reduction: str | None = "sum_over_batch_size"
    name: str | None = "circle"
    dtype: Any = None

    def _rows_that_count(self, labels: Tensor, values: Tensor) -> Tensor | None:
        return values > 0.0


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
    return concat([broadcast_to(beside(x, filler, x.dtype), (x.shape[0], places)), x[:, :-places]], -1)


def _check(labels: Tensor, logits: Tensor) -> None:
    if labels.ndim != 2 or logits.ndim != 3 or labels.shape[0] != logits.shape[0] or not labels.shape[1]:
        raise ShapeError(
            f"ctc: expected labels (n, length) and logits (n, steps, classes), found y_true {labels.shape} and "
            f"y_pred {logits.shape}."
        )
    check_labels(labels, logits.shape[-1])
    check_values(labels, partial(_check_rows, steps=logits.shape[1], shape=logits.shape))


def _check_rows(values: np.ndarray[Any, Any], steps: int, shape: ShapeLike) -> None:
    """Refuse labels that no path through this number of steps can spell."""
    if ((values[..., 1:] != 0) & (values[..., :-1] == 0)).any():
        raise InvalidArgumentError("ctc: a label follows a 0; zeros fill up the end of a row, and class 0 is the blank.")
    needed = (values != 0).sum(-1) + ((values[..., 1:] == values[..., :-1]) & (values[..., 1:] != 0)).sum(-1)
    if needed.size and needed.max() > steps:
        raise InvalidArgumentError(
            f"ctc: a row of labels needs {needed.max()} steps (one for each, one more between equal ones), y_pred has "
            f"{steps}: shape {shape}."
        )


@loss(ctc)
class CTC(PlainLoss):
    """Connectionist temporal classification. Labels and logits as in `ctc`; reduction, name, dtype as in `Loss`.

    >>> print(tf.keras.losses.CTC()([[1]], tf.zeros([1, 2, 2])).numpy().round(4))
    0.2877
    """

    _float_labels = False


hide_imports(globals(), "unlikelihood")
