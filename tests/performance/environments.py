"""Environments of their own for the peers, so that none decides which NumPy, BLAS or threads another one has.

Each is a folder below the one that `--environments` names, with what one framework needs; it is made where it is missing.
Candidates of a framework run by its interpreter, all others by the one that runs the script.
"""

import importlib.metadata
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

NEEDS = {
    "torch": ("torch", "keras"),
    "jax": ("jax", "keras"),
    "tensorflow": ("tensorflow", "keras"),
    "autograd": ("autograd",),
    "mygrad": ("mygrad",),
}
"""The packages of each environment, beside NumPy and tqdm."""
OWN = "minikeras"

_made: dict[str, Path] = {}
"""The environments in use, by framework."""


def make(folder: Path, frameworks: tuple[str, ...]) -> None:
    """Use the environments of these frameworks, and make those that are missing."""
    for framework in frameworks:
        place = _made[framework] = folder.resolve() / framework
        if not _python(place).exists():
            print(f"making {place} ...", file=sys.stderr, flush=True)
            venv.create(place, with_pip=True)
            packages = ("numpy>=2.1", "tqdm>=4.60", *NEEDS[framework])
            subprocess.run([str(_python(place)), "-m", "pip", "install", "-q", *packages], check=True)


def interpreter(candidate: object) -> str:
    """The Python that runs a candidate, by the framework in its name."""
    name = str(candidate).lower().replace("pytorch", "torch")
    if not name.startswith(OWN):
        for framework, place in _made.items():
            if framework in name or (framework == "tensorflow" and "tf.function" in name):
                return str(_python(place))
    return sys.executable


def has(module: str) -> bool:
    """True if an environment has a module."""
    return any((site / module).is_dir() for site in _sites())


def version(package: str) -> str | None:
    """The version of a package that one of the environments has."""
    found = importlib.metadata.distributions(name=package, path=[str(site) for site in _sites()])
    return next((one.version for one in found), None)


def _python(place: Path) -> Path:
    return place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _sites() -> Iterator[Path]:
    for place in _made.values():
        yield from [*place.glob("lib/python*/site-packages"), *place.glob("Lib/site-packages")]
