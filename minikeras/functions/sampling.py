"""Losses of a few sampled classes instead of all, and what draws the classes."""

from __future__ import annotations

import math

import numpy as np

from ..core import Tensor
from ..errors import ShapeError
from ..types import Array, TensorLike
from .contractions import matmul
from .elementwise import cast, expm1, log, log1p, stop_gradient, where
from .indexing import gather
from .nn import check_labels, sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits
from .operands import beside, integer, tensor
from .ordering import searchsorted, top_k
from .random import uniform
from .reductions import reduce_any, reduce_sum
from .shaping import concat, reshape

Sample = tuple[Tensor, Tensor, Tensor]


def log_uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sample:
    """Classes k drawn with probabilities log((k + 2) / (k + 1)) / log(range_max + 1): sorted by frequency, as words are.

    Args:
        true_classes: integers (batch, num_true).
        num_sampled: how many classes are drawn for the whole batch.
        unique: whether they are different ones.
        range_max: how many classes there are.
        seed: as in `tf.random.uniform`.

    Returns:
        Classes (num_sampled,) int64; how often each true class and each drawn class is expected among them, float32.

    >>> drawn, of_true, of_drawn = tf.random.log_uniform_candidate_sampler([[0], [9]], 1, 4, True, 100)
    >>> drawn.shape, of_true.shape, bool(of_true[0, 0] > of_true[1, 0])
    (TensorShape([4]), TensorShape([2, 1]), True)
    """
    edges = np.log(np.arange(1, max(integer(range_max), 1) + 2))
    return _sampled(
        "log_uniform_candidate_sampler", np.diff(edges) / edges[-1], true_classes, num_true, num_sampled, unique, seed
    )


def uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sample:
    """As `log_uniform_candidate_sampler`, with one probability for all classes.

    >>> print(tf.random.uniform_candidate_sampler([[0]], 1, 4, False, 8)[1].numpy())
    [[0.5]]
    """
    count = max(integer(range_max), 1)
    return _sampled("uniform_candidate_sampler", np.full(count, 1.0 / count), true_classes, num_true, num_sampled, unique, seed)


def _sampled(
    name: str, chances: Array, true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, seed: int | None
) -> Sample:
    classes, number = tensor(true_classes), integer(num_sampled)
    if classes.dtype.kind not in "iu" or classes.ndim != 2 or classes.shape[1] != num_true or number < 1:
        raise ShapeError(
            f"{name}: needs integers (batch, {num_true}) and at least one sampled class, found {classes.dtype.name}"
            f"{list(classes.shape)} and {number}."
        )
    if unique and number > len(chances):
        raise ValueError(f"{name}: there are {len(chances)} classes, fewer than {number} different ones.")
    check_labels(classes, len(chances))
    rates = beside(classes, chances)
    if unique:  # each class arrives at its rate; the first ones are those that drawing until there are enough would find
        arrivals, found = top_k(log1p(-uniform([len(chances)], dtype="float64", seed=seed)) / rates, number)
        expected = -expm1(rates * arrivals[-1])
    else:
        draws = uniform([number], dtype="float64", seed=seed)
        found = searchsorted(beside(classes, np.cumsum(chances)[:-1]), draws, "right")
        expected = rates * float(number)
    of_true, of_found = [cast(gather(expected, one), "float32") for one in (classes, found)]
    return cast(found, "int64"), of_true, of_found


def _logits(
    name: str,
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    sample: Sample,
    num_true: int,
    remove_accidental_hits: bool,
) -> tuple[Tensor, Tensor]:
    """Labels and logits (batch, num_true + sampled) of the true classes and of the sampled ones."""
    x, given = tensor(inputs), tensor(labels)
    truth = cast(given, "int64")
    sampled, *expected = map(stop_gradient, map(tensor, sample))
    if x.ndim != 2 or tuple(truth.shape) != (x.shape[0], num_true) or sampled.ndim != 1 or not given.dtype.is_integer:
        raise ShapeError(
            f"{name}: needs inputs (batch, n), integer labels (batch, {num_true}) and sampled classes (number,), found "
            f"{x.shape}, {given.dtype.name}{list(given.shape)} and {sampled.shape}."
        )
    ids = concat([reshape(truth, [-1]), cast(sampled, "int64")], 0)
    rows = gather(concat(weights, 0) if isinstance(weights, (list, tuple)) else weights, ids)
    shifts, count = gather(biases, ids), math.prod(truth.shape)
    true_logits = reduce_sum(x[:, None] * reshape(rows[:count], (*truth.shape, -1)), -1) + reshape(shifts[:count], truth.shape)
    logits = matmul(x, rows[count:], transpose_b=True) + shifts[count:]
    if remove_accidental_hits:
        hits = reduce_any(truth[:, :, None] == ids[count:], 1)
        logits = where(hits, cast(x.dtype.min, x.dtype), logits)
    of_true, of_sampled = [log(cast(one, x.dtype)) for one in expected]
    both = concat([true_logits - of_true, logits - of_sampled], 1)
    wanted = np.repeat([1.0 / num_true, 0.0], [num_true, logits.shape[1]])
    return beside(x, np.tile(wanted, (x.shape[0], 1)), x.dtype), both


def nce_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Sample | None = None,
    remove_accidental_hits: bool = False,
    name: str | None = None,
) -> Tensor:
    """Noise-contrastive estimation: binary cross entropies of true classes and of sampled ones, added up, for each example.

    A logit is weights[k] . x + biases[k], minus the logarithm of how often class k is expected in the sample.

    Args:
        weights: (num_classes, n), or a list of its parts.
        biases: (num_classes,).
        labels: the true classes (batch, num_true).
        inputs: (batch, n).
        num_sampled, num_classes: of `log_uniform_candidate_sampler`, which draws if `sampled_values` is None.
        num_true: how many classes are true for each example.
        sampled_values: what a sampler returned.
        remove_accidental_hits: whether sampled classes do not count where they are true.

    Returns:
        (batch,) losses. Gradients go to weights, biases and inputs.

    >>> tf.nn.nce_loss(tf.ones([100, 4]), tf.zeros([100]), [[3], [5]], tf.ones([2, 4]), 8, 100).shape
    TensorShape([2])
    """
    sample = sampled_values or log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes)
    truth, logits = _logits("nce_loss", weights, biases, labels, inputs, sample, num_true, remove_accidental_hits)
    return reduce_sum(sigmoid_cross_entropy_with_logits(truth, logits), 1)


def sampled_softmax_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Sample | None = None,
    remove_accidental_hits: bool = True,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Softmax cross entropy over the true classes and sampled ones alone, for each example; arguments as in `nce_loss`.

    It is for training. The exact loss is `tf.nn.softmax_cross_entropy_with_logits`.

    >>> tf.nn.sampled_softmax_loss(tf.ones([100, 4]), tf.zeros([100]), [[3], [5]], tf.ones([2, 4]), 8, 100).shape
    TensorShape([2])
    """
    sample = sampled_values or log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
    truth, logits = _logits("sampled_softmax_loss", weights, biases, labels, inputs, sample, num_true, remove_accidental_hits)
    return softmax_cross_entropy_with_logits(truth, logits)
