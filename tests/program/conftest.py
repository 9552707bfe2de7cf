"""What the laws of compiled steps start from: the tables of layers, optimizers and golden cases, and fresh random streams."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_KERAS = Path(__file__).parent.parent / "keras"
sys.path += [str(folder) for folder in (_KERAS, _KERAS / "layers", Path(__file__).parent) if str(folder) not in sys.path]


@pytest.fixture(autouse=True)
def fresh_session() -> Iterator[None]:
    """Random streams start at a fixed seed and go on afterwards as before; functions are recorded."""
    import minikeras as tf
    from minikeras.arrays import random as streams

    stream = streams.global_stream().state
    tf.keras.utils.clear_session()
    yield
    streams.global_stream().state = stream
    assert not tf.config.functions_run_eagerly(), "the test left functions eager"


@pytest.fixture(params=["numpy", "machine"])
def lowering(request: pytest.FixtureRequest) -> type:
    """What turns the instructions of a program into calls: of NumPy, or in words for the machine."""
    from minikeras.program import native
    from minikeras.program.lower import Lowering

    if request.param == "numpy":
        return Lowering
    if not native.available():
        pytest.skip("Numba and SciPy carry out words")
    from minikeras.program.native.encode import Encoding

    return Encoding
