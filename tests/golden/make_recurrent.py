"""Writes recurrent.json, what Keras's recurrent layers compute in float64, with gradients, and what a model of them predicts,
which is in files/recurrent.keras and .weights.h5.

Run with `KERAS_BACKEND=jax JAX_ENABLE_X64=1 python tests/golden/make_recurrent.py`.
"""

from __future__ import annotations

import json
import pathlib

import jax
import keras
import numpy as np

FOLDER = pathlib.Path(__file__).parent
SERIES = (2, 4, 3)
MASK = [[0, 1, 1, 0], [1, 1, 0, 1]]
STATE = (2, 2)
ALL = {"return_sequences": True, "return_state": True}
LSTM = ("LSTM", {"units": 2, "return_sequences": True})
FIRST = [("LSTMCell", {"units": 2}), ("GRUCell", {"units": 3})]
SECOND = [("SimpleRNNCell", {"units": 2}), ("LSTMCell", {"units": 2})]
CASES = [
    ("simple", "SimpleRNN", {}, SERIES, [], None),
    ("simple all", "SimpleRNN", {**ALL, "activation": "relu"}, SERIES, [], None),
    ("simple options", "SimpleRNN", {**ALL, "use_bias": False, "go_backwards": True}, SERIES, [STATE], MASK),
    ("gru", "GRU", {}, SERIES, [], None),
    ("gru all", "GRU", ALL, SERIES, [STATE], None),
    ("gru mask", "GRU", ALL, SERIES, [], MASK),
    ("gru no bias", "GRU", {**ALL, "use_bias": False}, SERIES, [], None),
    ("gru before", "GRU", {**ALL, "reset_after": False}, SERIES, [STATE], MASK),
    ("gru before no bias", "GRU", {**ALL, "reset_after": False, "use_bias": False, "unroll": True}, SERIES, [], None),
    ("gru activations", "GRU", {**ALL, "activation": "softsign", "recurrent_activation": "hard_sigmoid"}, SERIES, [], None),
    ("gru zero", "GRU", {**ALL, "zero_output_for_mask": True}, SERIES, [STATE], MASK),
    ("lstm", "LSTM", {}, SERIES, [], None),
    ("lstm all", "LSTM", ALL, SERIES, [STATE, STATE], None),
    ("lstm mask", "LSTM", ALL, SERIES, [STATE, STATE], MASK),
    ("lstm mask last", "LSTM", {"return_state": True}, SERIES, [], MASK),
    ("lstm zero", "LSTM", {**ALL, "zero_output_for_mask": True}, SERIES, [], MASK),
    ("lstm zero last", "LSTM", {"zero_output_for_mask": True}, SERIES, [], MASK),
    ("lstm backwards", "LSTM", {**ALL, "go_backwards": True}, SERIES, [], None),
    ("lstm backwards mask", "LSTM", {**ALL, "go_backwards": True}, SERIES, [], MASK),
    ("lstm no bias", "LSTM", {"use_bias": False, "unroll": True}, SERIES, [], None),
    ("lstm activations", "LSTM", {"activation": "relu", "recurrent_activation": "tanh"}, SERIES, [], None),
    ("lstm softmax", "LSTM", {"recurrent_activation": "softmax"}, SERIES, [], None),
    ("lstm one step", "LSTM", ALL, (2, 1, 3), [], None),
    ("stack", "RNN", {**ALL, "cell": ("StackedRNNCells", {"cells": FIRST})}, SERIES, [], None),
    ("stack mask", "RNN", {**ALL, "cell": ("StackedRNNCells", {"cells": SECOND})}, SERIES, [], MASK),
    ("cell", "RNN", {**ALL, "cell": ("GRUCell", {"units": 2, "reset_after": False})}, SERIES, [], None),
    *((f"both {mode}", "Bidirectional", {"layer": LSTM, "merge_mode": mode}, SERIES, [], None) for mode in ("concat", "sum")),
    *(
        (f"both {mode}", "Bidirectional", {"layer": LSTM, "merge_mode": mode}, SERIES, [], MASK)
        for mode in ("mul", "ave", None)
    ),
    ("both states", "Bidirectional", {"layer": ("GRU", {"units": 2, **ALL})}, SERIES, [STATE, STATE], MASK),
    ("both last", "Bidirectional", {"layer": ("SimpleRNN", {"units": 2}), "merge_mode": None}, SERIES, [], MASK),
    ("conv 1", "ConvLSTM1D", {"filters": 2, "kernel_size": 3, **ALL}, (2, 3, 5, 2), [], None),
    ("conv 1 strides", "ConvLSTM1D", {"filters": 2, "kernel_size": 2, "strides": 2}, (2, 4, 5, 2), [], None),
    ("conv 2", "ConvLSTM2D", {"filters": 2, "kernel_size": (2, 3), "padding": "same"}, (2, 2, 4, 4, 1), [], None),
    (
        "conv 2 first",
        "ConvLSTM2D",
        {"filters": 2, "kernel_size": 2, "data_format": "channels_first", "go_backwards": True, **ALL},
        (2, 2, 1, 4, 3),
        [],
        None,
    ),
    ("conv 2 dilated", "ConvLSTM2D", {"filters": 1, "kernel_size": 2, "dilation_rate": 2}, (2, 2, 4, 4, 1), [], None),
    ("conv 3", "ConvLSTM3D", {"filters": 1, "kernel_size": 2, "use_bias": False}, (1, 2, 2, 3, 2, 1), [], None),
]
"""Name, layer, options, shape of the series, shapes of the first states, and the mask."""


def made(value):
    """A layer or cell for its class and options, also within options."""
    if isinstance(value, list):
        return [made(one) for one in value]
    if isinstance(value, tuple) and isinstance(value[0], str):
        inner = {name: made(one) for name, one in value[1].items()}
        return getattr(keras.layers, value[0])(**inner, dtype="float64", name=value[0].lower())
    return value


def nested(values):
    return jax.tree_util.tree_map(lambda x: np.asarray(x).tolist(), values)


def in_double(layer):
    """The layer with a tanh that keeps float64; Keras's computes in float32."""
    for one in layer._flatten_layers():
        for name in ("activation", "recurrent_activation"):
            if getattr(vars(one).get(name), "__name__", "") == "tanh":
                setattr(one, name, jax.numpy.tanh)
    return layer


def case(name, kind, config, shape, states, mask):
    generator = np.random.default_rng(len(name) + len(str(config)))
    own = {} if kind in ("RNN", "Bidirectional") or "filters" in config else {"units": 2}
    layer = getattr(keras.layers, kind)(**own, **{k: made(v) for k, v in config.items()}, dtype="float64", name="layer")
    layer = in_double(layer)
    draw = lambda size: generator.standard_normal(size).round(4)
    x, initial = draw(shape), [draw(one) for one in states]
    given = {} if mask is None else {"mask": np.array(mask, bool)}
    layer(x, **given)
    for weight in layer.weights:
        weight.assign(draw(weight.shape))
    before = [np.asarray(weight) for weight in layer.weights]
    others = [v.value for v in layer.non_trainable_variables]

    def outputs(trainable, x, initial):
        more = {"initial_state": initial} if initial else {}
        return jax.tree_util.tree_leaves(layer.stateless_call(trainable, others, x, **given, **more)[0])

    trainable = [v.value for v in layer.trainable_variables]
    leaves = outputs(trainable, x, initial)
    dy = [draw(y.shape) for y in leaves]
    loss = lambda *arguments: sum((y * g).sum() for y, g in zip(outputs(*arguments), dy, strict=True))
    dweights, dx, dstates = jax.grad(loss, (0, 1, 2))(trainable, x, initial)
    return nested(
        {"x": x, "initial": initial, "weights": before, "y": leaves, "dy": dy}
        | {"dweights": dweights, "dx": dx, "dinitial": dstates}
    ) | {"id": name, "layer": kind, "config": {**own, **config}, "mask": mask, "paths": [w.path for w in layer.weights]}


def stateful():
    """Two batches in turn, and one after a reset."""
    layer = in_double(keras.layers.LSTM(2, stateful=True, dtype="float64", name="layer"))
    generator = np.random.default_rng(0)
    xs = generator.standard_normal((2, 2, 3, 3)).round(4)
    layer(xs[0])
    weights = [generator.standard_normal(w.shape).round(4) for w in layer.weights]
    layer.set_weights(weights)
    layer.reset_state()
    ys = [layer(xs[0]), layer(xs[1])]
    layer.reset_state()
    return nested({"weights": weights, "x": xs, "y": [*ys, layer(xs[1])]})


def model_file():
    """A model with options of all kinds, as Keras saves it, and what it predicts."""
    keras.utils.set_random_seed(0)
    L = keras.layers
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            L.Embedding(7, 3, mask_zero=True),
            L.Bidirectional(L.LSTM(2, return_sequences=True, dropout=0.2, kernel_regularizer="l2"), merge_mode="sum"),
            L.RNN([L.LSTMCell(2, unit_forget_bias=False), L.GRUCell(2)], return_sequences=True),
            L.GRU(2, reset_after=False, recurrent_dropout=0.1, seed=3, bias_constraint="non_neg", go_backwards=True),
            L.RepeatVector(3),
            L.SimpleRNN(2, return_sequences=True),
            L.Reshape((3, 2, 1)),
            L.ConvLSTM1D(2, 2, padding="same"),
        ]
    )
    x = np.array([[1, 2, 0, 0], [3, 4, 5, 6]])
    model.save(FOLDER / "files" / "recurrent.keras")
    model.save_weights(FOLDER / "files" / "recurrent.weights.h5")
    return nested({"x": x, "y": model.predict(x, verbose=0)})


if __name__ == "__main__":
    of_file = model_file()
    content = {"cases": [case(*one) for one in CASES], "stateful": stateful(), "file": of_file}
    rounded = jax.tree_util.tree_map(lambda x: round(x, 14) if isinstance(x, float) else x, content)
    (FOLDER / "recurrent.json").write_text(json.dumps(rounded) + "\n")
    print(f"{len(CASES)} cases by Keras {keras.__version__}")
