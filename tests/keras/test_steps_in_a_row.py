"""Steps of `fit` that are taken in a row give what one step at a time gives, and callbacks hear of what they ask for."""

import itertools
import signal
import tempfile
import threading

import numpy as np
import pytest
from in_one_test import in_one_test
from slow import diagonal, mostly_slow

import minikeras as tf
from minikeras.compiler import scan
from minikeras.keras import callbacks
from minikeras.keras.training.state import Transaction
from minikeras.nn_ops import streams

Dense = tf.keras.layers.Dense
generator = np.random.default_rng(4)
X, Y = generator.normal(size=(90, 3)).astype("float32"), generator.integers(0, 3, 90)
X64, W = generator.normal(size=(90, 3)), np.linspace(0, 1, 90)


@pytest.fixture(autouse=True)
def quick_growth(monkeypatch):
    """Many steps in a row from the second execution on, however long they take."""
    monkeypatch.setattr(scan, "SECONDS", 1e9)
    monkeypatch.setattr(scan, "GROWTH", 7)
    before = streams.states()
    yield
    streams.set_states(before)


@pytest.fixture
def rows_taken(monkeypatch):
    """The numbers of steps that programs carry out in a row, one after another."""
    found, replay = [], Transaction.replay

    def noted(self, step, rows):
        logs = replay(self, step, rows)
        if logs is not None:
            found.append(len(rows))
        return logs

    monkeypatch.setattr(Transaction, "replay", noted)
    return found


class EachBatch(callbacks.Callback):
    """Listens, so that steps are taken one at a time; keeps what it hears."""

    def __init__(self):
        self.heard = []

    def on_train_batch_begin(self, batch, logs=None):
        self.heard.append(batch)

    def on_train_batch_end(self, batch, logs=None):
        self.heard.append(batch)


def made(optimizer="adam", **options):
    streams.set_global_seed(3)
    layers = [tf.keras.Input((3,)), Dense(4, "tanh"), tf.keras.layers.BatchNormalization(), tf.keras.layers.Dropout(0.3)]
    model = tf.keras.Sequential([*layers, Dense(3)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer() if callable(optimizer) else optimizer, loss, metrics=["accuracy"], **options)
    return model


def everything(model, history=None):
    state = model.get_training_state()
    own = {name: array.tobytes() for name, array in state["arrays"].items()}, state["values"]["streams"]
    return own if history is None else (*own, history.history)


def batches(*steps):
    dataset = tf.data.Dataset.from_tensor_slices((X, Y))
    for step in steps:
        dataset = step(dataset)
    return dataset


def in_a_file(array):
    """A memory map that holds a copy."""
    with tempfile.TemporaryFile() as file:
        found = np.memmap(file, array.dtype, "w+", shape=array.shape)
    found[...] = array
    return found


shuffled, batched = (lambda data: data.shuffle(90)), (lambda data: data.batch(8))
DATA = {
    "arrays": lambda: {"x": X, "y": Y, "batch_size": 8},
    "arrays in order": lambda: {"x": X, "y": Y, "batch_size": 8, "shuffle": False},
    "batches shuffled": lambda: {"x": X, "y": Y, "batch_size": 8, "shuffle": "batch"},
    "class weights": lambda: {"x": X, "y": Y, "batch_size": 8, "class_weight": {0: 2.0, 2: 0.5}},
    "sample weights": lambda: {"x": X, "y": Y, "batch_size": 8, "sample_weight": W},
    "float64 in files": lambda: {"x": in_a_file(X64), "y": in_a_file(Y + 0.0), "batch_size": 8, "sample_weight": in_a_file(W)},
    "validation": lambda: {"x": X, "y": Y, "batch_size": 8, "validation_split": 0.3, "validation_freq": 2},
    "steps an epoch": lambda: {"x": X, "y": Y, "batch_size": 8, "steps_per_epoch": 10},
    "more steps than a pass": lambda: {"x": X, "y": Y, "batch_size": 8, "steps_per_epoch": 30},
    "dataset": lambda: {"x": batches(shuffled, batched)},
    "small buffer": lambda: {"x": batches(lambda data: data.shuffle(20, seed=3), batched)},
    "repeated": lambda: {"x": batches(shuffled, lambda data: data.repeat(3), batched)},
    "without end": lambda: {"x": batches(shuffled, batched, lambda data: data.repeat()), "steps_per_epoch": 20},
    "prefetched": lambda: {"x": batches(shuffled, batched, lambda data: data.prefetch(2))},
    "cached": lambda: {"x": batches(lambda data: data.cache(), shuffled, batched)},
    "part": lambda: {"x": batches(shuffled, batched, lambda data: data.skip(1).take(8))},
}
OTHER_DATA = {
    "mapped": lambda: {"x": batches(shuffled, batched, lambda data: data.map(lambda x, y: (2.0 * x, y)))},
    "generator": lambda: {"x": ((X[i : i + 5], Y[i : i + 5]) for i in range(0, 60, 5)), "steps_per_epoch": 4},
    "weighted dataset": lambda: {"x": batches(shuffled, batched), "class_weight": {0: 2.0, 2: 0.5}},
}


def trained(data, listeners=(), **options):
    model = made(**options)
    return everything(model, model.fit(**data(), epochs=3, verbose=0, callbacks=list(listeners)))


# The law -------------------------------------------------------------------------------------------------------------


WHOLE = [pytest.param(jit_compile, 1, marks=pytest.mark.slow) for jit_compile in ("auto", True)]


@pytest.mark.parametrize("jit_compile, every", [("auto", 2), (True, 5), *WHOLE])
def test_many_steps_in_a_row_give_what_one_at_a_time_gives(jit_compile, every, rows_taken):
    for name, data in itertools.islice((DATA | OTHER_DATA).items(), 0, None, every):
        rows_taken.clear()
        one = trained(data, [EachBatch()], jit_compile=jit_compile)
        assert set(rows_taken) <= {1}, name
        many = trained(data, jit_compile=jit_compile)
        assert (max(rows_taken, default=1) > 1) is (name in DATA), name
        assert many == one, name


FORMS = {
    "maps": (lambda rows: rows, {"y": Y + 0.0, "sample_weight": W}),
    "views of maps": (lambda rows: np.asarray(rows)[::-1][5:], {"y": Y + 0.0, "sample_weight": W}),
    "every other row": (lambda rows: rows[::2], {"y": Y, "shuffle": False}),
    "Fortran's order": (lambda rows: rows.reshape(rows.shape[::-1]).T, {"y": Y, "shuffle": "batch"}),
    "class weights": (lambda rows: rows, {"y": Y + 0.0, "class_weight": {0: 2.0, 2: 0.5}, "validation_split": 0.3}),
}


HOWS = {"eager": {"run_eagerly": True}, "auto": {"jit_compile": "auto"}, "native": {"jit_compile": True}}


@pytest.mark.parametrize("form, how", diagonal(FORMS, HOWS))
def test_float64_arrays_in_files_give_what_those_in_memory_give(form, how):
    view, options = FORMS[form]

    def work(hold):
        given = {name: view(hold(value)) if isinstance(value, np.ndarray) else value for name, value in options.items()}
        x = view(hold(X64))
        model = made(**HOWS[how])
        history = model.fit((x,), **given, batch_size=8, epochs=3, verbose=0)
        losses = model.evaluate(x, given["y"], 8, verbose=0)
        return *everything(model, history), losses, model.predict(x, 8, verbose=0).tobytes()

    assert work(in_a_file) == work(np.array)


OPTIMIZERS = {
    "schedule": lambda: tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.CosineDecay(0.1, 20), momentum=0.9),
    "clipping": lambda: tf.keras.optimizers.Nadam(0.01, clipnorm=0.1),
    "averages": lambda: tf.keras.optimizers.RMSprop(0.01, use_ema=True, ema_overwrite_frequency=5),
    "accumulation": lambda: tf.keras.optimizers.Adam(0.01, gradient_accumulation_steps=3, weight_decay=0.1),
    "scaling": lambda: tf.keras.optimizers.LossScaleOptimizer(tf.keras.optimizers.Adam(0.01)),
}


def test_so_they_do_with_every_kind_of_optimizer(rows_taken):
    for name, optimizer in OPTIMIZERS.items():
        rows_taken.clear()
        many = trained(DATA["arrays"], optimizer=optimizer)
        assert max(rows_taken) > 1, name
        assert many == trained(DATA["arrays"], [EachBatch()], optimizer=optimizer), name


def test_so_they_do_on_a_device(rows_taken):
    with tf.device("STRICT:0"):
        many = trained(DATA["arrays"])
        assert max(rows_taken) > 1
        assert many == trained(DATA["arrays"], [EachBatch()])


def test_evaluation_takes_many_in_a_row(rows_taken):
    model = made()
    one = EachBatch()
    one.on_test_batch_end = lambda batch, logs=None: None
    alone = model.evaluate(X, Y, batch_size=8, verbose=0, callbacks=[one])
    assert set(rows_taken) <= {1}
    assert model.evaluate(X, Y, batch_size=8, verbose=0) == alone and max(rows_taken) > 1


# What callbacks hear -------------------------------------------------------------------------------------------------


def test_a_listener_hears_of_each_batch_or_of_each_execution():
    each, grouped = EachBatch(), EachBatch()
    one = trained(DATA["arrays in order"], [each])
    assert each.heard == [number for _ in range(3) for batch in range(12) for number in (batch, batch)]
    many = trained(DATA["arrays in order"], [grouped], steps_per_execution=5)
    assert grouped.heard == [0, 4, 5, 9, 10, 11] * 3
    assert many == one


def test_savers_count_batches_and_not_executions(tmp_path):
    for count, expected in ((1, {4, 8, 12}), (2, {4, 8, 12}), (3, {6, 12})):
        place = tmp_path / str(count)
        saver = callbacks.ModelCheckpoint(place / "{batch}.weights.h5", save_weights_only=True, save_freq=4)
        made(steps_per_execution=count).fit(X, Y, batch_size=8, callbacks=[saver], verbose=0)
        assert {int(path.name.partition(".")[0]) for path in place.iterdir()} == expected


def test_savers_after_each_epoch_do_not_listen_to_batches(rows_taken, tmp_path):
    saver = callbacks.ModelCheckpoint(tmp_path / "{epoch}.weights.h5", save_weights_only=True)
    made().fit(X, Y, batch_size=8, epochs=2, callbacks=[saver], verbose=0)
    assert max(rows_taken) > 1 and len(list(tmp_path.iterdir())) == 2

    class Own(callbacks.ModelCheckpoint):
        heard = 0

        def on_train_batch_end(self, batch, logs=None):
            self.heard += 1

    own = Own(tmp_path / "{epoch}.weights.h5", save_weights_only=True)
    made().fit(X, Y, batch_size=8, callbacks=[own], verbose=0)
    assert own.heard == 12


def test_the_bar_counts_steps_and_not_executions(capfd):
    for options in ({}, {"steps_per_execution": 5}):
        made(**options).fit(X, Y, batch_size=8, epochs=2, verbose=2)
        lines = capfd.readouterr().out.splitlines()
        assert [line.split(" - ")[0] for line in lines] == ["Epoch 1/2", "12/12", "Epoch 2/2", "12/12"]


def test_python_s_own_step_is_asked_whether_to_stop_after_each(monkeypatch):
    class Stops(tf.keras.Sequential):
        def train_step(self, data):
            logs = super().train_step(data)
            self.seen = getattr(self, "seen", 0) + 1
            if self.seen == 4:
                self.stop_training = True
            return logs

    model = Stops([tf.keras.Input((3,)), Dense(3)])
    model.compile("sgd", "mse")
    model.fit(X, np.eye(3, dtype="float32")[Y], batch_size=8, verbose=0)
    assert int(model.optimizer.iterations) == 4


def test_a_source_that_reads_the_model_sees_it_after_each_step():
    model, seen = made(), []

    def source():
        for start in range(0, 60, 6):
            seen.append(int(model.optimizer.iterations))
            yield X[start : start + 6], Y[start : start + 6]

    model.fit(source(), verbose=0)
    assert seen == list(range(10))


# Failures ------------------------------------------------------------------------------------------------------------


@in_one_test(count=("auto", 1, 4), jit_compile=("auto", True))
@pytest.mark.parametrize("bad", mostly_slow([0, 1, 5, 30, 88], 5, 30))
def test_a_step_that_fails_leaves_those_before_it(bad, count, jit_compile):
    labels = Y.copy()
    labels[bad] = 7
    failing = made(steps_per_execution=count, jit_compile=jit_compile)
    failing.fit(X[:16], Y[:16], batch_size=8, verbose=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="label"):
        failing.fit(X, labels, batch_size=8, shuffle=False, verbose=0)
    good = made(jit_compile=jit_compile)
    good.fit(X[:16], Y[:16], batch_size=8, verbose=0)
    good.reset_metrics()
    if bad >= 8:
        good.fit(X[: bad // 8 * 8], Y[: bad // 8 * 8], batch_size=8, shuffle=False, verbose=0)
    assert everything(failing) == everything(good)


@in_one_test(after=(0, 2, 9, 20), jit_compile=("auto", True))
def test_what_a_failed_step_drew_is_drawn_again(after, jit_compile):
    begin_step, failing_at = tf.keras.optimizers.Adam.begin_step, [0]

    def failing(self, t, learning_rate):
        if t == failing_at[0]:
            raise ZeroDivisionError("no learning rate")
        return begin_step(self, t, learning_rate)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.keras.optimizers.Adam, "begin_step", failing)
        broken, good = made(jit_compile=jit_compile), made(jit_compile=jit_compile)
        for model in (broken, good):
            model.fit(X[:32], Y[:32], batch_size=4, shuffle=False, verbose=0)
            model.reset_metrics()
        failing_at[0] = 8 + after + 1
        with pytest.raises(ZeroDivisionError, match="no learning rate"):
            broken.fit(X, Y, batch_size=4, shuffle=False, verbose=0)
        failing_at[0] = 0
        if after:
            good.fit(X, Y, batch_size=4, shuffle=False, steps_per_epoch=after, verbose=0)
        assert everything(broken)[0] == everything(good)[0]


@pytest.mark.parametrize("jit_compile", ["auto", True])
def test_an_interrupt_leaves_whole_steps(jit_compile):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a test run in the background ignores it
    try:
        interrupted(jit_compile)
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted(jit_compile):
    """A native epoch would end before the interrupt, and many planned ones would be left to LLVM by 'auto'."""
    x, y = np.concatenate([X] * 400), np.concatenate([Y] * 400)
    model = made(jit_compile=jit_compile)
    model.fit(x[:80], y[:80], batch_size=8, verbose=0)
    before = int(model.optimizer.iterations)

    ended = threading.Event()

    def interrupt():
        seen = {before}
        while len(seen) < 3:  # whole steps: the first count may be of a step that the interrupt takes back
            seen.add(int(model.optimizer.iterations))
            if ended.wait(0.001):
                return
        signal.raise_signal(signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y, batch_size=8, epochs=1000 if jit_compile is True else 2, shuffle=False, verbose=0)
    ended.set()
    interrupting.join()
    steps = int(model.optimizer.iterations) - before
    assert steps > 0
    again = made(jit_compile=jit_compile)
    again.fit(x[:80], y[:80], batch_size=8, verbose=0)
    again.fit(x, y, batch_size=8, epochs=1, steps_per_epoch=steps, shuffle=False, verbose=0)
    names = [name for name in everything(model)[0] if not name.startswith("metrics")]
    assert {name: everything(model)[0][name] for name in names} == {name: everything(again)[0][name] for name in names}


# Configuration -------------------------------------------------------------------------------------------------------


def test_auto_is_the_default_and_keras_is_not_told_of_it():
    model = made()
    assert model.steps_per_execution == "auto"
    assert "steps_per_execution" not in model.get_compile_config()
    assert made(steps_per_execution=3).get_compile_config()["steps_per_execution"] == 3
    copy = made()
    copy.compile_from_config(model.get_compile_config())
    assert copy.steps_per_execution == "auto"
    for wrong in ("many", 0, 1.5):
        with pytest.raises((TypeError, ValueError), match="steps_per_execution"):
            made(steps_per_execution=wrong)


def test_a_progress_bar_with_hooks_of_the_users_hears_of_each_step():
    class Bar(callbacks.ProgbarLogger):
        heard: list[int] = []

        def on_train_batch_end(self, batch, logs=None):
            self.heard.append(batch)
            super().on_train_batch_end(batch, logs)

    model = tf.keras.Sequential([tf.keras.Input((3,)), Dense(3, "softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(X, Y, batch_size=9, epochs=3, verbose=0, callbacks=[Bar()])
    assert Bar.heard == [*range(10)] * 3


def test_a_value_that_only_python_needs_is_no_reason_to_fail():
    """The weights of a model of one layer in half precision are cast by NumPy, before the kernels begin."""
    results = []
    for jit_compile in (False, True):
        model = tf.keras.Sequential(
            [tf.keras.Input((3,)), tf.keras.layers.Dense(1, "linear", True, "ones", dtype="mixed_float16")]
        )
        model.compile("sgd", "mse", jit_compile=jit_compile)
        x = np.linspace(-1.0, 1.0, 96).reshape(32, 3).astype("float32")
        results.append(model.fit(x, x.sum(axis=1), batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-2, atol=1e-4)
