# Made by tests/make_stubs.py from the functions themselves.
from minikeras.keras.config import DTypePolicy as DTypePolicy, global_policy as global_policy
from minikeras.keras.config import set_global_policy as set_global_policy
from minikeras.keras.optimizers.loss_scale import LossScaleOptimizer as LossScaleOptimizer
from typing import Any

Policy = DTypePolicy
def dtype_policy() -> DTypePolicy: ...
def set_dtype_policy(policy: Any) -> None: ...
