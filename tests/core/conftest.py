"""What every test of the core starts from and leaves behind: no toy operations, no warnings counted."""

import pytest

from minikeras.core import warnings
from minikeras.core.registry import operations


@pytest.fixture(autouse=True)
def _toy_operations_are_unregistered():
    before = set(vars(operations))
    yield
    for name in set(vars(operations)) - before:
        delattr(operations, name)


@pytest.fixture(autouse=True)
def _warnings_are_counted_afresh():
    warnings._told.clear()
