"""The operations that users call: TensorFlow's names and signatures over primitives. Read `catalogue.py` first.

`name` is accepted for compatibility in all of them, and ignored. What every program needs is loaded at once, and named here.
"""

from ..absent import own_names
from ..core.registry import register_hooks
from . import contractions, control_flow, creation, elementwise, indexing, operands, ordering, reductions, shaping

register_hooks("minikeras.derivatives.hessian", "DerivativesOfTape")
register_hooks("minikeras.parallel", "product", "quiet_blas")
register_hooks("minikeras.distribute.functions", "moments_of_ranks")
register_hooks("minikeras.distribute.world", "initialize")
register_hooks("minikeras.distribute.strategy", "distribution")
register_hooks("minikeras.diagnostics", "Inquiry", "Trace", "summary_of_tape")

for _file in (contractions, control_flow, creation, elementwise, indexing, operands, ordering, reductions, shaping):
    globals().update({name: getattr(_file, name) for name in own_names(vars(_file))})
