"""`tf.random`: random tensors and generators. Names only; definitions are in `functions/`."""

from .functions import random, sampling
from .functions.catalogue import publish as _publish

_publish(
    globals(),
    {
        random: """Generator categorical fold_in gamma get_global_generator normal poisson set_seed shuffle split
            stateless_categorical stateless_gamma stateless_normal stateless_poisson stateless_truncated_normal
            stateless_uniform truncated_normal uniform""",
        sampling: "log_uniform_candidate_sampler uniform_candidate_sampler",
    },
)
