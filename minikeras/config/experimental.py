# mypy: implicit-reexport
"""`tf.config.experimental`, and what `tf.config` says of devices: programs begin with it, though there is little to choose."""

from typing import Any as _Any

from ..absent import facade as _facade
from ..core.arrays import list_physical_devices

_hidden: set[str] = set()


def list_logical_devices(device_type: str | None = None) -> list[str]:
    """The devices that are there, without those that `set_visible_devices` left out.

    >>> tf.config.list_logical_devices("CPU")
    ['CPU:0']
    """
    return [device for device in list_physical_devices(device_type) if device not in _hidden]


get_visible_devices = list_logical_devices


def set_visible_devices(devices: _Any, device_type: str | None = None) -> None:
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


def set_memory_growth(device: str, enable: bool) -> None:
    """Do nothing for a GPU and True: its memory grows as it is needed.

    Raises:
        ValueError: for False, since no memory is taken ahead; for what is no GPU here.

    >>> for gpu in tf.config.list_physical_devices("GPU"):
    ...     tf.config.experimental.set_memory_growth(gpu, True)
    """
    if device not in list_physical_devices("GPU") or not enable:
        raise ValueError(f"set_memory_growth: memory of GPUs always grows, and of GPUs only; found {device!r}, {enable}.")


__getattr__, __dir__, __all__ = _facade(__name__, {})
