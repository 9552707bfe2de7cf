# mypy: implicit-reexport
"""`tf.autodiff`: differentiation. Names only; definitions are in `core/`, `derivatives/` and `figures/`."""

from .core import ForwardAccumulator, GradientTape
from .core.batch import loop_fallbacks
from .derivatives.curvature import (
    Estimate,
    block_hessian,
    fisher,
    gauss_newton,
    ggnvp,
    hessian,
    hessian_diag,
    hessian_trace,
    hvp,
)
from .derivatives.first_order import jacobian, jvp, per_example_gradients, vjp
from .derivatives.own_operations import bilinear, elementwise, linear, primitive
from .figures import plot_batch_jacobian, plot_hessian, plot_jacobian

__all__ = [name for name in dir() if not name.startswith("_")]
