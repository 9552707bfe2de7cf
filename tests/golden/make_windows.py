"""Writes windows.json: what Keras's layers with windows compute in float64, with gradients, in the form of layers.json.

Run with `KERAS_BACKEND=jax JAX_ENABLE_X64=1 python tests/golden/make_windows.py`. The cases are those of the file; a new one is
written at its end with `layer`, `config`, and an `x` of the wanted shape.
"""

import json
import pathlib

import jax
import keras
import numpy as np

PATH = pathlib.Path(__file__).with_name("windows.json")


def numbers(values):
    return np.vectorize(lambda value: float(f"{value:.12g}"))(np.asarray(values)).tolist()


def computed(number, layer, config, shape):
    rng = np.random.default_rng(number)
    made = getattr(keras.layers, layer)(**config, name=layer.lower(), dtype="float64")
    x = rng.normal(size=shape)
    made.build(shape)
    weights = [rng.normal(size=weight.shape) for weight in made.weights]
    dy = rng.normal(size=made(x).shape)

    def loss(weights, x):
        y, _ = made.stateless_call(weights, [], x)
        return (y * dy).sum(), y

    (dweights, dx), y = jax.grad(loss, (0, 1), has_aux=True)(weights, x)
    names = [weight.name for weight in made.weights]
    return {
        "id": f"{layer} {number}",
        "layer": layer,
        "config": config,
        "training": False,
        "x": numbers(x),
        "weights": dict(zip(names, map(numbers, weights), strict=True)),
        "weight_order": [weight.path for weight in made.weights],
        "trainable_order": [weight.name for weight in made.trainable_weights],
        "y": numbers(y),
        "dy": numbers(dy),
        "dx": numbers(dx),
        "dtrainable": dict(zip(names, map(numbers, dweights), strict=True)),
        "non_trainable_after": {},
    }


if __name__ == "__main__":
    keras.config.set_floatx("float64")
    known = json.loads(PATH.read_text())["cases"]
    cases = [computed(number, one["layer"], one["config"], np.shape(one["x"])) for number, one in enumerate(known)]
    meta = {"producer": "keras", "keras": keras.__version__, "backend": "jax", "floatx": "float64", "significant_digits": 12}
    lines = ",\n".join(json.dumps(case) for case in cases)
    text = f'{{"meta": {json.dumps(meta)},\n"cases": [\n{lines}\n]}}\n'
    PATH.write_text(text)
