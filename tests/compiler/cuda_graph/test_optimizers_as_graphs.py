"""Steps of every optimizer with every option, as graphs on the double, give what NumPy's executor gives."""

import itertools

import numpy as np
import pytest
from graph_steps import LOSSES, MODELS, Trained, graphs_of
from optimizer_cases import FORMULAS, OPTIONS
from shim import needs_gxx
from slow import mostly_slow, sampled

import minikeras as tf

optimizers = tf.keras.optimizers
AROUND = {
    "LossScaleOptimizer": lambda: optimizers.LossScaleOptimizer(optimizers.Adam(0.01), dynamic_growth_steps=2),
    "PerLayer": lambda: optimizers.PerLayer({"*": optimizers.Adam(0.01, clipnorm=0.1)}),
    "MultiOptimizer": lambda: optimizers.MultiOptimizer(optimizers.OptimizerMap(optimizers.Lamb(0.01))),
}
"""Optimizers around others."""
OF_SECOND_ORDER = {"AdaHessian", "GaussNewton", "KFAC", "LBFGS", "LevenbergMarquardt", "Newton", "NewtonCG"}
"""They look at values in the middle of a step: which way to go, how far, whether a matrix can be inverted."""
NO_OPTIMIZER = {"Optimizer", "SecondOrder", "OptimizerMap", "Every", "Objective"}
CASES = {f"{name} {option}": (name, option) for name, option in itertools.product(FORMULAS, OPTIONS)}


def assert_same(make, double, model="dense", steps=5):
    """The graph after steps that are those of NumPy's executor."""
    ours, theirs = [Trained(MODELS[model], LOSSES["labels"], make, place) for place in ("STRICT:0", "CPU:0")]
    for _ in range(steps):
        np.testing.assert_allclose(ours.step(), theirs.step(), rtol=2e-5)
    for own, other in zip(ours.state(), theirs.state(), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-5)
    (graph,) = graphs_of(ours.function)
    return graph


def test_every_optimizer_is_here():
    names = {name for name in optimizers.__all__ if isinstance(getattr(optimizers, name), type)}
    ours = {type(make()).__name__ for make in FORMULAS.values()}
    assert names == {*ours, *AROUND, *OF_SECOND_ORDER, *NO_OPTIMIZER}


PLAIN = [case for case, (name, option) in CASES.items() if option == "plain" or name in ("Adam", "Lamb")]


@pytest.mark.parametrize("case", sampled(mostly_slow(CASES, *PLAIN), 3))
def test_a_step_is_one_graph(case, double):
    name, option = CASES[case]
    graph = assert_same(lambda: FORMULAS[name](**OPTIONS[option]), double)
    assert not graph.schedule.calls, "Python stands between two graphs"


@pytest.mark.parametrize("name", AROUND)
def test_a_step_of_an_optimizer_around_others(name, double):
    graph = assert_same(AROUND[name], double)
    assert len(graph.schedule.calls) == (name == "LossScaleOptimizer")  # it waits for whether all gradients are finite


TOGETHER = {
    "averages of accumulated, clipped gradients": {"gradient_accumulation_steps": 2, "use_ema": True, "global_clipnorm": 0.1},
    "norms of scaled gradients": {"loss_scale_factor": 8.0, "clipnorm": 0.05, "weight_decay": 0.01},
    "weights that become averages": {"gradient_accumulation_steps": 2, "use_ema": True, "ema_overwrite_frequency": 2},
}


@needs_gxx
@pytest.mark.parametrize("options", TOGETHER.values(), ids=TOGETHER)
@pytest.mark.parametrize("name", mostly_slow(["Adam", "Lamb", "Adafactor", "Muon", "Nadam"], "Lamb"))
def test_options_together_from_the_sources_of_kernels(name, options, double_of_sources):
    """The gaps of flat arrays, which nothing writes, are NaN there."""
    graph = assert_same(lambda: FORMULAS[name](**options), double_of_sources, "deep", steps=6)
    assert not graph.schedule.calls


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, 0),
        ({"clipnorm": 0.1}, 2),
        ({"global_clipnorm": 0.1}, 2),
        ({"use_ema": True}, 0),
        ({"gradient_accumulation_steps": 2}, 0),
        ({"gradient_accumulation_steps": 2, "use_ema": True, "clipvalue": 0.1, "weight_decay": 0.1}, 0),
    ],
)
@pytest.mark.parametrize("depth", [1, 3])
def test_options_cost_a_pass_for_a_norm_and_nothing_else(options, more, depth, double):
    """A pass over all gradients, whose sums a second kernel adds up, however many weights there are."""
    layers = [tf.keras.layers.Dense(7, "relu") for _ in range(depth)]
    found = Trained(lambda: layers, LOSSES["labels"], lambda: optimizers.Adam(0.01, **options))
    for _ in range(4):
        found.step()
    plain = 3 * depth + 5
    assert len(double.nodes[-1]) == plain + more


@pytest.mark.parametrize("model", ["dense", "normalized"])
def test_gradients_that_are_not_finite_change_the_scale_alone(model, double):
    ours, theirs = [
        Trained(MODELS[model], LOSSES["labels"], AROUND["LossScaleOptimizer"], place) for place in ("STRICT:0", "CPU:0")
    ]
    broken = np.array(ours.x.numpy())
    broken[0, 0] = np.inf
    for number in range(9):
        given = []
        for one in (ours, theirs):
            with tf.device(one.place):
                given.append(tf.constant(broken) if number in (3, 6) else one.x)
        np.testing.assert_allclose(ours.step(given[0]), theirs.step(given[1]), rtol=2e-5)
        assert ours.optimizer.dynamic_scale.numpy() == theirs.optimizer.dynamic_scale.numpy()
        assert int(ours.optimizer.iterations) == int(theirs.optimizer.iterations)
    for own, other in zip(ours.state(), theirs.state(), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-5)


def test_an_option_that_changes_between_two_steps_counts(double):
    ours, theirs = [
        Trained(MODELS["dense"], LOSSES["labels"], lambda: optimizers.Adam(0.01, clipnorm=0.1), place)
        for place in ("STRICT:0", "CPU:0")
    ]
    for number in range(8):
        for one in (ours, theirs):
            one.optimizer.clipnorm = 0.1 if number < 4 else 0.01
            one.optimizer.learning_rate = 0.01 / (number + 1)
        np.testing.assert_allclose(ours.step(), theirs.step(), rtol=2e-5)
    for own, other in zip(ours.state(), theirs.state(), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-5)
