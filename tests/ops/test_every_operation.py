"""Nothing escapes the laws: every primitive and every public operation has a specimen."""

import pytest
from specimens import SPECIMENS

import minikeras as tf
from minikeras.core import Primitive
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
