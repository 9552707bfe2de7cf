"""Where many 16-bit floats become one, float32 carries the sum: the result is that of float32, rounded once."""

import ml_dtypes
import numpy as np
import pytest
from in_one_test import in_one_test
from slow import sampled

import minikeras as tf
from minikeras import nest
from minikeras.compiler.recorder import Recorder
from minikeras.core.primitive import Primitive
from minikeras.core.registry import operations
from minikeras.core.tensor import Tensor
from minikeras.functions.convolution import adaptive_avg_pool

N = 10_000
DTYPES = ["float16", "bfloat16"]
SPACING = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The distance of 1 from the next number."""


def ones(*shape):
    return np.ones(shape)


def near_one(*shape):
    return np.random.default_rng(0).uniform(0.5, 1.5, shape)


def small(*shape):
    return np.random.default_rng(1).normal(size=shape)


def indices(high, *shape):
    return np.random.default_rng(2).integers(0, high, shape, dtype="int32")


LABELS = np.full((2, 1000), 1 / 1000)
CASES = {
    "reduce_sum": (lambda x: tf.reduce_sum(x), ones(N)),
    "reduce_sum over rows": (lambda x: tf.reduce_sum(x, 0), near_one(N, 2)),
    "reduce_mean": (lambda x: tf.reduce_mean(x, 0), near_one(N, 2)),
    "reduce_mean of large numbers": (lambda x: tf.reduce_mean(x), near_one(N) * 1000),
    "reduce_prod": (lambda x: tf.reduce_prod(x, 0), 1 + 1e-2 * small(N // 10, 2)),
    "reduce_max of equal numbers": (lambda x: tf.reduce_max(x), ones(N)),
    "reduce_min of equal numbers": (lambda x: tf.reduce_min(x, 0), ones(N, 2)),
    "reduce_logsumexp": (lambda x: tf.reduce_logsumexp(x, 0), small(N, 2)),
    "reduce_variance": (lambda x: tf.math.reduce_variance(x, 0), near_one(N, 2)),
    "reduce_std of large numbers": (lambda x: tf.math.reduce_std(x), near_one(N) * 1000),
    "norm": (lambda x: tf.norm(x), ones(N)),
    "norm of large numbers": (lambda x: tf.norm(x, axis=0), near_one(100, 2) * 1000),
    "norm of order 3": (lambda x: tf.norm(x, ord=3), near_one(N)),
    "l2_loss": (lambda x: tf.nn.l2_loss(x), near_one(N)),
    "l2_normalize": (lambda x: tf.math.l2_normalize(x), near_one(N)),
    "global_norm": (lambda x: tf.linalg.global_norm([x, x]), near_one(N)),
    "clip_by_norm": (lambda x: tf.clip_by_norm(x, 2.0), near_one(N)),
    "clip_by_global_norm": (lambda x: tf.clip_by_global_norm([x], 2.0)[0], near_one(N)),
    "moments": (lambda x: tf.nn.moments(x, [0]), near_one(N, 2)),
    "add_n": (lambda *xs: tf.add_n(xs), *near_one(300, 2)),
    "cumsum": (lambda x: tf.cumsum(x), ones(N)),
    "segment_prod": (lambda x: tf.math.segment_prod(x, [0] * (N // 10)), 1 + 1e-2 * small(N // 10)),
    "cumprod": (lambda x: tf.math.cumprod(x), 1 + 1e-2 * small(300)),
    "cumulative_logsumexp": (lambda x: tf.math.cumulative_logsumexp(x), small(N)),
    "softmax": (lambda x: tf.nn.softmax(x), small(2, 2000)),
    "log_softmax": (lambda x: tf.nn.log_softmax(x), small(2, 2000)),
    "softmax_cross_entropy": (lambda x, y: tf.nn.softmax_cross_entropy_with_logits(y, x), small(2, 1000), LABELS),
    "sparse_softmax_cross_entropy": (
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([3, 500], x),
        small(2, 5000),
    ),
    "sparsemax": (lambda x: tf.keras.activations.sparsemax(x), 1e-3 * small(2, 3000)),
    "adjust_contrast": (lambda x: tf.stop_gradient(tf.image.adjust_contrast(x, 2.0)), near_one(50, 50, 1)),
    "matmul": (lambda a, b: a @ b, near_one(2, N), near_one(N, 3)),
    "matvec": (lambda a, b: tf.linalg.matvec(a, b), near_one(2, N), near_one(N)),
    "tensordot": (lambda a, b: tf.tensordot(a, b, 1), near_one(2, N), near_one(N, 3)),
    "einsum": (lambda a, b: tf.einsum("ij,kj->ik", a, b), near_one(2, N), near_one(3, N)),
    "trace": (lambda x: tf.linalg.trace(x), near_one(500, 500)),
    "a bias": (lambda x, b: x + b, near_one(N, 2), small(2)),
    "a factor of rows": (lambda x, b: x * b, near_one(N, 2), small(1, 2)),
    "broadcast_to": (lambda x: tf.broadcast_to(x, (N, 2)), small(2)),
    "tile": (lambda x: tf.tile(x, [N, 1]), small(1, 2)),
    "conv2d": (lambda x, k: tf.nn.conv2d(x, k, 1, "VALID"), near_one(1, 40, 40, 5), near_one(36, 36, 5, 1)),
    "depthwise_conv2d": (
        lambda x, k: tf.nn.depthwise_conv2d(x, k, 1, "VALID"),
        *(near_one(1, 40, 40, 2), near_one(30, 30, 2, 2)),
    ),
    "adaptive_avg_pool": (lambda x: adaptive_avg_pool(x, 3), near_one(1, 1000, 1)),
    "resize": (lambda x: tf.image.resize(x, [2, 2], antialias=True), near_one(60, 60, 1)),
    "conv2d_transpose": (
        lambda x, k: tf.nn.conv2d_transpose(x, k, [1, 20, 20, 1], 1, padding="SAME"),
        near_one(1, 20, 20, 40),
        near_one(9, 9, 1, 40),
    ),
    "avg_pool": (lambda x: tf.nn.avg_pool(x, 1000, 1, "VALID"), ones(1, 1000, 1)),
    "avg_pool of large numbers": (lambda x: tf.nn.avg_pool(x, 1000, 1, "SAME"), near_one(1, 1200, 1) * 1000),
    "max_pool of equal windows": (lambda x: tf.nn.max_pool(x, 600, 1, "VALID"), np.eye(1, 1200, 600)[..., None]),
    "gather of one row": (lambda x: tf.gather(x, np.zeros(N, "int32")), near_one(3, 2)),
    "gather of many rows": (lambda x: tf.gather(x, indices(3, N), axis=1), near_one(2, 3)),
    "gather_nd": (lambda x: tf.gather_nd(x, indices(3, N, 1)), near_one(3, 2)),
    "take_along_axis": (lambda x: tf.take_along_axis(x, np.zeros((1, N), "int32"), 1), near_one(1, 3)),
    "scatter_nd": (lambda x: tf.scatter_nd(indices(3, N, 1), x, [3]), ones(N)),
    "tensor_scatter_nd_add": (lambda x, u: tf.tensor_scatter_nd_add(x, indices(3, N, 1), u), ones(3), ones(N)),
    "batch_normalization": (
        lambda x, mean, scale: tf.nn.batch_normalization(x, mean, tf.ones_like(mean), None, scale, 1e-3),
        *(near_one(N, 2), near_one(2), near_one(2)),
    ),
    "dense": (lambda x, k, b: operations.affine(x, k, b), near_one(4, N), near_one(N, 2), near_one(2)),
}


def inputs_of(name, dtype):
    """The inputs in a 16-bit dtype, and the same numbers in float32."""
    arrays = [np.asarray(x).astype(getattr(ml_dtypes, dtype, dtype)) for x in CASES[name][1:]]
    return [Tensor(x) for x in arrays], [Tensor(x.astype("float32")) for x in arrays]


def run(function, xs, seeds=None):
    """The results, and the gradients for random cotangents."""
    with tf.GradientTape() as tape:
        tape.watch(xs)
        results = nest.flatten(function(*xs))
    seeds = seeds or [np.asarray(np.random.default_rng(3).uniform(0.5, 1.5, y.shape), "float32") for y in results]
    seeds = [tf.cast(seed, y.dtype) for seed, y in zip(seeds, results, strict=True)]
    return results, tape.gradient(results, xs, seeds), seeds


def check_rounded(actual, exact, dtype):
    """`actual` is `exact`, rounded to the dtype: within one of its spacings of the sum of what is added up."""
    assert actual.dtype == dtype and actual.shape == exact.shape
    found, wanted = np.asarray(actual.numpy(), "float64"), np.asarray(exact.numpy(), "float64")
    assert np.isfinite(wanted).all()
    with np.errstate(over="ignore"):
        rounded = wanted.astype(getattr(ml_dtypes, dtype, dtype)).astype("float64")
    scale = np.abs(wanted).max(initial=0)
    finite = np.isfinite(rounded)  # some sums are beyond float16
    np.testing.assert_array_equal(np.isfinite(found), finite)
    np.testing.assert_allclose(found[finite], rounded[finite], rtol=2 * SPACING[dtype], atol=1e-3 * SPACING[dtype] * scale)


@in_one_test(compiled=[False, True], dtype=DTYPES)
@pytest.mark.parametrize("name", sampled(CASES, 2))
def test_a_reduction_of_sixteen_bits_is_that_of_float32_rounded_once(name, dtype, compiled):
    function = CASES[name][0]
    narrow, wide = inputs_of(name, dtype)
    step = tf.function(lambda *xs: run(function, xs)[:2]) if compiled else lambda *xs: run(function, xs)[:2]
    results, gradients = step(*narrow)
    if compiled:
        results, gradients = step(*narrow)  # the first run only records
    seeds = run(function, narrow)[2]
    exact, slopes, _ = run(function, wide, [tf.cast(seed, "float32") for seed in seeds])
    for y, z in zip(results, exact, strict=True):
        check_rounded(y, z, dtype)
    for g, h in zip(gradients, slopes, strict=True):
        if h is None:
            assert g is None
        else:
            check_rounded(tf.convert_to_tensor(g), tf.convert_to_tensor(h), dtype)


@in_one_test(dtype=DTYPES, name=CASES)
def test_a_compiled_reduction_has_the_bits_of_the_eager_one(name, dtype):
    function, (narrow, _) = CASES[name][0], inputs_of(name, dtype)
    compiled = tf.function(lambda *xs: run(function, xs)[:2])
    compiled(*narrow)
    for ours, eager in zip(nest.flatten(compiled(*narrow)), nest.flatten(run(function, narrow)[:2]), strict=True):
        assert ours is eager is None or np.array_equal(tf.convert_to_tensor(ours).numpy(), tf.convert_to_tensor(eager).numpy())


def test_every_operation_that_accumulates_is_among_the_cases():
    seen = set()
    for name in CASES:
        narrow, _ = inputs_of(name, "float16")
        with Recorder(narrow, strict=False) as recorder:
            run(CASES[name][0], narrow)
        seen |= {record.primitive.name for record in recorder.records}
    known = {p.name for p in vars(operations).values() if isinstance(p, Primitive) and p.accumulates}
    assert known - seen == set()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "Lamb", "Adafactor", "Muon", "RMSprop"])
def test_weights_of_sixteen_bits_take_the_step_that_float32_takes(optimizer, dtype):
    start, slope = near_one(200, 60), small(200, 60)
    made = {}
    for kind in (dtype, "float32"):
        array = start.astype(getattr(ml_dtypes, dtype, dtype)).astype(getattr(ml_dtypes, kind, kind))
        w = tf.Variable(array)
        chosen = getattr(tf.keras.optimizers, optimizer)(0.1)
        chosen.apply_gradients([(tf.cast(slope.astype(getattr(ml_dtypes, dtype, dtype)), kind), w)])
        made[kind] = w
    assert made[dtype].dtype == dtype
    np.testing.assert_allclose(
        made[dtype].numpy().astype("float32"), made["float32"].numpy(), rtol=SPACING[dtype], atol=SPACING[dtype]
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("limit", ["clipnorm", "global_clipnorm"])
def test_gradients_of_sixteen_bits_are_clipped_by_the_norm_that_float32_has(limit, dtype):
    w = tf.Variable(tf.zeros([N], dtype))
    tf.keras.optimizers.SGD(1.0, **{limit: 1.0}).apply_gradients([(tf.ones([N], dtype), w)])
    np.testing.assert_allclose(w.numpy().astype("float32"), -0.01, rtol=SPACING[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_repeated_rows_of_a_scatter_add_up(dtype):
    v = tf.Variable(tf.zeros([2], dtype))
    v.scatter_add(tf.IndexedSlices(tf.ones([N], dtype), tf.zeros([N], "int32")))
    np.testing.assert_allclose(v.numpy().astype("float32"), [N, 0], rtol=SPACING[dtype])
    slices = tf.IndexedSlices(tf.ones([N], dtype), tf.zeros([N], "int32"), [2])
    np.testing.assert_allclose(tf.convert_to_tensor(slices).numpy().astype("float32"), [N, 0], rtol=SPACING[dtype])


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_shares_under_a_mixed_policy_sum_to_one(policy):
    layer = tf.keras.layers.Softmax(dtype=policy)
    shares = layer(tf.random.normal([4, 2000]))
    np.testing.assert_allclose(tf.reduce_sum(tf.cast(shares, "float32"), -1).numpy(), 1.0, rtol=1e-2)
    mean = tf.keras.layers.GlobalAveragePooling1D(dtype=policy)
    found = mean(tf.fill([1, 3000, 2], 900.0), mask=tf.ones([1, 3000], "bool"))
    np.testing.assert_allclose(found.numpy().astype("float32"), 900.0, rtol=1e-2)
