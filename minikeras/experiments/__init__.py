# mypy: implicit-reexport
"""Many runs of a model: trained together, carried out from a grid, compared. May import all of keras.

Every name is loaded when it is first used.
"""

from ..absent import facade as _facade

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
