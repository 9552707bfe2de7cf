"""The extras of the package: what each brings and what is missing of it here. pyproject.toml has the versions."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from .errors import MissingExtraError

__all__ = ["EXTRAS", "Extra", "command", "extra_with", "found", "imported", "missing"]


class Extra(NamedTuple):
    """The packages that `pip install 'minikeras[NAME]'` installs.

    Attributes:
        purpose: what needs it.
        packages: the distributions, by the modules that they bring.
    """

    purpose: str
    packages: dict[str, str]


EXTRAS = {
    "cuda13": Extra("a GPU with CUDA 13", {"cupy": "cupy-cuda13x", "ml_dtypes": "ml_dtypes"}),
    "cuda12": Extra("a GPU with CUDA 12", {"cupy": "cupy-cuda12x", "ml_dtypes": "ml_dtypes"}),
    "cupy": Extra("a GPU, CUDA 13 installed", {"cupy": "cupy-cuda13x"}),
    "datasets": Extra("downloads of data sets", {"pooch": "pooch"}),
    "experiments": Extra("sweeps in several processes", {"joblib": "joblib", "threadpoolctl": "threadpoolctl"}),
    "files": Extra("checkpoints and safetensors", {"safetensors": "safetensors"}),
    "images": Extra("loading and saving pictures", {"PIL": "pillow"}),
    "jit": Extra("steps compiled by LLVM", {"llvmlite": "llvmlite", "scipy": "scipy", "threadpoolctl": "threadpoolctl"}),
    "mpi": Extra("training on several processes", {"mpi4py": "mpi4py"}),
    "onnx": Extra("export to ONNX", {"onnx": "onnx", "onnxruntime": "onnxruntime"}),
    "optuna": Extra("searches by Optuna", {"optuna": "optuna"}),
    "pandas": Extra("data frames", {"pandas": "pandas"}),
    "plot": Extra("figures", {"matplotlib": "matplotlib", "pydot": "pydot"}),
    "sklearn": Extra("estimators of scikit-learn", {"sklearn": "scikit-learn"}),
    "tensorboard": Extra("logs for TensorBoard", {"tensorboard": "tensorboard"}),
    "threads": Extra("threads of matrix products", {"threadpoolctl": "threadpoolctl"}),
    "notebooks": Extra(
        "tutorials in JupyterLab", {"ipywidgets": "ipywidgets", "jupyterlab": "jupyterlab", "matplotlib": "matplotlib"}
    ),  # last: a user who lacks matplotlib alone is sent to `plot`
}


def command(name: str) -> str:
    """The command that installs an extra.

    >>> command("plot")
    "pip install 'minikeras[plot]'"
    """
    return f"pip install 'minikeras[{name}]'"


def found(name: str) -> dict[str, str]:
    """The installed packages of an extra and their versions.

    >>> set(found("plot")) <= {"matplotlib", "pydot"}
    True
    """
    from importlib.metadata import PackageNotFoundError, version  # not at import: it takes 10 ms

    versions = {}
    for package in EXTRAS[name].packages.values():
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def missing(name: str) -> list[str]:
    """The packages of an extra that are not installed.

    >>> sorted([*missing("plot"), *found("plot")])
    ['matplotlib', 'pydot']
    """
    return [package for package in EXTRAS[name].packages.values() if package not in found(name)]


def extra_with(module: str) -> str | None:
    """The extra that brings a module; None if there is none.

    >>> extra_with("matplotlib")
    'plot'
    """
    return next((name for name, extra in EXTRAS.items() if module in extra.packages), None)


def imported(module: str, needs: str) -> Any:
    """A module of an extra.

    Raises:
        MissingExtraError: if its package is not installed; it begins with `needs`.

    >>> imported("numpy.fft", "nothing needs this").__name__
    'numpy.fft'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = extra_with(package := module.partition(".")[0])
        how = "" if name is None else f": {command(name)}, or {EXTRAS[name].packages[package]} alone"
        raise MissingExtraError(f"{needs}{how}.") from error
