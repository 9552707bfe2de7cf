# Made by tests/make_stubs.py from the functions themselves.
from minikeras.keras.optimizers.adagrad import Adadelta as Adadelta, Adagrad as Adagrad, Ftrl as Ftrl, RMSprop as RMSprop
from minikeras.keras.optimizers.adam import Adam as Adam, Adamax as Adamax, Nadam as Nadam
from minikeras.keras.optimizers.optimizer import Optimizer as Optimizer
from minikeras.keras.optimizers.sgd import SGD as SGD
