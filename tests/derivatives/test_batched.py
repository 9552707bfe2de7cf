"""Specimens times the laws of stacks, and which operations still loop."""

import batched_laws as laws
import numpy as np
import pytest
from laws import obeys
from specimens import SMOOTH, SPECIMENS

import minikeras as tf
from minikeras.core import Primitive
from minikeras.core.registry import operations

# The shape of their result depends on the values: one stack could not hold it.
RAGGED = ("boolean_mask", "unique", "where without branches")


def patterns(specimen):
    """Which inputs are stacks, in every way that has a result."""
    return [p for p in laws.patterns(specimen) if not (specimen.name.startswith(RAGGED) and p[-1])]


# Operations that may be carried out value by value. It should stay empty; if it cannot, say here why.
MAY_LOOP: set[str] = set()


@pytest.fixture(autouse=True)
def _nothing_loops():
    """Fails where an operation is carried out value by value."""
    before = dict(tf.autodiff.loop_fallbacks)
    yield
    looped = {name for name, count in tf.autodiff.loop_fallbacks.items() if count != before.get(name, 0)}
    assert looped <= MAY_LOOP, f"write a batching rule for {sorted(looped)}"


STACKED = [specimen for specimen in SPECIMENS if patterns(specimen)]
LAWS = [
    laws.batched_gradients_are_looped_gradients,
    laws.batched_second_derivatives_are_looped,
    laws.tangents_of_stacks_are_stacks_of_tangents,
]


@pytest.mark.host
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("specimen", STACKED, ids=lambda specimen: specimen.name)
def test_a_stack_of_values_gives_the_stack_of_results_and_derivatives(specimen, whole):
    """In the plain run only the derivatives of the first or the last pattern, in turn."""
    found = patterns(specimen)
    obeys(*[(laws.batched_is_looped, specimen, pattern) for pattern in found])
    smooth = (found if whole else [found[-(STACKED.index(specimen) % 2)]]) if specimen.smooth else []
    obeys(*[(law, specimen, pattern) for pattern in smooth for law in LAWS])
    obeys(*[(laws.nested_maps_are_nested_loops, specimen) for pattern in patterns(specimen) if all(pattern)])
    if specimen in SMOOTH:
        laws.jacobian_is_its_rows(specimen)


def test_at_most_the_known_operations_have_no_rule_for_stacks():
    without = {name for name, value in vars(operations).items() if isinstance(value, Primitive) and value.batching == "loop"}
    assert without - {"read_variable"} <= MAY_LOOP  # a Variable is no stack


RESULTS_OF_UNKNOWN_SIZE = {
    "boolean_mask": lambda x: tf.boolean_mask(tf.range(3.0), x > 0),
    "an index by a mask": lambda x: x[x > 0],
    "unique": lambda x: tf.unique(x)[0],
    "where without branches": lambda x: tf.where(x > 0),
    "if": lambda x: x if tf.reduce_sum(x) > 0 else -x,
    "float": lambda x: x * float(x[0]),
    "numpy": lambda x: x * x.numpy(),
    "assign": lambda x: tf.Variable(tf.zeros(3)).assign(x),
    "assign_add": lambda x: tf.Variable(tf.zeros(3)).assign_add(x),
    "a new Variable": lambda x: tf.Variable(x) * 2.0,
}


def test_bincount_of_slices_needs_one_length_for_all():
    integers = tf.constant([[0, 2, 2], [1, 1, 5]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="slices give 3, 6 counts.*minlength and maxlength"):
        tf.vectorized_map(tf.math.bincount, integers)
    counts = tf.vectorized_map(lambda row: tf.math.bincount(row, minlength=3, maxlength=3), integers)
    assert counts.numpy().tolist() == [[1, 0, 2], [0, 2, 0]]
    weighted = tf.vectorized_map(lambda row: tf.math.bincount([0, 1, 1], tf.cast(row, "float32")), integers)
    assert weighted.numpy().tolist() == [[0.0, 4.0], [1.0, 6.0]]


@pytest.mark.parametrize("most", [None, 6, 2])
@pytest.mark.parametrize("least", [None, 0, 3, 4])
def test_bincount_of_slices_counts_as_bincount_of_each(least, most):
    integers = tf.constant([[0, 2, 2], [1, 1, 2]])
    counts = tf.vectorized_map(lambda row: tf.math.bincount(row, minlength=least, maxlength=most), integers)
    each = [tf.math.bincount(row, minlength=least, maxlength=most).numpy().tolist() for row in integers]
    assert counts.numpy().tolist() == each


def test_bincount_of_slices_of_other_lengths_is_as_long_as_minlength():
    counts = tf.vectorized_map(lambda i: tf.math.bincount([i, 1], minlength=4), tf.range(3))
    assert counts.numpy().tolist() == [[1, 1, 0, 0], [0, 2, 0, 0], [0, 1, 1, 0]]


@pytest.mark.parametrize("name", RESULTS_OF_UNKNOWN_SIZE)
def test_a_stack_has_no_single_value_to_read(name):
    """A wrong number in silence would be worse: the first value of the stack for all."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="stands for 2 values at once, so it has no single value"):
        tf.vectorized_map(RESULTS_OF_UNKNOWN_SIZE[name], tf.constant([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))


INDICES_OUT_OF_RANGE = {
    "gather": lambda i: tf.gather(tf.range(3.0), i),
    "gather_nd": lambda i: tf.gather_nd(tf.range(3.0), i[:, None]),
    "take_along_axis": lambda i: tf.take_along_axis(tf.range(3.0), i, 0),
    "scatter_nd": lambda i: tf.scatter_nd(i[:, None], [1.0, 2.0], [3]),
    "labels": lambda i: tf.nn.sparse_softmax_cross_entropy_with_logits(i, tf.zeros((2, 3))),
}


@pytest.mark.parametrize("name", INDICES_OUT_OF_RANGE)
def test_the_indices_of_every_value_are_checked(name):
    """The first value has good indices, the second a negative one."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="-1"):
        tf.vectorized_map(INDICES_OUT_OF_RANGE[name], tf.constant([[0, 1], [2, -1]]))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_indices_may_be_small_integers(dtype):
    """300 values of 3 elements: the 900 positions are more than a byte holds."""
    values = np.random.default_rng(0).normal(size=(300, 3))
    indices = np.random.default_rng(1).integers(0, 3, (300, 2)).astype(dtype)
    expected = np.take_along_axis(values, indices.astype("int64"), 1)
    x, i = tf.constant(values), tf.constant(indices)
    for found in (
        tf.vectorized_map(lambda pair: tf.gather(pair[0], pair[1]), (x, i)),
        tf.vectorized_map(lambda pair: tf.gather_nd(pair[0], pair[1][:, None]), (x, i)),
        tf.gather(x, i, batch_dims=1),
    ):
        np.testing.assert_array_equal(found.numpy(), expected)


def test_a_map_stays_on_the_device_of_its_values(device):
    """Indices that the rules make are made there too; the strict device refuses others."""
    x, i = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[1, 0], [1, 1]])

    def both(pair):
        row, where = pair
        with tf.GradientTape() as tape:
            tape.watch(row)
            y = tf.gather(row, where) * tf.gather_nd(row, where[:, None]) + tf.scatter_nd(where[:, None], row, [2])
            y = y + tf.cast(tf.searchsorted(row, row), "float32") + tf.tensor_scatter_nd_update(row, where[:1, None], row[:1])
        return y, tape.gradient(y, row)

    looped = [both((x[k], i[k])) for k in range(2)]
    for whole, single in zip(tf.vectorized_map(both, (x, i)), zip(*looped, strict=True), strict=True):
        np.testing.assert_array_equal(whole.numpy(), [one.numpy() for one in single])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.tanh(x) @ x
    np.testing.assert_allclose(tf.reduce_sum(tape.jacobian(y, x), [0, 1]).numpy(), jacobian_sum(x.numpy()), rtol=1e-5)


def jacobian_sum(x):
    """The gradient of the sum of tanh(x) @ x."""
    ones = np.ones((2, 2), "float32")
    return (1 - np.tanh(x) ** 2) * (ones @ x.T) + np.tanh(x).T @ ones


def test_a_map_over_nothing_has_the_shape_of_its_results():
    result = tf.vectorized_map(lambda x: (tf.reduce_sum(x), x[:, None] * 2.0), tf.zeros((0, 3)))
    assert [tuple(y.shape) for y in result] == [(0,), (0, 3, 1)]


def test_a_map_of_a_constant_repeats_it():
    result = tf.vectorized_map(lambda x: {"same": tf.constant([1.0, 2.0]), "own": x}, tf.range(3.0))
    np.testing.assert_array_equal(result["same"].numpy(), [[1.0, 2.0]] * 3)


def test_a_map_needs_one_size():
    with pytest.raises(tf.errors.InvalidArgumentError, match="one size"):
        tf.vectorized_map(lambda pair: pair[0], (tf.zeros(3), tf.zeros(4)))


def test_a_tape_around_a_map_differentiates_it():
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        y = tf.vectorized_map(lambda row: tf.reduce_prod(row), x)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), [[2.0, 1.0], [4.0, 3.0]])
