# mypy: implicit-reexport
"""Optimizers and learning rate schedules. May import keras's tables and weights. Read `optimizer.py` first, then `adam.py` for
one whole example."""

from ...absent import facade as _facade
from . import legacy, schedules
from . import step_program as _step_program
from .adagrad import Adadelta, Adafactor, Adagrad, Ftrl, RMSprop
from .adam import Adam, Adamax, AdamW, Lamb, Nadam, ScheduleFreeAdamW
from .loss_scale import LossScaleOptimizer
from .optimizer import Optimizer, deserialize, get, serialize
from .optimizer import register as _register
from .per_layer import Every, MultiOptimizer, OptimizerMap, PerLayer, cycle
from .second_order import KFAC, LBFGS, AdaHessian, GaussNewton, LevenbergMarquardt, Newton, NewtonCG, Objective, SecondOrder
from .sgd import SGD, Lion, Muon

_adaptive = (Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Lamb, Lion, Nadam, RMSprop, ScheduleFreeAdamW)
_second = (AdaHessian, GaussNewton, KFAC, LBFGS, LevenbergMarquardt, Newton, NewtonCG)
for _entry in (*_adaptive, *_second, Ftrl, LossScaleOptimizer, MultiOptimizer, Muon, PerLayer, SGD):
    _register(_entry)

__getattr__, __dir__, __all__ = _facade(__name__, {"legacy": None, "schedules": None})
