"""Tensors: immutable values with an identity, their operators, dtypes, and the ways out to Python and NumPy."""

import copy
import operator
import pickle

import numpy as np
import pytest
from in_one_test import in_one_test
from in_threads import in_threads

import minikeras as tf
from minikeras.errors import DTypeError, InvalidArgumentError, ShapeError

# What a Tensor is ------------------------------------------------------------------------------------------------


def test_the_class_is_named_as_the_guides_print_it():
    """T89."""
    t = tf.constant(1.0)
    assert type(t).__name__ == "EagerTensor"
    assert isinstance(t, tf.Tensor)


@pytest.mark.parametrize(
    ("value", "text", "representation"),
    [
        (6.0, "tf.Tensor(6.0, shape=(), dtype=float32)", "<tf.Tensor: shape=(), dtype=float32, numpy=6.0>"),
        (True, "tf.Tensor(True, shape=(), dtype=bool)", "<tf.Tensor: shape=(), dtype=bool, numpy=True>"),
        (3, "tf.Tensor(3, shape=(), dtype=int32)", "<tf.Tensor: shape=(), dtype=int32, numpy=3>"),
        (
            [0.0, 1.0, 4.0, 9.0],
            "tf.Tensor([0. 1. 4. 9.], shape=(4,), dtype=float32)",
            "<tf.Tensor: shape=(4,), dtype=float32, numpy=array([0., 1., 4., 9.], dtype=float32)>",
        ),
        (
            [[1.0, 2.0], [3.0, 4.0]],
            "tf.Tensor([[1. 2.]\n [3. 4.]], shape=(2, 2), dtype=float32)",
            "<tf.Tensor: shape=(2, 2), dtype=float32, numpy=\narray([[1., 2.],\n       [3., 4.]], dtype=float32)>",
        ),
    ],
)
def test_a_tensor_prints_as_in_the_guides(value, text, representation):
    """T107."""
    t = tf.constant(value)
    assert str(t) == text
    assert repr(t) == representation


def test_formatting_a_scalar_formats_its_value():
    """T107."""
    assert f"{tf.constant(0.5):.3f} {tf.constant(7):d} {tf.constant(2.0)}" == "0.500 7 2.0"
    assert f"{tf.constant([1.0])}" == "tf.Tensor([1.], shape=(1,), dtype=float32)"


def test_strings_are_tensors_too():
    t = tf.constant("abc")
    assert t.shape == () and t.dtype == tf.string
    assert tf.constant(["a", "b"]).numpy().tolist() == ["a", "b"]
    assert bool(tf.constant("abc") == "abc")


def test_shape_dtype_and_rank_are_attributes():
    """T108."""
    t = tf.constant([[1, 2], [3, 4], [5, 6]])
    assert t.shape == (3, 2) == t.get_shape()
    assert t.set_shape([None, 2]) is None is tf.Variable(t).set_shape(tf.TensorShape(None))
    with pytest.raises(ShapeError, match=r"\(3, 2\) is not compatible with supplied shape \[2\]"):
        t.set_shape([2])
    assert isinstance(t.shape, tf.TensorShape)
    assert t.ndim == 2
    assert t.dtype is tf.int32
    assert t.device == "CPU:0"
    assert tf.reduce_prod(t.shape).numpy() == 6 and tf.reduce_prod(t.shape).dtype == tf.int32
    assert np.zeros(t.shape).shape == (3, 2)


@pytest.mark.parametrize("name", ["T", "size", "astype", "nonsense"])
def test_what_numpy_has_and_tensorflow_has_not_is_missing(name):
    """T108."""
    with pytest.raises(AttributeError):
        getattr(tf.constant([1.0]), name)


# Identity --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "kind"), [(tf.constant, "tensor"), (tf.Variable, "variable")])
def test_a_tensor_is_unhashable_and_its_reference_is_not(make, kind):
    """T92."""
    t, other = make(1.0), make(1.0)
    with pytest.raises(TypeError, match=f"(?i){kind} is unhashable. Instead, use {kind}.ref\\(\\) as the key"):
        hash(t)
    assert t.ref() == t.ref() and hash(t.ref()) == hash(t.ref())
    assert t.ref() != other.ref() and t.ref() != "t"
    assert {t.ref(): "found"}[t.ref()] == "found"
    assert t.ref().deref() is t


def test_keys_are_never_used_twice():
    """T15."""
    keys = set()

    def make():
        found = {tf.constant(1.0).key for _ in range(2000)}
        keys.update(found)

    in_threads(*[make] * 4)
    assert len(keys) == 8000


def test_a_copy_of_an_immutable_value_is_itself():
    t = tf.constant([1.0, 2.0])
    assert copy.copy(t) is t and copy.deepcopy(t) is t


def test_a_tensor_survives_pickling():
    t = pickle.loads(pickle.dumps(tf.constant([1.0, 2.0])))
    assert isinstance(t, tf.Tensor) and t.numpy().tolist() == [1.0, 2.0] and t.dtype == tf.float32


# Leaving for Python and NumPy ------------------------------------------------------------------------------------


def test_writing_into_what_numpy_returned_never_changes_the_tensor():
    """T109."""
    t = tf.constant([1.0, 2.0])
    for leave in (
        lambda: t.numpy(),
        lambda: np.array(t),
        lambda: np.asarray(t, dtype="float64"),
    ):
        outside = leave()
        outside[0] = 9.0
        assert t.numpy().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):  # the same memory, without a copy
        np.asarray(t)[0] = 9.0


def test_an_array_that_became_a_tensor_may_be_written_to_afterwards():
    source = np.array([1.0, 2.0], dtype="float32")
    for make in (
        tf.constant,
        tf.convert_to_tensor,
        tf.Variable,
        tf.zeros([2]).__add__,
        lambda x: tf.reshape(x, [2, 1])[:, 0],
    ):
        t, before = make(source), source.tolist()
        source[0] += 7.0
        assert t.numpy().tolist() == before


def test_numpy_functions_leave_with_arrays():
    """T102."""
    t = tf.constant([1.0, 3.0])
    assert type(np.square(t)) is np.ndarray
    assert isinstance(np.mean(t), np.floating)


def test_a_scalar_leaves_for_python():
    """T108."""
    assert float(tf.constant(2.5)) == 2.5 and float(tf.constant([[2.5]])) == 2.5
    assert int(tf.constant(2)) == 2 and int(tf.constant(2.9)) == 2
    assert complex(tf.constant(1j)) == 1j
    assert bool(tf.constant(0.0)) is False and bool(tf.constant([True])) is True
    assert [10, 20, 30][tf.constant(1)] == 20
    assert isinstance(tf.constant(2.5).numpy(), np.float32)


@pytest.mark.parametrize("value", [[1.0, 2.0], []])
def test_many_elements_have_no_truth_value(value):
    """T108."""
    with pytest.raises(
        ValueError, match=f"a tensor with {len(value)} elements .* is ambiguous. Use tf.reduce_any or tf.reduce_all"
    ):
        bool(tf.constant(value))


@pytest.mark.parametrize("value", [1.0, [1]])
def test_only_scalar_integers_serve_as_an_index(value):
    with pytest.raises(TypeError, match="only scalar integer tensors serve as an index"):
        operator.index(tf.constant(value))


def test_a_float_of_many_elements_is_refused():
    with pytest.raises(TypeError):
        float(tf.constant([1.0, 2.0]))
    with pytest.raises(TypeError):
        int(tf.constant([1, 2]))


def test_length_and_iteration_go_along_the_first_axis():
    """T108."""
    t = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert len(t) == 2
    assert [row.numpy().tolist() for row in t] == [[1.0, 2.0], [3.0, 4.0]]
    first, second = t
    assert second.numpy().tolist() == [3.0, 4.0] and first.shape == (2,)


def test_a_scalar_has_no_length_and_cannot_be_iterated():
    """T108."""
    with pytest.raises(TypeError, match="Scalar tensor has no"):
        len(tf.constant(1.0))
    with pytest.raises(TypeError, match=r"Cannot iterate over a scalar tensor."):
        iter(tf.constant(1.0))


def test_no_item_can_be_assigned():
    """T93."""
    t = tf.constant([1.0, 2.0])
    with pytest.raises(TypeError, match="does not support item assignment"):
        t[0] = 5.0
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(TypeError, match="does not support item assignment"):
        v[0] = 5.0


# Operators -------------------------------------------------------------------------------------------------------

ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne"]


@pytest.mark.parametrize("name", ARITHMETIC)
@in_one_test(
    make=[tf.constant, tf.Variable],
    other=[3.0, 3, np.float64(3), np.int64(3), np.full(3, 3.0), [3.0, 3.0, 3.0], (3, 3, 3)],
)
def test_every_operator_takes_numbers_arrays_and_lists_on_either_side(name, make, other):
    """T92, T101: they follow the tensor's dtype, and the result is a tensor."""
    function = getattr(operator, name)
    values = np.array([1.5, 3.0, 7.0], dtype="float32")
    threes = np.full(3, 3.0, dtype="float32")
    for result, expected in [
        (function(make(values), other), function(values, threes)),
        (function(other, make(values)), function(threes, values)),
    ]:
        assert isinstance(result, tf.Tensor)
        assert result.dtype == (tf.bool if expected.dtype == bool else tf.float32)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("make", [tf.constant, tf.Variable], ids=["tensor", "variable"])
def test_unary_operators_and_the_matrix_product(make):
    """T92, T108."""
    t = make([[1.0, -2.0], [3.0, 4.0]])
    assert (-t).numpy().tolist() == [[-1.0, 2.0], [-3.0, -4.0]]
    assert (+t).numpy().tolist() == t.numpy().tolist()
    assert abs(t).numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert (t @ t).numpy().tolist() == [[-5.0, -10.0], [15.0, 10.0]]
    assert (np.eye(2) @ t).numpy().tolist() == t.numpy().tolist()
    assert ([[1.0, 0.0]] @ t).numpy().tolist() == [[1.0, -2.0]]


def test_logical_operators_of_bools():
    a, b = tf.constant([True, True, False]), tf.constant([True, False, False])
    assert (a & b).numpy().tolist() == [True, False, False]
    assert (a | b).numpy().tolist() == [True, True, False]
    assert (a ^ b).numpy().tolist() == [False, True, False]
    assert (~a).numpy().tolist() == [False, False, True]
    assert (True & b).numpy().tolist() == [True, False, False]
    assert (False | b).numpy().tolist() == [True, False, False]
    assert (True ^ b).numpy().tolist() == [False, True, True]


def test_equality_is_elementwise_and_shapes_that_do_not_fit_are_unequal():
    """T92; comparing with None is False instead of an error (18.2)."""
    t = tf.constant([1.0, 2.0])
    assert (t == [1.0, 5.0]).numpy().tolist() == [True, False]
    assert (t != [1.0, 5.0]).numpy().tolist() == [False, True]
    other = tf.constant([1.0, 2.0, 3.0])
    for found, expected in ((t == other, False), (t != other, True)):
        assert found.dtype == "bool" and found.shape == () and found.numpy() == expected
    assert (t == None) is False and (t != None) is True  # noqa: E711


# Dtypes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, "int32"),
        (2**40, "int64"),
        (-(2**31), "int32"),
        (2**31, "int64"),
        (1.0, "float32"),
        (True, "bool"),
        (1j, "complex128"),
        ("a", "string"),
        ([1, 2.5], "float32"),
        ([True, False], "bool"),
        ([], "float32"),
        (range(3), "int32"),
        ((1, 2), "int32"),
        (np.float64(1), "float64"),
        (np.float32(1), "float32"),
        (np.zeros(2), "float64"),
        (np.arange(2), "int64"),
        (np.zeros(2, "float16"), "float16"),
        (np.zeros(2, "uint8"), "uint8"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_python_values_have_default_dtypes_and_arrays_keep_theirs(value, dtype):
    """T103."""
    assert tf.convert_to_tensor(value).dtype == dtype
    assert tf.Variable(value).dtype == dtype


def test_mixed_dtypes_name_the_position_as_tensorflow_does():
    """T100."""
    with pytest.raises(
        InvalidArgumentError, match=r"as input #1\(zero-based\) was expected to be a float32 tensor but is a float64"
    ):
        tf.constant(1.0) + tf.constant(1.0, dtype="float64")


@pytest.mark.parametrize(("number", "shown"), [(1.5, "1.5"), (2.0, "2.0"), (1j, "1j"), ("a", "'a'")])
def test_a_number_that_does_not_fit_the_tensors_dtype_is_refused(number, shown):
    """T101: an InvalidArgumentError and a TypeError at once."""
    t = tf.constant(1)
    for function in (lambda: t + number, lambda: number * t if not isinstance(number, str) else t * number):
        with pytest.raises(DTypeError, match=f"Cannot convert {shown} to EagerTensor of dtype int32"):
            function()
    assert issubclass(DTypeError, InvalidArgumentError) and issubclass(DTypeError, TypeError)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "complex64"])
def test_python_integers_fit_every_numeric_dtype(dtype):
    """T101."""
    t = tf.constant(2, dtype=dtype)
    assert (t + 1).dtype == dtype and (1 + t).dtype == dtype and (t * [1, 2]).dtype == dtype


def test_an_array_of_another_dtype_follows_the_tensor():
    """T101: on either side, and also if it is the first."""
    for other in (np.ones(2), np.ones(2, "float16"), np.ones(2, "int64"), np.ones(2, bool)):
        assert (other * tf.constant([1.0, 2.0])).dtype == tf.float32
        assert (tf.constant([1.0, 2.0]) * other).dtype == tf.float32


def test_dividing_integers_gives_doubles_and_rounding_division_stays_integer():
    """T104."""
    a, b = tf.constant([7, -7]), tf.constant([2, 2])
    assert (a / b).dtype == tf.float64 and (a / b).numpy().tolist() == [3.5, -3.5]
    assert (a // b).dtype == tf.int32 and (a // b).numpy().tolist() == [3, -4]
    assert (a % b).numpy().tolist() == [1, 1]


def test_an_error_raised_on_purpose_reaches_the_caller_as_it_is():
    """Not wrapped, and not its own cause: that would be a reference cycle."""
    with pytest.raises(InvalidArgumentError) as caught:
        tf.constant(1) // 0
    assert caught.value.__cause__ is None
    with pytest.raises(tf.errors.ShapeError) as caught:
        tf.ones([2]) + tf.ones([3])
    assert isinstance(caught.value.__cause__, ValueError) and caught.value.__cause__ is not caught.value


# Conversion ------------------------------------------------------------------------------------------------------


def test_converting_a_tensor_gives_the_same_tensor():
    t = tf.constant([1.0])
    assert tf.convert_to_tensor(t) is t and tf.convert_to_tensor(t, "float32") is t


def test_conversion_is_no_cast():
    """T105: a Tensor of another dtype is refused; tf.cast is the only cast (T106)."""
    with pytest.raises(ValueError, match=r"requested dtype int32 for Tensor with dtype float32. Convert it: tf.cast"):
        tf.convert_to_tensor(tf.constant(1.0), "int32")
    with pytest.raises(TypeError, match=r"Cannot convert 1.5 to EagerTensor of dtype int32"):
        tf.convert_to_tensor(1.5, dtype="int32")
    with pytest.raises(TypeError, match="out of range"):
        tf.convert_to_tensor(300, dtype="uint8")
    with pytest.raises(ValueError, match=r"\(None\)"):
        tf.convert_to_tensor(None)


def test_ragged_lists_and_foreign_objects_are_refused():
    """T99."""
    with pytest.raises(ValueError, match="Can't convert non-rectangular Python sequence to Tensor"):
        tf.convert_to_tensor([[1], [1, 2]])
    with pytest.raises(ValueError, match="unsupported type"):
        tf.convert_to_tensor(object())
    with pytest.raises(ValueError, match="object array of shape"):
        tf.convert_to_tensor(np.array([object()]))


def test_a_dtype_hint_is_followed_if_the_value_can_take_it():
    assert tf.convert_to_tensor([1, 2], dtype_hint="float64").dtype == tf.float64
    assert tf.convert_to_tensor([1.5], dtype_hint="int32").dtype == tf.float32


def test_lists_of_tensors_are_stacked_and_stay_connected():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.convert_to_tensor([[x, x * x], [1.0, 2.0]])
    assert y.numpy().tolist() == [[2.0, 4.0], [1.0, 2.0]]
    assert tape.gradient(y, x).numpy() == 5.0


def test_numbers_in_a_list_take_the_dtype_of_the_tensors_beside_them():
    wide = tf.constant(1.0, tf.float64)
    assert tf.convert_to_tensor([tf.constant(1.0), 2]).dtype == tf.float32
    assert tf.convert_to_tensor([1.0, wide]).dtype == tf.float64
    assert tf.convert_to_tensor([[1.0, 2.0], [3, wide]]).numpy().tolist() == [[1.0, 2.0], [3.0, 1.0]]
    assert tf.convert_to_tensor([np.float64(2.0), tf.constant(1.0)]).dtype == tf.float32
    assert tf.convert_to_tensor([np.ones(2), tf.ones([2])]).dtype == tf.float32
    assert tf.stack([1, tf.constant(2.0)]).numpy().tolist() == [1.0, 2.0]
    assert tf.constant([tf.constant("a"), "b"]).dtype == tf.string
    with pytest.raises(TypeError, match="Cannot convert 2.5"):
        tf.convert_to_tensor([tf.constant(1), 2.5])
    with pytest.raises(tf.errors.DTypeError, match="expected to be a float32 tensor but is a float64"):
        tf.convert_to_tensor([tf.constant(1.0), wide])


def test_a_required_dtype_casts_the_tensors_in_a_list_unless_something_would_be_lost():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.convert_to_tensor([x, 1], tf.float64)
    assert y.dtype == tf.float64 and tape.gradient(y, x).numpy() == 1.0
    assert tf.convert_to_tensor([tf.constant(3), 1.5], tf.float32).numpy().tolist() == [3.0, 1.5]
    assert tf.convert_to_tensor([tf.constant(3)], dtype_hint=tf.float32).dtype == tf.int32
    with pytest.raises(TypeError, match="holds a tensor of dtype float32 to int32"):
        tf.convert_to_tensor([tf.constant(1.5)], tf.int32)


def test_numbers_to_be_stacked_are_floats_if_one_is():
    assert tf.stack([1, 2.0, 3]).numpy().tolist() == [1.0, 2.0, 3.0]
    assert tf.stack([[1, 2], [3, 4.0]], axis=1).dtype == tf.float32
    assert tf.stack([1, 2]).dtype == tf.int32


@pytest.mark.parametrize("change", ["assign", "assign_add", "assign_sub"])
def test_a_variable_takes_a_list_of_tensors_and_a_recording_repeats_it(change):
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def step(a):
        getattr(v, change)([a, 2.0])
        return v.read_value()

    expected = np.array([1.0, 2.0], "float32")
    for a in (3.0, 4.0, 5.0):
        given = np.array([a, 2.0], "float32")
        expected = {"assign": given, "assign_add": expected + given, "assign_sub": expected - given}[change]
        assert step(tf.constant(a)).numpy().tolist() == expected.tolist()
    assert tf.Variable([tf.constant(1.0), 2]).numpy().tolist() == [1.0, 2.0]


def test_casting_floats_passes_gradients_back_in_the_sources_dtype_and_integers_cut_them():
    """T106."""
    x = tf.constant([1.7, -1.7])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        wide = tf.cast(x, "float64") * 3.0
        whole = tf.cast(x, "int32")
        back = tf.cast(whole, "float32")
    assert whole.numpy().tolist() == [1, -1]
    gradient = tape.gradient(wide, x)
    assert gradient.dtype == tf.float32 and gradient.numpy().tolist() == [3.0, 3.0]
    assert tape.gradient(back, x) is None
