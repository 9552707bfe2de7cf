"""The seam of executors holds a third one, which carries a program out instruction by instruction, as a reader would."""

import numpy as np
import pytest
from in_one_test import in_one_test
from optimizer_cases import FORMULAS
from side_by_side import NUMPY, assert_same, both_ways, leaves, with_gradient
from slow import mostly_slow, sampled
from specimens import SPECIMENS

import minikeras as tf
from minikeras.compiler import executors
from minikeras.compiler.executors.numpy.lowering import kernel_of
from minikeras.compiler.ir import Slot, outputs_of
from minikeras.core import Tensor

L, losses = tf.keras.layers, tf.keras.losses


class ByHand:
    """A program whose instructions run their own kernels."""

    exact, whole, seconds, kernels, buffers, bytes = True, False, 0.0, 0, 0, 0

    def __init__(self, program):
        self.program = program
        self.constants = {slot.key: slot.array for slot in program.slots() if slot.array is not None}

    def __call__(self, arguments):
        held = self.constants | {slot.key: array for slot, array in zip(self.program.arguments, arguments, strict=True)}
        value = lambda x: held[x.key] if isinstance(x, Slot) else x
        with np.errstate(all="ignore"):
            for record in self.program.records:
                results = kernel_of(record, np)(*map(value, record.inputs))
                results = results if type(record.outputs) is tuple else (results,)
                held |= {slot.key: array for slot, array in zip(outputs_of(record), results, strict=True)}
        return [Tensor(value(x)) if isinstance(x, Slot) else x for x in self.program.results]


class Toy:
    """The executor, and the programs that it was given."""

    def __init__(self):
        self.programs = []

    def __call__(self, program):
        self.programs.append(program)
        return ByHand(program)


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """It takes NumPy's place."""
    made = Toy()
    monkeypatch.setattr(executors, "by_numpy", made)
    return made


@in_one_test(4, specimen=SPECIMENS)
def test_an_operation_and_its_gradient(specimen, toy):
    step, inputs = with_gradient(specimen)
    compiled = tf.function(step)
    with np.errstate(all="ignore"):
        expected = leaves(step(*inputs))
    for _ in range(2):
        assert_same(leaves(compiled(*inputs)), expected, exact=False)
    assert compiled.program(*inputs) is toy.programs[-1] if compiled.replays else compiled.program(*inputs).reason


LAYERS = {
    "dense": lambda: [L.Dense(8, "relu"), L.BatchNormalization(), L.Dropout(0.3)],
    "convolution": lambda: [L.Reshape((6, 1)), L.Conv1D(4, 3, activation="gelu"), L.GlobalAveragePooling1D()],
    "pooling": lambda: [L.Reshape((6, 1)), L.Conv1D(3, 2, activation="tanh"), L.MaxPooling1D(2), L.Flatten()],
    "norm": lambda: [L.LayerNormalization(), L.Dense(4, "softmax", kernel_regularizer="l2")],
}
LOSSES = {
    "sparse": (losses.SparseCategoricalCrossentropy(from_logits=True), np.arange(8) % 3),
    "squared": (losses.MeanSquaredError(), np.linspace(0, 1, 24, dtype="float32").reshape(8, 3)),
    "huber": (losses.Huber(), np.linspace(-2, 2, 24, dtype="float32").reshape(8, 3)),
}


def training(layers, loss_of, optimizer):
    def make():
        model, chosen = tf.keras.Sequential([tf.keras.Input((6,)), *layers(), L.Dense(3)]), optimizer()

        def step(x, y):
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True)) + sum(model.losses, tf.constant(0.0))
            weights = model.trainable_variables
            chosen.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return loss

        return step, lambda: [*model.variables, *chosen.variables]

    return make


X = tf.constant(np.random.default_rng(2).normal(size=(8, 6)), "float32")


def assert_trained_by_hand(layers, loss, optimizer):
    function, y = LOSSES[loss]
    given = [(X, tf.constant(y))]
    both_ways(training(LAYERS[layers], function, lambda: optimizer(weight_decay=0.01)), given, exact=False, executors=[NUMPY])


@pytest.mark.parametrize("layers", sampled(LAYERS, 3))
@pytest.mark.parametrize("loss", LOSSES)
def test_steps_of_layers_and_losses(layers, loss):
    assert_trained_by_hand(layers, loss, FORMULAS["Adam"])


@pytest.mark.parametrize("name", mostly_slow(FORMULAS, "SGD", "Adam", "Muon"))
def test_steps_of_optimizers(name):
    assert_trained_by_hand("dense", "sparse", FORMULAS[name])
