"""Layers for tables against Keras's numbers (tests/golden/make_tables.py)."""

import numpy as np
from golden_numbers import golden
from in_one_test import in_one_test

import minikeras as tf
from minikeras.keras.layers.hashing import fingerprints

L = tf.keras.layers
CASES = golden("tables")["cases"]
LATER_VOCABULARY = [case for case in CASES if case["adapt"] is not None and "vocabulary" in case]


def made(case):
    layer = getattr(L, case["layer"])(**case["options"])
    if case["adapt"] is not None:
        batches = case["layer"] == "Discretization" and len({np.size(row) for row in case["adapt"]}) > 1
        layer.adapt([np.array(batch) for batch in case["adapt"]] if batches else np.array(case["adapt"]))
    return layer


def input_of(case):
    return [np.array(x) for x in case["x"]] if case["layer"] == "HashedCrossing" else np.array(case["x"])


@in_one_test(case=CASES)
def test_a_layer_gives_what_keras_s_gives(case):
    layer = made(case)
    y = layer(input_of(case))
    assert y.shape == tuple(case["shape"])
    assert y.dtype == layer.output_dtype
    if y.dtype == tf.string:
        assert y.numpy().ravel().tolist() == case["y"]
    else:
        np.testing.assert_allclose(y.numpy().ravel(), case["y"], rtol=1e-6, atol=1e-6)
    if "vocabulary" in case:
        assert layer.get_vocabulary() == case["vocabulary"]
        assert layer.vocabulary_size() == len(case["vocabulary"])
    if "boundaries" in case:
        np.testing.assert_allclose(layer.bin_boundaries, case["boundaries"], rtol=1e-6)


@in_one_test(case=CASES)
def test_the_shape_is_foretold_and_a_configuration_makes_the_layer_again(case, tmp_path):
    layer = made(case)
    x = input_of(case)
    shape = [one.shape for one in x] if isinstance(x, list) else x.shape
    foretold = layer.compute_output_shape(shape)
    assert len(foretold) == len(case["shape"])
    assert all(size in (None, found) for size, found in zip(foretold, case["shape"], strict=True))
    assert None not in foretold or case["layer"] == "TextVectorization"
    twin = type(layer).from_config(layer.get_config())
    assert twin.get_config() == layer.get_config()
    if hasattr(layer, "save_assets") and case in LATER_VOCABULARY:
        layer.save_assets(tmp_path)
        store = {}
        layer.save_own_variables(store)
        twin.load_own_variables(store)
        twin.load_assets(tmp_path)
    np.testing.assert_array_equal(twin(x).numpy(), layer(x).numpy())


def test_hashes_are_those_of_tensorflow():
    known = golden("tables")["hashes"]
    texts = [bytes((31 * i * i + 7 * length) % 256 for i in range(length)) for length in known["lengths"]]
    assert fingerprints(texts).tolist() == known["farmhash"]
    assert (fingerprints(texts, (133, 137)) % 2**62).tolist() == known["siphash_133_137_modulo_2_62"]
    assert fingerprints([]).tolist() == []
