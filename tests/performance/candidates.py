"""One training step by every framework: forward, sparse softmax cross-entropy from logits, backward, Adam.

A candidate is a function `setup(problem, weights, data)` that returns a step without arguments, which returns
the loss. This file holds the table, this project and TensorFlow, for which the same text runs; `by_hand.py` and
`peers.py` hold the others.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from .executors import NATIVE, NUMPY, OWN, compiled
from .problems import LEARNING_RATE, MOMENTUM, VARIANCE_EPSILON, Data, Problem, Weights
from .settings import Settings

Step = Callable[[], Any]
Setup = Callable[[Problem, Weights, Data], Step]


class Candidate(NamedTuple):
    """A framework and how to set it up.

    Attributes:
        name: in tables.
        needs: the modules it runs on.
        setup: see above.
        normalizes: whether it knows networks with BatchNormalization.
    """

    name: str
    needs: tuple[str, ...]
    setup: Setup
    normalizes: bool


CANDIDATES: dict[str, Candidate] = {}


def candidate(name: str, *needs: str, normalizes: bool = False) -> Callable[[Setup], Setup]:
    """Enter a setup into the table."""

    def enter(setup: Setup) -> Setup:
        CANDIDATES[name] = Candidate(name, needs, setup, normalizes)
        return setup

    return enter


def available(settings: Settings, problem: Problem) -> list[Candidate]:
    """The candidates for a problem that are installed; hand-written NumPy first: the others' losses must equal its."""
    from . import by_hand, peers  # noqa: F401  (they enter their candidates)

    order = sorted(CANDIDATES.values(), key=lambda one: (one.needs[0] != "numpy", one.needs[0] != OWN))
    return [one for one in order if settings.has(*one.needs) and (one.normalizes or not problem.normalized)]


def named(name: str) -> Candidate:
    """One of the table, installed or not."""
    from . import by_hand, peers  # noqa: F401  (they enter their candidates)

    return CANDIDATES[name]


# This project and TensorFlow -----------------------------------------------------------------------------------------


def keras_model(keras: Any, sizes: tuple[int, ...], weights: Weights | None = None, normalized: bool = False) -> Any:
    """The network in Keras's words, of this project or of TensorFlow."""
    model = keras.Sequential([keras.Input(shape=(sizes[0],))])
    for size in sizes[1:-1]:
        model.add(keras.layers.Dense(size, activation="relu"))
        if normalized:
            model.add(keras.layers.BatchNormalization(momentum=MOMENTUM, epsilon=VARIANCE_EPSILON))
    model.add(keras.layers.Dense(sizes[-1]))
    if weights is not None:
        dense = [layer for layer in model.layers if isinstance(layer, keras.layers.Dense)]
        for layer, pair in zip(dense, weights, strict=True):
            layer.set_weights(pair)
    return model


def _custom_loop(tf: Any, problem: Problem, weights: Weights, data: Data) -> Step:
    """An ordinary custom training loop."""
    keras = tf.keras
    model = keras_model(keras, problem.sizes, weights, problem.normalized)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.Adam(LEARNING_RATE)
    x, y = tf.constant(data[0]), tf.constant(data[1])

    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


@candidate(OWN, "minikeras", normalizes=True)
def minikeras(problem: Problem, weights: Weights, data: Data) -> Step:
    import minikeras as tf

    return _custom_loop(tf, problem, weights, data)


@candidate(NUMPY.title, *NUMPY.needs, normalizes=True)
def minikeras_function(problem: Problem, weights: Weights, data: Data) -> Step:
    return compiled(minikeras(problem, weights, data), NUMPY)


@candidate(NATIVE.title, *NATIVE.needs, normalizes=True)
def minikeras_native(problem: Problem, weights: Weights, data: Data) -> Step:
    return compiled(minikeras(problem, weights, data), NATIVE)


@candidate("TensorFlow eager", "tensorflow", normalizes=True)
def tensorflow(problem: Problem, weights: Weights, data: Data) -> Step:
    import tensorflow as tf

    return _custom_loop(tf, problem, weights, data)


@candidate("tf.function", "tensorflow", normalizes=True)
def tensorflow_function(problem: Problem, weights: Weights, data: Data) -> Step:
    import tensorflow as tf

    return tf.function(_custom_loop(tf, problem, weights, data))  # type: ignore[no-any-return]


@candidate("tf.function, XLA", "tensorflow", normalizes=True)
def tensorflow_xla(problem: Problem, weights: Weights, data: Data) -> Step:
    import tensorflow as tf

    return tf.function(_custom_loop(tf, problem, weights, data), jit_compile=True)  # type: ignore[no-any-return]
