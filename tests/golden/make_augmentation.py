"""Writes augmentation.json: random image layers of Keras in float64, both limits of a factor alike so that nothing is drawn,
and what they make of given random numbers.

Run with `KERAS_BACKEND=jax JAX_ENABLE_X64=1 python tests/golden/make_augmentation.py`.
"""

import json
import pathlib

import keras
import numpy as np

SHAPE = (2, 4, 5, 2)
MODES = [
    {"fill_mode": mode, "interpolation": how}
    for mode in ("reflect", "wrap", "constant", "nearest")
    for how in ("bilinear", "nearest")
]
CASES = [
    *(("RandomRotation", {"factor": (0.07, 0.07), "fill_value": 0.5, **mode}) for mode in MODES),
    *(
        ("RandomTranslation", {"height_factor": (0.2, 0.2), "width_factor": (-0.28, -0.28), "fill_value": 0.5, **mode})
        for mode in MODES
    ),
    *(("RandomZoom", {"height_factor": (0.4, 0.4), "width_factor": (-0.3, -0.3), "fill_value": 0.5, **mode}) for mode in MODES),
    ("RandomZoom", {"height_factor": (0.4, 0.4)}),
    ("RandomRotation", {"factor": (0.25, 0.25), "data_format": "channels_first"}),
    ("RandomTranslation", {"height_factor": (0.5, 0.5), "width_factor": (0.0, 0.0), "data_format": "channels_first"}),
    ("RandomBrightness", {"factor": (0.25, 0.25), "value_range": (0, 1)}),
    ("RandomBrightness", {"factor": (-0.25, -0.25), "value_range": (0.2, 0.8)}),
]

GIVEN = [
    ("RandomFlip", {"mode": mode}, {"flips": [[[[True]]], [[[False]]]]})
    for mode in ("horizontal", "vertical", "horizontal_and_vertical")
]
GIVEN += [("RandomContrast", {"factor": 0.5, "value_range": (0, 1)}, {"contrast_factor": [[[[1.5]]], [[[0.7]]]]})]


def main() -> None:
    x = np.random.default_rng(3).uniform(0.0, 1.0, SHAPE)
    cases = []
    for name, config in CASES:
        layer = getattr(keras.layers, name)(**config, dtype="float64")
        cases.append({"layer": name, "config": config, "output": np.asarray(layer(x, training=True)).tolist()})
    given = []
    for name, config, transformation in GIVEN:
        layer = getattr(keras.layers, name)(**config, dtype="float64")
        arrays = {key: np.asarray(value) for key, value in transformation.items()} | {"input_shape": SHAPE}
        output = np.asarray(layer.transform_images(x, arrays, training=True)).tolist()
        given.append({"layer": name, "config": config, "transformation": transformation, "output": output})
    file = pathlib.Path(__file__).with_name("augmentation.json")
    file.write_text(json.dumps({"input": x.tolist(), "cases": cases, "given": given}), encoding="utf-8")


main()
