"""Optimizers by name and as configurations: `get`, `serialize`, `deserialize`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..catalogue import Catalogue
from .optimizer import Optimizer

catalogue = Catalogue("optimizer")
serialize, deserialize = catalogue.serialize, catalogue.deserialize


def register(kind: type[Optimizer]) -> type:
    """Register one of the package's classes under its name; `get` takes upper and lower case for the same."""
    kind.package_class = kind
    return catalogue.add(kind.__name__.lower())(kind)


def get(identifier: Any) -> Any:
    """The optimizer for a name such as 'adam', a configuration, rules of a `PerLayer`, a class or an object; None for None.

    Raises:
        ValueError: if there is none of that name, or it is something else.

    >>> tf.keras.optimizers.get("RMSprop").get_config()["rho"]
    0.9
    """
    if isinstance(identifier, Mapping) and "class_name" not in identifier:
        return catalogue.entry("PerLayer")(identifier)
    found = catalogue.get(identifier.lower() if isinstance(identifier, str) else identifier)
    if found is not None and not isinstance(found, Optimizer):
        raise ValueError(f"Could not interpret optimizer identifier: {identifier!r}. Give a name or an optimizer.")
    return found
