"""Dtypes by name, and shapes that are tuples."""

import copy
import pickle

import numpy as np
import pytest

import minikeras as tf
from minikeras.types import as_dtype

NAMES = [
    *("float16", "float32", "float64", "complex64", "complex128", "bool", "string"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_dtype_is_known_by_its_name_and_equal_to_everything_that_stands_for_it(name):
    dtype = getattr(tf, name)
    assert dtype is as_dtype(name) is as_dtype(dtype)
    assert dtype == name and name == dtype and dtype.name == name
    assert dtype == dtype.numpy and dtype == dtype.as_numpy_dtype
    assert hash(dtype) == hash(name)
    assert [other for other in NAMES if dtype == getattr(tf, other)] == [name]


def test_a_dtype_prints_as_in_the_guides():
    """T107."""
    assert repr(tf.float32) == "tf.float32" and str(tf.float32) == "<dtype: 'float32'>"
    assert f"{tf.bool!r} {tf.int32!r}" == "tf.bool tf.int32"


def test_a_dtype_knows_its_kind():
    assert [tf.float16.is_floating, tf.complex64.is_floating, tf.int8.is_floating] == [True, False, False]
    assert [tf.complex64.is_complex, tf.float32.is_complex] == [True, False]
    assert [tf.int8.is_integer, tf.uint64.is_integer, tf.bool.is_integer, tf.float32.is_integer] == [
        True,
        True,
        False,
        False,
    ]
    assert [name for name in NAMES if getattr(tf, name).is_unsigned] == ["uint8", "uint16", "uint32", "uint64"]
    assert [tf.complex64.real_dtype, tf.complex128.real_dtype, tf.float16.real_dtype] == [tf.float32, tf.float64, tf.float16]
    assert tf.int8.base_dtype is tf.int8
    assert [tf.bool.is_bool, tf.int8.is_bool] == [True, False]
    assert [name for name in NAMES if getattr(tf, name).is_differentiable] == NAMES[:5]
    assert [tf.float64.size, tf.int16.size] == [8, 2]
    assert (tf.uint8.min, tf.uint8.max) == (0, 255) and tf.float32.max == np.finfo(np.float32).max


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (float, "float32"),
        (int, "int32"),
        (bool, "bool"),
        (str, "string"),
        ("float", "float32"),
        ("double", "float64"),
        ("f8", "float64"),
        (np.float64, "float64"),
        ("<U3", "string"),
    ],
)
def test_python_and_numpy_types_stand_for_dtypes(value, name):
    assert as_dtype(value) == name


@pytest.mark.parametrize("value", [None, "nonsense", 5, "datetime64[s]"])
def test_what_is_no_dtype_is_refused_and_unequal_to_any(value):
    with pytest.raises(TypeError):
        as_dtype(value)
    assert (tf.float32 == value) is False and (tf.float32 != value) is True


def test_dtypes_survive_copying_and_pickling_as_themselves():
    assert pickle.loads(pickle.dumps(tf.float32)) is tf.float32
    assert copy.deepcopy(tf.float32) is tf.float32


def test_bfloat16_needs_a_package_and_says_which():
    pytest.importorskip("numpy")
    try:
        import ml_dtypes
    except ImportError:
        with pytest.raises(ImportError, match="pip install ml_dtypes"):
            as_dtype("bfloat16")
    else:
        assert tf.bfloat16 == "bfloat16" == as_dtype(ml_dtypes.bfloat16).name
        assert tf.bfloat16.is_floating and tf.bfloat16.is_differentiable


# Shapes --------------------------------------------------------------------------------------------------------------


def test_a_shape_is_a_tuple_that_also_equals_lists():
    """T108."""
    shape = tf.zeros([3, 2]).shape
    assert isinstance(shape, tuple) and shape == (3, 2) and shape == [3, 2] and shape != [3] and shape != 3
    assert [type(size) for size in shape] == [int, int]
    assert (str(shape), repr(shape)) == ("(3, 2)", "TensorShape([3, 2])")
    assert (str(tf.zeros([]).shape), repr(tf.zeros([4]).shape)) == ("()", "TensorShape([4])")
    assert hash(shape) == hash((3, 2))


def test_a_shape_has_tensorflows_methods():
    """T108."""
    shape = tf.TensorShape([3, 2])
    assert shape.as_list() == [3, 2] == shape.dims
    assert (shape.rank, shape.ndims, shape.num_elements(), tf.TensorShape([]).num_elements()) == (2, 2, 6, 1)
    assert shape.is_fully_defined()
    assert isinstance(shape.concatenate([4]), tf.TensorShape) and shape.concatenate([4]) == (3, 2, 4)
    assert isinstance(shape[1:], tf.TensorShape) and shape[1:] == [2] and shape[-1] == 2


@pytest.mark.parametrize("kind", [list, tuple, tf.TensorShape])
def test_shapes_are_joined_by_a_plus_on_either_side(kind):
    shape, more = tf.TensorShape([3, 2]), kind([4])
    assert shape + more == (3, 2, 4) and isinstance(shape + more, tf.TensorShape)
    assert more + shape == (4, 3, 2)


def test_a_shape_is_usable_where_numpy_and_tensorflow_want_one():
    """T108."""
    shape = tf.zeros([3, 2]).shape
    assert np.ones(shape).shape == shape and tf.ones(shape).shape == shape
    assert tf.reduce_prod(shape).numpy() == 6
    assert shape not in ([], None)


def test_the_module_of_dtypes_holds_those_of_the_package():
    assert tf.dtypes.float32 is tf.float32 and tf.dtypes.bool is tf.bool and tf.dtypes.as_dtype is tf.as_dtype
    assert tf.dtypes.cast([1], tf.dtypes.bfloat16).dtype == tf.bfloat16
