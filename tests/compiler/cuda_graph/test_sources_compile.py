"""NVIDIA's compiler takes the sources of whole programs, for two generations of devices; none is needed for that."""

import nvrtc
import pytest
import recorded

from minikeras.compiler.executors.cuda_graph.nodes import assemble
from minikeras.compiler.render.cuda_functions import PREAMBLE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed"),
]
ARCHITECTURES = ["sm_80", "sm_90"]
SOURCES = {
    "operations": recorded.of_operations,
    "layers": recorded.of_layers,
    "layers in groups": lambda: recorded.of_layers(passes=recorded.in_groups),
    "layers in float16": lambda: recorded.of_layers("mixed_float16"),
    "losses": recorded.of_losses,
    "optimizers": recorded.of_optimizers,
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("group", SOURCES)
def test_all_kernels_of_a_group_are_one_source(group, architecture):
    kernels = [kernel for case in SOURCES[group]() for kernel in case.kernels or ()]
    module = assemble(kernels, PREAMBLE)
    machine_code = nvrtc.cubin(module.source, architecture)
    assert all(name.encode() in machine_code for name in module.names) and len(set(module.names)) > 20


def test_what_the_compiler_refuses_is_told():
    with pytest.raises(ValueError, match="undefined"):
        nvrtc.cubin("__global__ void f(float* y) { *y = INFINITY; }", "sm_90")
