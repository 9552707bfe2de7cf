"""What every guide starts from: no warnings counted yet."""

import pytest

from minikeras.core import warnings


@pytest.fixture(autouse=True)
def _warnings_are_counted_afresh():
    warnings._told.clear()
