"""The device of new arrays: the CPU, or a GPU through CuPy, which is imported and tested when a GPU is first asked for."""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ...errors import DeviceUnavailableError, InvalidArgumentError
from ...types import Array
from .namespaces import counters, device_name, is_array, is_on_host, namespace, register, to_numpy


class Probe(NamedTuple):
    """The result of testing the GPU: True if it works here, and the reason in words."""

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
            "Use tf.device('CPU:0'), or see tf.config.device_report(). tf.config.set_soft_device_placement(True) lets the CPU "
            "stand in."
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
    chosen = False  # by a block


_current = _Current()


def _parse(name: str) -> tuple[str, int]:
    """('GPU', 0) from 'gpu', 'GPU:0', '/GPU:0' or '/device:GPU:0'."""
    if not isinstance(name, str):
        raise TypeError(f"device: expected a name such as 'CPU:0' or 'GPU:0', found {name!r}.")
    kind, _, index = name.upper().removeprefix("/").removeprefix("DEVICE:").partition(":")
    if kind not in _BACKENDS or not (index or "0").isdigit():
        raise ValueError(f"device: {name!r} names no device; write one of {', '.join(_BACKENDS)}, or with an index 'GPU:0'.")
    return kind, int(index or 0)


_soft_placement = False


def set_soft_device_placement(enabled: bool) -> None:
    """Set whether `tf.device` falls back to the CPU with a warning, instead of raising an error, if a GPU cannot be used.

    >>> set_soft_device_placement(True)
    >>> get_soft_device_placement()
    True
    >>> set_soft_device_placement(False)
    """
    global _soft_placement
    _soft_placement = bool(enabled)


def get_soft_device_placement() -> bool:
    """True if `tf.device` may fall back to the CPU when a GPU cannot be used; False unless it was set.

    >>> get_soft_device_placement()
    False
    """
    return _soft_placement


@contextlib.contextmanager
def device(name: str) -> Iterator[None]:
    """Make new arrays on a device within the block; arrays that exist already stay where they are.

    Args:
        name: 'CPU', 'CPU:0', 'GPU' or 'GPU:0'; TensorFlow's '/GPU:0' and '/device:GPU:0' as well.

    Raises:
        DeviceUnavailableError: if a GPU is named and none works, with the reason, unless soft placement was set.
        ValueError: if the name is no device.
        TypeError: if it is no string.

    >>> with tf.device("CPU:0"):
    ...     tf.zeros([2]).device
    'CPU:0'
    """
    kind, index = _parse(name)
    if _soft_placement and f"{kind}:{index}" not in ("CPU:0", *list_physical_devices("GPU")):
        warnings.warn(f"device: {name!r} cannot be used, the CPU stands in: {probe().reason}.", stacklevel=3)
        kind, index = "CPU", 0
    before = _current.namespace, _current.name, _current.chosen
    _current.namespace, _current.name, _current.chosen = _BACKENDS[kind](index), f"{kind}:{index}", True
    try:
        yield
    finally:
        _current.namespace, _current.name, _current.chosen = before
        if before[0] is not np:  # CuPy has a current device too, which the inner block may have changed
            kind, index = _parse(before[1])
            _BACKENDS[kind](index)


def creation_namespace() -> Any:
    """The library in which new arrays are made in this thread."""
    return _current.namespace


def current_device() -> str:
    """The name of the device on which new arrays are made in this thread."""
    return _current.name


def chosen_device() -> str | None:
    """The device that a `with tf.device` block names in this thread; None outside of any."""
    return _current.name if _current.chosen else None


def to_device(array: Array, xp: ModuleType | None = None) -> Array:
    """The array in library `xp` (default: the current device's), copied only if it lives elsewhere. Text stays on the host."""
    target = _current.namespace if xp is None else xp
    if is_array(array) and (namespace(array) is target or array.dtype.kind in "OUS"):
        return array
    host = to_numpy(array)
    if target is np:
        return np.asarray(host)
    host = np.asarray(host)
    if host.size == 1:  # goes along with the call of a kernel, which waits for nothing
        return target.full(host.shape, host.item(), dtype=host.dtype)
    for counter in counters:
        counter.note("device", host.nbytes)
    return target.asarray(host)


def moved(array: Array, name: str) -> Array:
    """The array on the device of that name; one of another GPU is copied by its library."""
    with device(name):
        found = to_device(array)
        return found if is_on_host(found) or device_name(found) == _current.name else found.copy()


def brought_together(name: str, arrays: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """The library of those arrays that are on a device, and all of them there: numbers of the host follow, as Python's do.

    Raises:
        InvalidArgumentError: if an array with axes is on the host; it begins with the `name` of the operation.
    """
    xp = namespace(*arrays)
    if xp is np or not any(map(is_on_host, arrays)):
        return xp, arrays
    if any(is_on_host(x) and x.ndim and x.dtype.kind not in "OUS" for x in arrays):
        raise mixed_devices(name, arrays)
    return xp, [to_device(x, xp) if is_on_host(x) else x for x in arrays]


def mixed_devices(name: str, arrays: Sequence[Any]) -> InvalidArgumentError:
    """Arrays on several devices met: nothing large is moved in silence."""
    found = [f"{x.dtype.name}[{','.join(map(str, x.shape))}] on {device_name(x)}" for x in arrays if hasattr(x, "dtype")]
    home = next(device_name(x) for x in arrays if is_array(x) and not is_on_host(x))
    return InvalidArgumentError(
        f"{name}: the operands are on different devices: {', '.join(found)}. Bring them to one: "
        f"with tf.device('{home}'): x = tf.identity(x)."
    )


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


def free_bytes() -> float:
    """Free memory of the current device; infinity for the host."""
    if not current_device().startswith("GPU"):
        return float("inf")
    import cupy

    return float(cupy.cuda.runtime.memGetInfo()[0])


def device_report() -> dict[str, str]:
    """A report on the device of new arrays: its name, the probe's reason and versions; of a GPU its name and memory too.

    >>> device_report()["device"]
    'CPU:0'
    """
    report = {"device": _current.name, "gpu": probe().reason, "numpy": np.__version__}
    if probe().works:
        import cupy

        report["cupy"] = cupy.__version__
        runtime = cupy.cuda.runtime
        free, total = runtime.memGetInfo()
        report["cuda"] = f"runtime {runtime.runtimeGetVersion()}, driver {runtime.driverGetVersion()}"
        report["gpu_name"] = runtime.getDeviceProperties(runtime.getDevice())["name"].decode()
        report["gpu_memory"] = f"{free / 1e9:.1f} of {total / 1e9:.1f} GB free"
    return report


def set_memory_growth(device: str, enable: bool) -> None:
    """Do nothing for a GPU and True: its memory grows as it is needed.

    Raises:
        ValueError: for False, since no memory is taken ahead; for what is no GPU here.

    >>> for gpu in tf.config.list_physical_devices("GPU"):
    ...     tf.config.experimental.set_memory_growth(gpu, True)
    """
    if device not in list_physical_devices("GPU") or not enable:
        raise ValueError(f"set_memory_growth: memory of GPUs always grows, and of GPUs only; found {device!r}, {enable}.")
