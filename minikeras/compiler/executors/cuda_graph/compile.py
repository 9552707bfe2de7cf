"""From a recorded program of a device to what runs there."""

from __future__ import annotations

from collections.abc import Collection

from ....core.registry import operations
from ...ir import Program
from ...passes.pipeline import optimized
from ..numpy.rollback import rollback_of
from .convolutions import lower_convolutions
from .device import Device
from .epilogues import add_epilogues
from .functions import DTYPES, PREAMBLE
from .fusion import fuse_groups, join_losses
from .lowering import Emitter
from .lt import Product
from .preparation import on_host, with_aligned_flats
from .runner import GraphExecutable
from .schedule import Schedule, Unsupported


def compiled(program: Program, device: Device) -> GraphExecutable:
    """A recorded program, ready to run as graphs.

    Raises:
        Unsupported: if Python has a say in it where a graph cannot stop.
    """
    whole = [operations.softmax, operations.log_softmax, operations.softmax_cross_entropy]
    whole += [operations.sparse_softmax_cross_entropy, operations.sparse_softmax_cross_entropy_grad]
    recorded, twin = program, program.over_numpy()
    program = optimized(twin, whole, DTYPES, graphs=True)
    for run_pass in (lower_convolutions, join_losses, fuse_groups, with_aligned_flats):
        program = run_pass(program)
    hosted = on_host(recorded, twin, program)
    rollback = rollback_of(program)
    if rollback is None:
        raise Unsupported("code of the user may change state in the middle of a step")
    keys = program.unused_keys()
    generate = Emitter(keys).kernels

    def scheduled(refused: Collection[Product]) -> Schedule:
        schedule = Schedule(program, hosted, keys, generate, refused)
        add_epilogues(schedule, refused)
        schedule.commit()
        return schedule

    return GraphExecutable(device, program, scheduled, PREAMBLE, keys, rollback)
