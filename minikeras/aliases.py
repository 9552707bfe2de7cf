# mypy: implicit-reexport
"""Names that TensorFlow has at its top for initializers of Keras. Names only."""

from .keras.initializers import Constant as constant_initializer
from .keras.initializers import Ones as ones_initializer
from .keras.initializers import RandomNormal as random_normal_initializer
from .keras.initializers import RandomUniform as random_uniform_initializer
from .keras.initializers import Zeros as zeros_initializer
