"""Recurrent layers: forward, gradients of weights, inputs and first states, and files, as Keras computed and wrote them."""

import pathlib

import numpy as np
from golden_numbers import golden
from in_one_test import in_one_test

import minikeras as tf
from minikeras import nest

L = tf.keras.layers
FILES = pathlib.Path(__file__).parent.parent / "golden" / "files"
GOLDEN = golden("recurrent")


def made(value, dtype):
    """A layer or cell for its class and options, also within options."""
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str):
        inner = {name: made(one, dtype) for name, one in value[1].items()}
        return getattr(L, value[0])(**inner, dtype=dtype, name=value[0].lower())
    return [made(one, dtype) for one in value] if isinstance(value, list) and isinstance(value[0], list) else value


def layer_of(case, dtype):
    config = {name: made(value, dtype) for name, value in case["config"].items()}
    return getattr(L, case["layer"])(**config, dtype=dtype, name="layer")


@in_one_test(compiled=[False, True], case=GOLDEN["cases"])
def test_a_layer_computes_what_keras_s_does(case, compiled):
    layer = layer_of(case, "float64")
    x, *initial = [tf.constant(np.asarray(one), "float64") for one in (case["x"], *case["initial"])]
    more = {"initial_state": initial} if initial else {}
    more |= {} if case["mask"] is None else {"mask": np.asarray(case["mask"], bool)}
    layer(x, **more)
    assert [weight.path for weight in layer.weights] == case["paths"]
    layer.set_weights([np.asarray(value) for value in case["weights"]])

    def step(x, initial):
        with tf.GradientTape() as tape:
            tape.watch([x, *initial])
            outputs = nest.flatten(layer(x, **(more | ({"initial_state": list(initial)} if initial else {}))))
            loss = sum(tf.reduce_sum(y * tf.constant(dy, y.dtype)) for y, dy in zip(outputs, case["dy"], strict=True))
        return outputs, tape.gradient(loss, [*layer.trainable_weights, x, *initial])

    run = tf.function(step) if compiled else step
    for _ in range(3 if compiled else 1):  # recorded, compared, replayed
        found = run(x, initial)
    expected = [*case["y"], *case["dweights"], case["dx"], *case["dinitial"]]
    scale = max(np.abs(number).max() for number in expected)
    for value, number in zip(nest.flatten(found), expected, strict=True):
        np.testing.assert_allclose(value.numpy() / scale, np.asarray(number) / scale, rtol=0, atol=1e-10)


def test_a_stateful_layer_goes_on_where_the_batch_before_it_ended():
    case = GOLDEN["stateful"]
    layer = L.LSTM(2, stateful=True, dtype="float64")
    layer.build((2, 3, 3))
    layer.set_weights([np.asarray(one) for one in case["weights"]])
    first, second = np.asarray(case["x"])
    found = [layer(first), layer(second)]
    layer.reset_states()
    np.testing.assert_allclose([*found, layer(second)], np.asarray(case["y"]), rtol=0, atol=1e-10)
    assert len(layer.weights) == 3


def test_a_model_that_keras_saved_predicts_what_it_did():
    model = tf.keras.models.load_model(FILES / "recurrent.keras")
    x, y = np.asarray(GOLDEN["file"]["x"]), np.asarray(GOLDEN["file"]["y"])
    np.testing.assert_allclose(model.predict(x, verbose=0), y, rtol=0, atol=1e-6)
    again = tf.keras.models.clone_model(model)
    again.load_weights(FILES / "recurrent.weights.h5")
    np.testing.assert_allclose(again.predict(x, verbose=0), y, rtol=0, atol=1e-6)
