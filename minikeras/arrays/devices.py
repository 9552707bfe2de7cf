"""Where new arrays are made: the CPU, or a GPU through CuPy, which is imported and tested when a GPU is first asked for."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..errors import DeviceUnavailableError
from ..types import Array
from .namespaces import is_array, namespace, register, to_numpy


class Probe(NamedTuple):
    """Whether a GPU works here, and the reason in words."""

    works: bool
    reason: str


@functools.cache
def probe() -> Probe:
    """Try the GPU once per process: an elementwise kernel (needs NVRTC) and a product (needs cuBLAS)."""
    try:
        import cupy

        if not cupy.cuda.is_available():
            return Probe(False, "CuPy is installed, but the driver shows no CUDA device")
        sample = cupy.arange(6, dtype="float32").reshape(2, 3) + 1
        if float((sample @ sample.T).sum()) != 155.0:
            return Probe(False, "a small matrix product on the GPU gave a wrong result")
        register(cupy.ndarray, cupy, cupy.asnumpy)
        return Probe(True, "ok")
    except ModuleNotFoundError:
        return Probe(False, "CuPy is not installed (pip install 'minikeras[cuda13]' or 'minikeras[cuda12]')")
    except Exception as error:  # a driver with broken libraries raises OSError, RuntimeError and CuPy's own kinds
        return Probe(False, f"{type(error).__name__}: {str(error)[:200]}")


def gpu_namespace(index: int) -> Any:
    """CuPy with device `index` made current, or one clear error."""
    outcome = probe()
    if not outcome.works:
        raise DeviceUnavailableError(
            f"device 'GPU:{index}' was asked for, but no GPU can be used: {outcome.reason}. "
            "Use tf.device('CPU:0'), or see tf.config.device_report()."
        )
    import cupy

    count = cupy.cuda.runtime.getDeviceCount()
    if index >= count:
        raise DeviceUnavailableError(f"device 'GPU:{index}' was asked for, found {count}: GPU:0 to GPU:{count - 1}.")
    cupy.cuda.Device(index).use()
    return cupy


_BACKENDS: dict[str, Callable[[int], Any]] = {"CPU": lambda index: np, "GPU": gpu_namespace}


class _Current(threading.local):
    namespace: Any = np
    name: str = "CPU:0"


_current = _Current()


def _parse(name: str) -> tuple[str, int]:
    """('GPU', 0) from 'gpu', 'GPU:0', '/GPU:0' or '/device:GPU:0'."""
    if not isinstance(name, str):
        raise TypeError(f"device: expected a name such as 'CPU:0' or 'GPU:0', found {name!r}.")
    kind, _, index = name.upper().removeprefix("/").removeprefix("DEVICE:").partition(":")
    if kind not in _BACKENDS or not (index or "0").isdigit():
        raise ValueError(f"device: {name!r} names no device; write one of {', '.join(_BACKENDS)}, or with an index 'GPU:0'.")
    return kind, int(index or 0)


@contextlib.contextmanager
def device(name: str) -> Iterator[None]:
    """Make new arrays on a device within the block; arrays that exist already stay where they are.

    Args:
        name: 'CPU', 'CPU:0', 'GPU' or 'GPU:0'; TensorFlow's '/GPU:0' and '/device:GPU:0' as well.

    Raises:
        DeviceUnavailableError: if a GPU is named and none works, with the reason.
        ValueError: if the name is no device.
        TypeError: if it is no string.

    >>> with tf.device("CPU:0"):
    ...     tf.zeros([2]).device
    'CPU:0'
    """
    kind, index = _parse(name)
    before = _current.namespace, _current.name
    _current.namespace, _current.name = _BACKENDS[kind](index), f"{kind}:{index}"
    try:
        yield
    finally:
        _current.namespace, _current.name = before


def creation_namespace() -> Any:
    """The library in which new arrays are made in this thread."""
    return _current.namespace


def current_device() -> str:
    """The name of the device on which new arrays are made in this thread."""
    return _current.name


def to_device(array: Array, xp: Any = None) -> Array:
    """The array in library `xp` (default: the current device's), copied only if it lives elsewhere."""
    target = _current.namespace if xp is None else xp
    if is_array(array) and namespace(array) is target:
        return array
    return target.asarray(to_numpy(array))


def device_name(array: Array) -> str:
    """'CPU:0', or 'GPU:' with the index for an array in GPU memory."""
    index = getattr(getattr(array, "device", None), "id", None)
    return "CPU:0" if index is None else f"GPU:{index}"


def list_physical_devices(kind: str | None = None) -> list[str]:
    """Names of the devices that work here, for example ['CPU:0', 'GPU:0'].

    >>> list_physical_devices("CPU")
    ['CPU:0']
    """
    names = ["CPU:0"]
    kind = kind and kind.upper()
    if kind != "CPU" and probe().works:
        import cupy

        names += [f"GPU:{index}" for index in range(cupy.cuda.runtime.getDeviceCount())]
    return [name for name in names if kind is None or name.startswith(kind)]


def device_report() -> dict[str, str]:
    """What arrays are made on here and why: device, the probe's reason, and versions.

    >>> device_report()["device"]
    'CPU:0'
    """
    report = {"device": _current.name, "gpu": probe().reason, "numpy": np.__version__}
    if probe().works:
        import cupy

        report["cupy"] = cupy.__version__
        report["gpu_name"] = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return report
