"""The CPU that stands in for a GPU refuses what a GPU might carry out with another result each time."""

import functools

import numpy as np
import pytest
from shim import Memory, compiled, needs_gxx

from minikeras.compiler.executors.cuda_graph.nodes import CudaKernel
from minikeras.compiler.ir import Slot

pytestmark = needs_gxx
REVERSED = "__shared__ float all_s[64];\nall_s[threadIdx.x] = a0[threadIdx.x];\n{}\ny0[threadIdx.x] = all_s[63 - threadIdx.x];"
WRONG = {
    "no barrier": (REVERSED.format(""), "before it is written"),
    "no barrier between two uses": (REVERSED.format("__syncthreads();") + "\nall_s[threadIdx.x] = a0[0];", "race"),
    "two threads": ("y0[threadIdx.x / 2] = a0[0];", "race"),
    "two blocks": ("if (threadIdx.x == 0)\ny0[0] = a0[blockIdx.x];", "race"),
    "an element that another block writes": ("if (blockIdx.x == 0)\ny0[threadIdx.x] = a0[0];\nelse y0[0];", "race"),
    "outside": ("y0[threadIdx.x] = a0[threadIdx.x + 1];", "element 64 of 64"),
    "shared memory of the block before": (
        "__shared__ float all_s[64];\nif (blockIdx.x == 0)\nall_s[threadIdx.x] = a0[0];\nelse all_s[threadIdx.x];",
        "before it is written",
    ),
    "a barrier for half of a block": ("if (threadIdx.x < 32) {\n__syncthreads();\n}", "two barriers"),
    "a barrier for each half": (
        "if (threadIdx.x < 32) {\n__syncthreads();\n} else {\n__syncthreads();\n}",
        "two barriers",
    ),
}


X, Y = [Slot(key, (64,), np.dtype("float32")) for key in range(2)]


def kernel(lines, blocks):
    return CudaKernel("test", f"(const float* a0, float* y0) {{\n{lines}\n}}", (X,), (Y,), blocks, 64)


KERNELS = {name: kernel(lines, 2) for name, (lines, _) in WRONG.items()} | {
    "right": kernel(REVERSED.format("__syncthreads();"), 1)
}


@functools.cache
def functions():
    """Of all kernels, from one source."""
    return dict(zip(KERNELS, compiled(list(KERNELS.values())), strict=True))


def run(name):
    memory = Memory()
    memory.put(X, np.arange(64, dtype="float32"))
    memory.run(KERNELS[name], functions()[name])
    return memory.array(Y)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told(name):
    with pytest.raises(AssertionError, match=WRONG[name][1]):
        run(name)


def test_what_a_barrier_parts_is_right():
    assert run("right").tolist() == [*range(63, -1, -1)]
