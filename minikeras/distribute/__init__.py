"""Several processes that train one model: ranks, collective operations, and what custom training loops need of them.

`guides/distribution.md` shows how programs are started. Every name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from ..absent import late

if TYPE_CHECKING:
    from .callbacks import BroadcastGlobalVariablesCallback, MetricAverageCallback
    from .communicator import ThreadCommunicator
    from .functions import all_reduce, all_reduce_together, broadcast_variables
    from .strategy import DataParallel as MultiWorkerMirroredStrategy
    from .strategy import get_strategy, has_strategy
    from .training import DistributedGradientTape, DistributedOptimizer
    from .world import barrier, initialize, local_rank, rank, rows_of, size, using

__all__ = ["BroadcastGlobalVariablesCallback", "DistributedGradientTape", "DistributedOptimizer", "MetricAverageCallback"]
__all__ += ["MultiWorkerMirroredStrategy", "ThreadCommunicator", "all_reduce", "all_reduce_together", "barrier"]
__all__ += ["broadcast_variables", "get_strategy", "has_strategy", "initialize", "local_rank", "rank", "rows_of", "size"]
__all__ += ["using"]

_LATE: dict[str, str | None] = {
    **dict.fromkeys(("BroadcastGlobalVariablesCallback", "MetricAverageCallback"), "callbacks"),
    **dict.fromkeys(("DistributedGradientTape", "DistributedOptimizer"), "training"),
    "ThreadCommunicator": "communicator",
    **dict.fromkeys(("all_reduce", "all_reduce_together", "broadcast_variables"), "functions"),
    **dict.fromkeys(("MultiWorkerMirroredStrategy", "get_strategy", "has_strategy"), "strategy"),
    **dict.fromkeys(("barrier", "initialize", "local_rank", "rank", "rows_of", "size", "using"), "world"),
}

__getattr__, __dir__ = late(__name__, _LATE)
