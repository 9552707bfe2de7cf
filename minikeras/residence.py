"""The limit on data sets that stay on a device as a whole, where batches are gathered without the host."""

from __future__ import annotations

from .core.arrays.devices import free_bytes

_SHARE = 0.25
"""The default limit, as a share of the device's free memory."""

_limit: float | None = None


def get_resident_data_limit() -> float:
    """The most bytes of one data set that are copied to the current device as a whole.

    By default a quarter of the memory that is free there at that moment.

    >>> tf.config.set_resident_data_limit(2**30)
    >>> tf.config.get_resident_data_limit()
    1073741824
    >>> tf.config.set_resident_data_limit(None)
    """
    return _SHARE * free_bytes() if _limit is None else _limit


def set_resident_data_limit(limit: float | None) -> None:
    """Set how many bytes of one data set may be copied to a device as a whole; larger sets are moved batch by batch.

    Args:
        limit: in bytes; 0 moves every set batch by batch, None is the default.

    Raises:
        ValueError: if it is negative or no number.

    >>> tf.config.set_resident_data_limit(0)
    >>> tf.config.set_resident_data_limit(None)
    """
    global _limit
    if limit is not None and not (isinstance(limit, (int, float)) and limit >= 0):
        raise ValueError(f"set_resident_data_limit: a number of bytes from 0 on or None is needed, found {limit!r}.")
    _limit = limit
