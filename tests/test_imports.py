"""What `import minikeras` loads, and what it does not: a start in a fresh interpreter."""

import ast
import importlib
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import minikeras
from minikeras.facades import FACADES

ROOT = pathlib.Path(minikeras.__file__).parent
LATE = sorted(
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in ROOT.rglob("__init__.py")
    if "\n_LATE = " in path.read_text(encoding="utf-8")
)
"""The packages that load some of their names at the first use."""


def loaded_after(statement: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after a statement."""
    script = f"{statement}\nimport sys\nprint(chr(10).join(sys.modules))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    return set(result.stdout.split())


@pytest.fixture(scope="module")
def added() -> set[str]:
    """What minikeras loads beyond NumPy and the interpreter's own; `logging` loads `pathlib` from Python 3.15 on."""
    return loaded_after("import minikeras as tf; tf.constant") - loaded_after("import numpy, logging")


@pytest.mark.parametrize(
    "name",
    [
        *("cupy", "ml_dtypes", "matplotlib", "llvmlite", "tqdm", "scipy", "pytest", "numpy.testing", "numpy.random"),
        *(
            "urllib.request",
            "urllib.parse",
            "http.client",
            "ssl",
            "socket",
            "json",
            "zipfile",
            "tempfile",
            "subprocess",
        ),
        *("asyncio", "concurrent.futures", "multiprocessing", "unittest", "doctest", "hashlib", "pathlib"),
        *("minikeras.autodiff", "minikeras.checkpoint", "minikeras.data", "minikeras.debugging", "minikeras.derivatives"),
        "minikeras.diagnostics",
        *("minikeras.experiments", "minikeras.figures", "minikeras.files", "minikeras.keras", "minikeras.test"),
    ],
)
def test_the_import_does_not_load_what_only_some_need(added: set[str], name: str) -> None:
    assert name not in added


def test_the_package_loads_nothing_before_it_is_used() -> None:
    assert {name for name in loaded_after("import minikeras") if name.startswith("minikeras")} == {"minikeras"}


ALONE = """
import numpy as np
from minikeras.core import ForwardAccumulator, GradientTape, Tensor, Variable, convert_to_tensor, ops
from minikeras.core.batch import Batch, BatchedTensor

x = Variable(np.array([0.5, 2.0]), dtype="float64")
with GradientTape() as outer:
    with GradientTape() as inner:
        y = ops.reductions.reduce_sum(ops.transcendental.exp(x * x), axes=(-1,), keepdims=False)
    first = inner.gradient(y, x)
second = outer.gradient(first, x)
known = np.exp(x.numpy() ** 2)
np.testing.assert_allclose(first.numpy(), 2 * x.numpy() * known)
np.testing.assert_allclose(second.numpy(), (2 + 4 * x.numpy() ** 2) * known)
with ForwardAccumulator(x, Tensor(np.ones(2))) as forward:
    y = ops.transcendental.tanh(x / 2.0)
np.testing.assert_allclose(forward.jvp(y).numpy(), 0.5 * (1 - np.tanh(x.numpy() / 2) ** 2))
rows = Tensor(np.arange(6.0).reshape(3, 2))
with Batch(3) as batch:
    products = BatchedTensor(rows, batch) * x
    picked = rows[BatchedTensor(Tensor(np.array([2, -1, 0])), batch), ..., 0]
np.testing.assert_allclose(batch.stack_of(products).numpy(), rows.numpy() * x.numpy())
np.testing.assert_allclose(batch.stack_of(picked).numpy(), [4.0, 4.0, 0.0])
for key in (1, -1, (..., 1), (slice(None, None, -2), None), (Tensor(np.array(2)), 0), rows.numpy() > 2.0, rows > 2.0):
    plain = tuple(k.numpy() if isinstance(k, Tensor) else k for k in (key if isinstance(key, tuple) else (key,)))
    np.testing.assert_array_equal(rows[key].numpy(), rows.numpy()[plain])
with GradientTape() as tape:
    y = 3.0 * x[1] + convert_to_tensor([x[0], 1.0])[0]
np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [1.0, 3.0])
"""


def test_the_core_differentiates_and_slices_alone() -> None:
    """To second order, forward and for many at once, with Python's indices; nothing else of the package is there."""
    lower = {"minikeras", "minikeras.errors", "minikeras.nest", "minikeras.types"}
    loaded = {name for name in loaded_after(ALONE) if name.startswith("minikeras")}
    assert {name for name in loaded if not name.startswith("minikeras.core")} == lower
    assert len(loaded) < 60


def test_the_core_fits_in_a_morning() -> None:
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / "core").rglob("*.py"))
    assert lines <= 6_500


def test_the_first_name_loads_the_core_and_the_functions(added: set[str]) -> None:
    assert {"minikeras.core.stack", "minikeras.core.tape", "minikeras.functions.elementwise"} <= added


def test_keras_is_loaded_at_its_first_use() -> None:
    assert "minikeras.keras" in loaded_after("import minikeras; minikeras.keras")


def test_keras_does_not_load_what_only_some_need() -> None:
    loaded = loaded_after("import minikeras.keras") - loaded_after("import numpy")
    unwanted = {"json", "zipfile", "csv", "urllib.request", "numpy.testing", "numpy.random", "minikeras.figures"}
    files = {"minikeras.files.hdf5", "minikeras.files.archive", "minikeras.checkpoint"}
    parts = {f"minikeras.keras.{name}" for name in ("datasets", "export", "utils", "wrappers", "saving.model_files")}
    assert not loaded & (unwanted | files | parts)


def test_a_configuration_loads_only_what_it_names() -> None:
    model = "import minikeras as tf; l = tf.keras.layers; m = tf.keras.Sequential([l.Input((3,)), l.Dense(2, tf.nn.relu)])"
    loaded = loaded_after(f"{model}; tf.keras.models.model_from_json(m.to_json())")
    late = {"layers.wrappers", "ops.symbols", "feature_space", "dtype_policies"}
    late |= {f"layers.{name}" for name in ("encoding", "hashing", "lookup", "text_vectorization")}
    assert not {f"minikeras.keras.{name}" for name in late} & loaded


def test_there_are_packages_that_load_names_late() -> None:
    assert {"minikeras", "minikeras.keras", "minikeras.keras.callbacks", "minikeras.keras.models"} <= set(LATE)


@pytest.mark.parametrize("name", FACADES)
def test_completion_and_type_checkers_know_the_names_of_rows(name: str) -> None:
    module = importlib.import_module(f"minikeras.{name}")
    stub = pathlib.Path(str(module.__file__) if name != "_names" else ROOT / "__init__.pyi")
    said = list(ast.walk(ast.parse(stub.read_text(encoding="utf-8"))))
    named = {getattr(one, "asname", None) or getattr(one, "name", None) or getattr(one, "id", None) for one in said}
    of_rows = {one.partition(":")[0] for source, names in FACADES[name] if source != "doc" for one in names.split()}
    of_rows -= {"*", "bfloat16"}
    assert (
        module.__doc__ and of_rows <= set(dir(module)) & set(module.__all__) and set(module.__all__) <= named | {"__version__"}
    )


def test_a_folder_that_is_left_of_a_package_hides_no_module_of_names(tmp_path: pathlib.Path) -> None:
    """Python leaves `__pycache__` behind, and takes a folder without files for a package."""
    shutil.copytree(ROOT, tmp_path / "minikeras", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("numpy", "image"):
        (tmp_path / "minikeras" / "keras" / "ops" / name / "__pycache__").mkdir(parents=True)
    script = "import minikeras.keras.ops.numpy as a, minikeras as tf; a.add, tf.keras.ops.image.resize, tf.keras.ops.numpy.add"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)}, check=True)


def test_modules_of_names_are_found_without_an_import() -> None:
    """Python holds the lock of all imports then, and another thread's import that waits for it would wait for ever."""
    assert set(FACADES) == set(minikeras._OF_NAMES)
    find = "import minikeras; found = [minikeras._Finder.find_spec(f'minikeras.{name}') for name in minikeras._OF_NAMES]"
    assert {name for name in loaded_after(find) if name.startswith("minikeras")} == {"minikeras"}


def test_an_interrupted_import_of_names_can_be_done_again() -> None:
    script = """
import builtins, minikeras
real = builtins.__import__
def stop(name, *args):
    if name.endswith("catalogue"):
        raise KeyboardInterrupt
    return real(name, *args)
builtins.__import__ = stop
try:
    import minikeras.keras.ops.numpy
except KeyboardInterrupt:
    builtins.__import__ = real
import minikeras.keras.ops.numpy
minikeras.keras.ops.numpy.concatenate
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_package_may_lie_in_another_one(tmp_path: pathlib.Path) -> None:
    shutil.copytree(ROOT, tmp_path / "vendor" / "minikeras", ignore=shutil.ignore_patterns("__pycache__"))
    script = "from vendor import minikeras as tf; tf.add(1, 2), tf.nn.relu(1.0), tf.keras.ops.numpy.add"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)}, check=True)


@pytest.mark.parametrize("package", LATE)
def test_completion_and_type_checkers_know_what_is_loaded_late(package: str) -> None:
    module = importlib.import_module(package)
    late = set(module._LATE)
    assert late <= set(dir(module)) and late <= set(getattr(module, "__all__", late))
    checked, source = set(), pathlib.Path(str(module.__file__))
    stub = source.with_suffix(".pyi")
    if stub.is_file():  # all that type checkers read where there is one
        said = list(ast.walk(ast.parse(stub.read_text(encoding="utf-8"))))
        named = {getattr(one, "asname", None) or getattr(one, "name", None) or getattr(one, "id", None) for one in said}
        assert late <= named
        return
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            checked |= {alias.name for one in node.body if isinstance(one, ast.ImportFrom) for alias in one.names} - {"*"}
    assert checked == late


@pytest.mark.parametrize("form", ["from minikeras import data, test", "import minikeras as tf; tf.data, tf.test"])
def test_modules_that_are_loaded_late_can_be_imported_and_looked_up(form: str) -> None:
    assert {"minikeras.data", "minikeras.test"} <= loaded_after(form)


def test_a_name_that_was_loaded_late_is_kept() -> None:
    from minikeras.keras import callbacks

    assert callbacks.ModelCheckpoint is vars(callbacks)["ModelCheckpoint"]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'minikeras' has no attribute 'nonsense'"):
        _ = minikeras.nonsense


def test_threads_that_use_names_first_at_once_wait_for_each_other() -> None:
    """Each once loaded a file that another one needed, and so on in a circle: nine of ten runs ended with an error."""
    script = """
import operator, threading
import minikeras as tf
names = ("math.sin", "constant", "Variable", "reduce_sum", "GradientTape", "function")
start, failed = threading.Barrier(len(names)), []
def use(name):
    start.wait()
    try:
        operator.attrgetter(name)(tf)
    except BaseException as error:
        failed.append(error)
threads = [threading.Thread(target=use, args=[name]) for name in names]
for thread in threads: thread.start()
for thread in threads: thread.join()
if failed: raise failed[0]
"""
    for _ in range(3):
        subprocess.run([sys.executable, "-c", script], check=True, timeout=100)
