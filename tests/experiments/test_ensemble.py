"""Ensembles: members equal models that are trained by themselves."""

import io
import json
import zipfile

import numpy as np
import pytest

import minikeras as tf
from minikeras import keras
from minikeras.compiler import guards
from minikeras.experiments import Ensemble, members
from minikeras.nn_ops import streams

SEEDS = [3, 1, 4, 15]
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5)).astype("float32")
Y = rng.integers(0, 3, 60).astype("int32")
JIT = [False, "auto", True]


def build(seed=None, jit_compile="auto", rate=0.3, units=8):
    model = keras.Sequential(
        [
            keras.Input((5,)),
            keras.layers.Dense(units, "relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(rate),
            keras.layers.Dense(3),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"], jit_compile=jit_compile)
    return model


def ensemble_of(size=4, **options):
    return Ensemble(lambda: build(**options), size, SEEDS[:size])


def alone(seed, x=X, y=Y, model=build, **options):
    """The model that a script trains by itself, and its history."""
    keras.utils.set_random_seed(seed)
    made = model()
    return made, made.fit(x, y, verbose=0, **options)


def assert_same(first, second, tolerance=0.0):
    """Same bits, or nearly so where NumPy sums stacks in another order, as with one output."""
    for a, b in zip(first.variables + first.optimizer.variables, second.variables + second.optimizer.variables, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance, err_msg=a.name)


@pytest.mark.parametrize("jit_compile", JIT)
def test_members_equal_single_runs(jit_compile):
    ensemble = ensemble_of(jit_compile=jit_compile)
    options = {"batch_size": 16, "epochs": 3, "validation_split": 0.2}
    history = ensemble.fit(X, Y, verbose=0, **options).history
    for place, seed in enumerate(SEEDS):
        model, single = alone(seed, model=lambda: build(jit_compile=jit_compile), **options)
        assert_same(model, ensemble[place], 1e-6 if jit_compile is True else 0.0)
        for name, values in single.history.items():
            np.testing.assert_allclose(history[name][:, place], values, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("shuffle", [False, "batch"])
def test_members_equal_single_runs_whatever_the_order(shuffle):
    ensemble = ensemble_of(2)
    ensemble.fit(X, Y, batch_size=16, epochs=2, shuffle=shuffle, verbose=0)
    for place, seed in enumerate(SEEDS[:2]):
        assert_same(alone(seed, batch_size=16, epochs=2, shuffle=shuffle)[0], ensemble[place], 1e-6)


def test_training_goes_on_where_it_was():
    ensemble = ensemble_of(2)
    ensemble.fit(X, Y, epochs=1, verbose=0)
    ensemble.fit(X, Y, epochs=2, verbose=0)
    for place, seed in enumerate(SEEDS[:2]):
        keras.utils.set_random_seed(seed)
        model = build()
        model.fit(X, Y, epochs=1, verbose=0)
        model.fit(X, Y, epochs=2, verbose=0)
        assert_same(model, ensemble[place])


def recordings(ensemble):
    """The function that has recorded the members' steps."""
    ((loops, _),) = ensemble._stacks._stacks.values()
    return loops.steps["train_step_on_own"]


def set_rate(model):
    model.layers[2].rate = 0.5


def set_activation(model):
    model.layers[0].activation = keras.activations.tanh


def assign_rate(model):
    model.optimizer.learning_rate.assign(0.1)


def load(model):
    model.set_weights([0.5 * one for one in model.get_weights()])


def train(model):
    model.fit(X, Y, verbose=0)


def set_nothing(model):
    assert model.optimizer.iterations.numpy() > 0


KEPT = {set_nothing: True, load: True, set_rate: False, set_activation: False, assign_rate: False, train: False}


@pytest.mark.parametrize("change", KEPT)
def test_a_recording_is_kept_from_fit_to_fit_until_anything_is_set(change):
    ensemble = ensemble_of(2)
    ensemble.fit(X, Y, epochs=2, verbose=0)
    first = recordings(ensemble)
    for model in ensemble:
        change(model)
    ensemble.fit(X, Y, epochs=2, verbose=0)
    assert (recordings(ensemble) is first) == KEPT[change]
    for place, seed in enumerate(SEEDS[:2]):
        keras.utils.set_random_seed(seed)
        model = build()
        model.fit(X, Y, epochs=2, verbose=0)
        if change is not train:  # with the ensemble's stream: the rows of `fit` alone come in another order
            change(model)
            model.fit(X, Y, epochs=2, verbose=0)
            assert_same(model, ensemble[place])


def test_the_seeds_of_members_are_none_that_the_user_has_set():
    """Ranks whose user has set no seed take that of the first rank, and refuse seeds that were set otherwise."""
    with streams.own_streams():
        streams.set_global_seed(None)
        ensemble_of(2)
        assert not streams.is_seeded()


def test_recordings_of_a_stack_depend_on_no_model_of_a_member(monkeypatch):
    seen, visit = [], guards.Walk._visit
    monkeypatch.setattr(guards.Walk, "_visit", lambda walk, value, where: seen.append(value) or visit(walk, value, where))
    ensemble = Ensemble(build, 3)
    ensemble.fit(X, Y, verbose=0)
    ensemble.predict(X, verbose=0)
    assert seen and not any(value is model for value in seen for model in ensemble)


def test_evaluating_between_fits_keeps_both_recordings():
    ensemble = ensemble_of(2)
    for _ in range(3):
        ensemble.fit(X, Y, verbose=0)
        found = ensemble.evaluate(X, Y, verbose=0)
        kept = {trains: loops for trains, (loops, _) in ensemble._stacks._stacks.items()}
    ensemble.fit(X, Y, verbose=0)
    losses = [model.evaluate(X, Y, verbose=0)[0] for model in ensemble]
    np.testing.assert_allclose(ensemble.evaluate(X, Y, verbose=0)[0], losses, rtol=1e-6)
    assert np.shape(found[0]) == (2,) and set(kept) == {True, False}
    assert all(ensemble._stacks._stacks[trains][0] is loops for trains, loops in kept.items())


@pytest.mark.parametrize("hook", ["set_model", "on_train_begin", "on_epoch_end", "on_train_end"])
def test_what_a_callback_sets_holds_in_this_fit_and_the_next(hook):
    class Sets(keras.callbacks.Callback):
        def set_model(self, model):
            super().set_model(model)
            self.set_rate("set_model")

        def set_rate(self, called):
            if hook == called:
                self.model.layers[2].rate = 0.0

        def on_train_begin(self, logs=None):
            self.set_rate("on_train_begin")

        def on_epoch_end(self, epoch, logs=None):
            self.set_rate("on_epoch_end")

        def on_train_end(self, logs=None):
            self.set_rate("on_train_end")

    ensemble, callbacks = ensemble_of(2), ([], [Sets()], [])
    for given in callbacks:
        ensemble.fit(X, Y, epochs=2, verbose=0, callbacks=given)
    for place, seed in enumerate(SEEDS[:2]):
        keras.utils.set_random_seed(seed)
        model = build()
        for given in callbacks:
            model.fit(X, Y, epochs=2, verbose=0, callbacks=given)
        assert_same(model, ensemble[place])


def test_models_without_input_are_built_by_the_first_batch():
    def lazy():
        model = keras.Sequential([keras.layers.Dense(4, "tanh"), keras.layers.Dropout(0.5), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        return model

    ensemble = Ensemble(lazy, 2, SEEDS[:2])
    ensemble.fit(X, Y, epochs=2, verbose=0)
    for place, seed in enumerate(SEEDS[:2]):
        assert_same(alone(seed, model=lazy, epochs=2)[0], ensemble[place], 1e-6)


def test_steps_of_the_users_own_are_taken_for_all_members():
    class Twice(keras.Model):
        def __init__(self):
            super().__init__()
            self.head = keras.layers.Dense(1)

        def call(self, x, training=None):
            return self.head(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True)[:, 0] - tf.cast(y, "float32")) ** 2) * 2.0
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            return {"loss": loss}

    def made():
        model = Twice()
        model.compile("adam")
        return model

    ensemble = Ensemble(made, 3, SEEDS[:3])
    ensemble.fit(X, Y, epochs=2, verbose=0)
    for place, seed in enumerate(SEEDS[:3]):
        assert_same(alone(seed, model=made, epochs=2)[0], ensemble[place], 1e-6)


def test_batches_of_a_dataset_are_the_same_for_all():
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)
    ensemble = ensemble_of(2)
    ensemble.fit(dataset, epochs=2, verbose=0)
    for place, seed in enumerate(SEEDS[:2]):
        keras.utils.set_random_seed(seed)
        model = build()
        model.fit(dataset, epochs=2, verbose=0)
        assert_same(model, ensemble[place], 1e-6)


def test_weights_of_rows_and_classes_count():
    weights = rng.uniform(size=60).astype("float32")
    for options in ({"sample_weight": weights}, {"class_weight": {0: 1.0, 1: 2.0, 2: 0.5}}):
        ensemble = ensemble_of(2)
        ensemble.fit(X, Y, epochs=2, verbose=0, **options)
        assert_same(alone(SEEDS[1], epochs=2, **options)[0], ensemble[1])


# Members that end -----------------------------------------------------------------------------------------------------


def stopping(patience):
    return keras.callbacks.EarlyStopping("loss", min_delta=10.0, patience=patience, restore_best_weights=True)


@pytest.mark.parametrize("option", [{}, {"clipnorm": 0.5}, {"global_clipnorm": 0.5}, {"use_ema": True}])
def test_native_steps_of_members_with_numbers_of_their_own_are_kernels_alone(option):
    pytest.importorskip("llvmlite")
    pytest.importorskip("scipy")
    ensemble, loss = ensemble_of(), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    ensemble.compile(lambda place: keras.optimizers.Adam(0.01 * (place + 1), **option), loss, jit_compile=True)
    ensemble.fit(X, Y, batch_size=12, epochs=2, verbose=0)
    loops, _ = ensemble._stacks._stacks[True]
    assert loops.steps["train_step_on_own"]._replays[0]._in_a_row is not None


RATES = {
    "one": lambda place: keras.optimizers.Adam(0.01),
    "own": lambda place: keras.optimizers.Adam(0.01 * (place + 1)),
    "scheduled": lambda place: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.01, 3, 0.5 + place / 10)),
    "products": lambda place: keras.optimizers.Nadam(0.01 * (place + 1)),
}


@pytest.mark.parametrize("rates", RATES)
def test_members_whose_steps_in_a_row_end_with_an_error_have_taken_those_before_it(rates):
    """Numbers are computed, and steps counted, for many steps at once."""
    pytest.importorskip("llvmlite")
    pytest.importorskip("scipy")
    x, y = np.tile(X, (6, 1)), np.tile(Y, 6)
    bad = y.copy()
    bad[200] = 7

    def fitted(*targets):
        found = Ensemble(lambda: dense_model(), 3, SEEDS[:3])
        found.compile(RATES[rates], keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True)
        for one in targets:
            found.fit(x[: len(one)], one, batch_size=6, epochs=2, shuffle=False, verbose=0)
        return found

    def dense_model():
        return keras.Sequential([keras.Input((5,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(3)])

    whole, failed = fitted(y), fitted(y)
    with pytest.raises(tf.errors.InvalidArgumentError, match="label"):
        failed.fit(x, bad, batch_size=6, shuffle=False, verbose=0)
    whole.fit(x[:198], y[:198], batch_size=6, shuffle=False, verbose=0)
    for one, other in zip(failed, whole, strict=True):
        assert int(one.optimizer.iterations) == 2 * 60 + 33
        assert_same(one, other)


@pytest.mark.parametrize("jit_compile", [False, "auto"])
def test_a_member_that_stops_stays_as_it_was(jit_compile):
    patience = [1, 9, 1, 3]
    ensemble = ensemble_of(jit_compile=jit_compile)
    history = ensemble.fit(X, Y, epochs=5, verbose=0, callbacks=lambda place: [stopping(patience[place])])
    assert np.isfinite(history.history["loss"]).sum(axis=0).tolist() == [2, 5, 2, 4]
    for place, seed in enumerate(SEEDS):
        options = {"epochs": 5, "callbacks": [stopping(patience[place])]}
        assert_same(alone(seed, model=lambda: build(jit_compile=jit_compile), **options)[0], ensemble[place])


def test_callbacks_see_the_model_of_their_member():
    seen = []

    class Halve(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append((self.model.name, float(self.model.layers[-1].kernel.numpy()[0, 0]), logs["loss"]))
            self.model.layers[-1].kernel.assign(self.model.layers[-1].kernel / 2.0)

    ensemble = ensemble_of(2)
    history = ensemble.fit(X, Y, epochs=2, verbose=0, callbacks=[Halve()])
    assert [loss for _, _, loss in seen] == history.history["loss"].ravel().tolist()
    for place, seed in enumerate(SEEDS[:2]):
        assert_same(alone(seed, epochs=2, callbacks=[Halve()])[0], ensemble[place])


def test_a_member_without_finite_loss_ends_alone_and_says_so():
    def made(seed):
        model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.01), "mse")
        if seed == SEEDS[1]:
            model.layers[0].kernel.assign(model.layers[0].kernel * np.inf)
        return model

    ensemble = Ensemble(made, 3, SEEDS[:3])
    with pytest.warns(UserWarning, match=r"Member 1 \(seed 1\) ends in epoch 1: its loss is (nan|inf)"):
        history = ensemble.fit(X, Y, epochs=3, verbose=0)
    assert np.isfinite(history.history["loss"]).all(axis=0).tolist() == [True, False, True]
    assert_same(alone(SEEDS[2], model=lambda: made(SEEDS[2]), epochs=3)[0], ensemble[2])


def test_data_that_run_out_end_training_as_that_of_one_model():
    def once():
        yield from ((X[start : start + 16], Y[start : start + 16]) for start in (0, 16))

    for few, warning in (
        (once(), "ran out of data after 1 epochs"),
        (tf.data.Dataset.from_generator(once), "2 batches instead"),
    ):
        ensemble, options = (
            ensemble_of(2),
            {"epochs": 2, "verbose": 0} | ({"steps_per_epoch": 9} if "instead" in warning else {}),
        )
        with pytest.warns(UserWarning, match=warning) as told:
            history = ensemble.fit(few, **options)
        assert {one.filename for one in told} == {__file__}
        assert history.epoch == ([0] if "ran out" in warning else [0, 1])
        assert_same(alone_on(once, SEEDS[1], len(history.epoch)), ensemble[1], 1e-6)


def alone_on(batches, seed, epochs):
    """A model that was trained by itself on batches that are made anew for each epoch."""
    keras.utils.set_random_seed(seed)
    model = build()
    model.fit(tf.data.Dataset.from_generator(batches), epochs=epochs, verbose=0)
    return model


def test_an_interrupt_leaves_members_after_their_last_step():
    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 1:
                raise KeyboardInterrupt

    ensemble = ensemble_of(2)
    with pytest.raises(KeyboardInterrupt):
        ensemble.fit(X, Y, batch_size=16, epochs=2, verbose=0, callbacks=[Interrupt()])
    assert all(int(model.optimizer.iterations) == 2 for model in ensemble)
    assert np.isfinite(ensemble.predict(X, verbose=0)).all()


@pytest.mark.parametrize("earlier", [0, 1])
def test_a_lack_of_memory_while_stacking_loses_no_weights(earlier, monkeypatch):
    ensemble, stacked = ensemble_of(2), []
    for _ in range(earlier):
        ensemble.fit(X, Y, verbose=0)
    before = [model.get_weights() for model in ensemble]

    def fail(whole, rows, with_rows=members.with_rows):
        stacked.append(whole)
        if len(stacked) == 3:
            raise MemoryError
        return with_rows(whole, rows)

    monkeypatch.setattr(members, "with_rows", fail)
    with pytest.raises(MemoryError):
        ensemble.fit(X, Y, verbose=0)
    for model, values in zip(ensemble, before, strict=True):
        assert all((a == b).all() for a, b in zip(model.get_weights(), values, strict=True))


# Data of each member --------------------------------------------------------------------------------------------------


def test_bootstrap_gives_each_member_its_own_rows():
    first, again = ensemble_of(3), ensemble_of(3)
    a = first.fit(X, Y, epochs=2, verbose=0, bootstrap=True).history["loss"]
    b = again.fit(X, Y, epochs=2, verbose=0, bootstrap=True).history["loss"]
    assert (a == b).all()
    assert (ensemble_of(3).fit(X, Y, epochs=2, verbose=0).history["loss"] != a).all()


def test_how_many_rows_to_draw_is_no_option():
    with pytest.raises(TypeError, match="bootstrap must be True or False, found 0.5"):
        ensemble_of(2).fit(X, Y, verbose=0, bootstrap=0.5)


def test_folds_train_each_member_on_what_others_are_validated_on():
    ensemble = ensemble_of(4)
    history = ensemble.fit(X, Y, batch_size=15, epochs=2, verbose=0, folds=4).history
    assert history["val_loss"].shape == (2, 4)
    for place, seed in enumerate(SEEDS):
        out = np.arange(60) // 15 == place
        model, single = alone(seed, X[~out], Y[~out], batch_size=15, epochs=2, validation_data=(X[out], Y[out]))
        assert_same(model, ensemble[place])
        np.testing.assert_allclose(history["val_loss"][:, place], single.history["val_loss"], rtol=1e-6)


@pytest.mark.parametrize(("folds", "message"), [(7, "from 2 to"), (1, "from 2 to"), ("4", "from 2 to")])
def test_numbers_of_folds_that_do_not_fit_are_refused(folds, message):
    with pytest.raises(ValueError, match=message):
        ensemble_of(4).fit(X, Y, verbose=0, folds=folds)


def test_folds_of_different_sizes_are_refused_with_what_to_leave_out():
    with pytest.raises(ValueError, match=r"59 rows do not divide into 4 folds.*Leave out 3.*x\[:56\]"):
        ensemble_of(4).fit(X[:59], Y[:59], verbose=0, folds=4)


# Using ----------------------------------------------------------------------------------------------------------------


def test_predictions_have_members_first_or_are_reduced():
    ensemble = ensemble_of(3)
    each = np.stack([model.predict(X, verbose=0) for model in ensemble])
    np.testing.assert_allclose(ensemble.predict(X, verbose=0), each, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ensemble.predict(X, verbose=0, reduce="mean"), each.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ensemble.predict(X, verbose=0, reduce="std"), each.std(0), rtol=1e-4, atol=1e-6)
    found = ensemble.predict(X, 16, 0, reduce=[0.0, 0.5, 1.0])
    np.testing.assert_allclose(found, np.quantile(each, [0.0, 0.5, 1.0], axis=0), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="'mean', 'std', a quantile"):
        ensemble.predict(X, verbose=0, reduce="median")
    assert (ensemble.predict(X, 16, 0, reduce=np.array([0.0, 0.5, 1.0])) == found).all()
    with pytest.raises(ValueError, match="'mean', 'std', a quantile"):
        ensemble.predict(X, verbose=0, reduce=[])


def test_evaluation_gives_a_number_for_each_member():
    ensemble = ensemble_of(3)
    loss, accuracy = ensemble.evaluate(X, Y, verbose=0)
    by_name = ensemble.evaluate(X, Y, verbose=0, return_dict=True)
    for place, model in enumerate(ensemble):
        single = model.evaluate(X, Y, verbose=0)
        np.testing.assert_allclose([loss[place], accuracy[place]], single, rtol=1e-5)
    assert by_name.keys() == {"loss", "accuracy"} and (by_name["loss"] == loss).all()


def test_a_member_trained_by_itself_is_trained_in_the_ensemble():
    ensemble = ensemble_of(2)
    ensemble[0].fit(X, Y, epochs=1, verbose=0)
    before = ensemble[0].predict(X, verbose=0)
    np.testing.assert_allclose(ensemble.predict(X, verbose=0)[0], before, rtol=1e-5, atol=1e-6)


def test_optimizers_may_be_given_by_place():
    ensemble = Ensemble(build, 2, SEEDS[:2])
    ensemble.compile(optimizer=lambda place: keras.optimizers.SGD(0.1), loss=build().loss)
    ensemble.fit(X, Y, epochs=1, verbose=0)
    assert all(isinstance(model.optimizer, keras.optimizers.SGD) for model in ensemble)


def test_a_file_holds_all_of_an_ensemble(tmp_path):
    ensemble = ensemble_of(2)
    ensemble.fit(X, Y, epochs=1, verbose=0)
    path = tmp_path / "ensemble.zip"
    ensemble.save(path)
    again = Ensemble.load(path)
    assert again.seeds == ensemble.seeds
    a, b = (one.fit(X, Y, epochs=2, verbose=0).history["loss"] for one in (ensemble, again))
    assert (a == b).all()
    with pytest.raises(FileExistsError):
        ensemble.save(path, overwrite=False)
    with pytest.raises(ValueError, match=r"ends in '\.zip'"):
        ensemble.save(tmp_path / "ensemble.keras")


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "ensemble.zip"
    ensemble_of(1).save(path)
    content = bytearray(path.read_bytes())
    for place in (40, len(content) // 2, len(content) - 30):
        changed = content.copy()
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(tf.errors.LoadError):
            Ensemble.load(path)


def with_parts(path, **changes):
    """Write a file of an ensemble anew, with other contents of some parts."""
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (found | {name.replace("_", "."): content for name, content in changes.items()}).items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": -5},
        {"seed": "7"},
        {"seed": 1.5},
        {"streams": {}},
        {"streams": {"": [-1, 2]}},
        {"layers": [[1.5, 2]]},
        {"layers": []},
    ],
    ids=str,
)
def test_damaged_streams_of_a_member_are_refused(change, tmp_path):
    path = tmp_path / "ensemble.zip"
    ensemble_of(1).save(path)
    with zipfile.ZipFile(path) as archive:
        described = json.loads(archive.read("ensemble.json"))
    described["members"][0] |= change
    with_parts(path, ensemble_json=json.dumps(described))
    with pytest.raises(tf.errors.LoadError, match="random streams of a member are damaged"):
        Ensemble.load(path)


def test_members_that_unfold_share_one_limit(tmp_path):
    path = tmp_path / "ensemble.zip"
    ensemble = Ensemble(lambda: keras.Sequential([keras.Input((500,)), keras.layers.Dense(500)]), 3)
    for model in ensemble:
        model.set_weights([np.zeros_like(one) for one in model.get_weights()])
    ensemble.save(path)
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in found.items():
            archive.writestr(name, content if name.endswith(".json") else _folded(content))
    assert path.stat().st_size < 100_000
    assert len(Ensemble.load(path, max_bytes=5_000_000)) == 3
    with pytest.raises(tf.errors.LoadError, match="max_bytes"):
        Ensemble.load(path, max_bytes=2_000_000)


def _folded(content):
    """A ZIP of the same parts, each as small as it can be."""
    small = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(small, "w", zipfile.ZIP_DEFLATED) as folded:
        for name in archive.namelist():
            folded.writestr(name, archive.read(name))
    return small.getvalue()


def test_building_leaves_the_streams_of_the_caller():
    keras.utils.set_random_seed(5)
    expected = tf.random.normal([3]).numpy(), np.random.rand()
    keras.utils.set_random_seed(5)
    ensemble_of(2)
    assert (tf.random.normal([3]).numpy() == expected[0]).all() and np.random.rand() == expected[1]


def test_build_may_take_the_seed():
    given = []
    Ensemble(lambda seed: given.append(seed) or build(), 2, SEEDS[:2])
    assert given == SEEDS[:2]
    assert len(Ensemble(build, seeds=np.arange(3))) == 3


def test_what_is_no_ensemble_is_refused():
    with pytest.raises(ValueError, match="size"):
        Ensemble(build, 0)
    with pytest.raises(ValueError, match="seeds must be a list of different integers"):
        Ensemble(build, 2, [1, 1])
    with pytest.raises(ValueError, match="size=3 needs as many seeds"):
        Ensemble(build, 3, [1, 2])
    for seeds in (5, "12", [2**63], [1.0], [True]):
        with pytest.raises(ValueError, match="seeds must be a list of different integers from 0 to"):
            Ensemble(build, seeds=seeds)
    for no_function in (None, build()):
        with pytest.raises(TypeError, match="build must be a function that returns a new model, found"):
            Ensemble(no_function, 2)
    shared = keras.layers.Dense(1)
    with pytest.raises(ValueError, match="members 0 and 1 of an ensemble share the variable 'kernel'"):
        Ensemble(lambda: keras.Sequential([keras.Input((3,)), shared]), 2)
    with pytest.raises(TypeError, match="build: a keras"):
        Ensemble(lambda: 3, 2)
    with pytest.raises(ValueError, match="compile"):
        Ensemble(lambda: keras.Sequential([keras.layers.Dense(1)]), 2).fit(X, Y)


def test_metrics_of_several_numbers_are_logged_for_each_member():
    def made():
        model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(3, "softmax")])
        model.compile("sgd", "categorical_crossentropy", metrics=[keras.metrics.F1Score()])
        return model

    labels = np.eye(3, dtype="float32")[Y]
    history = Ensemble(made, seeds=SEEDS[:2]).fit(X, labels, epochs=3, verbose=0).history
    assert history["f1_score"].shape == (3, 2, 3) and history["loss"].shape == (3, 2)
    single = alone(SEEDS[1], y=labels, model=made, epochs=3)[1].history["f1_score"]
    np.testing.assert_allclose(history["f1_score"][:, 1], single, rtol=1e-6)


def test_a_metric_of_one_s_own_reads_values_as_in_keras():
    class Largest(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="largest")
            self.held = self.add_variable((), "zeros", name="held")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.held.assign(tf.maximum(self.held.value, tf.reduce_max(y_pred)))

        def result(self):
            return self.held.value

    def made():
        model = build()
        model.compile("adam", "sparse_categorical_crossentropy", metrics=[Largest()])
        return model

    history = Ensemble(made, seeds=SEEDS[:2]).fit(X, Y, verbose=0).history
    np.testing.assert_allclose(history["largest"][:, 1], alone(SEEDS[1], model=made)[1].history["largest"], rtol=1e-6)


def test_a_history_is_drawn_as_a_band():
    pytest.importorskip("matplotlib")
    history = ensemble_of(3).fit(X, Y, epochs=3, validation_split=0.2, validation_freq=2, verbose=0)
    figure = history.plot()
    assert [axes.get_title() for axes in figure.axes] == ["loss", "val_loss"]
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), history.history["loss"].mean(axis=1))
    assert figure.axes[1].lines[0].get_xdata().tolist() == [2]
    with pytest.raises(ValueError, match="names must be among the numbers in the logs"):
        history.plot(["precision"])


@pytest.mark.parametrize(
    "callback", [keras.callbacks.CSVLogger("log.csv"), keras.callbacks.ModelCheckpoint("model.keras")], ids=["CSV", "files"]
)
def test_callbacks_that_write_files_are_made_for_each_member(callback, tmp_path):
    with pytest.raises(ValueError, match="would write the files of all members to one file"):
        ensemble_of(2).fit(X, Y, verbose=0, callbacks=[callback])
    make = lambda place: [keras.callbacks.CSVLogger(str(tmp_path / f"{place}.csv"))]
    ensemble_of(2).fit(X, Y, verbose=0, callbacks=make)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.csv", "1.csv"]


def test_the_state_of_one_fit_is_not_kept_for_many(tmp_path):
    with pytest.raises(ValueError, match="BackupAndRestore keeps the state of one"):
        ensemble_of(2).fit(X, Y, verbose=0, callbacks=lambda place: [keras.callbacks.BackupAndRestore(tmp_path)])
