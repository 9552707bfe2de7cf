"""Fixtures of the folders whose tests count warnings or define operations: neither is known before a test, nor after it."""

import pytest

from minikeras.core import warnings
from minikeras.core.registry import operations


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
