"""What every callback is handed, and several callbacks as one: in `fit` and in custom training loops."""

import copy
import gc
import itertools

import numpy as np
import pytest

import minikeras as tf

callbacks = tf.keras.callbacks
X = np.linspace(-1, 1, 24, dtype="float32").reshape(8, 3)
Y = X.sum(axis=1, keepdims=True)
HOOKS = sorted(name for name in dir(callbacks.Callback) if name.startswith("on_"))


def linear(optimizer="sgd"):
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    return model


class Listening(callbacks.Callback):
    """Keeps what every hook is given; looks at the names in the logs as Keras's guide does."""

    def __init__(self):
        self.heard = []


def _listening(hook):
    def listen(self, *arguments, logs=None):
        *index, logs = (*arguments, logs) if logs is not None else arguments
        self.heard.append((hook, *index, sorted(logs.keys())))

    return listen


for _hook in HOOKS:
    setattr(Listening, _hook, _listening(_hook))


@pytest.mark.parametrize("run", ["fit", "evaluate", "predict"])
def test_every_hook_gets_a_dict_of_logs(run):
    listening, model = Listening(), linear()
    data = (X,) if run == "predict" else (X, Y)
    getattr(model, run)(*data, batch_size=4, callbacks=[listening], verbose=0)
    heard = {entry[0]: entry[-1] for entry in listening.heard}
    assert heard[f"on_{'train' if run == 'fit' else 'test' if run == 'evaluate' else 'predict'}_begin"] == []
    assert all(names == [] for hook, names in heard.items() if hook.endswith("begin"))


def test_logs_of_the_beginning_are_not_shared_between_hooks():
    class Scribble(callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            assert logs == {}
            logs["mine"] = epoch

    linear().fit(X, Y, epochs=3, callbacks=[Scribble()], verbose=0)


@pytest.mark.parametrize(
    "schedule",
    [
        lambda epoch: 0.5 / (epoch + 1),
        lambda epoch, rate: 0.5 / (epoch + 1),
        lambda epoch, lr=None: 0.5 / (epoch + 1),
        lambda *arguments: 0.5 / (arguments[0] + 1),
        lambda epoch: np.float32(0.5) / np.float32(epoch + 1),
        lambda epoch: tf.constant(0.5) / (epoch + 1.0),
        lambda epoch: np.array(0.5 / (epoch + 1)),
    ],
)
def test_a_schedule_takes_the_epoch_and_the_rate_if_it_wants_it_and_gives_any_float(schedule):
    history = linear().fit(X, Y, epochs=2, callbacks=[callbacks.LearningRateScheduler(schedule)], verbose=0).history
    assert history["learning_rate"] == [0.5, 0.25]


@pytest.mark.parametrize("found", [None, 1, True, "0.1", [0.1], np.array([0.1]), np.int64(1)])
def test_a_schedule_that_gives_no_float_is_refused(found):
    with pytest.raises(ValueError, match="should be a float. Got: .* at epoch 0"):
        linear().fit(X, Y, callbacks=[callbacks.LearningRateScheduler(lambda epoch: found)], verbose=0)


def test_a_type_error_within_a_schedule_is_shown_as_it_is():
    def schedule(epoch, rate):
        return rate * "2"

    with pytest.raises(TypeError, match="multiply"):
        linear().fit(X, Y, callbacks=[callbacks.LearningRateScheduler(schedule)], verbose=0)


# Models ----------------------------------------------------------------------------------------------------------------


def test_a_callback_holds_its_model_and_a_copy_of_it_holds_none():
    callback = callbacks.Callback()
    callback.set_model(linear())
    gc.collect()
    assert callback.model.count_params() == 4
    assert copy.deepcopy(callback).model is None


# Stopping --------------------------------------------------------------------------------------------------------------


def test_an_evaluation_or_prediction_over_data_without_end_is_stopped_by_a_callback():
    def forever():
        return ((X, Y) for _ in itertools.count())

    class Stop(callbacks.Callback):
        def on_test_batch_end(self, batch, logs=None):
            self.model.stop_evaluating = batch == 2

        def on_predict_batch_end(self, batch, logs=None):
            self.model.stop_predicting = batch == 1

    model = linear()
    expected = model.evaluate(X, Y, verbose=0)
    for _ in range(2):  # the wish to stop is forgotten with the run
        assert model.evaluate(forever(), callbacks=[Stop()], verbose=0) == pytest.approx(expected)
        assert model.predict(forever(), callbacks=[Stop()], verbose=0).shape == (16, 1)
    assert model.fit(X, Y, validation_data=forever(), callbacks=[Stop()], verbose=0, epochs=2).epoch == [0, 1]


# Lists -----------------------------------------------------------------------------------------------------------------


def test_a_list_serves_a_loop_of_one_s_own():
    listening, model = Listening(), linear()
    together = callbacks.CallbackList([listening], add_history=True, model=model, epochs=2, steps=1, verbose=0)
    together.on_train_begin()
    for epoch in range(2):
        together.on_epoch_begin(epoch)
        together.on_train_batch_begin(0)
        logs = model.train_on_batch(X, Y, return_dict=True)
        together.on_train_batch_end(0, {name: tf.constant(value) for name, value in logs.items()})
        together.on_epoch_end(epoch, logs=logs)
    together.on_train_end()
    assert together.history.epoch == [0, 1] and model.history is together.history
    assert listening.model is model and listening.params == {"epochs": 2, "steps": 1, "verbose": 0}
    assert [entry[0] for entry in listening.heard].count("on_train_batch_end") == 2


def test_hooks_of_a_list_hand_on_plain_numbers_and_one_dict_of_logs():
    types = []

    class Add(callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            types.append(type(logs["loss"]))
            logs["added"] = 1.0

    together = callbacks.CallbackList(Add(), add_history=True, model=linear())
    together.on_epoch_end(0, {"loss": tf.constant(2.0)})
    assert types == [float] and together.history.history == {"loss": [2.0], "added": [1.0]}


def test_every_hook_of_a_callback_is_a_hook_of_a_list():
    listening = Listening()
    together = callbacks.CallbackList([listening])
    for hook in HOOKS:
        index = (0,) if "batch" in hook or "epoch" in hook else ()
        getattr(together, hook)(*index)
        getattr(together, hook)(*index, logs={})
    heard = {entry[0] for entry in listening.heard}
    assert heard == set(HOOKS) - {"on_batch_begin", "on_batch_end"}


def test_what_is_there_is_not_added_again_and_lists_may_be_nested():
    history = callbacks.History()
    model = linear()
    inner = callbacks.CallbackList([history, [callbacks.Callback()]], add_history=True)
    assert len(inner.callbacks) == 2 and inner.history is history
    assert model.fit(X, Y, epochs=2, callbacks=inner, verbose=0) is history and history.epoch == [0, 1]
    inner.append(callbacks.Callback())
    assert len(inner.callbacks) == 3
    with pytest.raises(TypeError, match="expected objects of keras.callbacks.Callback, found 3"):
        callbacks.CallbackList([3])
    assert callbacks.CallbackList(None).history is None


def test_hooks_of_batches_are_called_once_for_several_steps_in_every_run():
    class Batches(callbacks.Callback):
        seen = ()

        def note(self, batch, logs=None):
            self.seen += (batch,)

        on_train_batch_begin = on_test_batch_begin = on_predict_batch_begin = note
        on_train_batch_end = on_test_batch_end = on_predict_batch_end = note

    model = linear()
    model.compile("sgd", "mse", steps_per_execution=3)
    for run, data in ((model.fit, (X, Y)), (model.evaluate, (X, Y)), (model.predict, (X,))):
        batches = Batches()
        run(*data, batch_size=2, callbacks=[batches], verbose=0)
        assert batches.seen == (0, 2, 3, 3)
    shapes = []
    note = callbacks.LambdaCallback(on_predict_batch_end=lambda batch, logs: shapes.append(logs["outputs"].shape))
    model.predict(X, batch_size=2, callbacks=[note], verbose=0)
    assert shapes == [(6, 1), (2, 1)]
