"""What kernels ask of the array namespace, held to CuPy: to what it states of itself, and to the package where it is installed.

CuPy can be imported without a GPU, so `pytest -m cupy` runs everywhere after `pip install 'minikeras[cupy]'`.
"""

import ast
import functools
import importlib
import json
import operator
import pathlib

import numpy as np
import pytest
from strict_array import METHODS

import minikeras as tf
from minikeras.core.arrays import ALLOWED_NAMES, devices, is_array, namespace, probe, to_numpy
from minikeras.core.registry import operations
from minikeras.errors import DeviceUnavailableError

PACKAGE = pathlib.Path(tf.__file__).parent
SIGNATURES = json.loads((pathlib.Path(__file__).parent / "golden/cupy_signatures.json").read_text())
MADE_BY = {"namespace", "creation_namespace"}
cupy_only = pytest.mark.cupy


# The source: every name and keyword after `xp`, whether a test runs that line or not ----------------------------------------


def is_namespace(node):
    """Whether an expression is an array namespace: `xp`, `slot.xp`, `namespace(x)`."""
    if isinstance(node, ast.Name):
        return node.id == "xp"
    if isinstance(node, ast.Attribute):
        return node.attr == "xp"
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MADE_BY


def asked_for(tree):
    """Dotted name, keywords and line of everything that is asked of a namespace; keywords are None if it is not called."""
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            names, root = [], node
            while isinstance(root, ast.Attribute) and not is_namespace(root):
                names.insert(0, root.attr)
                root = root.value
            if names and is_namespace(root):
                call = calls.get(id(node))
                yield ".".join(names), call and [one.arg for one in call.keywords if one.arg], node.lineno


@functools.cache
def found_in_the_package():
    """File, name, keywords and line."""
    return [
        (str(file.relative_to(PACKAGE)), *found)
        for file in sorted(PACKAGE.rglob("*.py"))
        for found in asked_for(ast.parse(file.read_text()))
    ]


def test_the_walk_finds_names_and_keywords():
    tree = ast.parse("xp.linalg.svd(a, full_matrices=True); namespace(x).ones; slot.xp.zeros(3, dtype=k); np.sum(x)")
    assert {name: options for name, options, _ in asked_for(tree)} == {
        "linalg.svd": ["full_matrices"],
        "ones": None,
        "zeros": ["dtype"],
    }
    assert len(found_in_the_package()) > 200


def is_for_cuda(file):
    """Whether a file is meant for CuPy's arrays alone."""
    return "cuda" in file


def test_the_source_asks_a_namespace_only_for_names_that_are_allowed():
    found = [(file, line, name) for file, name, _, line in found_in_the_package() if not is_for_cuda(file)]
    assert not [one for one in found if one[2].removesuffix(".at") not in ALLOWED_NAMES]


def test_the_source_gives_only_keywords_that_cupy_takes():
    wrong = []
    for file, name, keywords, line in found_in_the_package():
        known = SIGNATURES.get(name)
        if known is not None and not any(kind == 4 for _, kind, _ in known):
            names = [parameter for parameter, _, _ in known]
            wrong += [(file, line, name, one) for one in keywords or () if one not in names]
    assert not wrong


def test_all_that_is_allowed_is_in_the_table_of_signatures():
    assert set(ALLOWED_NAMES) - {"dtype"} <= set(SIGNATURES)
    assert {f"ndarray.{name}" for name in METHODS} <= set(SIGNATURES)


# The package itself --------------------------------------------------------------------------------------------------------


@pytest.fixture
def cupy():
    """CuPy, imported."""
    return pytest.importorskip("cupy", reason="CuPy is not installed: pip install 'minikeras[cupy]'")


@pytest.fixture
def without_driver(cupy):
    """CuPy on a machine where no GPU can be used."""
    if cupy.cuda.is_available():
        pytest.skip("there is a GPU")
    return cupy


@cupy_only
def test_what_the_table_says_of_cupy_is_true(cupy):
    actual = importlib.import_module("golden.make_cupy_signatures").signatures()
    for name, known in SIGNATURES.items():
        there = {parameter: optional for parameter, _, optional in actual[name]}
        assert {parameter for parameter, _, _ in known} <= set(there), name
        assert {one for one, optional in there.items() if not optional} <= {one for one, _, _ in known}, name


@cupy_only
def test_what_is_asked_of_cupy_alone_is_there(cupy):
    for name in {name for file, name, _, _ in found_in_the_package() if is_for_cuda(file)}:
        assert operator.attrgetter(name)(cupy) is not None, name


@cupy_only
def test_every_kernel_can_be_made_for_cupy(cupy):
    primitives = [one for one in vars(operations).values() if hasattr(one, "kernel")]
    assert len(primitives) > 100
    for primitive in primitives:
        assert callable(primitive.kernel(cupy)), primitive


@cupy_only
def test_methods_that_arrays_of_cupy_lack_are_those_that_the_double_refuses(cupy):
    for name in ("__index__", "__contains__", "__array_namespace__"):
        assert not hasattr(cupy.ndarray, name)
    for name in (*METHODS, "device", "dtype", "nbytes", "strides", "real", "imag", "__dlpack__", "__cuda_array_interface__"):
        assert hasattr(cupy.ndarray, name), name


@cupy_only
def test_without_a_driver_cupy_says_no_and_does_not_raise(without_driver):
    assert without_driver.cuda.is_available() is False
    assert without_driver.cuda.runtime.driverGetVersion() == 0 and without_driver.cuda.runtime.runtimeGetVersion() >= 12000


NEED_A_DEVICE = {
    "zeros": lambda cupy: cupy.zeros(2),
    "asarray": lambda cupy: cupy.asarray(np.ones(2)),
    "device": lambda cupy: cupy.cuda.Device(),
    "event": lambda cupy: cupy.cuda.Event(),
    "memory": lambda cupy: cupy.cuda.runtime.memGetInfo(),
    "count": lambda cupy: cupy.cuda.runtime.getDeviceCount(),
    "random": lambda cupy: cupy.random.default_rng(0),
    "pinned": lambda cupy: cupy.cuda.alloc_pinned_memory(8),
    "raw kernel": lambda cupy: cupy.RawKernel('extern "C" __global__ void f() {}', "f").compile(),
}


@cupy_only
@pytest.mark.parametrize("ask", NEED_A_DEVICE.values(), ids=NEED_A_DEVICE)
def test_without_a_driver_all_that_needs_a_device_is_a_runtime_error(without_driver, ask):
    with pytest.raises(RuntimeError):
        ask(without_driver)


@cupy_only
def test_without_a_driver_what_is_lazy_works(without_driver):
    without_driver.ElementwiseKernel("T x", "T y", "y = x", "same")
    without_driver.RawModule(code='extern "C" __global__ void f() {}')
    without_driver.cuda.MemoryPool()
    assert without_driver.get_array_module(np.ones(1)) is np and without_driver.asnumpy(np.ones(1)).tolist() == [1.0]


@cupy_only
def test_our_probe_says_cpu_and_why(without_driver):
    works, reason = probe()
    assert not works and reason == "CuPy is installed, but the driver shows no CUDA device"
    assert tf.config.list_physical_devices() == ["CPU:0"] and tf.config.device_report()["gpu"] == reason
    with pytest.raises(DeviceUnavailableError, match="the driver shows no CUDA device"), tf.device("GPU"):
        pass


@cupy_only
@pytest.mark.parametrize("error", [RuntimeError("no nvrtc"), OSError("libcublas.so"), ImportError("libnvrtc.so")])
def test_a_driver_without_libraries_is_no_gpu_either(cupy, monkeypatch, error):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(cupy.cuda, "is_available", lambda: True)
    monkeypatch.setattr(cupy, "arange", fail)
    works, reason = devices.probe.__wrapped__()
    assert not works and reason == f"{type(error).__name__}: {error}"


@cupy_only
def test_cupy_that_is_imported_changes_nothing_on_the_cpu(cupy):
    x = tf.constant([[1.0, 2.0]])
    assert namespace(x.array) is np and is_array(np.ones(1)) and to_numpy(x.array) is x.array
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(x, [[1.0]], verbose=0)
    assert model.predict(x, verbose=0).shape == (1, 1) and x.device == "CPU:0"
