"""Rows for operations without a gradient: rounding, comparisons, logic, positions, constants."""

import numpy as np

import minikeras as tf
from minikeras.core.ops import arithmetic, reductions
from specimens.table import booleans, distinct, fixed, integers, nonzero, normal, row

M, B = tf.math, tf.bitwise
halves = fixed([-1.5, -0.5, 0.3, 0.5, 1.5, 2.7])
few = integers(0, 3, 3, 4)
awkward = fixed([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0])


def plain(function, inputs, reference, variant="", **facts):
    return row(function, inputs, reference, variant, smooth=False, **facts)


def in_top_two(targets, predictions):
    known = np.isin(targets, range(4))
    chosen = np.take_along_axis(predictions, np.where(known, targets, 0)[:, None], 1)
    return known & ((predictions > chosen).sum(1) < 2)


def contrast(images, factor):
    mean = images.mean(axis=(-3, -2), keepdims=True)
    return (images - mean) * factor + mean


SPECIMENS = [
    plain(tf.floor, halves, np.floor),
    plain(M.ceil, halves, np.ceil),
    plain(tf.round, halves, np.round),
    plain(M.rint, halves, np.rint),
    plain(arithmetic.trunc, halves, np.trunc),
    plain(arithmetic.greatest_common_divisor, (fixed([-12, 7]), fixed([18, 0])), np.gcd),
    plain(arithmetic.least_common_multiple, (fixed([-12, 7]), fixed([18, 0])), np.lcm),
    plain(M.floordiv, (nonzero(3, 4), nonzero(4)), np.floor_divide),
    plain(M.floordiv, (fixed([-7, 7]), fixed([2, -2])), np.floor_divide, "of integers"),
    plain(M.floormod, (fixed([-7, 7]), fixed([3, -3])), np.mod, "of integers"),
    *(
        plain(getattr(tf, name), (few, integers(0, 3, 4)), getattr(np, name))
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    ),
    plain(tf.less, (normal(3, 4), normal(4)), np.less, "of floats"),
    *(
        plain(getattr(M, name), (booleans(3, 2), fixed([True, False])), getattr(np, name))
        for name in ("logical_and", "logical_or", "logical_xor")
    ),
    plain(tf.logical_not, booleans(4), np.logical_not),
    *(
        plain(getattr(B, name), (integers(-99, 99, 3, 4), integers(-99, 99, 4)), getattr(np, name))
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    ),
    plain(B.invert, integers(-99, 99, 4), np.invert),
    plain(B.left_shift, (integers(-99, 99, 3, 4), integers(0, 8, 4)), np.left_shift),
    plain(B.right_shift, (integers(-99, 99, 3, 4), integers(0, 40, 4)), lambda a, b: a >> np.minimum(b, 31)),
    plain(M.is_nan, awkward, np.isnan),
    plain(M.is_inf, awkward, np.isinf),
    plain(M.is_finite, awkward, np.isfinite),
    plain(tf.reduce_any, booleans(3, 4), lambda a: a.any(1), axis=1),
    plain(tf.reduce_all, booleans(3, 4), lambda a: a.all(0), axis=0),
    plain(M.count_nonzero, few, lambda a: np.count_nonzero(a, 1), axis=1),
    plain(M.zero_fraction, few, lambda a: np.float32((a == 0).mean()), tolerance=1e-6),
    plain(M.is_non_decreasing, few, lambda a: np.all(np.diff(a.ravel()) >= 0)),
    plain(M.is_strictly_increasing, fixed([[1.0, 2.0], [2.5, 3.0]]), lambda a: np.array(True)),
    plain(tf.argmax, distinct(3, 4), lambda a: a.argmax(1), axis=1),
    plain(tf.argmin, distinct(3, 4), lambda a: a.argmin(0)),
    plain(tf.argsort, few, lambda a: np.argsort(a, -1, kind="stable")),
    plain(tf.argsort, few, lambda a: np.argsort(-a, 0, kind="stable"), "descending", axis=0, direction="DESCENDING"),
    plain(tf.sort, few, lambda a: np.sort(a, -1), "of integers"),
    plain(tf.unique, fixed([5, 7, 5, 1, 7]), lambda a: [np.array([5, 7, 1]), np.array([0, 1, 0, 2, 1])]),
    plain(tf.unique_with_counts, fixed([5, 7, 5, 1, 7]), lambda a: [*map(np.array, ([5, 7, 1], [0, 1, 0, 2, 1], [2, 2, 1]))]),
    plain(
        tf.searchsorted,
        (fixed([[1.0, 3.0], [5.0, 7.0]]), fixed([[2.0, 3.0, 8.0], [9.0, 5.0, 6.0]])),
        lambda s, v: np.array([[1, 2, 2], [2, 1, 1]]),
        side="right",
    ),
    plain(M.bincount, few, lambda a: np.bincount(a.ravel(), minlength=3), minlength=3),
    plain(
        tf.histogram_fixed_width,
        normal(20),
        lambda a: np.histogram(np.clip(a, -0.99, 0.99), 4, (-1, 1))[0],
        value_range=[-1.0, 1.0],
        nbins=4,
    ),
    plain(M.in_top_k, (integers(-1, 5, 3), distinct(3, 4)), in_top_two, k=2),
    plain(
        M.in_top_k,
        (fixed([1, 2]), fixed([[2.0, 2.0, 1.0], [np.inf, 1.0, 3.0]])),
        lambda i, x: np.array([True, False]),
        "with ties",
        k=1,
    ),
    plain(M.invert_permutation, fixed([2, 0, 3, 1]), np.argsort),
    plain(
        M.confusion_matrix,
        (fixed([1, 2, 1]), fixed([1, 2, 0])),
        lambda a, b: np.array([[0, 0, 0], [1, 1, 0], [0, 0, 1]]),
        num_classes=3,
    ),
    plain(tf.sequence_mask, integers(0, 4, 2, 2), lambda n: np.arange(5) < n[..., None], maxlen=5),
    plain(tf.unravel_index, integers(0, 24, 3), lambda i: np.stack(np.unravel_index(i, (2, 3, 4))), dims=[2, 3, 4]),
    plain(tf.where, booleans(2, 3), np.argwhere, "without branches"),
    plain(tf.shape, normal(3, 4), lambda a: np.array([3, 4])),
    plain(tf.size, normal(3, 4), lambda a: np.array(12)),
    plain(tf.rank, normal(3, 4), lambda a: np.array(2)),
    plain(
        tf.one_hot,
        integers(-1, 4, 3),
        lambda i: np.where(i[:, None] == np.arange(3), 2.0, -1.0),
        depth=3,
        on_value=2.0,
        off_value=-1.0,
    ),
    plain(
        tf.one_hot,
        integers(0, 3, 2, 2),
        lambda i: np.moveaxis(np.eye(3)[i], -1, 1),
        "along another axis",
        depth=3,
        axis=1,
    ),
    plain(tf.zeros_like, normal(3, 4), np.zeros_like),
    plain(tf.ones_like, normal(3, 4), np.ones_like),
    plain(reductions.identity_like, normal(3, 4), lambda a: np.eye(2)[..., None], n=2, trailing=1),
    plain(tf.stop_gradient, normal(3, 4), np.array),
    plain(tf.cast, fixed([1.8, -1.8]), np.trunc, "to int32", dtype="int32"),
    plain(tf.cast, fixed([0, 3]), np.array, "of integers", dtype="float32"),
    plain(tf.saturate_cast, fixed([300.0, -3.0, 7.5]), lambda a: np.array([255, 0, 7]), "to uint8", dtype="uint8"),
    plain(tf.saturate_cast, fixed([1e20, -1e20]), lambda a: np.array([2**31 - 1, -(2**31)]), "to int32", dtype="int32"),
    plain(tf.bitcast, fixed(np.array([1.0, -2.0], "float64")), lambda a: a.view("int64"), type="int64", float32=False),
    plain(tf.is_tensor, normal(2), lambda a: np.array(True)),
    row(tf.image.adjust_contrast, normal(2, 3, 1), lambda a: contrast(a, 2.0), contrast_factor=2.0, smooth=False),
]
