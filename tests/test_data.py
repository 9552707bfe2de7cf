"""Datasets: what the rows of a nest become on their way through shuffle, batch, repeat, map, take and skip."""

import os
import pickle
import threading
import types
from typing import NamedTuple

import numpy as np
import pytest
from afresh import fixed_stream  # noqa: F401
from faults.children import exit_code, forked
from hypothesis import given
from hypothesis import strategies as st

import minikeras as tf
from minikeras.data.table import RowBatches
from minikeras.errors import ShapeError
from minikeras.nn_ops import streams

slices = tf.data.Dataset.from_tensor_slices


def numbers(dataset):
    return [element.numpy().tolist() for element in dataset]


class Row(NamedTuple):
    x: object
    y: object


# Structure -------------------------------------------------------------------------------------------------------------


def test_the_elements_are_the_rows_of_each_array_in_the_structure_given():
    x, y = np.arange(6.0).reshape(3, 2), np.arange(3)
    for structure in ((x, y), {"x": x, "y": y}, Row(x, y), {"deep": (x, {"y": y})}):
        elements = list(slices(structure))
        assert len(elements) == 3 and all(type(element) is type(structure) for element in elements)
        leaves = tf.nest.flatten(elements[1])
        assert [leaf.numpy().tolist() for leaf in leaves] == [[2.0, 3.0], 1]
        assert [leaf.dtype.name for leaf in leaves] == ["float64", "int64"]


def test_a_list_is_a_tensor_and_not_a_structure():
    assert numbers(slices([1.0, 2.0])) == [1.0, 2.0]
    assert numbers(slices([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    (x, y), _ = slices(([1.0, 2.0], [[1], [2]]))
    assert (x.dtype, y.dtype, y.shape) == (tf.float32, tf.int32, (1,))


@pytest.mark.parametrize(
    "values", [tf.constant([1.0, 2.0]), tf.Variable([1.0, 2.0]), np.array([1.0, 2.0]), (np.array([1.0, 2.0]),)]
)
def test_tensors_variables_and_arrays_have_rows(values):
    assert len(slices(values)) == 2


def test_arrays_without_rows_or_with_different_numbers_of_rows_are_refused():
    with pytest.raises(
        ShapeError, match=r"from_tensor_slices: all arrays need the same number of rows, .* \[\(3,\), \(2, 2\)\]"
    ):
        slices((np.ones(3), np.ones((2, 2))))
    with pytest.raises(ShapeError, match="a scalar has no rows; give arrays with at least one axis"):
        slices((np.ones(3), 1.0))


def test_no_gradient_flows_into_the_rows():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        total = sum(x_row * x_row for x_row in slices(x))
    assert tape.gradient(total, x) is None


def test_elements_are_copies_that_later_writes_do_not_reach():
    x = np.zeros((4, 2))
    first, batch = next(iter(slices(x))), next(iter(slices(x).batch(2)))
    x[:] = 1.0
    assert not first.numpy().any() and not batch.numpy().any()


# Batches ---------------------------------------------------------------------------------------------------------------


@given(rows=st.integers(0, 12), size=st.integers(1, 14), drop=st.booleans())
def test_batches_hold_all_rows_in_order_and_the_length_is_told_beforehand(rows, size, drop):
    dataset = tf.data.Dataset.range(rows).batch(size, drop_remainder=drop)
    batches = numbers(dataset)
    assert len(batches) == len(dataset)
    assert [number for batch in batches for number in batch] == list(range(rows - rows % size if drop else rows))
    assert all(len(batch) == size for batch in batches[:-1])


def test_a_batch_of_unlike_elements_and_a_range_without_a_step_say_what_to_do():
    rows = tf.data.Dataset.from_generator(lambda: iter([[1], [1, 2]]), output_signature=tf.TensorSpec([None], tf.int32))
    with pytest.raises(tf.errors.ShapeError, match=r"padded_batch.*found \[\[1\], \[2\]\]"):
        list(rows.batch(2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Dataset.range: step must not be zero, found 0"):
        tf.data.Dataset.range(1, 2, 0)


def test_batches_of_batches_gain_an_axis():
    assert numbers(tf.data.Dataset.range(5).batch(2).map(lambda x: x).batch(2, drop_remainder=True)) == [[[0, 1], [2, 3]]]
    with pytest.raises(ShapeError):
        list(tf.data.Dataset.range(5).batch(2).map(lambda x: x).batch(3))


@pytest.mark.parametrize("size", [0, -1, 1.5, "2"])
def test_a_batch_size_is_a_positive_int(size):
    with pytest.raises(ValueError, match=f"batch: batch_size must be an int of at least 1, found {size!r}"):
        tf.data.Dataset.range(3).batch(size)


# Shuffle ---------------------------------------------------------------------------------------------------------------


@given(rows=st.integers(0, 30), extra=st.integers(0, 5), seed=st.integers(0, 1000))
def test_a_full_buffer_gives_a_permutation(rows, extra, seed):
    order = numbers(tf.data.Dataset.range(rows).shuffle(max(rows, 1) + extra, seed=seed))
    assert sorted(order) == list(range(rows))


@given(rows=st.integers(1, 30), size=st.integers(1, 10), seed=st.integers(0, 1000))
def test_a_small_buffer_lets_no_element_out_before_it_came_in(rows, size, seed):
    order = numbers(tf.data.Dataset.range(rows).shuffle(size, seed=seed))
    assert sorted(order) == list(range(rows))
    assert all(element < position + size for position, element in enumerate(order))


def test_every_permutation_of_three_comes_about_as_often():
    dataset = tf.data.Dataset.range(3).shuffle(3, seed=0)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(600):
        order = tuple(numbers(dataset))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6 and min(counts.values()) > 60


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("size", [4, 100])
def test_each_iteration_is_shuffled_anew_unless_told_otherwise(seed, size):
    rows = tf.data.Dataset.range(20)
    again, fixed = rows.shuffle(size, seed), rows.shuffle(size, seed, reshuffle_each_iteration=False)
    assert numbers(again) != numbers(again)
    assert numbers(fixed) == numbers(fixed)


def test_two_fixed_orders_differ():
    fixed = [tf.data.Dataset.range(20).shuffle(20, reshuffle_each_iteration=False) for _ in range(2)]
    assert numbers(fixed[0]) != numbers(fixed[1])


def test_a_seed_repeats_the_orders_and_so_does_the_global_seed():
    orders = []
    for _ in range(2):
        seeded = tf.data.Dataset.range(20).shuffle(20, seed=3)
        streams.set_global_seed(9)
        unseeded = tf.data.Dataset.range(20).shuffle(20)
        orders.append([numbers(dataset) for dataset in (seeded, seeded, unseeded, unseeded)])
    assert orders[0] == orders[1]


def test_shuffled_columns_stay_together():
    for x, y in slices((np.arange(50), np.arange(50) * 2)).shuffle(50).batch(7):
        assert np.array_equal(2 * x.numpy(), y.numpy())


def test_a_buffer_size_is_positive():
    with pytest.raises(ValueError, match="shuffle: buffer_size must be an int of at least 1, found 0"):
        tf.data.Dataset.range(3).shuffle(0)


# Repeat, take, skip, map -----------------------------------------------------------------------------------------------


def test_repeat_shuffles_each_pass_anew():
    passes = numbers(tf.data.Dataset.range(10).shuffle(10).repeat(2))
    assert sorted(passes[:10]) == sorted(passes[10:]) == list(range(10)) and passes[:10] != passes[10:]


def test_repeat_without_a_count_never_ends():
    for dataset in (tf.data.Dataset.range(2).repeat(), tf.data.Dataset.range(2).repeat(-1)):
        assert numbers(dataset.take(5)) == [0, 1, 0, 1, 0]
        with pytest.raises(TypeError, match="length is unknown or infinite"):
            len(dataset)
    assert numbers(tf.data.Dataset.range(2).repeat(0)) == []


@given(rows=st.integers(0, 8), taken=st.integers(-1, 10), skipped=st.integers(-1, 10))
def test_take_and_skip_are_slices_and_a_negative_count_means_all(rows, taken, skipped):
    dataset, listed = tf.data.Dataset.range(rows), list(range(rows))
    assert numbers(dataset.take(taken)) == (listed if taken < 0 else listed[:taken])
    assert numbers(dataset.skip(skipped)) == ([] if skipped < 0 else listed[skipped:])
    assert len(dataset.take(taken)) == len(numbers(dataset.take(taken)))
    assert len(dataset.skip(skipped)) == len(numbers(dataset.skip(skipped)))


def test_map_hands_a_tuple_over_as_arguments_and_keeps_the_length():
    pairs = slices((np.arange(3.0), np.arange(3.0))).map(lambda x, y: x + 10 * y)
    assert numbers(pairs) == [0.0, 11.0, 22.0] and len(pairs) == 3
    assert numbers(slices({"x": np.arange(2.0)}).map(lambda element: element["x"])) == [0.0, 1.0]
    assert numbers(pairs.batch(2)) == [[0.0, 11.0], [22.0]]
    assert sorted(numbers(pairs.shuffle(3))) == [0.0, 11.0, 22.0]


def test_filter_enumerate_and_cache():
    rows = tf.data.Dataset.range(5)
    assert numbers(rows.filter(lambda x: x % 2 == 0)) == [0, 2, 4]
    assert [(number, int(x)) for number, x in rows.skip(3).enumerate(start=7)] == [(7, 3), (8, 4)]
    calls = []
    cached = rows.map(lambda x: calls.append(1) or x).cache()
    assert numbers(cached) == numbers(cached) == list(range(5)) and len(calls) == 5


def test_a_dataset_can_be_iterated_twice_and_by_two_at_once():
    dataset = tf.data.Dataset.range(4).batch(2)
    assert numbers(dataset) == numbers(dataset)
    first, second = iter(dataset), iter(dataset)
    assert next(first).numpy().tolist() == next(second).numpy().tolist() == [0, 1]


def test_elements_of_a_generator_are_made_anew_for_each_iteration():
    dataset = tf.data.Dataset.from_generator(lambda: ((i, [i, 1.5]) for i in range(2)))
    assert [int(number) for number, *_ in dataset] == [int(number) for number, *_ in dataset] == [0, 1]
    assert dataset.cardinality() == -2


def test_elements_come_as_numpy_arrays_if_asked():
    rows = list(slices((np.arange(2), np.ones((2, 3)))).as_numpy_iterator())
    assert isinstance(rows[0][1], np.ndarray) and rows[1][0] == 1


# Threads -----------------------------------------------------------------------------------------------------------------


def test_prefetching_makes_elements_in_another_thread_ahead_of_their_use():
    made, threads = [], set()

    def note(x):
        made.append(int(x))
        threads.add(threading.current_thread())
        return x

    elements = iter(tf.data.Dataset.range(10).map(note).prefetch(3))
    assert int(next(elements)) == 0
    assert [int(x) for x in elements] == list(range(1, 10)) and made == list(range(10))
    assert threading.current_thread() not in threads
    for buffer_size in (None, tf.data.AUTOTUNE, 0, 50):
        assert numbers(tf.data.Dataset.range(4).prefetch(buffer_size)) == [0, 1, 2, 3]


def test_prefetching_stays_a_bounded_number_ahead_and_ends_with_its_iterator():
    made = []
    elements = iter(tf.data.Dataset.range(100).map(lambda x: made.append(1) or x).prefetch(2))
    next(elements)
    del elements
    count = len(made)
    assert count <= 4
    assert not any(thread.name.startswith("minikeras-data") for thread in threading.enumerate())
    assert len(made) == count


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_process_does_not_wait_for_its_parents_threads():
    elements = iter(tf.data.Dataset.range(10).map(lambda x: x, num_parallel_calls=2).prefetch(2))
    next(elements)

    def work():
        with pytest.raises(RuntimeError, match="a forked process cannot go on"):
            list(elements)
        assert numbers(tf.data.Dataset.range(3).prefetch(2)) == [0, 1, 2]

    assert exit_code(forked(work), patience=30) == 0
    assert [int(x) for x in elements] == list(range(1, 10))


def test_an_error_on_the_way_is_raised_where_the_element_is_asked_for():
    def odd(x):
        if int(x) == 2:
            raise OSError("broken")
        return x

    for dataset in (tf.data.Dataset.range(5).map(odd).prefetch(4), tf.data.Dataset.range(5).map(odd, num_parallel_calls=3)):
        elements = iter(dataset)
        assert [int(next(elements)), int(next(elements))] == [0, 1]
        with pytest.raises(OSError, match="broken"):
            next(elements)


@given(rows=st.integers(0, 20), threads=st.integers(2, 5))
def test_a_parallel_map_keeps_the_order(rows, threads):
    assert numbers(tf.data.Dataset.range(rows).map(lambda x: x * 2, num_parallel_calls=threads)) == list(range(0, 2 * rows, 2))


def test_threads_make_their_arrays_on_the_device_of_the_caller(device):
    found = list(tf.data.Dataset.range(3).map(lambda x: tf.zeros([2]), num_parallel_calls=2).prefetch(1))
    assert {element.device for element in found} == {tf.zeros([2]).device}


# Several datasets ----------------------------------------------------------------------------------------------------------


def test_zip_puts_elements_side_by_side_in_the_structure_given():
    rows, letters = tf.data.Dataset.range(3), slices(np.arange(10.0, 14.0))
    pairs = list(tf.data.Dataset.zip(rows, letters))
    assert [(int(a), float(b)) for a, b in pairs] == [(0, 10.0), (1, 11.0), (2, 12.0)]
    named = tf.data.Dataset.zip({"a": rows, "b": (letters, rows)})
    first = next(iter(named))
    assert int(first["a"]) == 0 and float(first["b"][0]) == 10.0
    assert len(named) == 3 and tf.data.Dataset.zip((rows, letters.repeat())).cardinality() == 3
    assert tf.data.Dataset.zip(rows.repeat(), letters.repeat()).cardinality() == tf.data.INFINITE_CARDINALITY
    assert tf.data.Dataset.zip(rows, letters.filter(bool)).cardinality() == tf.data.UNKNOWN_CARDINALITY


def test_concatenate_is_one_after_the_other():
    joined = tf.data.Dataset.range(2).concatenate(tf.data.Dataset.range(5, 7))
    assert numbers(joined) == [0, 1, 5, 6] and len(joined) == 4
    assert numbers(joined.batch(3)) == [[0, 1, 5], [6]]
    assert joined.concatenate(joined.repeat()).cardinality() == tf.data.INFINITE_CARDINALITY
    assert joined.concatenate(joined.filter(bool)).cardinality() == tf.data.UNKNOWN_CARDINALITY


@given(rows=st.integers(0, 12), count=st.integers(1, 5), size=st.integers(1, 4))
def test_shards_are_disjoint_and_complete(rows, count, size):
    whole = tf.data.Dataset.range(rows)
    shards = [whole.shard(count, index) for index in range(count)]
    assert sorted(row for shard in shards for row in numbers(shard)) == list(range(rows))
    assert [len(shard) for shard in shards] == [len(numbers(shard)) for shard in shards]
    assert numbers(shards[0].batch(size).unbatch()) == numbers(shards[0])


def test_a_shard_has_a_number_below_their_count():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shard: index must be in \[0, 2\), found 2"):
        tf.data.Dataset.range(3).shard(2, 2)


def test_unbatch_undoes_batch_for_every_structure():
    pairs = slices({"x": np.arange(6.0).reshape(3, 2), "y": np.arange(3)})
    rows = list(pairs.batch(2).unbatch())
    assert [row["x"].numpy().tolist() for row in rows] == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert [int(row["y"]) for row in rows] == [0, 1, 2]


def test_flat_map_reduce_and_apply():
    rows = tf.data.Dataset.range(4)
    assert numbers(rows.flat_map(lambda n: tf.data.Dataset.range(int(n)))) == [0, 0, 1, 0, 1, 2]
    assert int(rows.reduce(np.int64(0), lambda total, x: total + x)) == 6
    one = iter(tf.data.Dataset.range(1))
    with pytest.raises(tf.errors.OutOfRangeError):  # which is a StopIteration too
        rows.reduce(np.int64(0), lambda total, x: total + one.get_next())
    assert numbers(rows.apply(lambda dataset: dataset.take(1))) == [0]
    assert [element.numpy().tolist() for element in tf.data.Dataset.from_tensors([1, 2])] == [[1, 2]]


# Lengths -------------------------------------------------------------------------------------------------------------------


def test_the_number_of_elements_is_known_unknown_or_infinite():
    rows = tf.data.Dataset.range(7)
    assert [d.cardinality() for d in (rows.batch(2), rows.batch(2, True), rows.skip(3), rows.take(9), rows.repeat(2))] == [
        4,
        3,
        4,
        7,
        14,
    ]
    endless = rows.repeat()
    for dataset in (
        endless,
        endless.batch(2),
        endless.shuffle(3),
        endless.skip(4),
        endless.map(lambda x: x),
        endless.repeat(3),
    ):
        assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
    assert endless.take(5).cardinality() == 5 and len(numbers(endless.skip(4).take(5).batch(2))) == 3
    odd = rows.filter(lambda x: x % 2 == 1)
    for dataset in (odd, odd.batch(2), odd.repeat(2), odd.take(2), odd.skip(1), odd.cache(), odd.enumerate(), odd.prefetch(1)):
        assert dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY
    assert [repr(dataset) for dataset in (rows, endless, odd)] == [
        "<Dataset element_spec=TensorSpec(shape=(), dtype=tf.int64), cardinality=7>",
        "<Dataset element_spec=TensorSpec(shape=(), dtype=tf.int64), cardinality=infinite>",
        "<Dataset element_spec=TensorSpec(shape=(), dtype=tf.int64), cardinality=unknown>",
    ]
    calls = []
    assert repr(rows.map(lambda x: calls.append(x) or x).batch(2)) == "<Dataset cardinality=4>" and not calls
    assert numbers(tf.data.Dataset.range(0).repeat()) == [], "nothing without end is nothing"


@given(rows=st.integers(0, 12), start=st.integers(0, 14), size=st.integers(1, 4))
def test_a_position_is_a_number_of_elements_passed_over(rows, start, size):
    plain = tf.data.Dataset.range(rows).batch(size)
    for dataset in (
        plain,
        plain.map(lambda x: x),
        tf.data.Dataset.range(rows).shuffle(3, 1, False).batch(size),
        plain.repeat(2),
    ):
        assert [x.numpy().tolist() for x in dataset.from_position(start)] == numbers(dataset)[start:]


# Generators ----------------------------------------------------------------------------------------------------------------


def test_elements_of_a_generator_become_what_was_announced():
    def rows(count):
        return (({"a": n, "b": [n, n]}, n) for n in range(count))

    types = ({"a": tf.float64, "b": tf.int32}, tf.float32)
    dataset = tf.data.Dataset.from_generator(rows, types, ({"a": (), "b": (None,)}, ()), args=(2,))
    features, label = list(dataset)[1]
    assert (features["a"].dtype, features["b"].dtype, label.dtype) == (tf.float64, tf.int32, tf.float32)
    assert features["b"].numpy().tolist() == [1, 1]
    for shapes in (({"a": (), "b": (3,)}, ()), ({"a": (1,), "b": (2,)}, ())):
        with pytest.raises(tf.errors.InvalidArgumentError, match="from_generator: an element has shape .* announced was"):
            list(tf.data.Dataset.from_generator(rows, types, shapes, args=(2,)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="from_generator: an element is not nested as announced"):
        list(tf.data.Dataset.from_generator(lambda: [1.0], (tf.float32, tf.float32)))


def test_a_signature_holds_dtypes_and_shapes():
    signature = types.SimpleNamespace(dtype="float64", shape=(2,))
    (element,) = tf.data.Dataset.from_generator(lambda: [[1, 2]], output_signature=signature)
    assert element.dtype == tf.float64 and element.shape == (2,)


# The stream of orders --------------------------------------------------------------------------------------------------------


def test_what_a_model_draws_in_between_does_not_change_the_orders():
    streams.set_global_seed(1)
    dataset = tf.data.Dataset.range(20).shuffle(20)
    plain = [numbers(dataset) for _ in range(3)]
    streams.set_global_seed(1)
    dataset = tf.data.Dataset.range(20).shuffle(20)
    assert [(numbers(dataset), tf.random.normal([2]))[0] for _ in range(3)] == plain


def test_a_cache_that_was_broken_off_is_not_taken_for_whole():
    cached = tf.data.Dataset.range(5).cache()
    next(iter(cached))
    assert numbers(cached) == numbers(cached) == list(range(5))
    with pytest.raises(NotImplementedError, match="cache: files are not available"):
        cached.cache("file")


@pytest.mark.parametrize(
    "columns", [({"a": np.arange(4.0)}, np.arange(4)), ((np.arange(4),), np.arange(4)), (np.arange(4), {"b": np.arange(4)})]
)
def test_a_nest_of_one_array_within_a_tuple_stays_a_nest(columns):
    shown = lambda element: tf.nest.map_structure(lambda leaf: leaf.numpy().tolist(), element)
    for position, element in enumerate(tf.data.Dataset.from_tensor_slices(columns)):
        assert shown(element) == tf.nest.map_structure(lambda leaf, at=position: leaf[at].item(), columns)
    (whole,) = tf.data.Dataset.from_tensor_slices(columns).batch(4)
    assert shown(whole) == tf.nest.map_structure(lambda leaf: leaf.tolist(), columns)


@pytest.mark.parametrize("words", [["x", "yy"], ("x", "yy"), np.array(["x", "yy"]), np.array(["x", "yy"], object)])
def test_strings_are_elements_like_any_other(words):
    column = list(words) if isinstance(words, tuple) else words
    single = tf.data.Dataset.from_tensor_slices(column)
    assert [str(word.numpy()) for word in single] == ["x", "yy"]
    assert [str(row["a"].numpy()) for row in tf.data.Dataset.from_tensor_slices({"a": column})] == ["x", "yy"]
    pairs = tf.data.Dataset.from_tensor_slices((column, [1, 2])).map(lambda word, number: (word, number + 1))
    assert [(str(word.numpy()), int(number)) for word, number in pairs] == [("x", 2), ("yy", 3)]
    assert [batch.shape for batch in single.batch(2)] == [(2,)]
    assert sorted(str(word.numpy()) for word in single.shuffle(2)) == ["x", "yy"]


# Rows by number --------------------------------------------------------------------------------------------------------


def row_batches(dataset):
    return RowBatches(dataset.table, list(dataset.rows_from(0)))


@pytest.mark.host
@pytest.mark.parametrize("width", [1, 40_000])
def test_row_batches_are_the_elements_whether_gathered_alone_or_together(width):
    x, y = np.arange(24.0 * width).reshape(24, width), np.arange(24)
    rows = slices({"x": x, "none": (), "y": y})
    for dataset in (rows, rows.shuffle(24), rows.batch(4), rows.shuffle(24, seed=1, reshuffle_each_iteration=False).batch(4)):
        fixed = list(dataset.rows_from(0))
        expected = [dataset.table.take(one) for one in fixed]
        found = list(RowBatches(dataset.table, fixed))
        assert len(found) == len(expected)
        for (left, right), element in zip(found, expected, strict=True):
            assert left.shape == element["x"].shape and right.shape == element["y"].shape
            assert np.array_equal(left, element["x"].numpy()) and np.array_equal(right, element["y"].numpy())
            assert left.flags.c_contiguous and type(right) is np.ndarray


def test_row_batches_tell_columns_and_row_numbers():
    batches = row_batches(slices((np.arange(10.0), np.arange(10))).batch(5))
    assert batches.rows.tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]] and batches.rows.dtype == np.int64
    assert [column.dtype.name for column in batches.columns] == ["float64", "int64"]
    alone = row_batches(slices(np.arange(3.0)))
    assert alone.rows.tolist() == [0, 1, 2] and [one.shape for (one,) in alone] == [()] * 3


def test_datasets_that_only_reorder_rows_have_their_table():
    rows = slices(np.arange(10.0))
    fixed = rows.shuffle(3, reshuffle_each_iteration=False).batch(4)
    for dataset in (
        rows,
        fixed,
        fixed.cache(),
        rows.prefetch(2),
        rows.repeat(2).take(5),
        rows.shard(2, 1),
        rows.take(3).concatenate(rows),
    ):
        assert dataset.table is rows.table
        assert [dataset.table.take(one).numpy().tolist() for one in dataset.rows_from(1)] == numbers(dataset)[1:]
    for dataset in (rows.map(lambda x: x), rows.concatenate(slices(np.arange(3.0))), rows.filter(lambda x: True)):
        assert dataset.table is None


def test_elements_of_other_ranks_are_not_gathered_together():
    rows = tf.data.Dataset.from_tensor_slices(np.arange(24.0))
    batches, pairs = rows.batch(4), rows.batch(2).batch(2)
    parts = [batches, rows, pairs, rows.batch(3).batch(2), batches]
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.concatenate(part)
    assert joined.table is not None
    add = tf.function(lambda x: tf.reduce_sum(x))
    assert add.scan(joined).numpy().tolist() == [float(element.numpy().sum()) for element in joined]


def test_numbers_of_elements_may_be_tensors():
    rows, two = tf.data.Dataset.range(6), tf.constant(2)
    assert len(list(rows.shuffle(rows.cardinality()))) == 6
    assert [len(one(two)) for one in (rows.batch, rows.take, rows.skip, rows.repeat, rows.window)] == [3, 2, 4, 12, 3]


@pytest.mark.parametrize("method", ["batch", "repeat", "shuffle", "skip", "take", "window", "padded_batch"])
@pytest.mark.parametrize("number", [2.5, "2"])
def test_numbers_of_elements_are_whole(method, number):
    with pytest.raises(ValueError, match=f"{method}: .* must be an int.*, found {number!r}"):
        getattr(tf.data.Dataset.range(6), method)(number)


def test_leaves_of_unequal_length_are_not_unbatched():
    for element in ((np.arange(2), np.arange(3)), np.int64(1)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="same number of rows"):
            list(tf.data.Dataset.from_tensors(element).unbatch())


def test_a_pipeline_goes_to_other_processes_with_cloudpickle_and_not_with_pickle():
    cloudpickle = pytest.importorskip("cloudpickle")
    dataset = tf.data.Dataset.range(6).shuffle(6, seed=1).map(lambda x: 2 * x).batch(2)
    with pytest.raises((AttributeError, pickle.PicklingError), match="Can't (pickle|get local object)"):
        pickle.dumps(dataset)
    elements = [one.numpy().tolist() for one in pickle.loads(cloudpickle.dumps(dataset))]
    assert elements == [one.numpy().tolist() for one in dataset] and sorted(np.concatenate(elements)) == [0, 2, 4, 6, 8, 10]
