"""Many runs of a model: trained together, carried out from a grid, compared. May import all of keras.

Every name is loaded when it is first used.
"""

from ..absent import late

__all__: list[str] = []

_LATE: dict[str, str | None] = {}

__getattr__, __dir__ = late(__name__, _LATE)
