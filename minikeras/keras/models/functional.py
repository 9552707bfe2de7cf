"""Functional: the class of `keras.Model(inputs, outputs)`.

The graph is in `graph.py`, everything else in `model.py`; this name is what files and error messages call such a model.
"""

from __future__ import annotations

from .model import Model


class Functional(Model):
    """A model made from inputs and outputs: `keras.Model(inputs, outputs)`.

    >>> import minikeras as tf
    >>> x = tf.keras.Input((2,))
    >>> tf.keras.Model(x, tf.keras.layers.Dense(1)(x))
    <Functional name=functional, built=True>
    """
