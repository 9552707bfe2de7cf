"""`compile(jit_compile=...)`: fit, evaluate and single batches with recorded steps are what they are without."""

import numpy as np
import pytest
from side_by_side import assert_same

import minikeras as tf
from minikeras.errors import CompileError
from minikeras.nn_ops import streams

L = tf.keras.layers
RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(26, 5)).astype("f")
Y = RANDOM.integers(0, 3, 26)


def made(jit_compile, optimizer="adam", *between, **options):
    tf.keras.utils.clear_session()
    streams.set_global_seed(5)
    layers = [L.Dense(8, "relu", kernel_regularizer="l2"), L.BatchNormalization(), L.Dropout(0.2), *between, L.Dense(3)]
    model = tf.keras.Sequential([tf.keras.Input((5,)), *layers], name="net")
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"], jit_compile=jit_compile, **options)
    return model


def state(model):
    return [variable.numpy() for variable in (*model.variables, *model.optimizer.variables)]


def trained(jit_compile, **options):
    model = made(jit_compile)
    history = model.fit(X, Y, batch_size=8, epochs=4, validation_split=0.2, shuffle=False, verbose=0, **options)
    return model, history.history


@pytest.mark.parametrize(
    "option", [{}, {"class_weight": {0: 1.0, 1: 2.0, 2: 0.5}}, {"sample_weight": np.linspace(0.1, 1.0, 26)}]
)
def test_fit_is_the_same_bits(option):
    (plain, first), (compiled, second) = trained(False, **option), trained("auto", **option)
    assert first == second
    assert_same(state(plain), state(compiled))
    assert plain.evaluate(X, Y, verbose=0) == compiled.evaluate(X, Y, verbose=0)
    train, test = compiled._trainer.steps["train_step"], compiled._trainer.steps["test_step"]
    assert train.recordings == 2 and train.replays == 9 and train.eager_calls == 1, "8, 8 and 4 rows, the first run builds"
    assert test.replays == 3 and test.recordings == 2


def test_single_batches_are_the_same_bits():
    models = [made(False), made("auto")]
    for i in range(5):
        rows = slice(0, 26 - i % 2)
        results = [model.train_on_batch(X[rows], Y[rows]) for model in models]
        assert results[0] == results[1]
        assert models[0].test_on_batch(X, Y) == models[1].test_on_batch(X, Y)
    assert_same(*map(state, models))


def test_predict_is_the_same_bits_and_takes_many_batches_in_a_row():
    plain, compiled = made(False), made("auto")
    for rows in (26, 16, 26):
        by_batches = [compiled(X[start : min(start + 8, rows)], training=False).numpy() for start in range(0, rows, 8)]
        assert_same([plain.predict(X[:rows], batch_size=8, verbose=0)], [compiled.predict(X[:rows], batch_size=8, verbose=0)])
        assert_same([compiled.predict(X[:rows], batch_size=8, verbose=0)], [np.concatenate(by_batches)])
    step = compiled._trainer.steps["predict_step"]
    assert step.recordings == 2 and step.eager_calls == 0, "batches of 8 rows, and the last two rows"


def test_predict_on_batch_and_generators_replay_too():
    plain, compiled = made(False), made("auto")
    batches = [X[start : start + 8] for start in range(0, 24, 8)]
    for given in (iter, tf.data.Dataset.from_tensor_slices):
        first, second = [model.predict(given(batches), verbose=0) for model in (plain, compiled)]
        assert_same([first], [second])
    assert_same([plain.predict_on_batch(X[:8])], [compiled.predict_on_batch(X[:8])])
    assert compiled._trainer.steps["predict_step"].recordings == 1


def test_a_callback_that_predicts_or_evaluates_changes_nothing_of_the_plan_of_fit():
    model, planned = made("auto"), []

    def look(epoch, logs):
        model.predict(X, 13, 0)
        model.evaluate(X, Y, 13, 0)
        planned.append(model._trainer.steps.planned)

    model.fit(X, Y, 8, 3, verbose=0, callbacks=[tf.keras.callbacks.LambdaCallback(on_epoch_end=look)])
    assert planned == [12, 12, 12]


def test_predict_sees_what_has_changed_since_the_last_call():
    model = made("auto")
    for _ in range(3):
        before = model.predict(X, 8, 0)
    model.layers[-1].bias.assign([1.0, 2.0, 3.0])
    np.testing.assert_allclose(model.predict(X, 8, 0), before + np.array([1.0, 2.0, 3.0]), rtol=1e-6)
    model.layers[0].activation = tf.nn.tanh
    assert_same([model.predict(X, 13, 0)], [model(X, training=False).numpy()])


def test_predictions_of_several_outputs_keep_their_structure():
    x = tf.keras.Input((5,))
    model = tf.keras.Model(x, {"sum": tf.reduce_sum(x, -1), "both": [x, 2.0 * x]})
    for _ in range(3):
        found = model.predict(X, 8, 0)
        assert_same([found["both"][1]], [2.0 * X])
        assert found["sum"].shape == (26,)


def test_a_prediction_that_draws_draws_anew_for_each_batch():
    class Noise(L.Layer):
        def call(self, x):
            return x + tf.random.normal(tf.shape(x))

    def predictions(jit_compile):
        tf.random.set_seed(3)
        model = tf.keras.Sequential([tf.keras.Input((5,)), Noise()])
        model.compile(jit_compile=jit_compile)
        return [model.predict(np.zeros((24, 5), "f"), 8, 0) for _ in range(3)]

    drawn = predictions("auto")
    assert len(np.unique(np.concatenate(drawn))) == 360
    assert_same(predictions(False), drawn)


def test_a_predict_step_that_gives_arrays_runs_eagerly():
    class Labels(tf.keras.Model):
        def call(self, x):
            return x

        def predict_step(self, data):
            return np.array(["yes" if row[0] > 0 else "no" for row in data.numpy()])

    model = Labels()
    for _ in range(2):
        assert model.predict(X, 8, 0).tolist() == ["yes" if row[0] > 0 else "no" for row in X]


def test_fit_again_goes_on_with_the_same_programs():
    model = made("auto")
    for _ in range(4):
        model.fit(X[:24], Y[:24], batch_size=8, epochs=2, verbose=0, callbacks=[tf.keras.callbacks.EarlyStopping("loss")])
    assert model._trainer.steps["train_step"].recordings == 1


class Branching(L.Layer):
    def call(self, x):
        return x if tf.reduce_sum(x) > 0.0 else x * 2.0


def test_a_step_that_asks_for_a_value_stays_eager_and_says_so_once(caplog):
    plain, auto = made(False, "adam", Branching()), made("auto", "adam", Branching())
    for model in (plain, auto):
        model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    assert_same(state(plain), state(auto))
    told = [record.getMessage() for record in caplog.records if "eagerly" in record.getMessage()]
    assert len(told) == 1 and "net.train_step runs eagerly: bool() of a tensor, at " in told[0] and "test_fit.py" in told[0]


def test_a_step_that_has_to_be_compiled_raises_with_the_line_and_changes_nothing():
    model = made(True, "adam", Branching())
    model(X)
    model.optimizer.build(model.trainable_variables)
    before = state(model)
    with pytest.raises(CompileError, match=r"(?s)cannot be recorded: bool\(\) of a tensor, at .*test_fit.py.*run_eagerly=True"):
        model.fit(X, Y, verbose=0)
    assert_same(before, state(model))
    with pytest.raises(ValueError, match="jit_compile must be 'auto', True or False, found 'always'"):
        model.compile("sgd", "mse", jit_compile="always")


@pytest.mark.parametrize("break_it", ["label", "optimizer"])
def test_a_replay_that_fails_changes_nothing(break_it, monkeypatch):
    model, untouched = made("auto"), made(False)
    for one in (model, untouched):
        for _ in range(3):
            one.train_on_batch(X[:8], Y[:8])
    before, labels = state(model), Y[:8].copy()
    with monkeypatch.context() as patch:
        if break_it == "label":
            labels[3] = 7
        else:
            patch.setattr(model.optimizer, "formula", lambda *arrays: 1 / 0)
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError, ZeroDivisionError)):
            model.train_on_batch(X[:8], labels)
    assert_same(before, state(model))
    assert model.train_on_batch(X[:8], Y[:8]) == untouched.train_on_batch(X[:8], Y[:8])


def test_methods_that_need_the_loss_run_eagerly_without_a_word(caplog):
    model = tf.keras.Sequential([tf.keras.Input((2,)), L.Dense(1)])
    newton = tf.keras.optimizers.Every(2, tf.keras.optimizers.Newton(damping=0.1))
    model.compile({"*": newton}, "mse")
    model.fit(X[:, :2], X[:, :1], epochs=2, verbose=0)
    assert not caplog.records


def test_run_eagerly_and_the_switch_of_functions_let_python_run_at_each_step(capsys):
    class Noted(L.Layer):
        def call(self, x):
            print("Python runs")  # no fact, as a list that grows would be
            return x

    def seen():
        return capsys.readouterr().out.count("Python runs")

    eager = made("auto", "adam", Noted(), run_eagerly=True)
    seen()
    eager.fit(X, Y, batch_size=13, epochs=3, verbose=0)
    assert seen() == 6
    switched = made("auto", "adam", Noted())
    seen()
    tf.config.run_functions_eagerly(True)
    try:
        switched.fit(X, Y, batch_size=13, epochs=3, verbose=0)
    finally:
        tf.config.run_functions_eagerly(False)
    assert seen() == 6
    switched.fit(X, Y, batch_size=13, epochs=3, verbose=0)
    assert seen() == 2, "slots and metrics are there already, so the first two runs are recorded"
