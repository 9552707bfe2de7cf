"""Trials of Optuna are pruned by a callback: what is reported, what ends, what is left behind, and what is refused."""

import math

import numpy as np
import pytest

import minikeras as tf

optuna = pytest.importorskip("optuna")
keras = tf.keras
X = np.linspace(-1.0, 1.0, 12, dtype="float32")[:, None]


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.WARNING)


class PruneAfter(optuna.pruners.BasePruner):
    """Prunes a trial once it has reported so often."""

    def __init__(self, reports):
        self.reports = reports

    def prune(self, study, trial):
        return len(trial.intermediate_values) >= self.reports


def model_of(rate=0.1):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(keras.optimizers.SGD(rate), "mse", metrics=["mae", "r2_score"])
    return model


def searched(monitor="val_loss", reports=99, model=None, callbacks=(), direction="minimize", **options):
    """A trial whose objective fits one model; the study and the model."""
    model = model or model_of()

    def objective(trial):
        pruning = keras.callbacks.OptunaPruning(trial, monitor)
        arguments = {"epochs": 5, "validation_data": (X, 2 * X)} | options
        return model.fit(X, 2 * X, callbacks=[pruning, *callbacks], verbose=0, **arguments).history["loss"][-1]

    study = optuna.create_study(pruner=PruneAfter(reports), direction=direction)
    study.optimize(objective, n_trials=1)
    return study, model


def test_the_value_of_each_epoch_is_reported():
    study, model = searched()
    (trial,) = study.trials
    assert trial.state.name == "COMPLETE"
    assert trial.intermediate_values == dict(enumerate(model.history.history["val_loss"]))


def test_a_pruned_trial_ends_after_the_epoch_and_all_callbacks_come_to_their_end(tmp_path):
    log = keras.callbacks.CSVLogger(tmp_path / "log.csv")
    ended = []
    last = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: ended.append(epoch), on_train_end=ended.append)
    study, model = searched("loss", reports=2, callbacks=[log, last])
    assert study.trials[0].state.name == "PRUNED" and len(study.trials[0].intermediate_values) == 2
    assert model.history.epoch == [0, 1] and ended[:2] == [0, 1] and len(ended) == 3
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 3


def test_a_model_whose_trial_was_pruned_goes_on_as_if_it_had_been_stopped():
    _, pruned = searched(reports=2)
    other = model_of()
    other.set_weights(pruned.get_weights())
    other.optimizer.build(other.trainable_variables)
    histories = [model.fit(X, 2 * X, epochs=2, shuffle=False, verbose=0).history for model in (pruned, other)]
    assert histories[0] == histories[1] and len(histories[0]["loss"]) == 2


def test_what_fit_raises_says_when_and_why():
    study = optuna.create_study(pruner=PruneAfter(3))
    pruning = keras.callbacks.OptunaPruning(study.ask(), "mae")
    with pytest.raises(optuna.TrialPruned, match=r"Pruned after epoch 3, with mae=\d\.\d+"):
        model_of().fit(X, 2 * X, epochs=9, callbacks=[pruning], verbose=0)


@pytest.mark.parametrize("scale", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_prunes_whatever_the_pruner_says(scale):
    study, model = searched("loss", validation_data=None, sample_weight=np.full(12, scale))
    assert study.trials[0].state.name == "PRUNED" and model.history.epoch == [0]


def test_epochs_without_validation_are_passed_over():
    study, _ = searched(validation_freq=2)
    assert list(study.trials[0].intermediate_values) == [1, 3]


@pytest.mark.parametrize(
    ("monitor", "options", "message"),
    [
        ("accuracy", {}, "'accuracy' is not in the logs. There are: loss, mae"),
        ("val_accuracy", {}, "'val_accuracy' is not in the logs"),
        ("val_loss", {"validation_data": None}, "no epoch was validated, so there was no 'val_loss'"),
        ("val_r2_score", {}, "more is better, but the study has the direction minimize"),
        ("loss", {"direction": "maximize"}, "less is better, but the study has the direction maximize"),
    ],
)
def test_a_value_that_is_not_there_or_runs_the_other_way_is_an_error(monitor, options, message):
    with pytest.raises(ValueError, match=message):
        searched(monitor, **options)


def test_what_is_no_trial_of_one_objective_is_refused():
    with pytest.raises(TypeError, match="should be what Optuna gave to the objective, found an int"):
        keras.callbacks.OptunaPruning(3)
    with pytest.raises(TypeError, match="monitor should be a name in the logs, found a list"):
        keras.callbacks.OptunaPruning(optuna.trial.FixedTrial({}), ["loss"])
    study = optuna.create_study(directions=["minimize", "maximize"])
    with pytest.raises(ValueError, match="the study has 2 objectives"):
        keras.callbacks.OptunaPruning(study.ask())


def test_a_fixed_trial_is_never_pruned():
    pruning = keras.callbacks.OptunaPruning(optuna.trial.FixedTrial({}), "loss")
    assert len(model_of().fit(X, 2 * X, epochs=3, callbacks=[pruning], verbose=0).epoch) == 3
