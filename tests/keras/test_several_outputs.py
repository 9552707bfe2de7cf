"""Several inputs and outputs: which loss and metric goes where, and under which names they are logged."""

import numpy as np
import pytest

import minikeras as tf

Dense = tf.keras.layers.Dense
generator = np.random.default_rng(2)
X, Y = generator.normal(size=(8, 3)).astype("float32"), generator.normal(size=(8, 1)).astype("float32")
Z = (generator.random((8, 1)) > 0.5).astype("float32")


class Two(tf.keras.Model):
    """Two heads; their outputs as a dict, a list, or a nest."""

    def __init__(self, form):
        super().__init__()
        self.a, self.b = Dense(1), Dense(1, activation="sigmoid")
        self.form = form

    def call(self, x):
        a, b = self.a(x), self.b(x)
        return {"dict": {"a": a, "b": b}, "list": [a, b], "nest": {"p": a, "q": [b, a]}}[self.form]


def made(form, *arguments, **options):
    model = Two(form)
    model.compile(tf.keras.optimizers.SGD(0.0), *arguments, **options)
    return model


def names(model, y, **options):
    return sorted(model.fit(X, y, verbose=0, **options).history)


def mean_squared(model, y, key):
    return float(((model.predict(X, verbose=0)[key] - y) ** 2).mean())


# Names, as real Keras 3.15 gives them --------------------------------------------------------------------------------------


@pytest.mark.parametrize("losses", [{"a": "mse", "b": "binary_crossentropy"}, ["mse", "binary_crossentropy"], "mse"])
@pytest.mark.parametrize(
    "y", [{"a": Y, "b": Z}, {"b": Z, "a": Y}, [Y, Z], (Y, Z)], ids=["dict", "other order", "list", "tuple"]
)
def test_outputs_in_a_dict_are_named_by_its_keys(losses, y):
    model = made("dict", losses, metrics={"a": ["mae"], "b": ["accuracy", "mae"]}, weighted_metrics={"a": ["mae"]})
    expected = ["a_loss", "a_mae", "a_weighted_mae", "b_accuracy", "b_loss", "b_mae", "loss"]
    assert names(model, y) == expected
    assert model.metrics_names == ["loss", "a_loss", "b_loss", "a_mae", "b_accuracy", "b_mae", "a_weighted_mae"]
    logs = model.evaluate(X, y, verbose=0, return_dict=True)
    assert list(logs) == expected and logs["loss"] == pytest.approx(logs["a_loss"] + logs["b_loss"])
    assert model.evaluate(X, y, verbose=0) == [logs[name] for name in model.metrics_names]
    assert type(model.metrics[4]).__name__ == "BinaryAccuracy"


def test_outputs_in_a_list_have_the_names_of_their_losses_and_metrics():
    model = made("list", ["mse", "mae"], metrics=[["mae"], ["mae"]])
    assert names(model, [Y, Z]) == ["loss", "mae", "mae_1", "mae_loss", "mse_loss"]
    assert names(made("list", "mse"), [Y, Z]) == ["loss", "mse_loss", "mse_loss_1"]


def test_a_nest_of_outputs_takes_a_nest_of_losses_and_names_by_path():
    model = made("nest", {"p": "mse", "q": ["mae", None]}, metrics={"p": "mae", "q": [None, "mse"]})
    y = {"p": Y, "q": [Z, Y]}
    assert names(model, y) == ["loss", "p_loss", "p_mae", "q/0_loss", "q/1_mse"]
    logs = model.evaluate(X, y, verbose=0, return_dict=True)
    assert logs["p_loss"] == pytest.approx(logs["q/1_mse"])


def test_metrics_of_one_output_are_numbered_if_they_repeat_and_marked_if_weighted():
    model = tf.keras.Sequential([Dense(1)])
    own = tf.keras.metrics.MeanSquaredError(name="loss")
    model.compile("sgd", "mse", metrics=["mae", "mae", own], weighted_metrics=["mae", "mae"])
    assert names(model, Y) == ["loss", "loss_1", "mae", "mae_1", "weighted_mae", "weighted_mae_1"]


def test_one_output_may_have_several_losses():
    model = tf.keras.Sequential([tf.keras.Input((3,)), Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.0), ["mse", "mae"], loss_weights=[1.0, 10.0])
    logs = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert list(logs) == ["loss", "mae_loss", "mse_loss"]
    assert logs["loss"] == pytest.approx(logs["mse_loss"] + 10.0 * logs["mae_loss"])


# Losses and weights --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [[2.0, 0.5], {"a": 2.0, "b": 0.5}])
def test_loss_weights_count_in_the_sum_and_not_in_the_single_losses(weights):
    model = made("dict", "mse", loss_weights=weights)
    logs = model.evaluate(X, {"a": Y, "b": Z}, verbose=0, return_dict=True)
    assert logs["a_loss"] == pytest.approx(mean_squared(model, Y, "a"))
    assert logs["loss"] == pytest.approx(2.0 * logs["a_loss"] + 0.5 * logs["b_loss"])


def test_an_output_may_go_without_loss_and_then_needs_no_labels():
    for losses in ({"a": "mse"}, {"a": "mse", "b": None}, ["mse", None]):
        model = made("dict", losses, metrics={"a": "mae"})
        for y in ({"a": Y}, [Y], {"a": Y, "b": Z}, [Y, Z]):
            logs = model.evaluate(X, y, verbose=0, return_dict=True)
            assert logs == {"loss": pytest.approx(mean_squared(model, Y, "a")), "a_mae": logs["a_mae"]}


@pytest.mark.parametrize("form", [list, lambda pair: dict(zip("ab", pair, strict=True))])
def test_every_output_may_have_sample_weights_of_its_own(form):
    u, v = np.arange(8, dtype="float32"), np.linspace(0, 1, 8).astype("float32")
    model = made("dict", "mse", weighted_metrics=[["mse"], ["mse"]])
    logs = model.evaluate(X, [Y, Z], sample_weight=form((u, v)), verbose=0, return_dict=True)
    a = ((model.predict(X, verbose=0)["a"] - Y) ** 2)[:, 0]
    assert logs["a_loss"] == pytest.approx((a * u).mean(), rel=1e-5)
    assert logs["a_mse"] == pytest.approx((a * u).sum() / u.sum(), rel=1e-5)
    both = model.evaluate(X, [Y, Z], sample_weight=u, verbose=0, return_dict=True)
    assert both["a_loss"] == logs["a_loss"] and both["b_loss"] != logs["b_loss"]
    half = model.evaluate(X, [Y, Z], sample_weight={"a": u}, verbose=0, return_dict=True)
    assert half["a_loss"] == logs["a_loss"]


def test_crossentropy_is_the_kind_that_fits_each_output():
    class Heads(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.heads = [Dense(1, activation="sigmoid"), Dense(3, activation="softmax"), Dense(3, activation="softmax")]

        def call(self, x):
            return dict(zip(("binary", "sparse", "hot"), (head(x) for head in self.heads), strict=True))

    classes = np.arange(8) % 3
    y = {"binary": Z, "sparse": classes, "hot": np.eye(3, dtype="float32")[classes]}
    model = Heads()
    model.compile("sgd", "crossentropy", metrics=[["ce", "acc"]] * 3)
    history = model.fit(X, y, verbose=0).history
    for name, kind in (("binary", "binary"), ("sparse", "sparse_categorical"), ("hot", "categorical")):
        assert history[f"{name}_ce"] == pytest.approx(history[f"{name}_loss"], rel=1e-4)
        assert kind.replace("_", "").lower() in {
            type(metric).__name__.lower().removesuffix("accuracy") for metric in model.metrics
        }


def test_a_model_with_several_outputs_trains_through_all_of_them():
    model = Two("dict")
    model.compile(tf.keras.optimizers.Adam(0.05), {"a": "mse", "b": "binary_crossentropy"})
    history = model.fit(X, {"a": Y, "b": Z}, epochs=40, batch_size=3, validation_split=0.25, verbose=0).history
    assert history["a_loss"][-1] < history["a_loss"][0] and history["b_loss"][-1] < history["b_loss"][0]
    assert {"val_loss", "val_a_loss", "val_b_loss"} <= set(history)


# What does not fit -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": {"a": "mse", "c": "mse"}}, r"Invalid `loss`: \{'a': .*, 'c': .*\} does not fit the outputs \['a', 'b'\]"),
        ({"loss": ["mse"] * 3}, "Invalid `loss`"),
        (
            {"loss": "mse", "metrics": ["mae"]},
            "Invalid `metrics`.*Give a list with an entry for each output, or a dict",
        ),
        ({"loss": "mse", "metrics": "mae"}, "Invalid `metrics`"),
        ({"loss": "mse", "loss_weights": [1.0, 2.0, 3.0]}, "Invalid `loss_weights`"),
        ({"loss": "mse", "loss_weights": {"a": 1.0, "x": 2.0}}, "Invalid `loss_weights`"),
        ({"loss": "mse", "loss_weights": ["mae", "mse"]}, "`loss_weights` must be numbers, .* Metrics need their name"),
    ],
)
def test_losses_and_metrics_that_fit_no_output_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        made("dict", **options).fit(X, [Y, Z], verbose=0)


@pytest.mark.parametrize("y", [Y, [Y], [Y, Z, Z], {"a": Y}, {"a": Y, "c": Z}])
def test_labels_that_fit_no_output_are_named(y):
    with pytest.raises(ValueError, match=r"y_true and y_pred have different structures: .* the outputs are \['a', 'b'\]"):
        made("dict", "mse").fit(X, y, verbose=0)


def test_labels_in_a_nest_for_a_model_with_one_output_are_taken_if_they_are_one():
    def one():
        model = tf.keras.Sequential([tf.keras.Input((3,)), Dense(1, kernel_initializer="ones")])
        model.compile("sgd", "mse")
        return model

    assert one().evaluate(X, [Y], verbose=0) == one().evaluate(X, Y, verbose=0)
    with pytest.raises(ValueError, match="y_true and y_pred have different structures"):
        one().fit(X, [Y, Z], verbose=0)
    with pytest.raises(ValueError, match="sample_weight is .*, the outputs are"):
        made("dict", "mse").fit(X, [Y, Z], sample_weight=[np.ones(8)] * 3, verbose=0)
    with pytest.raises(ValueError, match="`class_weight` is only supported for models with a single output"):
        made("dict", "mse").fit(X, [Y, Z], class_weight={0: 1.0}, verbose=0)


def test_a_metric_without_labels_says_so():
    model = tf.keras.Sequential([Dense(1, kernel_regularizer="l2", use_bias=False)])
    model.compile("sgd", metrics=["mae"])
    with pytest.raises(ValueError, match="The metric 'mae' compares predictions with labels, but the data holds no y"):
        model.fit(X, verbose=0)


def test_dicts_of_inputs_and_outputs_are_told_apart_by_their_keys_in_any_order():
    b, a = tf.keras.Input((2,), name="z_input"), tf.keras.Input((2,), name="a_input")
    by_key = tf.keras.Model({"b": b, "a": a}, {"y": b * 10.0, "x": a * 1.0})
    by_name = tf.keras.Model([b, a], {"y": b * 10.0, "x": a * 1.0})
    ones, twos = tf.ones([4, 2]), 2.0 * tf.ones([4, 2])
    for model, given in (
        (by_key, {"b": ones, "a": twos}),
        (by_key, {"a": twos, "b": ones}),
        (by_name, [ones, twos]),
        (by_name, {"a_input": twos, "z_input": ones}),
    ):
        for result in (model(given), model.predict(given, verbose=0)):
            assert float(result["y"][0, 0]) == 10.0 and float(result["x"][0, 0]) == 2.0 and list(result) == ["y", "x"]
    by_key.compile("sgd", {"x": "mae", "y": "mse"}, metrics={"y": ["mae"]})
    for labels in ({"x": ones, "y": ones}, {"y": ones, "x": ones}):
        logs = by_key.evaluate({"a": twos, "b": ones}, labels, verbose=0, return_dict=True)
        assert (logs["x_loss"], logs["y_loss"], logs["y_mae"]) == (1.0, 81.0, 9.0)
