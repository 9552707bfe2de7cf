"""One training step by every framework: forward, sparse softmax cross-entropy from logits, backward, Adam.

Key idea: a candidate is a function `setup(sizes, weights, data)` that returns a step without arguments, which returns
the loss. This file holds the table, this project and TensorFlow, for which the same text runs; `by_hand.py` and
`peers.py` hold the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .problems import LEARNING_RATE, Data, Weights
from .settings import Settings

OWN = "minikeras"

Step = Callable[[], Any]
Setup = Callable[[tuple[int, ...], Weights, Data], Step]


class Candidate(NamedTuple):
    """A framework and how to set it up.

    Attributes:
        name: in tables.
        needs: the module it runs on.
        setup: see above.
    """

    name: str
    needs: str
    setup: Setup


CANDIDATES: dict[str, Candidate] = {}


def candidate(name: str, needs: str = "numpy") -> Callable[[Setup], Setup]:
    """Enter a setup into the table."""

    def enter(setup: Setup) -> Setup:
        CANDIDATES[name] = Candidate(name, needs, setup)
        return setup

    return enter


def available(settings: Settings) -> list[Candidate]:
    """The candidates whose framework is installed; hand-written NumPy first: the others' losses must equal its."""
    from . import by_hand, peers  # noqa: F401  (they enter their candidates)

    order = sorted(CANDIDATES.values(), key=lambda one: (one.needs != "numpy", one.needs != OWN))
    return [one for one in order if settings.has(one.needs)]


# This project and TensorFlow -----------------------------------------------------------------------------------------


def keras_model(keras: Any, sizes: tuple[int, ...], weights: Weights | None = None) -> Any:
    """The network in Keras's words, of this project or of TensorFlow."""
    hidden = [keras.layers.Dense(size, activation="relu") for size in sizes[1:-1]]
    model = keras.Sequential([keras.Input(shape=(sizes[0],)), *hidden, keras.layers.Dense(sizes[-1])])
    if weights is not None:
        model.set_weights([array for pair in weights for array in pair])
    return model


def _custom_loop(tf: Any, keras: Any, sizes: tuple[int, ...], weights: Weights, data: Data) -> Step:
    """The ordinary loop of one's own."""
    model = keras_model(keras, sizes, weights)
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


@candidate(OWN, needs="minikeras")
def minikeras(sizes: tuple[int, ...], weights: Weights, data: Data) -> Step:
    import minikeras as tf

    return _custom_loop(tf, tf.keras, sizes, weights, data)


@candidate(f"{OWN}, tf.function", needs="minikeras")
def minikeras_function(sizes: tuple[int, ...], weights: Weights, data: Data) -> Step:
    import minikeras as tf

    return tf.function(_custom_loop(tf, tf.keras, sizes, weights, data), jit_compile=True)  # type: ignore[no-any-return]


@candidate("TensorFlow eager", needs="tensorflow")
def tensorflow(sizes: tuple[int, ...], weights: Weights, data: Data) -> Step:
    import tensorflow as tf

    return _custom_loop(tf, tf.keras, sizes, weights, data)


@candidate("tf.function", needs="tensorflow")
def tensorflow_function(sizes: tuple[int, ...], weights: Weights, data: Data) -> Step:
    import tensorflow as tf

    return tf.function(_custom_loop(tf, tf.keras, sizes, weights, data))  # type: ignore[no-any-return]
