# mypy: implicit-reexport
"""First values of weights. May import keras's catalogue, settings and seeds. Read `initializer.py` first."""

from ...absent import late as _late
from .constants import STFT, Constant, Identity, Ones, Zeros, get
from .draws import (
    GlorotNormal,
    GlorotUniform,
    HeNormal,
    HeUniform,
    LecunNormal,
    LecunUniform,
    Orthogonal,
    RandomInitializer,
    RandomNormal,
    RandomUniform,
    TruncatedNormal,
    VarianceScaling,
    compute_fans,
)
from .initializer import Initializer, deserialize, serialize

# Keras's second names of the classes.
IdentityInitializer, OrthogonalInitializer, STFTInitializer = Identity, Orthogonal, STFT
zeros, ones, constant, identity, stft = Zeros, Ones, Constant, Identity, STFT
random_normal, random_uniform, truncated_normal, orthogonal = RandomNormal, RandomUniform, TruncatedNormal, Orthogonal
glorot_normal, glorot_uniform, variance_scaling = GlorotNormal, GlorotUniform, VarianceScaling
he_normal, he_uniform, lecun_normal, lecun_uniform = HeNormal, HeUniform, LecunNormal, LecunUniform

__getattr__, __dir__ = _late(__name__, {})
__all__ = [name for name in __dir__() if not name.startswith("_")]
