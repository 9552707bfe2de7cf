"""Starts programs on ranks of MPI, and says what became of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from minikeras.distribute.run import mpirun

ROOT = Path(__file__).parents[2]


def launchers(ranks: int) -> dict[str, list[str]]:
    """The ways to start a program: that of this package, that of mpi4py, and MPI's alone."""
    by_mpi = [mpirun(), "-n", str(ranks), sys.executable]
    return {
        "minikeras.distribute.run": [sys.executable, "-m", "minikeras.distribute.run", "-n", str(ranks)],
        "mpirun python -m mpi4py": [*by_mpi, "-m", "mpi4py"],
        "mpirun python": by_mpi,
    }


class Outcome(NamedTuple):
    """The exit status of a job, what it wrote, and how long it took."""

    status: int
    output: str
    errors: str
    seconds: float


def run(command: Sequence[str], folder: Path, limit: float = 60.0) -> Outcome:
    """Carry out a command in a folder, with one thread for each rank. One that takes longer than the limit hangs."""
    given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # ranks read it
    environment = {
        **given,
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
        **dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"),
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_btl": "self,sm",
        "PRTE_MCA_prte_local_tmpdir_base": str(folder),
        "MINIKERAS_OFFLINE": "1",
        "PYTHONPATH": str(ROOT),
    }
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    began = time.monotonic()
    process = subprocess.Popen(command, env=environment, cwd=folder, start_new_session=True, **streams)
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        raise AssertionError(f"the job hangs; it wrote {output}{errors}") from None
    return Outcome(process.returncode, output, errors, time.monotonic() - began)
