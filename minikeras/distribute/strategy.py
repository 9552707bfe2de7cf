"""DataParallel: models that are made in its scope are trained by all ranks, each on its rows of every batch."""

from __future__ import annotations

import contextlib
import enum
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .. import nest
from ..core import Tensor, convert_to_tensor, device
from ..errors import InvalidArgumentError
from ..keras.batches import Source
from ..keras.training.executions import StepFunction, Steps, Turn
from ..keras.training.state import ModelLike
from ..keras.training.trainer import TRAINING
from ..ranks import computing_on, rows_here, world
from . import agreement
from .functions import all_reduce, first_difference
from .parts import BatchPart, BatchSplit, OwnRows
from .world import rows_of


class Resolver(NamedTuple):
    """The number of this rank, by TensorFlow's names."""

    task_id: int
    task_type: str = "worker"


class ReduceOp(enum.Enum):
    """The operations of `reduce`, by TensorFlow's names.

    >>> tf.distribute.MultiWorkerMirroredStrategy().reduce(tf.distribute.ReduceOp.SUM, 2.0, axis=None).numpy()
    np.float32(2.0)
    """

    SUM = "SUM"
    MEAN = "MEAN"


class InputContext(NamedTuple):
    """The rank that a Dataset is made for: it takes part `input_pipeline_id` of `num_input_pipelines`, by `Dataset.shard`.

    >>> tf.distribute.InputContext(4, 0, 4).get_per_replica_batch_size(32)
    8
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The rows of each rank.

        Raises:
            ValueError: if they do not divide evenly.
        """
        rows, rest = divmod(global_batch_size, self.num_replicas_in_sync)
        if rest:
            raise ValueError(
                f"get_per_replica_batch_size: {global_batch_size} rows do not divide among {self.num_replicas_in_sync} ranks."
            )
        return rows


_GIVE = (
    "Give all ranks the same data, of which each takes its rows; if it has rows of its own, use "
    "DataParallel(auto_shard_dataset=False)."
)


class DataParallel:
    """All ranks hold the same model, compute on their rows of each batch and take the same step: that of one process with the
    same batches. `tf.distribute.MultiWorkerMirroredStrategy` is another name.

    Make and compile the model within `scope()`, or after `keras.distribution.set_distribution`. `fit`, `evaluate`, `predict`
    and the methods for one batch are then called by all ranks, with the same data; `batch_size` counts the rows of all of them.

    Args:
        device_mesh, devices: accepted for Keras's sake: each rank computes where it is.
        auto_shard_dataset: whether data are the same on all ranks, each of which takes its rows of each batch. If not, the
            batches of a rank are rows of its own, and the batch of a step is all of them together.
        virtual_shards: a power of two, a multiple of the number of ranks. Batches are computed in so many parts and sums taken
            in pairs, so training gives the same bits with 1, 2, 4, ... ranks. None for one part a rank.

    Raises:
        ValueError: for options that do not fit; for seeds that differ among the ranks.
        MissingExtraError: if there are several ranks and no mpi4py.

    >>> strategy = tf.distribute.MultiWorkerMirroredStrategy()
    >>> with strategy.scope():
    ...     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    ...     model.compile("sgd", "mse")
    >>> strategy.num_replicas_in_sync
    1
    """

    def __init__(
        self,
        device_mesh: Any = None,
        devices: Any = None,
        auto_shard_dataset: bool = True,
        virtual_shards: int | None = None,
        **options: Any,
    ) -> None:
        if unknown := set(options) - {"cluster_resolver", "communication_options"}:
            raise TypeError(f"DataParallel: unknown options {sorted(unknown)}.")
        self.auto_shard_dataset = bool(auto_shard_dataset)
        self.virtual_shards = virtual_shards
        size = world().size
        if virtual_shards is not None:
            whole = isinstance(virtual_shards, (int, np.integer)) and virtual_shards > 0 and virtual_shards is not True
            if not whole or virtual_shards & (virtual_shards - 1) or virtual_shards % size:
                raise InvalidArgumentError(
                    f"DataParallel: virtual_shards must be a power of two and a multiple of the {size} ranks, found "
                    f"{virtual_shards!r}."
                )
            if not auto_shard_dataset:
                raise InvalidArgumentError(
                    "DataParallel: virtual_shards cuts batches that all ranks know; it cannot be had with "
                    "auto_shard_dataset=False."
                )
        agreement.agree_on_seeds()

    # Ranks ---------------------------------------------------------------------------------------------------------------

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of ranks."""
        return world().size

    num_processes = num_model_replicas = num_replicas_in_sync

    @property
    def data_shard_id(self) -> int:
        """The number of this rank."""
        return world().rank

    @property
    def cluster_resolver(self) -> Resolver:
        """`task_id` is the number of this rank, `task_type` 'worker'."""
        return Resolver(world().rank)

    @property
    def is_active(self) -> bool:
        """True if steps differ from those of a single process."""
        return world().size > 1 or self.virtual_shards is not None

    @contextlib.contextmanager
    def scope(self) -> Iterator[DataParallel]:
        """Within the block models are made for all ranks."""
        before, _here.strategy = _here.strategy, self
        try:
            yield self
        finally:
            _here.strategy = before

    def split(self, total: int) -> BatchSplit | None:
        """The part of a batch of `total` rows that this rank computes; None for all of it, also for fewer rows than parts."""
        if not self.is_active or total < (self.virtual_shards or world().size):
            return None
        return self.split_of(world().rank, total)

    def split_of(self, rank: int, total: int) -> BatchSplit:
        """The part of a batch of `total` rows, at least one for each part, that a rank computes."""
        shards = self.virtual_shards or world().size
        each = shards // world().size
        found = [rows_of(total, number, shards) for number in range(rank * each, (rank + 1) * each)]
        parts = tuple([BatchPart(rows.start, len(rows), total, each) for rows in found])
        return BatchSplit(parts, self.virtual_shards is not None)

    # Training ------------------------------------------------------------------------------------------------------------

    def join(self, model: ModelLike, name: str, source: Source, agrees: bool) -> None:
        """Refuse what ranks cannot train together. Unless a model `agrees` already, let all build it on their rows of the first
        batch, and give them the seeds and Variables of rank 0.

        Raises:
            InvalidArgumentError: on every rank, for a first batch with fewer rows than there are ranks, optimizers that ask for
                the loss or exchange gradients themselves, and models or seeds that differ.
        """
        if agrees and name not in TRAINING:
            return
        element, data, size = source.first_element(), None, world().size
        rows = source.rows(element) if element is not None and self.auto_shard_dataset else None
        if name in TRAINING and rows is not None and rows < size:
            raise InvalidArgumentError(
                f"{name}: a batch of {rows} rows is too small for {size} ranks. Give larger batches (batch_size counts the "
                "rows of all ranks), or start fewer ranks."
            )
        if name in TRAINING:
            agreement.check_optimizer(model.optimizer, name)
        if not agrees:
            split = None if rows is None else self.split(rows)
            if element is not None:
                data = source.batch(element if split is None else source.cut(element, split.rows))
            agreement.agree(model, data, name == "predict")

    stops = staticmethod(agreement.stops)

    def steps(self, step_on: Callable[[Any], Any], name: str, source: Source) -> RankSteps:
        """The steps of one pass over data on this rank."""
        return RankSteps(step_on, name, source, self)

    # Custom loops --------------------------------------------------------------------------------------------------------

    def run(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Call `fn` on this rank. As in TensorFlow its optimizers step by the sum of the gradients of all ranks: the loss
        is to be divided by the rows of all of them. Metrics are of the rows of this rank.

        >>> tf.distribute.MultiWorkerMirroredStrategy().run(lambda x: x + 1, args=(1,))
        2
        """
        with computing_on(OwnRows()) if world().size > 1 and rows_here().rows is None else contextlib.nullcontext():
            return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Tensor:
        """The sum or mean over all ranks; with `axis` also over that axis, whose length may differ among them.

        Args:
            reduce_op: 'SUM' or 'MEAN', in any case, or what prints so.
            value: a tensor of this rank.
            axis: None to keep the shape.

        >>> strategy = tf.distribute.MultiWorkerMirroredStrategy()
        >>> print(strategy.reduce("MEAN", [1.0, 3.0], axis=0).numpy())
        2.0
        """
        operation = str(reduce_op).rpartition(".")[2].lower()
        if operation not in ("sum", "mean"):
            raise InvalidArgumentError(f"reduce: expected 'SUM' or 'MEAN', found {reduce_op!r}.")
        tensor = convert_to_tensor(value)
        if axis is None:
            return all_reduce(tensor, operation)
        from ..functions.reductions import reduce_sum

        total = all_reduce(reduce_sum(tensor, axis))
        return total if operation == "sum" else total / all_reduce(np.asarray(tensor.shape[axis], total.dtype.numpy))

    def experimental_distribute_dataset(self, dataset: Any) -> Any:
        """The Dataset of this rank's rows of each batch; the dataset itself if `auto_shard_dataset` is False.

        >>> strategy = tf.distribute.MultiWorkerMirroredStrategy()
        >>> data = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))
        >>> [batch.numpy().tolist() for batch in data]
        [[0, 1], [2, 3]]
        """
        ranks = world()
        if not self.auto_shard_dataset or ranks.size == 1:
            return dataset

        def own(*batch: Any) -> Any:
            cut = lambda leaf: leaf[rows_of(int(leaf.shape[0])).start : rows_of(int(leaf.shape[0])).stop]
            found = nest.map_structure(cut, batch)
            return found if len(found) > 1 else found[0]

        return dataset.map(own)

    def distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any = None) -> Any:
        """The Dataset that a function makes for this rank, whose batches are its own; `options` are TensorFlow's alone.

        >>> strategy = tf.distribute.MultiWorkerMirroredStrategy()
        >>> make = lambda context: tf.data.Dataset.range(4).shard(context.num_input_pipelines, context.input_pipeline_id)
        >>> len(strategy.distribute_datasets_from_function(make))
        4
        """
        size = world().size
        return dataset_fn(InputContext(size, world().rank, size))

    def __repr__(self) -> str:
        return f"<DataParallel over {world().size} ranks>"


class RankSteps(Steps):
    """The steps of one pass over data on this rank, on some rows of each batch; as in `Steps`.

    Args:
        step_on, name: as there.
        source: the batches; if data are sharded, the same ones on all ranks.
        strategy: one that is active.

    Raises:
        InvalidArgumentError: on every rank, for sharded data with other numbers of rows or batches, or of another kind.
    """

    def __init__(self, step_on: Callable[[Any], StepFunction], name: str, source: Source, strategy: DataParallel) -> None:
        super().__init__(step_on)
        self._name, self._source, self._strategy = name, source, strategy
        self._meets, self._shards = world().size > 1, strategy.auto_shard_dataset
        self._knows_rows = not self._meets or (self._shards and source.table is not None)
        self._counts: list[int] = []
        if self._meets and self._shards:
            self._check_data()

    def _check_data(self) -> None:
        """Refuse data, of which each rank takes its rows, if they are not the same on all."""
        table, steps = self._source.table, self._source.steps
        known = None if table is None else table.length, None if steps in (None, np.inf) else int(steps)
        kinds = [one if one is None else table.converted(one[:0]) for one in table.columns] if table is not None else []
        columns = ", ".join("None" if one is None else f"{one.dtype.name}{list(one.shape[1:])}" for one in kinds)
        found = world().all_gather(np.array([-1 if count is None else count for count in known])).tolist()
        if found != found[:1] * len(found):
            listed = "; ".join(f"{rows} and {batches}" for rows, batches in found)
            raise InvalidArgumentError(
                f"{self._name}: the rows and batches of the data on the ranks are {listed}, -1 for a number that is not known. "
                f"{_GIVE}"
            )
        if (differs := first_difference([columns])) is not None:
            raise InvalidArgumentError(
                f"{self._name}: on rank {world().rank} the rows of the data are {columns}, on the ranks {differs[1]} others. "
                f"{_GIVE}"
            )

    def take(self, elements: Iterator[Any], count: int, stop: bool) -> list[Any]:
        """As in `Steps`; none if one of the ranks is told to stop. Then all ranks know how many rows each batch has.

        Raises:
            InvalidArgumentError: on every rank, if data that should be the same are not.
        """
        least = [count if self._knows_rows else 1, 1 - stop]
        count, goes_on = world().all_reduce(np.array(least), "min").tolist() if self._meets else least
        found = super().take(elements, count, not goes_on)
        if self._knows_rows or self.ended:
            return found
        rows = self._source.rows(found[0]) if found else 0
        self._counts = world().all_gather(np.array([rows])).ravel().tolist()
        if self._shards and len(set(self._counts)) > 1:
            raise InvalidArgumentError(
                f"{self._name}: the next batch has {self._counts} rows on the ranks, 0 for none. {_GIVE}"
            )
        return found if all(self._counts) else []

    def on(self, elements: list[Any]) -> Turn:
        """As in `Steps`."""
        rank, total = world().rank, sum(self._counts)
        if self._shards or not self._meets:
            split = self._strategy.split(self._source.rows(elements[0]))
        else:
            split = BatchSplit((BatchPart(sum(self._counts[:rank]), self._counts[rank], total),), False)
        if split is None:
            return super().on(elements)._replace(around=computing_on(None))
        own = [self._source.cut(element, split.rows) for element in elements] if self._shards else elements
        whole = functools.partial(self._whole, split) if self._meets else lambda output: output
        if self._name != "predict_step":  # in `run` of a strategy, too, gradients are added up once
            return Turn(self.step_on(split), own, whole, computing_on(None))
        first, last = split.parts[0], split.parts[-1]  # draws are those for these rows; other steps see to it themselves
        return Turn(self.step_on(None), own, whole, computing_on(replace(first, rows=last.first + last.rows - first.first)))

    def _whole(self, split: BatchSplit, output: Any) -> Any:
        """An output for the rows of all ranks, of which this one has computed its own."""
        if not self._shards:
            return gathered(output, self._counts)
        splits = [self._strategy.split_of(rank, split.parts[0].total) for rank in range(world().size)]
        return gathered(output, [one.rows.stop - one.rows.start for one in splits])


def gathered(rows: Any, counts: Sequence[int]) -> Any:
    """The rows of all ranks; `counts` are the numbers of rows on each."""
    padded = np.zeros((max(counts), *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    found = world().all_gather(padded)
    return np.concatenate([part[:count] for part, count in zip(found, counts, strict=True)])


class MirroredStrategy(DataParallel):
    """`DataParallel` in one process, with one device, for programs that name it: TensorFlow's has several devices.

    Args:
        devices: one, as for `tf.device`, on which the block of `scope` makes arrays; by default the current one.
        cross_device_ops: accepted for TensorFlow's sake: there is nothing to add up.

    Raises:
        InvalidArgumentError: for several devices, and among several ranks.

    >>> strategy = tf.distribute.MirroredStrategy()
    >>> with strategy.scope():
    ...     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> strategy.num_replicas_in_sync
    1
    """

    def __init__(self, devices: Any = None, cross_device_ops: Any = None) -> None:
        super().__init__()
        listed = [devices] if isinstance(devices, str) else list(devices or [])
        if len(listed) > 1 or world().size > 1:
            raise InvalidArgumentError(
                f"{type(self).__name__}: one process uses one device, found {listed} and {world().size} ranks. "
                "MultiWorkerMirroredStrategy trains in several processes."
            )
        self.device: str | None = listed[0] if listed else None

    @contextlib.contextmanager
    def scope(self) -> Iterator[DataParallel]:
        """Within the block models are made for this device."""
        with contextlib.nullcontext() if self.device is None else device(self.device), super().scope():
            yield self


class OneDeviceStrategy(MirroredStrategy):
    """`MirroredStrategy` by the name that it has for one device.

    >>> with tf.distribute.OneDeviceStrategy("/cpu:0").scope() as strategy:
    ...     tf.distribute.get_strategy() is strategy
    True
    """

    def __init__(self, device: str) -> None:
        super().__init__(device)


class _Here(threading.local):
    strategy: DataParallel | None = None


_here = _Here()
_of_process: DataParallel | None = None


def set_distribution(value: DataParallel | None) -> None:
    """Set the strategy of models that are made from now on, outside of any scope; None for a single process.

    >>> tf.keras.distribution.set_distribution(tf.keras.distribution.DataParallel())
    >>> tf.keras.distribution.distribution()
    <DataParallel over 1 ranks>
    >>> tf.keras.distribution.set_distribution(None)
    """
    if value is not None and not isinstance(value, DataParallel):
        raise TypeError(f"set_distribution: expected a DataParallel or None, found {value!r:.100}.")
    global _of_process
    _of_process = value


def distribution() -> DataParallel | None:
    """The strategy of the block around, or else the one that `set_distribution` was given.

    >>> tf.keras.distribution.distribution()
    """
    return _here.strategy or _of_process


def has_strategy() -> bool:
    """True if a strategy is active.

    >>> tf.distribute.has_strategy()
    False
    """
    return distribution() is not None


def get_strategy() -> DataParallel:
    """The strategy of the block around; outside of any, one of its own.

    >>> tf.distribute.get_strategy().num_replicas_in_sync
    1
    """
    return distribution() or DataParallel()


MultiWorkerMirroredStrategy = DataParallel
