"""A report on this installation: version, devices, executors, extras, and how to get what is missing: `python -m minikeras`."""

from __future__ import annotations

import argparse
import os
import platform
import sys

import numpy as np

from .core.arrays import device_report
from .examples import exit_status
from .extras import EXTRAS, command, found, missing
from .version import VERSION


def main(arguments: list[str] | None = None) -> None:
    """Print the report."""
    description = "Prints version, devices, executors and extras, and how to get what is missing."
    argparse.ArgumentParser(prog="python -m minikeras", description=description).parse_args(arguments)
    print(f"minikeras {VERSION}, Python {platform.python_version()}, NumPy {np.__version__}, {platform.platform()}")
    for title, rows in (("Devices", devices()), ("Executors", executors()), ("Extras", extras())):
        print(f"\n{title}")
        for name, text in rows.items():
            print(f"  {name:12} {text}")
    print("\nExamples: python -m minikeras.examples")


def devices() -> dict[str, str]:
    """The devices, each with a description."""
    report = device_report()
    works = "cupy" in report
    gpu = f"{report['gpu_name']}, {report['gpu_memory']}, CUDA {report['cuda']}" if works else f"none: {report['gpu']}"
    return {"CPU:0": f"{platform.machine()}, {os.cpu_count()} processors", "GPU": gpu}


def executors() -> dict[str, str]:
    """The executors of compiled steps, each with a description."""
    graphs = "for steps on the GPU" if "cupy" in device_report() else "none: they need a GPU"
    return {"NumPy": "always there", "LLVM": f"for jit_compile=True: {state('jit')}", "CUDA graphs": graphs}


def extras() -> dict[str, str]:
    """The extras, each with its purpose and its installed or missing packages."""
    width = max(len(extra.purpose) for extra in EXTRAS.values())
    return {name: f"{extra.purpose:{width}}  {state(name)}" for name, extra in EXTRAS.items()}


def state(name: str) -> str:
    """The packages of an extra with their versions; or the missing packages, and the command that installs them."""
    if missing(name):
        return f"missing {', '.join(missing(name))}: {command(name)}"
    return ", ".join(f"{package} {version}" for package, version in found(name).items())


if __name__ == "__main__":
    sys.exit(exit_status(main))
