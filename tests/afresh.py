"""Fixtures of several folders and files: what no test finds of another."""

import pytest

from minikeras.core import warnings
from minikeras.core.registry import operations
from minikeras.nn_ops import streams


@pytest.fixture(autouse=True)
def operations_afresh():
    """Toy operations go with the test."""
    before = set(vars(operations))
    yield
    for name in set(vars(operations)) - before:
        delattr(operations, name)


@pytest.fixture(autouse=True)
def warnings_afresh():
    """No warning was told yet."""
    warnings._told.clear()


@pytest.fixture(autouse=True)
def fixed_stream():
    """All random streams at a fixed place, and afterwards where they were."""
    before = streams.states()
    streams.set_global_seed(5)
    yield
    streams.set_states(before)
