"""Names counted from zero, as in every test of the Keras layer."""

import pytest

import minikeras as tf


@pytest.fixture(autouse=True)
def fresh_session() -> None:
    tf.keras.utils.clear_session()
