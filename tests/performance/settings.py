"""What a run is asked for, and what it runs on. Imports no NumPy: the number of threads must be settled before that."""

import importlib.metadata
import importlib.util
import os
import platform
from pathlib import Path
from typing import Any, NamedTuple

from . import environments

ROOT = Path(__file__).resolve().parents[2]
PEERS = ("torch", "jax", "tensorflow", "keras", "autograd", "mygrad")
OPTIONAL = ("llvmlite", "scipy", "mpi4py")
PACKAGES = ("numpy", *OPTIONAL, *PEERS, "tensorflow-cpu")

# What each library calls its threads. XLA has no such variable; it counts the processors it may run on.
_THREAD_VARIABLES = (
    *("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"),
    *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
)

THREADS_OF_BLAS = dict.fromkeys(_THREAD_VARIABLES[:3], "")
"""An environment that says nothing about the threads of BLAS: this project chooses them."""

_KERNEL_VARIABLES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""What would keep one library from the kernels that it has for this processor: of 120 Gflop/s, where it has some of 220."""


class Settings(NamedTuple):
    """The options of a run.

    Attributes:
        threads: for every candidate.
        rounds: blocks for each candidate.
        block: seconds a block.
        repeats: fresh processes for each import.
        steps: length of the loops whose memory is measured.
        without: modules that take no part, installed or not.
        quick: a run that only shows that everything works.
        models: those of section `models`; none for all.
    """

    threads: int = 2
    rounds: int = 15
    block: float = 0.1
    repeats: int = 7
    steps: int = 1000
    without: tuple[str, ...] = ()
    quick: bool = False
    models: tuple[str, ...] = ()

    def has(self, *modules: str) -> bool:
        """Whether candidates that need these modules take part. Nothing is imported to find out."""
        there = [importlib.util.find_spec(module) is not None or environments.has(module) for module in modules]
        return all(there) and not any(module in self.without for module in modules)


def limit_threads(threads: int) -> None:
    """Give every library, here and in child processes, the same number of threads and of processors, and its best kernels."""
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    for variable in _KERNEL_VARIABLES:
        os.environ.pop(variable, None)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    for backend in ("tensorflow", "jax", "torch"):  # what `import keras` takes, where nothing else is asked for
        if importlib.util.find_spec(backend):
            os.environ.setdefault("KERAS_BACKEND", backend)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def machine(threads: int) -> dict[str, Any]:
    """Processor, system, threads and versions: numbers of two machines are never comparable."""
    return {
        "processor": _processor(),
        "processors": os.cpu_count(),
        "threads": threads,
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_average": list(os.getloadavg()),
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return environments.version(package) or importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    """The model name, where Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
