"""Recurrent layers beside the numbers of Keras (test_golden_recurrent.py): cells, dropout, state, and the laws of training."""

import json
import re

import numpy as np
import pytest
from slow import diagonal, sampled

import minikeras as tf
from minikeras import nest
from minikeras.nn_ops import scan as loops
from minikeras.nn_ops import streams

keras = tf.keras
L = keras.layers
optimizers = keras.optimizers
generator = np.random.default_rng(5)
X = generator.normal(size=(24, 6, 3)).astype("float32")
Y = X.sum((1, 2), keepdims=True)[:, 0]
CELLS = {"simple": L.SimpleRNNCell, "gru": L.GRUCell, "lstm": L.LSTMCell}
LAYERS = {"simple": L.SimpleRNN, "gru": L.GRU, "lstm": L.LSTM}
each_kind = pytest.mark.parametrize("kind", CELLS)


def by_hand(cell, x, states, **options):
    """The outputs of a cell, step by step."""
    found = []
    for step in range(x.shape[1]):
        output, states = cell(x[:, step], states, **options)
        found.append(output)
    return tf.stack(found, 1), states


def count_of_loops(monkeypatch):
    """The bodies of loops that are carried out from here on."""
    bodies, run = [], loops.run
    monkeypatch.setattr(loops, "run", lambda body, *rest: (bodies.append(body), run(body, *rest))[1])
    return bodies


# Cells -------------------------------------------------------------------------------------------------------------------


@each_kind
def test_a_layer_is_its_cell_step_by_step(kind):
    layer = LAYERS[kind](4, return_sequences=True, return_state=True)
    y, *states = layer(X)
    expected, last = by_hand(layer.cell, tf.constant(X), layer.cell.get_initial_state(24))
    np.testing.assert_allclose(y, expected, atol=1e-6)
    np.testing.assert_allclose(states, last, atol=1e-6)


class Own(L.Layer):
    """A cell as users write them: any states, sublayers, a penalty, noise, printing, as asked for."""

    def __init__(self, units=2, does="", **options):
        super().__init__(**options)
        self.units, self.does = units, does
        self.state_size = [units, units]
        self.output_size = units + 1
        self.dense = L.Dense(units)
        self.dropout = L.Dropout(0.5, seed=1)
        self.seen = []

    def build(self, shape):
        self.dense.build(shape)

    def call(self, inputs, states, training=False):
        a, b = states
        h = tf.tanh(self.dense(inputs) + a)
        if self.does == "draws":
            h = self.dropout(h, training=training)
        if self.does == "adds a loss":
            self.add_loss(tf.reduce_sum(h))
        if self.does == "asks":
            self.seen.append(float(tf.reduce_sum(h)))
        return tf.concat([h, b[:, :1]], 1), [h, a + b]


@pytest.mark.parametrize("does", ["", "draws", "adds a loss", "asks"])
def test_a_cell_of_the_user_s_gives_what_it_would_step_by_step(does, monkeypatch):
    layer, bodies = L.RNN(Own(does=does), return_sequences=True), count_of_loops(monkeypatch)
    y = layer(X, training=True)
    losses = len(layer.losses)
    assert bool(bodies) == (not does)
    assert losses == (6 if does == "adds a loss" else 0)
    assert layer.compute_output_shape((24, 6, 3)) == y.shape
    same = Own(does=does)
    same.build((24, 3))
    same.set_weights(layer.get_weights())
    expected, _ = by_hand(same, tf.constant(X), [tf.zeros([24, 2])] * 2, training=True)
    np.testing.assert_allclose(y, expected, atol=1e-6)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(X)) + sum(layer.losses)
    assert all(g is not None for g in tape.gradient(loss, layer.trainable_weights))


def test_a_step_that_counts_calls_is_not_repeated_from_a_recording(monkeypatch):
    bodies = count_of_loops(monkeypatch)

    class Counts(L.Layer):
        state_size, calls = 3, 0

        def call(self, inputs, states):
            self.calls += 1
            return inputs * float(self.calls), [states[0] + 1.0]

    y = L.RNN(Counts(), return_sequences=True)(X)
    assert not bodies
    assert len(np.unique((y / X).numpy().round())) == 6


def test_masks_of_a_cell_whose_states_are_not_its_output():
    layer = L.RNN(Own(), return_sequences=True, return_state=True)
    mask = np.array([[False, True, True, False, True, False]] * 24)
    y, *states = layer(X, mask=mask)
    kept, *expected = layer(X[:, [1, 2, 4]])
    y = y.numpy()
    np.testing.assert_allclose(y[:, [1, 2, 4]], kept, atol=1e-6)
    np.testing.assert_array_equal(y[:, 3], y[:, 2])
    assert not y[:, 0].any()
    np.testing.assert_allclose(states, expected, atol=1e-6)
    layer.zero_output_for_mask = True
    assert not layer(X, mask=mask)[0].numpy()[:, ~mask[0]].any()


def test_states_are_nested_as_cells_are():
    cells = [L.LSTMCell(3), L.StackedRNNCells([L.GRUCell(2), L.SimpleRNNCell(4)]), Own()]
    layer = L.RNN(cells, return_state=True)
    y, *states = layer(X)
    shapes = nest.map_structure(lambda x: tuple(x.shape), states)
    assert shapes == [[(24, 3), (24, 3)], [[(24, 2)], [(24, 4)]], [(24, 2), (24, 2)]]
    again = layer(X, initial_state=states)[0]
    assert again.shape == y.shape == (24, 3)
    assert not np.allclose(again, y)


# Dropout -----------------------------------------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("options", [{"dropout": 0.5}, {"recurrent_dropout": 0.5}, {"dropout": 0.4, "recurrent_dropout": 0.3}])
def test_what_dropout_lets_through_is_the_same_in_each_step_and_repeats_by_its_seed(kind, options):
    layer, same = (LAYERS[kind](4, return_sequences=True, seed=3, **options) for _ in range(2))
    same.build(X.shape)
    layer.build(X.shape)
    same.set_weights(layer.get_weights())
    y = layer(X, training=True)
    np.testing.assert_array_equal(y, same(X, training=True))
    assert not np.allclose(y, layer(X, training=True))
    np.testing.assert_array_equal(layer(X), same(X))
    cell = CELLS[kind](4, seed=3, **options)
    cell.build((24, 3))
    cell.set_weights(layer.get_weights())
    expected, _ = by_hand(cell, tf.constant(X), cell.get_initial_state(24), training=True)
    np.testing.assert_allclose(y, expected, atol=1e-6)


@pytest.mark.parametrize("nested", [False, True])
def test_each_cell_of_several_draws_for_its_own_inputs(nested):
    last = L.GRUCell(4, dropout=0.5, recurrent_dropout=0.5, seed=2)
    layer = L.RNN([L.LSTMCell(5, dropout=0.5, seed=1), L.StackedRNNCells([last]) if nested else last])
    assert layer(X, training=True).shape == (24, 4)
    assert len({layer(X, training=True).numpy().tobytes() for _ in range(3)}) == 3


# Shapes, masks and state -------------------------------------------------------------------------------------------------


def test_series_of_any_length_and_batch():
    model = keras.Sequential([keras.Input((None, 3)), L.LSTM(4, return_sequences=True), L.Bidirectional(L.GRU(2)), L.Dense(1)])
    assert model.layers[0].output.shape == (None, None, 4)
    for batch, steps in ((1, 1), (3, 7), (24, 2)):
        assert model(tf.ones([batch, steps, 3])).shape == (batch, 1)


def test_padded_steps_change_nothing():
    tokens = np.array([[3, 1, 2, 0, 0], [4, 4, 0, 0, 0]])
    model = keras.Sequential([L.Embedding(5, 3, mask_zero=True), L.LSTM(3, return_sequences=True), L.Bidirectional(L.GRU(2))])
    np.testing.assert_allclose(model(tokens)[0], model(tokens[:1, :3])[0], atol=1e-6)
    np.testing.assert_allclose(model(tokens)[1], model(tokens[1:, :2])[0], atol=1e-6)


def test_several_outputs_of_a_functional_model():
    series, first = keras.Input((5, 3)), keras.Input((4,))
    y, h, c = L.LSTM(4, return_state=True, return_sequences=True)(series, initial_state=[first, first])
    model = keras.Model([series, first], [y, h, c])
    assert [one.shape for one in model.outputs] == [(None, 5, 4), (None, 4), (None, 4)]
    rows, last, _ = model([X[:2, :5], np.ones((2, 4), "float32")])
    np.testing.assert_array_equal(rows[:, -1], last)


def test_a_stateful_model_goes_on_from_batch_to_batch_in_fit(tmp_path):
    def made():
        tf.random.set_seed(1)
        model = keras.Sequential([keras.Input(batch_shape=(8, 6, 3)), L.GRU(4, stateful=True), L.Dense(1)])
        model.compile("sgd", "mse")
        return model

    model, other = made(), made()
    model.fit(X, Y, batch_size=8, shuffle=False, verbose=0)
    other.run_eagerly = True
    other.fit(X, Y, batch_size=8, shuffle=False, verbose=0)
    (state,), (expected,) = model.layers[0].states, other.layers[0].states
    np.testing.assert_array_equal(state, expected)
    assert state.numpy().any()
    assert len(model.weights) == 5
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    model.layers[0].reset_states()
    np.testing.assert_allclose(loaded.predict(X[:8], batch_size=8), model.predict(X[:8], batch_size=8), atol=1e-6)
    with pytest.raises(ValueError, match=re.escape("must have 8 rows")):
        model.layers[0](X[:4])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: L.LSTM(0), "units"),
        (lambda: L.LSTM(2, use_cudnn="never"), "use_cudnn"),
        (lambda: L.GRU(2, unit_forget_bias=True), "unit_forget_bias"),
        (lambda: L.RNN(object()), "`call`"),
        (lambda: L.Bidirectional(L.LSTM(2), merge_mode="max"), "merge_mode"),
        (lambda: L.Bidirectional(L.LSTM(2), backward_layer=L.LSTM(2)), "go_backwards"),
        (lambda: L.Bidirectional(3), "layer"),
        (lambda: L.LSTM(2, stateful=True).build((None, 3, 4)), "batch size"),
        (lambda: L.LSTM(2)(tf.ones([2, 0, 3])), "no steps"),
        (lambda: L.ConvLSTM2D(2, 3, strides=2, dilation_rate=2), "strides"),
        (lambda: L.ConvLSTM2D(2, 3)(tf.ones([2, 3, 4, 4])), "ConvLSTM2D|conv_lstm2d"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# Laws of training --------------------------------------------------------------------------------------------------------


def network(optimizer="adam", kind="lstm", seed=1, **options):
    tf.random.set_seed(seed)
    layer = LAYERS[kind](3, kernel_regularizer="l2", bias_constraint="non_neg", name="series", **options)
    model = keras.Sequential([keras.Input((6, 3)), layer, L.Dense(1, name="head")])
    model.compile(optimizer() if callable(optimizer) else optimizer, "mse")
    return model


def assert_same(first, second, tolerance=0.0):
    pairs = zip(first.variables + first.optimizer.variables, second.variables + second.optimizer.variables, strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance, err_msg=a.name)


OPTIMIZERS = {
    "adam": "adam",
    "per layer": lambda: optimizers.PerLayer({"series": optimizers.Adam(0.01), "head": optimizers.SGD(0.1)}),
    "newton_cg": lambda: optimizers.NewtonCG(max_iterations=5),
    "newton_cg per layer": lambda: optimizers.PerLayer(
        {"series": optimizers.NewtonCG(max_iterations=5), "head": optimizers.Adam()}
    ),
    "gauss_newton": lambda: optimizers.GaussNewton(damping=0.1),
}


@each_kind
@pytest.mark.parametrize("optimizer", sampled(OPTIMIZERS, 3))
def test_recorded_steps_have_the_bits_of_eager_ones(kind, optimizer):
    options = {"dropout": 0.2, "recurrent_dropout": 0.1, "seed": 1} if optimizer == "adam" else {}
    eager, recorded = (network(OPTIMIZERS[optimizer], kind, **options) for _ in range(2))
    eager.run_eagerly = True
    losses = [model.fit(X, Y, batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"] for model in (eager, recorded)]
    assert_same(eager, recorded, 0.0 if optimizer in ("adam", "per layer") else 1e-5)
    assert losses[0][-1] < losses[0][0] or optimizer == "gauss_newton"


def test_kernels_of_llvm_train_nearly_the_same():
    pytest.importorskip("llvmlite")
    numpy_s, llvm_s = network(dropout=0.2, seed=1), network(dropout=0.2, seed=1)
    llvm_s.compile("adam", "mse", jit_compile=True)
    for model in (numpy_s, llvm_s):
        model.fit(X, Y, batch_size=8, epochs=3, shuffle=False, verbose=0)
    assert_same(numpy_s, llvm_s, 1e-5)


ENSEMBLES = {
    **{
        kind: lambda cls=cls: cls(3, kernel_regularizer="l2", dropout=0.2, recurrent_dropout=0.1)
        for kind, cls in LAYERS.items()
    },
    "own cell": lambda: L.RNN(Own()),
    "both": lambda: L.Bidirectional(L.LSTM(2)),
}


@pytest.mark.parametrize("kind", ENSEMBLES)
def test_members_of_an_ensemble_equal_models_alone(kind, monkeypatch):
    seeds, fallbacks, bodies = (1, 5, 9), dict(tf.autodiff.loop_fallbacks), count_of_loops(monkeypatch)

    def built():
        layer = ENSEMBLES[kind]()
        model = keras.Sequential([keras.Input((6, 3)), layer, L.Dense(2)])
        model.compile("adam", "mse")
        return model

    ensemble = tf.experiments.Ensemble(built, 3, seeds)
    ensemble.fit(X, np.repeat(Y, 2, 1), batch_size=8, epochs=2, shuffle=False, verbose=0)
    for place, seed in enumerate(seeds):
        tf.random.set_seed(seed)
        alone = built()
        alone.fit(X, np.repeat(Y, 2, 1), batch_size=8, epochs=2, shuffle=False, verbose=0)
        assert_same(alone, ensemble[place], 1e-6)
    assert bodies and dict(tf.autodiff.loop_fallbacks) == fallbacks


@pytest.mark.parametrize("optimizer", ["newton_cg", "newton_cg per layer"])
def test_members_with_second_order_equal_models_alone(optimizer):
    def built():
        model = keras.Sequential([keras.Input((6, 3)), L.LSTM(3, name="series"), L.Dense(1, name="head")])
        model.compile(OPTIMIZERS[optimizer](), "mse")
        return model

    ensemble = tf.experiments.Ensemble(built, 2, (1, 5))
    ensemble.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    for place, seed in enumerate((1, 5)):
        tf.random.set_seed(seed)
        alone = built()
        alone.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0)
        assert_same(alone, ensemble[place], 1e-6)


class Broken(Exception):
    """What breaks off a run."""


class BreakOff(keras.callbacks.Callback):
    def __init__(self, after):
        self.after = after

    def on_train_batch_begin(self, batch, logs=None):
        if self.after == 0:
            raise Broken
        self.after -= 1


@pytest.mark.parametrize("optimizer, stateful", diagonal(["adam", "newton_cg", "newton_cg per layer"], [False, True]))
def test_a_run_that_was_broken_off_is_resumed_bit_for_bit(tmp_path, optimizer, stateful):
    pytest.importorskip("safetensors")

    def run(folder, after=-1):
        tf.random.set_seed(1)
        layer = L.LSTM(3, dropout=0.2 if optimizer == "adam" else 0.0, stateful=stateful, name="series")
        model = keras.Sequential([keras.Input(batch_shape=(8, 6, 3)), layer, L.Dense(1, name="head")])
        chosen = OPTIMIZERS[optimizer]
        model.compile(chosen() if callable(chosen) else chosen, "mse")
        backup = keras.callbacks.BackupAndRestore(folder, save_freq=1, delete_checkpoint=False)
        model.fit(X, Y, batch_size=8, epochs=3, verbose=0, shuffle=False, callbacks=[backup, BreakOff(after)])
        return {name: array.tobytes() for name, array in model.get_training_state()["arrays"].items()}

    before = streams.states()
    try:
        whole = run(tmp_path / "whole")
        for after in (1, 4, 8):
            with pytest.raises(Broken):
                run(tmp_path / str(after), after)
            assert run(tmp_path / str(after)) == whole
    finally:
        streams.set_states(before)


@each_kind
def test_second_derivatives_of_models_are_the_numerical_ones(kind):
    layer = LAYERS[kind](2, dtype="float64", return_sequences=True)
    x = tf.constant(X[:2, :3].astype("float64"))
    layer(x)
    check = tf.test.check_gradients(lambda one: layer(one), [x])
    assert check.first < 1e-7 and check.second < 1e-6


def test_a_configuration_is_plain_data():
    layer = L.Bidirectional(L.RNN([L.LSTMCell(2), L.GRUCell(3, reset_after=False)], return_sequences=True), merge_mode="sum")
    layer = L.Bidirectional(L.LSTM(2, recurrent_constraint="max_norm", dropout=0.1), name="both", weights=None)
    config = json.loads(json.dumps(layer.get_config()))
    assert json.loads(json.dumps(L.Bidirectional.from_config(config).get_config())) == config


# Recordings --------------------------------------------------------------------------------------------------------------


def test_the_step_is_one_instruction_and_products_of_the_inputs_are_outside():
    layer = L.LSTM(4)
    layer.build((2, 6, 3))
    function, x = tf.function(lambda x: layer(x)), tf.ones([2, 6, 3])
    function(x)
    program = str(function.program(x))
    lines = [line for line in program.split("\n") if "scan" in line]
    assert len(lines) == 1
    assert lines[0].count("matrix_product") == 1
    assert "float32[12,3]" in program


def test_nothing_is_saved_for_a_derivative_that_no_tape_watches(monkeypatch):
    layer, seen, loop = L.LSTM(4), [], loops.loop
    layer.build((2, 6, 3))
    monkeypatch.setattr(loops, "loop", lambda *a, **o: (seen.append(len(o["body"].results)), loop(*a, **o))[1])
    layer(X)
    with tf.GradientTape():
        layer(X)
    assert seen[0] == 2 < seen[1]


class NormalizedCell(tf.keras.layers.Layer):
    """A cell of layers that has no `build`, as many guides write it."""

    def __init__(self, units, **options):
        super().__init__(**options)
        self.state_size = self.output_size = units
        self.cell, self.norm = tf.keras.layers.SimpleRNNCell(units, activation=None), tf.keras.layers.LayerNormalization()

    def call(self, inputs, states):
        outputs = tf.tanh(self.norm(self.cell(inputs, states)[0]))
        return outputs, [outputs]


@pytest.mark.parametrize("stacked", [False, True])
def test_a_cell_made_of_layers_needs_no_build(stacked):
    cell = [NormalizedCell(3, name="a"), NormalizedCell(3, name="b")] if stacked else NormalizedCell(3, name="a")
    model = tf.keras.Sequential([tf.keras.Input((None, 2)), tf.keras.layers.RNN(cell, return_sequences=True)])
    shapes = [tuple(one.shape) for one in model.weights]
    assert shapes == [(2, 3), (3, 3), (3,), (3,), (3,)] + [(3, 3), (3, 3), (3,), (3,), (3,)] * stacked
    x = np.random.default_rng(0).normal(size=(2, 4, 2)).astype("float32")
    weights = [one.numpy() for one in model.weights]
    state = [np.zeros((2, 3), "float32")] * (1 + stacked)
    for step in range(4):
        y = x[:, step]
        for k, (kernel, recurrent, bias, gamma, beta) in enumerate(zip(*[iter(weights)] * 5, strict=True)):
            y = y @ kernel + state[k] @ recurrent + bias
            spread = np.sqrt(y.var(-1, keepdims=True) + 1e-3)
            state[k] = y = np.tanh((y - y.mean(-1, keepdims=True)) / spread * gamma + beta)
        np.testing.assert_allclose(model(x)[:, step], y, atol=1e-5)
    model.compile("sgd", "mse")
    assert len(model.fit(x, np.ones((2, 4, 3)), verbose=0, epochs=3).history["loss"]) == 3


def test_as_many_first_states_as_a_cell_has_are_needed():
    with pytest.raises(ValueError, match="`initial_state` must be 2 tensors, found 1"):
        L.LSTM(4)(tf.constant(X), initial_state=tf.zeros([len(X), 4]))
