"""Section `memory`: the most memory that a large training loop takes, and whether a long one grows.

A process each, since memory that was once taken shows for the rest of a process's life.
`python -m tests.performance.memory peak NAME` and `... growth NAME` are those processes.
"""

import gc
import json
import resource
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

from .candidates import available
from .executors import NUMPY, OWN
from .problems import PROBLEMS, first_weights, one_batch
from .settings import ROOT, Settings

MIB = 2**20
PEAK_STEPS = 20
_LIGHT = ("NumPy by hand", "NumPy by hand, out=", OWN, NUMPY.title)


def peak_memory() -> float:
    """The most memory this process has had, in MiB.

    Linux counts in ru_maxrss what the parent had when it started the process, so /proc is read where there is one.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (MIB if sys.platform == "darwin" else 1024)


def _step(name: str, label: str) -> Any:
    problem = PROBLEMS[label]
    (one,) = [one for one in available(Settings(), problem) if one.name == name]
    return one.setup(problem, first_weights(problem.sizes), one_batch(problem))


def peak(name: str, label: str) -> dict[str, Any]:
    """Peak memory of a few steps, in MiB, frameworks' libraries included."""
    step = _step(name, label)
    for _ in range(PEAK_STEPS):
        float(step())
    return {"peak_MiB": peak_memory()}


def growth(name: str, steps: int) -> dict[str, Any]:
    """Bytes that Python holds after a loop beyond those before, and objects that only the cycle collector frees."""
    step = _step(name, "small")
    gc.collect()
    gc.disable()
    tracemalloc.start()
    # Python and NumPy keep freed blocks for reuse, Python up to 2,000 tuples of a length: reached after as many steps.
    for _ in range(3 * steps):
        step()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(steps):
        step()
    after, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"growth_bytes": after - before, "peak_bytes": most - before, "cyclic_garbage": gc.collect(), "steps": steps}


def in_a_process(*arguments: str) -> dict[str, Any]:
    """What this module prints when it is run with these arguments."""
    program = [sys.executable, "-m", f"{__package__}.memory", *arguments]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row of peak memory for each candidate, and rows of growth for this project and NumPy by hand."""
    label = "small" if settings.quick else "large"
    found = []
    for one in available(settings, PROBLEMS[label]):
        numbers = in_a_process("peak", one.name, label)
        found.append(_row(f"peak of the {label} loop", one.name, "MiB", numbers["peak_MiB"]))
    own = next(row["median"] for row in found if row["candidate"] == OWN)
    for row in found:
        row |= {"own": OWN, "ratio_of_medians": own / row["median"], "ratio_of_minima": own / row["minimum"]}
    for name in _LIGHT:
        numbers = in_a_process("growth", name, str(settings.steps))
        row = _row(f"growth over {settings.steps} small steps", name, "KiB", numbers["growth_bytes"] / 1024)
        found.append({**row, **numbers})
    return found


def _row(problem: str, name: str, unit: str, number: float) -> dict[str, Any]:
    """A row of one number, measured once."""
    row = {"section": "memory", "problem": problem, "candidate": name, "unit": unit, "blocks": 1}
    return {**row, "median": number, "minimum": number}


if __name__ == "__main__":
    what, candidate_name, argument = sys.argv[1:]
    print(json.dumps(peak(candidate_name, argument) if what == "peak" else growth(candidate_name, int(argument))))
