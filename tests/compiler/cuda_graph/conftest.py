"""A double of a GPU for the tests of this folder."""

import sys
from pathlib import Path

import pytest

if str(Path(__file__).parent) not in sys.path:
    sys.path.append(str(Path(__file__).parent))


def _doubled(sources):
    import graph_double
    import strict_array

    from minikeras.compiler.executors.cuda_graph import device

    strict_array.install()
    yield graph_double.install(sources)
    device._devices.clear()


@pytest.fixture
def double():
    """The device that carries out programs of strict arrays."""
    yield from _doubled(sources=False)


@pytest.fixture
def double_of_sources():
    """The same, with kernels from their sources."""
    yield from _doubled(sources=True)
