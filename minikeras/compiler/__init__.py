# mypy: implicit-reexport
"""The compiled step: record one run, replay it. May import everything up to `functions`.

`ir.py` is the program, `recorder.py` makes one from a run, `compiled_function.py` decides when that run can be repeated.
`passes/` improve it, `planning.py` gives its results memory, `variable_storage.py` holds flattened Variables, `executors/`
carry it out: NumPy, or kernels that LLVM compiles.
"""

from ..core.registry import register_hooks
from .compiled_function import CompiledFunction, function, functions_run_eagerly, run_functions_eagerly
from .ir import Program

register_hooks("minikeras.compiler.sweeps", "planned_gradients")
