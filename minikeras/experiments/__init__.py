# mypy: implicit-reexport
"""Many runs of a model: trained together, carried out from a grid, compared. May import all of keras.

Every name is loaded when it is first used.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..absent import facade as _facade

if _TYPE_CHECKING:
    from .comparison import Comparison, compare
    from .ensemble import Ensemble
    from .problem import Problem
    from .results import RunResult, SweepResults
    from .sweep import Sweep
    from .table import Table
    from .training import EnsembleHistory

_LATE: dict[str, str | None] = {
    **dict.fromkeys(("Comparison", "compare"), "comparison"),
    "Ensemble": "ensemble",
    "EnsembleHistory": "training",
    "Problem": "problem",
    **dict.fromkeys(("RunResult", "SweepResults"), "results"),
    "Sweep": "sweep",
    "Table": "table",
}

__getattr__, __dir__, __all__ = _facade(__name__, _LATE)
