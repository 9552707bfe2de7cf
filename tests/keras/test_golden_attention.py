"""Attention, wrappers and EinsumDense: forward, and gradients with respect to inputs and weights, as Keras computed them."""

import numpy as np
from golden_numbers import golden
from in_one_test import in_one_test

import minikeras as tf
from minikeras import nest

L = tf.keras.layers
LISTED = ("Attention", "AdditiveAttention")
"""Layers whose inputs, and masks, are one list."""


def made(case, dtype):
    """The layer of a case; a layer within it is given by class and options."""
    config = {
        name: getattr(L, value[0])(**value[1], dtype=dtype, name="inner") if name == "layer" else value
        for name, value in case["config"].items()
    }
    return getattr(L, case["layer"])(**config, dtype=dtype, name="layer")


def arguments(case, dtype):
    """The inputs, what the call is given beside, and whether it is one in training."""
    leaves = [one if case["layer"] in LISTED else [one] for one in case["inputs"]]
    tensors = [[tf.constant(np.asarray(leaf), dtype) for leaf in one] for one in leaves]
    call = {name: value for name, value in case["call"].items() if name != "training"}
    for name in {"query_mask", "value_mask", "key_mask", "attention_mask"} & set(call):
        call[name] = np.asarray(call[name], bool)
    if "mask" in call:
        call["mask"] = [np.asarray(mask, bool) for mask in call["mask"]]
    return [one if case["layer"] in LISTED else one[0] for one in tensors], call, case["call"].get("training", False)


def limit(case, dtype):
    """How far numbers may be off, in parts of the largest; Keras's fused attention, tanh and normalization are float32's."""
    attends = case["layer"] in ("MultiHeadAttention", "GroupQueryAttention")
    fused = attends and "return_attention_scores" not in case["call"] and np.ndim(case["inputs"][0]) == 3
    single = fused or case["id"] in ("steps normalized", "concat", "additive", "additive plain", "einsum", "reverse")
    return 1e-6 if single or dtype == "float32" else 1e-10


@in_one_test(case=golden("attention")["cases"])
def test_a_layer_computes_what_keras_s_does(case, dtype):
    layer = made(case, dtype)
    inputs, call, training = arguments(case, dtype)
    layer(*inputs, **call)
    assert [weight.path for weight in layer.weights] == case["paths"]
    layer.set_weights([np.asarray(value) for value in case["weights"]])
    with tf.GradientTape() as tape:
        tape.watch(nest.flatten(inputs))
        outputs = nest.flatten(layer(*inputs, training=training, **call))
        loss = sum(tf.reduce_sum(y * tf.constant(dy, dtype)) for y, dy in zip(outputs, case["dy"], strict=True))
    assert_close([*outputs, *layer.non_trainable_weights], [*case["y"], *case["states"]], limit(case, dtype))
    if training and case["layer"] == "SpectralNormalization":
        return  # the gradient of Keras leads through the norm on JAX, on TensorFlow it does not
    gradients = tape.gradient(loss, [*layer.trainable_weights, *nest.flatten(inputs)])
    of_inputs = case["dinputs"][0] if case["layer"] in LISTED else case["dinputs"]
    assert_close(gradients, [*case["dweights"], *of_inputs], 2 * limit(case, dtype))


def assert_close(found, expected, limit):
    """Each array equal to another within a part of the largest number of all."""
    scale = max(np.abs(number).max() for number in expected)
    for value, number in zip(found, expected, strict=True):
        value = np.zeros(np.shape(number)) if value is None else tf.convert_to_tensor(value).numpy()
        np.testing.assert_allclose(value / scale, np.asarray(number) / scale, rtol=0, atol=limit)
