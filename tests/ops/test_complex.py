"""Complex numbers: every public function is right for them, value and gradient, or refuses them and says so.

Gradients follow one convention: <v, J^T u> = Re sum conj(u) df for a step v, so that of a real loss is where it rises fastest.
"""

import functools

import laws
import numpy as np
import pytest
from in_one_test import in_one_test
from scipy import linalg
from specimens import SPECIMENS, products
from specimens.table import fixed, row

import minikeras as tf
from minikeras.functions import elementwise

M, L, N = tf.math, tf.linalg, tf.nn
z = fixed([1 + 1j, -0.5 + 2j, 2 - 0.3j, -1.2 - 0.7j])
w = fixed([2 - 1j, 1 + 0.5j, -0.7 - 0.2j, 0.4 + 1.5j])
a = fixed([[2 + 1j, 0.5j, 1.0], [1 - 1j, 3, -1j], [0.5, 1j, 2 - 1j]])
vector = fixed([1j, 2.0, 3 - 1j])
hermitian = fixed([[3, 1j], [-1j, 2.0]])


def of(function, reference, sampler=z, name="", call=None, **facts):
    return row(function, sampler, reference, name, call=call, analytic=False, second_order=False, **facts)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def norm(x):
    return np.sqrt((np.abs(x) ** 2).sum())


RIGHT = [
    *(
        of(getattr(module, name), reference)
        for module, name, reference in (
            *(
                (tf, name, getattr(np, numpy))
                for name, numpy in (("abs", "abs"), ("negative", "negative"), ("square", "square"))
            ),
            *((tf, name, getattr(np, name)) for name in ("cos", "cosh", "exp", "sin", "sinh", "sqrt", "tan", "tanh")),
            *((tf, f"a{name}", getattr(np, f"arc{name}")) for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh")),
            *(
                (M, name, getattr(np, name))
                for name in ("conj", "expm1", "log", "log1p", "angle", "real", "imag", "reciprocal")
            ),
            (tf, "sign", lambda x: x / np.abs(x)),
            (tf, "sigmoid", sigmoid),
            (M, "rsqrt", lambda x: 1 / np.sqrt(x)),
            (N, "silu", lambda x: x * sigmoid(x)),
            (tf, "reduce_sum", np.sum),
            (tf, "reduce_mean", np.mean),
            (tf, "reduce_prod", np.prod),
            (tf, "cumsum", np.cumsum),
            (M, "cumprod", np.cumprod),
            (M, "reduce_variance", np.var),
            (M, "reduce_std", np.std),
            (M, "reduce_euclidean_norm", norm),
            (tf, "norm", norm),
            (M, "l2_normalize", lambda x: x / norm(x)),
            (L, "normalize", lambda x: [x / norm(x), norm(x)[None]]),
            (tf, "identity", lambda x: x),
            (L, "diag", np.diag),
        )
    ),
    *(
        of(getattr(module, name), reference, (z, w))
        for module, name, reference in (
            *((tf, name, getattr(np, name)) for name in ("add", "subtract", "multiply", "divide")),
            (tf, "truediv", np.divide),
            (tf, "pow", np.power),
            (M, "squared_difference", lambda x, y: np.abs(x - y) ** 2 + 0j),
            (M, "divide_no_nan", np.divide),
            (M, "multiply_no_nan", np.multiply),
            (M, "xlogy", lambda x, y: x * np.log(y)),
            (M, "xlog1py", lambda x, y: x * np.log1p(y)),
            (M, "xdivy", np.divide),
        )
    ),
    of(M.reciprocal_no_nan, lambda x: 1 / x),
    *(
        of(
            function := getattr(M, prefix + name),
            reference,
            call=functools.partial(function, segment_ids=[0, 0, 0, 1], **count),
        )
        for prefix, count in (("segment_", {}), ("unsorted_segment_", {"num_segments": 2}))
        for name, reference in (
            ("sum", lambda x: np.array([x[:3].sum(), x[3]])),
            ("mean", lambda x: np.array([x[:3].mean(), x[3]])),
            ("prod", lambda x: np.array([x[:3].prod(), x[3]])),
        )
    ),
    of(
        M.unsorted_segment_sqrt_n,
        lambda x: np.array([x[:2].sum() / np.sqrt(2), x[2:].sum() / np.sqrt(2)]),
        call=lambda x: M.unsorted_segment_sqrt_n(x, [0, 0, 1, 1], 2),
    ),
    of(
        N.weighted_moments,
        lambda x: [x[:2].mean(), (np.abs(x[:2] - x[:2].mean()) ** 2).mean() + 0j],
        call=lambda x: N.weighted_moments(x, [0], tf.constant([1.0, 1, 0, 0], "complex128")),
    ),
    of(M.polyval, lambda x, y: (x * x + y) * x + 2, (z, w), call=lambda x, y: M.polyval([x, y, 2.0], x)),
    of(tf.scalar_mul, lambda x: 2 * x, call=lambda x: tf.scalar_mul(2.0, x)),
    of(tf.norm, lambda x: np.abs(x).sum(), name="of order one", ord=1),
    of(tf.norm, lambda x: np.abs(x).max(), name="of order infinity", ord=np.inf),
    of(tf.norm, lambda x: (np.abs(x) ** 3).sum() ** (1 / 3), name="of order three", ord=3),
    of(N.moments, lambda x: [x.mean(), x.var()], axes=[0]),
    of(
        N.batch_normalization,
        lambda x, m: (x - m) / np.sqrt(2 + 0j),
        (z, w),
        call=lambda x, m: N.batch_normalization(x, m, tf.ones_like(m), None, None, 1.0),
    ),
    of(N.bias_add, np.add, (a, vector)),
    of(tf.matmul, np.matmul, (a, a)),
    of(L.matvec, np.matmul, (a, vector)),
    of(tf.einsum, lambda x, y: np.einsum("ij,kj->ik", x, y), (a, a), call=lambda x, y: tf.einsum("ij,kj->ik", x, y)),
    of(tf.tensordot, lambda x, y: np.tensordot(x, y, 1), (a, a), axes=1),
    of(L.cross, np.cross, (vector, fixed([1.0, 2j, 3 + 0.5j]))),
    of(L.solve, np.linalg.solve, (a, fixed([[1j], [2.0], [1 + 1j]]))),
    of(L.lstsq, lambda x, y: np.linalg.pinv(x) @ y, (fixed([[1j, 2], [3, 1 - 1j], [0.5, 1]]), fixed([[1j], [2.0], [1 + 1j]]))),
    of(L.triangular_solve, lambda x, y: np.linalg.solve(np.tril(x), y), (a, fixed([[1j], [2.0], [1 + 1j]]))),
    of(L.inv, np.linalg.inv, a),
    of(L.det, np.linalg.det, a),
    of(L.slogdet, lambda x: list(np.linalg.slogdet(x)), a, call=lambda x: list(L.slogdet(x))),
    of(L.trace, np.trace, a),
    of(L.diag_part, np.diag, a),
    of(L.set_diag, lambda x, d: x - np.diag(np.diag(x)) + np.diag(d), (a, vector)),
    of(L.band_part, np.tril, a, call=lambda x: L.band_part(x, -1, 0)),
    of(L.cholesky, np.linalg.cholesky, hermitian, call=lambda x: L.cholesky((x + L.matrix_transpose(M.conj(x))) * 0.5)),
    of(L.eigvalsh, np.linalg.eigvalsh, hermitian, call=lambda x: L.eigvalsh((x + L.matrix_transpose(M.conj(x))) * 0.5)),
    of(L.svd, lambda x: np.linalg.svd(x, compute_uv=False), a, "of values alone", call=lambda x: L.svd(x, compute_uv=False)),
    of(L.pinv, np.linalg.pinv, a),
    of(L.qr, lambda x: list(np.linalg.qr(x)), a, call=lambda x: list(L.qr(x))),
    of(L.eigh, np.linalg.eigvalsh, hermitian, call=lambda x: L.eigh((x + L.matrix_transpose(M.conj(x))) * 0.5)[0]),
    of(L.global_norm, norm, call=lambda x: L.global_norm([x])),
    of(tf.add_n, lambda x: 2 * x, call=lambda x: tf.add_n([x, x])),
    of(tf.where, lambda x, y: np.where(x.real > 0, x, y), (z, w), call=lambda x, y: tf.where(M.real(x) > 0, x, y)),
    of(tf.linspace, lambda x: np.linspace(x[0], x[1], 3), call=lambda x: tf.linspace(x[0], x[1], 3)),
    of(tf.cast, np.real, call=lambda x: tf.cast(x, "float64")),
    of(tf.saturate_cast, np.real, call=lambda x: tf.saturate_cast(x, "float64")),
    of(tf.complex, lambda x: x, call=lambda x: tf.complex(M.real(x), M.imag(x))),
    of(tf.gather, lambda x: x[[1, 1]], indices=[1, 1]),
    of(
        tf.scatter_nd,
        lambda x: np.array([x[0] + x[1] + x[2], x[3]]),
        call=lambda x: tf.scatter_nd([[0], [0], [0], [1]], x, [2]),
    ),
    of(L.adjoint, lambda x: x.conj().T, a),
    of(L.lu, lambda x: scipy_lu(x), a, call=lambda x: L.lu(x).lu),
    of(L.lu_reconstruct, lambda x: x, a, call=lambda x: L.lu_reconstruct(*L.lu(x))),
    of(L.lu_solve, np.linalg.solve, (a, fixed([[1j], [2.0], [1 + 1j]])), call=lambda x, y: L.lu_solve(*L.lu(x), y)),
    of(L.lu_matrix_inverse, np.linalg.inv, a, call=lambda x: L.lu_matrix_inverse(*L.lu(x))),
    of(L.eig, np.linalg.eigvals, a, call=lambda x: L.eig(x)[0]),
    of(L.eigvals, np.linalg.eigvals, a),
    of(L.sqrtm, lambda x: linalg.sqrtm(x), a, tolerance=1e-10),
    of(L.logm, lambda x: products.logm_of(x), a, tolerance=1e-10),
    of(L.matrix_rank, np.linalg.matrix_rank, a, smooth=False),
    of(L.expm, lambda x: _expm(x), fixed([[0.1j, 0.5], [0.2, -0.3 + 0.1j]]), tolerance=1e-10),
]


def _expm(x):
    return linalg.expm(x)


def scipy_lu(x):
    return linalg.lu_factor(x)[0]


REFUSED = {
    name: (lambda function: lambda x: function(x))(function)
    for module, names in (
        (tf, "floor round reduce_max reduce_min reduce_logsumexp argmax argmin argsort sort"),
        (M, "ceil rint erf erfc erfinv erfcinv ndtri lgamma digamma lbeta softplus log_sigmoid top_k bincount softsign"),
        (M, "bessel_i0 bessel_i0e bessel_i1 bessel_i1e cumulative_logsumexp is_non_decreasing is_strictly_increasing"),
        (N, "relu relu6 leaky_relu elu selu gelu softsign softmax log_softmax l2_loss"),
    )
    for name in names.split()
    if (function := getattr(module, name, None)) is not None
} | {
    "maximum": lambda x: tf.maximum(x, x),
    "minimum": lambda x: tf.minimum(x, 1.0),
    "less": lambda x: x < x,
    "less_equal": lambda x: x <= 1.0,
    "greater": lambda x: tf.greater(x, x),
    "greater_equal": lambda x: tf.greater_equal(x, x),
    "floordiv": lambda x: x // x,
    "floormod": lambda x: x % x,
    "atan2": lambda x: tf.atan2(x, x),
    "zeta": lambda x: M.zeta(2.0, x),
    "polygamma": lambda x: M.polygamma(2.0, x),
    "logaddexp": lambda x: elementwise.logaddexp(x, x),
    "nextafter": lambda x: M.nextafter(x, x),
    **{
        name: lambda x, name=name: getattr(M, name)(x, [0, 0, 1, 1], *([2] if name.startswith("un") else []))
        for name in ("segment_max", "segment_min", "unsorted_segment_max", "unsorted_segment_min")
    },
    "in_top_k": lambda x: M.in_top_k([0], x[None], 1),
    "crelu": lambda x: N.crelu(x),
    "local_response_normalization": lambda x: N.local_response_normalization(x[None, None, None]),
    "weighted_cross_entropy_with_logits": lambda x: N.weighted_cross_entropy_with_logits(x, x, 2.0),
    "log_poisson_loss": lambda x: N.log_poisson_loss(x, x),
    "tensor_scatter_nd_max": lambda x: tf.tensor_scatter_nd_max(x, [[0]], x[:1]),
    "tensor_scatter_nd_min": lambda x: tf.tensor_scatter_nd_min(x, [[0]], x[:1]),
    "clip_by_value": lambda x: tf.clip_by_value(x, 0.0, 1.0),
    "clip_by_norm": lambda x: tf.clip_by_norm(x, 1.0),
    "clip_by_global_norm": lambda x: tf.clip_by_global_norm([x], 1.0),
    "softmax_cross_entropy_with_logits": lambda x: N.softmax_cross_entropy_with_logits(x, x),
    "sparse_softmax_cross_entropy_with_logits": lambda x: N.sparse_softmax_cross_entropy_with_logits(0, x),
    "sigmoid_cross_entropy_with_logits": lambda x: N.sigmoid_cross_entropy_with_logits(x, x),
    "convolution": lambda x: N.convolution(tf.reshape(x, [1, 4, 1]), tf.reshape(x, [4, 1, 1])),
    "depthwise_conv2d": lambda x: N.depthwise_conv2d(
        tf.reshape(x, [1, 2, 2, 1]), tf.reshape(x, [2, 2, 1, 1]), [1, 1, 1, 1], "SAME"
    ),
    "conv1d_transpose": lambda x: N.conv1d_transpose(tf.reshape(x, [1, 4, 1]), tf.reshape(x, [4, 1, 1]), [1, 4, 1], 1, "SAME"),
    **{
        f"{kind}_pool1d": lambda x, kind=kind: getattr(N, f"{kind}_pool1d")(tf.reshape(x, [1, 4, 1]), 2, 1, "VALID")
        for kind in ("avg", "max")
    },
    **{
        f"{kind}_pool2d": lambda x, kind=kind: getattr(N, f"{kind}_pool2d")(tf.reshape(x, [1, 2, 2, 1]), 2, 1, "VALID")
        for kind in ("avg", "max")
    },
    "conv1d": lambda x: N.conv1d(tf.reshape(x, [1, 4, 1]), tf.reshape(x, [4, 1, 1]), 1, "SAME"),
    "conv2d": lambda x: N.conv2d(tf.reshape(x, [1, 2, 2, 1]), tf.reshape(x, [2, 2, 1, 1]), 1, "SAME"),
    "conv2d_transpose": lambda x: N.conv2d_transpose(
        tf.reshape(x, [1, 2, 2, 1]), tf.reshape(x, [2, 2, 1, 1]), [1, 2, 2, 1], 1, "SAME"
    ),
    "avg_pool": lambda x: N.avg_pool(tf.reshape(x, [1, 4, 1]), 2, 1, "VALID"),
    "max_pool": lambda x: N.max_pool(tf.reshape(x, [1, 4, 1]), 2, 1, "VALID"),
    "dropout": lambda x: N.dropout(x, 0.5),
    "histogram_fixed_width": lambda x: tf.histogram_fixed_width(x, [0.0, 1.0]),
    "searchsorted": lambda x: tf.searchsorted(x, x),
    "range": lambda x: tf.range(x[0]),
    "adjust_contrast": lambda x: tf.image.adjust_contrast(tf.reshape(x, [2, 2, 1]), 2.0),
    "bitwise_and": lambda x: x & x,
}


def each(specimens):
    return in_one_test(specimen=specimens)


@each(RIGHT)
def test_complex_values_are_numpy_s(specimen):
    laws.forward_is_the_reference(specimen)


@each([one for one in RIGHT if one.smooth])
def test_complex_gradients_are_the_numerical_derivative(specimen):
    laws.gradient_is_the_derivative(specimen)
    laws.forward_and_backward_are_transposes(specimen)


@in_one_test(compiled=[False, True], dtype=["complex64", "complex128"], name=REFUSED)
def test_what_has_no_meaning_for_complex_numbers_refuses_them(name, dtype, compiled):
    x = tf.constant(np.array([1 + 1j, -0.5 + 2j, 2 - 0.3j, -1.2 - 0.7j], dtype))
    call = tf.function(REFUSED[name]) if compiled else REFUSED[name]
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError), match="complex"):
        call(x)


WITHOUT_ARITHMETIC = {
    # They move, count, make or test elements, of whatever dtype, or are made of functions that are listed.
    *("stop_gradient", "zeros_like", "ones_like", "transpose", "reshape", "concat", "stack", "unstack", "split", "tile", "pad"),
    *("adaptive_avg_pool", "adaptive_max_pool"),
    *("roll", "reverse", "expand_dims", "squeeze", "broadcast_to", "fill", "one_hot", "shape", "size", "rank", "slice"),
    *("strided_slice", "gather_nd", "tensor_scatter_nd_add", "tensor_scatter_nd_sub", "tensor_scatter_nd_update"),
    *("boolean_mask", "take_along_axis", "meshgrid", "ensure_shape", "repeat", "unique", "equal", "not_equal", "is_nan"),
    *(
        "is_tensor",
        "confusion_matrix",
        "tensor_diag_part",
        "depth_to_space",
        "space_to_depth",
        "reverse_sequence",
        "dynamic_partition",
        "dynamic_stitch",
        "count_nonzero",
        "zero_fraction",
        "slice_",
        "tensor_diag",
        "cholesky_solve",
        "logdet",
        "is_inf",
        "is_finite",
        "reduce_any",
        "reduce_all",
        "bitcast",
        "embedding_lookup",
        "matrix_transpose",
    ),
}


def test_every_function_of_numbers_is_listed():
    """A new function needs a row above, and a decision."""
    listed = {id(one.operation) for one in RIGHT} | {
        id(getattr(module, name))
        for module in (tf, M, N, L, tf.image, elementwise)
        for name in REFUSED
        if hasattr(module, name)
    }
    real_only = {one.operation for one in SPECIMENS if any(x.dtype.kind == "f" for x in one.sample())}
    missing = sorted(
        getattr(f, "__name__", "")
        for f in real_only
        if id(f) not in listed
        and getattr(f, "__module__", "").startswith("minikeras.functions")
        and f.__name__ not in WITHOUT_ARITHMETIC
    )
    assert missing == []


def test_a_zero_has_no_direction_and_no_gradient_of_one():
    x = tf.Variable(np.array([0j, 3 + 4j]))
    with tf.GradientTape() as tape:
        y = tf.sign(x)
    assert y.numpy().tolist() == [0, 0.6 + 0.8j] and tape.gradient(y, x).numpy()[0] == 0
