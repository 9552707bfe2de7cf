"""The public names, compared with a checked-in list, so that none comes, goes or moves unnoticed.

After a change that is meant, write the list anew and read its difference:

    python tests/test_public_names.py && git diff tests/public_names.txt
"""

import ast
import importlib
import operator
import pathlib
import types
import typing
from collections.abc import Iterator

import pytest

import minikeras
from minikeras.facades import FACADES

LIST = pathlib.Path(__file__).with_name("public_names.txt")
INTERNAL = {
    f"minikeras.{name}"
    for name in (
        "absent",
        "averages",
        "boundary",
        "bundle",
        "checkpoint",
        "core",
        "derivatives",
        "diagnostics",
        "examples",
        "extras",
        "facades",
        "figures",
        "files",
        "functions",
        "markup",
        "module",
        "layout",
        "nn_ops",
        "parallel",
        "ranks",
        "state",
        "compiler",
        "types",
        "warm_up",
    )
}
"""Modules that are not for users, although an import makes them attributes of the package that they lie in."""


HOLD_DEFINITIONS = {f"minikeras.{name}" for name in ("data.experimental", "debugging", "strings", "summary")}
"""Modules that explain absent names, but define some of theirs, with helpers, and so list what is public."""


def public_names(module: types.ModuleType = minikeras) -> Iterator[str]:
    """Dotted names of everything public: what `from module import *` gives of each module."""
    for name in dir(module):  # what is loaded at its first use is an attribute from then on
        getattr(module, name, None)
    for name in declared(module):
        dotted, value = f"{module.__name__}.{name}", getattr(module, name)
        if isinstance(value, types.ModuleType):
            if value.__name__ == dotted and dotted not in INTERNAL:
                yield dotted
                yield from public_names(value)
        else:
            yield dotted


def declared(module: types.ModuleType) -> list[str]:
    """The names that `import *` gives: those without an underscore, or what a module's `__all__` leaves of them."""
    given: dict[str, object] = {}
    exec(f"from {module.__name__} import *", given)
    return sorted(given.keys() - {"__builtins__"})


def written(names: Iterator[str]) -> str:
    return "\n".join(sorted(set(names))) + "\n"


def test_the_public_names_are_those_of_the_list() -> None:
    found, listed = set(public_names()), set(LIST.read_text(encoding="utf-8").split())
    message = [f"new, not in the list: {name}" for name in sorted(found - listed)]
    message += [f"in the list, but gone: {name}" for name in sorted(listed - found)]
    assert not message, "\n".join([*message, f"If this is meant, write the list anew: python {pathlib.Path(__file__)}"])


@pytest.mark.parametrize("module", [minikeras, minikeras.dtypes])
def test_a_name_that_needs_an_extra_is_not_listed_after_its_use_either(module: types.ModuleType) -> None:
    pytest.importorskip("ml_dtypes")
    assert module.bfloat16.name == "bfloat16"
    assert "bfloat16" not in {*dir(module), *declared(module)}


def test_the_list_is_sorted_and_names_everything_once() -> None:
    text = LIST.read_text(encoding="utf-8")
    assert text == written(iter(text.split()))


def modules() -> list[types.ModuleType]:
    """The public modules."""
    return [importlib.import_module(name) for name in sorted({name.rpartition(".")[0] for name in public_names()})]


def test_modules_of_names_alone_show_no_others() -> None:
    """Completion finds neither their helpers nor the files of their folders."""
    for module in modules():
        if module.__name__.partition(".")[2] in FACADES or (
            "_late" in vars(module) and module.__name__ not in HOLD_DEFINITIONS
        ):
            assert [name for name in dir(module) if not name.startswith("_")] == declared(module), module


def test_type_checkers_see_names_that_come_from_other_files() -> None:
    """Under `--strict` mypy hides what a file only imports, except where it lists literally, has this comment, or a stub."""
    for module in modules():
        if module.__name__.startswith("minikeras.keras.datasets."):  # they are classes in files
            continue
        path = pathlib.Path(str(module.__file__))
        text = path.read_text(encoding="utf-8")
        own = ast.parse(text).body
        literal = any(
            isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__all__" and isinstance(one.value, ast.List)
            for one in own
        )
        assert literal or text.startswith("# mypy: implicit-reexport\n") or path.with_suffix(".pyi").is_file(), module


def test_the_types_of_every_function_are_known() -> None:
    for dotted in public_names():
        value = operator.attrgetter(dotted.partition(".")[2])(minikeras)
        if isinstance(value, types.FunctionType):
            assert typing.get_type_hints(value) is not None, dotted


def test_every_declared_name_exists() -> None:
    """`__all__` cannot promise what is not there; for lazily made names `getattr` makes them."""
    for dotted in public_names():
        value = minikeras
        for part in dotted.split(".")[1:]:
            value = getattr(value, part)


def test_the_minimum_of_names_that_the_guides_use_is_there() -> None:
    """Section 20.1 of the tape's specification, without what later stages bring."""
    missing = {
        dotted
        for dotted in (
            *(
                "GradientTape",
                "UnconnectedGradients.ZERO",
                "Variable",
                "constant",
                "stop_gradient",
                "get_logger",
                "__version__",
            ),
            *(
                "bool",
                "float32",
                "int32",
                "eye",
                "linspace",
                "pad",
                "random.normal",
                "range",
                "reshape",
                "transpose",
                "zeros",
            ),
            *(
                "clip_by_norm",
                "clip_by_value",
                "einsum",
                "linalg.solve",
                "math.round",
                "math.sin",
                "matmul",
                "norm",
                "pow",
            ),
            *(
                "reduce_max",
                "reduce_mean",
                "reduce_prod",
                "reduce_sum",
                "sin",
                "square",
                "tensordot",
                "nn.elu",
                "nn.relu",
            ),
            *("nn.sigmoid", "nn.softmax", "nn.softplus", "image.adjust_contrast"),
        )
        if not _reachable(dotted)
    }
    assert missing == set()


def _reachable(dotted: str) -> bool:
    value: object = minikeras
    for part in dotted.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


if __name__ == "__main__":
    LIST.write_text(written(public_names()), encoding="utf-8")
    print(f"{LIST}: {len(LIST.read_text(encoding='utf-8').split())} names")
