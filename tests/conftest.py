"""What every test gets: clean surroundings, and the devices that are here.

A test fails if it leaves a tape on the stack, another state of NumPy's random numbers or error handling, another
device, or Tensors and tapes that keep each other alive.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import strict_array
from hypothesis import HealthCheck, settings
from laws import cyclic_garbage

import minikeras as tf
from minikeras.arrays import devices, probe
from minikeras.core.stack import BOTTOM, current, switch

os.environ.setdefault("MPLBACKEND", "Agg")  # pictures without a window
strict_array.install()
settings.register_profile(
    "minikeras", max_examples=30, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)  # the same examples in every run, however slow the computer is
settings.load_profile("minikeras")
_DEVICES = {"cpu": "CPU:0", "strict": "STRICT:0", "gpu": "GPU:0"}
_OURS = (tf.Tensor, tf.Variable, tf.GradientTape)


@pytest.fixture(params=["cpu", "strict", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test on the CPU, on the strict array double and on the GPU; new arrays are made there."""
    if request.param == "gpu" and not probe().works:
        pytest.skip(f"no GPU: {probe().reason}")
    with tf.device(_DEVICES[request.param]):
        yield request.param


@pytest.fixture(autouse=True)
def clean_surroundings() -> Iterator[None]:
    """Fails a test that leaves traces."""
    kind, words, *position = np.random.get_state()
    errors, device_before = np.geterr(), devices._current.name
    gc.collect()
    gc.freeze()  # what exists by now is not looked through again
    gc.disable()  # cycles made by the test stay until they are counted
    try:
        yield
        kept_alive = cyclic_garbage(_OURS)
    finally:
        gc.enable()
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")
    tape_left = current() is not BOTTOM
    switch(BOTTOM)
    assert not tape_left, "the test left an interpreter (a tape?) on the stack"
    assert devices._current.name == device_before, "the test left another device"
    policies = sys.modules.get("minikeras.keras.mixed_precision")
    assert policies is None or not policies._chosen, "the test left a dtype policy"
    assert np.geterr() == errors, "the test changed np.geterr()"
    kind_now, words_now, *position_now = np.random.get_state()
    same = kind == kind_now and position == position_now and np.array_equal(words, words_now)
    assert same, "the test drew from NumPy's global random state"
    assert not kept_alive, f"only the cycle collector frees {kept_alive}: Tensors, Variables and tapes must be freed at once"
