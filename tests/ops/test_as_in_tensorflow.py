"""Uses of functions that programs for TensorFlow rely on; the expected values are TensorFlow 2.21's."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import InvalidArgumentError, ShapeError

cube = tf.reshape(tf.range(8), [2, 2, 2])


# Operators ------------------------------------------------------------------------------------------------------------


class Other:
    """A number of another library, with operators of its own."""

    def __radd__(self, other):
        return "radd"

    __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = __radd__


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "//", "%", "**", "@"])
@pytest.mark.parametrize("operand", [tf.ones([2, 2]), tf.Variable(tf.ones([2, 2]))], ids=["Tensor", "Variable"])
def test_an_operand_that_is_no_tensor_may_answer_itself(operator, operand):
    assert eval(f"x {operator} y", {"x": operand, "y": Other()}) == "radd"


def test_an_operand_that_cannot_answer_is_named():
    with pytest.raises(ValueError, match="unsupported type"):
        tf.ones([1]) + object()
    with pytest.raises(ValueError, match="unsupported type"):
        tf.add(tf.ones([1]), Other())


def test_the_errors_of_operands_that_are_tensors_stay():
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.ones([1]) + tf.ones([1], "float64")
    with pytest.raises(ValueError, match="unsupported type"):
        tf.ones([1]) + None


# Casts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "dtype", "target", "shape"),
    [
        ([1.0, 2.0], "float32", "uint8", (2, 4)),
        (np.ones((3, 4)), "uint8", "float32", (3,)),
        (np.ones((3, 2)), "float32", "complex64", (3,)),
        (np.zeros((0, 4)), "int8", "int32", (0,)),
        (7, "int64", "int32", (2,)),
        (np.ones((2, 3)), "float32", "int32", (2, 3)),
    ],
)
def test_a_bitcast_to_another_size_moves_bytes_into_or_out_of_a_last_axis(values, dtype, target, shape):
    array = np.asarray(values, dtype)
    result = tf.bitcast(tf.constant(array), target)
    assert result.shape == shape and result.dtype == target
    assert result.numpy().tobytes() == array.tobytes()
    np.testing.assert_array_equal(tf.bitcast(result, dtype).numpy(), array)


@pytest.mark.parametrize("x", [tf.zeros([3, 5], "uint8"), tf.zeros([], "uint8"), tf.zeros([4], "bool")])
def test_a_bitcast_needs_the_bytes_of_whole_numbers(x):
    with pytest.raises(InvalidArgumentError, match="bitcast"):
        tf.bitcast(x, "float32")


def test_a_saturating_cast_reaches_every_dtype():
    x = tf.constant([1e10, np.inf, -np.inf, 1.0])
    assert tf.saturate_cast(x, "bfloat16").numpy().astype("float32").tolist() == pytest.approx(
        [9.9992207e9, 3.3895314e38, -3.3895314e38, 1.0]
    )
    assert tf.saturate_cast(x, "float16").numpy().tolist() == [65504.0, 65504.0, -65504.0, 1.0]
    assert tf.saturate_cast(tf.constant([1e300], "float64"), "bfloat16").numpy().astype("float32") == pytest.approx(
        3.3895314e38
    )
    assert tf.saturate_cast(tf.constant([3e9, -3e9]), "int32").numpy().tolist() == [2147483520, -(2**31)]
    assert tf.saturate_cast([1.0, 2.0], "complex64").numpy().tolist() == [1 + 0j, 2 + 0j]
    assert tf.saturate_cast([1 + 2j, 300 + 1j], "uint8").numpy().tolist() == [1, 255]
    assert tf.saturate_cast(tf.constant([5.0], "bfloat16"), "int8").numpy().tolist() == [5]
    assert tf.saturate_cast(tf.constant([True, False]), "float32").numpy().tolist() == [1.0, 0.0]


# Picking --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("indices", "batch_dims", "expected"),
    [
        ([[1], [0]], 1, [[2, 3], [4, 5]]),
        ([[[1], [0]], [[0], [0]]], 1, [[[2, 3], [0, 1]], [[4, 5], [4, 5]]]),
        ([[1, 1], [0, 1]], 1, [3, 5]),
        ([[[1], [0]], [[0], [1]]], 2, [[1, 2], [4, 7]]),
    ],
)
def test_gather_nd_picks_for_each_element_of_a_batch(indices, batch_dims, expected):
    assert tf.gather_nd(cube, indices, batch_dims=batch_dims).numpy().tolist() == expected


def test_gather_nd_of_a_batch_has_a_gradient_and_checks_its_indices():
    x = tf.Variable(tf.cast(cube, "float32"))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather_nd(x, [[1], [1]], batch_dims=1) * [[1.0, 2.0], [3.0, 4.0]])
    gradient = tf.convert_to_tensor(tape.gradient(y, x))
    assert gradient.numpy().tolist() == [[[0, 0], [1, 2]], [[0, 0], [3, 4]]]
    with pytest.raises(InvalidArgumentError, match="gather_nd"):
        tf.gather_nd(cube, [[2], [0]], batch_dims=1)
    with pytest.raises(InvalidArgumentError, match="batch_dims"):
        tf.gather_nd(cube, [[0], [0], [0]], batch_dims=1)


def test_a_mask_may_choose_from_empty_tensors_and_start_at_no_axis():
    assert tf.boolean_mask(np.ones((2, 0)), [True, False]).shape == (1, 0)
    assert tf.boolean_mask(np.ones((2, 0)), np.ones((2, 0), bool)).shape == (0,)
    assert tf.boolean_mask([1, 2, 3], [True, False, True], axis=None).numpy().tolist() == [1, 3]
    assert tf.boolean_mask([[1, 2], [3, 4]], [True, False], axis=-1).numpy().tolist() == [[1], [3]]


# Matrices and windows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (4, 2, 3), (2, 2)])
def test_set_diag_of_matrices_that_are_not_square(shape):
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    diagonal = -np.ones((*shape[:-2], min(shape[-2:])), "float32")
    expected = x.copy()
    for matrix in expected.reshape(-1, *shape[-2:]):
        np.fill_diagonal(matrix, -1)
    one, two = tf.Variable(x), tf.Variable(diagonal)
    with tf.GradientTape() as tape:
        y = tf.linalg.set_diag(one, two)
    assert y.numpy().tolist() == expected.tolist()
    gradients = tape.gradient(y, [one, two])
    assert gradients[0].numpy().tolist() == (expected != -1).astype("float32").tolist()
    assert gradients[1].numpy().tolist() == np.ones_like(diagonal).tolist()


@pytest.mark.parametrize("k", [1, -1, (1, 1), [1]])
def test_one_diagonal_beside_an_axis_of_one_is_no_band(k):
    x, n = tf.reshape(tf.range(6.0), [2, 1, 3]), 4
    found = tf.linalg.diag(x, k=k)
    offset = k if isinstance(k, int) else k[0]
    assert found.numpy().tolist() == [[np.diag(row, offset).tolist() for row in one] for one in x.numpy()]
    assert tf.linalg.diag(x, k=k, num_rows=n, num_cols=n, padding_value=7.0).shape == (2, 1, n, n)
    assert tf.linalg.set_diag(tf.zeros([2, 1, n, n]), x, k=k).numpy().tolist() == found.numpy().tolist()
    assert tf.linalg.diag_part(found, k=k).numpy().tolist() == x.numpy().tolist()


def test_diagonals_for_more_matrices_than_there_are_are_refused():
    for k, shape in ((0, (2, 1, 3)), ((-1, -1), (2, 1, 2)), ((0, 1), (3, 2, 3))):
        with pytest.raises(ShapeError, match="set_diag"):
            tf.linalg.set_diag(tf.zeros([2, 3, 3]), tf.zeros(shape), k=k)


@pytest.mark.parametrize("k", [0, 1, (-1, 0)])
def test_bools_stand_on_diagonals(k):
    matrix = tf.constant([[True, False], [True, True]])
    diagonal = tf.linalg.diag_part(matrix, k=k)
    assert tf.linalg.set_diag(matrix, diagonal, k=k).numpy().tolist() == matrix.numpy().tolist()
    laid = tf.linalg.diag(diagonal, k=k)
    assert laid.dtype == "bool" and tf.linalg.diag_part(laid, k=k).numpy().tolist() == diagonal.numpy().tolist()
    assert int(tf.math.count_nonzero(laid)) == int(tf.math.count_nonzero(diagonal))


def test_an_empty_matrix_has_an_empty_diagonal():
    for shape in ((0, 0), (2, 0, 0), (0, 3), (0, 2, 3)):
        x = tf.zeros(shape)
        assert tf.linalg.set_diag(x, tf.linalg.diag_part(x)).shape == shape


def test_bools_are_counted():
    x = tf.constant([[True, False], [True, True]])
    assert tf.math.count_nonzero(x, axis=0).numpy().tolist() == [2, 1]
    assert tf.math.zero_fraction(x).numpy() == tf.nn.zero_fraction(x).numpy() == 0.25
    assert tf.math.count_nonzero(tf.constant([np.nan, 0.0, 1j], "complex64")).numpy() == 2


@pytest.mark.parametrize(
    ("function", "sizes", "window"),
    [
        (tf.nn.conv1d, (8,), (2,)),
        (tf.nn.conv2d, (8, 6), (2, 3)),
        (tf.nn.convolution, (8,), (3,)),
        (tf.nn.depthwise_conv2d, (8, 6), (2, 3)),
    ],
)
def test_a_convolution_takes_several_batch_axes(function, sizes, window):
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(2, 3, *sizes, 4)).astype("float32"), rng.normal(size=(*window, 4, 5)).astype("float32")
    together = function(x, kernel, 1, "VALID")
    each = np.stack([function(part, kernel, 1, "VALID").numpy() for part in x])
    np.testing.assert_allclose(together.numpy(), each, rtol=1e-5, atol=1e-5)


def test_a_depthwise_filter_is_for_the_channels_of_the_input():
    with pytest.raises(ShapeError, match="the filter must be .* for the channels of the input"):
        tf.nn.depthwise_conv2d(tf.ones([1, 4, 4, 6]), tf.ones([2, 2, 3, 2]), 1, "SAME")


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("gaussian", [0.5728, 1.2152, 1.8577, 3.8171, 5.7848, 7.7525]),
        ("mitchellcubic", [0.2258, 0.8529, 1.4801, 3.7279, 6.1471, 8.5662]),
    ],
)
def test_kernels_that_blur_do_so_along_an_axis_whose_size_stays(method, expected):
    x = tf.reshape(tf.range(4.0) ** 2, [2, 2, 1])
    np.testing.assert_allclose(tf.reshape(tf.image.resize(x, [2, 3], method), -1), expected, atol=1e-4)
    assert tf.image.resize(x, [2, 2], method).numpy().tolist() == x.numpy().tolist()


def test_the_peak_of_images_of_bytes_may_be_a_float():
    black, white = tf.zeros([4, 4, 3], "uint8"), tf.fill([4, 4, 3], tf.cast(255, "uint8"))
    assert float(tf.image.psnr(black, white, 255.0)) == float(tf.image.psnr(black, white, 255)) == 0.0


def test_integers_are_counted_in_each_row():
    x, weights = tf.constant([[1, 2], [2, 2]]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
    count = tf.math.bincount
    assert count(x, axis=-1).numpy().tolist() == [[0, 1, 1], [0, 0, 2]]
    assert count(x, axis=-1, binary_output=True).numpy().tolist() == [[0, 1, 1], [0, 0, 1]]
    assert count(x, axis=-1, weights=weights).numpy().tolist() == [[0, 1, 2], [0, 0, 7]]
    assert count(x, axis=-1, minlength=4).shape == (2, 4) and count(x, axis=-1, maxlength=2).shape == (2, 2)
    assert count(x, axis=0, binary_output=True, dtype="int64").numpy().tolist() == [0, 1, 1]
    assert count(tf.cast(x, "uint8"), axis=-1).numpy().tolist() == [[0, 1, 1], [0, 0, 2]]
    assert [count(tf.zeros(shape, "int32"), axis=-1).shape for shape in ((0, 2), (2, 0))] == [(0, 0), (2, 0)]
    for wrong in ({"axis": 1}, {"weights": weights, "binary_output": True}):
        with pytest.raises(InvalidArgumentError, match="axis must be 0 or -1"):
            count(x, **wrong)
    with pytest.raises(InvalidArgumentError, match="integers from 0 on, found -1"):
        count([[1, 2], [-1, 2]], axis=-1)
    with pytest.raises(InvalidArgumentError, match="vectorized_map"):
        tf.vectorized_map(lambda row: count(row, axis=-1), x)


@pytest.mark.parametrize(
    ("begin", "end", "masks", "key"),
    [
        ([1, 1], [1, 2], {"begin_mask": 1, "end_mask": 1}, np.s_[:, 1:2]),
        ([1, 1], [2, 2], {"shrink_axis_mask": 1}, np.s_[1, 1:2]),
        ([0, 1], [0, 2], {"ellipsis_mask": 1}, np.s_[..., 1:2]),
        ([0, 1], [0, 2], {"new_axis_mask": 1}, np.s_[None, 1:2]),
        ([0, 1, 2], [0, 2, 3], {"ellipsis_mask": 1, "shrink_axis_mask": 4}, np.s_[..., 1:2, 2]),
    ],
)
def test_masks_of_a_strided_slice_say_what_its_entries_mean(begin, end, masks, key):
    x = np.arange(24).reshape(2, 3, 4)
    assert tf.strided_slice(x, begin, end, **masks).numpy().tolist() == x[key].tolist()


def test_images_are_resized_only_in_ways_that_are_known():
    with pytest.raises(ValueError, match="method must be one of .*'lanczos5'.*found 'cubic'"):
        tf.image.resize(tf.ones([4, 4, 1]), [2, 2], "cubic")
    with pytest.raises(ShapeError, match="two positive sizes"):
        tf.image.resize(tf.ones([4, 4]), [2, 2])
    assert tf.image.resize(tf.ones([4, 4, 1], "uint8"), [2, 3]).dtype == tf.float32
    assert tf.image.resize(tf.ones([4, 4, 1], "uint8"), [2, 3], "nearest").dtype == tf.uint8


def test_four_numbers_of_a_window_are_read_as_the_data_format_says():
    x = np.random.default_rng(0).normal(size=(1, 3, 4, 6)).astype("float32")
    last, first = tf.constant(x.transpose(0, 2, 3, 1)), tf.constant(x)
    for window in ([2, 1], [1, 2], [2, 3]):
        expected = tf.nn.max_pool2d(last, window, window, "VALID").numpy().transpose(0, 3, 1, 2)
        ksize = [1, 1, *window]
        np.testing.assert_array_equal(tf.nn.max_pool2d(first, ksize, ksize, "VALID", data_format="NCHW").numpy(), expected)
        np.testing.assert_array_equal(
            tf.nn.max_pool2d(last, [1, *window, 1], [1, *window, 1], "VALID").numpy().transpose(0, 3, 1, 2), expected
        )


def test_padding_of_four_axes_is_read_as_the_data_format_says():
    x, kernel = tf.ones([1, 2, 4, 6]), tf.ones([1, 1, 2, 1])
    padding = [[0, 0], [0, 0], [1, 2], [0, 0]]
    assert tf.nn.conv2d(x, kernel, 1, padding, data_format="NCHW").shape == (1, 1, 7, 6)
    assert tf.nn.conv2d(tf.ones([1, 4, 6, 2]), kernel, 1, padding).shape == (1, 4, 9, 1)


@pytest.mark.parametrize("ksize", [[1, 1, 1, 2], [2, 1, 1, 1], [1, 2, 2, 2]])
def test_no_window_slides_over_batch_or_channels(ksize):
    for pool in (tf.nn.max_pool2d, tf.nn.avg_pool2d):
        with pytest.raises(ShapeError, match="1 for batch and channels"):
            pool(tf.ones([2, 4, 4, 4]), ksize, 1, "SAME")
    with pytest.raises(ShapeError, match="strides"):
        tf.nn.conv2d(tf.ones([2, 4, 4, 2]), tf.ones([1, 1, 2, 1]), ksize, "SAME")


# Random numbers -------------------------------------------------------------------------------------------------------


def test_the_noise_of_dropout_has_the_sizes_of_the_tensor_where_none_are_given():
    kept = tf.nn.dropout(tf.ones([40, 3]), 0.5, noise_shape=[None, 1]).numpy()
    assert (kept == kept[:, :1]).all() and set(kept.ravel()) == {0.0, 2.0}
    kept = tf.nn.dropout(tf.ones([4, 30]), 0.5, noise_shape=[30]).numpy()
    assert (kept == kept[:1]).all()
    with pytest.raises(ShapeError, match="noise_shape"):
        tf.nn.dropout(tf.ones([4, 3]), 0.5, noise_shape=[4])
    with pytest.raises(ShapeError, match="noise_shape"):
        tf.nn.dropout(tf.ones([4, 3]), 0.5, noise_shape=[4, 10])


def test_uniform_integers_need_a_range_that_holds_one():
    with pytest.raises(InvalidArgumentError, match="minval"):
        tf.random.uniform([2], 1, 1, dtype=tf.int32)
    assert tf.random.uniform([0], 0, 0, dtype=tf.int32).shape == (0,)


def test_no_seed_starts_the_stream_from_the_system():
    tf.random.set_seed(None)
    first = tf.random.uniform([4]).numpy()
    tf.random.set_seed(None)
    assert (tf.random.uniform([4]).numpy() != first).any()


def test_a_scalar_is_shuffled():
    assert tf.random.shuffle(5).numpy() == 5


def test_limits_may_not_change_the_shape_of_what_is_clipped():
    assert tf.clip_by_value([[1.0, 5.0]], [0.0, 0.0], 3.0).numpy().tolist() == [[1.0, 3.0]]
    with pytest.raises(ShapeError, match="clip_by_value"):
        tf.clip_by_value(tf.constant(1.0), [1.0, 1.0], 2.0)
    with pytest.raises(ShapeError, match="clip_by_norm"):
        tf.clip_by_norm(tf.ones([2, 3, 1]), [1.0, 2.0])


# Arguments that may be left open, and ones that may not ---------------------------------------------------------------


def test_none_stands_for_the_default():
    assert tf.argmax([1, 2], output_type=None).dtype == "int64"
    assert tf.gather([[10, 11, 12], [13, 14, 15]], [[0, 1]], axis=1, batch_dims=None).numpy().tolist() == [
        [[10, 11]],
        [[13, 14]],
    ]


def test_references_are_keys_of_nests():
    x, y = tf.Variable(1.0), tf.Variable(2.0)
    assert tf.nest.map_structure(lambda v: float(v), {x.ref(): x, y.ref(): y}) == {x.ref(): 1.0, y.ref(): 2.0}


@pytest.mark.parametrize(
    ("branches", "index", "error"),
    [
        ({0: int, 3: float}, 0, ValueError),
        ([(0, int), (0, float)], 0, ValueError),
        ([], 0, ValueError),
        ([int, float], 1.5, TypeError),
        ([int, float], [0, 1], TypeError),
        ([int, float], True, TypeError),
    ],
)
def test_a_switch_needs_an_integer_and_branches_without_gaps(branches, index, error):
    with pytest.raises(error, match="switch_case"):
        tf.switch_case(index, branches)


def test_a_switch_beyond_its_branches_takes_the_last_one():
    assert tf.switch_case(tf.constant(7), {1: float, 0: int}) == tf.switch_case(-1, [int, float]) == 0.0
    assert tf.switch_case(tf.constant(1), [(1, lambda: "b"), (0, lambda: "a")]) == "b"


def test_meshgrid_knows_two_orders():
    with pytest.raises(ValueError, match="'xy' or 'ij'"):
        tf.meshgrid([1, 2], [3], indexing="yx")


@pytest.mark.parametrize(("mode", "most"), [("REFLECT", 2), ("SYMMETRIC", 3)])
def test_a_mirror_shows_no_more_than_there_is(mode, most):
    assert tf.pad([1, 2, 3], [[most, most]], mode).shape == (3 + 2 * most,)
    with pytest.raises(ShapeError, match="to mirror"):
        tf.pad([1, 2, 3], [[0, most + 1]], mode)


def test_padding_is_of_the_dtype_of_the_tensor():
    assert tf.pad([1.0], [[1, 0]], constant_values=2).numpy().tolist() == [2.0, 1.0]
    assert tf.pad([1.0], [[1, 0]], constant_values=tf.constant(2.0)).numpy().tolist() == [2.0, 1.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"1\.5"):
        tf.pad([1, 2], [[1, 1]], constant_values=1.5)


def test_a_factor_is_transposed_or_adjoint():
    with pytest.raises(ValueError, match="transpose_a"):
        tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]), transpose_a=True, adjoint_a=True)


# Corners --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [3, 0])
def test_a_loop_over_numbers_gives_tensors(limit):
    count, power = tf.while_loop(lambda i, x: i < limit, lambda i, x: (i + 1, x * 2.0), [0, 1.0])
    assert (count.dtype, power.dtype) == ("int32", "float32") and (int(count), float(power)) == (limit, 2.0**limit)
    i, rows = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a.write(i, 1.0)), (0, tf.TensorArray(tf.float32, 2)))
    assert int(i) == 2 and rows.stack().numpy().tolist() == [1.0, 1.0]


def test_any_shape_is_ensured_by_none():
    assert tf.ensure_shape([1.0, 2.0], None).shape == tf.ensure_shape([1.0, 2.0], tf.TensorShape([None])).shape == (2,)


def test_no_lengths_have_no_masks():
    assert tf.sequence_mask([]).shape == (0, 0) and tf.sequence_mask([], 3, tf.float32).dtype == tf.float32


@pytest.mark.parametrize("function", [tf.math.floormod, tf.math.floordiv])
def test_nothing_is_divided_by_zero_where_there_is_nothing_to_divide(function):
    assert function(tf.zeros([0], "int32"), [0]).shape == function(tf.zeros([0, 3], "int32"), 0).shape[:1] == (0,)
    with pytest.raises(InvalidArgumentError, match="division by zero"):
        function([1], [0])


def test_the_shape_of_a_scalar_is_a_tensor_of_integers():
    assert tf.convert_to_tensor(tf.constant(1.0).shape).dtype == tf.int32
    assert tf.concat([tf.constant(1.0).shape, [2]], 0).numpy().tolist() == [2]


def test_the_order_of_polygamma_has_no_derivative_of_any_order():
    order, x = tf.constant([2.0]), tf.constant([1.5])
    with tf.GradientTape() as outer:
        outer.watch(order)
        with tf.GradientTape() as tape:
            tape.watch([order, x])
            y = tf.math.polygamma(order, x)
        by_order, slope = tape.gradient(y, [order, x])
    assert by_order is None and slope is not None and outer.gradient(slope, order) is None


def test_the_poisson_loss_of_16_bit_floats_is_whole():
    for dtype in ("bfloat16", "float16"):
        z, logs = tf.cast([1.0, 3.0], dtype), tf.cast([0.5, 0.25], dtype)
        loss = tf.nn.log_poisson_loss(z, logs, compute_full_loss=True)
        assert loss.dtype == dtype
        expected = tf.nn.log_poisson_loss([1.0, 3.0], [0.5, 0.25], compute_full_loss=True)
        np.testing.assert_allclose(tf.cast(loss, "float32"), expected, rtol=0.02)
