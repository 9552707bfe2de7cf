"""What may be handed to fit, evaluate and predict: data frames, scikit-learn's arrays, sequences, loaders, nests."""

from __future__ import annotations

import itertools
import threading
import tracemalloc

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import DTypeError, ShapeError

Dense = tf.keras.layers.Dense
generator = np.random.default_rng(5)
X, Y = generator.normal(size=(12, 3)).astype("float32"), generator.normal(size=(12, 1)).astype("float32")


def made(units=1, loss="mse", optimizer="adam", **options):
    model = tf.keras.Sequential([tf.keras.Input((3,)), Dense(units, kernel_initializer="ones")])
    model.compile(optimizer, loss, **options)
    return model


def trained(*data, **options):
    model = made()
    model.fit(*data, epochs=2, batch_size=options.pop("batch_size", 4), shuffle=False, verbose=0, **options)
    return model.get_weights()


def assert_same(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        assert np.array_equal(mine, theirs)


# Tables ------------------------------------------------------------------------------------------------------------------


def test_data_frames_and_their_columns_go_straight_in():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(target=Y[:, 0])
    expected = trained(X, Y)
    assert_same(trained(frame[["a", "b", "c"]], frame["target"]), expected)
    assert_same(trained(frame[["a", "b", "c"]], frame[["target"]]), expected)
    assert_same(trained(frame[["a", "b", "c"]].astype("Float64"), frame["target"]), expected)
    weights = pandas.Series(np.arange(12.0))
    assert_same(
        trained(frame[["a", "b", "c"]], frame["target"], sample_weight=weights), trained(X, Y, sample_weight=np.arange(12.0))
    )
    model = made()
    history = model.fit(frame[["a", "b", "c"]], frame["target"], validation_split=0.25, verbose=0).history
    assert history["val_loss"][0] == pytest.approx(model.evaluate(X[9:], Y[9:], verbose=0), rel=1e-6)
    assert model.predict(frame[["a", "b", "c"]], verbose=0).shape == (12, 1)


def test_columns_of_several_kinds_of_numbers_are_numbers_and_missing_ones_are_nan():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"flag": [True, False], "count": pandas.array([1, None], dtype="Int64"), "size": [0.5, 1.5]})
    columns = tf.keras.batches.as_columns(frame)
    assert columns.dtype == np.float32
    np.testing.assert_array_equal(columns, [[1.0, 1.0, 0.5], [0.0, np.nan, 1.5]])


def test_columns_that_hold_no_numbers_are_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "colour": ["red", "blue"], "kind": pandas.Categorical(["u", "v"])})
    with pytest.raises(DTypeError, match=r"columns \{'colour': '.*', 'kind': 'category'\} of the data frame hold no numbers"):
        made().fit(frame, [1.0, 2.0], verbose=0)
    with pytest.raises(DTypeError, match=r"columns \{'colour': '.*'\} of the data frame hold no numbers. Encode them first"):
        made().fit(X[:2], frame["colour"], verbose=0)


@pytest.mark.parametrize("options", [{"run_eagerly": True}, {"jit_compile": "auto"}, {"jit_compile": True}], ids=str)
def test_float64_arrays_in_files_are_converted_batch_by_batch(options, tmp_path):
    rows, columns = 25_600, 1024
    with open(tmp_path / "x", "wb") as file:
        file.truncate(8 * rows * columns)  # 200 MB of zeros that take no room
    x, y = np.memmap(tmp_path / "x", np.float64, "r", shape=(rows, columns)), np.zeros((rows, 1))
    model = tf.keras.Sequential([tf.keras.Input((columns,)), Dense(1)])
    model.compile("sgd", "mse", **options)
    tracemalloc.start()
    tf.config.set_resident_data_limit(0)  # a device would take them as a whole
    try:
        model.fit(x, y, batch_size=128, validation_split=0.25, verbose=0)
        model.evaluate(x, y, batch_size=128, verbose=0)
        model.predict(x, batch_size=128, verbose=0)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        tf.config.set_resident_data_limit(None)
    assert most < x.nbytes / 4


def test_sparse_arrays_are_refused_with_what_to_do():
    sparse = pytest.importorskip("scipy.sparse")
    for kind in (sparse.csr_matrix, sparse.coo_array):
        with pytest.raises(DTypeError, match=r"sparse .* of shape \(12, 3\); sparse arrays are not supported. Use x.toarray"):
            made().fit(kind(X), Y, verbose=0)


# Sequences and loaders -----------------------------------------------------------------------------------------------------


class Batches(tf.keras.utils.PyDataset):
    """Three batches; remembers what was asked of it."""

    def __init__(self, **options):
        super().__init__(**options)
        self.asked, self.epochs, self.threads = [], [], set()

    def __len__(self):
        return 3

    def __getitem__(self, index):
        self.asked.append(index)
        self.threads.add(threading.current_thread())
        return X[4 * index : 4 * index + 4], Y[4 * index : 4 * index + 4]

    def on_epoch_begin(self):
        self.epochs.append("begin")

    def on_epoch_end(self):
        self.epochs.append("end")


@pytest.mark.parametrize("workers", [1, 3])
def test_a_sequence_trains_as_its_arrays_do(workers):
    data = Batches(workers=workers, max_queue_size=2)
    assert_same(trained(data, batch_size=None), trained(X, Y))
    assert sorted(data.asked) == [0, 0, 1, 1, 2, 2] and data.epochs == ["begin", "end"] * 2
    assert (threading.current_thread() in data.threads) == (workers == 1)
    assert made().evaluate(data, verbose=0) == pytest.approx(made().evaluate(X, Y, verbose=0), rel=1e-6)
    assert np.array_equal(made().predict(Batches(), verbose=0), made().predict(X, verbose=0))
    assert [len(x) for x, _ in data] == [4, 4, 4]


def test_the_batches_of_a_sequence_are_shuffled_anew_for_each_epoch():
    data = Batches()
    for _ in range(20):
        made().fit(data, verbose=0)
    orders = {tuple(data.asked[start : start + 3]) for start in range(0, 60, 3)}
    assert len(orders) > 2 and all(sorted(order) == [0, 1, 2] for order in orders)


def test_a_sequence_without_end_needs_steps():
    class Endless(Batches):
        @property
        def num_batches(self):
            return None

        def __getitem__(self, index):
            return super().__getitem__(index % 3)

    data = Endless()
    made().fit(data, steps_per_epoch=4, epochs=2, verbose=0)
    assert data.asked == [0, 1, 2, 0, 1, 2, 0, 1]
    with pytest.raises(ValueError, match="The data has no end: say how many batches an epoch has, with `steps_per_epoch`"):
        made().fit(data, verbose=0)
    with pytest.raises(ValueError, match="The data has no end"):
        made().fit(tf.data.Dataset.from_tensor_slices((X, Y)).batch(4).repeat(), verbose=0)


def test_a_sequence_says_what_it_lacks():
    class Nothing(tf.keras.utils.PyDataset):
        pass

    with pytest.raises(NotImplementedError, match="Nothing must implement __len__"):
        made().fit(Nothing(), verbose=0)
    with pytest.raises(NotImplementedError, match=r"Nothing must implement __getitem__\(index\)"):
        Nothing()[0]


def test_a_sequence_that_wants_processes_gets_threads_and_says_so():
    with pytest.warns(UserWarning, match="use_multiprocessing is left out; workers=n makes batches in n threads"):
        data = Batches(workers=2, use_multiprocessing=True)
    assert len(made().fit(data, epochs=2, verbose=0).history["loss"]) == 2


def test_a_sequence_is_iterated_to_its_end_if_it_has_one_and_counts_its_batches_by_either_name():
    class Endless(tf.keras.utils.PyDataset):
        num_batches = None

        def __getitem__(self, index):
            return index

    class Silent(tf.keras.utils.PyDataset):
        def __getitem__(self, index):
            return index

    class Counted(Silent):
        num_batches = 2

    class Long(Silent):
        def __len__(self):
            return 2

    for kind, found in [(Endless, [0, 1, 2]), (Silent, [0, 1, 2]), (Counted, [0, 1]), (Long, [0, 1])]:
        assert list(itertools.islice(kind(), 3)) == found
    assert len(Counted()) == Long().num_batches == 2
    with pytest.raises(TypeError, match="Endless has no end"):
        len(Endless())


@pytest.mark.parametrize("labels", [[0, 2, 1], np.array([[0], [2], [1]]), tf.constant([0, 2, 1])])
def test_categories_are_of_the_kind_that_the_labels_are(labels):
    rows = tf.keras.utils.to_categorical(labels)
    assert isinstance(rows, tf.Tensor) == isinstance(labels, tf.Tensor) and rows.dtype == "float32"
    np.testing.assert_array_equal(rows, np.eye(3)[[0, 2, 1]])


def test_an_error_in_a_worker_reaches_the_caller():
    class Failing(Batches):
        def __getitem__(self, index):
            if index == 1:
                raise OSError("disk")
            return super().__getitem__(index)

    with pytest.raises(OSError, match="disk"):
        made().fit(Failing(workers=2), shuffle=False, verbose=0)


def test_a_loader_that_makes_its_batches_anew_is_read_in_every_epoch():
    class Loader:
        def __iter__(self):
            return ([X[start : start + 4], Y[start : start + 4]] for start in (0, 4, 8))

    assert_same(trained(Loader(), batch_size=None), trained(X, Y))
    with pytest.raises(TypeError, match="train_on_batch: one batch of arrays is needed, found a Loader"):
        made().train_on_batch(Loader())


def test_a_torch_loader_is_a_source_of_batches():
    torch = pytest.importorskip("torch")
    rows = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    assert_same(trained(torch.utils.data.DataLoader(rows, batch_size=4), batch_size=None), trained(X, Y))


# Weights beside batches ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        lambda x, y: tf.data.Dataset.from_tensor_slices((x, y)).batch(4),
        lambda x, y: ((x[start : start + 4], y[start : start + 4]) for start in (0, 4, 8)),
    ],
)
def test_class_weights_reach_batches_too(form):
    labels, weights = np.arange(12) % 3, {0: 2.0, 2: 0.5}
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    of_arrays, of_batches = made(3, loss), made(3, loss)
    expected = of_arrays.fit(X, labels, batch_size=4, shuffle=False, class_weight=weights, verbose=0).history
    assert of_batches.fit(form(X, labels), class_weight=weights, verbose=0).history == expected
    with pytest.raises(ValueError, match="You cannot `class_weight` and `sample_weight` at the same time"):
        made(3, loss).fit(iter([(X, labels, np.ones(12))]), class_weight=weights, verbose=0)


def test_sample_weights_without_labels_reach_a_step_of_one_s_own():
    seen = []

    class Own(tf.keras.Sequential):
        def train_step(self, data):
            seen.append(tf.nest.map_structure(lambda leaf: leaf if leaf is None else leaf.numpy(), data))
            return {"loss": 0.0}

    model = Own([Dense(1)])
    model.compile("sgd")
    model.fit(X, sample_weight=np.arange(12.0), shuffle=False, verbose=0)
    (x, y, weights), *_ = seen
    assert np.array_equal(x, X) and y is None and weights.tolist() == list(range(12))


def test_inputs_in_a_named_tuple_and_of_different_lengths():
    import typing

    class Pair(typing.NamedTuple):
        a: object
        b: object

    class Sum(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = Dense(1)

        def call(self, inputs):
            return self.dense(inputs[0] + inputs[1])

    model = Sum()
    model.compile("sgd", "mse")
    model.fit(Pair(X, X), Y, verbose=0)
    assert model.predict(Pair(X, X), verbose=0).shape == (12, 1)
    with pytest.raises(
        ShapeError, match=r"fit: make sure all arrays contain the same number of samples; found shapes \[\(12, 3\), \(7, 3\)"
    ):
        model.fit([X, X[:7]], Y, verbose=0)


# Devices -----------------------------------------------------------------------------------------------------------------


def test_everything_about_training_works_where_the_arrays_are(device):
    model = tf.keras.Sequential(
        [tf.keras.Input((3,)), Dense(4, activation="relu"), tf.keras.layers.BatchNormalization(), Dense(1)]
    )
    model.compile(tf.keras.optimizers.Adam(0.01, use_ema=True), "mse", metrics=["mae"], weighted_metrics=["mae"])
    callbacks = [
        tf.keras.callbacks.EarlyStopping("loss", patience=9, restore_best_weights=True),
        tf.keras.callbacks.SwapEMAWeights(swap_on_epoch=True),
        tf.keras.callbacks.TerminateOnNaN(),
    ]
    options = {"sample_weight": np.ones(12), "validation_split": 0.25, "callbacks": callbacks, "verbose": 0}
    history = model.fit(X, Y, epochs=3, batch_size=4, **options).history
    assert len(history["val_weighted_mae"]) == 3 and all(np.isfinite(history["loss"]))
    state = model.get_training_state()
    assert all(isinstance(array, np.ndarray) for array in state["arrays"].values())
    before = model.evaluate(X, Y, verbose=0)
    model.train_on_batch(X, Y)
    model.set_training_state(state)
    assert model.evaluate(X, Y, verbose=0) == before and isinstance(model.predict(X, verbose=0), np.ndarray)
    model.fit(Batches(workers=2), verbose=0)
    labels = np.arange(12) % 2
    model.fit(tf.data.Dataset.from_tensor_slices((X, labels)).batch(5).prefetch(1), class_weight={1: 2.0}, verbose=0)


# Steps in groups -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frequency", [0, "2", 1.5, None])
def test_a_frequency_of_validation_is_an_int_or_a_list(frequency):
    with pytest.raises(ValueError, match="Expected `validation_freq` to be a list or an int above 0"):
        made().fit(X, Y, validation_data=(X, Y), validation_freq=frequency, verbose=0)


class Seen(tf.keras.Model):
    """A model that notes how the data of its steps is nested."""

    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1)
        self.seen = []

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        self.seen.append(tf.nest.map_structure(lambda leaf: None if leaf is None else tuple(leaf.shape), data))
        return {"loss": tf.constant(0.0)}

    test_step = train_step

    def predict_step(self, data):
        self.train_step(data)
        return self.dense(tf.nest.flatten(data)[0])


X8, COLUMN, WEIGHT = np.ones((8, 3), "float32"), np.ones((8, 1), "float32"), np.ones(8, "float32")
NESTINGS = [
    ((X8,), (8, 3)),
    ((X8, COLUMN), ((8, 3), (8, 1))),
    ((X8, COLUMN, WEIGHT), ((8, 3), (8, 1), (8,))),
    (({"a": X8},), {"a": (8, 3)}),
    (({"a": X8}, COLUMN), ({"a": (8, 3)}, (8, 1))),
    (([X8, COLUMN],), ([(8, 3), (8, 1)],)),
    (([X8, COLUMN], COLUMN), ([(8, 3), (8, 1)], (8, 1))),
]


@pytest.mark.parametrize(("given", "expected"), NESTINGS)
@pytest.mark.parametrize("form", ["arrays", "generator", "sequence"])
def test_a_step_gets_x_alone_or_a_tuple_of_what_was_given(given, expected, form):
    class Batches(tf.keras.utils.PyDataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            return given

    model = Seen()
    model.compile("sgd", run_eagerly=True)
    x, y, weight = (*given, None, None)[:3]
    if form == "arrays":
        model.fit(x, y, sample_weight=weight, verbose=0)
        model.evaluate(x, y, sample_weight=weight, verbose=0)
    else:
        for run in (model.fit, model.evaluate):
            run((one for one in [given]) if form == "generator" else Batches(), verbose=0)
    assert model.seen == [expected] * 2
    if y is None and form == "arrays":
        model.predict(x, verbose=0)
        assert model.seen[-1] == expected


def finite(count):
    return ((X8, COLUMN) for _ in range(count))


def test_a_generator_that_is_used_up_ends_the_training_with_a_warning():
    model = Seen()
    model.compile("sgd", run_eagerly=True)
    with pytest.warns(UserWarning, match="Your input ran out of data after 1 epochs; training ends here"):
        history = model.fit(finite(3), epochs=5, verbose=0)
    assert history.epoch == [0] and len(model.seen) == 3
    with pytest.warns(UserWarning, match="1 batches instead of the 2|ran out of data after 2 epochs"):
        history = model.fit(finite(3), epochs=5, steps_per_epoch=2, verbose=0)
    assert history.epoch == [0, 1] and len(model.seen) == 6


def test_a_batch_size_beside_batches_is_left_out_with_a_warning():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    class Batches(tf.keras.utils.PyDataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return X8, COLUMN

    for data in (Batches(), tf.data.Dataset.from_tensor_slices((X8, COLUMN)).batch(4), finite(2)):
        with pytest.warns(UserWarning, match="fit: batch_size=5 is left out: a .* gives batches already"):
            model.fit(data, batch_size=5, verbose=0)
    with pytest.warns(UserWarning, match="evaluate: batch_size=5 is left out"):
        model.evaluate(Batches(), batch_size=5, verbose=0)


def test_shuffled_batches_keep_their_rows_together_and_leave_a_short_one_at_the_end():
    seen = []

    class Order(tf.keras.Model):
        def train_step(self, data):
            seen.append(tuple(data[0].numpy().ravel().tolist()))
            return {"loss": tf.constant(0.0)}

    model = Order()
    model.compile("sgd", run_eagerly=True)
    rows = np.arange(11.0, dtype="float32")[:, None]
    model.fit(rows, rows, batch_size=2, epochs=4, shuffle="batch", verbose=0)
    epochs = {tuple(seen[start : start + 6]) for start in range(0, 24, 6)}
    assert len(seen) == 24 and len(epochs) > 1
    assert all(order[-1] == (10.0,) and set(order[:-1]) == {(2.0 * i, 2.0 * i + 1) for i in range(5)} for order in epochs)
    assert model.fit(rows[:1], rows[:1], batch_size=2, shuffle="batch", verbose=0).epoch == [0]
