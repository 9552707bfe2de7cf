# mypy: implicit-reexport
"""Optimizers that are given the loss as a function. Read `problem.py`, then `base.py`."""

from .adahessian import AdaHessian
from .base import SecondOrder
from .kfac import KFAC
from .lbfgs import LBFGS
from .levenberg_marquardt import LevenbergMarquardt
from .newton import GaussNewton, Newton, NewtonCG
from .problem import Objective
