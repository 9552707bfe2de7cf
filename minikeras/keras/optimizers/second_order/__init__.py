# mypy: implicit-reexport
"""Optimizers that are given the loss as a function. Read `problem.py`, then `base.py`."""

from .adahessian import AdaHessian
from .base import SecondOrder
from .kfac import KFAC
from .lbfgs import LBFGS
from .newton import GaussNewton, LevenbergMarquardt, Newton, NewtonCG
from .problem import Objective
