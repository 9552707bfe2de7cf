"""What functions return and what they take, where TensorFlow's own tests and scripts showed another answer."""

import gc
import itertools
import timeit
import weakref

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import DTypeError, ShapeError


def listed(tensor):
    return np.asarray(tensor.numpy(), "float64").tolist()


# Results with names -----------------------------------------------------------------------------------------------------


def test_the_two_results_of_top_k_have_names():
    found = tf.math.top_k([1.0, 3.0, 2.0], 2)
    assert (listed(found.values), listed(found.indices)) == ([3.0, 2.0], [1.0, 2.0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8", "bool"])
def test_the_largest_elements_are_those_of_a_stable_order(dtype):
    """Of equal ones the first, NaN before all; up to a quarter of a row only what is chosen is sorted."""
    generator = np.random.default_rng(0)
    rows = generator.integers(0, 9, (3, 5, 40)).astype(dtype)
    rows[0] = generator.permuted(np.arange(40 * 5).reshape(5, 40), axis=1).astype(dtype)
    if np.dtype(dtype).kind == "f":
        rows[generator.random(rows.shape) < 0.1] = np.nan
        rows[2, 1], rows[2, 2, 3:] = np.nan, np.inf
    order = 39 - np.flip(np.argsort(np.flip(rows, -1), -1, kind="stable"), -1)
    for k in (0, 1, 3, 10, 11, 40):
        found = tf.math.top_k(rows, k)
        np.testing.assert_array_equal(found.indices, order[..., :k])
        np.testing.assert_array_equal(found.values, np.take_along_axis(rows, order, -1)[..., :k])


@pytest.mark.parametrize("jit_compile", [False, True])
def test_all_elements_in_order_are_found_in_a_function_too(jit_compile):
    recorded = tf.function(lambda rows: tf.math.top_k(rows, 3), jit_compile=jit_compile)
    for _ in range(3):
        assert listed(recorded(tf.constant([[1.0, 3.0, 2.0], [5.0, 5.0, 6.0]])).indices) == [[1.0, 2.0, 0.0], [2.0, 0.0, 1.0]]


@pytest.mark.slow
def test_a_few_of_many_elements_are_found_without_sorting_all():
    x = tf.constant(np.random.default_rng(0).normal(size=(64, 4096)).astype("f"))
    seconds = [min(timeit.repeat(call, number=1, repeat=9)) for call in (lambda: tf.math.top_k(x, 5), lambda: tf.argsort(x))]
    assert seconds[0] < 0.5 * seconds[1]


def test_the_two_results_of_unique_have_names():
    found = tf.unique([5, 7, 5])
    assert (listed(found.y), listed(found.idx)) == ([5.0, 7.0], [0.0, 1.0, 0.0])


def test_the_two_results_of_slogdet_have_names():
    found = tf.linalg.slogdet([[-2.0, 0.0], [0.0, 1.0]])
    assert (float(found.sign), float(found.log_abs_determinant)) == (-1.0, pytest.approx(np.log(2.0)))


def test_the_two_factors_of_qr_have_names():
    found = tf.linalg.qr([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose((found.q @ found.r).numpy(), [[1.0, 2.0], [3.0, 4.0]], atol=1e-6)


def test_results_keep_their_names_in_a_function_and_over_slices():
    rows = tf.constant([[1.0, 3.0], [4.0, 2.0]])
    largest = tf.vectorized_map(lambda row: tf.math.top_k(row, 1), rows)
    assert listed(largest.indices) == [[1.0], [0.0]]
    recorded = tf.function(lambda row: tf.math.top_k(row, 1))
    assert [listed(recorded(row).values) for row in rows for _ in range(3)] == [[3.0]] * 3 + [[4.0]] * 3


@pytest.mark.parametrize("shape", [(), (1, 1), (2, 0)])
def test_unique_refuses_all_but_vectors(shape):
    with pytest.raises(ShapeError, match="vector"):
        tf.unique(tf.zeros(shape))


# Bools where numbers are asked for -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int64", "uint8", "complex64"])
def test_a_python_bool_is_a_number_where_a_dtype_asks_for_one(dtype):
    for value in (tf.constant([True, False], dtype), tf.convert_to_tensor([True, False], dtype)):
        assert value.dtype == dtype
        assert tf.cast(value, "float32").numpy().tolist() == [1.0, 0.0]
    ones = tf.ones([2], dtype)
    for product in (ones * True, True * ones, ones * [True, True], tf.convert_to_tensor([ones, [True, True]])[1]):
        assert product.dtype == dtype
        assert tf.cast(product, "float32").numpy().tolist() == [1.0, 1.0]


def test_a_bool_assigned_to_a_variable_is_a_number():
    variable = tf.Variable([True, False], dtype="float32")
    variable.assign_add([False, True])
    assert listed(variable) == [1.0, 1.0]


@pytest.mark.parametrize("number", [1, 1.0, [0, 1]])
def test_a_number_is_no_bool(number):
    with pytest.raises(DTypeError, match="bool"):
        tf.constant(number, "bool")


# Text beside numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mixed", [[1, "a"], ["a", 1.5], [[1, 2], ["a", "b"]], [True, "a"], ("a", 1j), [b"a", 2]])
def test_text_beside_numbers_is_no_tensor(mixed):
    for make in (tf.constant, tf.convert_to_tensor, tf.Variable):
        with pytest.raises(ValueError, match="mixed types"):
            make(mixed)


@pytest.mark.parametrize("text", ["a", ["a", "b"], [["a"], ["b"]], [np.str_("a"), "b"], []])
def test_text_alone_is_a_tensor(text):
    assert tf.constant(text).shape == np.shape(text)


def test_text_is_added_to_text():
    for left, right in ((tf.constant("a"), "b"), ("a", tf.constant("b")), (tf.constant("a"), tf.constant("b"))):
        assert (left + right).shape == ()
        assert (left + right).numpy() == "ab"
    assert (tf.constant(b"a") + b"b").numpy() == b"ab"
    assert tf.add(tf.constant(["a"]), ["b"]).numpy().tolist() == ["ab"]


@pytest.mark.parametrize(("reduced", "result"), [(tf.reduce_sum, "ba"), (tf.reduce_max, "b"), (tf.reduce_min, "a")])
def test_text_that_is_reduced_is_a_tensor_of_text(reduced, result):
    found = reduced(tf.constant(["b", "a"]))
    assert (found.shape, found.dtype, found.numpy()) == ((), "string", result)


def test_text_is_added_in_a_function_and_over_slices():
    @tf.function
    def joined(text):
        return text + "b"

    assert [joined(tf.constant(text)).numpy() for text in "xyzx"] == ["xb", "yb", "zb", "xb"]
    assert tf.vectorized_map(joined, tf.constant(["x", "y"])).numpy().tolist() == ["xb", "yb"]


# Dtypes of functions of two tensors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["atan2", "xlogy", "xlog1py", "xdivy", "multiply_no_nan"])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_what_is_defined_on_floats_refuses_integers_and_bools(name, dtype):
    function = getattr(tf.math, name)
    one = tf.ones([2], dtype)
    for x, y in ((one, one), (one, np.ones(2, dtype)), (np.ones(2, dtype), one), (tf.Variable(one), one)):
        with pytest.raises(DTypeError, match=name):
            function(x, y)


def test_atan2_refuses_complex_numbers():
    with pytest.raises(DTypeError, match="atan2"):
        tf.math.atan2(tf.constant(1j), tf.constant(1j))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "int64", "float16", "float64"])
def test_divide_no_nan_has_the_dtype_of_divide(dtype):
    x, y = tf.constant([3, 1], dtype), tf.constant([2, 0], dtype)
    found = tf.math.divide_no_nan(x, y)
    assert found.dtype == tf.divide(x, tf.ones_like(y)).dtype
    assert listed(found) == [1.5, 0.0]


@pytest.mark.parametrize(("number", "slope"), [(4.0, 0.25), (0.0, 0.0)])
def test_divide_no_nan_by_a_number_has_a_gradient(number, slope):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.math.divide_no_nan(tf.reduce_sum(x), number)
    assert listed(tape.gradient(y, x)) == [slope, slope]


# Numbers ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "target"), list(itertools.product(["float64", "float32", "float16", "bfloat16"], repeat=2)))
def test_saturate_cast_makes_infinities_finite(source, target):
    found = tf.saturate_cast(tf.constant([np.inf, -np.inf, np.nan], source), target)
    assert tf.math.is_finite(found).numpy().tolist() == [True, True, False]


def test_clip_by_global_norm_leaves_each_tensor_its_dtype_and_precision():
    wide, narrow = tf.constant([-3.0, 0.0]), tf.cast([4.0, 0.0], "bfloat16")
    (a, b), norm = tf.clip_by_global_norm([wide, narrow], 4.0, use_norm=tf.constant(5.0))
    assert (a.dtype, b.dtype, norm.dtype) == ("float32", "bfloat16", "float32")
    np.testing.assert_allclose(a.numpy(), [-2.4, 0.0], rtol=1e-6)
    assert listed(tf.cast(b, "float32")) == [3.203125, 0.0]


def test_a_norm_beyond_float16_clips_a_list_of_float16_and_float32():
    gradients = [tf.fill([100], tf.constant(30000.0, "float16")), tf.constant([40000.0])]
    (a, b), norm = tf.clip_by_global_norm(gradients, 1.0)
    assert norm.dtype == "float32"
    np.testing.assert_allclose(float(norm), np.hypot(3e5, 4e4), rtol=1e-6)
    np.testing.assert_allclose(listed(a)[0], 3e4 / float(norm), rtol=1e-3)
    np.testing.assert_allclose(listed(b), [4e4 / float(norm)], rtol=1e-6)


# Arguments ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("paddings", [[1, 1], 1, [[1]], [1], [[1, 1], [1, 1]], [], [[1, 1, 1]], [[[1, 1]]], [[-1, 1]]])
def test_pad_takes_one_pair_for_each_axis_and_nothing_else(paddings):
    with pytest.raises(ShapeError, match="one pair of sizes >= 0 for each axis"):
        tf.pad([1.0, 2.0], paddings)


@pytest.mark.parametrize("paddings", [((1, 0),), tf.constant([[1, 0]]), [[tf.constant(1), 0]], np.array([[1, 0]])])
def test_pad_takes_pairs_in_any_container(paddings):
    assert listed(tf.pad([1.0, 2.0], paddings)) == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("rate", [[0.0, 1.0], "a", (0.5,), -0.1, 1.0, float("nan")])
def test_dropout_takes_one_rate_below_one(rate):
    with pytest.raises(ValueError, match=r"a number in \[0, 1\)"):
        tf.nn.dropout(tf.ones([2]), rate)


# Specs --------------------------------------------------------------------------------------------------------------------


def test_the_shape_of_a_spec_is_a_tensor_shape():
    spec = tf.TensorSpec([None, 2])
    assert (spec.shape == [None, 2], spec.shape.as_list(), spec.shape.rank) == (True, [None, 2], 2)
    assert (spec.shape.is_fully_defined(), spec.shape.num_elements()) == (False, None)
    known = tf.TensorSpec.from_tensor(tf.ones([2, 3])).shape
    assert (known == [2, 3], known.is_fully_defined(), known.num_elements()) == (True, True, 6)


def test_specs_are_equal_if_shape_dtype_and_name_are():
    assert tf.TensorSpec([2]) == tf.TensorSpec((2,), tf.float32)
    assert len({tf.TensorSpec([2]), tf.TensorSpec([2]), tf.TensorSpec([2], name="a"), tf.TensorSpec([3])}) == 3
    assert tf.TensorSpec([2], name="a") != tf.TensorSpec([2])
    assert tf.TensorSpec([2], name="a").is_compatible_with(tf.TensorSpec([2]))


# Memory -------------------------------------------------------------------------------------------------------------------


def test_the_tangent_of_a_primal_goes_with_it():
    primal, tangent = tf.ones([3]), tf.constant([1.0, 2.0, 3.0])
    gone = weakref.ref(tangent)
    with tf.autodiff.ForwardAccumulator(primal, tangent) as accumulator:
        result = 2.0 * primal
        assert listed(accumulator.jvp(primal)) == [1.0, 2.0, 3.0]
        del primal, tangent
        gc.collect()
        assert gone() is None
    assert listed(accumulator.jvp(result)) == [2.0, 4.0, 6.0]
