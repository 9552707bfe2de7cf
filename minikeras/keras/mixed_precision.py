"""Policies of dtypes: what a layer computes in, and what it keeps its weights in. With 'mixed_float16' weights stay float32, so
that small updates are not lost; small gradients vanish in float16 unless `optimizers.LossScaleOptimizer` scales the loss.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ..absent import late
from ..types import as_dtype
from .settings import floatx

__all__ = [
    *("DTypePolicy", "LossScaleOptimizer", "Policy", "dtype_policy", "global_policy", "set_dtype_policy"),
    "set_global_policy",
]

__getattr__, __dir__ = late(__name__, {"LossScaleOptimizer": ".optimizers"})


class DTypePolicy:
    """The dtypes of a layer: of its computation and of its weights.

    Args:
        name: a dtype for both, such as 'float32' or 'bfloat16'; or 'mixed_float16', 'mixed_bfloat16': computation in half
            precision over weights in float32. None: that of `global_policy`.

    Raises:
        ValueError: if there is no policy of that name.
        TypeError: if it is neither a name nor a dtype.

    Source: Micikevicius et al., Mixed Precision Training (2018), section 3.

    >>> policy = tf.keras.mixed_precision.DTypePolicy("mixed_float16")
    >>> policy.compute_dtype, policy.variable_dtype
    ('float16', 'float32')
    """

    def __init__(self, name: Any = None) -> None:
        name = global_policy().name if name is None else name
        try:
            dtype = as_dtype(name.removeprefix("mixed_") if isinstance(name, str) else name).name
        except (TypeError, ValueError):
            raise (ValueError if isinstance(name, str) else TypeError)(_unknown(name)) from None
        mixed = isinstance(name, str) and name.startswith("mixed_")
        if mixed and dtype not in ("float16", "bfloat16"):
            raise ValueError(_unknown(name))
        self._name = f"mixed_{dtype}" if mixed else dtype
        self._compute_dtype, self._variable_dtype = dtype, "float32" if mixed else dtype

    name = property(attrgetter("_name"), doc="The name from which it was made.")
    compute_dtype = property(attrgetter("_compute_dtype"), doc="The dtype of inputs, and of weights as they are read.")
    variable_dtype = property(attrgetter("_variable_dtype"), doc="The dtype of weights as they are kept.")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"name": self._name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> DTypePolicy:
        """A policy from `get_config`."""
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DTypePolicy) and other._name == self._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f'<DTypePolicy "{self._name}">'


Policy = FloatDTypePolicy = DTypePolicy

_chosen: dict[str, DTypePolicy] = {}


def _unknown(name: Any) -> str:
    return (
        f"Cannot convert {name!r} to a DTypePolicy: expected a dtype such as 'float32', or 'mixed_float16' or 'mixed_bfloat16'."
    )


def global_policy() -> DTypePolicy:
    """The policy of layers that are not given one: the one that was set, else the default float dtype for everything.

    >>> tf.keras.mixed_precision.global_policy()
    <DTypePolicy "float32">
    """
    return _chosen.get("policy") or DTypePolicy(floatx())


def set_global_policy(policy: Any) -> None:
    """Choose the policy of layers that are made from now on.

    Args:
        policy: a DTypePolicy or its name; None returns to the default float dtype.

    >>> tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    >>> tf.keras.layers.Dense(2).compute_dtype
    'bfloat16'
    >>> tf.keras.mixed_precision.set_global_policy(None)
    """
    if policy is None:
        _chosen.clear()
    else:
        _chosen["policy"] = get(policy)


dtype_policy, set_dtype_policy = global_policy, set_global_policy


def get(identifier: Any) -> DTypePolicy:
    """The policy for None, a name, a dtype, a configuration or a policy.

    >>> tf.keras.dtype_policies.get("mixed_float16").compute_dtype
    'float16'
    """
    if identifier is None:
        return global_policy()
    if isinstance(identifier, DTypePolicy):
        return identifier
    if isinstance(identifier, dict) and "config" in identifier:
        return DTypePolicy(**identifier["config"])
    return DTypePolicy(identifier)
