# mypy: implicit-reexport
"""`tf.random`: random tensors and generators. Names only; definitions are in `functions/`."""

from .functions.random import (
    Generator, categorical, fold_in, gamma, get_global_generator, normal, poisson, set_seed, shuffle, split,
    stateless_categorical, stateless_gamma, stateless_normal, stateless_poisson, stateless_truncated_normal, stateless_uniform,
    truncated_normal, uniform
)
from .functions.sampling import log_uniform_candidate_sampler, uniform_candidate_sampler
from .functions.symbols import publish as _publish

_publish(globals())
