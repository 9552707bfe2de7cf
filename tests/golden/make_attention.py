"""Writes attention.json: what Keras's attention layers, wrappers and EinsumDense compute in float64, with gradients.

Run with `KERAS_BACKEND=jax JAX_ENABLE_X64=1 python tests/golden/make_attention.py`. The cases are those of the file; a new one
is written into it with `id`, `layer`, `config`, `call`, and `inputs` of the wanted shapes.
"""

import json
import pathlib

import jax
import keras
import numpy as np

PATH = pathlib.Path(__file__).with_name("attention.json")


def options(config):
    """With layers for what stands for them."""
    return {
        name: getattr(keras.layers, value[0])(**value[1], dtype="float64", name="inner") if name == "layer" else value
        for name, value in config.items()
    }


def nested(values):
    return jax.tree_util.tree_map(lambda x: np.asarray(x).tolist(), values)


def case(name, kind, config, known, call):
    generator = np.random.default_rng(len(name) + len(str(config)))
    layer = getattr(keras.layers, kind)(**options(config), dtype="float64", name="layer")
    draw = lambda shape: generator.standard_normal(shape).round(4)
    lists = kind in ("Attention", "AdditiveAttention")
    inputs = [[draw(np.shape(one)) for one in argument] if lists else draw(np.shape(argument)) for argument in known]
    given = {
        key: np.array(value, bool) if key.endswith("_mask") and key != "use_causal_mask" else value
        for key, value in call.items()
    }
    if "mask" in given:
        given["mask"] = [np.array(mask, bool) for mask in given["mask"]]
    layer(*inputs, **{key: value for key, value in given.items() if key != "training"})
    for weight in layer.weights:
        weight.assign(np.abs(draw(weight.shape)) + 0.5 if weight.name.startswith("moving") else draw(weight.shape))
    before = [np.asarray(weight) for weight in layer.weights]
    given["training"] = given.pop("training", False)
    if kind == "ReversibleEmbedding":
        del given["training"]

    def outputs(trainable, inputs):
        states = [v.value for v in layer.non_trainable_variables]
        return layer.stateless_call(trainable, states, *inputs, **given)

    y, states = outputs([v.value for v in layer.trainable_variables], inputs)
    leaves = jax.tree_util.tree_leaves(y)
    cotangents = [draw(leaf.shape) for leaf in leaves]

    def loss(trainable, inputs):
        found = jax.tree_util.tree_leaves(outputs(trainable, inputs)[0])
        return sum((a * b).sum() for a, b in zip(found, cotangents, strict=True))

    gradients, of_inputs = jax.grad(loss, (0, 1))([v.value for v in layer.trainable_variables], inputs)
    return {
        "id": name,
        "layer": kind,
        "config": config,
        "inputs": nested(inputs),
        "call": call,
        "paths": [weight.path for weight in layer.weights],
        "weights": nested(before),
        "y": nested(leaves),
        "dy": nested(cotangents),
        "dweights": nested(gradients),
        "dinputs": nested(of_inputs),
        "states": nested(states),
    }


if __name__ == "__main__":
    known = json.loads(PATH.read_text())["cases"]
    cases = [case(one["id"], one["layer"], one["config"], one["inputs"], one["call"]) for one in known]
    text = ",\n".join(
        json.dumps(jax.tree_util.tree_map(lambda x: round(x, 15) if isinstance(x, float) else x, one)) for one in cases
    )
    PATH.write_text(f'{{"cases": [\n{text}\n]}}\n')
    print(f"{len(cases)} cases by Keras {keras.__version__}")
