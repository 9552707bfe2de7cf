"""Writes recurrent.json, what Keras's recurrent layers compute in float64, with gradients, and what a model of them predicts,
which is in files/recurrent.keras and .weights.h5.

Run with `KERAS_BACKEND=jax JAX_ENABLE_X64=1 python tests/golden/make_recurrent.py`. The cases are those of the file; a new one
is written into it with `id`, `layer`, `config`, `mask`, and `x` and `initial` of the wanted shapes.
"""

import json
import pathlib

import jax
import keras
import numpy as np

FOLDER = pathlib.Path(__file__).parent


def made(value):
    """A layer or cell for its class and options, also within options."""
    if not isinstance(value, list):
        return value
    if not isinstance(value[0], str):
        return [made(one) for one in value]
    inner = {name: made(one) for name, one in value[1].items()}
    return getattr(keras.layers, value[0])(**inner, dtype="float64", name=value[0].lower())


def nested(values):
    return jax.tree_util.tree_map(lambda x: np.asarray(x).tolist(), values)


def in_double(layer):
    """The layer with a tanh that keeps float64; Keras's computes in float32."""
    for one in layer._flatten_layers():
        for name in ("activation", "recurrent_activation"):
            if getattr(vars(one).get(name), "__name__", "") == "tanh":
                setattr(one, name, jax.numpy.tanh)
    return layer


def case(name, kind, config, x, initial, mask):
    generator = np.random.default_rng(len(name) + len(str({k: v for k, v in config.items() if k != "units"})))
    layer = in_double(getattr(keras.layers, kind)(**{k: made(v) for k, v in config.items()}, dtype="float64", name="layer"))
    draw = lambda shape: generator.standard_normal(shape).round(4)
    x, initial = draw(np.shape(x)), [draw(np.shape(one)) for one in initial]
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
    ) | {"id": name, "layer": kind, "config": config, "mask": mask, "paths": [w.path for w in layer.weights]}


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
    known = json.loads((FOLDER / "recurrent.json").read_text())["cases"]
    cases = [case(*map(one.get, ("id", "layer", "config", "x", "initial", "mask"))) for one in known]
    content = {"cases": cases, "stateful": stateful(), "file": of_file}
    rounded = jax.tree_util.tree_map(lambda x: round(x, 14) if isinstance(x, float) else x, content)
    (FOLDER / "recurrent.json").write_text(json.dumps(rounded) + "\n")
    print(f"{len(cases)} cases by Keras {keras.__version__}")
