"""compile, fit, evaluate, predict and their one-batch forms."""

import re
import warnings

import numpy as np
import pytest
from golden_numbers import golden

import minikeras as tf

CALLBACKS = golden("callbacks")
Dense = tf.keras.layers.Dense
generator = np.random.default_rng(0)
X, Y = generator.normal(size=(10, 3)).astype("float32"), generator.normal(size=(10, 1)).astype("float32")


def linear(optimizer=None, loss="mse", units=1, **options):
    """One Dense layer with fixed weights, compiled."""
    model = tf.keras.Sequential([tf.keras.Input((3,)), Dense(units, kernel_initializer=tf.keras.initializers.GlorotUniform(1))])
    model.compile(optimizer or tf.keras.optimizers.SGD(0.1), loss, **options)
    return model


class Order(tf.keras.callbacks.Callback):
    """Every hook that is called, with its arguments and the names in its logs."""

    def __init__(self):
        self.calls = []

    def __getattribute__(self, name):
        if name.startswith("on_") and "_batch_" in name and name.split("_")[1] == "batch":
            return super().__getattribute__(name)
        if not name.startswith("on_"):
            return super().__getattribute__(name)
        return lambda *arguments: self.calls.append([name, *arguments[:-1], sorted(arguments[-1]) if arguments[-1] else None])


# Hooks -----------------------------------------------------------------------------------------------------------------


def test_the_hooks_of_fit_are_called_in_keras_s_order():
    order, model = Order(), linear(metrics=["mae"])
    model.fit(X[:8], Y[:8], batch_size=4, epochs=2, validation_data=(X[8:], Y[8:]), callbacks=[order], verbose=0)
    assert order.calls == CALLBACKS["fit_hook_order"]


def test_the_hooks_of_evaluate_and_predict_are_called_in_keras_s_order():
    order, model = Order(), linear(metrics=["mae"])
    model.evaluate(X[:8], Y[:8], batch_size=4, callbacks=[order], verbose=0)
    assert order.calls == CALLBACKS["evaluate_hook_order"]
    order.calls.clear()
    model.predict(X[:8], batch_size=4, callbacks=[order], verbose=0)
    assert order.calls == CALLBACKS["predict_hook_order"]


def test_train_end_is_not_called_when_fit_raises():
    order, model = Order(), linear()
    with pytest.raises(ValueError):
        model.fit(X, np.ones((10, 2)), callbacks=order, verbose=0)
    assert [call[0] for call in order.calls] == ["on_train_begin", "on_epoch_begin", "on_train_batch_begin"]


def test_batch_hooks_forward_to_their_short_names_and_get_plain_numbers():
    seen = []

    class Short(tf.keras.callbacks.Callback):
        def on_batch_begin(self, batch, logs=None):
            seen.append(("begin", batch, logs))

        def on_batch_end(self, batch, logs=None):
            seen.append(("end", batch, {name: type(value) for name, value in logs.items()}))

    linear(metrics=["mae"]).fit(X, Y, batch_size=10, callbacks=Short(), verbose=0)
    assert seen == [("begin", 0, {}), ("end", 0, {"loss": float, "mae": float})]


def test_callbacks_know_model_and_parameters():
    callback, model = tf.keras.callbacks.Callback(), linear()
    model.fit(X, Y, batch_size=4, epochs=2, callbacks=[callback], verbose=0)
    assert callback.model is model and callback.params == {"epochs": 2, "steps": 3, "verbose": 0}


def test_functions_serve_as_hooks_and_unknown_hooks_are_refused():
    epochs = []
    hook = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: epochs.append((epoch, list(logs))))
    linear().fit(X, Y, epochs=2, callbacks=[hook], verbose=0)
    assert epochs == [(0, ["loss"]), (1, ["loss"])]
    with pytest.raises(ValueError, match="there is no hook 'on_epoch_ends'. Did you mean on_epoch_end"):
        tf.keras.callbacks.LambdaCallback(on_epoch_ends=print)
    assert tf.keras.callbacks.LambdaCallback(custom=3).custom == 3


def test_a_callback_stops_training_at_the_end_of_its_batch():
    class Stop(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = batch == 1

    model = linear()
    assert len(model.fit(X, Y, batch_size=2, epochs=3, callbacks=[Stop()], verbose=0).epoch) == 1
    assert int(model.optimizer.iterations) == 2


# History and epochs ----------------------------------------------------------------------------------------------------


def test_fit_returns_the_history_with_names_in_alphabetical_order():
    model = linear(metrics=["mse", "mae"])
    history = model.fit(X, Y, epochs=3, validation_split=0.2, verbose=0)
    assert list(history.history) == ["loss", "mae", "mse", "val_loss", "val_mae", "val_mse"]
    assert history.epoch == [0, 1, 2] and model.history is history and history.model is model
    assert all(type(value) is float for values in history.history.values() for value in values)


def test_the_epoch_s_loss_weights_batches_by_their_rows_and_keeps_the_last_partial_one():
    model = linear(tf.keras.optimizers.SGD(0.0), metrics=["mse"])
    history = model.fit(X, Y, batch_size=4, verbose=0).history
    expected = float(((model.predict(X, verbose=0) - Y) ** 2).mean())
    np.testing.assert_allclose([history["loss"][0], history["mse"][0]], expected, rtol=1e-6)
    assert int(model.optimizer.iterations) == 3


def test_penalties_are_part_of_the_loss_and_of_the_validation_loss_but_of_no_metric():
    model = tf.keras.Sequential([tf.keras.Input((3,)), Dense(1, kernel_regularizer=tf.keras.regularizers.L2(0.5))])
    model.compile(tf.keras.optimizers.SGD(0.0), "mse", metrics=["mse"])
    history = model.fit(X, Y, validation_split=0.5, shuffle=False, verbose=0).history
    penalty = 0.5 * float((model.layers[0].kernel.numpy() ** 2).sum())
    assert history["loss"][0] == pytest.approx(history["mse"][0] + penalty, rel=1e-5)
    assert history["val_loss"][0] == pytest.approx(history["val_mse"][0] + penalty, rel=1e-5)


def test_epochs_is_the_last_index_and_not_a_count():
    model = linear()
    assert model.fit(X, Y, initial_epoch=3, epochs=5, verbose=0).epoch == [3, 4]
    assert model.fit(X, Y, initial_epoch=5, epochs=5, verbose=0).epoch == []


def test_metrics_start_anew_with_each_epoch():
    model = linear(tf.keras.optimizers.SGD(0.0), metrics=["mae"])
    history = model.fit(X, Y, epochs=2, shuffle=False, verbose=0).history
    assert history["mae"][0] == history["mae"][1] and history["loss"][0] == history["loss"][1]


# Validation ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CALLBACKS["validation_split"], ids=lambda case: f"{case['n']}-{case['split']}")
def test_validation_rows_are_the_last_ones_before_the_shuffle(case):
    rows = np.arange(case["n"], dtype="float32")[:, None]
    seen = {True: [], False: []}

    class Watch(tf.keras.Sequential):
        def call(self, inputs, training=None, mask=None):
            seen[bool(training)] += inputs.numpy()[:, 0].tolist()
            return super().call(inputs)

    model = Watch([Dense(1)])
    model.compile("sgd", "mse")
    model.fit(rows, rows * 0, validation_split=case["split"], batch_size=3, verbose=0)
    assert sorted(seen[True]) == list(range(case["train_n"]))
    assert seen[False] == list(range(case["val_first"], case["n"])) and len(seen[False]) == case["val_n"]


@pytest.mark.parametrize(("frequency", "epochs"), [(1, 5), (2, 2), (3, 1), ([1, 4], 2), ([9], 0)])
def test_validation_is_due_every_so_many_epochs_or_at_those_listed(frequency, epochs):
    history = linear().fit(X, Y, epochs=5, validation_data=(X, Y), validation_freq=frequency, verbose=0).history
    assert len(history.get("val_loss", [])) == epochs


@pytest.mark.parametrize("form", [tuple, list, lambda pair: tf.data.Dataset.from_tensor_slices(pair).batch(4)])
def test_validation_data_come_as_a_pair_or_a_dataset(form):
    model = linear(tf.keras.optimizers.SGD(0.0))
    history = model.fit(X, Y, validation_data=form((X, Y)), verbose=0).history
    assert history["val_loss"][0] == pytest.approx(model.evaluate(X, Y, verbose=0), rel=1e-6)


def test_validation_leaves_the_training_metrics_alone():
    alone, watched = linear(metrics=["mae"]), linear(metrics=["mae"])
    plain = alone.fit(X, Y, epochs=2, shuffle=False, batch_size=5, verbose=0).history
    both = watched.fit(X, Y, epochs=2, shuffle=False, batch_size=5, verbose=0, validation_data=(X[:2], Y[:2])).history
    assert plain["mae"] == both["mae"] and plain["loss"] == both["loss"]
    assert [float(metric.result()) for metric in watched.metrics] == [both["loss"][-1], both["mae"][-1]]


def test_validation_steps_end_it_early():
    model = linear(tf.keras.optimizers.SGD(0.0))
    history = model.fit(X, Y, validation_data=(X, Y), validation_batch_size=2, validation_steps=3, verbose=0).history
    assert history["val_loss"][0] == pytest.approx(model.evaluate(X[:6], Y[:6], verbose=0), rel=1e-6)


# Weights of rows and classes -------------------------------------------------------------------------------------------


def test_sample_weights_reach_the_loss_and_weighted_metrics_only():
    weights = np.arange(10, dtype="float32")
    model = linear(tf.keras.optimizers.SGD(0.0), metrics=["mae"], weighted_metrics=["mae"])
    logs = model.evaluate(X, Y, sample_weight=weights, return_dict=True, verbose=0)
    error = np.abs(model.predict(X, verbose=0) - Y)[:, 0]
    assert list(logs) == ["loss", "mae", "weighted_mae"]
    assert logs["loss"] == pytest.approx((error**2 * weights).mean(), rel=1e-5)
    assert logs["mae"] == pytest.approx(error.mean(), rel=1e-5)
    assert logs["weighted_mae"] == pytest.approx((error * weights).sum() / weights.sum(), rel=1e-5)


@pytest.mark.parametrize("one_hot", [False, True])
def test_class_weights_are_weights_of_rows(one_hot):
    case = CALLBACKS["class_weight_to_sample_weights"]
    labels, weights = np.array(case["y"]), {int(key): value for key, value in case["class_weight"].items()}
    x, y = X[:4], tf.keras.utils.to_categorical(labels) if one_hot else labels
    losses = []
    for options in ({"class_weight": weights}, {"sample_weight": np.array(case["weights"])}):
        model = linear(units=3, loss=f"{'' if one_hot else 'sparse_'}categorical_crossentropy")
        model.layers[0].activation = model.layers[0]._activate = tf.keras.activations.softmax
        losses.append(model.fit(x, y, epochs=2, shuffle=False, verbose=0, **options).history["loss"])
    assert losses[0] == losses[1]


# Forms of data ---------------------------------------------------------------------------------------------------------


def test_lists_tensors_and_arrays_train_alike():
    results = []
    for form in (np.asarray, lambda a: a.tolist(), tf.constant, lambda a: a.astype("float64")):
        model = linear()
        model.fit(form(X), form(Y), epochs=2, shuffle=False, verbose=0)
        results.append(model.get_weights()[0])
    assert all(np.array_equal(result, results[0]) for result in results)


def test_a_dataset_a_generator_and_a_sequence_train_as_the_arrays_do():
    class Batches:
        def __len__(self):
            return 2

        def __getitem__(self, number):
            return X[5 * number : 5 * number + 5], Y[5 * number : 5 * number + 5]

    def endless():
        while True:
            for number in range(2):
                yield list(Batches()[number])

    expected = linear()
    expected.fit(X, Y, batch_size=5, epochs=2, shuffle=False, verbose=0)
    forms = [
        (tf.data.Dataset.from_tensor_slices((X, Y)).batch(5), {}),
        (tf.data.Dataset.from_tensor_slices((X, Y)).batch(5).repeat(), {"steps_per_epoch": 2}),
        (tf.data.Dataset.from_tensor_slices((X, Y)).batch(5), {"steps_per_epoch": 2}),
        (endless(), {"steps_per_epoch": 2}),
        ([Batches()[0], Batches()[1]].__iter__() and Batches(), {}),
    ]
    for data, options in forms:
        model = linear()
        model.fit(data, epochs=2, verbose=0, **options)
        for mine, theirs in zip(model.get_weights(), expected.get_weights(), strict=True):
            assert np.array_equal(mine, theirs)


def test_steps_per_epoch_go_on_through_the_data_where_the_last_epoch_stopped():
    seen = []

    class Watch(tf.keras.Sequential):
        def train_step(self, data):
            seen.append(data[0].numpy()[0, 0])
            return super().train_step(data)

    model = Watch([Dense(1)])
    model.compile("sgd", "mse")
    rows = np.arange(3, dtype="float32")[:, None]
    model.fit(tf.data.Dataset.from_tensor_slices((rows, rows)).batch(1), epochs=2, steps_per_epoch=2, verbose=0)
    assert seen == [0.0, 1.0, 2.0, 0.0]


def test_data_that_end_early_are_told_and_data_that_ended_are_an_error():
    model = linear()
    with pytest.warns(UserWarning, match="The data gave 1 batches instead of the 3 steps asked for"):
        model.fit(iter([(X, Y)]), steps_per_epoch=3, verbose=0)
    batches = iter([(X, Y)])
    model.fit(batches, verbose=0)
    with pytest.raises(ValueError, match="The data gave no batches. Check its length; a generator can be used up only once"):
        model.fit(batches, verbose=0)


def test_a_batch_larger_than_the_data_is_all_of_the_data():
    model = linear()
    model.fit(X, Y, batch_size=1000, verbose=0)
    assert int(model.optimizer.iterations) == 1
    with pytest.raises(ValueError, match="The data gave no batches"):
        model.fit(tf.data.Dataset.from_tensor_slices((X, Y)).batch(1000, drop_remainder=True), verbose=0)


# Evaluate, predict, one batch ------------------------------------------------------------------------------------------


def test_evaluate_returns_the_loss_a_list_or_a_dict():
    model = linear(metrics=["mae", "mse"])
    loss, mae, mse = model.evaluate(X, Y, verbose=0)
    assert loss == mse and linear().evaluate(X, Y, verbose=0) == pytest.approx(loss)
    assert model.evaluate(X, Y, verbose=0, return_dict=True) == {"loss": loss, "mae": mae, "mse": mse}
    assert model.evaluate(X, Y, batch_size=3, verbose=0)[0] == pytest.approx(loss, rel=1e-6)
    assert model.metrics_names == ["loss", "mae", "mse"]


def test_predict_concatenates_batches_and_keeps_the_structure():
    class Two(tf.keras.Model):
        def call(self, x):
            return {"double": x * 2.0, "parts": (x[:, 0], x[:, 1:])}

    found = Two().predict(X, batch_size=3, verbose=0)
    assert isinstance(found["double"], np.ndarray) and np.array_equal(found["double"], 2 * X)
    assert [part.shape for part in found["parts"]] == [(10,), (10, 2)]
    assert linear().predict(X, steps=2, batch_size=3, verbose=0).shape == (6, 1)
    assert linear().predict_on_batch(X).shape == (10, 1)


def test_one_batch_trains_as_fit_does_and_starts_its_metrics_anew():
    fitted, by_batch = linear(metrics=["mae"]), linear(metrics=["mae"])
    history = fitted.fit(X, Y, batch_size=10, epochs=2, shuffle=False, verbose=0).history
    logs = [by_batch.train_on_batch(X, Y, return_dict=True) for _ in range(2)]
    assert [log["loss"] for log in logs] == history["loss"] and [log["mae"] for log in logs] == history["mae"]
    assert by_batch.test_on_batch(X, Y) == fitted.evaluate(X, Y, verbose=0)
    weighted = linear().train_on_batch(X, Y, sample_weight=np.full(10, 0.5))
    assert weighted == pytest.approx(linear().train_on_batch(X, Y) * 0.5)


# compile ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "units", "kind"),
    [
        (np.ones((4, 1)), 1, "BinaryAccuracy"),
        (np.ones(4), 1, "BinaryAccuracy"),
        (np.zeros(4, int), 3, "SparseCategoricalAccuracy"),
        (np.zeros((4, 1), int), 3, "SparseCategoricalAccuracy"),
        (np.eye(3)[[0, 1, 2, 0]], 3, "CategoricalAccuracy"),
    ],
)
@pytest.mark.parametrize("name", ["accuracy", "acc"])
def test_accuracy_is_the_kind_that_fits_the_shapes_and_keeps_its_name(y, units, kind, name):
    loss = "sparse_categorical_crossentropy" if kind.startswith("Sparse") else "mse"
    model = linear(loss=loss, units=units, metrics=[name])
    assert list(model.fit(X[:4], y, verbose=0).history) == [name, "loss"]
    assert type(model.metrics[1]).__name__ == kind


def test_crossentropy_is_told_apart_likewise():
    model = linear(units=3, loss=tf.keras.losses.SparseCategoricalCrossentropy(True), metrics=["crossentropy"])
    model.evaluate(X[:4], np.zeros(4, int), verbose=0)
    assert type(model.metrics[1]).__name__ == "SparseCategoricalCrossentropy"


def test_metrics_are_names_functions_classes_or_objects():
    def largest(y_true, y_pred):
        return tf.reduce_max(tf.abs(y_true - y_pred), axis=-1)

    given = ["mse", tf.keras.metrics.MeanAbsoluteError, tf.keras.metrics.MeanSquaredError(name="own"), largest]
    model = linear(metrics=given)
    assert model.metrics_names == ["loss", "mse", "mean_absolute_error", "own", "largest"]
    logs = model.evaluate(X, Y, return_dict=True, verbose=0)
    assert logs["mse"] == logs["own"] and logs["largest"] == pytest.approx(logs["mean_absolute_error"])


def test_losses_are_names_functions_or_objects():
    def cubic(y_true, y_pred):
        return tf.reduce_mean(tf.abs(y_true - y_pred) ** 3, axis=-1)

    assert linear(loss=cubic).evaluate(X, Y, verbose=0) == pytest.approx(
        float((np.abs(linear().predict(X, verbose=0) - Y) ** 3).mean()), rel=1e-5
    )
    found = linear(loss=tf.keras.losses.MeanSquaredError(), loss_weights=[0.5]).evaluate(X, Y, verbose=0)
    assert found == pytest.approx(linear().evaluate(X, Y, verbose=0) * 0.5)


def test_frozen_layers_keep_their_slots_and_need_no_new_compile():
    model = tf.keras.Sequential([tf.keras.Input((3,)), Dense(4, name="a"), Dense(1, name="b")])
    model.compile(tf.keras.optimizers.Adam(0.01), "mse")
    model.fit(X, Y, verbose=0)
    slots = [variable.numpy() for variable in model.optimizer.variables]
    frozen = model.get_layer("a").get_weights()
    model.get_layer("a").trainable = False
    model.fit(X, Y, verbose=0)
    assert all(np.array_equal(a, b) for a, b in zip(frozen, model.get_layer("a").get_weights(), strict=True))
    kept = [variable.numpy() for variable in model.optimizer.variables]
    assert all(np.array_equal(a, b) for a, b in zip(slots[2:6], kept[2:6], strict=True))
    model.get_layer("a").trainable = True
    model.fit(X, Y, verbose=0)
    assert not np.array_equal(frozen[0], model.get_layer("a").get_weights()[0])
    assert int(model.optimizer.iterations) == 3


def test_a_frozen_normalization_keeps_its_statistics_and_uses_them():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.BatchNormalization(name="bn"), Dense(1)])
    model.compile("sgd", "mse")
    model.get_layer("bn").trainable = False
    before = model.get_layer("bn").get_weights()
    model.fit(X + 5.0, Y, verbose=0)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_layer("bn").get_weights(), strict=True))


# Custom training steps ----------------------------------------------------------------------------------------------------


def test_train_step_may_be_overridden_and_its_metrics_found():
    class Own(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense, self.seen = Dense(1), tf.keras.metrics.Mean(name="seen")

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            variables = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            self.seen.update_state(loss)
            return {"seen": self.seen.result()}

    model = Own()
    model.compile("sgd")
    history = model.fit(X, Y, epochs=2, batch_size=5, shuffle=False, verbose=0).history
    assert list(history) == ["seen"] and history["seen"][1] < history["seen"][0]
    assert model.metrics == [model._trainer.loss_tracker, model.seen]
    assert model.metrics_names == ["loss", "seen"]


def test_compute_loss_and_compute_metrics_may_be_overridden():
    class Own(tf.keras.Sequential):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return 10.0 * super().compute_loss(x, y, y_pred, sample_weight, training)

        def compute_metrics(self, x, y, y_pred, sample_weight=None):
            return {**super().compute_metrics(x, y, y_pred, sample_weight), "rows": float(len(y))}

    model = Own([tf.keras.Input((3,)), Dense(1, kernel_initializer=tf.keras.initializers.GlorotUniform(1))])
    model.compile("sgd", "mse")
    logs = model.evaluate(X, Y, return_dict=True, verbose=0)
    assert logs == {"loss": pytest.approx(10.0 * linear().evaluate(X, Y, verbose=0)), "rows": 10.0}


@pytest.mark.parametrize("options", [{"run_eagerly": True}, {}, {"jit_compile": True}])
def test_a_step_for_tensorflow_2_trains_as_the_step_of_the_model(options):
    class Second(tf.keras.Model):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compiled_loss(y, y_pred, regularization_losses=self.losses)
            self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
            self.compiled_metrics.update_state(y, y_pred)
            return {metric.name: metric.result() for metric in self.metrics}

    histories = []
    for kind in (tf.keras.Model, Second):
        x = tf.keras.Input((3,))
        model = kind(x, Dense(1, kernel_initializer=tf.keras.initializers.GlorotUniform(1), kernel_regularizer="l2")(x))
        model.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"], **options)
        history = model.fit(X, Y, epochs=3, batch_size=4, shuffle=False, verbose=0).history
        histories.append([history["loss"], history["mae"]])
    np.testing.assert_allclose(*histories, rtol=1e-5)


def test_added_losses_alone_train_a_model():
    class Own(tf.keras.Sequential):
        def call(self, inputs, training=None, mask=None):
            y = super().call(inputs)
            self.add_loss(tf.reduce_mean(y * y))
            return y

    model = Own([Dense(1)])
    model.compile("sgd")
    losses = model.fit(X, epochs=3, verbose=0).history["loss"]
    assert losses[2] < losses[0]


@pytest.mark.parametrize("optimizer", ["sgd", "gauss_newton"])
def test_an_added_array_counts_with_all_its_elements(optimizer):
    def trained(reduce):
        class Own(tf.keras.layers.Layer):
            def call(self, x):
                self.add_loss(reduce(1e-3 * x * x))
                return x

        model = tf.keras.Sequential([tf.keras.Input((3,)), Dense(1, kernel_initializer="ones"), Own()])
        model.compile(optimizer, "mse")
        return model.fit(X, Y, epochs=2, verbose=0).history["loss"] + [model.evaluate(X, Y, verbose=0)]

    np.testing.assert_allclose(trained(lambda terms: terms), trained(tf.reduce_sum), rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "found"),
    [(None, "None"), (tf.constant(1.0), "<tf.Tensor: shape=(), dtype=float32, numpy=1.0>"), ([1.0], "[")],
)
@pytest.mark.parametrize("step", ["train_step", "test_step"])
def test_a_step_that_gives_no_dict_is_told_what_is_needed(step, given, found):
    made = type("Own", (tf.keras.Sequential,), {step: lambda self, data: given})([tf.keras.Input((3,)), Dense(1)])
    made.compile("sgd", "mse")
    with pytest.raises(TypeError, match=rf"return a dict, such as {{'loss': loss}}, found {re.escape(found)}"):
        (made.fit if step == "train_step" else made.evaluate)(X, Y, verbose=0)


@pytest.mark.parametrize("optimizer", ["adam", "lbfgs", "newton"])
@pytest.mark.parametrize("jit_compile", ["auto", False])
def test_a_model_with_nothing_to_train_is_measured_and_says_so(optimizer, jit_compile):
    model = linear()
    model.compile(optimizer, "mse", metrics=["mae"], jit_compile=jit_compile)
    expected = model.evaluate(X, Y, verbose=0)
    model.trainable = False
    weights = model.get_weights()
    with pytest.warns(UserWarning, match="The model does not have any trainable weights.*Set `trainable = True`"):
        history = model.fit(X, Y, epochs=2, batch_size=10, verbose=0).history
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a step that was recorded says it once
        logs = model.train_on_batch(X, Y)
    np.testing.assert_allclose([history["loss"][1], history["mae"][1]], expected, rtol=1e-6)
    np.testing.assert_allclose(logs[:2], expected, rtol=1e-6)
    assert all(np.array_equal(old, new) for old, new in zip(weights, model.get_weights(), strict=True))
    model.trainable = True
    model.train_on_batch(X, Y)
    assert not np.array_equal(weights[0], model.get_weights()[0])


def test_warnings_of_training_name_the_line_that_asked():
    x, size = np.zeros((8, 3), "float32"), {"verbose": 0, "batch_size": 2}
    rows = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(4)
    for one in (linear(), tf.experiments.Ensemble(linear, 2)):
        calls = [
            lambda: one.evaluate(rows, **size),  # noqa: B023
            lambda: one.fit(iter(list(rows)), steps_per_epoch=3, verbose=0),  # noqa: B023
            lambda: one.fit(rows, validation_data=iter(list(rows)), validation_steps=3, verbose=0),  # noqa: B023
        ]
        tf.keras.config.set_max_steps_per_epoch(1)
        try:
            limited = [lambda: one.fit(x, x[:, :1], **size), lambda: one.predict(x, **size)]  # noqa: B023
            told = [pytest.warns(UserWarning, match="Limiting steps_per_epoch to 1") for _ in limited]
            for call, warns in zip(limited, told, strict=True):
                with warns as found:
                    call()
                assert [warning.filename for warning in found] == [__file__]
        finally:
            tf.keras.config.set_max_steps_per_epoch(None)
        for call in calls:
            with pytest.warns(UserWarning) as found:
                call()
            assert [warning.filename for warning in found] == [__file__]
