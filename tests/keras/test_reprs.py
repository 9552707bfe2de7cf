"""What objects print: the call that makes another one like them."""

import inspect

import numpy as np
import pytest
from in_one_test import in_one_test

import minikeras as tf

keras = tf.keras
optimizers, losses, metrics = keras.optimizers, keras.losses, keras.metrics
schedules = optimizers.schedules

REQUIRED = {
    "ExponentialDecay": (0.1, 10, 0.5),
    "InverseTimeDecay": (0.1, 10, 0.5),
    "PolynomialDecay": (0.1, 10),
    "CosineDecay": (0.1, 10),
    "CosineDecayRestarts": (0.1, 10),
    "PiecewiseConstantDecay": ([10], [0.1, 0.01]),
    "LossScaleOptimizer": (optimizers.Adam(),),
    "MultiOptimizer": (optimizers.OptimizerMap(optimizers.SGD(), {"a": optimizers.Adam()}),),
    "OptimizerMap": (optimizers.SGD(), {"a/.*": optimizers.Adam()}),
    "PerLayer": ({"a": optimizers.Every(2, optimizers.SGD()), "b": 0.5, "c": None, "*": optimizers.Adam()},),
    "LossFunctionWrapper": (losses.mean_squared_error,),
    "MeanMetricWrapper": (losses.mean_squared_error,),
    "IoU": (2, [0]),
    "MeanIoU": (2,),
    "OneHotIoU": (2, [0]),
    "OneHotMeanIoU": (2,),
    "PrecisionAtRecall": (0.5,),
    "RecallAtPrecision": (0.5,),
    "SensitivityAtSpecificity": (0.5,),
    "SpecificityAtSensitivity": (0.5,),
    "BackupAndRestore": ("folder",),
    "CSVLogger": ("log.csv",),
    "LearningRateScheduler": (len,),
    "ModelCheckpoint": ("best.keras",),
}
"""Arguments of classes that cannot be made without."""

MODULES = (
    *(optimizers, schedules, losses, metrics, keras.regularizers, keras.initializers, keras.constraints),
    keras.callbacks,
)
NO_CALL = {"Every", "Objective", "OptunaPruning", "CallbackList", "History", "Reduction", "SharedObjectLoadingScope"}
"""A NamedTuple, what holds functions or names, what asks for a trial, and what `fit` makes."""

CLASSES = {
    getattr(module, name)
    for module in MODULES
    for name in getattr(module, "__all__", dir(module))
    if inspect.isclass(getattr(module, name)) and getattr(module, name).__module__.startswith("minikeras.keras")
}
NAMES = {kind.__name__: kind for kind in CLASSES} | {
    "mean_squared_error": losses.mean_squared_error,
    "Every": optimizers.Every,
}


@in_one_test(kind=sorted(CLASSES, key=lambda kind: kind.__name__))
def test_a_repr_evaluates_to_an_object_like_the_first(kind):
    if kind.__name__ in NO_CALL:
        pytest.skip("is not made by a call with options")
    made = kind(*REQUIRED.get(kind.__name__, ()))
    text = repr(made)
    assert text.startswith(f"{kind.__name__}(") and text.endswith(")") and len(text) < 200
    again = eval(text, NAMES | {kind.__name__: kind})  # a loss and a metric may have one name
    assert type(again) is kind and repr(again) == text
    if hasattr(made, "get_config") and kind.__name__ not in (
        "PerLayer",
        "MultiOptimizer",
        "OptimizerMap",
        "LossScaleOptimizer",
    ):
        config, other = made.get_config(), again.get_config()
        assert config.pop("name", None) is None or "name" in other
        other.pop("name", None)
        assert other == config


@in_one_test(kind=sorted(CLASSES, key=lambda kind: kind.__name__))
def test_what_is_usual_is_not_told(kind):
    own = {"IoU", "MeanIoU", "OneHotIoU", "OneHotMeanIoU", "BinaryIoU", "Muon"}  # Keras's configurations say more
    if kind.__name__ in REQUIRED or kind.__name__ in NO_CALL | own:
        pytest.skip("has arguments that are told")
    text = repr(kind())
    assert text in (f"{kind.__name__}()", f"{kind.__name__}(learning_rate={np.float32(getattr(kind(), 'learning_rate', 0))!s})")


def test_options_that_differ_are_told():
    rate = schedules.CosineDecay(0.1, 10)
    for made, text in [
        (optimizers.Adam(), "Adam(learning_rate=0.001)"),
        (
            optimizers.Adam(0.01, beta_1=0.8, clipnorm=1.0, name="mine"),
            "Adam(learning_rate=0.01, clipnorm=1.0, beta_1=0.8, name='mine')",
        ),
        (
            optimizers.SGD(rate, momentum=0.9),
            "SGD(learning_rate=CosineDecay(initial_learning_rate=0.1, decay_steps=10), momentum=0.9)",
        ),
        (optimizers.LevenbergMarquardt(damping=0.1), "LevenbergMarquardt(learning_rate=1.0, damping=0.1)"),
        (
            optimizers.PerLayer({"hidden": 0.1, "*": "adam"}),
            "PerLayer(rules={'hidden': 0.1, '*': Adam(learning_rate=0.001)})",
        ),
        (losses.Huber(2.0), "Huber(delta=2.0)"),
        (losses.MeanSquaredError(reduction=None), "MeanSquaredError(reduction=None)"),
        (losses.LossFunctionWrapper(losses.mse), "LossFunctionWrapper(fn=mean_squared_error)"),
        (metrics.Mean("cost"), "Mean(name='cost')"),
        (metrics.AUC(num_thresholds=10, dtype="float64"), "AUC(num_thresholds=10, dtype='float64')"),
        (keras.regularizers.L2(0.1), "L2(l2=0.1)"),
        (keras.constraints.MaxNorm(1), "MaxNorm(max_value=1)"),
        (keras.initializers.RandomNormal(stddev=0.1, seed=3), "RandomNormal(stddev=0.1, seed=3)"),
        (keras.callbacks.EarlyStopping("loss", patience=3), "EarlyStopping(monitor='loss', patience=3)"),
        (keras.random.SeedGenerator(3), "SeedGenerator(seed=3)"),
    ]:
        assert repr(made) == text


def test_a_float_is_written_so_that_it_is_read_again_as_it_was():
    for rate in (0.1, 1e-4, 1 / 3, 0.123456789):
        made = optimizers.Adam(rate)
        assert float(eval(repr(made), dict(NAMES)).learning_rate) == float(made.learning_rate)
    for delta in (0.1, 1 / 3, 0.123456789012345):
        assert eval(repr(losses.Huber(delta)), dict(NAMES)).get_config()["delta"] == delta


def test_what_cannot_be_written_down_prints_all_the_same():
    class Plain(losses.Loss):
        def __init__(self, secret):
            super().__init__()

        def get_config(self):
            raise NotImplementedError

    class HalfMade(metrics.Metric):
        def __init__(self):
            assert repr(self)
            super().__init__()

    class Counting(keras.callbacks.Callback):
        def __init__(self, every=2, start=0):
            self.every = every

    assert repr(Plain(3)) == "Plain()" and repr(HalfMade()) == "HalfMade()"
    assert repr(Counting(5)) == "Counting(every=5)" and repr(keras.callbacks.Callback()) == "Callback()"


def test_a_long_argument_is_cut():
    assert len(repr(keras.initializers.Constant([0.5] * 10_000))) < 1100


def test_a_history_tells_how_it_ended():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(optimizers.SGD(0.0), "mse", metrics=["mae"])
    history = model.fit([[1.0]], [[2.0]], epochs=3, verbose=0)
    assert repr(history) == "<History of 3 epochs: loss: 4.0000 - mae: 2.0000>"
    assert repr(keras.callbacks.History()) == "<History of 0 epochs>"
