"""Losses, metrics, activations, regularizers and constraints take a list that holds Tensors for the Tensor it stacks to."""

import functools
import inspect
from pathlib import Path

import numpy as np
import pytest
from slow import sampled

import minikeras as tf

K = tf.keras
N = 3
generator = np.random.default_rng(0)
SHARES = generator.uniform(0.1, 0.9, (N, 3, 4)).astype("float32")
SHARES /= SHARES.sum(-1, keepdims=True)
CLASSES = generator.integers(0, 4, (N, 3)).astype("int32")
NUMBERS = generator.normal(size=(N, 3, 4)).astype("float32")
CTC = generator.integers(1, 4, (N, 2, 2)).astype("int32"), generator.normal(size=(N, 2, 5, 4)).astype("float32")


def samples(name):
    """N samples of labels and predictions, as a loss or metric of this name takes them."""
    if "ctc" in name.lower():
        return CTC
    if "circle" in name.lower():
        return CLASSES, NUMBERS
    if name in ("IoU", "MeanIoU", "BinaryIoU"):
        return CLASSES, CLASSES[::-1].copy()
    by_class = name.lower().replace("_", "").startswith(("sparse", "categoricalgeneralized"))
    return (CLASSES if by_class else np.eye(4, dtype="float32")[CLASSES]), SHARES


def public(module):
    """What a module offers, but for the ways to look names up and abstract classes."""
    helpers = {"get", "serialize", "deserialize", "Loss", "LossFunctionWrapper", "Metric", "MeanMetricWrapper"}
    prefix = f"minikeras.keras.{module}."
    names = [line.removeprefix(prefix) for line in NAMES if line.startswith(prefix)]
    return [(name, getattr(getattr(K, module), name)) for name in names if name not in helpers and "." not in name]


NAMES = (Path(__file__).parents[1] / "public_names.txt").read_text().splitlines()


def of_options(kind):
    """An object of a class, with the options that it cannot go without."""
    known = {"num_classes": 4, "target_class_ids": [0, 1]} | dict.fromkeys(("precision", "recall"), 0.5)
    known |= dict.fromkeys(("sensitivity", "specificity"), 0.5)
    parameters = inspect.signature(kind).parameters
    return kind(**{key: value for key, value in known.items() if key in parameters})


def functions():
    for module in ("losses", "metrics"):
        for name, found in public(module):
            if not inspect.isclass(found) or (module == "losses" and name != "Reduction"):
                yield pytest.param(found() if inspect.isclass(found) else found, samples(name), id=f"{module}.{name}")
    for name, found in public("activations"):
        options = {"threshold": 0.1, "default_value": -1.0} if name == "threshold" else {}
        yield pytest.param(functools.partial(found, **options), (NUMBERS,), id=f"activations.{name}")
    for name in ("L1", "L2", "L1L2", "OrthogonalRegularizer"):
        yield pytest.param(getattr(K.regularizers, name)(), (NUMBERS,), id=name)
    for name in ("MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm"):
        yield pytest.param(getattr(K.constraints, name)(), (NUMBERS,), id=name)


def nested(x):
    return [nested(x[i]) for i in range(x.shape[0])] if x.ndim else x


def with_list(function, position):
    """The function, which is given one argument as nested lists of scalars."""
    return lambda *xs: tf.convert_to_tensor(function(*[nested(x) if i == position else x for i, x in enumerate(xs)]))


def gradients(function, xs):
    sources = [x for x in xs if x.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        y = function(*xs)
    return tape.gradient(y, sources, unconnected_gradients="zero")


@pytest.mark.parametrize(("function", "data"), sampled(list(functions()), 2))
def test_a_list_is_the_tensor(function, data):
    for position in range(len(data)):
        of_list = with_list(function, position)
        recorded = tf.function(of_list)
        expected = []
        for sample in range(N):
            xs = [tf.constant(column[sample]) for column in data]
            expected.append(tf.convert_to_tensor(function(*xs)).numpy())
            for one in (of_list, recorded, recorded):
                np.testing.assert_allclose(one(*xs), expected[-1], rtol=1e-6, atol=1e-7)
            if any(x.dtype.is_floating for x in xs) and expected[-1].dtype.kind == "f":
                pairs = zip(gradients(of_list, xs), gradients(function, xs), strict=True)
                assert all(np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in pairs)
        found = tf.vectorized_map(lambda slices, of_list=of_list: of_list(*slices), tuple(map(tf.constant, data)))
        np.testing.assert_allclose(found, np.stack(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [name for name, found in public("metrics") if inspect.isclass(found)])
def test_a_metric_takes_lists(name):
    kind = getattr(K.metrics, name)
    labels, predictions = (tf.constant(column[0]) for column in samples(name))
    own, other = of_options(kind), of_options(kind)
    if name in ("Mean", "Sum"):
        own.update_state(predictions), other.update_state(nested(predictions))
    else:
        own.update_state(labels, predictions), other.update_state(nested(labels), nested(predictions))
    np.testing.assert_allclose(other.result(), own.result(), rtol=1e-6)
