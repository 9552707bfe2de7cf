"""Many runs of a model: trained together, carried out from a grid, compared. May import all of keras.

Every name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from ..absent import late

if TYPE_CHECKING:
    from .comparison import Comparison, compare
    from .ensemble import Ensemble
    from .problem import Problem
    from .results import RunResult, SweepResults
    from .sweep import Sweep
    from .table import Table
    from .training import EnsembleHistory

__all__ = ["Comparison", "Ensemble", "EnsembleHistory", "Problem", "RunResult", "Sweep", "SweepResults", "Table", "compare"]

_LATE: dict[str, str | None] = {
    **dict.fromkeys(("Comparison", "compare"), "comparison"),
    "Ensemble": "ensemble",
    "EnsembleHistory": "training",
    "Problem": "problem",
    **dict.fromkeys(("RunResult", "SweepResults"), "results"),
    "Sweep": "sweep",
    "Table": "table",
}

__getattr__, __dir__ = late(__name__, _LATE)
