"""Every optimizer with every option that changes its formula, and the options that all of them share."""

import numpy as np
from custom_optimizers import OPTIONS, made  # noqa: F401

import minikeras as tf

optimizers = tf.keras.optimizers

FORMULAS = {
    "SGD": lambda **options: optimizers.SGD(0.1, **options),
    "momentum": lambda **options: optimizers.SGD(0.1, momentum=0.9, **options),
    "nesterov": lambda **options: optimizers.SGD(0.1, momentum=0.9, nesterov=True, **options),
    "Adam": lambda **options: optimizers.Adam(0.1, **options),
    "amsgrad": lambda **options: optimizers.Adam(0.1, amsgrad=True, **options),
    "AdamW": lambda **options: optimizers.AdamW(0.1, **{"weight_decay": 0.1, **options}),
    "RMSprop": lambda **options: optimizers.RMSprop(0.1, **options),
    "centered": lambda **options: optimizers.RMSprop(0.1, momentum=0.9, centered=True, **options),
    "Adagrad": lambda **options: optimizers.Adagrad(0.1, **options),
    "Adadelta": lambda **options: optimizers.Adadelta(1.0, **options),
    "Adamax": lambda **options: optimizers.Adamax(0.1, **options),
    "Nadam": lambda **options: optimizers.Nadam(0.1, **options),
    "Ftrl": lambda **options: optimizers.Ftrl(0.1, l1_regularization_strength=0.01, beta=0.1, **options),
    "Lion": lambda **options: optimizers.Lion(0.1, **options),
    "Lamb": lambda **options: optimizers.Lamb(0.1, **options),
    "Adafactor": lambda **options: optimizers.Adafactor(0.1, **options),
    "Muon": lambda **options: optimizers.Muon(0.1, **options),
    "ScheduleFreeAdamW": lambda **options: optimizers.ScheduleFreeAdamW(0.1, warmup_steps=2, **options),
}
CLASSES = made(tf.keras, tf.keras.ops)
"""Those that users wrote for Keras."""
SHAPES = {"kernel": (3, 4), "bias": (4,), "scale": (), "stack": (2, 3, 2)}


def weights(dtype="float64", seed=1):
    """Variables of several ranks."""
    generator = np.random.default_rng(seed)
    return [tf.Variable(generator.normal(size=shape), name=name, dtype=dtype) for name, shape in SHAPES.items()]


def gradients(step, dtype="float64"):
    """Gradients for `weights`, different at each step."""
    generator = np.random.default_rng(100 + step)
    return [tf.constant(generator.normal(size=shape), dtype) for shape in SHAPES.values()]


def values(variables):
    """Copies of the values."""
    return [np.array(variable.numpy()) for variable in variables]
