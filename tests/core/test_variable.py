"""Variables: cells that are read by value and assigned by re-binding, so that no reader ever sees a later write."""

import concurrent.futures
import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from in_one_test import in_one_test

import minikeras as tf
from minikeras.errors import InvalidArgumentError

# Making ----------------------------------------------------------------------------------------------------------


def test_the_class_is_named_as_the_guides_print_it():
    """T89."""
    v = tf.Variable(1.0)
    assert type(v).__name__ == "ResourceVariable" and isinstance(v, tf.Variable)
    assert type(v.value()).__name__ == "EagerTensor" == type(tf.Variable([1.0])[0]).__name__


@pytest.mark.parametrize(
    ("initial", "expected"),
    [
        (2.0, 2.0),
        ([1.0, 2.0], [1.0, 2.0]),
        (range(3), [0, 1, 2]),
        (np.array([1.0, 2.0]), [1.0, 2.0]),
        (lambda: [1.0, 2.0], [1.0, 2.0]),
    ],
    ids=["number", "list", "range", "array", "function"],
)
def test_a_variable_is_made_from_anything_with_values(initial, expected):
    """T90."""
    assert tf.Variable(initial).numpy().tolist() == expected


def test_a_variable_made_from_a_tensor_or_variable_is_a_copy():
    """T90."""
    first = tf.Variable([1.0, 2.0])
    second, third = tf.Variable(first), tf.Variable(tf.constant([1.0, 2.0]), dtype="float64")
    first.assign([5.0, 6.0])
    assert second.numpy().tolist() == third.numpy().tolist() == [1.0, 2.0]
    assert third.dtype == tf.float64


def test_an_initial_value_is_needed():
    """T90."""
    for make in (lambda: tf.Variable(None), lambda: tf.Variable(), lambda: tf.Variable(lambda: None)):
        with pytest.raises(ValueError, match="an initial value is needed, None was given"):
            make()


def test_a_given_shape_must_be_that_of_the_initial_value():
    assert tf.Variable([1.0, 2.0], shape=(2,)).shape == (2,)
    with pytest.raises(ValueError, match=r"shape \(2,\) is not the given shape \(3,\)"):
        tf.Variable([1.0, 2.0], shape=[3])


def test_names_end_in_tensorflows_suffix():
    """T90."""
    assert tf.Variable(1.0).name == "Variable:0"
    assert tf.Variable(1.0, name="foo").name == "foo:0"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1.0, 2.0], "<tf.Variable 'foo:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>"),
        (3.0, "<tf.Variable 'foo:0' shape=() dtype=float32, numpy=3.0>"),
        (
            [[1, 2], [3, 4]],
            "<tf.Variable 'foo:0' shape=(2, 2) dtype=int32, numpy=\narray([[1, 2],\n       [3, 4]], dtype=int32)>",
        ),
    ],
)
def test_a_variable_prints_as_in_the_guides(value, text):
    """T90."""
    assert repr(tf.Variable(value, name="foo")) == text == str(tf.Variable(value, name="foo"))


def test_trainable_and_constraint_are_kept_and_assign_does_not_apply_the_constraint():
    """T90."""
    v = tf.Variable([1.0], trainable=False, constraint=tf.abs)
    assert v.trainable is False and v.constraint is tf.abs
    assert v.assign([-3.0]).numpy().tolist() == [-3.0]
    v.trainable = 1
    assert v.trainable is True
    with pytest.raises(ValueError, match="the constraint must be a function of a Tensor or None, found 'relu'"):
        v.constraint = "relu"
    with pytest.raises(ValueError, match="found 3"):
        tf.Variable([1.0], constraint=3)
    assert v.constraint is tf.abs


# Reading is a snapshot: every hazard -------------------------------------------------------------------------------

WRITES = {
    "assign": lambda v: v.assign(tf.zeros_like(v)),
    "assign_add": lambda v: v.assign_add(tf.ones_like(v)),
    "assign_sub": lambda v: v.assign_sub(tf.ones_like(v)),
    "part": lambda v: v[0].assign(-1.0),
    "scatter": lambda v: v.scatter_nd_update([[0, 0]], [-1.0]),
    "rows": lambda v: v.scatter_add(SimpleNamespace(indices=[0], values=[[5.0, 5.0, 5.0]])),
    "optimizer step": lambda v: step_like_an_optimizer(v),
}
READS = {
    "the value": lambda v: v.value(),
    "read_value": lambda v: v.read_value(),
    "a conversion": tf.convert_to_tensor,
    "identity": tf.identity,
    "a reshape": lambda v: tf.reshape(v, [-1]),
    "a transpose": tf.transpose,
    "a slice": lambda v: v[:, 1:],
    "a row": lambda v: v[0],
    "a view of a view": lambda v: tf.reshape(tf.transpose(v)[1:], [-1])[::2],
    "a broadcast": lambda v: tf.broadcast_to(v, [4, 2, 3]),
    "numpy": lambda v: v.numpy(),
    "an array": np.asarray,
    "another variable": lambda v: tf.Variable(v),
    "an assigned variable": lambda v: tf.Variable(np.zeros((2, 3), "float32")).assign(v),
}


def step_like_an_optimizer(v):
    v.exchange(np.asarray(v) - np.asarray(0.5, v.dtype.name))


@in_one_test(write=WRITES.values(), read=READS.values())
def test_no_reader_sees_a_later_write(read, write):
    """T86, T91: whatever was read, through whatever view, stays as it was, also over several writes."""
    v = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    readings = []
    for _ in range(3):
        seen = read(v)
        readings.append((seen, np.array(seen).tolist()))
        write(v)
    for seen, before in readings:
        assert np.array(seen).tolist() == before
    assert v.numpy().tolist() != [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "the write did nothing"


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_gradient_uses_the_values_that_were_read(write):
    """T86: assigning between the forward pass and gradient() changes nothing, on a tape that is used twice."""
    v = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(v * v)
    before = tape.gradient(y, v).numpy()
    for _ in range(3):
        write(v)
        assert tape.gradient(y, v).numpy().tolist() == before.tolist() == [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]


def test_each_read_is_differentiated_at_the_value_it_saw():
    """T86: y = v*v at 2, then v = 5, z = v*v gives 4 and 10, and 14 together."""
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * v
        v.assign(5.0)
        z = v * v
    assert tape.gradient(y, v).numpy() == 4.0
    assert tape.gradient(z, v).numpy() == 10.0
    assert tape.gradient([y, z], v).numpy() == 14.0


def test_two_tapes_see_the_values_of_their_own_reads():
    v = tf.Variable([3.0])
    with tf.GradientTape() as first:
        y = v * v
        with tf.GradientTape() as second:
            v.assign_add([1.0])
            z = v * v
    assert second.gradient(z, v).numpy().tolist() == [8.0]
    assert first.gradient([y, z], v).numpy().tolist() == [14.0]


def test_assigning_is_not_differentiated():
    """T86: nothing flows through the argument; the variable counts as a source as usual."""
    x, v = tf.Variable(3.0), tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        v.assign_add(x * 2.0)
        y = v * v
    assert tape.gradient(y, x) is None
    assert tape.gradient(y, v).numpy() == 14.0


def test_iterating_reads_once():
    """Later elements do not change under the loop, and one read is recorded."""
    v = tf.Variable([1.0, 2.0, 3.0])
    seen = []
    with tf.GradientTape() as tape:
        for element in v:
            v.assign([0.0, 0.0, 0.0])
            seen.append(element)
        y = tf.add_n(seen)
    assert [float(element) for element in seen] == [1.0, 2.0, 3.0]
    assert [record.primitive.name for record in tape.tape.records].count("read_variable") == 1
    assert tape.gradient(y, v).numpy().tolist() == [1.0, 1.0, 1.0]


def test_a_reader_in_another_thread_sees_whole_values_only():
    """A value is re-bound in one step, so a reading never mixes two of them."""
    v = tf.Variable(np.zeros(50_000, "float32"))

    def write():
        for number in range(200):
            v.assign(np.full(50_000, number, "float32"))
            step_like_an_optimizer(v)

    def read():
        return all(np.ptp(v.numpy()) == 0.0 for _ in range(200))

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        writing = pool.submit(write)
        readings = [pool.submit(read) for _ in range(2)]
        writing.result()
        assert all(reading.result() for reading in readings)


# Assigning -----------------------------------------------------------------------------------------------------------


def test_assigning_returns_the_variable_through_which_gradients_flow():
    """T87: r**2 gives 6 at 3; read_value=False gives None."""
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        r = v.assign_add(1.0)
        y = r**2
    assert tape.gradient(y, v).numpy() == 6.0
    assert v.assign(1.0, read_value=False) is None
    assert v.assign_add(1.0, read_value=False) is None
    assert v.assign_sub(1.0, read_value=False) is None
    assert v.assign(7.0) is not None and v.numpy() == 7.0


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        (1.0, 2.0),
        np.array([1, 2]),
        np.array([1.0, 2.0]),
        np.array([True, False]),
        tf.constant([1.0, 2.0]),
        lambda: [1, 2],
    ],
    ids=["ints", "tuple", "int array", "double array", "bool array", "tensor", "function"],
)
def test_assigned_values_are_cast_to_the_variables_dtype(value):
    """T87."""
    v = tf.Variable([0.0, 0.0])
    v.assign(value)
    assert v.dtype == tf.float32 and v.numpy()[0] == 1.0
    v.assign_add(value)
    v.assign_sub(value)
    assert v.dtype == tf.float32 and v.numpy()[0] == 1.0


def test_a_tensor_of_another_dtype_is_not_assigned():
    """T87: and the old value stays."""
    v = tf.Variable([1.0, 2.0])
    for write in (v.assign, v.assign_add, v.assign_sub, v[0].assign):
        with pytest.raises(ValueError, match="Tensor conversion requested dtype float32 for Tensor with dtype int32"):
            write(tf.constant([3, 4]))
    assert v.numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("value", [3.0, [1.0, 2.0, 3.0], [[1.0, 2.0]]], ids=["scalar", "longer", "more axes"])
def test_another_shape_is_not_assigned(value):
    """T87: a ValueError from assign, an InvalidArgumentError from the others; the old value stays."""
    v = tf.Variable([1.0, 2.0], name="w")
    with pytest.raises(ValueError, match=r"Cannot assign value to variable ' w:0': Shape mismatch.*\(2,\)"):
        v.assign(value)
    for change in (v.assign_add, v.assign_sub):
        with pytest.raises(InvalidArgumentError, match=r"variable 'w:0' has shape \(2,\).*tf.broadcast_to"):
            change(value)
    assert v.numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("operator", "method"),
    [("__iadd__", "assign_add"), ("__isub__", "assign_sub"), ("__imul__", "assign"), ("__itruediv__", "assign")],
)
def test_in_place_operators_name_the_method_to_use(operator, method):
    """T88."""
    v = tf.Variable(1.0)
    with pytest.raises(RuntimeError, match=rf"with `tf.Variable`s is not supported. Use `variable.{method}\("):
        getattr(v, operator)(1.0)
    assert isinstance(v + 1.0, tf.Tensor)


# Parts -------------------------------------------------------------------------------------------------------------


def test_a_part_can_be_assigned():
    """T93."""
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    assert v[1].assign([8.0, 9.0]) is v
    assert v.numpy().tolist() == [[1.0, 2.0], [8.0, 9.0]]
    v[:, 0].assign([5.0, 6.0])
    v[-1, tf.constant(1)].assign(7)
    v[0, 1:].assign(np.zeros(1))
    assert v.numpy().tolist() == [[5.0, 0.0], [6.0, 7.0]]
    v[v > 5.5].assign([1.0, 2.0])
    assert v.numpy().tolist() == [[5.0, 0.0], [1.0, 2.0]]


def test_a_list_of_indices_is_written_where_it_was_read():
    """T96: a list of integers is a tuple of indices."""
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    assert v[[0, 1]].numpy() == 2.0
    v[[0, 1]].assign(9.0)
    assert v.numpy().tolist() == [[1.0, 9.0], [3.0, 4.0]]


def test_a_part_is_differentiated_like_any_tensor():
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        part = v[1:]
        y = part * part
    gradients = tape.gradient(y, [v, part])
    assert [g.numpy().tolist() for g in gradients] == [[0.0, 4.0, 6.0], [4.0, 6.0]]


def test_scattering_replaces_or_adds_where_the_indices_point():
    """T93: repeated indices add up."""
    v = tf.Variable([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    v.scatter_nd_update([[0, 1], [2, 0]], [7.0, 8.0])
    assert v.numpy().tolist() == [[1.0, 7.0], [2.0, 2.0], [8.0, 3.0]]
    v.scatter_update(SimpleNamespace(indices=[1], values=[[0.0, 0.0]]))
    assert v.numpy().tolist() == [[1.0, 7.0], [0.0, 0.0], [8.0, 3.0]]
    v.scatter_add(SimpleNamespace(indices=[1, 1], values=[[1.0, 2.0], [1.0, 2.0]]))
    assert v.numpy().tolist() == [[1.0, 7.0], [2.0, 4.0], [8.0, 3.0]]


@pytest.mark.parametrize("index", [3, -1])
def test_scattering_out_of_range_changes_nothing(index):
    v = tf.Variable([1.0, 2.0, 3.0])
    for scatter in (
        lambda: v.scatter_nd_update([[0], [index]], [7.0, 8.0]),
        lambda: v.scatter_add(SimpleNamespace(indices=[0, index], values=[7.0, 8.0])),
        lambda: v.scatter_update(SimpleNamespace(indices=[0, index], values=[7.0, 8.0])),
    ):
        with pytest.raises(
            InvalidArgumentError, match=r"scatter: an index of axis 0 of variable 'Variable:0' is not in \[0, 3\)"
        ):
            scatter()
    assert v.numpy().tolist() == [1.0, 2.0, 3.0]


# Other ways to use one ---------------------------------------------------------------------------------------------


def test_numpy_and_python_read_a_variable():
    """T91."""
    v = tf.Variable([[1.0, 3.0], [5.0, 7.0]])
    outside = v.numpy()
    outside[0, 0] = 99.0
    assert v.numpy()[0, 0] == 1.0
    assert np.array(v).shape == (2, 2)
    assert np.mean(v, axis=0).tolist() == [3.0, 5.0]
    assert float(tf.Variable(2.5)) == 2.5
    assert bool(tf.Variable(2.5) > 1.0)
    assert ["a", "b"][tf.Variable(1)] == "b"
    first, second = v
    assert second.numpy().tolist() == [5.0, 7.0] and len(v) == 2 and first.shape == (2,)


def test_the_largest_of_several_variables_is_that_variable():
    """T94."""
    variables = [tf.Variable(1.0), tf.Variable(2.0), tf.Variable(3.0)]
    with tf.GradientTape() as tape:
        largest = max(variables)
    assert largest is variables[2]
    none, also_none, one = tape.gradient(largest, variables)
    assert none is also_none is None and one.numpy() == 1.0


def test_a_deep_copy_is_a_variable_of_its_own():
    v = tf.Variable([1.0, 2.0], name="w", trainable=False, constraint=tf.abs)
    twin, also_twin = copy.deepcopy([v, v])
    assert twin is also_twin, "shared in the original, shared in the copy"
    assert twin.key != v.key and (twin.name, twin.trainable, twin.constraint) == ("w:0", False, tf.abs)
    twin.assign([5.0, 6.0])
    assert v.numpy().tolist() == [1.0, 2.0]


def test_a_variable_survives_pickling():
    v = pickle.loads(pickle.dumps(tf.Variable([1.0, 2.0], name="w", trainable=False)))
    assert isinstance(v, tf.Variable) and v.numpy().tolist() == [1.0, 2.0]
    assert (v.name, v.trainable) == ("w:0", False)
