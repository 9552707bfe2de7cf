"""Writes windows.json: what Keras's layers with windows compute in float64, with gradients, in the form of layers.json.

Run with `KERAS_BACKEND=jax JAX_ENABLE_X64=1 python tests/golden/make_windows.py`.
"""

from __future__ import annotations

import json
import pathlib

import jax
import keras
import numpy as np

FIRST = {"data_format": "channels_first"}
CASES = [
    ("Conv1D", {"filters": 3, "kernel_size": 3, "padding": "causal", "dilation_rate": 2}, (2, 5, 2)),
    ("Conv2D", {"filters": 4, "kernel_size": (2, 3), "strides": (2, 1), "padding": "same", "groups": 2}, (1, 4, 3, 2)),
    ("Conv3D", {"filters": 2, "kernel_size": 2, "strides": (1, 2, 1), "padding": "same"}, (1, 2, 3, 2, 2)),
    ("Conv3D", {"filters": 2, "kernel_size": (2, 1, 2), "groups": 2, "use_bias": False, **FIRST}, (1, 2, 3, 2, 3)),
    *(
        (
            "Conv1DTranspose",
            {"filters": 2, "kernel_size": k, "strides": s, "padding": padding, "output_padding": extra},
            (1, 3, 2),
        )
        for k, s, padding, extra in [
            *((3, 2, padding, extra) for padding in ("valid", "same") for extra in (None, 0, 1)),
            *((k, 3, padding, None) for k in (1, 2, 4) for padding in ("valid", "same")),
            *((4, 3, "same", extra) for extra in (0, 1, 2)),
            (5, 1, "same", 0),
        ]
    ),
    ("Conv1DTranspose", {"filters": 2, "kernel_size": 2, "dilation_rate": 3, "padding": "same"}, (1, 4, 2)),
    ("Conv2DTranspose", {"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same"}, (1, 2, 3, 2)),
    (
        "Conv2DTranspose",
        {"filters": 2, "kernel_size": (2, 3), "strides": (3, 2), "output_padding": (1, 0), **FIRST},
        (1, 2, 2, 3),
    ),
    ("Conv2DTranspose", {"filters": 2, "kernel_size": 2, "dilation_rate": (2, 1), "activation": "relu"}, (1, 3, 2, 2)),
    ("Conv3DTranspose", {"filters": 2, "kernel_size": 2, "strides": (1, 2, 1), "padding": "same"}, (1, 2, 2, 1, 2)),
    ("DepthwiseConv1D", {"kernel_size": 3, "strides": 2, "padding": "same", "depth_multiplier": 2}, (1, 5, 3)),
    ("DepthwiseConv2D", {"kernel_size": 2, "dilation_rate": (2, 1)}, (1, 4, 3, 2)),
    ("DepthwiseConv2D", {"kernel_size": (1, 2), "depth_multiplier": 2, "use_bias": False, **FIRST}, (1, 2, 2, 3)),
    ("SeparableConv1D", {"filters": 3, "kernel_size": 2, "dilation_rate": 2}, (1, 5, 2)),
    ("SeparableConv2D", {"filters": 3, "kernel_size": 2, "strides": 2, "padding": "same", "depth_multiplier": 2}, (1, 3, 4, 2)),
    ("SeparableConv2D", {"filters": 3, "kernel_size": 2, "activation": "relu", **FIRST}, (1, 2, 3, 3)),
    ("MaxPooling3D", {"pool_size": 2, "strides": 1, "padding": "same"}, (1, 2, 3, 2, 2)),
    ("AveragePooling2D", {"pool_size": (3, 2), "strides": (2, 1), "padding": "same"}, (1, 4, 3, 2)),
    ("AveragePooling3D", {"pool_size": (1, 2, 2), "padding": "same", **FIRST}, (1, 2, 2, 3, 3)),
    ("GlobalAveragePooling3D", {"keepdims": True}, (2, 2, 1, 3, 2)),
    ("GlobalMaxPooling3D", FIRST, (2, 2, 2, 3, 1)),
    *(
        (f"Adaptive{kind}Pooling{len(size)}D", {"output_size": size, **options}, shape)
        for kind in ("Average", "Max")
        for size, options, shape in (
            ((3,), {}, (2, 5, 2)),
            ((4,), {}, (1, 2, 2)),
            ((2, 3), {}, (1, 4, 5, 2)),
            ((3, 1), FIRST, (1, 2, 4, 3)),
            ((2, 1, 3), {}, (1, 3, 2, 4, 1)),
        )
    ),
    ("ZeroPadding1D", {"padding": (1, 2), **FIRST}, (1, 2, 2)),
    ("ZeroPadding2D", {"padding": ((0, 1), (2, 1))}, (1, 2, 1, 2)),
    ("ZeroPadding3D", {"padding": (1, 0, 1)}, (1, 1, 2, 1, 1)),
    ("Cropping1D", {"cropping": (2, 1)}, (1, 5, 2)),
    ("Cropping2D", {"cropping": ((0, 1), (2, 0)), **FIRST}, (1, 2, 3, 3)),
    ("Cropping3D", {}, (1, 3, 4, 3, 1)),
    ("UpSampling1D", {"size": 3}, (1, 2, 2)),
    ("UpSampling2D", {"size": (2, 3), **FIRST}, (1, 2, 2, 1)),
    ("UpSampling3D", {"size": (1, 2, 3)}, (1, 2, 2, 1, 1)),
    *(
        ("UpSampling2D", {"size": (2, 3), "interpolation": interpolation}, (1, 4, 3, 1))
        for interpolation in ("bilinear", "bicubic", "lanczos3", "lanczos5")
    ),
]


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
    cases = [computed(number, *case) for number, case in enumerate(CASES)]
    meta = {"producer": "keras", "keras": keras.__version__, "backend": "jax", "floatx": "float64", "significant_digits": 12}
    lines = ",\n".join(json.dumps(case) for case in cases)
    text = f'{{"meta": {json.dumps(meta)},\n"cases": [\n{lines}\n]}}\n'
    pathlib.Path(__file__).with_name("windows.json").write_text(text)
