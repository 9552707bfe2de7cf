"""Writes tests/golden/ops.json: what functions of real `keras.ops` give, their gradients, and how models with them are written.

    KERAS_BACKEND=jax python tests/golden/make_ops.py [module or part of an expression ...]

Only those that the file has not, and those that are named, are computed.
A case is an expression over the names of `keras.ops` and of the arrays below. It is computed for the arrays, differentiated in
each array of floats, and built of KerasTensors in place of the arrays; what Keras cannot do is left out.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

import keras  # noqa: E402
from keras import ops  # noqa: E402


def varied(*shape, dtype="float32", scale=1.0, shift=0.0, seed=0):
    """Distinct numbers of any sign."""
    numbers = np.random.default_rng(seed + len(shape)).permutation(np.prod(shape)) + 0.3
    return ((numbers.reshape(shape) / np.prod(shape) * 4 - 2) * scale + shift).astype(dtype)


def positive_definite(dtype):
    half = varied(2, 3, 3, dtype="float64", seed=3)
    return (half @ half.swapaxes(1, 2) + np.eye(3)).astype(dtype)


ARRAYS = {
    "f": varied(2, 3),
    "g": varied(2, 3, seed=1),
    "p": varied(2, 3, scale=0.2, shift=0.5),
    "r": varied(2, 3, scale=0.2, shift=0.5, seed=5),
    "d": varied(2, 3, dtype="float64", seed=2),
    "h": varied(2, 3, dtype="float16"),
    "v": varied(3),
    "w": varied(3, seed=4),
    "i": np.array([[3, -2, 0], [7, 1, -5]], "int32"),
    "j": np.array([[2, 3, 1], [1, 4, 2]], "int32"),
    "k": np.array([[1, -7, 3], [2, 5, -4]], "int8"),
    "l": np.array([[3, -2, 0], [7, 1, -5]], "int64"),
    "u": np.array([[1, 200, 3], [2, 5, 4]], "uint8"),
    "b": np.array([[True, False, True], [False, False, True]]),
    "m": np.array([[True, True, False], [False, True, False]]),
    "n": np.array([[0.5, np.nan, 2.0], [np.inf, -1.0, -np.inf]], "float32"),
    "z": (varied(2, 3) + 1j * varied(2, 3, seed=1)).astype("complex64"),
    "t": varied(2, 4, 3),
    "A": positive_definite("float32"),
    "B": varied(2, 3, 2),
    "D": positive_definite("float64"),
    "M": varied(2, 4, 3, seed=7),
    "ids": np.array([1, 0], "int32"),
    "classes": np.array([[0, 2, 1], [3, 1, 1]], "int32"),
    "labels": np.array([2, 0], "int32"),
    "positions": np.array([[1, 0, 2], [0, 2, 2]], "int32"),
    "sorted_": np.array([-1.5, 0.0, 0.4, 1.5], "float32"),
    "signal": varied(2, 16),
    "waves": varied(2, 3, 4),
    "row": varied(2, 8, 3),
    "K1": varied(3, 3, 4, scale=0.3),
    "K1d": varied(3, 3, 2, scale=0.3),
    "K1p": varied(1, 6, 2, scale=0.3),
    "K1t": varied(3, 4, 3, scale=0.3),
    "img": varied(2, 6, 5, 3, scale=0.24, shift=0.5),
    "img2": varied(2, 6, 5, 3, scale=0.24, shift=0.5, seed=9),
    "chw": varied(2, 3, 6, 5, scale=0.24, shift=0.5),
    "bytes_": np.random.default_rng(0).integers(0, 256, (2, 6, 5, 3)).astype("uint8"),
    "vol": varied(2, 4, 3, 3, 2),
    "K2": varied(3, 2, 3, 4, scale=0.3),
    "blocks": varied(2, 2, 3, 8),
    "chblocks": varied(2, 8, 2, 3),
    "cols": varied(2, 12, 4),
    "query": varied(2, 4, 4, 3),
    "key": varied(2, 3, 2, 3),
    "value": varied(2, 3, 2, 3, seed=8),
    "mask": np.array(np.arange(96).reshape(2, 4, 4, 3) % 5 != 2),
    "logits": varied(2, 6, 4),
    "targets": np.array([[1, 2, 2], [3, 1, 0]], "int32"),
    "target_lengths": np.array([3, 2], "int32"),
    "logit_lengths": np.array([6, 5], "int32"),
    "affine": np.array([[1.13, 0.21, -0.3, 0.1, 0.93, 0.37, 0, 0], [0.84, -0.1, 0.63, 0.2, 1.21, -0.7, 0, 0]], "float32"),
    "corners": np.array([[[0, 0], [4, 0], [0, 5], [4, 5]]] * 2, "float32"),
    "corners2": np.array([[[0.5, 0.2], [3.6, 0.3], [0.1, 4.5], [3.9, 4.7]]] * 2, "float32"),
    "places": varied(2, 5, scale=0.8, shift=0.9, seed=6),
    "start": np.array([0, 1], "int32"),
    "points": np.array([[0, 1], [1, 2]], "int32"),
}

# Names alone stand for calls with f; what follows a colon are the arguments of one call each, separated by '; '.
CASES = {
    "nn": """relu: f; i
        relu6: f * 4.0; i
        sigmoid: f; h
        sparse_sigmoid softplus softsign sparse_plus silu log_sigmoid hard_sigmoid hard_silu selu tanh_shrink hard_tanh
        soft_shrink: f; f, threshold=0.2
        squareplus: f; f, b=2
        leaky_relu: f; i, negative_slope=0.1
        elu: f; f, alpha=0.5
        gelu: f; f, approximate=False; i
        celu: f; d, alpha=0.7
        glu: f, axis=0; M, axis=1
        hard_shrink: f; i
        threshold: f, 0.1, 5.0
        softmax: f; f, axis=0; d, axis=(0, 1); i
        log_softmax: f; f, axis=0
        sparsemax: f * 4.0
        max_pool: img, 2, strides=2; img, (3, 2), strides=1, padding='same'; row, 2, 2; vol, 2, 1
        max_pool: chw, 2, 1, data_format='channels_first'
        average_pool: img, 2, strides=2; img, (3, 2), strides=2, padding='same'; row, 3, strides=1
        adaptive_max_pool: img, (3, 2); row, 3
        adaptive_average_pool: img, (4, 2); row, 4
        conv: row, K1; row, K1, strides=2, padding='same'; row, K1, dilation_rate=2; img, K2, padding='SAME'
        depthwise_conv: row, K1d; row, K1d, strides=2, padding='same'
        separable_conv: row, K1d, K1p; row, K1d, K1p, padding='same'
        conv_transpose: row, K1t, strides=2; row, K1t, strides=2, padding='same'; row, K1t, strides=2, output_padding=1
        one_hot: classes, 4; classes, 4, axis=1, dtype='int32'; classes, 3
        multi_hot: classes, 4; classes, 4, dtype='int32'
        binary_crossentropy: p, r; p, f, from_logits=True
        categorical_crossentropy: p, r; p, f, from_logits=True; p, r, axis=0
        sparse_categorical_crossentropy: labels, r; labels, f, from_logits=True
        moments: f, axes=1; t, axes=(0, 2), keepdims=True
        batch_normalization: f, v, abs(w) + 0.1, axis=-1; t, v, abs(w) + 0.1, axis=2, offset=v, scale=w, epsilon=0.01
        layer_normalization: f; t, v, w; t, axis=(1, 2), epsilon=0.01
        rms_normalization: f; f, scale=v; t, axis=1, epsilon=0.01
        normalize: f; f, axis=0, order=3; t, axis=(1, 2)
        psnr: p, r, 1.0
        polar: p, f
        unfold: chw, 2; chw, (3, 2), dilation=1, padding=(1, 0), stride=2
        fold: cols, (3, 3), 2
        depth_to_space: blocks, 2; chblocks, 2, data_format='channels_first'
        space_to_depth: tile(blocks, (1, 1, 2, 1)), 2; chw[:, :, :, 1:], 2, data_format='channels_first'
        dot_product_attention: query, key, value; query, key, value, mask=mask, scale=0.3; query, key, value, is_causal=True
        ctc_loss: targets, logits, target_lengths, logit_lengths; targets[:, :2], logits, ids + 1, logit_lengths, mask_index=0
        ctc_decode: logits, logit_lengths; logits, logit_lengths, merge_repeated=False, mask_index=3
        ctc_decode: log_softmax(logits), logit_lengths, strategy='beam_search', beam_width=20, top_paths=2""",
    "math": """segment_sum: f, ids, num_segments=3; f, ids * 0, num_segments=1
        segment_max: f, ids * 0, num_segments=1; i, ids, num_segments=2
        segment_min: f, ids * 0, num_segments=1
        segment_prod: f, ids * 0, num_segments=2
        top_k: f, 2; i, 1
        in_top_k: labels, f, 1; labels, f, 2; labels, f, 3
        logsumexp: f; f, axis=1, keepdims=True; d, axis=(0, 1)
        cdist: t, M; f, g
        extract_sequences: signal, 5, 3
        fft: (f, g)
        fft2: (f, g)
        ifft2: (f, g)
        rfft: f; signal; signal, fft_length=20; signal, fft_length=9
        irfft: (f, g); (f, g), fft_length=5; (f, g), fft_length=9
        stft: signal, 5, 2, 6; signal, 4, 2, 8, center=False, window='hamming'
        istft: (waves, waves), 5, 2, 6; (waves, waves), 4, 2, 6, window='hamming', length=7
        istft: (waves, waves), 5, 2, 6, center=False
        rsqrt: p
        erf: f; d
        erfc: f
        erfinv: p; f * 0.4
        logdet: A
        view_as_complex: f[:, :2]
        view_as_real: z""",
    "linalg": """cholesky: A; A, upper=True; D
        cholesky_inverse: A[0]
        det: A; D
        eig: A
        eigh: A
        inv: A; D
        lu_factor: A; A[0]
        norm: f; f, ord=1; f, ord='fro'; f, axis=1; f, ord=3, axis=1, keepdims=True; A, axis=(1, 2), ord=2; i, axis=0
        norm: A, ord='nuc', axis=(1, 2); A, ord=-1, axis=(1, 2); f, ord=np.inf, axis=0; f, ord=-np.inf, axis=1; f, ord=0, axis=1
        qr: M; M, mode='complete'
        solve: A, B; A[0], v
        solve_triangular: A, B, lower=True; A, B
        svd: M, full_matrices=False; M, compute_uv=False
        lstsq: M[0], M[1]; A[0], v
        matrix_rank: M; M * 0.0
        pinv: M
        jvp: lambda x: x * x, (f,), (g,)""",
    "core": """map: lambda x: x * 2.0, f
        scan: lambda s, x: (s + x, s * x), v, f; lambda s, x: (s + x, s * x), v, f, reverse=True
        associative_scan: lambda a, b: a + b, f; lambda a, b: a * b, f, axis=1, reverse=True
        scatter: points, v[:2], (3, 4)
        scatter_update: f, points, v[:2]; f, points, v[:2], reduction='add'; f, points, v[:2], reduction='max'
        scatter_update: f, points, v[:2], reduction='mul'; f, points, v[:2], reduction='min'
        slice: f, (0, 1), (2, 2); f, start, (1, 2); f, (1, 2), (2, 2)
        slice_update: f, (0, 1), g[:, :2]; f, start, g[:1, :2]
        switch: 1, [lambda x: x, lambda x: x * 2.0], f; 7, [lambda x: x, lambda x: x * 2.0], f
        while_loop: lambda x: sum(x) < 100.0, lambda x: x * x + 1.0, f; lambda x, y: True, lambda x, y: (x + y, y), (f, g), 3
        fori_loop: 0, 3, lambda i, x: x * 2.0 + i, f
        unstack: f; f, axis=1
        stop_gradient
        cast: f, 'int32'; i, 'float16'; b, 'float32'
        saturate_cast: f * 200.0, 'int8'; i, 'uint8'
        cond: True, lambda: f, lambda: g
        vectorized_map: lambda x: x * x, f""",
    "einops": """rearrange: t, 'b l c -> b c l'; row, 'b (h w) c -> b h (w c)', h=2; t, 'b l c -> (b c) l'""",
    "image": """image.rgb_to_grayscale: img; bytes_; chw, data_format='channels_first'
        image.rgb_to_hsv: img; chw, data_format='channels_first'
        image.hsv_to_rgb: img
        image.resize: img, (4, 8); img, (3, 3), antialias=True; bytes_, (4, 8); img, (9, 7), interpolation='bicubic'
        image.resize: img, (4, 2), interpolation='nearest'; img, (4, 2), crop_to_aspect_ratio=True
        image.resize: img, (4, 2), pad_to_aspect_ratio=True, fill_value=0.5; chw, (4, 8), data_format='channels_first'
        image.affine_transform: img, affine; img, affine * 1.01, interpolation='nearest'; img, affine, fill_mode='reflect'
        image.affine_transform: img, affine, fill_mode='wrap'; img, affine, fill_mode='mirror'; img, affine, fill_mode='nearest'
        image.extract_patches: img, 2; img, (3, 2), strides=1, padding='same'; img, 2, strides=1, dilation_rate=2
        image.extract_patches_3d: vol, 2; vol, (2, 2, 1), strides=1
        image.map_coordinates: f, places, 1; f, places, 0; f, places, 1, fill_mode='reflect'; i, places, 1, fill_mode='wrap'
        image.pad_images: img, 1, 2, 0, target_width=9; chw, 1, 2, 3, 4, data_format='channels_first'
        image.crop_images: img, 1, 2, 0, target_width=2; chw, 1, 2, 3, 0, data_format='channels_first'
        image.perspective_transform: img, corners, corners2; img, corners, corners2, interpolation='nearest', fill_value=0.5
        image.gaussian_blur: img, (3, 5), (1.0, 2.0), data_format='channels_last'
        image.scale_and_translate: img, (2, 4, 8, 3), np.array([0.7, 1.5], 'f4'), np.array([0.2, -1.0], 'f4'), (1, 2), 'linear'
        image.scale_and_translate: img, (2, 9, 5, 3), np.array([1.5], 'f4'), np.array([0.3], 'f4'), (1,), 'lanczos3', False
        image.sobel_edges: img, data_format='channels_last'
        image.ssim: img, img2, filter_size=4; chw[:1], chw[1:], filter_size=3, data_format='channels_first'""",
    "numpy": """abs: f; i; z
        absolute: f
        add: f, g; f, i; i, 2; i, 0.5; b, k; k, u; h, f
        all any: b; b, axis=1; f, axis=0, keepdims=True
        amax amin: f; i, axis=1
        angle: z; f
        append: f, g; f, i, axis=0
        arange: 5; 1, 7, 2; 0.0, 1.0, 0.25; 3, dtype='float32'
        arccos arcsin arctanh: p
        arccosh: p + 1.0
        arcsinh arctan: f; i
        arctan2: f, g; i, j
        argmax argmin: f; f, axis=1; i, axis=0, keepdims=True
        argpartition: f, 1
        argsort: f; f, axis=0; f, axis=None
        array: f; f, dtype='float16'
        array_split: t, 3, axis=1
        average: f; f, axis=1; f, axis=1, weights=g
        bartlett blackman hamming hanning: 5
        bincount: classes[0]; classes[0], weights=v, minlength=5
        bitwise_and bitwise_or bitwise_xor: i, j; k, u
        bitwise_invert bitwise_not: i
        bitwise_left_shift bitwise_right_shift left_shift right_shift: i, j
        broadcast_to: v, (2, 3)
        cbrt: f; i
        ceil: f; i
        clip: f, -0.5, 0.5; i, 0, 2; b, 0, 1
        concatenate: [f, g]; [f, i], axis=1
        conj conjugate: z; f
        copy
        corrcoef: f
        correlate: v, w; signal[0], v, mode='same'; signal[0], v, mode='full'
        cos cosh: f; i; z
        count_nonzero: i; i, axis=1
        cross: f, g
        cumprod cumsum: f, axis=1; f; i, axis=0; b, axis=1; f, axis=0, dtype='float64'
        deg2rad: f; i
        diag: v; f; A[0], k=1
        diagflat: v; f, k=1
        diagonal: f; A, offset=1, axis1=1, axis2=2
        diff: f; f, n=2, axis=1
        digitize: f, np.array([-1.0, 0.0, 1.0])
        divide: f, g; i, j; i, 2
        divide_no_nan: f, g; f, f * 0.0
        dot: f, v; f, swapaxes(g, 0, 1); i, j[0]
        dsplit: t[:, :, :2], 2
        dstack: [f, g]
        einsum: 'ij,ij->i', f, g; 'ij,kj->ik', f, i; 'bij,bjk->bik', A, B
        empty: (2, 3)
        empty_like
        equal not_equal greater greater_equal less less_equal: f, g; i, 1; f, i
        exp exp2 expm1: f; i
        expand_dims: f, 1; f, (0, 2)
        eye: 3; 2, 3, k=1, dtype='int32'
        fabs: f; i
        flip: f; f, axis=1
        fliplr flipud
        floor: f; i
        floor_divide: f, g; i, j; i, 2
        fmax fmin: f, n
        fmod: f, g + 0.1; i, j
        full: (2, 2), 3.0; (2,), 3, dtype='int32'
        full_like: f, 2.0
        gcd lcm: i, j
        geomspace: 1.0, 8.0, 4
        get_item: f, 1; f, np.s_[:, 1]; t, np.s_[..., ::2]; f, (0, slice_(1, None))
        heaviside: f, 0.5
        histogram: v; v, bins=4, range=(-1.0, 1.0)
        hsplit: M[:, :, 0], 2
        hstack: [f, g]
        hypot: f, g
        i0: f
        identity: 3
        imag real: z; f
        inner: f, g; v, w
        isclose: f, f + 1e-9; f, g
        isfinite isinf isnan isneginf isposinf: n; i
        isin: i, j
        isreal: z; f
        kaiser: 5, 2.0
        kron: f, g
        ldexp: f, i
        linspace: 0.0, 1.0, 5; 0, 3, 4; v, w, 3, axis=1
        log log10 log1p log2: p; j
        logaddexp logaddexp2: f, g
        logical_and logical_or logical_xor: b, m; f, i
        logical_not: b; f
        logspace: 0.0, 2.0, 3
        matmul: A, B; f, v; i, swapaxes(j, 0, 1); v, w
        max min: f; f, axis=1, keepdims=True; i, axis=0; f, initial=5.0
        maximum minimum: f, g + 0.1; i, 0.5; b, m
        mean: f; f, axis=1; i, axis=0; b, keepdims=True
        median: f; f, axis=1; t, axis=(0, 1), keepdims=True; i, axis=0
        meshgrid: v, w; v, w, indexing='ij'
        mod: f, g + 0.1; i, j; i, 2
        moveaxis: t, 0, 1; t, (0, 1), (2, 0)
        multiply: f, g; i, f; b, m; i, 2.5
        nan_to_num: n; n, nan=1.0, posinf=2.0, neginf=-2.0
        nanargmax nanargmin: where(isfinite(n), n, np.nan), axis=1
        nancumsum nancumprod: where(isfinite(n), n, np.nan), axis=1
        nanmax nanmin nanmean nanmedian nanprod nanstd nansum nanvar: where(isfinite(n), n, np.nan); n, axis=1
        nanpercentile: where(isfinite(n), n, np.nan), 40.0
        nanquantile: where(isfinite(n), n, np.nan), 0.4, axis=1
        ndim: f
        negative: f; i
        nextafter: f, g
        nonzero: i
        ones: (2, 3); (2,), dtype='int32'
        ones_like zeros_like: f; i, dtype='float32'
        outer: v, w; f, g
        pad: f, 1; f, ((0, 1), (2, 0)), constant_values=2.0; f, ((1, 1), (2, 2)), mode='reflect'; f, 1, mode='symmetric'
        percentile: f, 30.0; f, np.array([10.0, 60.0]), axis=1
        power: f, 2; p, f; i, j; i, 2.0
        prod: f; i, axis=1; f, axis=0, keepdims=True
        ptp: f; f, axis=1, keepdims=True
        quantile: f, 0.3; f, np.array([0.1, 0.6]), axis=1; f, 0.3, axis=0, method='nearest'; f, 0.3, method='lower'
        rad2deg: f; i
        ravel
        reciprocal: f; j
        repeat: f, 2; f, 2, axis=1; f, np.array([1, 2, 0]), axis=1
        reshape: f, (-1,); f, (-1, 3, 1)
        roll: f, 1; f, 2, axis=1
        rot90: f; t, k=3, axes=(1, 2)
        round: f; f, 1; i, -1
        searchsorted: sorted_, f; sorted_, v, side='right'
        select: [f > 1.0, f < -1.0], [f, g], default=0.5
        sign: f; i; z
        signbit: f; i
        sin sinh tan tanh: f; i; z
        sinc
        size: f
        slogdet: A
        sort: f; f, axis=0; i; f, axis=None
        split: t, 2, axis=1; t, [1, 3], axis=1
        sqrt: p; j; z
        square: f; i; b
        squeeze: f[:, :1]; f[:, :1], axis=1
        stack: [f, g]; [f, i], axis=1
        std var: f; f, axis=1, keepdims=True; i, axis=0
        subtract: f, g; i, j; i, 0.5
        sum: f; f, axis=1; i, axis=0; b; k; u, axis=1, keepdims=True
        swapaxes: t, 1, 2
        take: f, ids, axis=1; f, np.array([4, 0]); v, -1
        take_along_axis: f, positions, axis=1; f, np.array([4, 0])
        tensordot: t, f, axes=[[2], [1]]; v, w, axes=1
        tile: f, 2; v, (2, 2)
        trace: f; A, axis1=1, axis2=2; i
        transpose: f; t, (2, 0, 1)
        trapezoid: f; f, dx=0.5, axis=0; f, np.array([0.0, 1.0, 3.0])
        tri: 3; 2, 3, k=1, dtype='int32'
        tril triu: f; A, k=1
        true_divide: f, g; i, j
        trunc: f; i
        unique: i; classes, return_counts=True, return_inverse=True, return_index=True
        unravel_index: ids, (2, 3)
        vander: v; v, N=2, increasing=True
        vdot: f, g; v, w
        view: f, dtype='int32'
        vsplit: f, 2
        vstack: [f, g]
        where: b, f, g; b, f, i; b, 1.0, 0.0; b
        zeros: (2, 3); (2,), dtype='bool'""",
}


def expressions(text):
    """The calls of a module."""
    for line in text.splitlines():
        names, _, calls = line.strip().partition(": ")
        for name in names.split():
            for call in calls.split("; ") if calls else ["f"]:
                yield f"{name}({call})"


def names_in(expression):
    found = dict.fromkeys(re.findall(r"\b[A-Za-z_]\w*\b(?!\()", re.sub(r"'[^']*'|\b\w+=(?!=)|lambda[^:]*:", " ", expression)))
    return [name for name in found if name in ARRAYS]


NAMESPACE = {**vars(ops), "np": np, "slice_": slice, "sum": ops.sum}


def computed(expression, arrays):
    return eval(expression, {**NAMESPACE, **arrays})


def plain(array):
    array = np.asarray(array)
    if array.dtype.kind == "c":
        return [array.real.ravel().tolist(), array.imag.ravel().tolist()]
    return array.ravel().tolist() if array.dtype.kind != "V" else array.astype("float32").ravel().tolist()


def results_of(expression, arrays):
    """Compiled as one, which is faster than function by function, where shapes do not depend on values."""
    try:
        return leaves(jax.jit(lambda given: computed(expression, given))(arrays))
    except Exception:
        return leaves(computed(expression, arrays))


def described(value):
    value = ops.convert_to_tensor(value)
    return {"dtype": keras.backend.standardize_dtype(value.dtype), "shape": list(value.shape), "values": plain(value)}


def leaves(result):
    return [leaf for leaf in jax.tree_util.tree_leaves(result) if leaf is not None]


def gradients(expression, arrays):
    """For the cotangents cos(0), cos(1), ... of all results of floats."""
    wanted = [name for name in arrays if arrays[name].dtype.kind == "f" and name != "affine"]  # Keras's two last move channels
    if not wanted or "jvp(" in expression:
        return None

    def total(values):
        results = [ops.convert_to_tensor(one) for one in leaves(computed(expression, {**arrays, **values}))]
        floats = [one for one in results if one.dtype.kind == "f"]
        return sum((one * np.cos(np.arange(one.size)).reshape(one.shape).astype(one.dtype)).sum() for one in floats)

    try:
        found = jax.jit(jax.grad(total))({name: arrays[name] for name in wanted})
    except Exception:
        return None
    if any(np.isnan(one).any() for one in found.values()):
        return None
    return {name: plain(value) for name, value in found.items()}


NO_BATCHES = ("v", "w", "start")


def shape(name, array, unknown):
    return (len(array) if name in NO_BATCHES or not unknown else None, *array.shape[1:])


def layers(expression, arrays):
    """What the functional model is written as: with a batch of any size, or of the arrays' size where that fails."""
    for unknown in (True, False):
        keras.utils.clear_session()
        try:
            inputs = {
                name: keras.Input(batch_shape=shape(name, one, unknown), dtype=str(one.dtype), name=name)
                for name, one in arrays.items()
            }
            outputs = [one for one in keras.tree.flatten(computed(expression, inputs)) if one is not None]
            config = json.loads(keras.Model(list(inputs.values()), outputs).to_json())["config"]
            return config["layers"]
        except Exception:
            continue
    return None


PATH = Path(__file__).with_name("ops.json")


NARROW = {"uint64": "uint32", "int64": "int32", "float64": "float32", "complex128": "complex64"}
"""What JAX gives by default, without dtypes of 64 bits. Here it has them, for the arrays that are float64."""


def main(anew):
    known = json.loads(PATH.read_text())["cases"] if PATH.exists() else {}
    cases = {}
    chosen = [one for one in CASES if not anew or one in anew or one in {case["module"] for case in known.values()}]
    for module, text in [(one, CASES[one]) for one in chosen]:
        for expression in expressions(text):
            if expression in known and not any(one == module or (one not in CASES and one in expression) for one in anew):
                cases[expression] = known[expression]
                continue
            begun = time.perf_counter()
            arrays = {name: ops.convert_to_tensor(ARRAYS[name]) for name in names_in(expression)}
            try:
                results = [described(one) for one in results_of(expression, arrays)]
            except Exception as error:
                print(f"{expression}: {type(error).__name__}: {error!s:.200}")
                continue
            case = {"module": module, "arrays": list(arrays), "results": results}
            symbolic = layers(expression, arrays) if arrays else None
            cases[expression] = case | {"gradients": gradients(expression, arrays), "layers": symbolic}
            if time.perf_counter() - begun > 3:
                print(f"{expression}: {time.perf_counter() - begun:.0f} s")
    missing = set(dir(keras.ops)) - {re.match(r"[\w.]+", one)[0].rpartition(".")[2] for one in cases}
    print("without a case:", sorted(name for name in missing if not name.startswith("_")))
    arrays = {name: {"dtype": str(one.dtype), "shape": list(one.shape), "values": plain(one)} for name, one in ARRAYS.items()}
    for expression, case in cases.items():
        wide = "64" in expression or any(ARRAYS[name].dtype.name in ("float64", "int64") for name in case["arrays"])
        for result in case["results"]:
            result["dtype"] = result["dtype"] if wide else NARROW.get(result["dtype"], result["dtype"])
    lines = [f"{json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items()]
    text = f'{{"arrays": {json.dumps(arrays)},\n"cases": {{\n' + ",\n".join(lines) + "\n}}\n"
    PATH.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
