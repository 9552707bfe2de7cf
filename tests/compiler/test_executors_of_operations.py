"""The guide's table of who carries out which operation is what executors do with every specimen and its gradient.

`python tests/compiler/test_executors_of_operations.py` writes it anew.
"""

import itertools
import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1])]

from specimens import SPECIMENS

import minikeras as tf
from minikeras.compiler import Program
from minikeras.compiler.executors import llvm
from minikeras.compiler.ir import outputs_of, slots_in
from minikeras.compiler.passes import optimized
from minikeras.compiler.recorder import Recorder
from minikeras.core import Tensor

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "compiled-steps.md"
BEGIN, END = "<!-- executors: written by tests/compiler/test_executors_of_operations.py -->", "<!-- end of executors -->"
NAMES = "NumPy", "LLVM", "CUDA graphs"


def instructions():
    """Those of all specimens on float32, and of their gradients, without effects."""
    for specimen in SPECIMENS:
        inputs = [Tensor(x) for x in specimen.sample("float32")]
        with Recorder(inputs, strict=True) as recorder:
            try:
                with tf.GradientTape() as tape:
                    tape.watch([x for x in inputs if x.dtype.is_floating])
                    y = specimen.call(*inputs)
                if specimen.smooth:
                    tape.gradient(y, inputs)
            except tf.errors.MinikerasError:  # of a value that decides in Python
                pass
        for record in recorder.records:
            known = slots_in(record.inputs) and all(x.array is not None for x in slots_in(record.inputs))
            if not record.primitive.effect and outputs_of(record) and not known:
                yield record


def is_native(record):
    """Whether LLVM's kernels carry an instruction out, or what passes make of it; a view costs nothing."""
    from minikeras.compiler.executors.llvm.calls import KernelCall
    from minikeras.compiler.executors.llvm.encode import Encoder, in_usual_order
    from minikeras.compiler.executors.llvm.scans import KernelScan
    from minikeras.compiler.executors.numpy.lowering import View

    program = in_usual_order(optimized(alone(record), native=True))
    encoder = Encoder(program)
    encoder.addressed |= {x.key for x in program.arguments}
    for one in program.records:
        encoder.encode(one)
    kinds = [(type(call), type(getattr(call, "function", None))) for call in encoder.calls()]
    return all(issubclass(kind, (KernelCall, View)) or function is KernelScan for kind, function in kinds)


def is_graphed(record):
    """Whether CUDA's kernels or cublasLt carry an instruction out, or what passes make of it."""
    from minikeras.compiler.executors.cuda_graph.nodes import Emitter
    from minikeras.compiler.executors.cuda_graph.schedule import _RULES

    program = optimized(alone(record), graphs=True)
    emitter = Emitter(itertools.count(1 << 20))
    return all(one.primitive in _RULES or emitter.kernels(one) is not None for one in program.records)


def alone(record):
    """A program of one instruction."""
    arguments = list({x.key: x for x in slots_in(record.inputs)}.values())
    return Program(arguments, [record], list(outputs_of(record)), None)


def executors():
    """By operation, who carries it out: LLVM and CUDA graphs if they take any specimen of it."""
    found = {}
    for record in instructions():
        names = found.setdefault(record.primitive.name, {"NumPy"})
        for name, takes in (("LLVM", is_native), ("CUDA graphs", is_graphed)):
            if name not in names and takes(record):
                names.add(name)
    return found


def table():
    """The part of the guide."""
    by_executors = {}
    for name, names in sorted(executors().items()):
        by_executors.setdefault(", ".join([one for one in NAMES if one in names]), []).append(f"`{name}`")
    rows = [f"| {who} | {', '.join(names)} |" for who, names in sorted(by_executors.items(), reverse=True)]
    return "\n".join([BEGIN, "", "| carried out by | operations |", "|---|---|", *rows, "", END])


@pytest.mark.skipif(not llvm.installed(), reason="needs llvmlite and SciPy")
def test_the_guide_says_who_carries_out_which_operation():
    text = GUIDE.read_text()
    assert text[text.index(BEGIN) : text.index(END) + len(END)] == table(), (
        "python tests/compiler/test_executors_of_operations.py"
    )


if __name__ == "__main__":
    whole = GUIDE.read_text()
    GUIDE.write_text(whole[: whole.index(BEGIN)] + table() + whole[whole.index(END) + len(END) :])
