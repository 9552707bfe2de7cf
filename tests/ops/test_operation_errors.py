"""Errors of operations: the right class, and a message with what was asked, what was found and what to do."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import DTypeError, InvalidArgumentError, ShapeError

f32 = tf.constant([1.0, 2.0])
f64 = tf.constant([1.0, 2.0], "float64")
i32 = tf.constant([1, 2])
matrix = tf.ones([2, 3])


def message(function, *kinds):
    """The text of the error, which is of every one of the kinds."""
    with pytest.raises(kinds[0]) as caught:
        function()
    for kind in kinds[1:]:
        assert isinstance(caught.value, kind), f"{type(caught.value).__name__} is no {kind.__name__}"
    return str(caught.value)


def holds(text, *parts):
    for part in parts:
        assert part in text, f"{part!r} is missing in: {text}"


# Shapes (T99) ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operation", [tf.add, tf.multiply, tf.pow, tf.maximum, tf.less, tf.atan2, tf.math.xlogy], ids=lambda f: f.__name__
)
def test_shapes_that_cannot_be_broadcast_are_named_with_the_axis_that_clashes(operation):
    text = message(lambda: operation(tf.ones([4, 2]), tf.ones([4, 3])), ShapeError, InvalidArgumentError, ValueError)
    holds(text, "Incompatible shapes: [4, 2] vs. [4, 3]", "axis -1", "reshape or transpose")


def test_matrix_products_say_which_sizes_differ():
    text = message(lambda: tf.ones([7, 5]) @ tf.ones([4, 10]), ShapeError)
    holds(text, "Matrix size-incompatible", "(7, 5)", "(4, 10)", "inner sizes 5 and 4 differ", "Transpose")
    holds(message(lambda: tf.matmul(f32, matrix), ShapeError), "In[0] ndims must be >= 2", "(2,)", "tf.linalg.matvec")
    holds(message(lambda: tf.matmul(matrix, f32), ShapeError), "In[1] ndims must be >= 2")
    holds(
        message(lambda: tf.matmul(tf.ones([2, 1, 1]), tf.ones([3, 1, 1])), ShapeError),
        "(2, 1, 1)",
        "(3, 1, 1)",
        "batch axes",
    )


def test_reshape_names_the_values_there_are_and_the_shape_asked_for():
    holds(message(lambda: tf.reshape(matrix, [4, 2]), ShapeError), "6 values", "(2, 3)", "[4, 2]")
    holds(message(lambda: tf.reshape(matrix, [4, -1]), ShapeError), "[4, -1]")
    holds(message(lambda: tf.reshape(matrix, [-1, -1]), ShapeError), "[-1, -1]")


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: tf.concat([matrix, tf.ones([3, 2])], 0), ["concat", "[2,3]", "[3,2]"]),
        (lambda: tf.stack([f32, matrix]), ["stack", "[2]", "[2, 3]"]),
        (lambda: tf.add_n([f32, matrix]), ["add_n", "[2]", "[2, 3]"]),
        (lambda: tf.squeeze(matrix, 0), ["squeeze", "(2, 3)", "size 2"]),
        (lambda: tf.transpose(matrix, [0, 0]), ["transpose", "[0, 0]", "(2, 3)"]),
        (lambda: tf.split(matrix, 2, axis=1), ["split", "size 3", "2"]),
        (lambda: tf.split(matrix, [1, 1], axis=1), ["split", "[1, 1]", "3"]),
        (lambda: tf.tile(matrix, [2]), ["tile", "(2, 3)"]),
        (lambda: tf.pad(matrix, [[1, 1]]), ["pad", "[[1, 1]]", "(2, 3)"]),
        (lambda: tf.broadcast_to(matrix, [2, 2]), ["broadcast_to", "[2,3]", "(2, 2)"]),
        (lambda: tf.unstack(matrix, num=3), ["unstack", "num=3", "(2, 3)"]),
        (lambda: tf.slice(matrix, [0], [1]), ["slice", "[0]", "(2, 3)"]),
        (lambda: tf.ensure_shape(matrix, [2, 2]), ["ensure_shape", "[2, 2]", "[2, 3]"]),
        (lambda: tf.boolean_mask(matrix, [True]), ["boolean_mask", "(1,)", "(2, 3)"]),
        (lambda: tf.reduce_sum(matrix, 2), ["reduce_sum", "axis 2", "2 axes"]),
        (lambda: tf.reduce_sum(matrix, [0, -2]), ["reduce_sum", "twice"]),
        (lambda: tf.tensordot(matrix, matrix, 1), ["tensordot", "(2, 3)", "[3]", "[2]"]),
        (lambda: tf.linalg.inv(matrix), ["inv", "square", "(2, 3)"]),
        (lambda: tf.linalg.det(f32), ["det", "(2,)"]),
        (lambda: tf.linalg.solve(tf.eye(2), tf.ones([3, 1])), ["solve", "(2, 2)", "(3, 1)"]),
        (lambda: tf.linalg.set_diag(matrix, tf.ones([3])), ["set_diag", "(2, 3)", "(3,)"]),
        (lambda: tf.linalg.cross(f32, f32), ["cross", "size 3", "(2,)"]),
        (lambda: tf.nn.softmax_cross_entropy_with_logits(f32, matrix), ["logits and labels", "(2,)", "(2, 3)"]),
        (lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([0], matrix), ["logits (2, 3)", "(1,)"]),
        (lambda: tf.nn.sigmoid_cross_entropy_with_logits(f32, matrix), ["(2,)", "(2, 3)"]),
        (lambda: tf.where([True, False, True], f32, f32), ["select", "[3]", "[2]"]),
    ],
    ids=lambda part: part[0] if isinstance(part, list) else "",
)
def test_shapes_that_do_not_fit_are_both_in_the_message(call, parts):
    holds(message(call, ShapeError, InvalidArgumentError, ValueError), *parts)


def test_einsum_names_the_label_and_its_two_sizes():
    text = message(lambda: tf.einsum("ij,jk->ik", matrix, matrix), InvalidArgumentError)
    holds(text, "ij,jk->ik", "'j'", "3", "2", "[[2, 3], [2, 3]]")
    holds(message(lambda: tf.einsum("ij,jk", matrix), InvalidArgumentError), "2 operands", "1 tensors")
    holds(message(lambda: tf.einsum("ijk->i", matrix), InvalidArgumentError), "3 axes", "(2, 3)")
    holds(message(lambda: tf.einsum("ii->i", matrix), InvalidArgumentError), "ii->i", "[2, 3]")


# Indices (T96, T97, T122) ---------------------------------------------------------------------------------------------


def test_an_index_out_of_range_names_index_axis_and_size():
    holds(message(lambda: matrix[0, 3], InvalidArgumentError), "index 3", "dimension 1", "3 elements")
    holds(message(lambda: matrix[0, 0, 0], InvalidArgumentError), "3 indices", "2 axes", "(2, 3)")
    holds(message(lambda: matrix[..., ...], InvalidArgumentError), "ellips")
    holds(message(lambda: matrix[::0], InvalidArgumentError), "step")


@pytest.mark.parametrize("key", [1.0, "a", True, np.float64(1)])
def test_an_index_that_is_no_integer_points_to_gather(key):
    holds(message(lambda: matrix[key], TypeError), "Only integers, slices", "tf.gather")


def test_gathers_and_scatters_name_the_index_that_is_out_of_range():
    holds(message(lambda: tf.gather(f32, [0, 2]), InvalidArgumentError), "gather", "indices = 2", "[0, 2)")
    holds(message(lambda: tf.gather(f32, [-1]), InvalidArgumentError), "indices = -1")
    holds(message(lambda: tf.gather(f32, [0.5]), TypeError), "gather", "integers", "float32")
    holds(message(lambda: tf.gather_nd(matrix, [[0, 3]]), InvalidArgumentError), "gather_nd", "[0, 3]", "[2, 3]")
    holds(message(lambda: tf.scatter_nd([[5]], [1.0], [3]), InvalidArgumentError), "scatter_nd", "[5]", "[3]")
    holds(message(lambda: tf.take_along_axis(matrix, [[3]], axis=1), InvalidArgumentError), "indices = 3", "[0, 3)")
    text = message(lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([0, 3], matrix), InvalidArgumentError)
    holds(text, "label value of 3", "[0, 3)")


# Dtypes (T100 to T106) ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: f32 + f64,
        lambda: f64 + f32,
        lambda: f32 * f64,
        lambda: f32 / f64,
        lambda: f32**f64,
        lambda: tf.reshape(f32, [1, 2]) @ tf.reshape(f64, [2, 1]),
        lambda: tf.maximum(f32, f64),
        lambda: tf.concat([f32, f64], 0),
        lambda: tf.stack([f32, f64]),
        lambda: tf.einsum("i,i->", f32, f64),
        lambda: tf.linalg.solve(tf.eye(2), tf.ones([2, 1], "float64")),
        lambda: tf.nn.sigmoid_cross_entropy_with_logits(f32, f64),
    ],
)
def test_two_tensors_of_different_dtypes_never_mix(call):
    text = message(call, DTypeError, InvalidArgumentError, TypeError)
    holds(text, "was expected to be a float", "float32", "float64", "tf.cast")


def test_where_names_both_dtypes():
    holds(message(lambda: tf.where([True, False], f32, f64), DTypeError), "float32", "float64", "cast")
    holds(message(lambda: tf.where(i32, f32, f32), DTypeError), "bool", "int32", "x != 0")


def test_a_number_that_does_not_fit_the_tensor_is_refused():
    holds(message(lambda: 2.5 * i32, TypeError), "2.5", "int32")
    holds(message(lambda: i32 + 1.5, InvalidArgumentError), "1.5", "int32")
    holds(message(lambda: f32 * 1j, DTypeError), "1j", "float32")


@pytest.mark.parametrize(
    "operation",
    [
        tf.sin,
        tf.exp,
        tf.math.log,
        tf.sqrt,
        tf.sigmoid,
        tf.nn.softmax,
        tf.nn.elu,
        tf.reduce_logsumexp,
        tf.norm,
        tf.floor,
        tf.math.is_nan,
    ],
    ids=lambda f: f.__name__,
)
def test_smooth_functions_of_integers_ask_for_a_cast(operation):
    text = message(lambda: operation(i32), DTypeError, TypeError)
    holds(text, operation.__name__, "int32", "tf.cast")


def test_integer_division_by_zero_is_an_error_and_float_division_is_not():
    for call in (lambda: i32 // 0, lambda: i32 % 0, lambda: i32 // tf.constant([1, 0])):
        holds(message(call, InvalidArgumentError), "zero", "cast")
    assert (f32 / 0.0).numpy().tolist() == [np.inf, np.inf]
    assert (i32 / i32).dtype == "float64"


def test_complex_takes_float_parts():
    holds(message(lambda: tf.complex(i32, i32), DTypeError), "complex", "int32")


def test_a_bitcast_to_larger_numbers_needs_their_bytes_in_the_last_axis():
    holds(message(lambda: tf.bitcast(tf.ones([3]), "float64"), DTypeError), "8 bytes", "float32 4", "(3,)", "size 2")


# Matrices and values (T124) -------------------------------------------------------------------------------------------


def test_a_singular_matrix_is_not_invertible():
    singular = tf.zeros([2, 2])
    for call in (lambda: tf.linalg.inv(singular), lambda: tf.linalg.solve(singular, tf.ones([2, 1]))):
        holds(message(call, InvalidArgumentError), "not invertible", "[2,2]")


def test_a_matrix_that_is_not_positive_definite_has_a_cholesky_factor_of_nan():
    assert np.isnan(tf.linalg.cholesky([[1.0, 2.0], [2.0, 1.0]]).numpy()).all()


def test_a_matrix_that_is_not_positive_definite_leaves_the_others_of_its_batch_alone():
    good, bad = [[4.0, 0.0], [0.0, 9.0]], [[1.0, 2.0], [2.0, 1.0]]
    x = tf.constant([[good, bad], [bad, good]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = tf.linalg.logdet(x)
    slope = tape.gradient(found, x).numpy()
    assert np.isnan(found.numpy()).tolist() == [[False, True], [True, False]]
    np.testing.assert_array_equal(slope[0, 0], np.linalg.inv(good).astype("float32"))
    assert np.isnan(slope[0, 1]).all() and not np.isnan(slope[1, 1]).any()
    assert tf.linalg.cholesky(x)[1, 1].numpy().tolist() == [[2.0, 0.0], [0.0, 3.0]]


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: tf.concat([], 0), ["concat", "empty"]),
        (lambda: tf.add_n([]), ["add_n", "empty"]),
        (lambda: tf.math.top_k(f32, 3), ["k=3", "2 elements"]),
        (lambda: tf.norm(f32, ord=-1), ["norm", "-1"]),
        (lambda: tf.argsort(f32, direction="UP"), ["ASCENDING", "UP"]),
        (lambda: tf.pad(f32, [[1, 1]], mode="WRAP"), ["REFLECT", "WRAP"]),
        (lambda: tf.nn.dropout(f32, 1.0), ["rate", "1.0"]),
        (lambda: tf.where([True], f32), ["both"]),
        (lambda: tf.random.uniform([1], dtype="int32"), ["maxval", "int32"]),
        (lambda: tf.stack([]), ["stack", "empty"]),
    ],
    ids=lambda part: part[0] if isinstance(part, list) else "",
)
def test_arguments_that_make_no_sense_are_named(call, parts):
    holds(message(call, ValueError), *parts)


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: tf.matmul(f32, matrix, transpose_a=True), ["matmul", ">= 2", "(2,)"]),
        (lambda: tf.tensordot(matrix, matrix, 3), ["tensordot", "axes=3", "(2, 3)"]),
        (lambda: tf.tensordot(matrix, matrix, [[0, 1], [0]]), ["tensordot", "equally many", "[[0, 1], [0]]"]),
        (lambda: tf.einsum("ii->i", matrix), ["einsum", "ii->i", "[2, 3]"]),
        (lambda: tf.cond(True, 1, 2), ["cond", "functions without arguments"]),
        (lambda: tf.case([(tf.constant(False), lambda: 1)]), ["case", "no default"]),
        (lambda: tf.constant([1, 2, 3], shape=[2]), ["constant", "3 values", "(2,)"]),
        (lambda: tf.math.polyval(f32, 1.0), ["polyval", "list of tensors", "tf.unstack"]),
        (lambda: tf.scalar_mul(f32, f32), ["scalar_mul", "(2,)", "x * y"]),
        (lambda: tf.linalg.diag(f32, k=(1, 0)), ["diag", "lowest, highest", "(1, 0)"]),
        (lambda: tf.linalg.diag_part(matrix, k=(0, 5)), ["diag_part", "0 to 5", "2 x 3"]),
        (lambda: tf.linalg.diag_part(f32), ["diag_part", "matrices", "(2,)"]),
        (lambda: tf.linalg.set_diag(f32, f32), ["set_diag", "matrices", "(2,)"]),
        (lambda: tf.linalg.tensor_diag_part(matrix), ["tensor_diag_part", "twice", "(2, 3)"]),
        (lambda: tf.norm(matrix, ord=3, axis=[0, 1]), ["norm", "3", "'fro', 1, 2 or inf"]),
        (lambda: tf.nn.max_pool(matrix, 2, 2, "VALID"), ["max_pool", "(batch, *sizes, channels)", "(2, 3)"]),
        (lambda: tf.nn.conv1d(matrix, tf.ones([2, 3, 1]), 1, "VALID"), ["conv", "(2, 3)"]),
        (
            lambda: tf.nn.conv2d(tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), 1, "FULL"),
            ["convolution", "'VALID', 'SAME'", "FULL"],
        ),
        (lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(f32, matrix), ["labels must be integers", "float32"]),
        (lambda: tf.nn.local_response_normalization(matrix), ["(batch, height, width, channels)", "(2, 3)"]),
        (lambda: tf.histogram_fixed_width(f32, [1.0, 0.0]), ["histogram_fixed_width", "[1.0, 0.0]", "must rise"]),
        (lambda: tf.split(matrix, [1, 2], axis=1, num=3), ["split", "num=3", "[1, 2]"]),
        (lambda: tf.repeat(matrix, [1, 2, 3], axis=0), ["repeat", "[1, 2, 3]", "2 elements"]),
        (lambda: tf.slice(matrix, [0, 2], [1, 2]), ["slice", "[0, 2]", "[1, 2]", "(2, 3)"]),
        (lambda: tf.reverse_sequence(matrix, [1], seq_axis=1), ["reverse_sequence", "(1,)", "2 sequences"]),
        (lambda: tf.function(len, autographs=False), ["function", "unknown options", "autographs"]),
        (lambda: tf.config.run_functions_eagerly(1), ["run_functions_eagerly", "True or False", "1"]),
    ],
    ids=lambda part: part[0] if isinstance(part, list) else "",
)
def test_arguments_that_fit_no_tensor_are_named(call, parts):
    with pytest.raises((ShapeError, InvalidArgumentError, TypeError, ValueError)) as caught:
        call()
    holds(str(caught.value), *parts)


def test_range_and_linspace_refuse_what_they_cannot_count():
    holds(message(lambda: tf.range(0, 1, 0), InvalidArgumentError), "delta")
    holds(message(lambda: tf.linspace(0.0, 1.0, -1), InvalidArgumentError), "num", "-1")
