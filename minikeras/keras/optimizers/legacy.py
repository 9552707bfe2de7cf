# mypy: implicit-reexport
"""`keras.optimizers.legacy`: the optimizers themselves, under the names of Keras 2."""

from .adagrad import Adadelta, Adagrad, Ftrl, RMSprop
from .adam import Adam, Adamax, Nadam
from .optimizer import Optimizer
from .sgd import SGD

__all__ = [name for name in dir() if not name.startswith("_")]
