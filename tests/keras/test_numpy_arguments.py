"""NumPy's numbers serve wherever Python's do, in constructors and in the arguments of training."""

import inspect
import json

import numpy as np
import pytest
from in_one_test import in_one_test

import minikeras as tf

keras = tf.keras
L = keras.layers
MODULES = ["losses", "metrics", "initializers", "regularizers", "constraints", "optimizers"]
SCHEDULES = keras.optimizers.schedules
ARGUMENTS = {
    "ExponentialDecay": (0.1, 10, 0.5),
    "InverseTimeDecay": (0.1, 10, 0.5),
    "PolynomialDecay": (0.1, 10),
    "CosineDecay": (0.1, 10),
    "CosineDecayRestarts": (0.1, 10),
    "PiecewiseConstantDecay": ([1, 2], [0.1, 0.2, 0.3]),
    "MeanIoU": (3,),
    "IoU": (3, [0, 1]),
    "OneHotIoU": (3, [0, 1]),
    "OneHotMeanIoU": (3,),
    "BinaryIoU": ([0, 1],),
    "PrecisionAtRecall": (0.5,),
    "RecallAtPrecision": (0.5,),
    "SensitivityAtSpecificity": (0.5,),
    "SpecificityAtSensitivity": (0.5,),
}
FORMS = {
    "scalars": lambda number: np.array(number)[()],
    "narrow scalars": lambda number: np.float32(number) if isinstance(number, float) else np.array(number)[()],
    "arrays without axes": np.array,
}


def in_numpy(value, form):
    """A configuration with NumPy's numbers in the place of Python's."""
    if isinstance(value, dict):
        return {key: in_numpy(one, form) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(in_numpy(one, form) for one in value)
    return form(value) if isinstance(value, (bool, int, float)) else value


def made(kind):
    """An object of a class with the options that it has by default; None if it needs others."""
    try:
        return kind(*ARGUMENTS.get(kind.__name__, ()))
    except TypeError:
        return None


def objects():
    """Objects of every class with a configuration and numbers in it."""
    from layers.layer_table import ROWS

    found = [row.make() for row in ROWS]
    for name in [*MODULES, "optimizers.schedules"]:
        module = SCHEDULES if "." in name else getattr(keras, name)
        for entry in module.__all__ if hasattr(module, "__all__") else dir(module):
            kind = getattr(module, entry)
            if inspect.isclass(kind) and not inspect.isabstract(kind) and hasattr(kind, "get_config"):
                found.append(made(kind))
    return list({type(one).__name__: one for one in found if one is not None and _numbers(one.get_config())}.values())


def _numbers(config):
    return any(isinstance(value, (int, float, list, tuple)) for value in config.values())


def close(a, b):
    """Whether two configurations are the same; in float32 a tenth is not quite one."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    return type(a) is type(b) and (a == b or (isinstance(a, float) and a == pytest.approx(b, rel=1e-6)))


@in_one_test(form=FORMS, thing=objects())
def test_numpy_s_numbers_make_the_same_object(thing, form):
    config = thing.get_config()
    twin = type(thing).from_config(in_numpy(config, FORMS[form]))
    assert close(json.loads(json.dumps(twin.get_config())), json.loads(json.dumps(config)))


@pytest.mark.parametrize(
    ("make", "attribute", "expected"),
    [
        (lambda: L.Dropout(np.float32(0.25)), "rate", 0.25),
        (lambda: L.Dense(np.int64(3), use_bias=np.bool_(False)), "units", 3),
        (lambda: L.Dense(np.array(3)), "units", 3),
        (lambda: L.Conv2D(np.int32(2), (np.int64(3), np.int64(3))), "kernel_size", (3, 3)),
        (lambda: L.Embedding(np.int16(10), np.uint8(4)), "input_dim", 10),
        (lambda: L.Dense(2, trainable=np.bool_(False)), "trainable", False),
        (lambda: keras.callbacks.EarlyStopping(patience=np.int64(3), min_delta=np.float32(0.5)), "patience", 3),
        (lambda: keras.callbacks.ModelCheckpoint("m.keras", save_freq=np.int64(3)), "save_freq", 3),
        (lambda: keras.callbacks.BackupAndRestore("folder", save_freq=np.int64(3)), "save_freq", 3),
        (lambda: keras.callbacks.TensorBoard("logs", update_freq=np.int64(3)), "update_freq", 3),
        (lambda: keras.callbacks.ReduceLROnPlateau(factor=np.float64(0.5)), "factor", 0.5),
        (lambda: keras.Input(np.int64(4)), "shape", (None, 4)),
        (lambda: keras.Input((np.int64(4),), batch_size=np.int64(2)), "shape", (2, 4)),
        (lambda: keras.optimizers.Adam(np.array(0.5), gradient_accumulation_steps=np.int64(2)), "beta_1", 0.9),
    ],
)
def test_an_argument_is_kept_as_python_s_number(make, attribute, expected):
    found = getattr(make(), attribute)
    assert found == expected and type(found) is type(expected)


def linear():
    model = keras.Sequential([keras.Input((1,)), L.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=np.int64(2), run_eagerly=np.bool_(False))
    return model


def test_training_takes_numpy_s_numbers():
    x, model = np.arange(8.0), linear()
    history = model.fit(
        *(x, x),
        batch_size=np.int64(2),
        epochs=np.int32(3),
        initial_epoch=np.array(1),
        steps_per_epoch=np.int64(2),
        validation_split=np.float32(0.25),
        validation_freq=np.int64(1),
        validation_batch_size=np.uint8(2),
        validation_steps=np.int64(1),
        shuffle=np.bool_(True),
        class_weight={np.int64(0): np.float32(2.0)},
        verbose=np.int64(0),
    )
    assert history.epoch == [1, 2]
    model.evaluate(x, x, batch_size=np.int64(3), steps=np.int64(2), verbose=np.int64(0))
    assert model.predict(x, batch_size=np.int64(3), verbose=np.bool_(False)).shape == (8, 1)


@pytest.mark.parametrize("argument", ["epochs", "batch_size", "initial_epoch", "steps_per_epoch", "validation_batch_size"])
@pytest.mark.parametrize("value", [2.5, 2.0, np.float64(2), "2", True])
def test_a_count_that_is_no_whole_number_is_refused(argument, value):
    model, x = linear(), np.arange(8.0)
    with pytest.raises(TypeError, match=rf"fit: {argument} must be a whole number, found "):
        model.fit(x, x, verbose=0, **{argument: value})
    assert int(model.optimizer.iterations) == 0


def test_counts_below_the_least_are_refused():
    model, x = linear(), np.arange(8.0)
    for argument, value in (("epochs", -1), ("batch_size", 0), ("steps_per_epoch", 0), ("validation_steps", -1)):
        with pytest.raises(ValueError, match=rf"fit: {argument} must be at least \d, found {value}"):
            model.fit(x, x, verbose=0, **{argument: value})
    assert model.fit(x, x, epochs=0, verbose=0).epoch == []
    with pytest.raises(TypeError, match="predict: batch_size must be a whole number"):
        model.predict(x, batch_size=1.5)
    with pytest.raises(ValueError, match="steps_per_execution must be at least 1"):
        model.compile("sgd", "mse", steps_per_execution=0)
