"""The only place that tells NumPy from CuPy, by the type of an array. May import `errors` and `types`."""

from .devices import (
    creation_namespace,
    current_device,
    device,
    device_name,
    device_report,
    list_physical_devices,
    probe,
    to_device,
)
from .namespaces import ALLOWED_NAMES, BARE, is_array, namespace, register, resolve, to_numpy
from .quiet import quiet, quiet_context

__all__ = [
    "ALLOWED_NAMES",
    "BARE",
    "creation_namespace",
    "current_device",
    "device",
    "device_name",
    "device_report",
    "is_array",
    "list_physical_devices",
    "namespace",
    "probe",
    "quiet",
    "quiet_context",
    "register",
    "resolve",
    "to_device",
    "to_numpy",
]
