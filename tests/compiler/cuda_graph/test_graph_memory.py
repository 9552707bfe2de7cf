"""Where values lie: no two that live together overlap, every factor of a product is aligned, flat arrays have gaps for that."""

import numpy as np
import pytest
from graph_steps import LOSSES, MODELS, OPTIMIZERS, Trained, graphs_of

from minikeras.compiler.executors.cuda_graph.memory_plan import MEMORY
from minikeras.compiler.executors.cuda_graph.nodes import ProductNode
from minikeras.compiler.planning import DEVICE_ALIGNMENT
from minikeras.layout import Layout


def graph_of(model, optimizer="Adam"):
    found = Trained(MODELS[model], LOSSES["labels"], OPTIMIZERS[optimizer])
    for _ in range(4):
        found.step()
    return found, *graphs_of(found.function)


def plan_root(graph):
    return lambda x: graph.schedule.root(x)[0]


@pytest.mark.parametrize("model", MODELS)
def test_values_that_live_together_lie_apart(double, model):
    _, graph = graph_of(model)
    plan, nodes = graph.plan, graph.schedule.nodes
    spans = {}
    for position, node in enumerate(nodes):
        for x in (*node.operands, *node.results):
            base, start = plan.place(x)
            if base == MEMORY and x.bytes:
                owner, before = plan._owner(x)
                first, *_ = spans.get(owner.key, (position,))
                spans[owner.key] = first, position, start - before, start - before + owner.bytes
    leaving = map(plan_root(graph), graph.schedule.exported)
    kept = {x.key for x in (*graph.program.arguments, *leaving, *plan.constants)}
    for key, (born, dies, start, stop) in spans.items():
        for other, (first, last, low, high) in spans.items():
            if key < other and start < high and low < stop:
                assert dies <= first or last <= born, f"%{key} and %{other} overlap"
                assert not {key, other} & kept


@pytest.mark.parametrize("model", MODELS)
def test_factors_and_pieces_of_flat_arrays_are_aligned(double, model):
    found, graph = graph_of(model)
    for node in graph.schedule.nodes:
        if isinstance(node, ProductNode):
            for x in (*node.operands, *node.results):
                assert graph._graphs.address(x) % DEVICE_ALIGNMENT == 0
    for variable in (*found.model.trainable_variables, *found.optimizer.variables[2:]):
        assert variable.array._values.ctypes.data % DEVICE_ALIGNMENT == 0


def test_gradients_are_written_where_they_lie_in_their_flat_array(double):
    _, graph = graph_of("dense")
    flat = [
        graph.schedule.inside[y.key] for node in graph.schedule.nodes for y in node.results if y.key in graph.schedule.inside
    ]
    assert len(flat) == 4 and len({whole.key for whole, _ in flat}) == 1
    assert not [node for node in graph.schedule.nodes if type(node).__name__ == "Copy"]


def test_weights_and_slots_are_written_in_place(double):
    found, graph = graph_of("dense")
    variables = found.model.trainable_variables
    values, places = zip(*[(one.numpy(), one.array._values.ctypes.data) for one in variables], strict=True)
    found.step()
    assert list(places) == [one.array._values.ctypes.data for one in variables]
    assert not any(np.array_equal(old, one.numpy()) for old, one in zip(values, variables, strict=True))


def test_a_layout_with_gaps():
    layout = Layout([(3,), (2, 2), (5,)], "float32", alignment=4)
    assert layout.starts == [0, 4, 8] and layout.size == 13
    pieces = layout.pieces(np.arange(13.0))
    assert [piece.tolist() for piece in pieces] == [[0, 1, 2], [[4, 5], [6, 7]], [8, 9, 10, 11, 12]]
