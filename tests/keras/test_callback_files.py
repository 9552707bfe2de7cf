"""Callbacks that write: lines of CSV, event files for TensorBoard, saved models."""

import csv
import tracemalloc

import numpy as np
import pytest

import minikeras as tf
from minikeras.files import tensors

X, Y = np.ones((12, 3), "float32"), np.zeros((12, 1), "float32")
CSVLogger = tf.keras.callbacks.CSVLogger


def made(rate=0.01):
    model = tf.keras.Sequential(
        [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="ones", name="head")], name="m"
    )
    model.compile(tf.keras.optimizers.SGD(rate), "mse", metrics=["mae"])
    return model


def rows(path, **options):
    with open(path, newline="") as file:
        return list(csv.DictReader(file, **options))


# CSV ---------------------------------------------------------------------------------------------------------------------


def test_a_line_of_csv_holds_the_numbers_of_an_epoch(tmp_path):
    path, model = tmp_path / "log.csv", made()
    history = model.fit(X, Y, epochs=3, validation_split=0.5, callbacks=[CSVLogger(path)], verbose=0).history
    found = rows(path)
    assert list(found[0]) == ["epoch", "loss", "mae", "val_loss", "val_mae"]
    assert [int(row["epoch"]) for row in found] == [0, 1, 2]
    for name, values in history.items():
        assert [float(row[name]) for row in found] == values
    model.fit(X, Y, epochs=1, callbacks=[CSVLogger(path, separator=";")], verbose=0)
    assert list(rows(path, delimiter=";")[0]) == ["epoch", "loss", "mae"], "a new run begins a new file, without empty columns"


def test_validation_that_begins_later_gets_its_columns(tmp_path):
    path = tmp_path / "log.csv"
    made().fit(X, Y, epochs=4, validation_split=0.5, validation_freq=2, callbacks=[CSVLogger(path)], verbose=0)
    assert [row["val_loss"] == "NA" for row in rows(path)] == [True, False, True, False]


def test_a_file_is_gone_on_with_if_asked(tmp_path):
    path, model = tmp_path / "log.csv", made()
    model.fit(X, Y, epochs=2, callbacks=[CSVLogger(path, append=True)], verbose=0)
    model.fit(X, Y, initial_epoch=2, epochs=4, callbacks=[CSVLogger(path, append=True)], verbose=0)
    assert [int(row["epoch"]) for row in rows(path)] == [0, 1, 2, 3]
    model.fit(X, Y, epochs=1, callbacks=[CSVLogger(path)], verbose=0)
    assert len(rows(path)) == 1


def test_lines_of_epochs_that_are_run_again_after_a_restart_are_not_written_twice(tmp_path):
    pytest.importorskip("safetensors")

    class Broken(Exception):
        pass

    def fail_once(epoch, logs):
        if epoch == 2 and not (tmp_path / "failed").exists():
            (tmp_path / "failed").touch()
            raise Broken

    def fit():
        tf.keras.utils.clear_session()
        backup = tf.keras.callbacks.BackupAndRestore(tmp_path / "backup", save_freq=5)  # three batches an epoch
        hooks = tf.keras.callbacks.LambdaCallback(on_epoch_end=fail_once)
        made().fit(X, Y, batch_size=4, epochs=4, callbacks=[CSVLogger(tmp_path / "log.csv"), hooks, backup], verbose=0)

    with pytest.raises(Broken):
        fit()
    fit()
    assert [int(row["epoch"]) for row in rows(tmp_path / "log.csv")] == [0, 1, 2, 3]


def test_values_with_axes_are_one_cell(tmp_path):
    callback = CSVLogger(tmp_path / "log.csv")
    callback.on_train_begin()
    callback.on_epoch_end(0, {"per_class": np.array([0.5, 1.0]), "word": "x"})
    assert rows(tmp_path / "log.csv") == [{"epoch": "0", "per_class": "[0.5, 1.0]", "word": "x"}]


# TensorBoard -----------------------------------------------------------------------------------------------------------------


def events(folder, name):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulator.EventAccumulator(str(folder / name), size_guidance={"scalars": 0, "histograms": 0})
    found.Reload()
    return found


def scalars(folder, name, tag):
    return [(event.step, pytest.approx(event.value, rel=1e-6)) for event in events(folder, name).Scalars(tag)]


@pytest.fixture
def tensorboard():
    pytest.importorskip("tensorboard")
    return tf.keras.callbacks.TensorBoard


def test_tensorboard_reads_the_scalars_of_every_epoch(tensorboard, tmp_path):
    model = made()
    callbacks = [tensorboard(tmp_path, write_steps_per_second=True)]
    history = model.fit(X, Y, batch_size=4, epochs=3, validation_split=0.5, callbacks=callbacks, verbose=0).history
    tags = {"epoch_loss", "epoch_mae", "epoch_learning_rate", "epoch_steps_per_second"}
    assert set(events(tmp_path, "train").Tags()["scalars"]) == tags
    assert scalars(tmp_path, "train", "epoch_loss") == list(enumerate(history["loss"]))
    assert scalars(tmp_path, "train", "epoch_learning_rate") == [(epoch, 0.01) for epoch in range(3)]
    assert scalars(tmp_path, "validation", "epoch_mae") == list(enumerate(history["val_mae"]))
    steps = [(2, history["val_loss"][0]), (4, history["val_loss"][1]), (6, history["val_loss"][2])]
    assert scalars(tmp_path, "validation", "evaluation_loss_vs_iterations") == steps


@pytest.mark.parametrize(("frequency", "steps"), [("batch", [0, 1, 2, 3, 4, 5]), (2, [1, 3, 5]), (4, [3])])
def test_tensorboard_reads_the_scalars_of_batches(tensorboard, tmp_path, frequency, steps):
    made().fit(X, Y, batch_size=4, epochs=2, callbacks=[tensorboard(tmp_path, update_freq=frequency)], verbose=0)
    assert [step for step, _ in scalars(tmp_path, "train", "batch_loss")] == steps


def test_tensorboard_reads_the_distribution_of_weights(tensorboard, tmp_path):
    model = made()
    model.fit(X, Y, epochs=4, callbacks=[tensorboard(tmp_path, histogram_freq=2)], verbose=0)
    found = events(tmp_path, "train")
    assert sorted(found.Tags()["histograms"]) == ["m/head/bias/histogram", "m/head/kernel/histogram"]
    last = found.Histograms("m/head/kernel/histogram")
    assert [event.step for event in last] == [0, 2]
    value = last[0].histogram_value
    assert value.num == 3 and value.min <= value.max and sum(value.bucket) == 3
    assert value.sum == pytest.approx(value.min * 3, rel=1e-5)


def test_an_evaluation_by_itself_is_written_and_its_file_closed(tensorboard, tmp_path):
    model, callback = made(), tensorboard(tmp_path)
    loss = model.evaluate(X, Y, callbacks=[callback], return_dict=True, verbose=0)["loss"]
    assert scalars(tmp_path, "validation", "evaluation_loss_vs_iterations") == [(0, loss)]
    assert callback._writers == {}


# Models ----------------------------------------------------------------------------------------------------------------------


def test_saved_models_can_be_loaded(tmp_path):
    pytest.importorskip("h5py")
    model = made(0.1)
    whole = tf.keras.callbacks.ModelCheckpoint(tmp_path / "new" / "{epoch}.keras", monitor="loss", save_best_only=True)
    weights = tf.keras.callbacks.ModelCheckpoint(tmp_path / "{epoch}.weights.h5", save_weights_only=True)
    model.fit(X, Y, epochs=2, callbacks=[whole, weights], verbose=0)
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"1.keras", "2.keras"}
    loaded = tf.keras.models.load_model(tmp_path / "new" / "2.keras")
    other = made()
    other.load_weights(tmp_path / "2.weights.h5")
    for mine in (loaded, other):
        assert all(np.array_equal(a, b) for a, b in zip(mine.get_weights(), model.get_weights(), strict=True))


def test_the_best_value_is_kept_over_a_restart(tmp_path):
    """A second run with worse losses must not write over the file of the first, if it goes on from its state."""
    pytest.importorskip("safetensors")

    class Broken(Exception):
        pass

    saved = []

    def fit(fails):
        tf.keras.utils.clear_session()
        model = made(0.1)
        model.save = lambda path, overwrite: saved.append(path)
        best = tf.keras.callbacks.ModelCheckpoint(tmp_path / "best.keras", monitor="loss", save_best_only=True)

        def on_epoch_begin(epoch, logs):
            if epoch == 1:
                model.optimizer.learning_rate = -1.0  # from then on the loss can only rise
            if epoch == 2 and fails:
                raise Broken

        hooks = tf.keras.callbacks.LambdaCallback(on_epoch_begin=on_epoch_begin)
        backup = tf.keras.callbacks.BackupAndRestore(tmp_path / "backup")
        return model.fit(X, Y, epochs=4, callbacks=[best, hooks, backup], verbose=0).history["loss"]

    with pytest.raises(Broken):
        fit(fails=True)
    assert len(saved) == 2
    losses = fit(fails=False)
    assert min(losses) == losses[1] and len(saved) == 2


def test_what_tensorboard_cannot_write_is_left_out_and_said():
    with pytest.warns(UserWarning, match="TensorBoard: write_graph, profile_batch is not available and left out"):
        board = tf.keras.callbacks.TensorBoard("logs", histogram_freq=1, write_graph=True, profile_batch=(2, 5))
    assert board.histogram_freq == 1


def test_a_backup_leaves_nothing_behind_and_needs_a_folder(tmp_path):
    x = np.ones((4, 1), "float32")
    for folder, other in ((tmp_path / "alone", False), (tmp_path / "shared", True)):
        model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        if other:
            folder.mkdir()
            (folder / "notes.txt").write_text("mine")
        model.fit(x, x, epochs=2, callbacks=[tf.keras.callbacks.BackupAndRestore(folder)], verbose=0)
        assert folder.exists() is other and (not other or [path.name for path in folder.iterdir()] == ["notes.txt"])
    for nothing in ("", None):
        with pytest.raises(ValueError, match="backup_dir must name a folder, found"):
            tf.keras.callbacks.BackupAndRestore(nothing)


# tf.summary ------------------------------------------------------------------------------------------------------------------


def test_summaries_are_what_tensorboard_reads(tmp_path):
    pytest.importorskip("tensorboard")
    writer = tf.summary.create_file_writer(tmp_path / "run")
    with writer.as_default():
        assert tf.summary.scalar("loss", tf.constant(0.25), step=tf.Variable(3))
        tf.summary.histogram("weights", [1.0, 1.0, 2.0], step=3, buckets=2)
        tf.summary.text("note", "hello", step=3)
        tf.summary.flush()
        tf.summary.image("pictures", np.ones((5, 2, 4, 3), "float32"), step=3, max_outputs=2)
    found = events(tmp_path, "run")
    counts = found.Histograms("weights")[0].histogram_value
    assert scalars(tmp_path, "run", "loss") == [(3, 0.25)]
    assert list(found.Tensors("note")[0].tensor_proto.string_val) == [b"hello"]
    assert (counts.num, counts.sum, counts.bucket_limit, counts.bucket) == (3, 4.0, [1.5, 2.0], [2, 1])
    pictures = [found.Images(f"pictures/image/{number}")[0] for number in range(2)]
    assert [(one.step, one.height, one.width) for one in pictures] == [(3, 2, 4)] * 2 and len(found.Tags()["images"]) == 2


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}])
def test_a_compiled_function_writes_in_each_run_with_the_writer_of_that_time(options, tmp_path):
    pytest.importorskip("tensorboard")

    @tf.function(**options)
    def step(x, number):
        tf.summary.scalar("loss", x * 2.0, step=number)
        tf.summary.scalar("default", x)
        tf.summary.image("picture", tf.ones([1, 2, 2, 1]) * x, step=number)
        return x + 1.0

    first, second = (tf.summary.create_file_writer(tmp_path / name) for name in "ab")
    for number, writer in enumerate([first, first, second]):
        with writer.as_default(step=10 + number):
            step(tf.constant(float(number)), tf.constant(number, tf.int64))
    step(tf.constant(7.0), tf.constant(7, tf.int64))
    assert step.replays == 3
    steps = lambda name, tag: sorted({event.step for event in events(tmp_path, name).Scalars(tag)})
    assert [steps("a", "loss"), steps("b", "loss"), steps("a", "default"), steps("b", "default")] == [
        [0, 1],
        [2],
        [10, 11],
        [12],
    ]


def test_a_summary_needs_a_writer_and_a_step(tmp_path):
    pytest.importorskip("tensorboard")
    assert tf.summary.scalar("loss", 1.0) is False
    with tf.summary.create_file_writer(tmp_path).as_default(), pytest.raises(ValueError, match="no step is given"):
        tf.summary.scalar("loss", 1.0)
    assert list(tmp_path.iterdir()) == []
    with pytest.warns(UserWarning, match="graphs and profiles are not available"):
        tf.summary.trace_on(graph=True)
    with pytest.raises(AttributeError, match=r"keras\.callbacks\.TensorBoard"):
        _ = tf.summary.audio


def test_a_backup_is_read_array_by_array(tmp_path):
    """Beside the arrays themselves nothing of the size of the file is held."""
    model, saver = made(), tf.keras.callbacks.BackupAndRestore(tmp_path)
    tensors.save(saver.path, {"values/large": np.ones(1 << 20)}, {"training_state": "{}"})
    model.set_training_state = lambda state: None
    saver.set_model(model)
    tracemalloc.start()
    try:
        saver.on_train_begin()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.2 * saver.path.stat().st_size
