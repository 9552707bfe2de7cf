"""What the laws of compiled steps start from: the tables of layers, optimizers and golden cases, and fresh random streams."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_KERAS = Path(__file__).parent.parent / "keras"
sys.path += [str(folder) for folder in (_KERAS, _KERAS / "layers", Path(__file__).parent) if str(folder) not in sys.path]


@pytest.fixture(autouse=True)
def fresh_session() -> Iterator[None]:
    """Random streams start at a fixed seed and go on afterwards as before; functions are recorded."""
    import minikeras as tf
    from minikeras.nn_ops import streams

    stream = streams.global_stream().state
    tf.keras.utils.clear_session()
    yield
    streams.global_stream().state = stream
    assert not tf.config.functions_run_eagerly(), "the test left functions eager"


@pytest.fixture(params=["numpy", "llvm"])
def executor(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """What carries programs out."""
    from minikeras.compiler import executors
    from minikeras.compiler.executors import llvm

    if request.param == "numpy":
        return executors.by_numpy
    if not llvm.installed():
        pytest.skip("llvmlite and SciPy are not installed")
    return executors.by_llvm


@pytest.fixture
def lowering(executor: Callable[..., Any]) -> Callable[..., Any]:
    """What turns the instructions of a program into calls: of NumPy, or of kernels of LLVM."""
    from minikeras.compiler import executors
    from minikeras.compiler.executors.numpy.lowering import lowered

    if executor is executors.by_numpy:
        return lowered
    from minikeras.compiler.executors.llvm.encode import encode

    return encode
