"""What every test gets: clean surroundings, and the devices that are here.

A test fails if it leaves a tape on the stack, another state of NumPy's random numbers or error handling, another
device, or Tensors and tapes that keep each other alive.
"""

import faulthandler
import gc
import os
import sys
import time
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import gpu_guard
import numpy as np
import pytest
import strict_array
from hypothesis import HealthCheck, given, settings, strategies
from laws import cyclic_garbage

import minikeras as tf
from minikeras.core.arrays import devices, probe
from minikeras.core.stack import BOTTOM, current, switch
from minikeras.nn_ops import streams

os.environ.setdefault("MPLBACKEND", "Agg")  # pictures without a window
os.environ.setdefault("KERAS_BACKEND", "jax")  # of the package keras, which a process can load with one backend only
os.environ.setdefault("MINIKERAS_HOME", str(Path(__file__).parents[1] / ".pytest_cache" / "minikeras"))
strict_array.install()
settings.register_profile(
    "minikeras", max_examples=30, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)  # the same examples in every run, however slow the computer is
settings.load_profile("minikeras")
_DEVICES = {"cpu": "CPU:0", "strict": "STRICT:0", "gpu": "GPU:0"}
_TIME_LIMIT = 1260.0
"""Seconds for one test, of which up to 60 are counted from the tests before it."""
_SEED = 20_261_128
"""Of draws that a test leaves to the global stream: from the system's seed one in a hundred runs would fail."""
_ARMED, _STDERR = pytest.StashKey[float](), pytest.StashKey[int]()
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
_OURS = (tf.Tensor, tf.Variable, tf.GradientTape)


@pytest.fixture(params=["cpu", "strict", pytest.param("gpu", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test on the CPU, on the strict array double and on the GPU; new arrays are made there."""
    if request.param == "gpu" and not probe().works:
        pytest.skip(f"no GPU: {probe().reason}")
    with tf.device(_DEVICES[request.param]):
        yield request.param


def pytest_configure(config: pytest.Config) -> None:
    """A test that hangs prints where, and ends the run."""
    config.stash[_STDERR] = os.dup(2)  # the tests see another one
    config.stash[_ARMED] = 0.0


@pytest.hookimpl(trylast=True)  # Hypothesis draws nothing before its own has run
def pytest_sessionstart() -> None:
    """Hypothesis makes its generator before `clean_surroundings` freezes what it looks through for the holder of one."""
    given(strategies.none())(lambda _: None)()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The same draws in every run; the watch starts anew once a minute: as pytest does it, at every test, that takes 0.3 ms."""
    streams.set_states({"": (_SEED, 0)})  # without the named streams, which count the layers of earlier tests
    stash, now = item.config.stash, time.monotonic()
    if now - stash[_ARMED] > 60:
        faulthandler.dump_traceback_later(_TIME_LIMIT, exit=True, file=stash[_STDERR])
        stash[_ARMED] = now


def pytest_unconfigure() -> None:
    """Nothing hangs any more."""
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Every second worker reads folders from their end: where two workers meet, each finds what the other has compiled."""
    report = yield
    if isinstance(collector, pytest.Directory) and _WORKER[-1:] in set("13579"):
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a GPU its tests are left out, but for `-m gpu`, which says why each is skipped; with `--on` those of the CPU."""
    if _WORKER:
        items.sort(key=lambda item: item.path)  # stable: workers must find the same order
    if config.getoption("--on") != "cpu":
        _leave_out("host", config, items)
    if "gpu" not in config.option.markexpr and not probe().works:
        _leave_out("gpu", config, items)


def _leave_out(marker: str, config: pytest.Config, items: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker(marker)])
    items[:] = [item for item in items if not item.get_closest_marker(marker)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """`-m gpu` fails if a GPU works and no test was run on it."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and gpu_guard.none_was_run(session.config.option.markexpr, reporter.stats):
        session.exitstatus = 1


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--on strict` runs any test on the strict array double, `--on gpu` on a GPU: new arrays are made there."""
    parser.addoption("--on", choices=_DEVICES, default="cpu", help="the device on which tests make their arrays")


@pytest.fixture(autouse=True)
def on_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """The device that `--on` names."""
    name = _DEVICES[request.config.getoption("--on")]
    if name == devices._current.name:
        yield
        return
    with tf.device(name):
        yield


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
    policies = sys.modules.get("minikeras.keras.config")
    assert policies is None or not policies._settings.get("policy"), "the test left a dtype policy"
    assert np.geterr() == errors, "the test changed np.geterr()"
    kind_now, words_now, *position_now = np.random.get_state()
    same = kind == kind_now and position == position_now and np.array_equal(words, words_now)
    assert same, "the test drew from NumPy's global random state"
    assert not kept_alive, f"only the cycle collector frees {kept_alive}: Tensors, Variables and tapes must be freed at once"


@pytest.fixture
def real_keras() -> Iterator[Any]:
    """The package keras, on JAX."""
    state = np.random.get_state()  # JAX and Keras draw from it when they are imported, and later
    pytest.importorskip("jax", reason="JAX is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("keras.backend", exc_type=ImportError).clear_session()  # `keras` may be a folder of these tests
        yield sys.modules["keras"]
    np.random.set_state(state)
