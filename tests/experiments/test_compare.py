"""Optimizers are compared fairly: same weights, same batches, a clock for training steps alone; what fails is a row."""

import math
import random

import numpy as np
import pytest

import minikeras as tf
from minikeras.experiments.comparison import OptimizerRun, _reached_by_all, milestones

keras = tf.keras
optimizers = keras.optimizers
X = np.linspace(-1.0, 1.0, 20, dtype="float32")[:, None]
Y = np.sin(3.0 * X)


def network():
    hidden = keras.layers.Dense(4, "tanh", name="hidden")
    return keras.Sequential([keras.Input((1,)), hidden, keras.layers.Dense(1, name="head")])


def compare(given, problem=None, **options):
    problem = problem or tf.experiments.Problem(network, X, Y, loss="mse")
    return tf.experiments.compare(given, problem, verbose=0, **{"steps": 4} | options)


def fitted(optimizer, batch_size, epochs, model=None):
    """The losses of `fit` written by hand: before the first epoch, and after each."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(0)
    model = model or network()
    model.compile(optimizer, "mse")
    losses = [model.evaluate(X, Y, verbose=0)]
    for _ in range(epochs):
        model.fit(X, Y, batch_size=batch_size, verbose=0, shuffle=batch_size < len(X))
        losses.append(model.evaluate(X, Y, verbose=0))
    return losses


# Equal conditions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["adam", "levenbergmarquardt", "lbfgs", "adahessian", "kfac"])
def test_full_batch_curves_are_those_of_fit(name):
    curve = compare({"one": name}).curves["one"]
    np.testing.assert_array_equal(curve.steps, range(5))
    np.testing.assert_allclose(curve.loss[:, 0], fitted(name, len(X), 4), rtol=1e-6)


@pytest.mark.parametrize("rules", [{"hidden": "adam", "head": "sgd"}, {"*": optimizers.Adam(0.1), "head": 0.5, "hidden": None}])
def test_mini_batch_curves_are_those_of_fit(rules):
    problem = tf.experiments.Problem(network, X, Y, loss="mse", batch_size=8)
    curve = compare({"before": "sgd", "one": rules}, problem, steps=None, epochs=3, every=3).curves["one"]
    np.testing.assert_array_equal(curve.steps, [0, 3, 6, 9])
    np.testing.assert_allclose(curve.loss[:, 0], fitted(rules, 8, 3), rtol=1e-6)


def test_every_optimizer_starts_at_the_same_weights_and_sees_the_same_batches():
    seen = {}

    def loss(y_true, y_pred):
        seen.setdefault(tag[0], []).append(np.asarray(y_true)[:, 0].tolist())
        return keras.losses.mean_squared_error(y_true, y_pred)

    tag = ["a"]

    def rule(name, rate):
        def made(model):
            tag[0] = name
            return optimizers.SGD(rate)

        return made

    problem = tf.experiments.Problem(network, X, Y, loss=loss, batch_size=8, run_eagerly=True)
    given = {"a": rule("a", 0.1), "b": rule("b", 0.2)}
    found = compare(given, problem, steps=7, every=7, seeds=[3])
    training = {name: [batch for batch in batches if len(batch) < len(X)] for name, batches in seen.items()}
    assert training["a"] == training["b"] and len({tuple(batch) for batch in training["a"]}) > 3
    assert found.curves["a"].loss[0] == found.curves["b"].loss[0] != found.curves["a"].loss[1] != found.curves["b"].loss[1]


def test_weights_are_the_same_even_if_they_are_drawn_from_elsewhere():
    generator = np.random.default_rng(0)

    def build():
        model = network()
        model.set_weights([generator.normal(size=weight.shape) for weight in model.weights])
        return model

    found = compare({"a": "sgd", "b": "adam"}, tf.experiments.Problem(build, X, Y, loss="mse"))
    assert found.curves["a"].loss[0] == found.curves["b"].loss[0]


def test_a_model_is_cloned_with_its_weights_and_stays_as_it_is():
    model = network()
    model.compile("sgd", "mae", metrics=["mse"])
    before, optimizer = model.get_weights(), model.optimizer
    found = compare({"a": "sgd", "b": "adam"}, tf.experiments.Problem(model, X, Y), seeds=2)
    assert all(map(np.array_equal, model.get_weights(), before)) and model.optimizer is optimizer
    assert found.curves["a"].logs["loss"][0].tolist() == pytest.approx([model.evaluate(X, Y, verbose=0)[0]] * 2)
    assert list(found.curves["a"].logs) == ["loss", "mse"]


def test_an_optimizer_that_was_given_is_not_trained():
    adam = optimizers.Adam(0.1)
    rules = {"hidden": adam, "head": optimizers.Every(2, optimizers.SGD(0.1))}
    found = compare({"a": adam, "b": rules, "c": optimizers.PerLayer({"*": adam, "head": 0.1}), "d": optimizers.Adam}, seeds=2)
    assert not adam.built and int(adam.iterations) == 0 and found.table().columns["loss"][0] > 0
    assert all(run.failure is None for run in found.runs)


def test_rules_may_be_a_function_of_the_model():
    def rules(model):
        return {model.get_layer("head"): optimizers.Newton(damping=1e-2), "*": "adam"}

    found = compare({"rules": rules, "same": {"head": optimizers.Newton(damping=1e-2), "*": "adam"}})
    np.testing.assert_array_equal(found.curves["rules"].loss, found.curves["same"].loss)


def test_seeds_decide_on_weights_and_dropout():
    def build(seed):
        model = network()
        seen.append(seed)
        return keras.Sequential([keras.Input((1,)), keras.layers.Dropout(0.5), *model.layers])

    seen = []
    problem = tf.experiments.Problem(build, X, Y, loss="mse", batch_size=10)
    curve = compare({"sgd": "sgd", "adam": "adam"}, problem, seeds=[5, 7]).curves["sgd"]
    assert set(seen) == {5, 7} and curve.loss.shape == curve.seconds.shape == (5, 2)
    again = compare({"sgd": "sgd"}, problem, seeds=[7]).curves["sgd"]
    np.testing.assert_array_equal(curve.loss[:, 1], again.loss[:, 0])
    assert (curve.loss[:, 0] != curve.loss[:, 1]).all()


def test_random_numbers_and_names_of_the_caller_are_left_alone():
    def drawn():
        return random.random(), np.random.random(), float(tf.random.normal([])), keras.layers.Dense(1).name

    def seeded():
        keras.utils.set_random_seed(2)
        keras.utils.clear_session()

    seeded()
    expected = drawn()
    seeded()
    compare({"sgd": "sgd"})
    assert drawn() == expected


def test_layers_without_names_are_the_same_in_every_run():
    def build():
        return keras.Sequential([keras.Input((1,)), keras.layers.Dense(3, "tanh"), keras.layers.Dense(1)])

    rules = {"dense": "sgd", "dense_1": None}
    found = compare({"a": rules, "b": rules}, tf.experiments.Problem(build, X, Y, loss="mse"), seeds=2)
    assert all(run.failure is None for run in found.runs)
    np.testing.assert_array_equal(found.curves["a"].loss, found.curves["b"].loss)


@pytest.mark.parametrize("options", [{}, {"jit_compile": True}, {"jit_compile": False}, {"run_eagerly": True}])
def test_options_of_compile_change_no_number(options):
    found = compare({"adam": "adam"}, tf.experiments.Problem(network, X, Y, loss="mse", batch_size=6, **options))
    expected = compare({"adam": "adam"}, tf.experiments.Problem(network, X, Y, loss="mse", batch_size=6))
    np.testing.assert_allclose(found.curves["adam"].loss, expected.curves["adam"].loss, rtol=1e-5)


def test_subclassed_models_and_data_sets_are_compared_too():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden, self.head = keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)

        def call(self, inputs):
            return self.head(self.hidden(inputs))

    data = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(20, seed=1).batch(8)
    first = next(iter(data))[0].numpy().tolist()
    data = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(20, seed=1).batch(8)
    problem = tf.experiments.Problem(Own, data, loss="mse", validation_data=data)
    found = compare({"a": "adam", "b": "adam", "c": lambda model: {model.hidden: "adam", "*": None}}, problem, steps=6)
    assert problem.steps_per_epoch == 3 and all(run.failure is None for run in found.runs)
    np.testing.assert_array_equal(found.curves["a"].loss, found.curves["b"].loss)
    assert (found.curves["a"].loss[1:] != found.curves["c"].loss[1:]).all()
    np.testing.assert_allclose(found.curves["a"].loss, found.curves["a"].logs["val_loss"])
    assert next(iter(data))[0].numpy().tolist() == first


def test_weights_of_rows_count_in_training_and_in_the_curve():
    weight = np.where(X[:, 0] > 0, 1.0, 0.0)
    weighted = compare({"a": "sgd"}, tf.experiments.Problem(network, X, Y, loss="mse", sample_weight=weight)).curves["a"].loss
    plain = compare({"a": "sgd"}, tf.experiments.Problem(network, X, Y, loss="mse")).curves["a"].loss
    assert (weighted != plain).all()


# Time --------------------------------------------------------------------------------------------------------------------


def test_the_clock_runs_in_training_steps_only(monkeypatch):
    """A clock that ticks once whenever it is asked: two readings a step, none around the measuring of the loss."""
    from minikeras.experiments import problem as module

    asked = []

    def clock():
        asked.append(None)
        return float(len(asked))

    monkeypatch.setattr(module.time, "perf_counter", clock)
    monkeypatch.setattr(module.Executions, "run", lambda self, run=module.Executions.run: quietly(run, self))

    def quietly(run, self):
        before = len(asked)
        logs = run(self)
        del asked[before:]
        return logs

    curve = compare({"sgd": "sgd"}, every=2).curves["sgd"]
    assert curve.steps.tolist() == [0, 2, 4] and curve.seconds[:, 0].tolist() == [0.0, 1.0, 2.0]


def noisy():
    """A model with all that a step may change beside weights: statistics, and a random stream."""
    layers = [keras.layers.Dense(4, "tanh", name="hidden"), keras.layers.BatchNormalization(), keras.layers.Dropout(0.2)]
    return keras.Sequential([keras.Input((1,)), *layers, keras.layers.Dense(1, name="head")])


KINDS = {
    **{name: name for name in ("adam", "muon", "adafactor", "lbfgs", "levenbergmarquardt", "kfac", "adahessian", "newtoncg")},
    "average": optimizers.Adam(0.1, use_ema=True),
    "gathered": optimizers.SGD(0.1, gradient_accumulation_steps=3),
    "schedule": optimizers.SGD(optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)),
    "turns": optimizers.cycle({"hidden": "adam", "*": optimizers.Newton(damping=1e-2)}),
}


def test_steps_taken_beforehand_leave_no_trace(monkeypatch):
    from minikeras.experiments.problem import TimedSteps

    problem = tf.experiments.Problem(noisy, X, Y, loss="mse", batch_size=8)
    warm = compare(KINDS, problem)
    monkeypatch.setattr(TimedSteps, "warm_up", lambda self: self._model.optimizer.build(self._model.trainable_variables) or 0.0)
    cold = compare(KINDS, problem)
    assert all(run.failure is None for run in [*warm.runs, *cold.runs])
    for name in KINDS:
        np.testing.assert_array_equal(warm.curves[name].loss, cold.curves[name].loss, name)


def test_how_often_the_loss_is_measured_changes_no_training():
    problem = tf.experiments.Problem(noisy, X, Y, loss="mse", batch_size=8, validation_data=(X, Y))
    often, seldom = (compare({"a": "adam", "b": "adahessian"}, problem, every=every) for every in (1, 4))
    for name in ("a", "b"):
        np.testing.assert_array_equal(often.curves[name].loss[::4], seldom.curves[name].loss)


def test_recording_and_compiling_are_no_part_of_the_curve():
    run = compare({"adam": "adam"}, tf.experiments.Problem(network, X, Y, loss="mse", batch_size=8)).runs[0]
    assert run.seconds[0] == 0.0 and run.seconds == sorted(run.seconds)
    assert run.first_step > 0 and run.evaluations == run.steps[-1] == 4


def test_a_run_ends_when_its_time_is_over():
    found = compare({"adam": "adam"}, steps=None, seconds=1e-9)
    assert found.runs[0].steps == [0, 1]
    found = compare({"adam": "adam"}, steps=3, seconds=1e9)
    assert found.runs[0].steps == [0, 1, 2, 3]


def test_each_optimizer_may_have_its_number_of_steps():
    found = compare({"adam": "adam", "newton": "newton"}, steps={"adam": 5, "newton": 2})
    assert found.table().columns["steps"] == [5, 2]


@pytest.mark.parametrize(
    ("growth", "every", "points"),
    [(0.01, None, [*range(1, 200), 200, 202, 204]), (0.1, None, [*range(1, 20), 20, 22, 24]), (0.1, 50, [50, 100, 120])],
)
def test_the_loss_is_measured_often_at_first(growth, every, points):
    assert list(milestones(points[-1], every, growth)) == points


def test_evaluations_of_a_line_search_are_counted():
    columns = compare({"sgd": "sgd", "lbfgs": "lbfgs", "newton": "newton"}, steps=6).table().columns
    assert columns["evaluations"][0] == 6 <= columns["evaluations"][1] and columns["evaluations"][2] is None


# Results -----------------------------------------------------------------------------------------------------------------


def test_the_table_has_steps_and_seconds_to_the_threshold():
    found = compare({"lm": "levenbergmarquardt", "still": optimizers.SGD(0.0)}, steps=15, threshold=1e-2)
    columns, curve = found.table().columns, found.curves["lm"]
    first = int(np.argmax(curve.loss[:, 0] <= 1e-2))
    assert columns["steps to reach"] == [first, None] and columns["seconds to reach"] == [curve.seconds[first, 0], None]
    assert columns["loss"] == [curve.loss[-1, 0], found.curves["still"].loss[0, 0]]
    assert "outcome" not in columns and "to reach: loss 0.01" in repr(found).splitlines()[0]
    assert "<table>" in found._repr_html_()


def test_without_a_threshold_it_is_the_lowest_loss_that_all_reached():
    runs = [
        OptimizerRun("a", 0, [0, 1], [0.0, 1.0], {"loss": [1.0, 0.0123]}),
        OptimizerRun("b", 0, [0, 1], [0.0, 1.0], {"loss": [1.0, 0.1234]}),
    ]
    assert _reached_by_all([runs]) == 0.13
    diverged = OptimizerRun("c", 0, [0, 1], [0.0, 1.0], {"loss": [1.0, math.nan]})
    assert _reached_by_all([runs, [diverged]]) == 0.13 and _reached_by_all([[diverged]]) is None
    negative = OptimizerRun("d", 0, [0], [0.0], {"loss": [-1234.0]})
    assert (
        _reached_by_all([[negative]]) == -1200 and _reached_by_all([[OptimizerRun("e", 0, [0], [0.0], {"loss": [0.0]})]]) == 0.0
    )


def test_a_diverged_run_ends_and_says_so():
    found = compare({"good": "sgd", "wild": optimizers.SGD(1e9)}, steps=20)
    wild = found.runs[1]
    assert wild.diverged and len(wild.steps) < 15 and found.runs[0].steps[-1] == 20
    assert found.table().columns["outcome"] == [None, f"diverged at step {wild.steps[-1]}"]


def test_an_optimizer_that_fails_is_a_row_with_its_error():
    def broken(model):
        raise RuntimeError("no rules for this model")

    class Late(optimizers.SGD):
        def update_step(self, gradient, variable, learning_rate):
            raise FloatingPointError("not today")

    found = compare({"broken": broken, "late": Late(), "lost": {"tail": "sgd"}, "good": "adam"}, seeds=2)
    outcomes = found.table().columns["outcome"]
    assert outcomes[0] == "2 of 2: RuntimeError: no rules for this model" and "not today" in outcomes[1]
    assert "belongs to no entry" in outcomes[2] and outcomes[3] is None
    assert "in broken" in found.runs[0].failure.traceback and list(found.curves) == ["good"]


def test_a_data_frame_has_a_row_for_each_optimizer():
    pytest.importorskip("pandas")
    frame = compare({"a": "sgd", "b": "adam"}, seeds=3).to_pandas()
    assert frame.optimizer.tolist() == ["a", "b"] and (frame["loss min"] <= frame.loss).all()


# Pictures ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def plt():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")


def lines(ax):
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def test_the_picture_shows_loss_against_steps_and_seconds(plt):
    found = compare({"a": "sgd", "b": "adam"}, steps=6, threshold=0.5)
    figure = found.plot(title="two")
    by_steps, by_seconds = figure.axes
    assert (by_steps.get_xlabel(), by_seconds.get_xlabel()) == ("steps", "seconds of training")
    assert by_steps.get_yscale() == "log" and figure.get_suptitle() == "two"
    np.testing.assert_array_equal(lines(by_steps)["a"].get_data(), [found.curves["a"].steps, found.curves["a"].loss[:, 0]])
    np.testing.assert_array_equal(lines(by_seconds)["b"].get_xdata(), found.curves["b"].seconds[:, 0])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


def test_several_seeds_are_a_median_with_a_band(plt):
    found = compare({"a": "sgd"}, seeds=3)
    ax = found.plot().axes[0]
    np.testing.assert_allclose(lines(ax)["a"].get_ydata(), np.median(found.curves["a"].loss, axis=1))
    assert len(ax.collections) == 1


def test_a_line_that_diverged_is_marked_and_leaves_room_for_the_others(plt):
    figure = compare({"good": "sgd", "wild": optimizers.SGD(1e9)}, steps=20).plot()
    ax = figure.axes[0]
    assert "wild (diverged)" in lines(ax) and any(line.get_marker() == "x" for line in ax.lines)
    assert ax.get_ylim()[1] < 100
    figure.canvas.draw()


def test_pictures_may_be_drawn_into_axes_and_of_other_values(plt):
    problem = tf.experiments.Problem(network, X, Y, loss="mse", metrics=["mae"], validation_data=(X, Y))
    found = compare({"a": "sgd"}, problem, steps={"a": 300}, every=100)
    figure, axes = plt.subplots(2)
    assert found.plot("val_mae", axes=axes) is figure and axes[0].get_ylabel() == "val_mae"
    with pytest.raises(ValueError, match="no 'accuracy' was measured; there is loss, mae, val_loss, val_mae"):
        found.plot("accuracy")
    with pytest.raises(ValueError, match="plot: 2 panels need as many axes, found 1"):
        found.plot(axes=axes[0])


def test_if_all_failed_there_is_a_table_and_no_picture(plt):
    found = compare({"a": {"tail": "sgd"}})
    assert "ValueError: PerLayer" in repr(found) and found.threshold is None
    with pytest.raises(ValueError, match="all runs failed"):
        found.plot()


# What is refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        (["sgd"], {}, TypeError, "a dict from names to optimizers"),
        ({}, {}, ValueError, "no optimizers"),
        ({1: "sgd"}, {}, TypeError, "a dict from names"),
        ({"a": None}, {}, ValueError, "'a' is None"),
        ({"a": 3}, {}, TypeError, "found 3"),
        ({"a": "addam"}, {}, ValueError, "addam"),
        ({"a": {"*": "addam"}}, {}, ValueError, "addam"),
        ({"a": "sgd"}, {"steps": 0}, ValueError, "at least 1"),
        ({"a": "sgd"}, {"steps": 1.5}, TypeError, "a whole number"),
        ({"a": "sgd"}, {"steps": {"b": 3}}, ValueError, "a number for each of"),
        ({"a": "sgd"}, {"steps": {"a": -3}}, ValueError, "at least 1"),
        ({"a": "sgd"}, {"epochs": 3}, ValueError, "steps or epochs, not both"),
        ({"a": "sgd"}, {"seconds": -1.0}, ValueError, "a positive number"),
        ({"a": "sgd"}, {"seconds": "1"}, ValueError, "a positive number"),
        ({"a": "sgd"}, {"threshold": math.nan}, ValueError, "a finite number"),
        ({"a": "sgd"}, {"threshold": "low"}, ValueError, "a finite number"),
        ({"a": "sgd"}, {"seeds": 0}, ValueError, "at least 1"),
        ({"a": "sgd"}, {"seeds": []}, ValueError, "a list of different integers"),
        ({"a": "sgd"}, {"seeds": [1, 1]}, ValueError, "a list of different integers"),
        ({"a": "sgd"}, {"seeds": [-1]}, ValueError, "integers from 0 to"),
        ({"a": "sgd"}, {"every": 0}, ValueError, "at least 1"),
    ],
)
def test_bad_arguments_are_refused_before_any_training(given, options, error, message):
    with pytest.raises(error, match=message):
        compare(given, **options)


def test_a_problem_that_makes_no_sense_is_refused():
    with pytest.raises(TypeError, match="should be a function that returns a model, or a model, found a str"):
        tf.experiments.Problem("model", X, Y)
    with pytest.raises(TypeError, match=r"\['metric'\] are no arguments of compile"):
        tf.experiments.Problem(network, X, Y, metric="mae")
    with pytest.raises(ValueError, match="the same number of samples"):
        tf.experiments.Problem(network, X, Y[:-1], loss="mse")
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        tf.experiments.Problem(network, X, Y, batch_size=0)
    with pytest.raises(TypeError, match="only once"):
        tf.experiments.Problem(network, ((x, y) for x, y in [(X, Y)]))
    with pytest.raises(TypeError, match=r"a tf.experiments.Problem\(build, x, y, ...\), found a str"):
        tf.experiments.compare({"a": "sgd"}, "mnist")


def test_errors_of_the_problem_are_raised_and_not_made_a_row():
    with pytest.raises(TypeError, match="build should return a model, found an int"):
        compare({"a": "sgd"}, tf.experiments.Problem(lambda: 3, X, Y))
    with pytest.raises(ValueError, match="is inf before the first step"):
        compare({"a": "sgd"}, tf.experiments.Problem(network, X, Y * np.inf, loss="mae"))
    with pytest.raises(ValueError, match="loss"):
        compare({"a": "sgd"}, tf.experiments.Problem(network, X, Y))
    endless = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4).repeat()
    with pytest.raises(ValueError, match="no end"):
        compare({"a": "sgd"}, tf.experiments.Problem(network, endless, loss="mse"))
