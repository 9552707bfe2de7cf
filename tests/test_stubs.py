"""The stubs say what the functions say, and a program of a user's, checked strictly, sees a signature for every public name."""

import operator
import os
import pathlib
import re
import subprocess
import sys
import types

import make_stubs
import pytest
from test_public_names import public_names

import minikeras as tf


@pytest.mark.parametrize("name", make_stubs.MODULES)
def test_a_stub_says_what_the_functions_say(name: str) -> None:
    path, text = next((path, text) for path, text in make_stubs.stubs([name]))
    assert path.read_text(encoding="utf-8") == text, f"write it anew: python {make_stubs.__file__}"


def test_each_stub_is_of_a_module() -> None:
    """A folder that an earlier version left, which holds no code any more, once got stubs beside those of the module."""
    made = {path for path, _ in make_stubs.stubs()}
    alone = {path for path in make_stubs.ROOT.rglob("*.pyi") if not path.with_suffix(".py").exists()}
    assert alone <= made


@pytest.mark.parametrize("name", make_stubs.MODULES)
def test_a_parameter_that_is_off_or_on_is_a_bool(name: str) -> None:
    text = next(text for _, text in make_stubs.stubs([name]))
    assert not re.findall(r"\w+: (?:float|int|str)(?: \| None)? = (?:True|False)\b", text)


@pytest.mark.slow  # a minute
def test_mypy_sees_the_signature_of_every_public_name(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("mypy")
    names = sorted(name.replace("minikeras.", "tf.", 1) for name in public_names())
    program = tmp_path / "program.py"
    program.write_text("\n".join(["import minikeras as tf", *(f"reveal_type({name})" for name in names)]), encoding="utf-8")
    options = ["--strict", "--no-error-summary", f"--cache-dir={tmp_path}"]
    command = [sys.executable, "-m", "mypy", *options, str(program)]
    places = os.environ | {"MYPYPATH": str(make_stubs.ROOT.parent)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=places, check=False)
    seen = dict(re.findall(r'program\.py:(\d+): note: Revealed type is "(.*)"', done.stdout))
    assert not re.findall(r".*: error: .*", done.stdout)
    hidden = {name for line, name in enumerate(names, 2) if is_hidden(name, seen.get(str(line), ""))}
    assert not hidden


PROTOCOLS = ("AssertionOfOne", "AssertionOfTwo", "Cased", "LoadTable", "OfOne", "OfTwo")


def is_hidden(name: str, seen: str) -> bool:
    """Whether a type checker does not know the parameters of a function or a class."""
    value = operator.attrgetter(name.partition(".")[2])(tf)
    is_row = seen.startswith("minikeras.") and seen.rpartition(".")[2] in PROTOCOLS  # protocols
    known = is_row or (seen.startswith(("def ", "Overload(", "type[")) and not seen.startswith("def (*Any, **Any)"))
    return isinstance(value, types.FunctionType | type) and not known
