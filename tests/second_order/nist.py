"""NIST's nonlinear regressions (StRD): models, data, two starts each, and the certified parameters.

Source: National Institute of Standards and Technology, Statistical Reference Datasets, https://www.itl.nist.gov/div898/strd/,
in the public domain.
"""

import json
import math
from pathlib import Path

import minikeras as tf
from minikeras import keras

PROBLEMS = json.loads(Path(__file__).with_name("nist_strd.json").read_text())
MOST = 1000
"""Steps of a fit; the longest takes 762."""


def rational(degree):
    """A polynomial of that degree over another, whose constant is 1."""

    def model(x, *b):
        above = sum(b[i] * x**i for i in range(1, degree + 1)) + b[0]
        return above / (sum(b[degree + i] * x**i for i in range(1, degree + 1)) + 1.0)

    return model


def exponentials(x, *b):
    return sum(b[i] * tf.exp(-b[i + 1] * x) for i in range(0, len(b), 2))


def wave(x, period, cosine, sine):
    return cosine * tf.cos(2.0 * math.pi * x / period) + sine * tf.sin(2.0 * math.pi * x / period)


def chwirut(x, a, b, c):
    return tf.exp(-a * x) / (b + c * x)


def gauss(x, a, b, c, d, e, f, g, h):
    return a * tf.exp(-b * x) + c * tf.exp(-((x - d) ** 2) / e**2) + f * tf.exp(-((x - g) ** 2) / h**2)


def saturation(x, a, b):
    return a * (1.0 - tf.exp(-b * x))


MODELS = {
    "Bennett5": lambda x, a, b, c: a * (b + x) ** (-1.0 / c),
    "BoxBOD": saturation,
    "Chwirut1": chwirut,
    "Chwirut2": chwirut,
    "DanWood": lambda x, a, b: a * x**b,
    "ENSO": lambda x, a, b, c, d, e, f, g, h, i: a + wave(x, 12.0, b, c) + wave(x, d, e, f) + wave(x, g, h, i),
    "Eckerle4": lambda x, a, b, c: a / b * tf.exp(-0.5 * ((x - c) / b) ** 2),
    "Gauss1": gauss,
    "Gauss2": gauss,
    "Gauss3": gauss,
    "Hahn1": rational(3),
    "Kirby2": rational(2),
    "Lanczos1": exponentials,
    "Lanczos2": exponentials,
    "Lanczos3": exponentials,
    "MGH09": lambda x, a, b, c, d: a * (x**2 + x * b) / (x**2 + x * c + d),
    "MGH10": lambda x, a, b, c: a * tf.exp(b / (x + c)),
    "MGH17": lambda x, a, b, c, d, e: a + b * tf.exp(-x * d) + c * tf.exp(-x * e),
    "Misra1a": saturation,
    "Misra1b": lambda x, a, b: a * (1.0 - (1.0 + b * x / 2.0) ** -2),
    "Misra1c": lambda x, a, b: a * (1.0 - (1.0 + 2.0 * b * x) ** -0.5),
    "Misra1d": lambda x, a, b: a * b * x / (1.0 + b * x),
    "Nelson": lambda x, z, a, b, c: a - b * x * tf.exp(-c * z),
    "Rat42": lambda x, a, b, c: a / (1.0 + tf.exp(b - c * x)),
    "Rat43": lambda x, a, b, c, d: a / (1.0 + tf.exp(b - c * x)) ** (1.0 / d),
    "Roszman1": lambda x, a, b, c, d: a - b * x - tf.atan(c / (x - d)) / math.pi,
    "Thurber": rational(3),
}


def regression(name, start):
    """A Variable at one of the two starts, and half the sum of squares as an `Objective`."""
    data = PROBLEMS[name]
    columns, y = [tf.constant(column, tf.float64) for column in data["x"]], tf.constant(data["y"], tf.float64)
    if name == "Nelson":
        y = tf.math.log(y)
    w = tf.Variable(data["starts"][start], dtype=tf.float64)
    return w, keras.optimizers.Objective(
        lambda: MODELS[name](*columns, *tf.unstack(w)) - y, lambda r: tf.reduce_sum(r**2) / 2.0
    )


def digits(name, w):
    """The fewest right digits of a parameter."""
    pairs = zip(w.numpy().tolist(), PROBLEMS[name]["certified"], strict=True)
    return min(-math.log10(max(abs(found / right - 1.0), 1e-16)) if math.isfinite(found) else 0.0 for found, right in pairs)


def fitted(name, start):
    """The parameters where steps have come to rest."""
    w, fit = regression(name, start)
    optimizer = keras.optimizers.LevenbergMarquardt(scaling=True, acceleration=0.75)
    optimizer.build([w])
    step, rest = tf.function(lambda: optimizer.minimize(fit, [w])), 0
    for _ in range(MOST):
        before = w.numpy()
        step()
        rest = rest + 1 if (abs(w.numpy() - before) < 1e-9 * abs(before)).all() else 0
        if rest == 3:
            break
    assert step.eager_calls == 0
    return w
