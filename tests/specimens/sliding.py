"""Rows for convolutions and pools."""

import itertools

import numpy as np

import minikeras as tf
from minikeras.functions import convolution
from minikeras.nn_ops import convolution as ops
from specimens.table import distinct, fixed, normal, row


def windows(x, window, strides, padding, dilation, value=0.0):
    """(batch, *places, *window, channels), element by element."""
    x = np.pad(x, ((0, 0), *padding, (0, 0)), constant_values=value)
    count = [
        (size - (width - 1) * spread - 1) // step + 1
        for size, width, step, spread in zip(x.shape[1:-1], window, strides, dilation, strict=True)
    ]
    found = np.zeros((x.shape[0], *count, *window, x.shape[-1]))
    for place in itertools.product(*map(range, count)):
        for offset in itertools.product(*map(range, window)):
            at = tuple(p * s + o * d for p, s, o, d in zip(place, strides, offset, dilation, strict=True))
            found[(slice(None), *place, *offset)] = x[(slice(None), *at)]
    return found


def convolved(x, kernel, strides, padding, dilation, groups=1):
    """One group after the other, each an Einstein sum over window and channels."""
    rank = len(strides)
    parts = []
    for columns, weights in zip(np.split(x, groups, -1), np.split(kernel, groups, -1), strict=True):
        found = windows(columns, kernel.shape[:rank], strides, padding, dilation)
        parts.append(np.tensordot(found, weights, axes=rank + 1))
    return np.concatenate(parts, -1)


def same(sizes, window, strides, dilation):
    pairs = []
    for n, w, s, d in zip(sizes, window, strides, dilation, strict=True):
        total = max((-(-n // s) - 1) * s + (w - 1) * d + 1 - n, 0)
        pairs.append((total // 2, total - total // 2))
    return tuple(pairs)


GEOMETRY = {"strides": (2, 1), "padding": ((1, 0), (0, 2)), "dilation": (1, 2)}
WINDOW = {"window": (2, 2), **GEOMETRY}


def spread_by_matrix(g, kernel, sizes, groups, **geometry):
    """The transpose of the convolution as a matrix, found by convolving unit vectors."""
    shape = (g.shape[0], *sizes, kernel.shape[-2] * groups)
    units = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    return np.array([np.sum(convolved(unit, kernel, groups=groups, **geometry) * g) for unit in units]).reshape(shape)


def correlated_by_matrix(x, g, window, groups, **geometry):
    shape = (*window, x.shape[-1] // groups, g.shape[-1])
    units = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    return np.array([np.sum(convolved(x, unit, groups=groups, **geometry) * g) for unit in units]).reshape(shape)


def separated(x, depthwise, pointwise):
    kernel = depthwise.reshape(*depthwise.shape[:-2], 1, -1)
    return convolved(x, kernel, (1, 1), ((0, 0), (0, 0)), (1, 1), x.shape[-1]) @ pointwise[0, 0]


def transposed(g, kernel, shape, strides, padding):
    window = kernel.shape[: len(strides)]
    dilation = (1,) * len(strides)
    pairs = same(shape[1:-1], window, strides, dilation) if padding == "SAME" else ((0, 0),) * len(strides)
    return spread_by_matrix(
        g, kernel, shape[1:-1], shape[-1] // kernel.shape[-2], strides=strides, padding=pairs, dilation=dilation
    )


def pooled(x, size, strides, padding, reduce, value):
    size, strides, dilation = (size,) * (x.ndim - 2), (strides,) * (x.ndim - 2), (1,) * (x.ndim - 2)
    pairs = same(x.shape[1:-1], size, strides, dilation) if padding == "SAME" else ((0, 0),) * len(size)
    return reduce(windows(x, size, strides, pairs, dilation, value), axis=tuple(range(x.ndim - 1, 2 * x.ndim - 3)))


def put_by_loops(g, chosen, sizes, window, strides, padding, dilation):
    whole = np.zeros((g.shape[0], *(n + sum(p) for n, p in zip(sizes, padding, strict=True)), g.shape[-1]))
    for at in np.ndindex(*g.shape):
        offset = np.unravel_index(chosen[at], window)
        key = (at[0], *(p * s + o * d for p, s, o, d in zip(at[1:-1], strides, offset, dilation, strict=True)), at[-1])
        whole[key] += g[at]
    return whole[(slice(None), *(slice(b, b + n) for (b, _), n in zip(padding, sizes, strict=True)), slice(None))]


def picked_by_loops(x, chosen, window, **geometry):
    under = windows(x, window, **geometry).reshape(*chosen.shape[:-1], -1, x.shape[-1])
    return np.take_along_axis(under, chosen[..., None, :], -2)[..., 0, :]


def adapted(x, counts, reduce):
    """Windows from floor(i n / m) to ceil((i + 1) n / m)."""
    bounds = [[(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip(x.shape[1:], counts, strict=False)]
    return np.stack([np.stack([reduce(x[:, a:b, c:d], axis=(1, 2)) for c, d in bounds[1]], 1) for a, b in bounds[0]], 1)


def cubic(d):
    """Keys (1981), with a = -1/2."""
    near, far = 1.5 * d**3 - 2.5 * d**2 + 1, -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2
    return np.where(d < 1, near, np.where(d < 2, far, 0))


def mitchell(d):
    """Mitchell and Netravali (1988), with B = C = 1/3."""
    near, far = 7 * d**3 - 12 * d**2 + 16 / 3, -7 / 3 * d**3 + 12 * d**2 - 20 * d + 32 / 3
    return np.where(d < 1, near, np.where(d < 2, far, 0)) / 6


def resized(x, sizes, kernel):
    """One new element at a time."""
    for axis, m in enumerate(sizes, 1):
        n = x.shape[axis]
        rows = [kernel(np.abs((j + 0.5) * n / m - 0.5 - np.arange(n))) for j in range(m)]
        x = np.stack([np.tensordot(row / row.sum(), x, (0, axis)) for row in rows], axis)
    return x


CHOSEN = fixed(np.random.default_rng(0).integers(0, 4, (2, 2, 4, 3)).astype("int32"))

SPECIMENS = [
    row(
        tf.nn.convolution,
        (normal(2, 5, 3), normal(2, 3, 4)),
        lambda x, k: convolved(x, k, (1,), ((0, 0),), (1,)),
    ),
    row(
        tf.nn.convolution,
        (normal(2, 3, 4, 3, 2), normal(2, 2, 2, 2, 3)),
        lambda x, k: convolved(x, k, (1, 1, 1), ((0, 0),) * 3, (1, 1, 1)),
        "over three axes",
    ),
    row(
        tf.nn.conv1d,
        (normal(2, 6, 4), normal(3, 2, 6)),
        lambda x, k: convolved(x, k, (2,), same((6,), (3,), (2,), (1,)), (1,), 2),
        "with two groups",
        stride=2,
        padding="SAME",
    ),
    row(
        tf.nn.conv2d,
        (normal(2, 5, 4, 2), normal(3, 2, 2, 3)),
        lambda x, k: convolved(x, k, (2, 1), same((5, 4), (3, 2), (2, 1), (1, 1)), (1, 1)),
        strides=[1, 2, 1, 1],
        padding="SAME",
    ),
    row(
        tf.nn.conv2d,
        (normal(2, 2, 5, 4), normal(2, 2, 2, 3)),
        lambda x, k: np.moveaxis(convolved(np.moveaxis(x, 1, -1), k, (1, 1), ((1, 0), (0, 1)), (2, 1)), -1, 1),
        "with channels first, padded by numbers, dilated",
        strides=1,
        padding=[[0, 0], [0, 0], [1, 0], [0, 1]],
        data_format="NCHW",
        dilations=[2, 1],
    ),
    row(
        tf.nn.depthwise_conv2d,
        (normal(2, 4, 4, 3), normal(2, 2, 3, 2)),
        lambda x, k: convolved(x, k.reshape(2, 2, 1, 6), (1, 1), ((0, 0), (0, 0)), (1, 1), 3),
        strides=1,
        padding="VALID",
    ),
    row(
        tf.nn.conv3d,
        (normal(1, 3, 4, 3, 4), normal(2, 2, 2, 2, 2)),
        lambda x, k: convolved(x, k, (1, 2, 1), ((0, 0),) * 3, (1, 1, 1), 2),
        "with two groups",
        strides=[1, 2, 1],
        padding="VALID",
    ),
    row(
        tf.nn.separable_conv2d,
        (normal(1, 4, 4, 3), normal(2, 2, 3, 2), normal(1, 1, 6, 2)),
        separated,
        strides=1,
        padding="VALID",
    ),
    row(
        tf.nn.conv_transpose,
        (normal(1, 3, 2), normal(2, 3, 2)),
        lambda g, k: transposed(g, k, (1, 6, 3), (2,), "VALID"),
        output_shape=[1, 6, 3],
        strides=2,
        padding="VALID",
    ),
    row(
        tf.nn.conv3d_transpose,
        (normal(1, 2, 1, 2, 2), normal(2, 1, 2, 1, 2)),
        lambda g, k: transposed(g, k, (1, 3, 2, 3, 1), (2, 2, 2), "SAME"),
        output_shape=[1, 3, 2, 3, 1],
        strides=2,
    ),
    row(
        tf.nn.conv1d_transpose,
        (normal(2, 3, 4), normal(2, 3, 4)),
        lambda g, k: transposed(g, k, (2, 5, 3), (2,), "SAME"),
        output_shape=[2, 5, 3],
        strides=2,
    ),
    row(
        tf.nn.conv2d_transpose,
        (normal(1, 2, 2, 3), normal(3, 2, 2, 3)),
        lambda g, k: transposed(g, k, (1, 4, 3, 2), (1, 1), "VALID"),
        output_shape=[1, 4, 3, 2],
        strides=1,
        padding="VALID",
    ),
    *(
        row(
            ops.convolve,
            (normal(2, 4, 5, 2 * groups), normal(2, 2, 2, 3 * groups)),
            lambda x, k, groups=groups: convolved(x, k, groups=groups, **GEOMETRY),
            f"in {groups} groups",
            groups=groups,
            **GEOMETRY,
        )
        for groups in (1, 2)
    ),
    row(
        ops.convolve,
        (normal(3, 2, 4, 5, 2), normal(3, 2, 2, 1, 4)),
        lambda x, k: np.stack([convolved(a, b, groups=2, **GEOMETRY) for a, b in zip(x, k, strict=True)]),
        "of stacks, with one input in each group",
        groups=2,
        **GEOMETRY,
    ),
    row(
        ops.convolve,
        (normal(3, 2, 4, 5, 2), normal(3, 2, 2, 2, 3)),
        lambda x, k: np.stack([convolved(a, b, **GEOMETRY) for a, b in zip(x, k, strict=True)]),
        "of stacks",
        groups=1,
        **GEOMETRY,
    ),
    row(
        ops.spread,
        (normal(2, 2, 5, 6), normal(2, 2, 2, 6)),
        lambda g, k: spread_by_matrix(g, k, (4, 5), 2, **GEOMETRY),
        sizes=(4, 5),
        groups=2,
        **GEOMETRY,
    ),
    row(
        ops.spread,
        (normal(2, 2, 5, 6), normal(2, 2, 1, 6)),
        lambda g, k: spread_by_matrix(g, k, (4, 5), 3, **GEOMETRY),
        "with one input in each group",
        sizes=(4, 5),
        groups=3,
        **GEOMETRY,
    ),
    row(
        ops.correlate,
        (normal(2, 4, 5, 3), normal(2, 2, 5, 6)),
        lambda x, g: correlated_by_matrix(x, g, (2, 2), 3, **GEOMETRY),
        "with one input in each group",
        window=(2, 2),
        groups=3,
        **GEOMETRY,
    ),
    row(
        ops.correlate,
        (normal(2, 4, 5, 4), normal(2, 2, 5, 6)),
        lambda x, g: correlated_by_matrix(x, g, (2, 2), 2, **GEOMETRY),
        window=(2, 2),
        groups=2,
        **GEOMETRY,
    ),
    *(
        row(
            function,
            normal_or_distinct(2, *sizes, 3),
            reference,
            f"{padding} over {len(sizes)} axes",
            ksize=2,
            strides=2,
            padding=padding,
        )
        for sizes, names in (
            ((5,), ("max_pool1d", "avg_pool1d")),
            ((4, 3), ("max_pool2d", "avg_pool2d")),
            ((3, 2, 4), ("max_pool", "avg_pool")),
            ((3, 2, 2), ("max_pool3d", "avg_pool3d")),
        )
        for padding in ("VALID", "SAME")
        for function, normal_or_distinct, reference in (
            (getattr(tf.nn, names[0]), distinct, lambda x, p=padding: pooled(x, 2, 2, p, np.max, -np.inf)),
            (getattr(tf.nn, names[1]), normal, lambda x, p=padding: pooled(x, 2, 2, p, np.nanmean, np.nan)),
        )
    ),
    *(
        row(function, sampler(2, *sizes, 2), reference, f"from {sizes} to 2 and 3", output_size=(2, 3))
        for sizes in ((4, 5), (5, 2), (4, 6))
        for function, sampler, reference in (
            (convolution.adaptive_max_pool, distinct, lambda x: adapted(x, (2, 3), np.max)),
            (convolution.adaptive_avg_pool, normal, lambda x: adapted(x, (2, 3), np.mean)),
        )
    ),
    *(
        row(tf.image.resize, normal(2, 3, 4, 2), lambda x, r=reference: r(x, (5, 2)), method, size=(5, 2), method=method)
        for method, reference in (
            ("nearest", lambda x, sizes: x[:, [0, 0, 1, 2, 2]][:, :, [1, 3]]),
            ("bilinear", lambda x, sizes: resized(x, sizes, lambda d: np.clip(1 - d, 0, 1))),
            ("bicubic", lambda x, sizes: resized(x, sizes, cubic)),
            ("lanczos3", lambda x, sizes: resized(x, sizes, lambda d: np.where(d < 3, np.sinc(d) * np.sinc(d / 3), 0))),
            ("gaussian", lambda x, sizes: resized(x, sizes, lambda d: np.where(d < 1.5, np.exp(-2 * d**2), 0))),
            ("mitchellcubic", lambda x, sizes: resized(x, sizes, mitchell)),
            ("area", lambda x, sizes: x.repeat(5, 1).reshape(2, 5, 3, 4, 2).mean(2).reshape(2, 5, 2, 2, 2).mean(3)),
        )
    ),
    row(
        tf.image.resize,
        normal(4, 6, 2),
        lambda x: resized(x[None], (2, 3), lambda d: np.clip(1 - d / 2, 0, 1))[0],
        "of one image, smoothed, with its proportions",
        size=(3, 3),
        preserve_aspect_ratio=True,
        antialias=True,
    ),
    row(
        ops.max_pool,
        distinct(2, 4, 5, 3),
        lambda x: windows(x, value=-np.inf, **WINDOW).max(axis=(3, 4)),
        **WINDOW,
    ),
    row(
        ops.first_largest,
        distinct(2, 4, 5, 3),
        lambda x: windows(x, value=-np.inf, **WINDOW).reshape(2, 2, 5, 4, 3).argmax(-2),
        smooth=False,
        **WINDOW,
    ),
    row(
        ops.pick,
        (normal(2, 4, 4, 3), CHOSEN),
        lambda x, chosen: picked_by_loops(x, chosen, **WINDOW),
        **WINDOW,
    ),
    row(
        ops.put,
        (normal(2, 2, 4, 3), CHOSEN),
        lambda g, chosen: put_by_loops(g, chosen, (4, 4), **WINDOW),
        sizes=(4, 4),
        **WINDOW,
    ),
    row(ops.window_sum, normal(2, 4, 5, 3), lambda x: windows(x, **WINDOW).sum(axis=(3, 4)), **WINDOW),
    row(
        ops.window_spread,
        normal(2, 2, 4, 3),
        lambda g: sum(put_by_loops(g, np.full(g.shape, i), (4, 4), **WINDOW) for i in range(4)),
        sizes=(4, 4),
        **WINDOW,
    ),
]
