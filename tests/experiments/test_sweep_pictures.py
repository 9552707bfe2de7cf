"""Pictures of a sweep: a curve with a band for each combination, and a line for each run through its parameters."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.experiments import Sweep, SweepResults
from minikeras.experiments.grid import Failure, Run
from minikeras.experiments.results import RunResult
from minikeras.experiments.runs import Outcome

plt = pytest.importorskip("matplotlib.pyplot")
from minikeras.figures import plot_parallel  # noqa: E402


def result(number, parameters, seed, losses, failure=None, logged_at=None):
    history = {"loss": losses, "accuracy": [1.0 - loss / 10 for loss in losses]}
    epochs = logged_at or list(range(len(losses)))
    outcome = Outcome(history, dict.fromkeys(history, epochs), {"loss": "min", "accuracy": "max"}, 1.0, failure)
    return RunResult(Run(number, parameters, seed), outcome)


def results(objective="loss", rates=(0.1, 0.01), seeds=2):
    found = [
        result(0, {"rate": rate, "name": "net"}, seed, [3.0 + i, 2.0 + i + seed, 1.0 + i])
        for i, rate in enumerate(rates)
        for seed in range(seeds)
    ]
    return SweepResults("sweep", found, objective, "auto")


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_each_combination_is_a_curve_in_a_band_of_one_deviation():
    figure = results().plot(title="two rates")
    (ax,) = figure.axes
    assert ax.get_title() == "loss" and figure.get_suptitle() == "two rates"
    best, other = ax.lines
    assert best.get_xdata().tolist() == [1, 2, 3] and best.get_ydata().tolist() == [3.0, 2.5, 1.0]
    assert other.get_ydata().tolist() == [4.0, 3.5, 2.0]
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == 1.0 and np.isclose(band[band[:, 0] == 2.0, 1].max(), 2.5 + np.sqrt(0.5))
    assert texts(figure.legends[0]) == ["rate=0.1", "rate=0.01"], "what is the same in all runs is not named"


def test_one_seed_has_no_band():
    (ax,) = results(seeds=1).plot().axes
    assert len(ax.lines) == 2 and not ax.collections


def test_only_the_best_combinations_are_coloured_and_named():
    figure = results(rates=range(1, 13)).plot(most=3)
    (ax,) = figure.axes
    assert texts(figure.legends[0]) == ["rate=1", "rate=2", "rate=3"]
    assert len({line.get_color() for line in ax.lines}) == 4 and len(ax.lines) == 12 and len(ax.collections) == 3


def test_other_values_have_panels_of_their_own():
    figure = results("accuracy").plot(names=["loss", "accuracy"])
    assert [ax.get_title() for ax in figure.axes] == ["loss", "accuracy"]
    assert figure.axes[1].lines[0].get_ydata()[-1] == pytest.approx(0.9)


def test_runs_that_stopped_early_leave_the_mean_to_the_others():
    found = [result(0, {}, 0, [4.0, 2.0]), result(1, {}, 1, [2.0])]
    (ax,) = SweepResults("sweep", found, "loss", "min").plot().axes
    assert ax.lines[0].get_ydata().tolist() == [3.0, 2.0]


def test_values_that_are_not_logged_at_each_epoch_stand_where_they_were():
    found = [result(0, {}, 0, [4.0, 2.0], logged_at=[1, 3])]
    (ax,) = SweepResults("sweep", found, "loss", "min").plot().axes
    assert ax.lines[0].get_xdata().tolist() == [2, 4]


def test_failed_runs_are_left_out():
    found = [result(0, {"rate": 1.0}, 0, [9.0], Failure("no", "")), result(1, {"rate": 2.0}, 0, [2.0])]
    assert len(SweepResults("sweep", found, "loss", "min").plot().axes[0].lines) == 1
    assert len(SweepResults("sweep", found, "loss", "min").plot("parallel").axes[0].lines) == 3, "two axes and a run"
    for kind in ("curves", "parallel"):
        with pytest.raises(ValueError, match="all 1 runs failed, so there is nothing to draw"):
            SweepResults("sweep", found[:1], "loss", "min").plot(kind)


def runs_of(ax, columns):
    return [line for line in ax.lines if len(line.get_xdata()) == columns]


def test_a_run_is_a_line_through_the_values_of_what_varies():
    found = [
        result(i, {"rate": rate, "act": act, "name": "net"}, 0, [loss])
        for i, (rate, act, loss) in enumerate([(0.001, "relu", 1.0), (0.01, "tanh", 2.0), (0.1, "relu", 3.0)])
    ]
    (ax,) = SweepResults("sweep", found, "loss", "min").plot("parallel").axes
    assert [label.get_text() for label in ax.get_xticklabels()] == ["rate", "act", "loss"]
    lines = sorted(runs_of(ax, 3), key=lambda line: line.get_ydata()[2])
    assert np.allclose([line.get_ydata() for line in lines], [[0.0, 0.0, 0.0], [0.5, 1.0, 0.5], [1.0, 0.0, 1.0]])
    assert {"0.001", "0.01", "0.1", "relu", "tanh"} <= {text.get_text() for text in ax.texts}


@pytest.mark.parametrize(("best", "dark"), [("min", 0), ("max", 1)])
def test_the_better_a_run_the_darker_and_the_later_its_line(best, dark):
    ax = plot_parallel({"a": [1, 2]}, "loss", [1.0, 2.0], best).axes[0]
    lines = runs_of(ax, 2)[-2:]
    brightness = [sum(line.get_color()[:3]) for line in lines]
    assert brightness[1] < brightness[0] and lines[1].get_ydata()[-1] == dark


def test_an_axis_of_many_values_has_round_labels():
    rates = np.geomspace(0.0011, 0.9, 20)
    ax = plot_parallel({"rate": rates.tolist(), "width": list(range(3, 23))}, "loss", list(range(20)), "min").axes[0]
    assert {"0.01", "0.1", "20"} <= {text.get_text() for text in ax.texts}


def test_pictures_are_drawn_into_axes_that_are_given():
    figure, (one, other) = plt.subplots(1, 2)
    assert results().plot(axes=one) is figure and results().plot("parallel", axes=other) is figure
    assert texts(one.get_legend()) == ["rate=0.1", "rate=0.01"] and runs_of(other, 2)
    with pytest.raises(ValueError, match="plot: 1 panels need as many axes, found 2"):
        results().plot(axes=[one, other])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "bars"}, "kind must be 'curves' or 'parallel', found 'bars'"),
        ({"names": ["auc"]}, r"no auc among the numbers in the logs, but \['accuracy', 'loss'\]"),
        ({"names": []}, "there is no name among the numbers"),
    ],
)
def test_what_cannot_be_drawn_is_told(arguments, message):
    with pytest.raises(ValueError, match=message):
        results().plot(**arguments)


def test_a_real_sweep_can_be_drawn():
    def build(rate):
        model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.SGD(rate), "mse")
        return model

    found = Sweep(build, {"rate": [0.1, 0.2]}, seeds=2).fit([[0.0], [1.0]], [[0.0], [1.0]], epochs=2, verbose=0)
    found.plot().canvas.draw()
    found.plot("parallel").canvas.draw()
    assert len(found.history(0).plot().axes) == 1
