"""Names of Keras and TensorFlow that are not here say what to do instead."""

from __future__ import annotations

import numpy as np
import pytest

import minikeras as tf
from minikeras.absent import ABSENT

keras = tf.keras
MODULES = {"": tf, "keras": keras, "keras.layers": keras.layers, "keras.utils": keras.utils}
UNEXPLAINED = {
    "keras": {"src", "version", "legacy", "visualization"}
    | {"Function", "Initializer", "InputSpec", "KerasTensor", "Operation", "Regularizer", "name_scope"},
    "keras.layers": set(),
}
"""Names that nobody is expected to look for: parts of Keras's own machinery, and classes that are under another name."""


@pytest.mark.parametrize("module", ABSENT)
def test_every_row_of_the_table_is_about_names_that_are_absent(module):
    for names, advice in ABSENT[module]:
        for name in (one for one in names.split() if not set("*?") & set(one)):
            with pytest.raises(AttributeError) as caught:
                getattr(MODULES[module], name)
            assert str(caught.value).endswith(advice) and advice.endswith(".")


def test_a_name_that_nobody_knows_is_only_missing():
    with pytest.raises(AttributeError, match=r"module 'minikeras.keras.layers' has no attribute 'Denze'\.$"):
        _ = keras.layers.Denze


@pytest.mark.parametrize("module", UNEXPLAINED)
@pytest.mark.filterwarnings("ignore")
def test_what_keras_has_is_here_or_explained(module, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    state = np.random.get_state()
    pytest.importorskip("jax", reason="JAX is not installed")
    real = pytest.importorskip(module, reason="keras is not installed")
    np.random.set_state(state)  # which the import draws from
    missing = {name for name in dir(real) if not name.startswith("_") and not hasattr(MODULES[module], name)}
    for name in missing - UNEXPLAINED[module]:
        with pytest.raises(AttributeError, match=r"has no attribute '\w+'\. [A-Z].*\.$"):
            getattr(MODULES[module], name)
