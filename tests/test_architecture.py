"""The structure of the package, checked: imports point up the list of layers, there is no circle, files stay small.

The imports are read with `ast`, also those within functions: they may break a circle, but not point down a layer. What
only type checkers see (`if TYPE_CHECKING`) does not count.
"""

from __future__ import annotations

import ast
import functools
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import pytest

import minikeras

ROOT = pathlib.Path(minikeras.__file__).parent
LONGEST = 600

LAYERS = [
    ["absent", "boundary", "console", "errors", "extras", "markup", "types", "nest", "version"],
    ["files"],
    ["distribute.replica"],
    ["core"],
    ["layout", "nn_ops", "residence", "threads"],
    ["derivatives", "diagnostics"],
    ["functions", "figures"],
    [
        *("distribute.communicator", "distribute.functions", "distribute.mpi"),
        *("distribute.nccl", "distribute.strategy", "distribute.world"),
    ],
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
    ["averages", "checkpoint", "train"],
    ["keras.saving.registry", "keras.saving.objects", "keras.saving.description"],
    [
        *(
            "keras.arguments",
            "keras.calls",
            "keras.catalogue",
            "keras.config",
            "keras.dtype_policies",
            "keras.logs",
            "keras.mixed_precision",
            "keras.promotion",
            "keras.names",
            "keras.settings",
            "keras.tree",
        ),
        *("keras.seeds", "keras.random", "keras.stateless", "keras.weight", "keras.datasets", "keras.distribution"),
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
    ["keras.batches", "keras.callbacks"],
    ["keras.training"],
    [
        "keras.export",
        "keras.feature_space",
        "keras.models",
        "keras.preprocessing",
        "keras.saving",
        "keras.utils",
        "keras.wrappers",
    ],
    ["keras", "aliases", "test", "debugging", "warm_up"],
    ["distribute", "experiments"],
    ["examples"],
    ["_names"],
    ["", "__main__"],
]
"""Names below `minikeras`; each stands for itself and what is in it without an entry of its own. '' is the package."""

ALLOWED_DOWN: dict[tuple[str, str], str] = {}
"""(importing module, imported module) to the reason why this import within a function may point down a layer."""

FORBIDDEN_MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
ALLOWED_MODULES = {("experiments.engine", "joblib"): "it hands functions to processes that it starts; no file is read"}
"""(module, forbidden module) to the reason why it may be imported there all the same."""
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}


class Import(NamedTuple):
    """One import: from where, of what, in which line, and whether it runs when the module is loaded."""

    source: str
    target: str
    line: int
    at_load: bool


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


def statements(node: ast.AST, at_load: bool = True) -> Iterator[tuple[ast.AST, bool]]:
    """Every node below, and whether it runs when the module is loaded."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        inner = at_load and not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        yield child, at_load
        yield from statements(child, inner)


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
    """What one module imports from the package."""
    found = []
    for node, at_load in statements(tree(name)):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names if alias.name.partition(".")[0] == "minikeras"]
            found += [Import(name, target.removeprefix("minikeras").lstrip("."), node.lineno, at_load) for target in targets]
        elif isinstance(node, ast.ImportFrom):
            start = resolved(name, node)
            if start is None:
                continue
            for alias in node.names:
                inside = f"{start}.{alias.name}".lstrip(".")
                found.append(Import(name, inside if inside in modules() else start, node.lineno, at_load))
    return tuple(found)


def layer(name: str) -> int:
    """The number of the layer that a module belongs to: that of the longest entry which it is or lies in."""
    ranks = {entry: rank for rank, entries in enumerate(LAYERS) for entry in entries}
    parts = name.split(".") if name else []
    for length in range(len(parts), 0, -1):
        entry = ".".join(parts[:length])
        if entry in ranks and (entry != "keras" or name == "keras"):
            return ranks[entry]
    if not parts:
        return ranks[""]
    raise LookupError(
        f"minikeras/{'/'.join(parts)} has no place in the list of layers: give it one in LAYERS of {__file__}, and in "
        "section 2 of the architecture."
    )


def test_imports_point_up_the_list_of_layers() -> None:
    down = [
        f"minikeras/{one.source.replace('.', '/')} line {one.line}: imports {one.target}, which lies in a later layer"
        for name in modules()
        for one in imports(name)
        if layer(one.target) > layer(name) and (one.at_load or (one.source, one.target) not in ALLOWED_DOWN)
    ]
    assert not down, "\n".join(down)


def test_every_exception_to_the_order_of_layers_is_still_needed() -> None:
    used = {(one.source, one.target) for name in modules() for one in imports(name) if layer(one.target) > layer(name)}
    assert set(ALLOWED_DOWN) <= used, "remove what is no longer imported from ALLOWED_DOWN"


def test_no_modules_import_one_another_in_a_circle() -> None:
    """Imports within functions count: what the core needs from above it asks the registry for (`core/registry.late`)."""
    edges = {
        name: {one.target for one in imports(name) if one.target != name and (one.source, one.target) not in ALLOWED_DOWN}
        for name in modules()
    }
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> None:
        if name in path:
            circle = [*path[path.index(name) :], name]
            pytest.fail("a circle of imports: " + " -> ".join(part or "minikeras" for part in circle))
        if name not in done:
            for target in sorted(edges[name]):
                visit(target, [*path, name])
            done.add(name)

    for name in edges:
        visit(name, [])


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
        (minikeras.keras.layers.Conv2D, ["Conv2D", "Convolution", "KernelLayer", "Layer", "Module", "object"]),
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
            found = [node.lineno for node, _ in statements(tree(name)) if "cupy" in imported_packages(node)]
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
    used = [node for node in ast.walk(tree("experiments.engine")) if isinstance(node, ast.Attribute)]
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
    assert Import("core.tape", "core.stack", imports("core.tape")[0].line, True).target in {
        i.target for i in imports("core.tape")
    }
    assert {"nest", "errors", "core.tape"} <= {one.target for one in imports("core.gradient_tape")}
    assert not next(one for one in imports("compiler.recorder") if one.target == "nn_ops.streams").at_load
    assert {"absent", "core", "functions.shaping"} <= {one.target for one in imports("_names")}


@pytest.mark.parametrize(
    ("name", "entry"),
    [("errors", "errors"), ("core.tape", "core"), ("keras.layers.core", "keras.layers"), ("keras", "keras"), ("", "")],
)
def test_modules_belong_to_the_layer_of_their_longest_entry(name: str, entry: str) -> None:
    assert entry in LAYERS[layer(name)]


def test_a_module_without_a_place_is_named() -> None:
    for name in ("stranger", "keras.stranger"):
        with pytest.raises(LookupError, match="has no place in the list of layers"):
            layer(name)


def test_no_two_files_of_tests_have_one_name():
    """pytest imports them by their names alone."""
    names = [file.name for file in pathlib.Path(__file__).parent.rglob("test_*.py")]
    assert len(names) > 100 and sorted(names) == sorted(set(names))
