"""Runs every example in the documentation: one test for each module, one for each function made from a row of a table.

Examples take `import minikeras as tf` for granted, as those of NumPy take `np`.
"""

import contextlib
import doctest
import importlib
import importlib.util
import inspect
import io
import pathlib
import pkgutil
import sys
import types
from collections.abc import Iterator

import numpy as np
import pytest
from in_one_test import in_one_test
from test_public_names import public_names

import minikeras
from minikeras import keras
from minikeras.extras import EXTRAS


@pytest.fixture(autouse=True)
def _numpys_global_random_state_is_put_back() -> Iterator[None]:
    """An example may set it, to show that."""
    state = np.random.get_state()
    yield
    np.random.set_state(state)


def module_names() -> list[str]:
    """The modules with examples."""
    found = ["minikeras", *(module.name for module in pkgutil.walk_packages(minikeras.__path__, "minikeras."))]
    files = {name: importlib.util.find_spec(name).origin for name in found}  # type: ignore
    return [name for name, path in files.items() if ">>> " in pathlib.Path(path).read_text(encoding="utf-8")]


def generated_functions() -> dict[str, types.FunctionType]:
    """Public functions that no module defines by `def`: made from rows of tables, or within another function."""
    return {
        dotted: value
        for dotted, value in documented().items()
        if isinstance(value, types.FunctionType) and not is_found_by_doctest(value)
    }


OPTIONAL = {package for extra in EXTRAS.values() for package in extra.packages}


def is_found_by_doctest(function: types.FunctionType) -> bool:
    """Doctest looks at what a module defines, and takes a function for the module's whose code stands there."""
    function = inspect.unwrap(function)
    return function.__globals__ is vars(sys.modules[function.__module__])


def documented() -> dict[str, object]:
    """Public functions and classes, each by its first name."""
    found: dict[int, tuple[str, object]] = {}
    for dotted in public_names():
        value: object = minikeras
        for part in dotted.split(".")[1:]:
            value = getattr(value, part)
        if isinstance(value, type | types.MethodType) or inspect.isroutine(value):
            found.setdefault(id(value), (dotted, value))
    return dict(found.values())


def run(examples: list[doctest.DocTest]) -> str:
    """What the examples complain about; empty if they are all right."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report = io.StringIO()
    for example in examples:
        keras.utils.clear_session()  # the automatic names in an example count from the start
        runner.run(example, out=report.write, clear_globs=True)
    return report.getvalue()


@pytest.mark.parametrize("name", module_names())
def test_the_examples_of_a_module_are_right(name: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        module = importlib.import_module(name)
    examples = doctest.DocTestFinder(exclude_empty=True).find(module, extraglobs={"tf": minikeras, "print": print})
    for line in [line.source for example in examples for line in example.examples]:
        if line.startswith("import ") and (package := line.split()[1]) in OPTIONAL:
            pytest.importorskip(package)
    complaints = run([example for example in examples if example.examples])
    assert not complaints, complaints


GENERATED = generated_functions()


@in_one_test(name=GENERATED)
def test_the_example_of_a_generated_function_is_right(name: str) -> None:
    function = GENERATED[name]
    example = doctest.DocTestParser().get_doctest(function.__doc__ or "", {"tf": minikeras}, name, None, None)
    assert example.examples, f"{name} has no example"
    complaints = run([example])
    assert not complaints, complaints


def test_the_generated_functions_are_found() -> None:
    found = list(GENERATED.values())
    assert minikeras.sin in found and minikeras.add in found and minikeras.math.xlogy in found
    assert minikeras.reshape not in found, "this one is written by hand and belongs to its module"


def test_every_public_function_and_class_has_an_example() -> None:
    """What has no example cannot be shown to work as documented."""
    without = [name for name, value in documented().items() if ">>>" not in (value.__doc__ or "")]
    assert not without, f"no example: {without}"
