# mypy: implicit-reexport
"""`keras.ops.image`: colors, sizes, filters and transforms of images, one or a batch, the channels last or first."""

from ....absent import late as _late
from .filters import *  # noqa: F403
from .sampling import *  # noqa: F403

__getattr__, __dir__ = _late(__name__, {})
__all__ = [name for name in __dir__() if not name.startswith("_")]
