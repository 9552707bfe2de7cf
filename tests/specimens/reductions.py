"""Rows for sums, extrema, norms, running sums and sorting."""

import numpy as np
from scipy import special

import minikeras as tf
from specimens.table import complexes, distinct, fixed, integers, nonzero, normal, positive, row

M = tf.math
x = normal(3, 4)


def rows(function, reference, sampler=x, **facts):
    """The operation over all elements, over one axis, and over two with `keepdims`."""
    return [
        row(function, sampler, reference, **facts),
        row(function, sampler, lambda a: reference(a, axis=0), "along one axis", axis=0, **facts),
        row(
            function,
            sampler,
            lambda a: reference(a, axis=(0, 1), keepdims=True),
            "with keepdims",
            axis=[-1, 0],
            keepdims=True,
            **facts,
        ),
    ]


def norm_of(a, axis=None, keepdims=False, p=2.0):
    return (np.abs(a) ** p).sum(axis=axis, keepdims=keepdims) ** (1 / p)


def l2_normalized(a, axis=None):
    return a / np.sqrt(np.square(a).sum(axis=axis, keepdims=True))


def clipped(a, b):
    length = np.sqrt((a**2).sum() + (b**2).sum())
    return [a * 0.5 / length, b * 0.5 / length, length]


SPECIMENS = [
    *rows(tf.reduce_sum, np.sum),
    *rows(tf.reduce_mean, np.mean),
    *rows(tf.reduce_max, np.max, distinct(3, 4), analytic=False),
    *rows(tf.reduce_min, np.min, distinct(3, 4), analytic=False),
    *rows(tf.reduce_prod, np.prod),
    *rows(tf.reduce_logsumexp, special.logsumexp, analytic=False),
    *rows(M.reduce_euclidean_norm, norm_of, nonzero(3, 4), analytic=False),
    *rows(M.reduce_variance, np.var, analytic=False),
    *rows(M.reduce_std, np.std, analytic=False),
    *rows(tf.norm, norm_of, nonzero(3, 4), analytic=False),
    row(tf.reduce_prod, fixed([[0.0, 2.0, 3.0], [0.0, 0.0, 5.0]]), lambda a: a.prod(1), "with zeros", axis=1),
    row(tf.reduce_prod, complexes(2, 3), lambda a: a.prod(0), "of complex numbers", axis=0, analytic=False),
    row(M.reduce_variance, complexes(2, 3), lambda a: a.var(0), "of complex numbers", axis=0, analytic=False),
    row(M.reduce_euclidean_norm, complexes(2, 3), lambda a: norm_of(a, 0), "of complex numbers", axis=0, analytic=False),
    row(tf.norm, nonzero(3, 4), lambda a: norm_of(a, 0, p=1.0), "of order one", ord=1, axis=0, analytic=False),
    row(tf.norm, nonzero(3, 4), lambda a: norm_of(a, 1, p=3.0), "of order three", ord=3, axis=1, analytic=False),
    row(tf.norm, distinct(3, 4), lambda a: np.abs(a).max(1), "of order infinity", ord=np.inf, axis=1, analytic=False),
    row(
        tf.norm,
        distinct(3, 4),
        lambda a: np.linalg.norm(a, 1),
        "of a matrix, order one",
        ord=1,
        axis=[0, 1],
        analytic=False,
    ),
    row(
        tf.norm,
        distinct(3, 4),
        lambda a: np.linalg.norm(a, np.inf),
        "of a matrix, order infinity",
        ord=np.inf,
        axis=[0, 1],
        analytic=False,
    ),
    row(
        tf.norm,
        normal(2, 3, 4),
        lambda a: np.linalg.norm(a, 2, (1, 2), keepdims=True),
        "of matrices, order two",
        ord=2,
        axis=[1, 2],
        keepdims=True,
        analytic=False,
    ),
    row(tf.cumsum, x, lambda a: a.cumsum(0)),
    row(
        tf.cumsum,
        x,
        lambda a: np.flip(np.flip(a, 1).cumsum(1), 1) - a,
        "exclusive and reversed",
        axis=1,
        exclusive=True,
        reverse=True,
    ),
    row(M.cumprod, x, lambda a: a.cumprod(1), axis=1),
    row(
        M.cumprod,
        fixed([0.0, 2.0, 0.0, 3.0]),
        lambda a: np.array([1.0, 0, 0, 0]),
        "exclusive, with zeros",
        exclusive=True,
    ),
    row(M.cumprod, x, lambda a: np.flip(np.flip(a, 0).cumprod(0), 0), "reversed", axis=0, reverse=True),
    row(M.cumprod, complexes(3), lambda a: a.cumprod(), "of complex numbers", analytic=False),
    row(M.cumulative_logsumexp, x, lambda a: np.logaddexp.accumulate(a, 1), axis=1, analytic=False),
    row(
        M.cumulative_logsumexp,
        x,
        lambda a: np.flip(np.logaddexp.accumulate(np.flip(a, 0)[:-1]), 0),
        "exclusive and reversed",
        call=lambda a: M.cumulative_logsumexp(a, exclusive=True, reverse=True)[:-1],
        analytic=False,
    ),
    row(
        M.confusion_matrix,
        (integers(0, 3, 5), integers(0, 3, 5), positive(5)),
        lambda a, b, w: np.stack([np.bincount(b[a == i], w[a == i], 3) for i in range(3)]),
        "with weights",
        call=lambda a, b, w: M.confusion_matrix(a, b, 3, w, "float64"),
        analytic=False,
        float32=False,
    ),
    row(M.lbeta, positive(3, 4), lambda a: special.gammaln(a).sum(1) - special.gammaln(a.sum(1)), analytic=False),
    row(tf.sort, distinct(3, 4), lambda a: np.sort(a, 1), analytic=False),
    row(tf.sort, distinct(3, 4), lambda a: -np.sort(-a, 0), "descending", axis=0, direction="DESCENDING", analytic=False),
    row(M.top_k, distinct(3, 4), lambda a: [-np.sort(-a, 1)[:, :2], np.argsort(-a, 1)[:, :2]], k=2, analytic=False),
    row(M.l2_normalize, nonzero(3, 4), l2_normalized, analytic=False),
    row(M.l2_normalize, nonzero(3, 4), lambda a: l2_normalized(a, 1), "along one axis", axis=1, analytic=False),
    row(
        tf.linalg.global_norm,
        (x, normal(5)),
        lambda a, b: np.sqrt((a**2).sum() + (b**2).sum()),
        call=lambda *xs: tf.linalg.global_norm([xs[0], None, xs[1]]),
        analytic=False,
    ),
    row(tf.clip_by_norm, nonzero(3, 4), lambda a: a * 0.5 / norm_of(a), clip_norm=0.5, analytic=False),
    row(
        tf.clip_by_norm,
        nonzero(3, 4),
        lambda a: a * np.minimum(1, 1.8 / norm_of(a, 1, True)),
        "along one axis",
        clip_norm=1.8,
        axes=[1],
        analytic=False,
    ),
    row(
        tf.clip_by_global_norm,
        (positive(3), positive(2, 2)),
        clipped,
        call=lambda *xs: tf.clip_by_global_norm(list(xs), 0.5),
        analytic=False,
    ),
]
