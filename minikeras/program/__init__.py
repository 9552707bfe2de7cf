"""The compiled step: record one run, replay it. May import everything up to `functions`.

Read `function.py`, `recorder.py`, `program.py`, `replay.py`, in this order.
"""

from .function import Function, function, functions_run_eagerly, run_functions_eagerly
from .program import Program

__all__ = ["Function", "Program", "function", "functions_run_eagerly", "run_functions_eagerly"]
