# mypy: implicit-reexport
"""`tf.config`: what this machine offers and what is used of it. `parallel.py` holds the numbers of threads."""

from __future__ import annotations as _annotations

from ..absent import facade as _facade
from ..compiler import functions_run_eagerly, run_functions_eagerly
from ..core.arrays import device_report, list_physical_devices
from ..core.arrays.devices import get_soft_device_placement, set_soft_device_placement
from ..data.table import get_resident_data_limit, set_resident_data_limit

_hidden: set[str] = set()


def list_logical_devices(device_type: str | None = None) -> list[str]:
    """The devices that are there, without those that `set_visible_devices` left out.

    >>> tf.config.list_logical_devices("CPU")
    ['CPU:0']
    """
    return [device for device in list_physical_devices(device_type) if device not in _hidden]


get_visible_devices = list_logical_devices


def set_visible_devices(devices: str | list[str], device_type: str | None = None) -> None:
    """Have `list_logical_devices` name these devices of a type alone, [] for none. `tf.device` may name the others as well.

    Raises:
        ValueError: for a device that is not there.

    >>> tf.config.set_visible_devices([], "GPU")
    >>> tf.config.list_logical_devices("GPU")
    []
    """
    known, shown = set(list_physical_devices(device_type)), {devices} if isinstance(devices, str) else set(devices)
    if shown - known:
        raise ValueError(f"set_visible_devices: there are {sorted(known)}, found {sorted(shown)}.")
    _hidden.difference_update(shown)
    _hidden.update(known - shown)


__getattr__, __dir__, __all__ = _facade(__name__, {"experimental": None, "threading": None})
