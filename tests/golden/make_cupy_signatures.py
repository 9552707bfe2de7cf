"""Writes cupy_signatures.json: what the functions and methods of CuPy take that kernels may ask for. Needs no GPU.

    python tests/golden/make_cupy_signatures.py

with `pip install 'minikeras[cupy]'`. The strict array double holds every call to it.
"""

import inspect
import json
import operator
import pathlib
import re
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1]), str(pathlib.Path(__file__).parents[2])]

import cupy  # noqa: E402
from strict_array import METHODS  # noqa: E402

from minikeras.core.arrays import ALLOWED_NAMES  # noqa: E402

FILE = pathlib.Path(__file__).with_name("cupy_signatures.json")
WITHOUT = {"dtype"}
"""NumPy's own."""


def parameters(function: object) -> list[list[object]]:
    """Name, kind and whether there is a default, of each parameter."""
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except ValueError:  # compiled code says it in the first line of its documentation
        signature = _of_text((function.__doc__ or "").splitlines()[0])
    found = [[one.name, int(one.kind), one.default is not one.empty] for one in signature.parameters.values()]
    return found[1:] if found[0][0] == "self" and hasattr(function, "__self__") else found


def _of_text(line: str) -> inspect.Signature:
    """The signature that a line states: '_ndarray_base.sum(self, axis=None, out=None) -> _ndarray_base'."""
    text = re.search(r"\((.*)\)", line.replace("\\", "").partition(" ->")[0])[1]  # type: ignore[index]
    text = re.sub(r"\b\w+ (\w+)", r"\1", text)  # types of C before names
    found: dict[str, object] = {}
    exec(f"def stated({text}): ...", found)
    return inspect.signature(found["stated"])  # type: ignore[arg-type]


def signatures() -> dict[str, list[list[object]]]:
    """By name; methods of arrays as 'ndarray.sum'."""
    functions = {name: operator.attrgetter(name)(cupy) for name in ALLOWED_NAMES if name not in WITHOUT}
    at = {f"{name}.at": functions[name].at for name in ("add", "maximum", "minimum", "subtract")}
    methods = {f"ndarray.{name}": getattr(cupy.ndarray, name) for name in METHODS}
    return {name: parameters(one) for name, one in sorted({**functions, **at, **methods}.items())}


if __name__ == "__main__":
    FILE.write_text("{\n" + ",\n".join(f'"{name}": {json.dumps(one)}' for name, one in signatures().items()) + "\n}\n")
