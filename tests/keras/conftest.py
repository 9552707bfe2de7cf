"""What every test of the Keras layer starts from: names counted from zero, seeds of its own, the default settings."""

from collections.abc import Iterator

import pytest

import minikeras as tf
from minikeras.nn_ops import streams


@pytest.fixture(autouse=True)
def fresh_session() -> Iterator[None]:
    """Fails a test that leaves other settings; random streams start at a fixed seed and go on afterwards as before."""
    settings, stream = tf.keras.config.floatx(), streams.global_stream().state
    tf.keras.utils.clear_session()
    streams.set_global_seed(7)
    yield
    streams.global_stream().state = stream
    assert tf.keras.config.floatx() == settings, "the test left another floatx"


@pytest.fixture(params=["float64", "float32"])
def dtype(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test with each as the default float dtype."""
    tf.keras.config.set_floatx(request.param)
    yield request.param
    tf.keras.config.set_floatx("float32")


@pytest.fixture
def float64() -> Iterator[None]:
    """Makes float64 the default float dtype for one test."""
    tf.keras.config.set_floatx("float64")
    yield
    tf.keras.config.set_floatx("float32")
