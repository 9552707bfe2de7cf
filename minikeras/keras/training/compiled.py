"""Steps of a model that are recorded once by `tf.function`'s machinery, and replayed while what they read stays the same."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from ...compiler import Function
from ...distribute.strategy import Split
from .shared_step import shared_step

StepFunction = Callable[[Any], Any]
MOST = 64
"""So many steps are recorded: where ranks bring batches of ever other sizes, further ones run eagerly."""


class CompiledSteps:
    """The compiled steps of one model, by name; `planned` is the number of steps of the present `fit`."""

    __slots__ = ("_steps", "planned")

    def __init__(self) -> None:
        self._steps: dict[tuple[str, Split | None], Function] = {}
        self.planned = 0

    def of(self, model: Any, name: str, split: Split | None = None) -> StepFunction:
        """The step of that name, for the rows of this rank if batches are split, compiled if the model was told so and it can
        be of use.
        """
        step: StepFunction = getattr(model, name) if split is None else partial(shared_step, model, name, split)
        wanted = False if model.run_eagerly else model.jit_compile
        decides = name == "train_step" and getattr(model.optimizer, "needs_loss", False)
        if not wanted or (wanted == "auto" and decides and getattr(model.optimizer, "sweeps", None) is None):
            return step
        key = name, split
        if key not in self._steps:
            if len(self._steps) >= MOST:
                return step
            self._steps[key] = _recorded(model, name, split, wanted is True)
        if wanted == "auto" and not (split is not None and split.pairs):  # whose bits do not depend on what LLVM is worth
            self._steps[key].plan(self.planned)
        return self._steps[key]

    def __getitem__(self, name: str) -> Function:
        """The function of a step, for its counters and programs."""
        return self._steps[name, None]

    def __deepcopy__(self, memo: Any) -> CompiledSteps:
        """None yet: a copied model has other Variables."""
        return CompiledSteps()

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledSteps, ()


def _recorded(model: Any, name: str, split: Split | None, strict: bool) -> Function:
    """A step of a model as a function of its batch."""
    # The model holds the function, and is freed with its last other reference.
    reference: Callable[[], Any] = weakref.ref(model)
    if split is None:
        run: StepFunction = lambda data: getattr(reference(), name)(data)
    else:
        run = lambda data: shared_step(reference(), name, split, data)
    step = Function(run, name=f"{model.name}.{name}", jit_compile=strict or None)
    if name == "train_step":
        step.builds = lambda: _makes_slots(reference())
    return step


def _makes_slots(model: Any) -> bool:
    """Whether the next step makes the slots of its optimizer."""
    return bool(getattr(model.optimizer, "slot_groups", ())) and not model.optimizer.built
