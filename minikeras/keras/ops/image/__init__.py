"""`keras.ops.image`: colors, sizes, filters and transforms of images, one or a batch, the channels last or first."""

from ....absent import facade as _facade
from .filters import *  # noqa: F403
from .sampling import *  # noqa: F403

__getattr__, __dir__, __all__ = _facade(__name__, {})
