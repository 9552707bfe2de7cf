"""Several steps as one graph: rows are gathered on the device, numbers of all steps are sent at once."""

import numpy as np
import pytest
from graph_steps import LOSSES, MODELS, OPTIMIZERS, Trained, graphs_of
from slow import sampled
from strict_array import StrictArray

import minikeras as tf
from minikeras.compiler.executors.cuda_graph.runner import STEPS
from minikeras.data.table import RowBatches, RowTable
from minikeras.errors import InvalidArgumentError

RANDOM = np.random.default_rng(4)
ROWS = [RANDOM.permutation(50)[:8] for _ in range(3 * STEPS + 2)]
X, LABELS = RANDOM.normal(size=(50, 6)).astype("float32"), RANDOM.integers(0, 3, 50)


class Rows:
    """Batches of rows of columns that lie on the device."""

    def __init__(self, rows, *columns):
        self.rows, self.columns = np.array(rows), [StrictArray(column) for column in columns]

    def __len__(self):
        return len(self.rows)

    def arguments(self, number):
        return [StrictArray(column._values[self.rows[number]]) for column in self.columns]


def never():
    raise AssertionError("a run that is whole by itself needs no state to go back to")


def warmed(place="STRICT:0", model="dense", optimizer="schedule"):
    found = Trained(MODELS[model], LOSSES["labels"], OPTIMIZERS[optimizer], place)
    for _ in range(4):
        found.step()
    return found


@pytest.mark.parametrize("optimizer", sampled(["SGD", "Adam", "schedule"], 2))
@pytest.mark.parametrize("model", ["dense", "normalized"])
def test_many_steps_give_what_single_ones_give(double, model, optimizer):
    ours, theirs = warmed(model=model, optimizer=optimizer), warmed("CPU:0", model, optimizer)
    (graph,) = graphs_of(ours.function)
    (loss,) = graph.run_many(Rows(ROWS, X, LABELS), never, stacked=False)
    for rows in ROWS:
        expected = theirs.step(theirs.x * 0 + X[rows], theirs.y * 0 + LABELS[rows])
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-5)
    for own, other in zip(ours.state(), theirs.state(), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=2e-6)


def test_so_many_steps_are_one_launch(double):
    found = warmed()
    (graph,) = graphs_of(found.function)
    before = len(double.log)
    graph.run_many(Rows(ROWS, X, LABELS), never, stacked=False)
    launched = [name for name in double.log[before:] if name.startswith("graph of")]
    single = len(graph.schedule.nodes)
    assert launched == [f"graph of {STEPS * (single + 2)}"] * 3 + [f"graph of {single}"] * 2


def test_stacked_results_are_those_of_all_steps(double):
    found, other = warmed(), warmed()
    (graph,), (single,) = graphs_of(found.function), graphs_of(other.function)
    (losses,) = graph.run_many(Rows(ROWS[:10], X, LABELS), never, stacked=True)
    expected = [single(Rows(ROWS, X, LABELS).arguments(number))[0].numpy() for number in range(10)]
    np.testing.assert_array_equal(losses.numpy(), expected)


def test_a_label_that_is_refused_is_refused_by_its_own_step_and_those_before_it_are_done(double):
    found, other = warmed(), warmed()
    (graph,), (single,) = graphs_of(found.function), graphs_of(other.function)
    labels = LABELS.copy()
    labels[ROWS[STEPS + 3][0]] = 5
    wrong = next(number for number, rows in enumerate(ROWS) if (labels[rows] > 2).any())
    with pytest.raises(InvalidArgumentError, match="label value of 5"):
        graph.run_many(Rows(ROWS, X, labels), never, stacked=False)
    for number in range(wrong):
        single(Rows(ROWS, X, LABELS).arguments(number))
    for own, theirs in zip(found.state(), other.state(), strict=True):
        np.testing.assert_array_equal(own, theirs)


def test_a_device_that_breaks_at_a_launch_leaves_the_state_of_the_launches_before_it(double):
    found, other = warmed(), warmed()
    (graph,), (single,) = graphs_of(found.function), graphs_of(other.function)
    graph.run_many(Rows(ROWS[:STEPS], X, LABELS), never, stacked=False)
    for number in range(STEPS):
        single(Rows(ROWS, X, LABELS).arguments(number))
    double.breaks = 1  # the rows' numbers cannot be sent
    with pytest.raises(RuntimeError, match="broke"):
        graph.run_many(Rows(ROWS[STEPS : 2 * STEPS], X, LABELS), never, stacked=False)
    for own, theirs in zip(found.state(), other.state(), strict=True):
        np.testing.assert_array_equal(own, theirs)


def test_rows_of_a_data_set_on_the_device_are_gathered_there(double):
    ours, theirs = warmed(optimizer="Adam"), warmed("CPU:0", optimizer="Adam")
    found = []
    for trained in (ours, theirs):
        with tf.device(trained.place):
            rows = RowBatches(RowTable((tf.constant(X), tf.constant(LABELS))), ROWS)
            found.append(trained.function.replay_many(rows, (trained.x, trained.y), lambda: None)[0].numpy())
    np.testing.assert_allclose(*found, rtol=1e-5)
    assert len(double.nodes) == 2, "one graph of a step, one of several"
