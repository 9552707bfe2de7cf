"""Interrupted and resumed equals uninterrupted, bit for bit, wherever it happens.

A run is broken off by a callback after some batch and started again in a new process's place: new model, new optimizer, new
data objects, other random state. What it ends with must be what the run without interruption ends with.
"""

import json

import numpy as np
import pytest
from slow import mostly_slow

import minikeras as tf
from minikeras.compiler import executors
from minikeras.compiler.executors import llvm
from minikeras.errors import LoadError
from minikeras.nn_ops import streams

pytest.importorskip("safetensors")
Dense = tf.keras.layers.Dense
generator = np.random.default_rng(4)
X, Y = generator.normal(size=(20, 3)).astype("float32"), generator.normal(size=(20, 1)).astype("float32")
EPOCHS, STEPS = 4, 5


@pytest.fixture(autouse=True)
def streams_stay():
    before = streams.states()
    yield
    streams.set_states(before)


class Broken(Exception):
    pass


class BreakOff(tf.keras.callbacks.Callback):
    """Raises once so many batches are done."""

    def __init__(self, after):
        self.after, self.done = after, 0

    def on_train_batch_begin(self, batch, logs=None):
        if self.done == self.after:
            raise Broken
        self.done += 1


class Noise(tf.keras.layers.Layer):
    """Draws from the global stream, as a careless layer does."""

    def call(self, x, training=None):
        return x + 0.1 * tf.random.normal(x.shape) if training else x


def model_of(optimizer="adam", built=False, layers=(), **options):
    model = tf.keras.Sequential(
        [
            *([tf.keras.Input((3,))] if built else []),
            Dense(4, activation="tanh"),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Dropout(0.3),
            Noise(),
            *layers,
            Dense(1, kernel_regularizer="l2"),
        ]
    )
    model.compile(optimizer() if callable(optimizer) else optimizer, "mse", metrics=["mae"], **options)
    return model


def arrays():
    return {"x": X, "y": Y, "batch_size": 4}


def everything(model, history):
    """All that training leaves behind."""
    state = model.get_training_state()
    return {name: array.tobytes() for name, array in state["arrays"].items()}, history.history, history.epoch


def run(folder, after=None, make=model_of, data=arrays, save_freq=1, callbacks=list, seed=1, **options):
    """One process: everything made anew, and trained until it is broken off or done. Names like 'dense_7' count on."""
    streams.set_global_seed(seed)
    model = make()
    backup = tf.keras.callbacks.BackupAndRestore(folder, save_freq=save_freq, delete_checkpoint=False)
    chosen = [*callbacks(), backup, *([BreakOff(after)] if after is not None else [])]
    # The one that breaks off has no state, but callbacks must be the same ones.
    chosen += [] if after is not None else [BreakOff(None)]
    history = model.fit(**data(), epochs=EPOCHS, callbacks=chosen, verbose=0, **options)
    return everything(model, history)


def assert_resumed_equals_whole(folder, interruptions=(0, 1, 4, 5, 7, 19), **options):
    whole = run(folder / "whole", **options)
    for after in interruptions:
        place = folder / str(after)
        with pytest.raises(Broken):
            run(place, after, **options)
        assert run(place, **{**options, "seed": 99} if after else options) == whole, f"broken off after {after} batches"


# The law -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("built", mostly_slow([False, True], False))
def test_at_every_batch(tmp_path, built):
    assert_resumed_equals_whole(tmp_path, range(0, EPOCHS * STEPS, 1 if built else 6), make=lambda: model_of(built=built))


@pytest.mark.parametrize("count", [2, 3])
def test_between_executions_of_several_steps(tmp_path, count):
    assert_resumed_equals_whole(tmp_path, (0, 1, 2, 4, 7), make=lambda: model_of(steps_per_execution=count))


@pytest.mark.parametrize("save_freq", mostly_slow(["epoch", 3], 3))
def test_when_it_was_saved_some_batches_before(tmp_path, save_freq):
    whole = run(tmp_path / "whole")
    for after in (6, 9, 13):
        with pytest.raises(Broken):
            run(tmp_path / str(after), after, save_freq=save_freq)
        assert run(tmp_path / str(after), save_freq=save_freq, seed=7) == whole


def test_again_and_again(tmp_path):
    whole = run(tmp_path / "whole")
    for after in (2, 3, 0, 5, 1):
        with pytest.raises(Broken):
            run(tmp_path / "again", after, seed=after + 1 if after != 2 else 1)
    assert run(tmp_path / "again", seed=50) == whole


def schedule():
    return tf.keras.optimizers.SGD(lambda step: 0.1 / (1.0 + 0.1 * tf.cast(step, "float32")), momentum=0.9)


OPTIMIZERS = [
    *("sgd", "rmsprop", "adagrad", "adadelta", "adamax", "nadam", "ftrl", "lion", "lamb", "adafactor", "muon"),
    schedule,
    lambda: tf.keras.optimizers.AdamW(0.01, amsgrad=True, clipnorm=1.0),
    lambda: tf.keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.8),
    lambda: tf.keras.optimizers.Adam(0.01, gradient_accumulation_steps=3),
    lambda: tf.keras.optimizers.LossScaleOptimizer(tf.keras.optimizers.Adam(0.01), dynamic_growth_steps=4),
]


@pytest.mark.parametrize("optimizer", mostly_slow(OPTIMIZERS, "muon"), ids=lambda one: one if isinstance(one, str) else "")
def test_with_every_optimizer(tmp_path, optimizer):
    assert_resumed_equals_whole(tmp_path, (7,), make=lambda: model_of(optimizer))


def validated():
    return {**arrays(), "validation_data": (X[:6], Y[:6])}


CALLBACKS = {
    "reduced learning rate": lambda: [tf.keras.callbacks.ReduceLROnPlateau(patience=1, min_delta=1.0, factor=0.5)],
    "best weights put back": lambda: [
        tf.keras.callbacks.EarlyStopping(patience=9, min_delta=1.0, restore_best_weights=True),
    ],
    "scheduled": lambda: [tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.7)],
    "averages": lambda: [tf.keras.callbacks.SwapEMAWeights(swap_on_epoch=True)],
}


@pytest.mark.parametrize("kind", mostly_slow(CALLBACKS, "scheduled"))
def test_with_callbacks_that_remember(tmp_path, kind):
    averaging = kind == "averages"
    optimizer = (lambda: tf.keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.9)) if averaging else "adam"
    assert_resumed_equals_whole(
        tmp_path, (5, 8, 12), make=lambda: model_of(optimizer), callbacks=CALLBACKS[kind], data=validated
    )


def test_a_run_that_was_about_to_stop_stops(tmp_path):
    def stopping():
        return [tf.keras.callbacks.EarlyStopping(patience=1, min_delta=10.0, restore_best_weights=True)]

    options = {"callbacks": stopping, "data": validated}
    whole = run(tmp_path / "whole", **options)
    assert whole[2] == [0, 1]
    with pytest.raises(Broken):
        run(tmp_path / "b", 9, **options)
    assert run(tmp_path / "b", seed=3, **options) == whole
    assert run(tmp_path / "b", seed=4, **options) == whole, "nothing is trained after the end, and the best weights are back"


# Data ----------------------------------------------------------------------------------------------------------------------


class Batches(tf.keras.utils.PyDataset):
    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        return X[4 * index : 4 * index + 4], Y[4 * index : 4 * index + 4]


def slices():
    return tf.data.Dataset.from_tensor_slices((X, Y))


def augmented(x, y):
    return x + 0.1 * tf.random.normal(x.shape), y


def looped():
    while True:
        yield from (Batches()[index] for index in range(STEPS))


DATA = {
    "in order": lambda: {**arrays(), "shuffle": False},
    "batches shuffled": lambda: {**arrays(), "shuffle": "batch"},
    "weights": lambda: {**arrays(), "sample_weight": np.arange(20.0)},
    "seeded shuffle": lambda: {"x": slices().shuffle(20, seed=5).batch(4)},
    "small buffer": lambda: {"x": slices().shuffle(7).batch(4)},
    "fixed order": lambda: {"x": slices().shuffle(20, seed=2, reshuffle_each_iteration=False).batch(4)},
    "prefetched": lambda: {"x": slices().shuffle(20).batch(4).prefetch(2)},
    "repeated": lambda: {"x": slices().shuffle(20).repeat().batch(4).prefetch(3), "steps_per_epoch": 7},
    "steps across passes": lambda: {"x": slices().shuffle(20).batch(4), "steps_per_epoch": 3},
    "augmented": lambda: {"x": slices().batch(4).map(augmented)},
    "a sequence": lambda: {"x": Batches()},
    "a sequence in threads": lambda: {"x": Batches(workers=3, max_queue_size=2)},
    "a generator": lambda: {"x": looped(), "steps_per_epoch": STEPS},
}


@pytest.mark.parametrize("kind", mostly_slow(DATA, "weights", "seeded shuffle"))
def test_with_every_form_of_data(tmp_path, kind):
    assert_resumed_equals_whole(tmp_path, (3, 6, 11), data=DATA[kind])


# What is saved ---------------------------------------------------------------------------------------------------------------


def test_a_state_is_arrays_and_what_json_can_hold():
    model = model_of()
    model.fit(**arrays(), epochs=1, verbose=0)
    state = model.get_training_state()
    assert all(isinstance(array, np.ndarray) for array in state["arrays"].values())
    assert json.loads(json.dumps(state["values"], allow_nan=False)) == state["values"]
    names = set(state["arrays"])
    assert {"optimizer/0/iteration", "metrics/loss/0/total", "metrics/mae/1/count"} <= names
    assert "model/0/sequential/dense/kernel" in names
    assert len(names) == len(model.variables) + len(model.optimizer.variables) + 4


def test_a_state_taken_by_hand_continues_by_hand():
    kept = []

    class Keep(tf.keras.callbacks.Callback):
        runs_last = True

        def on_train_batch_end(self, batch, logs=None):
            kept.append(self.model.get_training_state())

    def made(seed):
        streams.set_global_seed(seed)
        return model_of(built=True)

    def fitted(model):
        return everything(model, model.fit(**arrays(), epochs=EPOCHS, callbacks=[Keep()], verbose=0))

    whole = fitted(made(1))
    again = made(77)
    again.optimizer.build(again.trainable_variables)
    again.set_training_state(kept[7])
    again.evaluate(X, Y, verbose=0)
    assert fitted(again) == whole
    unbuilt = model_of()
    with pytest.raises(ValueError, match="belongs to another model or optimizer: the model lacks"):
        unbuilt.set_training_state(kept[7])


def test_the_file_is_gone_when_training_is_done_and_another_model_is_refused(tmp_path):
    with pytest.raises(Broken):
        run(tmp_path, 6)
    before = (tmp_path / "training_state.safetensors").read_bytes()
    with pytest.raises(ValueError, match="belongs to another model or optimizer: .*the model lacks .*velocity"):
        run(tmp_path, make=lambda: model_of("sgd"))
    with pytest.raises(ValueError, match="has shape .* here and .* in the state|lacks"):
        run(tmp_path, make=lambda: model_of(layers=[Dense(2)]))
    with pytest.raises(ValueError, match=r"belongs to the callbacks \['History'.*\], found \['EarlyStopping', 'History'"):
        run(tmp_path, callbacks=lambda: [tf.keras.callbacks.EarlyStopping("loss")])
    assert (tmp_path / "training_state.safetensors").read_bytes() == before
    model = model_of()
    model.fit(**arrays(), callbacks=[tf.keras.callbacks.BackupAndRestore(tmp_path / "new")], verbose=0)
    assert not (tmp_path / "new").exists()


def test_callbacks_whose_state_is_empty_when_training_begins_get_theirs_back(tmp_path):
    class Ends(tf.keras.callbacks.Callback):
        ends = {}

        def on_epoch_end(self, epoch, logs=None):
            self.ends = self.ends | {f"epoch {epoch}": logs["loss"]}

        get_state = lambda self: self.ends
        set_state = lambda self, state: setattr(self, "ends", dict(state))

    kept = []

    def callbacks():
        kept.append(Ends())
        return kept[-1:]

    with pytest.raises(Broken):
        run(tmp_path, 6, callbacks=callbacks)
    run(tmp_path, callbacks=callbacks)
    assert len(kept[1].ends) == EPOCHS and len(kept[0].ends) == 6 // STEPS


def test_a_damaged_file_is_an_error_and_not_a_new_start(tmp_path):
    with pytest.raises(Broken):
        run(tmp_path, 6)
    path = tmp_path / "training_state.safetensors"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(LoadError):
        run(tmp_path)


def test_no_state_is_taken_during_validation():
    class Ask(tf.keras.callbacks.Callback):
        def on_test_batch_end(self, batch, logs=None):
            self.model.get_training_state()

    with pytest.raises(RuntimeError, match="cannot be taken during validation. Take it after a batch or an epoch"):
        model_of().fit(X, Y, validation_split=0.5, callbacks=[Ask()], verbose=0)


def test_what_cannot_be_kept_is_named_by_its_place():
    class Odd(tf.keras.callbacks.Callback):
        runs_last = True

        def get_state(self):
            return {"thing": [object()]}

        def on_epoch_end(self, epoch, logs=None):
            self.model.get_training_state()

    with pytest.raises(TypeError, match="holds an object at values/position/callbacks/1/state/thing/0; numbers, text and"):
        model_of().fit(X, Y, callbacks=[Odd()], verbose=0)


# LLVM ---------------------------------------------------------------------------------------------


needs_llvm = pytest.mark.skipif(not llvm.installed(), reason="llvmlite and SciPy are not installed")


@pytest.fixture(params=[True, pytest.param("auto", marks=pytest.mark.slow)])
def by_llvm(request, monkeypatch):
    """What `jit_compile` is, where every run is long enough for LLVM."""
    monkeypatch.setattr(executors, "COMPILING", 0.0)
    return request.param


@needs_llvm
@pytest.mark.parametrize("built", mostly_slow([True, False], True))
def test_steps_of_llvm_resume_the_same(tmp_path, by_llvm, built):
    assert_resumed_equals_whole(tmp_path, (0, 1, 7, 12), make=lambda: model_of(built=built, jit_compile=by_llvm), data=uneven)


def uneven():
    return {**arrays(), "batch_size": 6}


@needs_llvm
@pytest.mark.parametrize("built", [True, False])
@pytest.mark.parametrize("optimizer", mostly_slow(["adam", "sgd"], "adam"))
def test_steps_of_llvm_go_on_the_same_from_a_checkpoint(tmp_path, by_llvm, built, optimizer):
    def fitted(model, **options):
        streams.set_global_seed(3)
        return model.fit(X, Y, batch_size=6, shuffle=False, verbose=0, epochs=4, **options).history["loss"]

    def weights(model):
        return [variable.numpy().tobytes() for variable in (*model.weights, *model.optimizer.variables)]

    class Halfway(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 1:
                tf.train.Checkpoint(model=self.model, optimizer=self.model.optimizer).write(str(tmp_path / "half"))
                streams.set_global_seed(3)

    def made():
        tf.keras.utils.clear_session()
        streams.set_global_seed(1)
        entrance = [tf.keras.Input((3,))] if built else []
        layers = [*entrance, Dense(4, activation="tanh"), tf.keras.layers.BatchNormalization(), Dense(1)]
        model = tf.keras.Sequential(layers)
        model.compile(optimizer, "mse", metrics=["mae"], jit_compile=by_llvm)
        return model

    whole = made()
    history = fitted(whole, callbacks=[Halfway()])
    resumed = made()
    tf.train.Checkpoint(model=resumed, optimizer=resumed.optimizer).read(str(tmp_path / "half"))
    assert fitted(resumed, initial_epoch=2) == history[2:]
    assert weights(resumed) == weights(whole)


@needs_llvm
def test_llvm_carries_out_the_first_step_too_and_python_runs_twice(capsys):
    v, w = tf.Variable([1.0, 2.0]), tf.Variable(0.0)

    @tf.function(jit_compile=True)
    def step(x):
        print("Python runs")
        w.assign_add(1.0)
        v.assign(tf.exp(v * x) * 0.1 + tf.random.uniform([2]))
        return v.value(), w.value()

    x = tf.constant([0.3, 0.7])
    found = []
    for _ in range(2):
        v.assign([1.0, 2.0]), w.assign(0.0)
        streams.set_global_seed(1)
        found.append([[value.numpy().tobytes() for value in step(x)] for _ in range(3)])
    assert found[0] == found[1], "the first calls, which were recorded, have the bits of a replay"
    assert capsys.readouterr().out == "Python runs\n" * 2, "both recorded runs print"
    assert (step.recordings, step.replays) == (1, 5)
