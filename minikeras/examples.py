"""Lists and runs the examples: `python -m minikeras.examples`, and `python -m minikeras.examples NAME`.

Wheels hold them in a folder of the package, clones in `examples/`. They write their figures into the current folder.
"""

from __future__ import annotations

import argparse
import ast
import os
import runpy
import shutil
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from .errors import MissingExtraError
from .extras import command, extra_with


def folder() -> Path:
    """The folder of the examples.

    >>> (folder() / "regression.py").is_file()
    True
    """
    here = Path(__file__).resolve().parent
    shipped = here / "example_scripts"
    return shipped if shipped.is_dir() else here.parent / "examples"


def names() -> list[str]:
    """The examples, sorted.

    >>> "regression" in names()
    True
    """
    return sorted(path.stem for path in folder().glob("*.py"))


def summary(name: str) -> str:
    """The first line of an example's docstring.

    >>> summary("regression")
    'Regression: learn a noisy sine with Dense layers, watch the validation loss, and predict.'
    """
    return (ast.get_docstring(ast.parse((folder() / f"{name}.py").read_text(encoding="utf-8"))) or "").partition("\n")[0]


def show() -> None:
    """List the examples, each in a line that the terminal has room for."""
    width = max(map(len, names())) + 2
    room = max(20, shutil.get_terminal_size((160, 24)).columns - width)
    for name in names():
        print(f"{name:{width}}{textwrap.shorten(summary(name), room, placeholder=' ...')}")
    print(f"\nRun one: python -m minikeras.examples {names()[0]}\nRead them: {folder()}")


def run(name: str, arguments: list[str]) -> int:
    """Run an example as a program; the exit status, 1 if a package that it needs is missing."""
    path = folder() / f"{name}.py"
    sys.argv = [str(path), *arguments]
    try:
        runpy.run_path(str(path), run_name="__main__")
    except MissingExtraError as error:
        print(error, file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        extra = extra_with(module)
        if extra is None:
            raise
        print(f"the example {name} needs the package {module}, which was not found: {command(extra)}", file=sys.stderr)
        return 1
    return 0


def exit_status(program: Callable[[], int | None]) -> int:
    """The exit status of a program; 1, without a traceback, if the reader of its output is gone, as `head` is after some lines.

    >>> exit_status(lambda: None)
    0
    """
    try:
        status = program() or 0
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it flushes at its end
        return 1
    return status


def main(arguments: list[str] | None = None) -> int:
    """List the examples, or run one."""
    parser = argparse.ArgumentParser(prog="python -m minikeras.examples", description="Lists the examples, or runs one.")
    parser.add_argument("name", nargs="?", help="the example to run; without it all are listed")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="handed on to the example")
    options = parser.parse_args(arguments)
    if options.name is None:
        show()
        return 0
    if options.name not in names():
        parser.error(f"there is no example {options.name!r}; choose from {', '.join(names())}")
    return run(options.name, options.arguments)


if __name__ == "__main__":
    sys.exit(exit_status(main))
