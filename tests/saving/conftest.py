"""Names counted from zero, as in every test of the Keras layer; and real Keras, where it is installed."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minikeras as tf


@pytest.fixture(autouse=True)
def fresh_session() -> None:
    tf.keras.utils.clear_session()


@pytest.fixture
def real_keras() -> Iterator[Any]:
    """The package keras on its NumPy backend, which needs JAX to be there."""
    os.environ.setdefault("KERAS_BACKEND", "numpy")
    state = np.random.get_state()  # Keras draws from it when it is imported, and later
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("keras.backend", exc_type=ImportError).clear_session()  # `keras` may be a folder of these tests
        keras = sys.modules["keras"]
        yield keras
    np.random.set_state(state)
