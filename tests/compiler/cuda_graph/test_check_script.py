"""What the check script asks of graphs, on the double."""

from __future__ import annotations

import gpu_check


def test_steps_are_graphs_and_have_the_bits_of_their_kernels(double):
    found = gpu_check.graphs_give_the_bits_of_their_kernels("STRICT:0")
    assert found.pop("passed")
    assert {value for name, value in found.items() if name.endswith("by")} == {"GraphExecutable"}


def test_steps_in_a_row_are_one_graph(double):
    assert gpu_check._in_a_row("small", "STRICT:0") > 0
    assert [len(nodes) for nodes in double.nodes] == [10, 8 * 12]
