"""Several processes that train one model: ranks, collective operations, and what custom training loops need of them.

`guides/distribution.md` shows how programs are started. Every name is loaded when it is first used;
type checkers read them in `__init__.pyi`.
"""

from ..absent import facade as _facade

_LATE: dict[str, str | None] = {
    "callbacks": None,
    **dict.fromkeys(("BroadcastGlobalVariablesCallback", "LearningRateWarmupCallback", "MetricAverageCallback"), "callbacks"),
    **dict.fromkeys(("DistributedGradientTape", "DistributedOptimizer"), "training"),
    "ThreadCommunicator": "communicator",
    **dict.fromkeys(("all_reduce", "all_reduce_together", "broadcast_variables"), "functions"),
    **dict.fromkeys(("InputContext", "MirroredStrategy", "MultiWorkerMirroredStrategy", "OneDeviceStrategy"), "strategy"),
    **dict.fromkeys(("ReduceOp", "get_strategy", "has_strategy"), "strategy"),
    **dict.fromkeys(("barrier", "init", "initialize", "local_rank", "rank", "rows_of", "size", "using"), "world"),
}

__getattr__, __dir__, __all__ = _facade(__name__, _LATE)
