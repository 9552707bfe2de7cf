"""`tf.autodiff`: differentiation. Names only; definitions are in `core/`."""

from .core import ForwardAccumulator, GradientTape
from .core.batch import loop_fallbacks
from .core.derivatives import (
    Estimate,
    fisher,
    gauss_newton,
    hessian,
    hessian_diag,
    hessian_trace,
    hvp,
    jacobian,
    per_example_gradients,
)
from .core.extension import bilinear, elementwise, linear, primitive

__all__ = [name for name in dir() if not name.startswith("_")]
