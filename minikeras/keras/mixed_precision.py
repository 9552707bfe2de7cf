"""Policies of dtypes: what a layer computes in, and what it keeps its weights in; see `config.py`.

With 'mixed_float16' weights stay float32, so that small updates are not lost; small gradients vanish in float16 unless
`optimizers.LossScaleOptimizer` scales the loss.
"""

from ..absent import late
from .config import DTypePolicy, Policy, dtype_policy, global_policy, set_dtype_policy, set_global_policy  # noqa: F401

__all__ = [
    *("DTypePolicy", "LossScaleOptimizer", "Policy", "dtype_policy", "global_policy", "set_dtype_policy"),
    "set_global_policy",
]

__getattr__, __dir__ = late(__name__, {"LossScaleOptimizer": ".optimizers"})
