"""Rows for moving elements: reshape, transpose, concatenate, pad, slices, gathers and scatters."""

import numpy as np

import minikeras as tf
from minikeras.core.ops import indexing, shaping
from specimens.table import booleans, complexes, distinct, fixed, integers, normal, positive, row

x = normal(3, 4)


def scattered(indices, updates):
    whole = np.zeros((5, 2))
    np.add.at(whole, tuple(np.moveaxis(indices, -1, 0)), updates)
    return whole


def added(target, indices, updates, sign=1):
    whole = target.copy()
    np.add.at(whole, tuple(np.moveaxis(indices, -1, 0)), sign * updates)
    return whole


def updated(target, indices, updates):
    whole = target.copy()
    whole[tuple(np.moveaxis(indices, -1, 0))] = updates
    return whole


def batched_gather(a, indices):
    return np.stack([row[where] for row, where in zip(a, indices, strict=True)])


def by_hand(ufunc):
    def reference(target, indices, updates):
        whole = target.copy()
        ufunc.at(whole, tuple(np.moveaxis(indices, -1, 0)), updates)
        return whole

    return reference


def blocks(a, b=2):
    n, h, w, c = a.shape
    return a.reshape(n, h, w, b, b, c // b**2).transpose(0, 1, 3, 2, 4, 5).reshape(n, h * b, w * b, c // b**2)


def put(g):
    whole = np.zeros((5, 3))
    whole[1:5:2, ::-1] = g
    return whole


def rows_added(g, indices):
    whole = np.zeros((4, 3))
    np.add.at(whole, indices, g)
    return whole


def along_added(g, indices):
    whole = np.zeros((2, 5))
    np.add.at(whole, (np.arange(2)[:, None], indices), g)
    return whole


SHAPING = [
    row(tf.nn.depth_to_space, normal(1, 2, 3, 8), blocks, block_size=2),
    row(
        tf.nn.depth_to_space,
        normal(1, 8, 2, 3),
        lambda a: np.moveaxis(blocks(np.moveaxis(a, 1, -1)), -1, 1),
        "channels first",
        block_size=2,
        data_format="NCHW",
    ),
    row(tf.nn.space_to_depth, normal(1, 2, 3, 8), np.array, call=lambda a: tf.nn.space_to_depth(tf.nn.depth_to_space(a, 2), 2)),
    row(tf.reshape, x, lambda a: a.reshape(2, 6), shape=[2, -1]),
    row(tf.transpose, normal(2, 3, 4), lambda a: a.transpose(2, 0, 1), perm=[2, 0, 1]),
    row(tf.transpose, complexes(2, 3), lambda a: a.conj().T, "conjugate", conjugate=True, analytic=False),
    row(tf.linalg.matrix_transpose, normal(2, 3, 4), lambda a: np.swapaxes(a, 1, 2)),
    row(tf.expand_dims, x, lambda a: a[:, None], axis=1),
    row(tf.squeeze, normal(1, 3, 1), np.squeeze),
    row(tf.broadcast_to, normal(3, 1), lambda a: np.broadcast_to(a, (2, 3, 4)), shape=[2, 3, 4]),
    row(
        tf.concat,
        (normal(2, 3), normal(2, 2)),
        lambda *xs: np.concatenate(xs, 1),
        call=lambda *xs: tf.concat(list(xs), 1),
    ),
    row(tf.stack, (normal(2, 3), normal(2, 3)), lambda *xs: np.stack(xs, 1), call=lambda *xs: tf.stack(list(xs), 1)),
    row(tf.unstack, x, lambda a: list(a.T), axis=1),
    row(tf.split, x, lambda a: [a[:, :1], a[:, 1:]], num_or_size_splits=[1, -1], axis=1),
    row(
        tf.pad,
        x,
        lambda a: np.pad(a, ((1, 2), (0, 1)), constant_values=7.0),
        paddings=[[1, 2], [0, 1]],
        constant_values=7.0,
        analytic=False,
    ),
    row(
        tf.pad,
        x,
        lambda a: np.pad(a, ((1, 2), (0, 1)), mode="reflect"),
        "reflect",
        paddings=[[1, 2], [0, 1]],
        mode="REFLECT",
    ),
    row(
        tf.pad,
        x,
        lambda a: np.pad(a, ((1, 2), (0, 1)), mode="symmetric"),
        "symmetric",
        paddings=[[1, 2], [0, 1]],
        mode="SYMMETRIC",
    ),
    row(tf.tile, x, lambda a: np.tile(a, (2, 3)), multiples=[2, 3]),
    row(tf.repeat, x, lambda a: np.repeat(a, [1, 0, 2], 0), repeats=[1, 0, 2], axis=0),
    row(tf.repeat, x, lambda a: np.repeat(a, 2), "of all elements", repeats=2),
    row(tf.roll, x, lambda a: np.roll(a, (1, -2), (0, 1)), shift=[1, -2], axis=[0, 1]),
    row(tf.reverse, x, lambda a: a[:, ::-1], axis=[1]),
    row(tf.meshgrid, (normal(2), normal(3)), np.meshgrid),
    row(tf.meshgrid, (normal(2), normal(3)), lambda a, b: np.meshgrid(a, b, indexing="ij"), "by rows", indexing="ij"),
    row(tf.fill, normal(), lambda a: np.full((2, 3), a), call=lambda a: tf.fill([2, 3], a)),
    row(tf.linspace, (normal(), normal()), lambda a, b: np.linspace(a, b, 5), num=5, analytic=False),
    row(
        tf.linspace,
        (normal(3), normal(3)),
        lambda a, b: np.linspace(a, b, 4, axis=1),
        "along the last axis",
        num=4,
        axis=-1,
        analytic=False,
    ),
    row(tf.ensure_shape, x, np.array, shape=[None, 4]),
    row(tf.linalg.tensor_diag, normal(2, 2), lambda a: np.diag(a.ravel()).reshape(2, 2, 2, 2)),
]

INDEXING = [
    row(
        shaping.operations.strided_slice,
        normal(4, 3, 2),
        lambda a: a[1:, ::-1, None, -1],
        "by operator",
        call=lambda a: a[1:, ::-1, None, -1],
    ),
    row(tf.slice, x, lambda a: a[1:, 1:3], begin=[1, 1], size=[-1, 2]),
    row(tf.strided_slice, x, lambda a: a[0:3:2, 3:0:-2], begin=[0, 3], end=[3, 0], strides=[2, -2]),
    row(tf.gather, (normal(5, 2), integers(0, 5, 2, 3)), lambda a, i: a[i]),
    row(tf.gather, (x, fixed([3, 0, 3])), lambda a, i: a[:, i], "along the last axis", axis=-1),
    row(tf.gather, (normal(2, 5, 3), integers(0, 5, 2, 4)), batched_gather, "in batches", batch_dims=1),
    row(tf.gather_nd, (normal(3, 4, 2), fixed([[0, 1], [2, 3], [0, 1]])), lambda a, i: a[i[:, 0], i[:, 1]]),
    row(tf.scatter_nd, (fixed([[1], [4], [1]]), normal(3, 2)), scattered, call=lambda i, u: tf.scatter_nd(i, u, [5, 2])),
    row(tf.tensor_scatter_nd_add, (normal(4, 2), fixed([[1], [1]]), normal(2, 2)), added),
    row(tf.tensor_scatter_nd_sub, (normal(4, 2), fixed([[1], [1]]), normal(2, 2)), lambda a, i, u: added(a, i, u, -1)),
    row(tf.tensor_scatter_nd_update, (normal(4, 2), fixed([[1], [3]]), normal(2, 2)), updated),
    *(
        row(function, (distinct(4, 2), fixed([[1], [3], [1]]), distinct(3, 2)), by_hand(ufunc), analytic=False)
        for function, ufunc in ((tf.tensor_scatter_nd_max, np.maximum), (tf.tensor_scatter_nd_min, np.minimum))
    ),
    row(
        tf.tensor_scatter_nd_max,
        (distinct(3, 3), fixed([[1, 2], [0, 0]]), positive(2)),
        by_hand(np.maximum),
        "of pairs",
        analytic=False,
    ),
    row(
        tf.reverse_sequence,
        (normal(2, 3, 4), fixed([2, 3])),
        lambda a, n: np.stack([np.concatenate([np.flip(one[:, :k], 1), one[:, k:]], 1) for one, k in zip(a, n, strict=True)]),
        seq_axis=2,
    ),
    row(
        tf.dynamic_partition,
        normal(4, 2),
        lambda a: [a[[0, 3]], a[[1]], a[[2]]],
        call=lambda a: tf.dynamic_partition(a, [0, 1, 2, 0], 3),
    ),
    row(
        tf.dynamic_stitch,
        (normal(2, 3), normal(1, 3)),
        lambda a, b: np.stack([a[0], b[0], a[1]]),
        call=lambda a, b: tf.dynamic_stitch([[0, 2], [1]], [a, b]),
    ),
    row(tf.boolean_mask, (normal(3, 4), booleans(3)), lambda a, m: a[m]),
    row(tf.boolean_mask, (normal(2, 3, 2), booleans(2, 3)), lambda a, m: a[m], "over two axes"),
    row(tf.take_along_axis, (normal(3, 4), integers(0, 4, 3, 2)), lambda a, i: np.take_along_axis(a, i, 1), axis=1),
    row(tf.nn.embedding_lookup, (normal(5, 2), integers(0, 5, 3)), lambda a, i: a[i]),
]

TRANSPOSES = [
    row(indexing.put_slice, normal(2, 3), put, key=(Ellipsis, slice(1, 5, 2), slice(None, None, -1)), shape=(5, 3)),
    row(indexing.add_rows, (normal(3, 3), fixed([2, 0, 2])), rows_added, axis=-2, size=4),
    row(indexing.add_along, (normal(2, 3), integers(0, 5, 2, 3)), along_added, axis=-1, size=5),
]

SPECIMENS = SHAPING + INDEXING + TRANSPOSES
