# mypy: implicit-reexport
"""`tf.config`: what this machine offers and what is used of it.

Names only, which may come from `arrays` and `program`. `threading.py` holds the numbers of threads.
"""

from ..absent import facade as _facade
from ..compiler import functions_run_eagerly, run_functions_eagerly
from ..core.arrays import device_report, list_physical_devices
from ..core.arrays.devices import get_soft_device_placement, set_soft_device_placement
from ..data.table import get_resident_data_limit, set_resident_data_limit
from . import experimental, threading
from .experimental import get_visible_devices, list_logical_devices, set_visible_devices

__getattr__, __dir__, __all__ = _facade(__name__, {"experimental": None, "threading": None})
