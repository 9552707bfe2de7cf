"""What a notebook shows of an object that ends a cell: small HTML, or a picture."""

import importlib.util
from html.parser import HTMLParser

import numpy as np
import pytest

import minikeras as tf
from tests.keras.test_reprs import CLASSES, NO_CALL, REQUIRED

keras = tf.keras
ALLOWED = {"table", "caption", "thead", "tbody", "tr", "th", "td", "div", "b", "ul", "li"}


class Reading(HTMLParser):
    """Collects the text; refuses tags that are not closed, and all that is not plain text in a table or list."""

    def __init__(self, markup):
        super().__init__()
        self.text, self._open = [], []
        self.feed(markup)
        assert not self._open

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED, tag
        assert all(name == "style" and value.startswith("text-align: ") for name, value in attrs), attrs
        self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(thing):
    return Reading(thing._repr_html_()).text


@pytest.fixture
def history():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.SGD(0.0), "mse", metrics=["mae"])
    return model.fit(*[np.ones((4, 1))] * 2, epochs=4, validation_data=([[1.0]], [[3.0]]), validation_freq=2, verbose=0)


@pytest.fixture
def no_matplotlib(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name))


def test_a_history_is_a_picture(history):
    plt = pytest.importorskip("matplotlib.pyplot")
    before = plt.get_fignums()
    assert history._repr_png_().startswith(b"\x89PNG") and history._repr_html_() is None
    assert plt.get_fignums() == before, "pyplot would show it once more"


def test_a_history_is_a_table_where_matplotlib_is_not(history, no_matplotlib):
    assert history._repr_png_() is None
    assert read(history)[:5] == ["epoch", "loss", "mae", "val_loss", "val_mae"]
    assert (
        " ".join(read(history)[5:])
        == "1 1.0000 1.0000 2 1.0000 1.0000 9.0000 3.0000 3 1.0000 1.0000 4 1.0000 1.0000 9.0000 3.0000"
    )


def test_of_a_long_history_the_table_has_the_last_epochs(no_matplotlib):
    history = keras.callbacks.History()
    history.epoch, history.history = list(range(500)), {"loss": [0.5] * 500}
    history.logged_at = {"loss": history.epoch}
    found = read(history)
    assert found[:3] == ["epoch", "loss", "481"] and found[-2:] == ["500", "0.5000"]


def test_a_history_of_nothing_is_its_text():
    assert keras.callbacks.History()._repr_html_() is None and keras.callbacks.History()._repr_png_() is None


def test_a_model_is_its_summary_with_the_layers_of_models_within():
    inner = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="<script>")], name="inner")
    model = keras.Sequential([keras.Input((2,)), inner, keras.layers.Dense(1, name="a&b")], name="<img src=x>")
    assert read(model) == [
        *('Model: "<img src=x>"', "Layer (type)", "Output Shape", "Param #", "Trainable"),
        *("inner (Sequential)", "(None, 3)", "9", "Y"),
        *("└ <script> (Dense)", "(None, 3)", "9", "Y"),
        *("a&b (Dense)", "(None, 1)", "4", "Y"),
        *("Total params: 13 (52 B)", "Trainable params: 13 (52 B)", "Non-trainable params: 0 (0 B)"),
    ]


def test_a_model_without_shapes_is_shown_too():
    class Mine(keras.Model):
        def __init__(self):
            super().__init__(name="<b>")
            self.dense = keras.layers.Dense(2, name="dense")

    assert read(Mine())[5:9] == ["dense (Dense)", "?", "0 (unbuilt)", "-"]
    assert "unbuilt" in " ".join(read(keras.Sequential([keras.layers.Dense(2)])))


OPTIMIZERS = [kind for kind in CLASSES if issubclass(kind, keras.optimizers.Optimizer) and kind.__name__ not in NO_CALL]


@pytest.mark.parametrize("kind", sorted(OPTIMIZERS, key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__)
def test_an_optimizer_is_a_table_of_its_options(kind):
    found = read(kind(*REQUIRED.get(kind.__name__, ())))
    assert found[0].startswith(kind.__name__) and len(found) < 50


def test_an_optimizer_shows_its_present_rate_and_how_many_steps_were_taken():
    w = tf.Variable([1.0])
    optimizer = keras.optimizers.SGD(keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.5, 0.25]), momentum=0.5)
    optimizer.apply([tf.constant([1.0])], [w])
    found = read(optimizer)
    assert dict(zip(found[3::2], found[4::2], strict=True)) == {
        **{"learning_rate": "0.25", "momentum": "0.5", "nesterov": "False", "iterations": "1"}
    }


def test_an_optimizer_for_each_layer_is_a_table_of_these():
    made = keras.optimizers.PerLayer({"<i>": keras.optimizers.SGD(0.5), "*": "adam"}, name="both")
    assert read(made) == [
        *("PerLayer both", "variables", "optimizer"),
        *("<i>", "SGD(learning_rate=0.5)", "*", "Adam(learning_rate=0.001)"),
    ]


def test_an_explanation_is_its_reason_and_its_hint():
    x = tf.Variable(2.0, name="<script>alert()</script>")
    with tf.GradientTape() as tape:
        y = tf.cast(tf.cast(x, "int32"), "float32")
    found = read(tape.explain(y, x))
    assert found[0].startswith("No gradient: ") and "<script>" in found[1] and len(found) >= 3
    with tf.GradientTape() as tape:
        y = x * x
    assert read(tape.explain(y, x)) == ["A gradient flows", "The target depends on the source, and a gradient flows."]
