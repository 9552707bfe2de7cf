"""Runs are compared with scripts that set the global seed; afterwards all random streams are where they were."""

import random
from collections.abc import Iterator

import numpy as np
import pytest

from minikeras.nn_ops import streams


@pytest.fixture(autouse=True)
def restored_streams() -> Iterator[None]:
    before = streams.states(), random.getstate(), np.random.get_state()
    yield
    streams.set_states(before[0])
    random.setstate(before[1])
    np.random.set_state(before[2])
