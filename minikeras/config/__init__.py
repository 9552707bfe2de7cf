"""`tf.config`: what this machine offers and what is used of it.

Names only, which may come from `arrays` and `program`. `threading.py` holds the numbers of threads.
"""

from ..absent import late as _late
from ..arrays import device_report, list_physical_devices
from ..arrays.devices import get_soft_device_placement, set_soft_device_placement
from ..arrays.residence import get_resident_data_limit, set_resident_data_limit
from ..compiler import functions_run_eagerly, run_functions_eagerly
from . import threading

__all__ = [
    "device_report",
    "functions_run_eagerly",
    "get_resident_data_limit",
    "get_soft_device_placement",
    "list_physical_devices",
    "run_functions_eagerly",
    "set_resident_data_limit",
    "set_soft_device_placement",
    "threading",
]

__getattr__, __dir__ = _late(__name__, {})
