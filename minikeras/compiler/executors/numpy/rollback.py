"""What a run has changed before its commit, to be put back if it fails: random streams, and what optimizers remember.

Nothing here refers to arrays of weights and slots, so a commit can write these in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ....core import Record, Variable
from ....core.changes import clock
from ....core.effects import State
from ....core.variable import restore, snapshot
from ...ir import Program

if TYPE_CHECKING:
    from ....nn_ops.streams import Stream


class Rollback:
    """All of that for one program.

    Args:
        streams: that it draws from.
        variables: that are the state of its generators.
        holders: the optimizers whose steps it takes, and their states.
    """

    __slots__ = ("_holders", "_streams", "_variables")

    def __init__(self, streams: list[Stream], variables: list[Variable], holders: list[Any]) -> None:
        self._streams, self._variables, self._holders = streams, variables, holders

    def begin(self) -> Callable[[], None]:
        """Keep the state by now; what is returned puts it back."""
        drawn = [(stream, stream.state) for stream in self._streams]
        states = snapshot(self._variables)
        attributes = [(holder, vars(holder).copy()) for holder in self._holders]

        def put_back() -> None:
            for stream, state in drawn:
                stream.state = state
            restore(states)
            for holder, before in attributes:
                vars(holder).clear()
                vars(holder).update(before)
            clock.tick()

        return put_back


def rollback_of(program: Program) -> Rollback | None:
    """What puts back the changes of a program before its commit; None if code of a user may change anything else."""
    from ....nn_ops.streams import Stream  # which loads hashlib

    streams: dict[int, Stream] = {}
    variables: dict[int, Variable] = {}
    holders: dict[int, Any] = {}
    for record in program.records:
        writes = record.primitive.writes
        if State.STREAM in writes:
            owner = getattr(record.params["source"], "__self__", None)
            if isinstance(owner, Stream):
                streams[id(owner)] = owner
            elif isinstance(state := getattr(owner, "state", None), Variable):
                variables[id(state)] = state
            else:
                return None
        elif State.VARIABLES in writes:
            if not _is_own(record):
                return None
            optimizer = record.params["optimizer"]
            holders |= {id(one): one for one in (optimizer, optimizer.state)}
    return Rollback(list(streams.values()), list(variables.values()), list(holders.values()))


def _is_own(record: Record) -> bool:
    """Whether it is part of a step of one of the package's optimizers, and no code of a user."""
    optimizer: Any = record.params.get("optimizer")
    return type(optimizer).__module__.startswith("minikeras.") and bool(optimizer.rate_is_own)
