"""Tensors go to NumPy, PyTorch and JAX and come back, in the same memory, and no write changes what must not change."""

import importlib

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import DTypeError, InvalidArgumentError

DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64", "complex128"]


class Library:
    """What the tests ask of another library."""

    def __init__(self, name):
        self.name = name
        self.module = importlib.import_module({"jax": "jax.numpy"}.get(name, name))

    def take(self, x):
        """An array of the library that shares the memory of a Tensor, if it can."""
        return self.module.from_dlpack(x)

    def give(self, array):
        """The same as an array of the library."""
        return getattr(self.module, "tensor" if self.name == "torch" else "asarray")(array)

    def address(self, array):
        """Where it lies."""
        methods = {
            "numpy": lambda: array.ctypes.data,
            "torch": lambda: array.data_ptr(),
            "jax": lambda: array.unsafe_buffer_pointer(),
        }
        return methods[self.name]()


def installed(name):
    """The library, or the test is skipped."""
    state = np.random.get_state()
    pytest.importorskip(name, reason=f"{name} is not installed")
    found = Library(name)
    found.give(np.ones(1))  # before its first array JAX draws random numbers from NumPy
    np.random.set_state(state)
    return found


@pytest.fixture(params=["numpy", "torch", pytest.param("jax", marks=pytest.mark.slow)])
def library(request):
    return installed(request.param)


@pytest.fixture
def torch():
    return installed("torch").module


def aligned(values):
    """A Tensor whose memory begins where JAX asks for it, at a multiple of 64 bytes."""
    values = np.asarray(values)
    room = np.empty(values.nbytes + 64, "uint8")
    start = -room.ctypes.data % 64
    array = room[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    array[...] = values
    return tf.Tensor(array)


# Out -------------------------------------------------------------------------------------------------------------------------


def test_a_tensor_goes_out_without_being_copied(library):
    x = aligned(np.arange(6.0, dtype="float32").reshape(2, 3))
    taken = library.take(x)
    np.testing.assert_array_equal(np.asarray(taken), x.numpy())
    assert library.address(taken) == x.array.ctypes.data


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_that_others_have_goes_out_and_comes_back(library, dtype):
    if library.name == "jax" and dtype in ("float64", "int64", "complex128"):
        pytest.skip("JAX has no 64 bits unless it is told to")
    x = tf.constant(np.array([[0, 1], [1, 0]], dtype))
    back = tf.convert_to_tensor(library.take(x))
    assert back.dtype == x.dtype
    np.testing.assert_array_equal(back.numpy(), x.numpy())


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x[0, 0],
        lambda x: x[:0],
        tf.transpose,
        lambda x: x[::2],
        lambda x: x[::2, ::-1],
        lambda x: tf.broadcast_to(x[:1], [4, 3]),
    ],
)
def test_every_layout_goes_out(library, make):
    x = make(tf.reshape(tf.range(12.0), [4, 3]))
    np.testing.assert_array_equal(np.asarray(library.take(x)), x.numpy())


def test_numpy_sees_a_tensor_read_only_and_without_a_copy():
    x = tf.constant([1.0, 2.0])
    for see in (np.asarray, np.from_dlpack, lambda x: np.array(x, copy=False), lambda x: x.__array__()):
        seen = see(x)
        assert np.shares_memory(seen, x.array)
        with pytest.raises(ValueError, match="read-only"):
            seen[0] = 9.0
    for copy in (np.array(x), np.asarray(x, "float64"), np.from_dlpack(x, copy=True), x.numpy()):
        assert not np.shares_memory(copy, x.array)
        copy[0] = 9.0
    assert x.numpy().tolist() == [1.0, 2.0]


def test_a_conversion_that_needs_a_copy_can_be_forbidden():
    with pytest.raises(ValueError, match="copy"):
        np.array(tf.constant([1.0]), dtype="float64", copy=False)


def test_the_array_interface_is_an_address_that_must_not_be_written_to():
    x = tf.constant([[1.0, 2.0]])
    interface = x.__array_interface__
    assert interface["data"] == (x.array.ctypes.data, True) and interface["shape"] == (1, 2)
    for without in (tf.constant(1.0), tf.constant(["a"]), tf.constant([1.0], tf.bfloat16), tf.Variable([1.0])):
        assert not hasattr(without, "__array_interface__")
        assert np.asarray(without).shape == without.shape
    assert not hasattr(x, "__cuda_array_interface__")


def test_what_others_cannot_hold_is_refused_with_a_cast():
    for x in (tf.constant(["a"]), tf.constant([1.0], tf.bfloat16)):
        with pytest.raises(BufferError, match=rf"dtype {x.dtype.name} cannot be shared by DLPack. Cast it"):
            np.from_dlpack(x)


def test_a_stack_of_many_values_is_none_of_them():
    for leave in (np.asarray, np.from_dlpack):
        with pytest.raises(InvalidArgumentError, match="stands for 3 values at once"):
            tf.vectorized_map(leave, tf.ones([3, 2]))


# Variables -------------------------------------------------------------------------------------------------------------------


def trained(variable, steps=4):
    """The Variable after steps of an optimizer that writes into arrays without another reference."""
    optimizer = tf.keras.optimizers.SGD(1.0)
    for _ in range(steps):
        optimizer.apply([tf.ones_like(variable)], [variable])
    return variable


def test_what_was_taken_from_a_variable_stays_as_it_was(library):
    variable = trained(tf.Variable(np.zeros(64, "float32")))
    before = variable.numpy()
    taken = library.take(variable)
    trained(variable)
    np.testing.assert_array_equal(np.asarray(taken), before)
    assert variable.numpy()[0] == before[0] - 4.0


def test_an_interface_keeps_a_variable_from_writing_there_for_as_long_as_it_is_used():
    variable = trained(tf.Variable(np.zeros(64, "float32")))
    for see in (np.asarray, np.from_dlpack, lambda v: np.asarray(v.read_value())):
        before = variable.numpy()
        seen = see(variable)
        trained(variable)
        np.testing.assert_array_equal(seen, before)


# In --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "uint8", "bool", "complex64"])
def test_arrays_of_others_become_tensors_of_their_dtype(library, dtype):
    given = library.give(np.array([[0, 1, 1]], dtype))
    for make in (tf.constant, tf.convert_to_tensor, lambda x: tf.Variable(x).read_value(), tf.experimental.dlpack.from_dlpack):
        x = make(given)
        assert x.dtype.name == dtype and x.numpy().tolist() == np.array([[0, 1, 1]], dtype).tolist()


def test_converting_copies_and_from_dlpack_does_not(torch):
    given = torch.tensor([1.0, 2.0])
    copied, shared = tf.constant(given), tf.experimental.dlpack.from_dlpack(given)
    given[0] = 9.0
    assert copied.numpy().tolist() == [1.0, 2.0]
    assert shared.array.ctypes.data == given.data_ptr()


def test_double_precision_stays(torch):
    assert tf.constant(torch.ones(2, dtype=torch.float64)).dtype == tf.float64


def test_arrays_of_others_stand_beside_tensors_as_numpys_do(library):
    x = tf.constant([1.0, 2.0])
    given = library.give(np.array([1.0, 1.0], "float32"))
    for y in (
        x + given,
        tf.add(given, x),
        tf.concat([x, given], 0)[:2] + given,
        tf.where(library.give(np.array([True, True])), x, x) + 1.0,
    ):
        assert isinstance(y, tf.Tensor) and y.dtype == tf.float32
    with pytest.raises(DTypeError):
        tf.constant([1, 2]) + given


def test_layers_take_arrays_of_others(library):
    layer = tf.keras.layers.Dense(2)
    assert layer(library.give(np.ones((3, 4), "float32"))).shape == (3, 2)


def test_a_tensor_with_a_gradient_is_refused_with_what_to_do(torch):
    with pytest.raises(ValueError, match=r"a torch.Tensor cannot become a tensor: .*requires? grad.*detach"):
        tf.constant(torch.ones(2, requires_grad=True))


@pytest.mark.slow
def test_bfloat16_of_jax_comes_in():
    x = tf.constant(installed("jax").module.ones(2, "bfloat16"))
    assert (x.dtype.name, np.asarray(x, "float32").tolist()) == ("bfloat16", [1.0, 1.0])


def test_bfloat16_of_pytorch_is_refused(torch):
    with pytest.raises(ValueError, match="torch.Tensor cannot become a tensor"):
        tf.constant(torch.ones(2, dtype=torch.bfloat16))


class OnGpu:
    """An array on a device that no one has."""

    def __dlpack__(self, **options):
        raise AssertionError("this must not be asked")

    def __dlpack_device__(self):
        return 12, 0


def test_a_device_that_is_neither_cpu_nor_cuda_is_named():
    with pytest.raises(ValueError, match="OnGpu cannot become a tensor: device type 12 of DLPack is neither CPU nor CUDA"):
        tf.constant(OnGpu())


# Capsules --------------------------------------------------------------------------------------------------------------------


def test_capsules_go_out_and_come_back():
    x = tf.constant([1.0, 2.0])
    back = tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(x))
    assert np.shares_memory(back.array, x.array) and back.numpy().tolist() == [1.0, 2.0]


def test_a_capsule_of_a_variable_keeps_the_value(torch):
    variable = trained(tf.Variable(np.zeros(8, "float32")))
    before = variable.numpy()
    taken = torch.utils.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(variable))
    trained(variable)
    np.testing.assert_array_equal(taken.numpy(), before)


def test_a_capsule_of_what_cannot_be_written_is_a_copy():
    repeated = tf.broadcast_to(tf.constant([1.0]), [3])
    back = tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(repeated))
    assert back.numpy().tolist() == [1.0, 1.0, 1.0] and not np.shares_memory(back.array, repeated.array)


# Tapes -----------------------------------------------------------------------------------------------------------------------


def test_a_tape_says_where_the_value_left_it(library):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(trace=True) as tape:
        y = tf.reduce_sum(tf.convert_to_tensor(np.asarray(library.take(x.read_value() * 2.0))))
    assert tape.gradient(y, x) is None
    assert "the value left the tape through DLPack" in str(tape.explain(y, x))
