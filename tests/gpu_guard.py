"""Whether tests for a GPU were all skipped although there is one."""

from collections.abc import Mapping, Sized

from minikeras.core.arrays import probe


def none_was_run(expression: str, outcomes: Mapping[str, Sized]) -> bool:
    """Whether `pytest -m gpu` has run no test on a GPU that works."""
    return expression == "gpu" and probe().works and not any(outcomes.get(name) for name in ("passed", "failed"))
