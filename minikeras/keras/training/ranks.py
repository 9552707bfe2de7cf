"""The common way of ranks through data: who computes which rows, how many steps they take before they meet, when they end."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ... import nest
from ...core import Variable
from ...core.arrays import to_numpy
from ...core.variable import restore, snapshot
from ...data.pipeline import preserved_streams
from ...distribute.functions import broadcast_variables, first_difference
from ...distribute.replica import BatchPart, computing_on
from ...distribute.strategy import BatchSplit, DataParallel, agree_on_seeds
from ...distribute.world import joined, world
from ...errors import InvalidArgumentError
from ..batches import Source
from ..optimizers.gradients import is_distributed
from ..random import SeedState
from .state import ModelLike, named_variables

_COUNTED = re.compile(r"_\d+(?=[/_'\"]|$)")
_GIVE = (
    "Give all ranks the same data, of which each takes its rows; if it has rows of its own, use "
    "DataParallel(auto_shard_dataset=False)."
)
StepFunction = Callable[[Any], Any]
TRAINING = ("fit", "train_on_batch")
"""Methods that change weights."""


def check_scope(model: ModelLike, name: str, strategy: DataParallel | None) -> None:
    """Refuse to train a model that belongs to no strategy where there are several ranks.

    Raises:
        InvalidArgumentError: on every rank.
    """
    ranks = joined()
    if name in TRAINING and strategy is None and ranks is not None and ranks.size > 1 and not is_distributed(model.optimizer):
        raise InvalidArgumentError(
            f"{name}: there are {ranks.size} ranks, but model '{model.name}' was made outside of any strategy. "
            "Make and compile it in `with tf.distribute.MultiWorkerMirroredStrategy().scope():`, or call "
            "keras.distribution.set_distribution before; or give each rank data of its own and a DistributedOptimizer."
        )


class Steps:
    """The steps of one pass over data on this rank: all rows of each batch, or with a strategy some of them.

    Args:
        step_on: gives the step on a part of a batch; on all of it for None.
        name: 'train_step', 'test_step' or 'predict_step'.
        source: the batches; if data are sharded, the same ones on all ranks.
        strategy: one that is active, or None.

    Attributes:
        ended: whether training was told to stop.

    Raises:
        InvalidArgumentError: on every rank, for sharded data with other numbers of rows or batches, or of another kind.
    """

    def __init__(
        self,
        step_on: Callable[[BatchSplit | None], StepFunction],
        name: str,
        source: Source,
        strategy: DataParallel | None = None,
    ) -> None:
        self._step_on, self._name, self._source, self._strategy = functools.cache(step_on), name, source, strategy
        self._meets = strategy is not None and world().size > 1
        self._shards = strategy is None or strategy.auto_shard_dataset
        self._knows_rows = not self._meets or (self._shards and source.table is not None)
        self._counts: list[int] = []
        self.ended = False
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

    def agreed(self, count: int, stop: bool) -> int:
        """The number of steps to take before ranks meet again; 0 if one of them is told to stop, and `ended` is set then."""
        least = [count if self._knows_rows else 1, 1 - stop]
        if self._meets:
            least = world().all_reduce(np.array(least), "min").tolist()
        self.ended = not least[1]
        return 0 if self.ended else least[0]

    def met(self, elements: list[Any]) -> list[Any]:
        """The elements of these steps, once all ranks know how many rows each has.

        Raises:
            InvalidArgumentError: on every rank, if data that should be the same are not.
        """
        if self._knows_rows:
            return elements
        rows = self._source.rows(elements[0]) if elements else 0
        self._counts = world().all_gather(np.array([rows])).ravel().tolist()
        if self._shards and len(set(self._counts)) > 1:
            raise InvalidArgumentError(
                f"{self._name}: the next batch has {self._counts} rows on the ranks, 0 for none. {_GIVE}"
            )
        return elements if all(self._counts) else []

    def split(self, element: Any) -> BatchSplit | None:
        """The part that this rank computes of the batch that an element stands for; None for all of it."""
        if self._strategy is None:
            return None
        if self._shards or not self._meets:
            return self._strategy.split(self._source.rows(element))
        rank, total = world().rank, sum(self._counts)
        return BatchSplit((BatchPart(sum(self._counts[:rank]), self._counts[rank], total),), False)

    def own(self, element: Any, split: BatchSplit | None) -> Any:
        """The element that stands for these rows."""
        return element if split is None or not self._shards else self._source.cut(element, split.rows)

    def step(self, split: BatchSplit | None) -> StepFunction:
        """The step on these rows."""
        return self._step_on(None if self._name == "predict_step" else split)

    def computing_on(self, split: BatchSplit | None) -> AbstractContextManager[None]:
        """Within the block draws of a step that predicts are those for these rows; other steps see to it themselves."""
        if split is None or self._name != "predict_step":
            return nullcontext()
        first, last = split.parts[0], split.parts[-1]
        return computing_on(first._replace(rows=last.first + last.rows - first.first))

    def whole(self, output: Any, split: BatchSplit | None) -> Any:
        """An output for the rows of all ranks, an array on the host, of which this one has computed its own."""
        if split is None or self._strategy is None or not self._meets:
            return output
        if not self._shards:
            return gathered(output, self._counts)
        splits = [self._strategy.split_of(rank, split.parts[0].total) for rank in range(world().size)]
        return gathered(output, [one.rows.stop - one.rows.start for one in splits])


# Agreement ---------------------------------------------------------------------------------------------------------------


def check_training(model: ModelLike, strategy: DataParallel, source: Source, name: str) -> None:
    """Refuse what ranks cannot train together.

    Raises:
        InvalidArgumentError: on every rank, for a first batch with fewer rows than there are ranks, and optimizers that ask for
            the loss or exchange gradients themselves.
    """
    element, size = source.first_element(), world().size
    if element is not None and strategy.auto_shard_dataset and (rows := source.rows(element)) < size:
        raise InvalidArgumentError(
            f"{name}: a batch of {rows} rows is too small for {size} ranks. Give larger batches (batch_size counts the "
            "rows of all ranks), or start fewer ranks."
        )
    if getattr(model.optimizer, "needs_loss", False):
        raise InvalidArgumentError(
            f"{name}: {type(model.optimizer).__name__} asks for the loss of all rows several times in a step, which no rank "
            "knows. Use an optimizer of gradients, such as Adam, or train in one process."
        )
    if is_distributed(model.optimizer):
        raise InvalidArgumentError(
            f"{name}: the strategy has the ranks exchange gradients, and so has DistributedOptimizer. Give the optimizer "
            "itself, or make the model outside of the scope."
        )


def agree(model: ModelLike, strategy: DataParallel, source: Source, predicts: bool) -> None:
    """Build the model on this rank's rows of the first batch, and give all ranks the seeds and Variables of rank 0.

    Args:
        predicts: whether the data need not hold labels.

    Raises:
        ValueError: on every rank, if models or seeds differ.
    """
    agree_on_seeds()
    element, data = source.first_element(), None
    if element is not None:
        split = strategy.split(source.rows(element)) if strategy.auto_shard_dataset else None
        data = source.batch(element if split is None else source.cut(element, split.rows))
    _build(model, data, predicts)
    _check_structure(model)
    broadcast_variables(_variables(model))


def _build(model: ModelLike, data: Any, predicts: bool) -> None:
    """Make all Variables and change none; random streams change only as far as initial values need."""
    lacks_targets = not predicts and model.training_loops.targets is None
    if data is not None and not model.is_overridden("train_step") and (lacks_targets or not model.built):
        before, step = snapshot(_variables(model)), model.predict_step if predicts else model.test_step
        try:
            with preserved_streams(()) if model.built else nullcontext(), np.errstate(all="ignore"):
                step(data)
        finally:
            for variable, array in before:  # the stream of a layer keeps its seed, which the first call may have told it
                is_stream = isinstance(variable, SeedState)
                array = np.array([variable.array[0], array[1]], array.dtype) if is_stream else array
                restore([(variable, array)])
            model.reset_metrics()
    if model.optimizer is not None and model.trainable_variables:
        model.optimizer.prepare(model.learning_variables())


def _variables(model: ModelLike) -> list[Variable]:
    return list({variable.key: variable for variable in named_variables(model).values()}.values())


def _check_structure(model: ModelLike) -> None:
    """Refuse models that do not compute the same; each rank says where they differ."""
    ranks = world()
    if ranks.size == 1:
        return
    compiled = model.training_loops._compiled
    told = () if compiled is None else (*nest.flatten(compiled.loss), compiled.loss_weights)
    parts = (*model.collect_contents().sublayers, model.optimizer, *told)
    described = [_described(part) for part in parts if part is not None]
    if (found := first_difference(described)) is not None:
        place, others = found
        own = described[place] if place < len(described) else "nothing"
        raise InvalidArgumentError(
            f"on rank {ranks.rank} part {place} of model '{model.name}' is {own:.300}, on the ranks {others} it is "
            "another. All ranks must make and compile the same model."
        )


def _described(part: Any) -> str:
    """Class and options of a layer, an optimizer or a loss, or a plain value, without the numbers that a process counts up."""
    import json

    try:
        config = part.get_config() if hasattr(part, "get_config") else part
        config = json.dumps(config, sort_keys=True, default=lambda value: type(value).__name__)
    except (NotImplementedError, TypeError, ValueError):
        config = ""
    return _COUNTED.sub("", f"{type(part).__name__} {config}")


def check_weights(model: ModelLike) -> None:
    """Refuse weights that are not the same on all ranks.

    Raises:
        InvalidArgumentError: on every rank, with those that differ.
    """
    ranks, digest = world(), hashlib.blake2b(digest_size=8)
    for variable in model.collect_contents().variables:
        digest.update(np.ascontiguousarray(to_numpy(variable.array)).reshape(-1).view(np.uint8).data)
    if (found := first_difference([digest.hexdigest()])) is not None:
        raise InvalidArgumentError(
            f"the weights of model '{model.name}' on rank {ranks.rank} are not those of the ranks {found[1]}. Change weights "
            "on all ranks alike, in callbacks too; go on from the last checkpoint."
        )


def any_rank(value: bool) -> bool:
    """True if the value is true on any rank."""
    return bool(world().all_reduce(np.array([value], np.int64), "max")[0])


def gathered(rows: Any, counts: Sequence[int]) -> Any:
    """The rows of all ranks; `counts` are the numbers of rows on each."""
    padded = np.zeros((max(counts), *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    found = world().all_gather(padded)
    return np.concatenate([part[:count] for part, count in zip(found, counts, strict=True)])
