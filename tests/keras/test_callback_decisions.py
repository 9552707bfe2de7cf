"""What callbacks decide on made-up logs: the same as Keras, for every sequence of the fixture."""

import math
import pathlib

import numpy as np
import pytest
from golden_numbers import golden

import minikeras as tf

CALLBACKS = golden("callbacks")
SEQUENCES = {name: [float(value) for value in values] for name, values in CALLBACKS["sequences"].items()}
keras_callbacks = tf.keras.callbacks


class Stub:
    """What callbacks need of a model: a weight that holds the number of the epoch, an optimizer, files that were asked for."""

    def __init__(self, rate=1.0):
        self.weight, self.stop_training, self.saved = -1, False, []
        self.optimizer = tf.keras.optimizers.SGD(rate)

    def get_weights(self):
        return [self.weight]

    def set_weights(self, weights):
        (self.weight,) = weights

    def metric_direction(self, name):
        return {"loss": "min", "accuracy": "max"}.get(name)

    def save(self, path, overwrite):
        self.saved.append(pathlib.Path(path).name)

    save_weights = save


def attached(callback, model, **params):
    callback.set_params(params)
    callback.set_model(model)
    return callback


def identify(case):
    return f"{case['seq']}-{'-'.join(f'{key}={value}' for key, value in case['config'].items()) or 'default'}"


def test_every_section_of_the_fixture_is_known():
    hooks = {"meta", "fit_hook_order", "evaluate_hook_order", "predict_hook_order"}
    data = {"validation_split", "class_weight_to_sample_weights"}
    decisions = {"sequences", "early_stopping", "reduce_lr_on_plateau", "model_checkpoint"}
    assert set(CALLBACKS) == hooks | data | decisions


@pytest.mark.parametrize("case", CALLBACKS["early_stopping"], ids=identify)
def test_early_stopping_stops_and_restores_as_keras_does(case):
    model = Stub()
    callback = attached(keras_callbacks.EarlyStopping(**case["config"]), model)
    callback.on_train_begin()
    stopped, waits = None, []
    for epoch, value in enumerate(SEQUENCES[str(case["seq"])]):
        model.weight = epoch
        callback.on_epoch_end(epoch, {"val_loss": value})
        waits.append([callback.wait, callback.best])
        if model.stop_training:
            stopped = epoch
            break
    callback.on_train_end()
    assert stopped == case["stopped_at"] and callback.stopped_epoch == case["stopped_epoch"]
    assert callback.best_epoch == case["best_epoch"] and model.weight == case["final_weights_from_epoch"]
    assert [wait for wait, _ in waits] == [wait for wait, _ in case["wait_best"]]
    assert [best for _, best in waits] == [best if best is None else pytest.approx(best) for _, best in case["wait_best"]]


@pytest.mark.parametrize("case", CALLBACKS["reduce_lr_on_plateau"], ids=identify)
def test_the_learning_rate_is_reduced_when_keras_reduces_it(case):
    model = Stub()
    callback = attached(keras_callbacks.ReduceLROnPlateau(**case["config"]), model)
    callback.on_train_begin()
    rates = []
    for epoch, value in enumerate(SEQUENCES[str(case["seq"])]):
        before, logs = float(model.optimizer.learning_rate), {"val_loss": value}
        callback.on_epoch_end(epoch, logs)
        assert logs["learning_rate"] == before, "the rate that the epoch was trained with is logged"
        rates.append(float(model.optimizer.learning_rate))
    np.testing.assert_allclose(rates, case["lr_after_epoch"], rtol=1e-6)


@pytest.mark.parametrize(
    "case", [case for case in CALLBACKS["model_checkpoint"] if str(case["seq"]) in SEQUENCES], ids=identify
)
def test_a_model_is_saved_when_keras_saves_it(case, tmp_path):
    model = Stub()
    callback = attached(
        keras_callbacks.ModelCheckpoint(tmp_path / "m_{epoch:02d}_{val_loss:.2f}.keras", **case["config"]), model
    )
    callback.on_train_begin()
    for epoch, value in enumerate(SEQUENCES[str(case["seq"])]):
        callback.on_epoch_begin(epoch)
        callback.on_epoch_end(epoch, {"val_loss": value})
    assert model.saved == case["saved"]


def test_a_frequency_in_batches_counts_across_epochs(tmp_path):
    (case,) = [case for case in CALLBACKS["model_checkpoint"] if str(case["seq"]).startswith("batches")]
    model = Stub()
    callback = attached(keras_callbacks.ModelCheckpoint(tmp_path / "b_{epoch}_{batch}.weights.h5", **case["config"]), model)
    for epoch in range(2):
        callback.on_epoch_begin(epoch)
        for batch in range(5):
            callback.on_train_batch_end(batch, {"loss": 1.0})
        callback.on_epoch_end(epoch, {"loss": 1.0})
    assert model.saved == case["saved"]


# Beyond the fixture ------------------------------------------------------------------------------------------------------


def test_what_is_better_is_asked_of_the_metric_and_an_unknown_one_has_to_be_told(tmp_path):
    model = Stub()
    stop = attached(keras_callbacks.EarlyStopping("val_accuracy", patience=1), model)
    for epoch, value in enumerate([0.5, 0.7, 0.6]):
        stop.on_epoch_end(epoch, {"val_accuracy": value})
    assert stop.stopped_epoch == 2 and stop.best == 0.7 and stop.mode == "max"
    for callback in (
        keras_callbacks.EarlyStopping("val_own"),
        keras_callbacks.ReduceLROnPlateau("own"),
        keras_callbacks.ModelCheckpoint(tmp_path / "a.keras", "own", save_best_only=True),
    ):
        message = f"{type(callback).__name__}: monitor='.*own' names no metric .* mode='max' or mode='min'"
        with pytest.raises(ValueError, match=message):
            attached(callback, model).on_epoch_end(0, {"own": 1.0, "val_own": 1.0})


def test_a_value_that_starts_as_nan_is_beaten_by_any_number():
    model = Stub()
    stop = attached(keras_callbacks.EarlyStopping(patience=3), model)
    for epoch, value in enumerate([math.nan, 2.0, 1.0]):
        stop.on_epoch_end(epoch, {"val_loss": value})
    assert stop.best == 1.0 and stop.wait == 0


def test_a_value_that_is_not_in_the_logs_is_warned_about(tmp_path):
    model = Stub()
    best = keras_callbacks.ModelCheckpoint(tmp_path / "m.keras", save_best_only=True)
    for callback in (keras_callbacks.EarlyStopping(), keras_callbacks.ReduceLROnPlateau(), best):
        with pytest.warns(UserWarning, match=f"{type(callback).__name__}: 'val_loss' is not in the logs. There are: .*loss"):
            attached(callback, model).on_epoch_end(0, {"loss": 1.0})
    assert model.saved == ["m.keras"], "better one file too many"


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: keras_callbacks.EarlyStopping(mode="least"), ValueError, "mode must be 'auto', 'min' or 'max', found 'least'"),
        (lambda: keras_callbacks.ReduceLROnPlateau(factor=1.0), ValueError, "does not support a factor >= 1.0"),
        (lambda: keras_callbacks.ModelCheckpoint("m"), ValueError, "must end in .keras, found 'm'"),
        (lambda: keras_callbacks.ModelCheckpoint("m.h5"), ValueError, "must end in .keras, found 'm.h5'"),
        (lambda: keras_callbacks.ModelCheckpoint("m.h5", save_weights_only=True), ValueError, "must end in .weights.h5"),
        (lambda: keras_callbacks.ModelCheckpoint("m.keras", save_freq="batch"), ValueError, "'epoch' or a number of batches"),
        (lambda: keras_callbacks.BackupAndRestore("d", save_freq=0), ValueError, "'epoch' or a number of batches, found 0"),
        (lambda: keras_callbacks.TensorBoard(update_freq="step"), ValueError, "update_freq must be 'epoch', 'batch'"),
    ],
)
def test_options_that_mean_nothing_are_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_a_place_in_the_file_name_that_no_log_fills_is_named(tmp_path):
    callback = attached(keras_callbacks.ModelCheckpoint(tmp_path / "{val_loss}.keras"), Stub())
    with pytest.raises(KeyError, match=r"'val_loss' in filepath .* is not known; there are \['epoch', 'loss'\]"):
        callback.on_epoch_end(0, {"loss": 1.0})


def test_the_comparison_of_a_monitor_is_an_attribute():
    assert keras_callbacks.EarlyStopping(mode="min").monitor_op is np.less
    assert keras_callbacks.ModelCheckpoint("m.keras", mode="max").monitor_op is np.greater
    plateau = keras_callbacks.ReduceLROnPlateau("loss")
    assert plateau.monitor_op is None
    attached(plateau, Stub())
    assert plateau.monitor_op is np.less


def test_what_is_done_is_told_if_asked(tmp_path, capsys):
    model = Stub()
    stop = attached(keras_callbacks.EarlyStopping(patience=1, verbose=1, restore_best_weights=True), model)
    reduce = attached(keras_callbacks.ReduceLROnPlateau(patience=1, verbose=1), model)
    save = attached(keras_callbacks.ModelCheckpoint(tmp_path / "m.keras", verbose=1, save_best_only=True), model)
    every = attached(keras_callbacks.ModelCheckpoint(tmp_path / "n.keras", verbose=1), model)
    rate = attached(keras_callbacks.LearningRateScheduler(lambda epoch, rate: 0.5, verbose=1), model)
    for epoch, value in enumerate([1.0, 2.0]):
        for callback in (stop, reduce, save, every):
            callback.on_epoch_end(epoch, {"val_loss": value})
    stop.on_train_end()
    rate.on_epoch_begin(4)
    written = capsys.readouterr().out
    for line in (
        "Epoch 2: early stopping",
        "Restoring model weights from the end of the best epoch: 1.",
        "Epoch 2: ReduceLROnPlateau reducing learning rate to 0.1",
        "Epoch 1: val_loss improved from nothing to 1.00000, saving model to",
        "Epoch 2: val_loss did not improve from 1.00000",
        "Epoch 1: saving model to",
        "Epoch 5: LearningRateScheduler setting learning rate to 0.5.",
    ):
        assert line in written


def test_every_learning_rate_of_an_optimizer_made_of_several_is_set_and_logged():
    optimizers = [tf.keras.optimizers.SGD(1.0, name="slow"), tf.keras.optimizers.Adam(0.5, name="fast")]
    model = Stub()
    model.optimizer = tf.keras.optimizers.PerLayer({"below": optimizers[0], "*": optimizers[1]})
    reduce = attached(keras_callbacks.ReduceLROnPlateau(patience=1, factor=0.5), model)
    for epoch in range(3):
        reduce.on_epoch_end(epoch, logs := {"val_loss": 1.0})
    assert logs == {"val_loss": 1.0, "learning_rate_slow": 0.5, "learning_rate_fast": 0.25}
    schedule = attached(keras_callbacks.LearningRateScheduler(lambda epoch, rate: rate * 4), model)
    schedule.on_epoch_begin(0)
    assert [float(one.learning_rate) for one in optimizers] == [1.0, 0.5]
    with pytest.raises(ValueError, match="The output of the `schedule` function should be a float. Got: 1 at epoch 3"):
        attached(keras_callbacks.LearningRateScheduler(lambda epoch, rate: 1), model).on_epoch_begin(3)


def test_an_object_serves_again_in_a_second_fit():
    stop, reduce = keras_callbacks.EarlyStopping(patience=1), keras_callbacks.ReduceLROnPlateau(patience=1)
    model = Stub()
    for callback in (attached(stop, model), attached(reduce, model)):
        for _ in range(2):
            callback.on_train_begin()
            callback.on_epoch_end(0, {"val_loss": 1.0})
            assert (callback.best, callback.wait) == (1.0, 0)
