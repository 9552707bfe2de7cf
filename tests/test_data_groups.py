"""Datasets: windows, padding, groups, several datasets in one, what elements are, and iterators that are saved."""

import itertools

import numpy as np
import pytest
from afresh import fixed_stream  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st

import minikeras as tf
from minikeras.errors import InvalidArgumentError, NotFoundError
from minikeras.nn_ops import streams

Dataset = tf.data.Dataset
spec = tf.TensorSpec


def shown(dataset):
    return [tf.nest.map_structure(lambda leaf: np.asarray(leaf.numpy()).tolist(), element) for element in dataset]


def rows_of_lengths(*lengths):
    """A Dataset of rows 1, 2 2, 3 3 3 and so on, whose lengths it announces as unknown."""
    return Dataset.from_generator(lambda: ([n] * n for n in lengths), output_signature=spec([None], "int32"))


# Windows ---------------------------------------------------------------------------------------------------------------


@given(
    rows=st.integers(0, 12),
    size=st.integers(1, 5),
    shift=st.integers(1, 6),
    stride=st.integers(1, 4),
    whole=st.booleans(),
    made=st.booleans(),
)
def test_windows_begin_shift_apart_and_hold_elements_stride_apart(rows, size, shift, stride, whole, made):
    dataset = Dataset.range(rows).map(lambda x: x) if made else Dataset.range(rows)
    windows = dataset.window(size, shift, stride, whole)
    wanted = [list(range(start, rows, stride))[:size] for start in range(0, rows, shift)]
    wanted = [one for one in wanted if len(one) == size] if whole else wanted
    assert [shown(window) for window in windows] == wanted and len(windows) == len(wanted)


def test_windows_of_nests_are_nests_of_datasets_in_the_order_of_the_rows():
    rows = Dataset.from_tensor_slices(({"a": np.arange(5.0)}, np.arange(5))).shuffle(5, seed=1)
    joined = rows.window(2).flat_map(lambda x, y: Dataset.zip((x["a"].batch(2), y.batch(2))))
    assert sorted(itertools.chain(*(y for _, y in shown(joined)))) == list(range(5))
    assert all(x == y for x, y in shown(joined))
    assert [shown(window) for window in Dataset.range(5).batch(2).window(2)] == [[[0, 1], [2, 3]], [[4]]]


def test_windows_of_what_has_no_known_end():
    assert Dataset.range(3).repeat().window(2).cardinality() == tf.data.INFINITE_CARDINALITY
    first = next(iter(Dataset.counter().window(3, shift=1)))
    assert shown(first.batch(3)) == [[0, 1, 2]]
    with pytest.raises(ValueError, match="window: shift must be an int of at least 1, found 0"):
        Dataset.range(3).window(2, shift=0)


# Padding ---------------------------------------------------------------------------------------------------------------


def test_padded_batches_are_as_long_as_their_longest_row_or_as_told():
    rows = rows_of_lengths(1, 3, 2)
    assert shown(rows.padded_batch(2)) == [[[1, 0, 0], [3, 3, 3]], [[2, 2]]]
    for shape in ([4], (4,), 4, np.int64(4)):
        assert shown(rows.padded_batch(2, shape, -1, drop_remainder=True)) == [[[1, -1, -1, -1], [3, 3, 3, -1]]]
    assert rows.padded_batch(2).element_spec == spec([None, None], "int32")
    assert rows.padded_batch(2, [4], drop_remainder=True).element_spec == spec([2, 4], "int32")


def test_elements_of_another_device_are_grouped_there(device):
    rows = rows_of_lengths(1, 3, 2).map(lambda row: row + 1)
    assert shown(rows.padded_batch(2, padding_values=tf.constant(9))) == [[[2, 9, 9], [4, 4, 4]], [[3, 3]]]
    assert shown(rows.unique().take(1)) == [[2]] and {batch.device for batch in rows.padded_batch(2)} == {tf.zeros([]).device}
    columns = Dataset.from_tensor_slices(np.array([1, 2, 3, 4])).window(2).flat_map(lambda window: window.batch(2))
    assert shown(columns) == [[1, 2], [3, 4]]
    series = tf.keras.utils.timeseries_dataset_from_array(np.arange(5), np.arange(5), 3, batch_size=2)
    assert shown(series) == [([[0, 1, 2], [1, 2, 3]], [0, 1]), ([[2, 3, 4]], [2])]
    assert tf.keras.utils.normalize(tf.constant([[3.0, 4.0]])).numpy().round(6).tolist() == [
        [0.6000000238418579, 0.800000011920929]
    ]


def test_each_leaf_is_padded_by_its_own_shape_and_value():
    words = [["a"], ["b", "c"]]
    rows = Dataset.from_generator(lambda: ((np.array(row), {"n": len(row), "m": np.ones((len(row), 1))}) for row in words))
    (batch,) = shown(rows.padded_batch(2, ([None], {"n": [], "m": [-1, 2]}), ("?", {"n": 0, "m": 0.5})))
    assert batch == ([["a", "?"], ["b", "c"]], {"n": [1, 2], "m": [[[1, 0.5], [0.5, 0.5]], [[1, 0.5], [1, 0.5]]]})
    (text, _), flags = next(iter(rows.padded_batch(2))), rows.map(lambda row, _: tf.ones([len(row)], "bool"))
    assert np.asarray(text).tolist() == [["a", ""], ["b", "c"]]
    assert shown(flags.padded_batch(2)) == [[[True, False], [True, True]]]


def test_rows_that_do_not_fit_a_padded_shape_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"padded_shapes allows \[2\], found elements of up to \[3\]"):
        list(rows_of_lengths(1, 3).padded_batch(2, [2]))
    with pytest.raises(InvalidArgumentError, match="elements with 2 axes are needed"):
        list(rows_of_lengths(1, 3).padded_batch(2, [2, 2]))
    with pytest.raises(InvalidArgumentError, match="padding value 0.5 is not of the elements' dtype int32"):
        list(rows_of_lengths(1, 3).padded_batch(2, padding_values=0.5))
    with pytest.raises(ValueError, match="padded_shapes must be nested like the elements"):
        list(Dataset.from_tensors(([1], [2])).padded_batch(2, {"a": [1]}))


# Groups ----------------------------------------------------------------------------------------------------------------


def test_groups_come_when_they_are_full_and_the_rest_at_the_end_by_key():
    grouped = Dataset.range(9).group_by_window(lambda x: 2 - x % 3, lambda key, rows: rows.batch(2), window_size=2)
    assert shown(grouped) == [[0, 3], [1, 4], [2, 5], [8], [7], [6]]
    sizes = Dataset.range(6).group_by_window(
        lambda x: x % 2, lambda _, rows: rows.batch(9), window_size_func=lambda key: key + 1
    )
    assert shown(sizes) == [[0], [2], [1, 3], [4], [5]]
    with pytest.raises(ValueError, match="give either window_size or window_size_func"):
        Dataset.range(3).group_by_window(int, lambda key, rows: rows)
    with pytest.raises(TypeError, match="group_by_window: the function must return a Dataset, found 1"):
        list(Dataset.range(3).group_by_window(int, lambda key, rows: 1, 2))


def test_buckets_hold_rows_of_about_one_length():
    rows = rows_of_lengths(1, 4, 2, 5, 3)
    buckets = rows.bucket_by_sequence_length(len, [3, 6], [2, 2, 1])
    assert shown(buckets) == [[[1, 0], [2, 2]], [[4, 4, 4, 4, 0], [5] * 5], [[3, 3, 3]]]
    filled = rows.bucket_by_sequence_length(len, [3, 7], [2, 3, 1], pad_to_bucket_boundary=True, padding_values=9)
    assert [np.shape(batch) for batch in shown(filled)] == [(2, 2), (3, 6)]
    same = rows_of_lengths(2, 3, 2, 3).bucket_by_sequence_length(len, [3], [2, 2], no_padding=True)
    assert shown(same) == [[[2, 2], [2, 2]], [[3] * 3, [3] * 3]]


def test_buckets_need_boundaries_that_rise_and_rows_below_the_last_one_to_fill_up():
    rows = rows_of_lengths(1, 4)
    with pytest.raises(ValueError, match="boundaries must rise"):
        rows.bucket_by_sequence_length(len, [3, 3], [1, 1, 1])
    with pytest.raises(InvalidArgumentError, match=r"elements must be shorter than \[3\]"):
        list(rows.bucket_by_sequence_length(len, [3], [2, 2], pad_to_bucket_boundary=True))
    with pytest.raises(ValueError, match="Give padded_shapes with None"):
        list(Dataset.from_tensors([1]).bucket_by_sequence_length(len, [3], [1, 1], pad_to_bucket_boundary=True))


def test_groups_are_those_of_tensorflows_documentation():
    texts = [[0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10, 11], [13, 14, 15, 16, 19, 20], [21, 22]]
    rows = Dataset.from_generator(lambda: texts, tf.int64, output_shapes=[None])
    buckets = rows.bucket_by_sequence_length(lambda row: tf.shape(row)[0], [3, 5], [2, 2, 2])
    assert shown(buckets) == [
        [[1, 2, 3, 4], [5, 6, 7, 0]],
        [[7, 8, 9, 10, 11, 0], [13, 14, 15, 16, 19, 20]],
        [[0, 0], [21, 22]],
    ]
    filled = Dataset.range(1, 5, output_type=tf.int32).map(lambda x: tf.fill([x], x))
    assert shown(filled.padded_batch(2)) == [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]]]
    assert shown(filled.padded_batch(2, padded_shapes=5))[0] == [[1, 0, 0, 0, 0], [2, 2, 0, 0, 0]]
    pairs = Dataset.zip((filled, filled)).padded_batch(2, ([4], [None]), padding_values=(-1, 100))
    assert shown(pairs)[0] == ([[1, -1, -1, -1], [2, 2, -1, -1]], [[1, 100], [2, 2]])
    odd = Dataset.range(10).group_by_window(lambda x: x % 2, lambda key, rows: rows.batch(5), window_size=5)
    assert shown(odd) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert [shown(window) for window in Dataset.range(7).window(3, 1, 2, True)] == [[0, 2, 4], [1, 3, 5], [2, 4, 6]]
    named = Dataset.from_tensor_slices({"a": np.arange(1, 5), "c": np.arange(9, 13)}).window(2)
    assert [{key: shown(part) for key, part in window.items()} for window in named] == [
        {"a": [1, 2], "c": [9, 10]},
        {"a": [3, 4], "c": [11, 12]},
    ]


# Several datasets in one -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [None, 2])
def test_interleave_takes_blocks_in_turn(threads):
    """TensorFlow's own example."""
    rows = Dataset.range(1, 6).interleave(lambda x: Dataset.from_tensors(x).repeat(6), 2, 4, threads)
    turns = [[1] * 4, [2] * 4, [1] * 2, [2] * 2, [3] * 4, [4] * 4, [3] * 2, [4] * 2, [5] * 6]
    assert shown(rows) == list(itertools.chain(*turns))
    assert rows.element_spec == spec([], "int64")
    with pytest.raises(TypeError, match="interleave: the function must return a Dataset"):
        list(Dataset.range(2).interleave(lambda x: x))


def test_samples_follow_the_weights_and_go_on_when_one_dataset_is_at_its_end():
    parts = [Dataset.range(10), Dataset.range(100, 2000)]
    drawn = shown(Dataset.sample_from_datasets(parts, [3, 7], seed=2).take(1000))
    few = Dataset.sample_from_datasets(parts, seed=1)
    assert sorted(shown(few)) == [*range(10), *range(100, 2000)] and len(few) == 1910
    assert shown(few.take(9)) == shown(few.take(9)) and drawn[-1] > 900
    stopped = shown(Dataset.sample_from_datasets(parts, [0.5, 0.5], 1, stop_on_empty_dataset=True))
    assert stopped == shown(few)[: len(stopped)] and 9 in stopped and len(stopped) < 100
    anew = Dataset.sample_from_datasets(parts, seed=1, rerandomize_each_iteration=True)
    assert shown(anew.take(20)) != shown(anew.take(20))
    assert shown(Dataset.sample_from_datasets(parts, [1.0, 0.0])) == list(range(10))
    for weights in ([1.0], [-1.0, 2.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]):
        with pytest.raises(ValueError, match="weights must be 2 finite numbers of at least 0"):
            Dataset.sample_from_datasets(parts, weights)


def test_choices_name_the_dataset_that_gives_the_next_element():
    parts = [Dataset.range(2), Dataset.range(10, 20)]
    choices = Dataset.from_tensor_slices(np.array([1, 0, 0, 0, 1]))
    assert shown(Dataset.choose_from_datasets(parts, choices)) == [10, 0, 1]
    assert shown(Dataset.choose_from_datasets(parts, choices, stop_on_empty_dataset=False)) == [10, 0, 1, 11]
    with pytest.raises(InvalidArgumentError, match="a number from 0 to 1, found 2"):
        list(Dataset.choose_from_datasets(parts, Dataset.range(2, 3)))


# Single elements ---------------------------------------------------------------------------------------------------------


def test_take_while_unique_scan_and_rebatch():
    rows = Dataset.from_tensor_slices(np.array([1, 37, 2, 37, 2, 1]))
    assert shown(rows.take_while(lambda x: x != 2)) == [1, 37]
    assert shown(rows.unique()) == [1, 37, 2]
    assert shown(Dataset.from_tensor_slices(["a", "b", "a"]).unique()) == ["a", "b"]
    assert shown(rows.scan(0, lambda state, x: (state + 1, (state, x))))[1] == (1, 37)
    assert shown(rows.batch(4).rebatch(3)) == [[1, 37, 2], [37, 2, 1]]
    with pytest.raises(ValueError, match="nested structure"):
        list(rows.scan(0, lambda state, x: ((state, state), x)))


def test_counters_and_random_numbers_have_no_end():
    assert shown(Dataset.counter(3, 2, "int32").take(3)) == [3, 5, 7]
    assert shown(Dataset.range(2, output_type=tf.float32)) == [0.0, 1.0]
    numbers = Dataset.random(seed=4)
    assert shown(numbers.take(3)) == shown(numbers.take(3)) and max(shown(numbers.take(50))) > 2**31
    anew = Dataset.random(seed=4, rerandomize_each_iteration=True)
    assert shown(anew.take(3)) != shown(anew.take(3))
    assert {one.cardinality().numpy() for one in (numbers, anew, Dataset.counter())} == {tf.data.INFINITE_CARDINALITY}


def test_a_single_element_is_the_only_one():
    assert float(Dataset.from_tensors(3.0).get_single_element()) == 3.0
    for rows, found in ((0, "none"), (2, "more")):
        with pytest.raises(InvalidArgumentError, match=f"one element is needed, found {found}"):
            Dataset.range(rows).get_single_element()


def test_files_are_listed_by_pattern(tmp_path):
    for name in "bca":
        (tmp_path / f"{name}.txt").touch()
    pattern = str(tmp_path / "*.txt")
    paths = [str(tmp_path / f"{name}.txt") for name in "abc"]
    assert shown(Dataset.list_files(pattern, shuffle=False)) == paths
    assert sorted(shown(Dataset.list_files([pattern, paths[0]], seed=1))) == paths
    with pytest.raises(NotFoundError, match="list_files: no file matches"):
        Dataset.list_files(str(tmp_path / "*.png"))


def test_options_go_on_to_what_is_made_of_a_dataset():
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    rows = Dataset.range(3).with_options(options)
    assert rows.batch(2).options() is options and shown(rows) == [0, 1, 2]
    with pytest.raises(TypeError, match=r"expected tf.data.Options"):
        rows.with_options({})


def test_a_cardinality_can_be_asserted():
    generated = Dataset.from_generator(lambda: range(3))
    assert len(generated.apply(tf.data.experimental.assert_cardinality(3))) == 3
    for expected, found in ((2, "more"), (4, "3")):
        with pytest.raises(InvalidArgumentError, match=f"expected {expected} elements, found {found}"):
            list(generated.apply(tf.data.experimental.assert_cardinality(expected)))
    assert list(generated.take(0).apply(tf.data.experimental.assert_cardinality(0))) == []


# What elements are -------------------------------------------------------------------------------------------------------

x, y = np.zeros((5, 2), "float32"), np.zeros(5, "int64")
pairs = Dataset.from_tensor_slices((x, {"y": y}))


@pytest.mark.parametrize(
    ("dataset", "wanted"),
    [
        (pairs, (spec([2]), {"y": spec([], "int64")})),
        (pairs.shuffle(5).batch(2), (spec([None, 2]), {"y": spec([None], "int64")})),
        (pairs.batch(2, drop_remainder=True).batch(2), (spec([None, 2, 2]), {"y": spec([None, 2], "int64")})),
        (pairs.batch(2).map(lambda x, y: (x[:, 0], tf.reduce_sum(x))), (spec([None]), spec([]))),
        (pairs.batch(2).unbatch().take(3), (spec([2]), {"y": spec([], "int64")})),
        (pairs.filter(lambda x, y: False), (spec([2]), {"y": spec([], "int64")})),
        (Dataset.zip(pairs, Dataset.range(3)), ((spec([2]), {"y": spec([], "int64")}), spec([], "int64"))),
        (Dataset.range(3).enumerate(), (spec([], "int64"), spec([], "int64"))),
        (Dataset.range(3).batch(2).concatenate(Dataset.range(3).batch(3, True)), spec([None], "int64")),
        (Dataset.range(3).concatenate(Dataset.range(3).batch(2)), spec(None, "int64")),
        (Dataset.range(3).window(2).flat_map(lambda window: window.batch(2)), spec([None], "int64")),
        (Dataset.range(3).window(2), tf.data.DatasetSpec(spec([], "int64"))),
        (Dataset.from_tensor_slices(["a", "b"]), spec([], "string")),
        (Dataset.from_generator(lambda: [], (tf.int32, tf.float32), ([], [None])), (spec([], "int32"), spec([None]))),
        (Dataset.from_generator(lambda: [], tf.int32), spec(None, "int32")),
        (rows_of_lengths(1, 2).batch(1), spec([None, None], "int32")),
    ],
    ids=str,
)
def test_the_spec_of_elements_leaves_open_what_may_vary(dataset, wanted):
    assert dataset.element_spec == wanted


def test_looking_at_the_first_element_changes_nothing():
    rows = Dataset.range(9).shuffle(9).map(lambda x: (x, tf.random.normal([])))
    before = streams.states()
    assert rows.element_spec == (spec([], "int64"), spec([]))
    assert streams.states() == before
    with pytest.raises(InvalidArgumentError, match="element_spec: the dataset has no elements"):
        Dataset.range(0).map(lambda x: x).element_spec  # noqa: B018


# Iterators that are saved --------------------------------------------------------------------------------------------------

PIPELINES = {
    "rows": lambda rows: rows.batch(4),
    "shuffled": lambda rows: rows.shuffle(20).batch(4).repeat(),
    "small buffer": lambda rows: rows.shuffle(5, seed=3).repeat(4).batch(3),
    "mapped": lambda rows: rows.map(lambda x: x + 1, num_parallel_calls=2).shuffle(7).repeat().batch(3).prefetch(2),
    "one order": lambda rows: rows.shuffle(20, reshuffle_each_iteration=False).repeat().batch(3),
    "cached": lambda rows: rows.map(lambda x: x).cache().shuffle(20, seed=1).repeat().batch(6).prefetch(1),
    "interleaved": lambda rows: rows.interleave(lambda x: Dataset.range(x, x + 3).shuffle(3), 3),
    "sampled": lambda rows: Dataset.sample_from_datasets([rows.shuffle(20), rows.repeat()], rerandomize_each_iteration=True),
}


@pytest.mark.parametrize("taken", [0, 3, 9])
@pytest.mark.parametrize("name", PIPELINES)
def test_an_iterator_goes_on_where_a_checkpoint_was_saved(name, taken, tmp_path):
    elements = iter(PIPELINES[name](Dataset.range(20)))
    for _ in range(taken):
        next(elements, None)
    path = tf.train.Checkpoint(data=elements).save(str(tmp_path / "ckpt"))
    rest = shown(itertools.islice(elements, 12))
    streams.set_global_seed(77)
    again = iter(PIPELINES[name](Dataset.range(20)))
    next(again)
    tf.train.Checkpoint(data=again).restore(path).assert_consumed()
    assert shown(itertools.islice(again, 12)) == rest and again.element_spec is not None


def test_an_iterator_at_its_end_stays_there():
    elements = iter(Dataset.range(2))
    assert [int(elements.get_next()), int(next(elements))] == [0, 1]
    assert list(elements) == [] and next(elements, None) is None
    with pytest.raises(tf.errors.OutOfRangeError, match="end of sequence") as caught:
        elements.get_next()
    assert isinstance(caught.value, StopIteration) and isinstance(caught.value, tf.errors.OpError)
    other = iter(Dataset.range(2))
    other.set_state(elements.get_state())
    assert list(other) == []
    with pytest.raises(ValueError, match="1 shuffles with a seed"):
        iter(Dataset.range(2).shuffle(2, seed=1)).set_state(elements.get_state())


def test_a_training_with_dropout_goes_on_bit_for_bit_from_an_iterator_in_its_checkpoint(tmp_path):
    def training():
        streams.set_global_seed(1)
        layers = tf.keras.layers
        model = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(4, "relu"), layers.Dropout(0.5), layers.Dense(1)])
        optimizer = tf.keras.optimizers.Adam(0.01)
        x = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
        rows = Dataset.from_tensor_slices((x, x[:, :1])).shuffle(20).map(lambda x, y: (x + tf.random.normal([3]), y))
        elements = iter(rows.batch(4).repeat())

        def step():
            x, y = next(elements)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
            optimizer.apply_gradients(
                zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
            )
            return float(loss)

        return step, tf.train.Checkpoint(model=model, optimizer=optimizer, elements=elements)

    step, checkpoint = training()
    for _ in range(7):
        step()
    path = checkpoint.save(str(tmp_path / "ckpt"))
    whole = [step() for _ in range(9)]
    step, checkpoint = training()
    step()
    checkpoint.restore(path).assert_consumed()
    assert [step() for _ in range(9)] == whole


def test_no_datasets_are_not_chosen_from():
    with pytest.raises(TypeError, match="expected Datasets, found None"):
        Dataset.choose_from_datasets([], Dataset.range(1))


@pytest.mark.parametrize("value", [1.5, 2**40, "x"])
def test_a_padding_value_that_the_dtype_cannot_hold_is_refused(value):
    rows = Dataset.range(1, 3, output_type=tf.int32).map(lambda n: tf.fill([n], n))
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not of the elements' dtype int32"):
        shown(rows.padded_batch(2, padding_values=value))
