# mypy: implicit-reexport
"""The only place that tells NumPy from CuPy, by the type of an array. May import `errors` and `types`."""

from .devices import (
    brought_together,
    chosen_device,
    creation_namespace,
    current_device,
    device,
    device_report,
    list_physical_devices,
    mixed_devices,
    moved,
    probe,
    to_device,
)
from .namespaces import (
    ALLOWED_NAMES,
    BARE,
    Transfers,
    device_name,
    is_array,
    is_on_host,
    namespace,
    quiet,
    quiet_context,
    register,
    resolve,
    to_numpy,
)
