"""Writes attention.json: what Keras's attention layers, wrappers and EinsumDense compute in float64, with gradients.

Run with `KERAS_BACKEND=jax JAX_ENABLE_X64=1 python tests/golden/make_attention.py`.
"""

from __future__ import annotations

import json
import pathlib

import jax
import keras
import numpy as np

SERIES, OTHER = (2, 3, 4), (2, 5, 4)
PAD_QUERY, PAD_VALUE = [[1, 1, 0], [1, 1, 1]], [[1, 1, 1, 0, 0], [1, 0, 1, 1, 0]]
PAIRS = [[[1, 0, 1, 1, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1]]] * 2
HEADS = {"num_heads": 2, "key_dim": 3}
GROUPS = {"head_dim": 3, "num_query_heads": 4, "num_key_value_heads": 2}
CASES = [
    ("dot", "Attention", {}, [[SERIES, OTHER]], {}),
    ("dot scale key", "Attention", {"use_scale": True}, [[SERIES, (2, 5, 3), OTHER]], {"use_causal_mask": True}),
    ("dot masks", "Attention", {}, [[SERIES, OTHER]], {"mask": [PAD_QUERY, PAD_VALUE]}),
    ("dot scores", "Attention", {"use_scale": True}, [[SERIES, OTHER]], {"return_attention_scores": True}),
    ("concat", "Attention", {"score_mode": "concat", "use_scale": True}, [[SERIES, OTHER]], {"use_causal_mask": True}),
    ("additive", "AdditiveAttention", {}, [[SERIES, OTHER]], {"mask": [PAD_QUERY, PAD_VALUE], "use_causal_mask": True}),
    ("additive plain", "AdditiveAttention", {"use_scale": False}, [[SERIES, (2, 5, 3), OTHER]], {}),
    ("heads", "MultiHeadAttention", HEADS, [SERIES, OTHER], {"return_attention_scores": True}),
    ("heads fused", "MultiHeadAttention", HEADS, [SERIES, OTHER], {}),
    (
        "heads key",
        "MultiHeadAttention",
        {**HEADS, "value_dim": 2, "use_gate": True},
        [SERIES, (2, 5, 3), (2, 5, 6)],
        {"return_attention_scores": True},
    ),
    ("heads no bias", "MultiHeadAttention", {**HEADS, "use_bias": False, "output_shape": (2, 3)}, [SERIES, OTHER], {}),
    ("heads causal", "MultiHeadAttention", HEADS, [SERIES, SERIES], {"use_causal_mask": True}),
    ("heads mask", "MultiHeadAttention", HEADS, [SERIES, OTHER], {"attention_mask": PAIRS}),
    (
        "heads masked scores",
        "MultiHeadAttention",
        HEADS,
        [SERIES, OTHER],
        {"attention_mask": PAIRS, "return_attention_scores": True},
    ),
    (
        "heads values",
        "MultiHeadAttention",
        HEADS,
        [SERIES, OTHER],
        {"value_mask": PAD_VALUE, "key_mask": PAD_VALUE, "use_causal_mask": True},
    ),
    ("heads window", "MultiHeadAttention", {**HEADS, "sliding_window": 2}, [SERIES, OTHER], {"use_causal_mask": True}),
    ("heads nothing", "MultiHeadAttention", HEADS, [SERIES, OTHER], {"attention_mask": [[[0] * 5] * 3] * 2}),
    ("heads image", "MultiHeadAttention", HEADS, [(2, 2, 3, 4), (2, 3, 2, 4)], {}),
    ("heads axis", "MultiHeadAttention", {**HEADS, "attention_axes": 2}, [(2, 2, 3, 4), (2, 2, 5, 4)], {}),
    ("heads axes", "MultiHeadAttention", {**HEADS, "attention_axes": (1, -2)}, [(2, 2, 3, 2, 4), (2, 3, 3, 4, 4)], {}),
    ("groups", "GroupQueryAttention", GROUPS, [SERIES, OTHER], {"return_attention_scores": True}),
    ("groups gate", "GroupQueryAttention", {**GROUPS, "use_gate": True, "sliding_window": 3}, [SERIES, OTHER, OTHER], {}),
    (
        "groups mask",
        "GroupQueryAttention",
        {**GROUPS, "use_bias": False},
        [SERIES, OTHER],
        {"attention_mask": PAIRS, "use_causal_mask": True},
    ),
    (
        "einsum",
        "EinsumDense",
        {"equation": "abc,cde->abde", "output_shape": (None, 2, 5), "bias_axes": "de", "activation": "tanh"},
        [SERIES],
        {},
    ),
    ("einsum left", "EinsumDense", {"equation": "...x,xy->...y", "output_shape": 5, "bias_axes": "y"}, [(2, 2, 3, 4)], {}),
    ("einsum right", "EinsumDense", {"equation": "ab...,bc->ac...", "output_shape": 5, "bias_axes": "c"}, [SERIES], {}),
    ("einsum rows", "EinsumDense", {"equation": "abc,bcd->abd", "output_shape": (3, 6), "bias_axes": "b"}, [SERIES], {}),
    ("einsum moved", "EinsumDense", {"equation": "abc,dc->adb", "output_shape": (6, 3)}, [SERIES], {}),
    ("einsum diagonal", "EinsumDense", {"equation": "abc,c->abc", "output_shape": (3, 4), "bias_axes": "bc"}, [SERIES], {}),
    ("steps", "TimeDistributed", {"layer": ("Dense", {"units": 5, "activation": "relu"})}, [SERIES], {}),
    ("steps images", "TimeDistributed", {"layer": ("Conv2D", {"filters": 2, "kernel_size": 2})}, [(2, 3, 4, 4, 2)], {}),
    ("steps normalized", "TimeDistributed", {"layer": ("BatchNormalization", {})}, [SERIES], {"training": True}),
    ("norm", "SpectralNormalization", {"layer": ("Dense", {"units": 3}), "power_iterations": 3}, [SERIES], {"training": True}),
    ("norm idle", "SpectralNormalization", {"layer": ("Dense", {"units": 3})}, [SERIES], {}),
    (
        "norm conv",
        "SpectralNormalization",
        {"layer": ("Conv1D", {"filters": 3, "kernel_size": 2})},
        [SERIES],
        {"training": True},
    ),
    ("reverse", "ReversibleEmbedding", {"input_dim": 5, "output_dim": 4, "logit_soft_cap": 2.0}, [SERIES], {"reverse": True}),
    (
        "reverse untied",
        "ReversibleEmbedding",
        {"input_dim": 5, "output_dim": 4, "tie_weights": False},
        [SERIES],
        {"reverse": True},
    ),
]
"""Name, layer, options, shapes of the inputs (those in a list are one argument), and what else the call is given."""


def options(config):
    """With layers for what stands for them."""
    return {
        name: getattr(keras.layers, value[0])(**value[1], dtype="float64", name="inner") if name == "layer" else value
        for name, value in config.items()
    }


def nested(values):
    return jax.tree_util.tree_map(lambda x: np.asarray(x).tolist(), values)


def case(name, kind, config, shapes, call):
    generator = np.random.default_rng(len(name) + len(str(config)))
    layer = getattr(keras.layers, kind)(**options(config), dtype="float64", name="layer")
    draw = lambda shape: generator.standard_normal(shape).round(4)
    inputs = [[draw(one) for one in shape] if isinstance(shape, list) else draw(shape) for shape in shapes]
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
    cases = [case(*row) for row in CASES]
    text = ",\n".join(
        json.dumps(jax.tree_util.tree_map(lambda x: round(x, 15) if isinstance(x, float) else x, one)) for one in cases
    )
    pathlib.Path(__file__).with_name("attention.json").write_text(f'{{"cases": [\n{text}\n]}}\n')
    print(f"{len(cases)} cases by Keras {keras.__version__}")
