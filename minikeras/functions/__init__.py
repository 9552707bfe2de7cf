"""The operations that users call: TensorFlow's names and signatures over primitives. Read `catalogue.py` first.

`name` is accepted for compatibility in all of them, and ignored.
"""

from ..core.registry import register_hooks

register_hooks("minikeras.derivatives.hessian", "DerivativesOfTape")
register_hooks("minikeras.parallel", "product", "quiet_blas")
register_hooks("minikeras.distribute.functions", "moments_of_ranks")
register_hooks("minikeras.distribute.world", "initialize")
register_hooks("minikeras.distribute.strategy", "distribution")
register_hooks("minikeras.diagnostics", "Inquiry", "Trace", "summary_of_tape")
