"""A double of a GPU for the tests of this folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if str(Path(__file__).parent) not in sys.path:
    sys.path.append(str(Path(__file__).parent))


@pytest.fixture
def double():
    """The device that carries out programs of strict arrays."""
    import graph_double
    import strict_array

    from minikeras.compiler.executors.cuda_graph import device

    strict_array.install()
    yield graph_double.install()
    device._devices.clear()
