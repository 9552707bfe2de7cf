"""Nothing escapes the laws: every primitive and every public operation has a specimen."""

import ast
from pathlib import Path

import pytest
from specimens import SPECIMENS

import minikeras as tf
from minikeras.core import Primitive
from minikeras.core.arrays import ALLOWED_NAMES
from minikeras.core.registry import operations
from minikeras.core.stack import Interpreter
from minikeras.core.tensor import Tensor

# Not functions of tensors: they make tensors, draw random ones, run functions, or belong to the core with tests of its
# own.
WITHOUT_SPECIMEN = {
    *("constant", "convert_to_tensor", "zeros", "ones", "eye", "range", "device", "as_dtype", "get_logger"),
    *("cond", "case", "switch_case", "while_loop", "map_fn", "vectorized_map", "scan", "foldl", "foldr", "grad_pass_through"),
    *(
        "custom_gradient",
        "recompute_grad",
        "function",
        "gradients",
        "hessians",
        "no_gradient",
        "init_scope",
        "py_function",
    ),
    *("numpy_function", "no_op", "group", "assert_equal", "debugging", "print", "Assert", "executing_eagerly"),
    *("assert_greater", "assert_less", "assert_rank", "control_dependencies", "timestamp"),
    *("nce_loss", "sampled_softmax_loss"),
}
PRIMITIVES_WITHOUT_SPECIMEN = {"read_variable"}  # its input is a Variable; tests/core


class Names(Interpreter):
    """An interpreter that writes down the names of the primitives that it sees."""

    def __init__(self):
        self.seen = set()

    def process(self, primitive, inputs, params, below):
        self.seen.add(primitive.name)
        return below.process(primitive, inputs, params)


def test_every_primitive_is_used_by_a_specimen():
    names = Names()
    with names:
        for specimen in SPECIMENS:
            specimen.call(*[Tensor(x) for x in specimen.sample()])
    registered = {name for name, value in vars(operations).items() if isinstance(value, Primitive)}
    missing = registered - names.seen - PRIMITIVES_WITHOUT_SPECIMEN
    assert not missing, f"add a row to tests/specimens/ for {sorted(missing)}"


@pytest.mark.parametrize("module", [tf, tf.bitwise, tf.math, tf.linalg, tf.nn], ids=lambda module: module.__name__)
def test_every_public_operation_has_a_specimen(module):
    covered = {id(specimen.operation) for specimen in SPECIMENS}
    public = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and not isinstance(value, type) and name not in WITHOUT_SPECIMEN
    }
    missing = sorted(name for name, value in public.items() if id(value) not in covered)
    assert not missing, f"add a row to tests/specimens/ for {missing}"


def test_at_least_ninety_public_operations_have_gradients():
    smooth = {
        id(specimen.operation) for specimen in SPECIMENS if specimen.smooth and not isinstance(specimen.operation, Primitive)
    }
    assert len(smooth) >= 90


def kernels():
    """Each use of `xp.name` or `xp.linalg.name` in the package, with the names of the keywords in a call."""
    for path in sorted(Path(tf.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            function = node.func if isinstance(node, ast.Call) else node
            name = dotted(function)
            if name.startswith("xp.") and name not in (
                "xp.fft",
                "xp.linalg",
                "xp.lib",
                "xp.lib.stride_tricks",
                "xp.add.at",
                "xp.cuda",
            ):
                yield (
                    path.name,
                    name.removeprefix("xp."),
                    [word.arg for word in getattr(node, "keywords", []) if word.arg],
                )


def dotted(node):
    """'xp.linalg.solve' for that expression, '' for others."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def test_kernels_ask_a_library_only_for_allowed_names():
    asked = {(path, name) for path, name, _ in kernels()}
    assert len(asked) > 40
    assert not {(path, name) for path, name in asked if name not in ALLOWED_NAMES}


def test_cupy_has_every_allowed_name_and_every_keyword_that_kernels_use():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed", exc_type=ImportError)
    import inspect

    def found(name):
        value = cupy
        for part in name.split("."):
            value = getattr(value, part)
        return value

    for name in ALLOWED_NAMES:
        assert found(name) is not None
    for path, name, keywords in kernels():
        function = found(name)
        if keywords and inspect.isfunction(function):
            parameters = inspect.signature(function).parameters
            if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
                continue  # einsum: says nothing about itself
            unknown = set(keywords) - set(parameters)
            assert not unknown, f"{path}: cupy.{name} has no keyword {unknown}"
