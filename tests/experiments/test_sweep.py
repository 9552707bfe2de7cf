"""Sweep: each run is the one that would be written by hand; what cannot be meant is refused before anything runs."""

import copy

import numpy as np
import pytest
from slow import sampled

import minikeras as tf
from minikeras.data.pipeline import preserved_streams
from minikeras.experiments import RunResult, Sweep, SweepResults, sweep
from minikeras.experiments.grid import Run
from minikeras.experiments.runs import train_group

keras, L = tf.keras, tf.keras.layers
generator = np.random.default_rng(0)
X = generator.normal(size=(48, 4)).astype("float32")
Y = (X[:, :1] - X[:, 1:2] ** 2).astype("float32")


def build(rate=0.05, width=4, optimizer="adam"):
    model = keras.Sequential([keras.Input((4,)), L.Dense(width, "tanh"), L.Dropout(0.2), L.Dense(1)])
    model.compile(keras.optimizers.get({"class_name": optimizer, "config": {"learning_rate": rate}}), "mse", metrics=["mae"])
    return model


def by_hand(made_by, seed, parameters, *data, **arguments):
    """History and weights of a run as users write it."""
    state = np.random.get_state()
    keras.utils.set_random_seed(seed)
    model = made_by(**parameters)
    history = model.fit(*data, **arguments, verbose=0).history
    np.random.set_state(state)
    return history, model.get_weights()


def swept(grid=None, seeds=2, made_by=build, x=X, y=Y, **arguments):
    return Sweep(made_by, {"rate": [0.1, 0.01], "width": [2, 4]} if grid is None else grid, seeds=seeds).fit(
        x, y, **{"epochs": 2, "verbose": 0, **arguments}
    )


def same(one, other):
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def close(one, other):
    """The same to rounding: what is trained together has other products of matrices than what is trained by itself."""
    if isinstance(one, dict):
        return list(one) == list(other) and close(list(one.values()), list(other.values()))
    return len(one) == len(other) and all(np.allclose(a, b, rtol=1e-6, atol=1e-6) for a, b in zip(one, other, strict=True))


# What runs ---------------------------------------------------------------------------------------------------------------


def test_parameters_are_combined_with_the_last_name_and_then_seeds_varying_fastest():
    runs = Sweep(build, {"rate": [0.1, 0.2], "width": [2, 3]}, seeds=[5, 7]).runs
    assert [(run.number, run.parameters["rate"], run.parameters["width"], run.seed) for run in runs[:5]] == [
        (0, 0.1, 2, 5),
        (1, 0.1, 2, 7),
        (2, 0.1, 3, 5),
        (3, 0.1, 3, 7),
        (4, 0.2, 2, 5),
    ]
    assert len(runs) == 8


def test_a_list_of_dicts_is_run_in_its_order_and_what_it_leaves_out_has_its_default():
    runs = Sweep(build, [{"width": 3}, {}, {"rate": np.float64(0.5)}]).runs
    assert [run.parameters for run in runs] == [{"width": 3}, {}, {"rate": 0.5}]
    assert type(runs[2].parameters["rate"]) is float


def test_values_may_come_from_arrays_and_ranges():
    runs = Sweep(build, {"rate": np.array([0.1, 0.2]), "width": range(2, 4)}, seeds=np.array([1, 2])).runs
    assert len(runs) == 8 and type(runs[0].parameters["rate"]) is float and type(runs[0].seed) is int


def test_every_run_has_the_numbers_of_the_same_run_written_by_hand():
    results = swept(validation_data=(X[:16], Y[:16]), batch_size=16)
    assert isinstance(results, SweepResults) and len(results) == 8
    for result in results:
        arguments = {"epochs": 2, "batch_size": 16, "validation_data": (X[:16], Y[:16])}
        history, weights = by_hand(build, result.seed, result.parameters, X, Y, **arguments)
        assert close(result.history, history) and close(result.model().get_weights(), weights)


def test_a_run_by_itself_has_the_bits_of_the_one_written_by_hand():
    (result,) = swept([{"rate": 0.1}], seeds=[3])
    history, weights = by_hand(build, 3, {"rate": 0.1}, X, Y, epochs=2)
    assert result.history == history and same(result.model().get_weights(), weights)


def test_a_run_does_not_depend_on_the_runs_beside_it():
    alone = swept([{"width": 4, "rate": 0.01}], seeds=[1])
    among = swept()
    (found,) = (one for one in among if one.parameters == alone[0].parameters and one.seed == 1)
    assert close(found.history, alone[0].history)
    assert close(found.model().get_weights(), alone[0].model().get_weights())


GROUPS = {
    "rates and seeds": ({"rate": [0.1, 0.01]}, build, {}, [4]),
    "widths": ({"width": [2, 3]}, build, {}, [2, 2]),
    "other optimizers": ({"optimizer": ["sgd", "adam"]}, build, {}, [2, 2]),
    "a number of the model": ({"rate": [0.1, 0.2]}, lambda rate: dropped(rate), {}, [4]),
    "with and without momentum": ({"momentum": [0.0, 0.5, 0.9]}, lambda momentum: moved(momentum), {}, [2, 4]),
    "optimizers that search": ({"rate": [1.0, 0.5]}, lambda rate: searching(rate), {}, [1] * 4),
    "batches": ({"rate": [0.1, 0.01]}, build, {"x": tf.data.Dataset.from_tensor_slices((X, Y)).batch(8), "y": None}, [1] * 4),
}


def dropped(rate):
    model = keras.Sequential([keras.Input((4,)), L.Dropout(rate), L.Dense(1)])
    model.compile("sgd", "mse")
    return model


def moved(momentum):
    model = keras.Sequential([keras.Input((4,)), L.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01, momentum=momentum), "mse")
    return model


def searching(rate):
    model = keras.Sequential([keras.Input((4,)), L.Dense(1)])
    model.compile(keras.optimizers.LevenbergMarquardt(learning_rate=rate), "mse")
    return model


@pytest.mark.parametrize("kind", sampled(GROUPS, 2))
def test_runs_of_one_structure_are_trained_together(kind, monkeypatch, caplog):
    grid, made_by, arguments, sizes = GROUPS[kind]
    found = []

    def noted(made_by, runs, *others):
        found.append(len(runs))
        return train_group(made_by, runs, *others)

    monkeypatch.setattr(sweep, "train_group", noted)
    results = swept(grid, made_by=made_by, **arguments)
    assert sorted(found) == sizes and not results.failed and not caplog.records
    data = [one for one in (arguments.get("x", X), arguments.get("y", Y)) if one is not None]
    for one in results:
        history, weights = by_hand(made_by, one.seed, one.parameters, *data, epochs=2)
        assert close(one.history, history) and close(one.model().get_weights(), weights)


def test_groups_leave_work_for_all_workers_and_memory_for_large_models(monkeypatch):
    sweep = Sweep(build, {"rate": [0.1, 0.2, 0.3]}, seeds=4)
    kinds = sweep._structures()
    assert [len(group) for group in sweep._groups(kinds, {"x": X}, 1)] == [12]
    assert [len(group) for group in sweep._groups(kinds, {"x": X}, 5)] == [3] * 4
    large = Sweep(lambda width: build(width=width), {"width": [2_000_000]}, seeds=3)
    assert [len(group) for group in large._groups(large._structures(), {"x": X}, 1)] == [1] * 3


def test_what_cannot_be_trained_together_is_trained_in_turn_and_said(caplog):
    class Deciding(L.Layer):
        def call(self, x):
            return x if float(tf.reduce_sum(x)) > 0 else -x

    def made(rate):
        model = keras.Sequential([keras.Input((4,)), L.Dense(2), Deciding(), L.Dense(1)])
        model.compile(keras.optimizers.SGD(rate), "mse", jit_compile=False)
        return model

    results = swept({"rate": [0.1, 0.01]}, made_by=made)
    for one in results:
        assert one.history == by_hand(made, one.seed, one.parameters, X, Y, epochs=2)[0]
    assert "4 runs are trained in turn, not together: " in caplog.text


def test_random_streams_and_names_are_afterwards_what_they_were_before():
    def following():
        return keras.random.normal((2,)).numpy().tolist(), L.Dense(2).name

    keras.utils.clear_session()
    state = np.random.get_state()
    keras.utils.set_random_seed(3)
    expected = following()
    keras.utils.clear_session()
    keras.utils.set_random_seed(3)
    swept(seeds=1)
    assert following() == expected
    np.random.set_state(state)


def test_metrics_have_the_same_names_in_every_run():
    def named(rate):
        model = keras.Sequential([keras.Input((4,)), L.Dense(1, "sigmoid")])
        model.compile(keras.optimizers.SGD(rate), "binary_crossentropy", metrics=[keras.metrics.AUC()])
        return model

    results = swept({"rate": [0.1, 0.2]}, made_by=named, y=(Y > 0).astype("float32"), objective="auc")
    assert [list(one.history) for one in results] == [["auc", "loss"]] * 4 and results.mode == "max"


def test_models_that_are_built_by_their_first_batch_come_back_with_their_weights():
    def unbuilt(width):
        model = keras.Sequential([L.Dense(width, "relu"), L.BatchNormalization(), L.Dense(1)])
        model.compile("sgd", "mse")
        return model

    best = swept({"width": [2, 3]}, made_by=unbuilt).best
    history, weights = by_hand(unbuilt, best.seed, best.parameters, X, Y, epochs=2)
    assert close(best.history, history) and close(best.model().get_weights(), weights)


def test_a_model_without_a_description_is_trained_too():
    class Own(keras.Model):
        def __init__(self, function):
            super().__init__()
            self.function, self.head = function, L.Dense(1)

        def call(self, x):
            return self.head(self.function(x))

    def made(scale):
        model = Own(lambda x: x * scale)
        model.compile("sgd", "mse")
        return model

    results = swept({"scale": [1.0, 2.0]}, made_by=made)
    for one in results:
        assert close(one.history, by_hand(made, one.seed, one.parameters, X, Y, epochs=2)[0])


@pytest.mark.parametrize("shuffles", [{}, {"seed": 1}, {"reshuffle_each_iteration": False}])
def test_a_dataset_is_in_the_same_order_for_each_run(shuffles):
    with preserved_streams([]):
        data = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(48, **shuffles).batch(16)
    results = swept({"rate": [0.1, 0.01]}, x=data, y=None, validation_data=data)
    for one in results:
        with preserved_streams(data.random_streams):
            assert one.history == by_hand(build, one.seed, one.parameters, data, epochs=2, validation_data=data)[0]


def test_batches_with_a_state_are_copied_for_each_run():
    class Growing(keras.utils.PyDataset):
        rows = 8

        def __len__(self):
            return 2

        def __getitem__(self, index):
            return X[: self.rows], Y[: self.rows]

        def on_epoch_end(self):
            self.rows += 8

    data = Growing()
    results = swept({"rate": [0.1]}, x=data, y=None)
    assert data.rows == 8
    for one in results:
        assert one.history == by_hand(build, one.seed, one.parameters, Growing(), epochs=2)[0]


def test_callbacks_are_made_for_each_run():
    seen = []

    def callbacks(run):
        assert isinstance(run, Run)
        seen.append((run.number, run.parameters["rate"], run.seed))
        return [keras.callbacks.EarlyStopping("loss", patience=1, min_delta=1e9)]

    results = swept({"rate": [0.1, 0.2]}, epochs=9, callbacks=callbacks)
    assert sorted(seen) == [(0, 0.1, 0), (1, 0.1, 1), (2, 0.2, 0), (3, 0.2, 1)]
    assert [len(one.history["loss"]) for one in results] == [2] * 4


def test_one_callback_needs_no_list():
    results = swept(callbacks=lambda run: keras.callbacks.EarlyStopping("loss", min_delta=1e9), epochs=5)
    assert [len(run.history["loss"]) for run in results] == [2] * len(results)


def test_one_line_tells_of_all_runs(capsys):
    swept(verbose=1)
    assert capsys.readouterr().err.startswith("sweep: 8 runs in ")
    swept(verbose=0)
    assert capsys.readouterr().err == ""


# What fails --------------------------------------------------------------------------------------------------------------


def failing(rate, width=2):
    if width == 3:
        raise LookupError("three is\nnot there")
    return build(rate, width)


def test_a_build_that_raises_is_a_row_with_its_error():
    results = swept({"rate": [0.1], "width": [2, 3]}, made_by=failing)
    assert [one.error for one in results] == [None, None, *["LookupError: three is not there"] * 2]
    assert 'raise LookupError("three is' in results[2].traceback
    table = results.table()
    assert table.columns["error"] == ["", "", *["LookupError: three is not there"] * 2]
    assert table.columns["loss"][2:] == [None, None] and [one.number for one in results.failed] == [2, 3]
    assert results.table(over="seed").columns["failed"] == [0, 2]


def test_a_training_that_raises_is_a_row_with_its_error():
    results = swept(x={"a": X}, y=Y[:3], grid={"rate": [0.1]})
    assert all("ShapeError" in one.error or "ValueError" in one.error for one in results)
    with pytest.raises(ValueError, match="all 2 runs failed, the first with"):
        _ = results.best


def test_a_loss_that_is_not_finite_ends_its_run_and_no_other():
    results = swept({"rate": [1e30, 0.01], "optimizer": ["sgd"]}, epochs=5)
    lost, kept = results[0], results[2]
    assert lost.error.startswith("NotFiniteError: loss is ") and "lower learning rate" in lost.error
    assert len(lost.history["loss"]) < 5 and len(kept.history["loss"]) == 5 and results.best.parameters["rate"] == 0.01
    with pytest.raises(ValueError, match="run 0 has no model, it failed: NotFiniteError"):
        lost.model()


@pytest.mark.parametrize("seeds", [1, 2])
def test_an_objective_that_is_not_finite_ends_its_run(seeds):
    results = swept([{"rate": 0.1}], seeds=seeds, epochs=3, validation_data=(X * np.nan, Y))
    assert [len(run.history["loss"]) for run in results] == [1] * seeds
    assert all("val_loss is nan after epoch 1" in run.error for run in results)


def test_an_error_keeps_the_epochs_before_it():
    def callbacks(run):
        def fail(epoch, logs):
            if epoch == 1 and run.seed == 1:
                raise RuntimeError("enough")

        return [keras.callbacks.LambdaCallback(on_epoch_begin=fail)]

    results = swept({"rate": [0.1]}, epochs=3, callbacks=callbacks)
    assert results[1].error == "RuntimeError: enough" and len(results[1].history["loss"]) == 1
    assert len(results[0].history["loss"]) == 3


def test_an_interrupt_is_no_result():
    def callbacks(run):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swept(callbacks=callbacks)


# Mistakes ----------------------------------------------------------------------------------------------------------------

MISTAKES = {
    "no function": (lambda: Sweep(3, {"rate": [1]}), TypeError, "build should be a function .* found an int"),
    "an unknown name": (
        lambda: Sweep(build, {"rates": [0.1]}),
        TypeError,
        r"build has no parameter 'rates' \(combination 0, .*\); it takes rate, width, optimizer",
    ),
    "a missing one": (lambda: Sweep(lambda a, b: 0, {"a": [1]}), TypeError, "missing a required argument: 'b'"),
    "an unknown name in a list": (lambda: Sweep(build, [{"rate": 1.0}, {"wide": 2}]), TypeError, "'wide' .*combination 1"),
    "an empty grid": (lambda: Sweep(build, {}), ValueError, "holds no combination.*one model with several seeds"),
    "an empty list": (lambda: Sweep(build, []), ValueError, "holds no combination"),
    "a name without values": (lambda: Sweep(build, {"rate": []}), ValueError, "holds no combination"),
    "a value for a list": (lambda: Sweep(build, {"rate": 0.1}), TypeError, r"'rate' should be a list, found 0.1; .*\[0.1\]"),
    "a text for a list": (lambda: Sweep(build, {"optimizer": "sgd"}), TypeError, "'optimizer' should be a list, found 'sgd'"),
    "a number for a grid": (lambda: Sweep(build, 3), TypeError, "a dict of lists, or a list of dicts, found 3"),
    "a row that is none": (lambda: Sweep(build, [3]), TypeError, "entry 0 of the list should be a dict"),
    "a name that is none": (lambda: Sweep(build, {1: [2]}), TypeError, "names of parameters should be texts, found 1"),
    "a value twice": (lambda: Sweep(build, {"rate": [0.1, 0.2, 0.1]}), ValueError, "combinations 0 and 2 are the same"),
    "a row twice": (lambda: Sweep(build, [{"rate": 0.1}, {"rate": np.float64(0.1)}]), ValueError, "combinations 0 and 1"),
    "functions without names": (
        lambda: Sweep(build, {"rate": [lambda: 0.1, lambda: 0.2]}),
        ValueError,
        "two values of 'rate' are both .*<lambda> in tables and files. Give functions names, with def",
    ),
    "a function twice": (lambda: Sweep(build, {"rate": [len, len]}), ValueError, "combinations 0 and 1 are the same"),
    "no seeds": (lambda: Sweep(build, [{}], seeds=0), ValueError, "seeds must be at least 1, found 0"),
    "a negative seed": (lambda: Sweep(build, [{}], seeds=[-1]), ValueError, "different integers from 0 .* found list of -1"),
    "a seed twice": (lambda: Sweep(build, [{}], seeds=[1, 2, 1]), ValueError, "different integers"),
    "a text for seeds": (lambda: Sweep(build, [{}], seeds="8"), ValueError, "seeds must be a list"),
    "a name of a sweep that is none": (lambda: Sweep(build, [{}], name=3), TypeError, "name should be a text, found 3"),
    "no data": (lambda: swept(x=None, y=None), ValueError, "there are no data"),
    "an argument that fit does not take": (lambda: swept(epoch=3), TypeError, "Model.fit takes no 'epoch', but x, y"),
    "no jobs": (lambda: swept(n_jobs=0), ValueError, "n_jobs should be an int other than 0"),
    "half a job": (lambda: swept(n_jobs=0.5), ValueError, "n_jobs should be an int other than 0"),
    "no mode": (lambda: swept(mode="more"), ValueError, "mode must be 'auto', 'min' or 'max'"),
    "no epochs": (lambda: swept(epochs=0), ValueError, "epochs must be at least 1, found 0"),
    "no rows of a batch": (lambda: swept(batch_size=0), ValueError, "batch_size must be at least 1, found 0"),
    "a number for an objective": (lambda: swept(objective=3), TypeError, "objective should be a name of the logs, found 3"),
    "a list of callbacks": (
        lambda: swept(callbacks=[keras.callbacks.TerminateOnNaN()]),
        TypeError,
        "callbacks should be a function of the run.*Write callbacks=lambda run",
    ),
    "a generator": (lambda: swept(x=iter([(X, Y)]), y=None), TypeError, "can be used up only once"),
    "an objective without validation": (lambda: swept(objective="val_mae"), ValueError, "'val_mae' needs validation_data"),
    "an objective that is not logged": (
        lambda: swept(objective="auc"),
        ValueError,
        r"'auc' is no number .*run 0.*\['loss', 'mae'\]",
    ),
    "no model": (lambda: swept([{}], made_by=lambda: 3), TypeError, "build should return a compiled model, found an int"),
    "no compiled model": (
        lambda: swept([{}], made_by=lambda: keras.Sequential([L.Dense(1)])),
        ValueError,
        "build returned a model, 'sequential', that is not compiled",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_before_anything_runs(mistake):
    question, kind, message = MISTAKES[mistake]
    with pytest.raises(kind, match=message):
        question()


def test_the_metric_says_what_is_better():
    def made(rate):
        model = keras.Sequential([keras.Input((4,)), L.Dense(2)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(rate), loss, metrics=["accuracy"])
        return model

    labels = (Y[:, 0] > 0).astype("int32")
    for seeds in (1, 3):
        results = swept({"rate": [0.1, 0.01]}, seeds, made, y=labels, validation_split=0.5, objective="val_accuracy")
        assert results.mode == "max" and results.best.metrics["val_accuracy"] == max(results.table().columns["val_accuracy"])


def test_without_a_direction_the_objective_needs_one():
    def made(rate):
        model = build(rate)
        model.compile("sgd", "mse", metrics=[lambda y, p: tf.reduce_mean(p)])
        return model

    with pytest.raises(ValueError, match="'lambda' does not say whether more or less is better: give mode"):
        swept({"rate": [0.1]}, made_by=made, objective="lambda")
    assert swept({"rate": [0.1]}, made_by=made, objective="lambda", mode="max").mode == "max"


# Results -----------------------------------------------------------------------------------------------------------------


def test_the_best_run_comes_first_in_a_table_of_parameters_seed_and_metrics():
    results = swept(validation_split=0.25)
    table = results.table()
    assert list(table.columns) == ["run", "rate", "width", "seed", "val_loss", "loss", "mae", "val_mae"]
    losses = table.columns["val_loss"]
    assert losses == sorted(losses) and len(table) == 8 and repr(results) == repr(table)
    best = results.best
    assert isinstance(best, RunResult) and best.metrics["val_loss"] == losses[0] and best.number == table.columns["run"][0]
    assert results._repr_html_() == table._repr_html_()


def test_a_table_can_be_sorted_by_another_metric():
    results = swept()
    maes = results.table(by="mae").columns["mae"]
    assert maes == sorted(maes) and [one.metrics["mae"] for one in results.ordered("mae")] == maes
    with pytest.raises(ValueError, match=r"there is no 'auc' to sort by, but \['loss', 'mae'\]"):
        results.table(by="auc")


def test_a_table_over_seeds_has_mean_and_deviation():
    results = swept(seeds=3)
    table = results.table(over="seed")
    assert list(table.columns) == ["rate", "width", "runs", "loss", "± loss", "mae", "± mae"]
    assert len(table) == 4 and table.columns["runs"] == [3] * 4
    first = next(iter(table))
    values = [r.metrics["loss"] for r in results if r.parameters == {"rate": first["rate"], "width": first["width"]}]
    assert first["loss"] == np.mean(values) and first["± loss"] == np.std(values, ddof=1)
    assert table.columns["loss"] == sorted(table.columns["loss"])


def test_means_may_be_taken_over_parameters_too():
    results = swept(seeds=3)
    assert [row["runs"] for row in results.table(over=["seed", "width"])] == [6, 6]
    assert list(results.table(over="width").columns)[:3] == ["rate", "seed", "runs"]
    with pytest.raises(ValueError, match="there is no 'depth' to take a mean over"):
        results.table(over="depth")


def test_one_seed_has_no_deviation():
    assert swept(seeds=1).table(over="seed").columns["± loss"] == [None] * 4


def test_a_parameter_with_the_name_of_a_metric_keeps_a_column_of_its_own():
    def made(loss):
        model = build()
        model.compile("sgd", loss)
        return model

    table = swept({"loss": ["mse", "mae"]}, made_by=made, seeds=1).table()
    assert set(table.columns["build: loss"]) == {"mse", "mae"} and all(isinstance(one, float) for one in table.columns["loss"])


def test_parameters_may_be_functions_classes_and_tuples():
    def made(optimizer, activation, widths):
        model = keras.Sequential([keras.Input((4,)), *(L.Dense(width, activation) for width in widths), L.Dense(1)])
        model.compile(optimizer(0.1), "mse")
        return model

    grid = {"optimizer": [keras.optimizers.SGD], "activation": [tf.nn.relu, tf.sin], "widths": [(2,), (3, 2)]}
    table = swept(grid, made_by=made, seeds=1).table()
    assert set(table.columns["activation"]) == {"relu", "sin"} and set(table.columns["optimizer"]) == {"SGD"}
    assert set(table.columns["widths"]) == {(2,), (3, 2)}


def test_an_optimizer_among_the_parameters_is_a_new_one_for_each_run():
    def made(optimizer, width):
        model = keras.Sequential([keras.Input((4,)), L.Dense(width), L.Dense(1)])
        model.compile(optimizer, "mse")
        return model

    grid = {"optimizer": [keras.optimizers.Adam(0.1), keras.optimizers.Adam(0.01)], "width": [2, 3]}
    results = swept(grid, made_by=made)
    for one in results:
        history, _ = by_hand(made, one.seed, copy.deepcopy(one.parameters), X, Y, epochs=2)
        assert close(one.history, history)
    assert not any(optimizer.built for optimizer in grid["optimizer"]) and not results.failed


def test_a_table_becomes_a_data_frame():
    pytest.importorskip("pandas")
    results = swept()
    frame = results.to_pandas()
    assert list(frame["loss"]) == results.table().columns["loss"] and len(results.to_pandas(over="seed")) == 4


def test_metrics_of_several_numbers_are_in_the_history_and_in_no_table():
    def made(rate):
        model = keras.Sequential([keras.Input((4,)), L.Dense(2, "softmax")])
        model.compile(keras.optimizers.SGD(rate), "categorical_crossentropy", metrics=[keras.metrics.F1Score()])
        return model

    results = swept({"rate": [0.1, 0.2]}, made_by=made, y=np.eye(2, dtype="float32")[(Y[:, 0] > 0).astype(int)])
    assert np.shape(results[0].history["f1_score"]) == (2, 2) and results.metric_names == ["loss"]
    with pytest.raises(ValueError, match=r"'f1_score' is no number in the logs of run 0, which have \['loss'\]"):
        swept({"rate": [0.1]}, made_by=made, y=np.eye(2, dtype="float32")[(Y[:, 0] > 0).astype(int)], objective="f1_score")


def test_the_history_of_a_run_is_that_of_fit():
    results = swept(validation_data=(X, Y), validation_freq=2, epochs=4)
    history = results.history(3)
    assert history.history == results[3].history and history.epoch == [0, 1, 2, 3]
    assert history.logged_at["val_loss"] == [1, 3] and results.history(results[3]).history == history.history


def test_without_kept_weights_there_is_no_model():
    with pytest.raises(ValueError, match="no weights were kept; fit with keep_weights=True"):
        swept(keep_weights=False).best.model()


def test_a_model_comes_back_with_its_optimizer_and_goes_on():
    best = swept({"rate": [0.1]}).best
    assert int(best.model().optimizer.iterations) == 4
    history = best.model().fit(X, Y, epochs=1, verbose=0).history
    assert np.isfinite(history["loss"]).all()
