"""Control flow over nests: results are paired by key, other structures are refused; no slices and many slices are fine."""

import numpy as np
import pytest

import minikeras as tf

STRUCTURE = "same nested structure"


def turned(e):
    """A dict that is filled in the other order for every second element."""
    return {"a": e, "b": 10.0 * e} if e < 2 else {"b": 10.0 * e, "a": e}


def test_map_fn_pairs_the_results_by_their_keys():
    result = tf.map_fn(turned, tf.constant([1.0, 2.0, 3.0]))
    assert result["a"].numpy().tolist() == [1, 2, 3] and result["b"].numpy().tolist() == [10, 20, 30]


def test_scan_and_while_loop_pair_what_they_carry_by_key():
    def step(carried, e):
        return {"sum": carried["sum"] + e, "last": e}

    begin = {"last": tf.constant(0.0), "sum": tf.constant(0.0)}
    result = tf.scan(step, tf.constant([1.0, 2.0, 3.0]), begin)
    assert result["sum"].numpy().tolist() == [1, 3, 6] and result["last"].numpy().tolist() == [1, 2, 3]
    (end,) = tf.while_loop(lambda d: d["sum"] < 3, lambda d: [step(d, 1.0)], [begin])
    assert float(end["sum"]) == 3 and float(end["last"]) == 1


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: tf.map_fn(lambda e: {"a": e} if e < 2 else {"b": e}, tf.constant([1.0, 2.0])), ValueError),
        (lambda: tf.map_fn(lambda e: [e] if e < 2 else (e,), tf.constant([1.0, 2.0])), TypeError),
        (lambda: tf.map_fn(lambda e: [e], tf.constant([1.0]), (tf.float32,)), TypeError),
        (lambda: tf.scan(lambda a, e: (a, e), tf.constant([1.0]), tf.constant(0.0)), ValueError),
        (lambda: tf.scan(lambda a, e: {"z": e}, tf.constant([1.0]), {"x": tf.constant(0.0)}), ValueError),
        (lambda: tf.while_loop(lambda i, j: i < 3, lambda i, j: (i + 1,), [0, 1]), ValueError),
        (lambda: tf.while_loop(lambda i: i["a"] < 3, lambda i: [{"b": i["a"] + 1}], [{"a": 0}]), ValueError),
        (lambda: tf.data.Dataset.range(3).reduce((0, 0), lambda s, e: [s[0], e]), TypeError),
    ],
)
def test_another_structure_than_before_is_refused(call, error):
    with pytest.raises(error, match=STRUCTURE):
        call()


def test_batches_of_dicts_are_paired_by_key():
    def rows():
        yield {"a": 1.0, "b": 2.0}
        yield {"b": 4.0, "a": 3.0}

    (batch,) = tf.data.Dataset.from_generator(rows).batch(2)
    assert batch["a"].numpy().tolist() == [1, 3] and batch["b"].numpy().tolist() == [2, 4]


def test_gradients_of_a_dict_take_their_seeds_by_key():
    x = tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        y = {"b": 10.0 * x, "a": x}
    assert float(tape.gradient(y, x, output_gradients={"a": 1.0, "b": 100.0})) == 1001.0
    for given in ({"a": 1.0, "c": 100.0}, [1.0, 100.0], {"a": 1.0}):
        with pytest.raises(ValueError, match=r"nested alike. The target is \{'b': ..., 'a': ...\}"):
            tape.gradient(y, x, output_gradients=given)


def test_a_function_that_takes_or_gives_dicts_keeps_their_keys_whatever_their_order():
    @tf.function
    def swapped(d):
        return {"z": d["b"] * 10.0, "a": d["a"], "n": {"y": d["b"], "x": d["a"]}}

    one, two = tf.constant(1.0), tf.constant(2.0)
    for given in ({"a": one, "b": two}, {"b": two, "a": one}, {"b": two, "a": one}, {"a": one, "b": two}):
        result = swapped(given)
        assert list(result) == ["z", "a", "n"] and list(result["n"]) == ["y", "x"]
        assert [float(result["z"]), float(result["a"]), float(result["n"]["y"])] == [20.0, 1.0, 2.0]
    flat = tf.function(lambda x: {"loss": x, "accuracy": x + 1.0})
    assert all({k: float(v) for k, v in flat(one).items()} == {"loss": 1.0, "accuracy": 2.0} for _ in range(3))


# dtypes and shapes --------------------------------------------------------------------------------------------------


def test_map_fn_takes_the_dtypes_of_the_results_by_position_or_by_name():
    halves = tf.map_fn(lambda x: tf.cast(x, tf.float32) / 2.0, tf.constant([1, 2]), tf.float32)
    assert halves.dtype == tf.float32 and halves.numpy().tolist() == [0.5, 1.0]
    pair = tf.map_fn(lambda x: (x, 1), tf.constant([1, 2]), fn_output_signature=(tf.int32, tf.float64))
    assert [one.dtype for one in pair] == [tf.int32, tf.float64]
    with pytest.raises(ValueError, match="requested dtype int32 for Tensor with dtype float32"):
        tf.map_fn(lambda x: x, tf.constant([1.0]), tf.int32)


@pytest.mark.parametrize("loop", [tf.map_fn, lambda f, x: tf.scan(lambda a, e: a, x), lambda f, x: tf.foldl(lambda a, e: a, x)])
@pytest.mark.parametrize("elems", [tf.constant(3.0), (tf.ones([2]), tf.ones([3])), [1.0, 2.0], ()])
def test_elements_without_a_common_first_axis_are_refused(loop, elems):
    with pytest.raises(ValueError, match="elems must be 1\\+ dimensional"):
        loop(lambda x: x, elems)


def test_no_slices_give_results_with_no_rows():
    empty = tf.zeros([0, 3])
    assert tf.map_fn(lambda x: 2.0 * x, empty).shape == (0, 3)
    assert tf.map_fn(tf.reduce_sum, empty).shape == (0,)
    nest = tf.map_fn(lambda x: {"a": x, "b": tf.argmax(x)}, empty)
    assert nest["a"].shape == (0, 3) and nest["b"].shape == (0,) and nest["b"].dtype == tf.int64
    assert tf.map_fn(lambda x: x * float(x[0]), empty, fn_output_signature=tf.float64).dtype == tf.float64
    assert tf.scan(lambda a, x: a + x, empty, tf.zeros([3])).shape == (0, 3)
    assert tf.foldl(lambda a, x: a + x, empty, tf.ones([3])).numpy().tolist() == [1, 1, 1]
    for fold in (tf.scan, tf.foldl):
        with pytest.raises(tf.errors.InvalidArgumentError, match="no slices to begin with. Give an initializer"):
            fold(lambda a, x: a + x, empty)


# Many slices at once ------------------------------------------------------------------------------------------------


def test_first_axes_of_size_one_stand_beside_each_slice():
    def add(pair):
        return pair[0] + pair[1]

    one, three = tf.constant([10.0]), tf.constant([1.0, 2.0, 3.0])
    assert tf.vectorized_map(add, (one, three)).numpy().tolist() == [11, 12, 13]
    assert tf.vectorized_map(add, (three, one)).numpy().tolist() == [11, 12, 13]
    assert tf.vectorized_map(add, (one, one)).numpy().tolist() == [20]
    assert tf.vectorized_map(add, (one, tf.zeros([0]))).shape == (0,)
    with pytest.raises(ValueError, match=r"shapes \[\[2\], \[3\]\]"):
        tf.vectorized_map(add, (tf.ones([2]), three))


FUNCTIONS = {
    "cond": lambda n: tf.cond(n > 1, lambda: n * 10, lambda: -n),
    "cond of nests": lambda n: tf.cond(n > 1, lambda: {"b": n, "a": (n, [n])}, lambda: {"a": (-n, [n + 1]), "b": n * 2}),
    "cond of one for all": lambda n: tf.cond(tf.constant(True), lambda: n, lambda: -n),
    "case": lambda n: tf.case([(n > 2, lambda: n), (n > 1, lambda: 10 * n)], default=lambda: -n),
    "case without default": lambda n: tf.case([(n > 1, lambda: n), (n < 2, lambda: -n)]),
    "switch_case": lambda n: tf.switch_case(n, [lambda: n + 5, lambda: n + 6, lambda: n * 0]),
    "while_loop": lambda n: tf.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t + i), [tf.constant(0), n * 0]),
    "while_loop bounded": lambda n: tf.while_loop(lambda i: i < 9, lambda i: i + n, [n], maximum_iterations=2),
    "nested": lambda n: tf.cond(n > 0, lambda: tf.cond(n > 2, lambda: n * 3, lambda: n * 2), lambda: n - 7),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slices_take_their_own_ways(name):
    elems = tf.constant([0, 1, 2, 3, 7])
    found, expected = tf.vectorized_map(FUNCTIONS[name], elems), tf.map_fn(FUNCTIONS[name], elems)
    for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        assert one.dtype == other.dtype and one.numpy().tolist() == other.numpy().tolist()


def test_gradients_follow_the_way_that_each_slice_took():
    x = tf.Variable([-1.0, 2.0, 4.0])
    with tf.GradientTape() as tape:
        y = tf.vectorized_map(lambda v: tf.cond(v > 0, lambda: tf.sqrt(v), lambda: v * v), x)
    np.testing.assert_allclose(tape.gradient(y, x), [-2.0, 0.5 / np.sqrt(2.0), 0.25], rtol=1e-6)


def test_slices_whose_branches_differ_in_structure_are_refused():
    with pytest.raises(TypeError, match=STRUCTURE) as raised:
        tf.vectorized_map(lambda n: tf.cond(n > 0, lambda: [n], lambda: (n,)), tf.constant([0, 1]))
    assert "slices may take either branch" in raised.value.__notes__[0]


def test_a_case_in_which_no_predicate_of_some_slice_holds_is_refused():
    with pytest.raises(ValueError, match="for some slices no predicate holds"):
        tf.vectorized_map(lambda n: tf.case([(n > 0, lambda: n)]), tf.constant([0, 1]))


# Positions that differ between slices -------------------------------------------------------------------------------

X = tf.reshape(tf.range(24), (2, 3, 4))

POSITIONS = {
    "v[i]": lambda i: tf.range(10, 14)[i],
    "v[-i]": lambda i: tf.range(10, 14)[-1 - i],
    "v[:, i]": lambda i: X[:, i],
    "v[..., i]": lambda i: X[..., i],
    "v[..., i, :]": lambda i: X[..., i, :],
    "v[0, i, 1:3]": lambda i: X[0, i, 1:3],
    "v[:, i, None, i]": lambda i: X[:, i, None, i],
    "v[i] of slices": lambda i: (tf.range(5) * i)[i],
    "v[i, ...]": lambda i: X[i % 2, ..., i],
    "slice": lambda i: tf.slice(X, [0, i, 1], [2, 1, 2]),
    "slice at a tensor": lambda i: tf.slice(X, tf.stack([0, i, i]), [1, 1, 2]),
    "roll": lambda i: tf.roll(X, i, 1),
    "roll along two axes": lambda i: tf.roll(X, [i, -i], [2, 0]),
    "roll of slices": lambda i: tf.roll(X * i, i, [-1]),
    "bincount": lambda i: tf.math.bincount([i, 1, i], minlength=4, maxlength=4),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_every_slice_may_name_a_position_of_its_own(name):
    elems = tf.constant([0, 2, 1])
    found, expected = tf.vectorized_map(POSITIONS[name], elems), tf.map_fn(POSITIONS[name], elems)
    assert found.dtype == expected.dtype and found.numpy().tolist() == expected.numpy().tolist()


def test_gradients_go_back_to_the_positions_that_slices_name():
    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.vectorized_map(lambda i: x[i] * x[i], tf.constant([2, 0, 2]))
    assert tf.convert_to_tensor(tape.gradient(y, x)).numpy().tolist() == [2.0, 0.0, 12.0]


@pytest.mark.parametrize(
    "call",
    [lambda i: X[i], lambda i: X[:, -1 - 2 * i], lambda i: tf.slice(X, [i, 0, 0], [1, 1, 1]), lambda i: X[:, :, 2 * i]],
)
def test_a_position_of_some_slice_that_does_not_exist_is_refused(call):
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
        tf.vectorized_map(call, tf.constant([0, 1, 2]))


def test_sizes_and_shapes_cannot_differ_between_slices():
    elems = tf.constant([1, 2])
    with pytest.raises(ValueError, match="a size >= 0"):
        tf.vectorized_map(lambda i: tf.slice(X, [0, i, 0], [1, -1, 1]), elems)
    for call in (lambda n: tf.reshape(X, [n, -1]), lambda n: X[:, n:], lambda n: tf.pad(X, [[n, 0]] * 3), tf.range, tf.zeros):
        with pytest.raises(tf.errors.InvalidArgumentError, match="has no single value to read"):
            tf.vectorized_map(call, elems)


# What was refused though it is fine -----------------------------------------------------------------------------------


def test_add_n_takes_any_iterable():
    assert float(tf.add_n(tf.constant(x) for x in (1.0, 2.0))) == 3.0
    with pytest.raises(ValueError, match="at least one tensor"):
        tf.add_n(iter(()))


def test_rows_of_python_ints_are_scattered_into_floats():
    v = tf.Variable([1.0, 2.0, 3.0])
    v.scatter_add(tf.IndexedSlices(values=[2, 5], indices=[0, 0]))
    v.scatter_update(tf.IndexedSlices(values=[7], indices=[2]))
    assert v.numpy().tolist() == [8.0, 2.0, 7.0]


@pytest.mark.parametrize("power", [lambda: tf.constant(2) ** -1, lambda: tf.pow([1, 2], [0, -1]), lambda: 2 ** tf.constant(-1)])
def test_integers_to_negative_powers_are_refused_as_a_wrong_argument(power):
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative integer powers.*tf.cast") as raised:
        power()
    assert not isinstance(raised.value, ValueError)
