# Made by tests/make_stubs.py from the functions themselves.
from minikeras.config import get_visible_devices as get_visible_devices, list_logical_devices as list_logical_devices
from minikeras.config import set_visible_devices as set_visible_devices
from minikeras.core.arrays.devices import list_physical_devices as list_physical_devices, set_memory_growth as set_memory_growth
