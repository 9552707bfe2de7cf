"""The structure of the package, checked: imports point up the list of layers, there is no circle, files stay small.

An import counts wherever it is written: at the beginning of a file, within a function, or for type checkers alone, under
`if TYPE_CHECKING` or in a stub. So what a package loads late counts as well: the names in its `_LATE` stand there too, which
test_imports.py and test_stubs.py hold it to. Two things do not count. Python loads the packages around a module before it
(`minikeras.keras` for `minikeras.keras.losses`): that is not written in the file. Hooks (`core/registry.py`) name modules as
text, so that a floor may offer something to one below, which works without it; a test lists the files that import by a text.
"""

import ast
import functools
import graphlib
import pathlib
import re
from collections.abc import Mapping
from typing import NamedTuple

import pytest

import minikeras
from minikeras.facades import FACADES

ROOT = pathlib.Path(minikeras.__file__).parent
LONGEST = 600

LAYERS = [
    ["absent", "boundary", "errors", "extras", "markup", "types", "nest", "version"],
    ["files"],
    ["core"],
    ["parallel", "ranks"],
    ["layout", "nn_ops"],
    ["derivatives", "diagnostics"],
    ["functions", "figures"],
    ["facades"],
    ["data.table"],
    ["compiler"],
    [
        "autodiff",
        "bitwise",
        "config",
        "dtypes",
        "experimental",
        "image",
        "linalg",
        "math",
        "nn",
        "random",
        "signal",
        "strings",
        "summary",
    ],
    ["data"],
    ["module"],
    ["averages", "state"],
    ["keras.saving.registry", "keras.saving.objects", "keras.saving.objects"],
    [
        *(
            "keras.arguments",
            "keras.calls",
            "keras.config",
            "keras.dtype_policies",
            "keras.promotion",
            "keras.names",
            "keras.config",
            "keras.tree",
        ),
        *("keras.random", "keras.weight"),
    ],
    [
        "keras.activations",
        "keras.constraints",
        "keras.initializers",
        "keras.losses",
        "keras.metrics",
        "keras.regularizers",
    ],
    ["keras.symbolic", "keras.variable"],
    ["keras.ops", "keras.backend"],
    ["keras.layers", "keras.optimizers"],
    ["keras.batches", "keras.callbacks", "keras.mixed_precision"],
    ["keras.training"],
    [
        "keras.datasets",
        "keras.export",
        "keras.feature_space",
        "keras.models",
        "keras.preprocessing",
        "keras.saving",
        "keras.utils",
        "keras.wrappers",
    ],
    ["distribute"],
    ["keras.distribution"],
    ["keras", "test", "debugging", "warm_up"],
    ["bundle"],
    ["checkpoint", "train", "experiments"],
    ["examples"],
    ["_names"],
    ["", "__main__"],
]
"""Names below `minikeras`; each stands for itself and what is in it without an entry of its own. '' is the package."""

CORE_ALONE = {"errors", "types", "nest"}
"""All that the core may import of what is not in it."""

OPTIONAL = {
    "distribute": {"keras.distribution"},
    "experiments": set(),
    "checkpoint": {"train"},
    "keras.datasets": {"keras", "keras.utils"},
    "keras.optimizers.second_order": {"keras.optimizers"},
}
"""Floors that all others can do without, and the files that name them: facades, and what is made for them alone."""

ASKS_FOR_PACKAGE = {
    "": "whether the package was loaded before and has left its finder",
    "absent": "whether advice is asked for by the package, not by one that is named like a part of it",
    "boundary": "which modules of a traceback are the package's",
    "compiler.guards": "whose objects a recording looks into",
    "keras.optimizers.optimizer": "whether a schedule is of the module of schedules",
    "keras.saving.registry": "what a file may name: no class can declare that it may",
}
"""Files that tell things by the names of their modules, and what they ask."""

OF_PACKAGE = r"minikeras|\b__name__\b|__package__|_PACKAGE\b"
"""How the name of the package or of a part of it is written."""

IMPORT_BY_TEXT = {
    "": "what `_LATE` names",
    "absent": "what `_LATE` names",
    "core.registry": "hooks",
    "keras": "modules that configurations name",
    "keras.backend": "a table of names and the functions that they stand for, most of them in keras.ops",
    "keras.ops.symbols": "public names of functions of tensors",
    "compiler.executors.llvm.products": "other libraries",
    "distribute.communicator": "other libraries",
    "extras": "packages of extras",
    "functions": "its own files, one by one",
    "facades": "the files that rows of names name; they count as imports of the module of names",
    "summary": "other libraries",
}
"""Files that import modules whose names are texts, and which."""

FORBIDDEN_MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
ALLOWED_MODULES = {("experiments.sweep", "joblib"): "it hands functions to processes that it starts; no file is read"}
"""(module, forbidden module) to the reason why it may be imported there all the same."""
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}


class Import(NamedTuple):
    """One import: from where, of what, in which line."""

    source: str
    target: str
    line: int


@functools.cache
def modules() -> dict[str, pathlib.Path]:
    """Every module by its dotted name below `minikeras`; '' is the package itself."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__").rstrip("."): path
        for path in sorted(ROOT.rglob("*.py"))
    }


@functools.cache
def tree(name: str) -> ast.Module:
    return ast.parse(modules()[name].read_text(encoding="utf-8"))


def resolved(name: str, node: ast.ImportFrom) -> str | None:
    """The dotted name below `minikeras` that a `from` import starts at; None if it is another package's."""
    if not node.level:
        return (
            node.module.removeprefix("minikeras").lstrip(".") if (node.module or "").partition(".")[0] == "minikeras" else None
        )
    parts = name.split(".") if name else []
    if modules()[name].name != "__init__.py":
        parts = parts[:-1]
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, *([node.module] if node.module else [])])


@functools.cache
def imports(name: str) -> tuple[Import, ...]:
    """What one module imports from the package; of a module of names, which has no file, what its rows name."""
    if name in FACADES:
        return tuple(Import(name, source.rpartition(" ")[2], 0) for source, _ in FACADES[name] if source != "doc")
    found, path = [], modules()[name]
    is_facade = name and "\n_LATE" in path.read_text(encoding="utf-8") and path.with_suffix(".pyi").exists()
    offered = ast.parse(path.with_suffix(".pyi").read_text(encoding="utf-8")).body if is_facade else []
    names = [node for node in offered if isinstance(node, ast.ImportFrom) and node.names[0].asname]  # others are for types
    for node in (*ast.walk(tree(name)), *names):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names if alias.name.partition(".")[0] == "minikeras"]
            found += [Import(name, target.removeprefix("minikeras").lstrip("."), node.lineno) for target in targets]
        elif isinstance(node, ast.ImportFrom):
            start = resolved(name, node)
            if start is None:
                continue
            for alias in node.names:
                inside = f"{start}.{alias.name}".lstrip(".")
                found.append(Import(name, inside if inside in modules() or inside in FACADES else start, node.lineno))
    return tuple(found)


def entry(name: str) -> str:
    """The longest entry of the list of layers which a module is or lies in."""
    entries = {entry for entries in LAYERS for entry in entries}
    parts = name.split(".") if name else []
    for length in range(len(parts), 0, -1):
        found = ".".join(parts[:length])
        if found in entries and (found != "keras" or name == "keras"):
            return found
    if not parts:
        return ""
    raise LookupError(
        f"minikeras/{'/'.join(parts)} has no place in the list of layers: give it one in LAYERS of {__file__}, and in "
        "section 2 of the architecture."
    )


def layer(name: str) -> int:
    """The number of the layer that a module belongs to."""
    return next(rank for rank, entries in enumerate(LAYERS) if entry(name) in entries)


def circle(edges: Mapping[str, set[str]]) -> str:
    """A circle that leads from a node back to it, as text; empty if there is none."""
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        return " <- ".join(part or "minikeras" for part in error.args[1])
    return ""


def targets(name: str) -> set[str]:
    """The other files that a file imports."""
    return {one.target for one in imports(name)} - {name}


def test_imports_point_up_the_list_of_layers() -> None:
    down = [
        f"minikeras/{one.source.replace('.', '/')} line {one.line}: imports {one.target}, which lies in a later layer"
        for name in (*modules(), *FACADES)
        for one in imports(name)
        if layer(one.target) > layer(name)
    ]
    assert not down, "\n".join(down)


def test_no_files_import_one_another_in_a_circle() -> None:
    found = circle({name: targets(name) for name in (*modules(), *FACADES)})
    assert not found, f"a circle of imports: {found}"


def test_no_parts_of_the_package_import_one_another_in_a_circle() -> None:
    """Not even by way of different files: each entry of the list of layers can be understood without those that need it."""
    edges: dict[str, set[str]] = {}
    for name in (*modules(), *FACADES):
        edges.setdefault(entry(name), set()).update({entry(one) for one in targets(name)} - {entry(name)})
    found = circle(edges)
    assert not found, f"a circle of imports: {found}"


def test_the_core_names_nothing_above_it() -> None:
    for name in modules():
        if entry(name) == "core":
            above = {one for one in targets(name) if entry(one) != "core"} - CORE_ALONE
            assert not above, f"{name} imports {above}; let a floor above register a hook (core/registry.py)."


@pytest.mark.parametrize("floor", OPTIONAL)
def test_optional_floors_are_imported_by_nothing_below(floor: str) -> None:
    lies_in = lambda name: f"{name}.".startswith(f"{floor}.")
    others = [name for name in (*modules(), *FACADES) if not lies_in(name)]
    assert {name for name in others if any(map(lies_in, targets(name)))} == OPTIONAL[floor]


def test_what_is_imported_by_a_text_is_known() -> None:
    found = {name for name in modules() for node in ast.walk(tree(name)) if "import_module" in called_names(node)}
    assert found == set(IMPORT_BY_TEXT)


def called_names(node: ast.AST) -> set[str]:
    """Names under which an import of `importlib` or an attribute of it makes functions known."""
    if isinstance(node, ast.ImportFrom):
        return {alias.name for alias in node.names}
    return {node.attr} if isinstance(node, ast.Attribute) else set()


def test_nothing_asks_for_the_package_by_the_name_of_a_module() -> None:
    """What a class is good for it declares; a class of the user's may do so too."""
    asking = {name for name in modules() for node in ast.walk(tree(name)) if asks_for_package(node)}
    assert asking == set(ASKS_FOR_PACKAGE)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ('kind.__module__.startswith("minikeras.")', True),
        ('str(fn.__module__).startswith((f"{__package__}.", "keras."))', True),
        ('kind.__module__.partition(".")[0] != _PACKAGE', True),
        ('getattr(thing, "__module__", "").split(".")[0] == __name__.split(".")[0]', True),
        ('"minikeras" in type(layer).__module__', True),
        ("type(rate).__module__ == schedules.__name__", True),
        ('kind.__module__.startswith("cupy")', False),
        ("kind.__module__ in sys.stdlib_module_names", False),
        ("call.__module__ = __name__", False),
    ],
)
def test_a_question_for_the_package_is_seen_in_each_spelling(text: str, asks: bool) -> None:
    assert any(map(asks_for_package, ast.walk(ast.parse(text)))) == asks


def asks_for_package(node: ast.AST) -> bool:
    """Whether this compares the name of the module of a thing, or how it begins, with that of the package or a part of it."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith":
        sides = [node.func.value, *node.args]
    else:
        return False
    texts = list(map(ast.unparse, sides))
    is_own = any(re.search(OF_PACKAGE, one) for one in texts)
    return any("__package__" in one for one in texts) or (is_own and any("__module__" in one for one in texts))


def test_files_stay_short_and_say_what_they_are_for() -> None:
    for name, path in modules().items():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= LONGEST, f"{path.relative_to(ROOT.parent)} has {lines} lines; split it by idea (at most {LONGEST})."
        assert ast.get_docstring(tree(name)), f"{path.relative_to(ROOT.parent)} has no docstring"


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in ROOT.rglob("*.py")}
    assert {folder for folder in folders if not (folder / "__init__.py").exists()} == set()


@pytest.mark.parametrize(
    ("kind", "ancestors"),
    [
        (minikeras.keras.Model, ["Model", "Layer", "Module", "object"]),
        (minikeras.keras.layers.Dense, ["Dense", "Layer", "Module", "object"]),
        (minikeras.keras.layers.Conv2D, ["Conv2D", "Convolution", "KernelLayer", "SpatialLayer", "Layer", "Module", "object"]),
        (minikeras.keras.optimizers.Adam, ["Adam", "Optimizer", "object"]),
        (minikeras.keras.losses.Loss, ["Loss", "object"]),
        (minikeras.keras.metrics.Metric, ["Metric", "object"]),
    ],
)
def test_classes_have_few_ancestors(kind: type, ancestors: list[str]) -> None:
    """What a class does beside its idea it has as parts, or a decorator adds it."""
    assert [one.__name__ for one in kind.__mro__] == ancestors


def test_only_arrays_tells_numpy_from_cupy() -> None:
    """No other folder imports CuPy, and no file there calls NumPy and CuPy by choice."""
    for name in modules():
        if name != "core.arrays" and not name.startswith("core.arrays."):
            found = [node.lineno for node in ast.walk(tree(name)) if "cupy" in imported_packages(node)]
            assert not found, (
                f"{name} imports cupy in lines {found}; ask minikeras.core.arrays for the namespace of an array instead."
            )


def imported_packages(node: ast.AST) -> set[str]:
    """Outermost packages that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level:
        return {(node.module or "").partition(".")[0]}
    return set()


def test_joblib_only_hands_out_work() -> None:
    """Its `load` and `dump` are pickles."""
    used = [node for node in ast.walk(tree("experiments.sweep")) if isinstance(node, ast.Attribute)]
    names = {node.attr for node in used if ast.unparse(node.value) in ("joblib", "_joblib()")}
    assert names == {"Parallel", "delayed", "effective_n_jobs"}


def test_no_file_of_the_package_can_run_code_from_data() -> None:
    """No eval, exec, pickle or marshal, and no array file that may hold pickled objects."""
    found = []
    for name in modules():
        for node in ast.walk(tree(name)):
            forbidden = {
                module for module in imported_packages(node) & FORBIDDEN_MODULES if (name, module) not in ALLOWED_MODULES
            }
            found += [f"{name} line {node.lineno}: {module}" for module in forbidden]
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
                    found.append(f"{name} line {node.lineno}: {node.func.id}(...)")
                for keyword in node.keywords:
                    refused = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                    if keyword.arg == "allow_pickle" and not refused:
                        found.append(f"{name} line {node.lineno}: allow_pickle={ast.unparse(keyword.value)}")
    assert not found, "\n".join(found)


# The checks themselves -----------------------------------------------------------------------------------------------


def test_the_checks_see_imports_of_every_form() -> None:
    """Without this, a change of how imports are read could pass everything."""
    assert "core.stack" in targets("core.tape")
    assert {"nest", "errors", "core.tape"} <= targets("core.gradient_tape")
    assert "nn_ops.streams" in targets("compiler.recorder"), "within a function"
    assert {"core", "functions.shaping", "module"} <= targets("_names")
    assert {"averages", "bundle"} <= targets("train"), "of a row"
    assert {"keras.callbacks.monitor", "keras.callbacks.loggers"} <= targets("keras.callbacks"), "in a stub"


def test_the_checks_see_circles() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) and not circle({"a": {"b", "c"}, "b": {"c"}})


@pytest.mark.parametrize(
    ("name", "found"),
    [("errors", "errors"), ("core.tape", "core"), ("keras.layers.core", "keras.layers"), ("keras", "keras"), ("", "")],
)
def test_modules_belong_to_the_layer_of_their_longest_entry(name: str, found: str) -> None:
    assert entry(name) == found and found in LAYERS[layer(name)]


def test_a_module_without_a_place_is_named() -> None:
    for name in ("stranger", "keras.stranger"):
        with pytest.raises(LookupError, match="has no place in the list of layers"):
            layer(name)


def test_no_two_files_of_tests_have_one_name():
    """pytest imports them by their names alone."""
    names = [file.name for file in pathlib.Path(__file__).parent.rglob("test_*.py")]
    assert len(names) > 100 and sorted(names) == sorted(set(names))
