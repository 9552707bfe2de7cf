# Made by tests/make_stubs.py from the functions themselves.
from collections import Counter
from minikeras.core.forward import ForwardAccumulator as ForwardAccumulator
from minikeras.core.gradient_tape import GradientTape as GradientTape
from minikeras.derivatives.curvature import Estimate as Estimate, block_hessian as block_hessian, fisher as fisher
from minikeras.derivatives.curvature import gauss_newton as gauss_newton, ggnvp as ggnvp, hessian as hessian
from minikeras.derivatives.curvature import hessian_diag as hessian_diag, hessian_trace as hessian_trace, hvp as hvp
from minikeras.derivatives.first_order import jacobian as jacobian, jvp as jvp, per_example_gradients as per_example_gradients
from minikeras.derivatives.first_order import vjp as vjp
from minikeras.derivatives.own_operations import bilinear as bilinear, elementwise as elementwise, linear as linear
from minikeras.derivatives.own_operations import primitive as primitive
from minikeras.figures.matrices import plot_batch_jacobian as plot_batch_jacobian, plot_hessian as plot_hessian
from minikeras.figures.matrices import plot_jacobian as plot_jacobian

loop_fallbacks: Counter[str]
