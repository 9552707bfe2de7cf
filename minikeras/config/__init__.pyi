# Made by tests/make_stubs.py from the functions themselves.
from minikeras.compiler.compiled_function import functions_run_eagerly as functions_run_eagerly
from minikeras.compiler.compiled_function import run_functions_eagerly as run_functions_eagerly
from minikeras.config import experimental as experimental, threading as threading
from minikeras.core.arrays.devices import device_report as device_report
from minikeras.core.arrays.devices import get_soft_device_placement as get_soft_device_placement
from minikeras.core.arrays.devices import list_physical_devices as list_physical_devices
from minikeras.core.arrays.devices import set_soft_device_placement as set_soft_device_placement
from minikeras.data.table import get_resident_data_limit as get_resident_data_limit
from minikeras.data.table import set_resident_data_limit as set_resident_data_limit

def get_visible_devices(device_type: str | None = None) -> list[str]: ...
def list_logical_devices(device_type: str | None = None) -> list[str]: ...
def set_visible_devices(devices: str | list[str], device_type: str | None = None) -> None: ...
