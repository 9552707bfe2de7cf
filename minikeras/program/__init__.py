"""The compiled step: record one run, replay it. May import everything up to `functions`.

Read `function.py`, `recorder.py`, `watch.py`, `program.py`, `improve.py`, `loop.py`, `lower.py`, `memory.py`, `replay.py`, in
this order; then `native/`, the machine that Numba compiles.
"""

from .function import Function, function, functions_run_eagerly, run_functions_eagerly
from .program import Program

__all__ = ["Function", "Program", "function", "functions_run_eagerly", "run_functions_eagerly"]
