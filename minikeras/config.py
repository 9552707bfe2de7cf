"""`tf.config`: what this machine offers and what is used of it."""

from .arrays import device_report, list_physical_devices
from .program import functions_run_eagerly, run_functions_eagerly

__all__ = ["device_report", "functions_run_eagerly", "list_physical_devices", "run_functions_eagerly"]
