"""`keras.ops.image`: colors, sizes, filters and transforms of images, one or a batch, the channels last or first."""

from . import filters, sampling
from .filters import *  # noqa: F403
from .sampling import *  # noqa: F403

__all__ = sorted({*filters.__all__, *filters.__all__, *sampling.__all__, *sampling.__all__})
