"""Rows for activations, losses and normalization of neural networks."""

import numpy as np
from scipy import special

import minikeras as tf
from minikeras.core.registry import operations
from minikeras.nn_ops import draws, philox4x32
from specimens.table import distinct, fixed, integers, nonzero, normal, positive, row

N = tf.nn
x = nonzero(3, 4)


def probabilities(*shape):
    return lambda rng: special.softmax(rng.normal(size=shape), -1)


def sparse_cross_entropy(labels, logits):
    return -np.take_along_axis(special.log_softmax(logits, -1), labels[:, None], 1)[:, 0]


def normalized(a, mean, variance, offset, scale):
    return (a - mean) / np.sqrt(variance + 1e-3) * scale + offset


def dropped(a):
    """The mask is the same in every call: the law of derivatives speaks of one function."""
    tf.random.set_seed(5)
    return N.dropout(a, 0.5)


def smooth_elu(a, alpha=1.0):
    return np.where(a > 0, a, alpha * np.expm1(np.minimum(a, 0)))


KEY = fixed(np.array([3, 4], "uint32"))


def mask_of(key, shape):
    return philox4x32.dropout_mask(key, shape, "float64", 0.5)


def normals(key):
    return philox4x32.normal(key, (3, 4), "float64")


SPECIMENS = [
    row(N.relu, x, lambda a: np.maximum(a, 0), analytic=False, elementwise=True),
    row(N.relu6, nonzero(6), lambda a: np.clip(5 * a, 0, 6), call=lambda a: N.relu6(5.0 * a), analytic=False),
    row(N.leaky_relu, x, lambda a: np.where(a > 0, a, 0.3 * a), alpha=0.3, analytic=False, elementwise=True),
    row(N.elu, x, lambda a: smooth_elu(a, 1.5), alpha=1.5, analytic=False, elementwise=True),
    row(N.selu, x, lambda a: 1.0507009873554805 * smooth_elu(a, 1.6732632423543772), analytic=False, elementwise=True),
    row(N.gelu, x, lambda a: a * special.ndtr(a), analytic=False, elementwise=True),
    row(
        N.gelu,
        x,
        lambda a: 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3))),
        "approximate",
        approximate=True,
        elementwise=True,
    ),
    row(N.silu, x, lambda a: a * special.expit(a), analytic=False, elementwise=True),
    row(N.silu, x, lambda a: a * special.expit(2 * a), "with a slope", beta=2.0, analytic=False),
    row(N.softsign, x, lambda a: a / (1 + np.abs(a)), analytic=False, elementwise=True),
    row(N.softmax, x, lambda a: special.softmax(a, -1)),
    row(N.softmax, x, lambda a: special.softmax(a, 0), "along the first axis", axis=0),
    row(N.log_softmax, x, lambda a: special.log_softmax(a, -1)),
    row(
        N.softmax_cross_entropy_with_logits,
        (probabilities(3, 4), x),
        lambda p, z: -(p * special.log_softmax(z, -1)).sum(-1),
    ),
    row(
        N.softmax_cross_entropy_with_logits,
        (positive(3, 4), x),
        lambda p, z: -(p * special.log_softmax(z, 0)).sum(0),
        "along the first axis",
        axis=0,
    ),
    row(N.sparse_softmax_cross_entropy_with_logits, (integers(0, 4, 3), x), sparse_cross_entropy),
    row(
        operations.sparse_softmax_cross_entropy_grad,
        (integers(0, 4, 3), x),
        lambda labels, logits: special.softmax(logits, -1) - np.eye(4)[labels],
    ),
    row(
        N.sigmoid_cross_entropy_with_logits,
        (probabilities(3, 4), x),
        lambda p, z: -(p * special.log_expit(z) + (1 - p) * special.log_expit(-z)),
        analytic=False,
    ),
    row(
        N.weighted_cross_entropy_with_logits,
        (probabilities(3, 4), x, positive(4)),
        lambda p, z, q: -(q * p * special.log_expit(z) + (1 - p) * special.log_expit(-z)),
        analytic=False,
    ),
    row(N.log_poisson_loss, (positive(3, 4), x), lambda z, c: np.exp(c) - z * c),
    row(
        N.log_poisson_loss,
        (fixed([0.5, 2.0, 3.5]), normal(3)),
        lambda z, c: np.exp(c) - z * c + np.where(z > 1, z * np.log(z) - z + np.log(2 * np.pi * z) / 2, 0),
        "in full",
        compute_full_loss=True,
        analytic=False,
    ),
    row(
        N.local_response_normalization,
        normal(1, 2, 2, 5),
        lambda a: a / (1.0 + 0.5 * np.stack([(a[..., max(i - 1, 0) : i + 2] ** 2).sum(-1) for i in range(5)], -1)) ** 0.75,
        depth_radius=1,
        alpha=0.5,
        beta=0.75,
    ),
    row(N.crelu, nonzero(3, 4), lambda a: np.maximum(np.concatenate([a, -a], 1), 0), analytic=False),
    row(
        N.weighted_moments,
        (distinct(3, 4), positive(3, 1)),
        lambda a, w: [mean := (w * a).sum(0) / w.sum(), (w * (a - mean) ** 2).sum(0) / w.sum()],
        call=lambda a, w: N.weighted_moments(a, [0], w),
        analytic=False,
    ),
    row(N.l2_loss, x, lambda a: (a**2).sum() / 2),
    row(N.compute_average_loss, x, lambda a: a.sum() / 10, global_batch_size=10),
    row(N.scale_regularization_loss, x, np.sum),
    row(N.bias_add, (normal(2, 3), normal(3)), np.add),
    row(N.bias_add, (normal(2, 3, 4), normal(3)), lambda a, b: a + b[:, None], "channels first", data_format="NCHW"),
    row(N.moments, distinct(3, 4), lambda a: [a.mean(0), a.var(0)], axes=[0], analytic=False),
    row(N.batch_normalization, (x, normal(4), positive(4), normal(4), positive(4)), normalized, variance_epsilon=1e-3),
    row(N.dropout, x, None, call=dropped, analytic=False),
    row(draws.times_dropout_mask, (x, KEY), lambda a, key: a * mask_of(key, (3, 1)), shape=(3, 1), rate=0.5, analytic=False),
    row(
        draws.times_gaussian,
        (x, KEY),
        lambda a, key: a * (0.3 * normals(key) + 1),
        shape=(3, 4),
        stddev=0.3,
        analytic=False,
        float32=False,  # whose numbers are made of other bits
    ),
]
