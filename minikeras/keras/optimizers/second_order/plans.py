"""Curvature of the outputs by a plan: once the same record was seen several times, what follows from it is a program."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ....compiler import sweeps
from ....compiler.ir import Outdated
from ....compiler.sweeps import compiled_plan
from ....core import Record, Tensor, Variable
from ....core.stack import BOTTOM, current
from ....core.tape import Tape
from ....derivatives.output_curvature import Decision
from ....errors import MinikerasError
from ..repeat import Repeatable
from .objective import ObjectiveCurvature, ObjectiveRun

REFUSALS = (MinikerasError, ValueError, TypeError, OverflowError, np.linalg.LinAlgError)


def decided(results: Sequence[Any]) -> Sequence[Any]:
    """What was asked of a curvature: `results` are its number, it, and the parts of all decisions on the way.

    Raises:
        Outdated: in a replay, if its numbers decide otherwise than those of the recorded run.
    """
    count, *rest = results
    found, numbers = rest[:count], rest[count:]
    if not all(Decision(*numbers[i : i + 3]).holds() for i in range(0, len(numbers), 3)):
        raise Outdated("rows of a batch meet where they did not, or the other way round")
    return found


def planned_curvature(
    run: ObjectiveRun,
    variables: Sequence[Variable],
    runs: Repeatable,
    name: Hashable,
    ask: Callable[[ObjectiveCurvature], list[Tensor]],
) -> list[Any] | None:
    """The flat gradient and what is asked of the curvature, the number of it in front; None without a plan.

    Args:
        run, variables, runs: as for `ObjectiveCurvature.of_run`.
        name: of what is asked.
        ask: how.
    """
    if current() is not BOTTOM or not run.shows_all(variables[0].dtype):
        return None
    tape = run.tape
    targets = [run.outputs, run.loss_of_outputs, run.loss, *([] if run.extra is None else [run.extra])]
    asked = sweeps.describe(tape.records, targets, variables, tape.tracked)
    if asked is None:
        return None
    asked = asked._replace(key=("curvature of outputs", run.stage, name, asked.key))

    def compute(records: list[Record], stand_in: Callable[[Any], Any], tracked: set[int]) -> list[Any]:
        outputs, bare, loss, *extra = map(stand_in, targets)
        copied = Tape(watch_accessed=False)
        copied.records, copied.tracked = records, tracked
        copy = ObjectiveRun(run.objective, copied, run.stage, outputs, bare, extra[0] if extra else None, loss)
        chosen, decisions = [stand_in(variable) for variable in variables], list[Decision]()
        gradient, depends = copy.gradient(chosen)
        if not depends:
            raise ValueError("no variable is reached, which is said without a plan")
        found = ask(ObjectiveCurvature.of_run(copy, chosen, runs, decisions))
        return [gradient, len(found), *found, *[part for decision in decisions for part in decision]]

    def make() -> Any:
        try:
            return compiled_plan(tape.records, asked, tape.tracked, compute)
        except (LookupError, *REFUSALS):
            return None

    plan = sweeps.plans.find(asked, make)
    try:
        if plan is not None:
            gradient, *rest = plan(asked.arrays)
            return [gradient, rest[0], *decided(rest)]
    except (Outdated, *REFUSALS):
        pass  # the computation without a plan decides anew, or says what is wrong
    return None
