"""Section `imports`: seconds of `import` beyond `import numpy`, each in a fresh process.

This project loads its modules at the first use of a name, so one name is used.
"""

import os
import subprocess
import sys
from typing import Any

from . import clock
from .executors import OWN
from .settings import PEERS, ROOT, Settings

_PROGRAM = """
import time, numpy
start = time.perf_counter()
import {module}
{used}
print(time.perf_counter() - start)
"""

_USED = {OWN: f"{OWN}.constant", f"{OWN}.keras": f"{OWN}.keras.Sequential"}


def seconds_of_import(module: str) -> float:
    """Seconds that one import takes in a new process that has imported NumPy."""
    program = [sys.executable, "-c", _PROGRAM.format(module=module, used=_USED.get(module, ""))]
    # Without byte code kept every import would compile.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=300)
    return float(done.stdout.split()[-1])


def measure(settings: Settings) -> list[dict[str, Any]]:
    """A row for every module; the first import, which may write byte code, is not counted."""
    modules = (OWN, f"{OWN}.keras", *filter(settings.has, PEERS))
    seconds: dict[str, list[float]] = {module: [] for module in modules}
    for turn in range(settings.repeats + 1):
        for module, values in seconds.items():
            found = seconds_of_import(module)
            if turn:
                values.append(found)
    return clock.rows("imports", "import, beyond NumPy", seconds, OWN, unit="s")
