# mypy: implicit-reexport
"""Losses. May import keras's settings and all below keras. Read `loss.py` first: the base, and what shapes fit together."""

from ...absent import facade as _facade
from .classification import *  # noqa: F403
from .crossentropy import *  # noqa: F403
from .loss import Loss, LossFunctionWrapper, Reduction, deserialize, get, serialize
from .regression import *  # noqa: F403

__getattr__, __dir__, __all__ = _facade(__name__, {})
