"""`keras.dtype_policies`: policies of dtypes under Keras's present names; see `config.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from ..absent import late
from .config import DTypePolicy, FloatDTypePolicy
from .config import policy_of as get
from .names import PathMap, check_patterns
from .saving.objects import deserialize_keras_object, serialize_keras_object

__all__ = ["DTypePolicy", "DTypePolicyMap", "FloatDTypePolicy", "deserialize", "get", "serialize"]


class DTypePolicyMap(PathMap[DTypePolicy]):
    """Policies by the paths of layers: the entry of that very path, else the one whose regular expression matches all of it,
    else the default. Look a layer's policy up for its `dtype`.

    Args:
        default_policy: for paths that no entry matches; None for the global one.
        policy_map: the entries, from a path or regular expression to a policy.

    >>> policies = tf.keras.dtype_policies.DTypePolicyMap(policy_map={"encoder/.*": "mixed_bfloat16"})
    >>> policies["encoder/dense"], policies["head"]
    (<DTypePolicy "mixed_bfloat16">, <DTypePolicy "float32">)
    """

    def __init__(self, default_policy: Any = None, policy_map: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        if not isinstance(policy_map, (Mapping, type(None))):
            raise TypeError(f"DTypePolicyMap: expected a dict from patterns to policies, found {policy_map!r:.100}.")
        self._given = None if default_policy is None else get(default_policy)
        self.update(policy_map or {})

    @property
    def default_policy(self) -> DTypePolicy:
        """The policy of paths that no entry matches."""
        return get(self._given)

    @property
    def _default(self) -> DTypePolicy:
        return self.default_policy

    def _checked(self, value: Any) -> DTypePolicy:
        return get(value)

    def __repr__(self) -> str:
        mapping = [(path, policy.name) for path, policy in self.items()]
        return f"<DTypePolicyMap default_policy={self.default_policy.name}, mapping={mapping}>"

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"default_policy": serialize(self._given), "policy_map": serialize(self._entries)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """A map from `get_config`; ValueError for a pattern that could take long to match."""
        check_patterns(config["policy_map"])
        return cls(**{name: deserialize_keras_object(value) for name, value in config.items()})


def serialize(dtype_policy: Any) -> Any:
    """The configuration of a policy, as plain data.

    >>> serialize(DTypePolicy("float16"))["config"]
    {'name': 'float16'}
    """
    return serialize_keras_object(dtype_policy)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The policy for a configuration.

    >>> config = tf.keras.dtype_policies.serialize(tf.keras.DTypePolicy("mixed_float16"))
    >>> tf.keras.dtype_policies.deserialize(config).name
    'mixed_float16'
    """
    known = {kind.__name__: kind for kind in (DTypePolicy, DTypePolicyMap)} | {"FloatDTypePolicy": DTypePolicy}
    return deserialize_keras_object(config, custom_objects, module_objects=known)


__getattr__, __dir__ = late(__name__, {})  # what Keras has and this package has not is explained
