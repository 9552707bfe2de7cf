# Made by tests/make_stubs.py from the functions themselves.
from minikeras.distribute.strategy import DataParallel as DataParallel, distribution as distribution
from minikeras.distribute.strategy import set_distribution as set_distribution
from minikeras.distribute.world import get_device_count as get_device_count, initialize as initialize
from minikeras.distribute.world import list_devices as list_devices
