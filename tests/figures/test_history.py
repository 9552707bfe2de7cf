"""The picture of a training run: a panel for each quantity, two lines in it, every epoch at its place."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import minikeras as tf

plt = pytest.importorskip("matplotlib.pyplot")
from minikeras.figures import plot_history  # noqa: E402

LOGS = {
    "accuracy": [0.5, 0.75, 0.875],
    "learning_rate": [0.1, 0.01, 0.001],
    "loss": [3.0, 2.0, 1.5],
    "val_accuracy": [0.4, 0.5, 0.5],
    "val_loss": [3.5, 3.0, 3.25],
}


def curves(ax):
    """The lines of a panel by label: epochs and values."""
    return {line.get_label(): (line.get_xdata().tolist(), line.get_ydata().tolist()) for line in ax.lines}


def titles(figure):
    return [ax.get_title() for ax in figure.axes]


def test_each_quantity_has_a_panel_with_training_and_validation():
    figure = plot_history(LOGS, title="a run")
    assert titles(figure) == ["loss", "accuracy", "learning_rate"]
    loss, accuracy, rate = figure.axes
    assert {name: values for name, (_, values) in curves(loss).items()} == {
        "training": LOGS["loss"],
        "validation": LOGS["val_loss"],
    }
    assert curves(accuracy)["validation"] == ([1, 2, 3], LOGS["val_accuracy"])
    assert [text.get_text() for text in accuracy.get_legend().get_texts()] == ["training", "validation"]
    assert list(curves(rate)) == ["training"] and rate.get_legend() is None
    assert rate.get_yscale() == "log" and loss.get_yscale() == "linear"
    assert figure.get_suptitle() == "a run" and loss.get_xlabel() == "epoch"


@pytest.mark.parametrize("epochs", [1, 2, 3, 100])
def test_epochs_are_whole_numbers_counted_from_one(epochs):
    (ax,) = plot_history({"loss": list(range(epochs))}).axes
    assert curves(ax)["training"][0] == list(range(1, epochs + 1))
    ax.figure.canvas.draw()
    assert all(float(tick).is_integer() for tick in ax.get_xticks())
    assert (ax.lines[0].get_marker() == "o") == (epochs < 100), "a single epoch would be invisible without a mark"


def test_the_rates_of_several_optimizers_come_last():
    figure = plot_history({"learning_rate_a": [1.0], "learning_rate_b": [1.0], "mae": [1.0], "val_loss": [1.0]})
    assert titles(figure) == ["loss", "mae", "learning_rate_a", "learning_rate_b"]


def test_panels_can_be_chosen():
    assert titles(plot_history(LOGS, ["accuracy", "loss"])) == ["accuracy", "loss"]
    assert titles(plot_history(LOGS, "loss")) == ["loss"]
    assert list(curves(plot_history({"val_loss": [1.0]}).axes[0])) == ["validation"]


def test_panels_are_drawn_into_given_axes():
    figure, axes = plt.subplots(2, 2)
    assert plot_history(LOGS, ["loss", "accuracy"], axes=axes[1]) is figure
    assert [len(ax.lines) for ax in axes.ravel()] == [0, 0, 2, 2]
    assert plot_history(LOGS, "loss", axes=axes[0, 0]) is figure and len(axes[0, 0].lines) == 2


def test_many_panels_take_several_rows():
    figure = plot_history({name: [1.0, 2.0] for name in "abcdefg"})
    assert len(figure.axes) == 7 and figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == (3, 3)


def test_a_metric_with_several_values_has_a_line_for_each():
    (ax,) = plot_history({"recall": [[0.1, 0.2], [0.3, 0.4]], "val_recall": [[0.1, 0.1], [0.2, 0.2]]}).axes
    assert len(ax.lines) == 4
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["training", "validation"]


def test_values_that_are_not_finite_leave_a_gap():
    (ax,) = plot_history({"loss": [1.0, float("nan"), 2.0]}).axes
    assert np.isnan(curves(ax)["training"][1][1])
    ax.figure.canvas.draw()


def test_validation_at_some_epochs_is_drawn_at_those():
    history = SimpleNamespace(history={"loss": [4.0, 3.0, 2.0, 1.0], "val_loss": [3.5, 1.5]}, logged_at={"val_loss": [1, 3]})
    (ax,) = plot_history(history).axes
    assert curves(ax) == {"training": ([1, 2, 3, 4], [4.0, 3.0, 2.0, 1.0]), "validation": ([2, 4], [3.5, 1.5])}


def test_a_dict_with_gaps_is_refused_before_anything_is_drawn():
    with pytest.raises(tf.errors.ShapeError, match="'val_loss' has 2 values for 4 epochs"):
        plot_history({"loss": [4.0, 3.0, 2.0, 1.0], "val_loss": [3.5, 1.5]})
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("logs", "options", "words"),
    [
        (LOGS, {"names": ["mae", "loss"]}, "no mae in the history, which holds .*'accuracy'"),
        ({}, {}, "no name in the history"),
        (LOGS, {"axes": []}, "3 panels need as many axes, found 0"),
        ({"loss": 0.5}, {}, "'loss' should be a list with a value for each epoch, found 0.5"),
    ],
)
def test_what_cannot_be_drawn_is_named(logs, options, words):
    with pytest.raises(ValueError, match=words):
        plot_history(logs, **options)
    assert not plt.get_fignums()


def test_what_is_no_history_is_refused():
    with pytest.raises(TypeError, match="expected a History or a dict of lists, found list"):
        plot_history([1.0, 2.0])


# What fit returns --------------------------------------------------------------------------------------------------------


@pytest.fixture
def model():
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae"])
    return model


def test_a_history_plots_itself(model):
    x = np.linspace(0.0, 1.0, 8)[:, None]
    history = model.fit(x, 2 * x, epochs=3, validation_split=0.25, verbose=0)
    figure = history.plot()
    assert titles(figure) == ["loss", "mae"]
    for ax, name in zip(figure.axes, ("loss", "mae"), strict=True):
        found = {"training": name, "validation": f"val_{name}"}
        assert curves(ax) == {label: ([1, 2, 3], pytest.approx(history.history[key])) for label, key in found.items()}
    assert titles(history.plot(["mae"], title="one")) == ["mae"]


def test_a_history_knows_at_which_epochs_there_was_validation(model):
    x = np.ones((4, 1))
    history = model.fit(x, x, epochs=7, initial_epoch=2, validation_data=(x, x), validation_freq=[3, 6], verbose=0)
    drawn = curves(tf.keras.utils.plot_history(history, "loss").axes[0])
    assert drawn["training"][0] == [3, 4, 5, 6, 7] and drawn["validation"][0] == [3, 6]


def test_the_learning_rate_is_drawn_if_it_was_logged(model):
    x = np.ones((4, 1))
    schedule = tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.1 / (epoch + 1))
    history = model.fit(x, x, epochs=3, callbacks=[schedule], verbose=0)
    rate = history.plot().axes[-1]
    assert rate.get_title() == "learning_rate" and curves(rate)["training"][1] == pytest.approx([0.1, 0.05, 0.1 / 3])
    assert rate.get_yscale() == "linear"


def test_a_notebook_shows_a_figure_once(monkeypatch):
    """As the last value of its cell, in place of pyplot's own showing; kept under a name, by pyplot at the end of the cell."""
    seen = []
    monkeypatch.setattr(plt, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    for name in ("IPython", "IPython.display"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(display=seen.append))
    figure = plot_history(LOGS)
    assert plt.fignum_exists(figure.number)
    figure._ipython_display_()
    assert seen == [figure] and not plt.fignum_exists(figure.number)
    assert not hasattr(figure, "_ipython_display_"), "in a later cell it is shown as any figure is"
    _, axes = plt.subplots(1, 3)
    assert not hasattr(plot_history(LOGS, axes=axes), "_ipython_display_")


def test_a_script_s_figure_is_pyplot_s():
    figure = plot_history(LOGS)
    assert plt.fignum_exists(figure.number) and not hasattr(figure, "_ipython_display_")
