# Made by tests/make_stubs.py from the functions themselves.
from minikeras.distribute import callbacks as callbacks
from minikeras.distribute.callbacks import BroadcastGlobalVariablesCallback as BroadcastGlobalVariablesCallback
from minikeras.distribute.callbacks import LearningRateWarmupCallback as LearningRateWarmupCallback
from minikeras.distribute.callbacks import MetricAverageCallback as MetricAverageCallback
from minikeras.distribute.communicator import ThreadCommunicator as ThreadCommunicator
from minikeras.distribute.functions import all_reduce as all_reduce, all_reduce_together as all_reduce_together
from minikeras.distribute.functions import broadcast_variables as broadcast_variables
from minikeras.distribute.strategy import DataParallel, InputContext as InputContext, MirroredStrategy as MirroredStrategy
from minikeras.distribute.strategy import OneDeviceStrategy as OneDeviceStrategy, ReduceOp as ReduceOp
from minikeras.distribute.strategy import get_strategy as get_strategy, has_strategy as has_strategy
from minikeras.distribute.training import DistributedGradientTape as DistributedGradientTape
from minikeras.distribute.training import DistributedOptimizer as DistributedOptimizer
from minikeras.distribute.world import barrier as barrier, initialize as initialize, local_rank as local_rank, rank as rank
from minikeras.distribute.world import rows_of as rows_of, size as size, using as using

MultiWorkerMirroredStrategy = DataParallel
def init(job_addresses: str | None = None, num_processes: int | None = None, process_id: int | None = None, *, timeout: float = 600.0) -> None: ...
