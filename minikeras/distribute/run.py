"""Starts a program on several ranks: `python -m minikeras.distribute.run -n 4 train.py [its arguments]`.

It finds `mpirun`, shares the processors among the ranks, and fails if a rank has not come to its end, whatever MPI says.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import MissingExtraError
from .mpi import DONE, JOINED, NEEDS

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
LEFT_EARLY = 70
"""The exit status if MPI reports success, but not all ranks have come to their end."""


def mpirun() -> str:
    """The program that starts ranks: beside the interpreter, where wheels put it, or on the path.

    Raises:
        MissingExtraError: if there is none.
    """
    found = shutil.which("mpirun", path=str(Path(sys.executable).parent)) or shutil.which("mpirun")
    if found is None:
        raise MissingExtraError(f"no `mpirun` was found beside {sys.executable} or on the path: {NEEDS}.")
    return found


def command(ranks: int, program: Sequence[str], is_open_mpi: bool, processors: int) -> list[str]:
    """What is carried out. Ranks that wait for others yield where there are more of them than processors."""
    crowded = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"] if is_open_mpi and ranks > processors else []
    return [mpirun(), "-n", str(ranks), *crowded, sys.executable, "-m", "mpi4py", *program]


def environment(ranks: int, processors: int, done: str, given: Mapping[str, str]) -> dict[str, str]:
    """The variables of the ranks: each computes with its share of the processors, unless it was told otherwise."""
    share = str(max(1, processors // ranks))
    asked = {name: share for name in _THREADS if name not in given}
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    return {**given, **asked, **root, DONE: done}


def run(ranks: int, program: Sequence[str], restarts: int = 0) -> int:
    """Start the program, again after a failure for as many times as allowed; the exit status of the last try."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    version = subprocess.run([mpirun(), "--version"], capture_output=True, text=True, check=False).stdout
    for attempt in range(restarts + 1):
        with tempfile.TemporaryDirectory() as folder:
            done = Path(folder) / "done"
            line = command(ranks, program, "Open MPI" in version or "open-mpi" in version, processors)
            status = subprocess.run(line, env=environment(ranks, processors, str(done), os.environ), check=False).returncode
            if status == 0 and JOINED in os.listdir(folder) and not done.exists():
                print("minikeras.distribute: a rank ended before the others, without an error", file=sys.stderr)
                status = LEFT_EARLY
        if status == 0:
            return 0
        if attempt < restarts:
            print(f"minikeras.distribute: status {status}; start {attempt + 2} of {restarts + 1}", file=sys.stderr)
    return status if 0 < status < 256 else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m minikeras.distribute.run", description=__doc__)
    parser.add_argument("-n", "--ranks", type=int, required=True, help="how many processes")
    parser.add_argument("--max-restarts", type=int, default=0, help="how often to start again after a failure")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="a script and its arguments")
    told = parser.parse_args(arguments)
    if told.ranks < 1 or told.max_restarts < 0 or not told.program:
        parser.error("give -n from 1 on, --max-restarts from 0 on, and a script")
    return run(told.ranks, told.program, told.max_restarts)


if __name__ == "__main__":
    sys.exit(main())
