"""Many runs of a model: trained together, carried out from a grid, compared. May import all of keras.

Every name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from ..absent import late

if TYPE_CHECKING:
    from .ensemble import Ensemble
    from .history import EnsembleHistory
    from .results import RunResult, SweepResults
    from .sweep import Sweep
    from .table import Table

__all__ = ["Ensemble", "EnsembleHistory", "RunResult", "Sweep", "SweepResults", "Table"]

_LATE: dict[str, str | None] = {
    "Ensemble": "ensemble",
    "EnsembleHistory": "history",
    **dict.fromkeys(("RunResult", "SweepResults"), "results"),
    "Sweep": "sweep",
    "Table": "table",
}

__getattr__, __dir__ = late(__name__, _LATE)
