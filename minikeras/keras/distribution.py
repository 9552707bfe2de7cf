# mypy: implicit-reexport
"""Models that several processes train together: names of `keras.distribution`. `tf.distribute` holds what else ranks do."""

from ..absent import late as _late
from ..core.arrays import list_physical_devices as _list_physical_devices
from ..distribute.strategy import DataParallel, distribution, set_distribution
from ..distribute.world import initialize
from ..ranks import world as _world

__getattr__, __dir__ = _late(__name__, {})


def list_devices(device_type: str | None = None) -> list[str]:
    """The devices of all ranks together: a 'gpu:n' for each rank that has one, else a 'cpu:n' for each rank.

    Args:
        device_type: 'cpu' or 'gpu', in any case; None for GPUs if there are any.

    Raises:
        ValueError: for another kind.

    >>> tf.keras.distribution.list_devices("cpu")
    ['cpu:0']
    """
    kind = None if device_type is None else device_type.lower()
    if kind not in (None, "cpu", "gpu"):
        raise ValueError(f"list_devices: expected 'cpu', 'gpu' or None, found {device_type!r}.")
    if kind is None:
        kind = "gpu" if _list_physical_devices("GPU") else "cpu"
    count = _world().size if _list_physical_devices(kind.upper()) else 0
    return [f"{kind}:{number}" for number in range(count)]


def get_device_count(device_type: str | None = None) -> int:
    """The number of devices; see `list_devices`.

    >>> tf.keras.distribution.get_device_count("cpu")
    1
    """
    return len(list_devices(device_type))


__all__ = [name for name in __dir__() if not name.startswith("_")]
