"""`keras.ops.image`: colors, sizes, filters and transforms of images, one or a batch, the channels last or first."""

from . import colors, filters, sampling, sizes
from .colors import *  # noqa: F403
from .filters import *  # noqa: F403
from .sampling import *  # noqa: F403
from .sizes import *  # noqa: F403

__all__ = sorted({*colors.__all__, *filters.__all__, *sampling.__all__, *sizes.__all__})
