"""Writes keras_names.txt: every public name of Keras, by walking over the installed package (3.15.1).

KERAS_BACKEND=jax python tests/golden/make_keras_names.py
"""

import pathlib
import types
from collections.abc import Iterator

import keras


def names(module: types.ModuleType) -> Iterator[str]:
    for name in sorted(dir(module)):
        if name.startswith("_") or name in ("src", "legacy"):
            continue
        value = getattr(module, name)
        if not isinstance(value, types.ModuleType):
            yield f"{module.__name__}.{name}"
        elif value.__name__ == f"{module.__name__}.{name}":
            yield from names(value)


if __name__ == "__main__":
    lines = [f"# Keras {keras.__version__}", *names(keras)]
    pathlib.Path(__file__).with_name("keras_names.txt").write_text("\n".join(lines) + "\n")
