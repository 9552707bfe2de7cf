"""What the check script asks of graphs, on the double."""

import gpu_check
import numpy as np
import pytest
from shim import needs_gxx
from slow import mostly_slow


@pytest.fixture
def few_rows(monkeypatch):
    """The script's steps at sizes that NumPy takes no time for."""
    monkeypatch.setattr(gpu_check, "SIZES", {"small": (8, 8, 3), "medium": (9, 8, 8, 3)})
    monkeypatch.setattr(gpu_check, "ROWS", {"small": 4, "medium": 8})


def test_steps_are_graphs_and_have_the_bits_of_their_kernels(double, few_rows):
    found = gpu_check.graphs_give_the_bits_of_their_kernels("STRICT:0")
    assert found.pop("passed")
    assert {one["carried out by"] for one in found.values()} == {"GraphExecutable"}


def test_steps_in_a_row_are_one_graph(double, few_rows):
    assert gpu_check._in_a_row("small", "STRICT:0") > 0
    assert [len(nodes) for nodes in double.nodes] == [8, 8 * 10]


def assert_trained_as_on_the_cpu(make, double):
    ours, theirs = [gpu_check.trained_weights(make, place, "sgd", jit_compile=True) for place in ("STRICT:0", "CPU:0")]
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=2e-6)
    assert double.nodes, "nothing was captured"


@pytest.mark.parametrize("make", mostly_slow(gpu_check.MODELS, gpu_check.MODELS[0]))
def test_the_five_models_train_as_graphs(make, double):
    assert_trained_as_on_the_cpu(make, double)


@needs_gxx
@pytest.mark.slow
@pytest.mark.parametrize("make", gpu_check.MODELS)
def test_the_five_models_train_as_graphs_by_the_sources_of_their_kernels(make, double_of_sources):
    assert_trained_as_on_the_cpu(make, double_of_sources)
