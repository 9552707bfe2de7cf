"""Pickles and deep copies of models: they are whole, and they go on as the original would."""

import copy
import operator
import pathlib
import pickle
import subprocess
import sys
import types

import numpy as np
import pytest
from slow import sampled
from test_public_names import public_names

import minikeras as tf

keras = tf.keras
layers = keras.layers
COPIES = {"pickle": lambda thing: pickle.loads(pickle.dumps(thing)), "deepcopy": copy.deepcopy}
X = np.random.default_rng(0).random((24, 3)).astype("float32")
Y = X.sum(axis=1, keepdims=True)


@keras.saving.register_keras_serializable(package="tests_of_pickling")
class Registered(keras.Model):
    """A subclass with a configuration."""

    def __init__(self, units=4, **options):
        super().__init__(**options)
        self.units = units
        self.hidden, self.dropout, self.head = layers.Dense(units), layers.Dropout(0.5), layers.Dense(1)

    def call(self, inputs, training=None):
        return self.head(self.dropout(self.hidden(inputs), training=training))


class Unregistered(keras.Model):
    """A subclass around a model and an argument that no configuration could describe."""

    def __init__(self, inner, note):
        super().__init__()
        self.inner, self.note = inner, note

    def call(self, inputs):
        return self.inner(inputs)


def chain(steps):
    outputs = inputs = keras.Input((3,))
    for step in steps:
        outputs = step(outputs)
    return keras.Model(inputs, outputs)


def sequential():
    hidden = [layers.Dense(4, activation="relu"), layers.BatchNormalization(), layers.Dropout(0.5)]
    return keras.Sequential([keras.Input((3,)), *hidden, layers.Dense(1)])


def functional():
    inputs = keras.Input((3,))
    shared = layers.Dense(3)
    return keras.Model(inputs, layers.Dense(1)(shared(shared(inputs)) + inputs))


MODELS = {
    "sequential": sequential,
    "functional": functional,
    "registered subclass": Registered,
    "unregistered subclass": lambda: Unregistered(sequential(), {1, 2}),
}


def trained(make, optimizer="adam"):
    tf.random.set_seed(1)
    model = make()
    model.compile(optimizer, "mse", metrics=["mae"])
    model.fit(X, Y, epochs=2, batch_size=8, verbose=0)
    return model


def gone_on(model):
    """The losses of three more epochs, and the weights after them."""
    tf.random.set_seed(5)
    return model.fit(X, Y, epochs=3, batch_size=8, verbose=0).history, [w.tolist() for w in model.get_weights()]


@pytest.mark.parametrize("duplicate", sampled(COPIES.values(), 2), ids=COPIES)
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_copy_of_a_trained_model_goes_on_exactly_as_the_original(make, duplicate):
    model = trained(make)
    twin = duplicate(model)
    assert type(twin) is type(model) and twin.compiled
    assert np.array_equal(twin.predict(X, verbose=0), model.predict(X, verbose=0))
    assert [w.name for w in twin.optimizer.variables] == [w.name for w in model.optimizer.variables]
    before = model.get_weights()
    continued = gone_on(twin)
    assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))  # nothing is shared
    assert continued == gone_on(model)


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("make", [sequential, functional, Registered])
def test_a_model_that_was_not_compiled_stays_so(make, duplicate):
    model = make()
    model(X)
    twin = duplicate(model)
    assert not twin.compiled and np.array_equal(twin(X).numpy(), model(X).numpy())


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_a_model_without_weights_makes_its_own_later(duplicate):
    model = keras.Sequential([layers.Dense(2)])
    twin = duplicate(model)
    twin.build((None, 3))
    assert (twin.built, model.built) == (True, False)


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.01, 3, 0.5), momentum=0.9, nesterov=True),
        lambda: keras.optimizers.AdamW(use_ema=True, ema_overwrite_frequency=2),
        lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.RMSprop()),
        keras.optimizers.LBFGS,
        keras.optimizers.Muon,
    ],
    ids=["schedule", "average", "loss scale", "second order", "matrices"],
)
def test_what_an_optimizer_keeps_is_copied(optimizer, duplicate):
    model = trained(functional, optimizer())
    assert gone_on(duplicate(model)) == gone_on(model)


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_what_two_models_share_is_shared_by_their_copies(duplicate):
    encoder = keras.Sequential([keras.Input((3,)), layers.Dense(2)])
    whole = keras.Sequential([keras.Input((3,)), encoder, layers.Dense(3)])
    part, both = duplicate((encoder, whole))
    assert both.layers[0] is part and part is not encoder


@pytest.mark.slow
@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("make", [chain, lambda steps: keras.Sequential([keras.Input((3,)), *steps])], ids=["graph", "chain"])
def test_a_model_of_many_layers_is_copied_without_deep_recursion(duplicate, make):
    model = make([layers.Identity() for _ in range(500)])
    twin = duplicate(model)
    assert len(twin.layers) == len(model.layers) and np.array_equal(twin(X).numpy(), X)


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_the_history_of_training_is_copied_without_the_model(duplicate):
    model = trained(sequential)
    twin, alone = duplicate(model), duplicate(model.history)
    for history in (twin.history, alone):
        assert history.history == model.history.history and history.model is None
    assert model.history.model is model


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_a_generator_of_random_numbers_is_copied_where_it_stands(duplicate):
    model = keras.Sequential([layers.Dense(1)])
    model.noise = tf.random.Generator.from_seed(3)
    model.noise.normal([2])
    twin = duplicate(model)
    drawn = [twin.noise.normal([3]).numpy().tolist() for _ in range(2)]
    assert drawn == [model.noise.normal([3]).numpy().tolist() for _ in range(2)] and drawn[0] != drawn[1]


def test_a_policy_of_mixed_precision_is_copied():
    model = keras.Sequential([keras.Input((3,)), layers.Dense(1, dtype="mixed_float16")])
    twin = pickle.loads(pickle.dumps(model))
    assert twin.layers[0].dtype_policy.name == "mixed_float16" and twin(X).dtype == "float16"


@pytest.mark.host
def test_another_process_reads_a_pickle_and_trains_on(tmp_path: pathlib.Path):
    model = trained(functional)
    file = tmp_path / "model.pickle"
    file.write_bytes(pickle.dumps((model, X, Y)))
    program = (
        "import pickle, sys, numpy\n"
        "model, x, y = pickle.load(open(sys.argv[1], 'rb'))\n"
        "before = model.predict(x, verbose=0)\n"
        "model.fit(x, y, verbose=0)\n"
        "sys.stdout.write(repr(before.tolist()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(file)],
        cwd=pathlib.Path(tf.__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout == repr(model.predict(X, verbose=0).tolist())


def test_what_python_cannot_pickle_is_named():
    model = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
    model.compile("sgd", loss=lambda y_true, y_pred: tf.reduce_mean(tf.square(y_true - y_pred)))
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(model)


def test_every_public_function_is_pickled_by_its_name():
    public = {name: operator.attrgetter(name.partition(".")[2])(tf) for name in public_names()}
    functions = {name: value for name, value in public.items() if isinstance(value, types.FunctionType)}
    assert len(functions) > 400
    for name, function in functions.items():
        assert pickle.loads(pickle.dumps(function)) is function, name


@pytest.mark.parametrize("function", [keras.ops.sum, keras.ops.relu, keras.ops.image.resize, keras.ops.qr, keras.ops.fft])
def test_pickles_name_functions_of_ops_as_users_do(function):
    """So that they hold when a file of the package is moved."""
    assert function.__module__ in [f"minikeras.keras.ops.{name}" for name in ("numpy", "nn", "image", "linalg", "math")]


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu6", tf.nn.softplus])
def test_models_with_functions_as_activations_are_pickled(activation):
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(3, activation)])
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied(tf.ones([1, 2])), model(tf.ones([1, 2])))
