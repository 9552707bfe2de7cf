"""Starts a program on several ranks: `python -m minikeras.distribute.run -n 4 train.py [its arguments]`.

It finds `mpirun`, shares the processors among the ranks, fails if a rank has not come to its end, whatever MPI says, and starts
again where it is allowed to.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import MissingExtraError
from ..parallel import processors
from .communicator import DONE, JOINED, NEEDS, report

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_FOR_OTHER_MACHINES = ("MINIKERAS_", "PYTHON")
"""Prefixes of the environment variables that Open MPI has to be told to pass on."""
LEFT_EARLY = 70
"""The exit status if MPI reports success, but not all ranks have come to their end."""
_SESSIONS = "PRTE_MCA_prte_local_tmpdir_base"
"""Names the folder for the files of a job. In /tmp Open MPI names them by its process number, and does not start where a
killed process of that number left some."""
_PR_SET_PDEATHSIG = 1
_ANSWER = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5")


class Host(NamedTuple):
    """A machine, and the number of ranks that may run there."""

    name: str
    slots: int


class RankJob(NamedTuple):
    """A program to start.

    Attributes:
        ranks: how many processes.
        program: a script and its arguments.
        hosts: the machines; none for this one.
    """

    ranks: int
    program: Sequence[str]
    hosts: Sequence[Host] = ()

    @property
    def slots(self) -> int:
        """The number of ranks for which the hosts have room."""
        return sum(host.slots for host in self.hosts)


def mpirun() -> str:
    """The program that starts ranks: beside the interpreter, where wheels put it, or on the path.

    Raises:
        MissingExtraError: if there is none.
    """
    found = shutil.which("mpirun", path=str(Path(sys.executable).parent)) or shutil.which("mpirun")
    if found is None:
        raise MissingExtraError(f"no `mpirun` was found beside {sys.executable} or on the path: {NEEDS}.")
    return found


def command(job: RankJob, is_open_mpi: bool, available: int, variables: Mapping[str, str]) -> list[str]:
    """The command. On this machine each rank has processors of its own, or else those that wait for others yield."""
    listed = ",".join(f"{host.name}:{host.slots}" for host in job.hosts)
    options = ["-hosts", listed] if listed else []
    if is_open_mpi and listed:
        taken = [name for name in variables if name.startswith(_FOR_OTHER_MACHINES) or name in _THREADS]
        options = ["--host", listed, *(word for name in taken for word in ("-x", name))]
    elif is_open_mpi and job.ranks > available:
        options = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    elif is_open_mpi:
        options = ["--map-by", f"slot:PE={available // job.ranks}:HWTCPUS"]
    return [mpirun(), "-n", str(job.ranks), *options, sys.executable, "-m", "mpi4py", *job.program]


def environment(job: RankJob, available: int, done: str, given: Mapping[str, str]) -> dict[str, str]:
    """The variables of the ranks. On this machine each has its share of the processors, unless it was told otherwise."""
    share = str(max(1, available // job.ranks))
    asked = {name: share for name in _THREADS if name not in given and not job.hosts}
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    session = {} if any("tmpdir_base" in name for name in given) else {_SESSIONS: str(Path(done).parent)}
    return {**given, **asked, **root, **session, DONE: done}


def run(job: RankJob, restarts: int = 0, least: int | None = None) -> int:
    """Start a program, again after a failure for as many times as allowed; the exit status of the last try.

    Args:
        job: the program to start.
        restarts: how often to start again.
        least: with how many ranks at least; None for as many as at first.
    """
    for attempt in range(restarts + 1):
        status = _status(job)
        if status == 0 or attempt == restarts:
            break
        job = remaining(job, job.ranks if least is None else least)
        if job.hosts and job.slots < job.ranks:
            report(f"the hosts that answer have room for {job.slots} ranks; {job.ranks} are needed")
            break
        report(f"status {status}; start {attempt + 2} of {restarts + 1}, on {job.ranks} ranks")
    return status if 0 <= status < 256 else 1


def remaining(job: RankJob, least: int) -> RankJob:
    """The job after a failure: on the hosts that answer, with half as many ranks until they have room. Without hosts
    with half as many at once: the machine may be too small.

    >>> remaining(RankJob(4, ["train.py"]), least=1).ranks
    2
    """
    hosts = [host for host in job.hosts if _answers(host.name)]
    smaller = job._replace(hosts=hosts) if job.hosts else job._replace(ranks=max(least, job.ranks // 2))
    while hosts and smaller.slots < smaller.ranks > least:
        smaller = smaller._replace(ranks=max(least, smaller.ranks // 2))
    return smaller


def _answers(host: str) -> bool:
    if host in ("localhost", "127.0.0.1", os.uname().nodename):
        return True
    return subprocess.run([*_ANSWER, host, "true"], capture_output=True, check=False).returncode == 0


def _status(job: RankJob) -> int:
    """The exit status of one try."""
    version = subprocess.run([mpirun(), "--version"], capture_output=True, text=True, check=False).stdout
    is_open_mpi, available = "Open MPI" in version or "open-mpi" in version, len(processors())
    with tempfile.TemporaryDirectory() as folder:
        done = Path(folder) / "done"
        variables = environment(job, available, str(done), os.environ)
        started = command(job, is_open_mpi, available, variables)
        with subprocess.Popen(started, env=variables, preexec_fn=_end_with_parent) as process:
            try:
                status = process.wait()
            except BaseException:  # an interrupt, or the end of the session: MPI ends the ranks
                process.terminate()
                raise
        if status == 0 and JOINED in os.listdir(folder) and not done.exists():
            report("a rank ended before the others, without an error")
            return LEFT_EARLY
    return status


def _end_with_parent() -> None:
    """Have the system end this process, as an interrupt would, when the one that started it is gone, even if it was killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def hosts_of(listed: str) -> list[Host]:
    """Hosts in the notations of Open MPI and MPICH, with one slot unless another number is given.

    >>> hosts_of("a:2,b")
    [Host(name='a', slots=2), Host(name='b', slots=1)]
    >>> hosts_of("a slots=4  # the large one\\nb:2")
    [Host(name='a', slots=4), Host(name='b', slots=2)]
    """
    lines = [line.partition("#")[0].strip() for line in listed.replace(",", "\n").splitlines()]
    found = []
    for line in filter(None, lines):
        name, _, slots = line.replace(" slots=", ":").replace(" ", "").partition(":")
        found.append(Host(name, int(slots or 1)))
    return found


def _hosts_in(path: str) -> list[Host]:
    """The hosts that a file lists."""
    try:
        return hosts_of(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m minikeras.distribute.run", description=__doc__)
    parser.add_argument("-n", "--ranks", type=int, required=True, help="how many processes")
    parser.add_argument("--max-restarts", type=int, default=0, help="how often to start again after a failure")
    parser.add_argument(
        "--min-ranks", type=int, help="start again with fewer ranks, down to this many: half, or what hosts can take"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--hosts", type=hosts_of, default=[], metavar="A:2,B:2", help="machines, and how many ranks each takes")
    where.add_argument("--hostfile", dest="hosts", type=_hosts_in, metavar="FILE", help="the same, a line for each")
    parser.add_argument("-m", dest="is_module", action="store_true", help="the program is a module, as for python -m")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="a script or module, and its arguments")
    told = parser.parse_args(arguments)
    least = told.ranks if told.min_ranks is None else told.min_ranks
    if not 1 <= least <= told.ranks or told.max_restarts < 0 or not told.program:
        parser.error("give -n from 1 on, --min-ranks from 1 to -n, --max-restarts from 0 on, and a script")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    program = [*(["-m"] if told.is_module else []), *told.program]
    return run(RankJob(told.ranks, program, told.hosts), told.max_restarts, told.min_ranks)


if __name__ == "__main__":
    sys.exit(main())
