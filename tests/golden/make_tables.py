"""Writes tables.json and files/tables.keras: what Keras's layers for tables give. They need TensorFlow as well:

pip install keras==3.15.1 tensorflow-cpu==2.21.0 && KERAS_BACKEND=tensorflow python tests/golden/make_tables.py
"""

import json
import pathlib

import keras
import numpy as np
import tensorflow as tf

FOLDER = pathlib.Path(__file__).parent
L, F = keras.layers, keras.utils.FeatureSpace

WORDS = [["a", "c", "d", "d"], ["d", "zebra", "b", "zebra"], ["", "Köln", "a", "[UNK]"]]
NUMBERS = [[12, 1138, 42, 42], [42, 7, 36, 7], [0, -5, 2**40, -1]]
FLOATS = [[-1.5, 1.0, 3.4, 0.5], [0.0, 3.0, 1.3, 0.0], [0.7, 0.2, 9.0, -3.0]]
MANY = np.random.default_rng(3).normal(size=500).astype("float32").round(3).tolist()
MODES = ("int", "one_hot", "multi_hot", "count")


def lookups():
    for layer, vocabulary, mask, oov, x in (
        ("StringLookup", ["a", "b", "c", "d"], "", "[UNK]", WORDS),
        ("IntegerLookup", [12, 36, 1138, 42], 0, -1, NUMBERS),
    ):
        for mode in MODES:
            yield layer, {"vocabulary": vocabulary, "output_mode": mode}, None, x
            yield layer, {"vocabulary": vocabulary, "output_mode": mode, "mask_token": mask, "num_oov_indices": 3}, None, x
            yield layer, {"output_mode": mode, "mask_token": mask}, x, x
            yield layer, {"output_mode": mode, "max_tokens": 5}, x, x
        yield layer, {"vocabulary": [mask, oov, oov, *vocabulary], "mask_token": mask, "num_oov_indices": 2}, None, x
        yield layer, {"vocabulary": vocabulary, "output_mode": "count", "max_tokens": 9, "pad_to_max_tokens": True}, None, x
        yield layer, {"vocabulary": vocabulary, "output_mode": "tf_idf", "idf_weights": [0.25, 0.75, 0.6, 0.4]}, None, x
        yield layer, {"output_mode": "tf_idf"}, x, x
        yield layer, {"output_mode": "tf_idf", "max_tokens": 4}, [token for row in x for token in row], x
        salted = {"salt": [133, 137]} | ({} if layer == "StringLookup" else {"oov_method": "farmhash"})
        yield layer, {"vocabulary": vocabulary, "num_oov_indices": 7} | salted, None, x
        yield layer, {"vocabulary": vocabulary, "invert": True, "mask_token": mask}, None, [[0, 1, 2], [5, 9, 3]]
        yield layer, {"vocabulary": vocabulary, "output_mode": "one_hot"}, None, [row[:1] for row in x]
        yield layer, {"vocabulary": vocabulary, "output_mode": "multi_hot"}, None, x[0]
        yield layer, {"vocabulary": vocabulary, "output_mode": "count"}, None, [x, x[::-1]]
    yield "IntegerLookup", {"vocabulary": [12], "num_oov_indices": 5, "oov_method": "farmhash"}, None, NUMBERS
    yield "IntegerLookup", {"vocabulary": [12], "num_oov_indices": 5, "oov_method": "farmhash", "salt": 9}, None, NUMBERS


def others():
    for mode in MODES:
        yield "Hashing", {"num_bins": 5, "output_mode": mode}, None, WORDS
        yield "Hashing", {"num_bins": 5, "output_mode": mode, "mask_value": "a", "salt": 7}, None, WORDS
        yield "Hashing", {"num_bins": 5, "output_mode": mode, "mask_value": 42}, None, NUMBERS
        yield "Discretization", {"bin_boundaries": [0.0, 0.5, 1.0], "output_mode": mode}, None, FLOATS
        yield "Discretization", {"num_bins": 4, "output_mode": mode}, FLOATS, FLOATS
    yield "Hashing", {"num_bins": 1, "mask_value": ""}, None, WORDS
    yield "Hashing", {"num_bins": 3, "dtype": "int32"}, None, [1.0, 2.7, -3.5]
    yield "Discretization", {"num_bins": 10, "epsilon": 0.02}, MANY, [MANY[:9]]
    yield "Discretization", {"num_bins": 7}, [MANY[:100], MANY[100:300], MANY[300:310]], [MANY[:9]]
    for mode in MODES[1:]:
        for x in ([3, 2, 0, 1], [[0, 1], [0, 0], [1, 2]], [[1], [3]], 2, [[[1, 2], [2, 3]], [[0, 0], [1, 1]]]):
            yield "CategoryEncoding", {"num_tokens": 4, "output_mode": mode}, None, x
    for mode in MODES[:2]:
        words, numbers = ["A", "B", "A", "Köln", ""], [101, 101, -101, 2**40, 0]
        yield "HashedCrossing", {"num_bins": 11, "output_mode": mode}, None, [words, numbers]
        yield "HashedCrossing", {"num_bins": 11, "output_mode": mode}, None, [[[1], [2]], [["x"], ["y"]], [[3], [4]]]
    yield "HashedCrossing", {"num_bins": 7}, None, ["A", 101]


LINES = ["The cat sat.  On the mat!", "a Dog; Ä\tb, the the", "", "don't STOP"]
TEXT = (
    {},
    {"output_sequence_length": 3},
    {"output_sequence_length": 9, "max_tokens": 5},
    {"standardize": None, "split": "character"},
    {"standardize": "lower", "ngrams": 2},
    {"standardize": "strip_punctuation", "ngrams": [3, 1], "output_mode": "count"},
    {"output_mode": "multi_hot", "max_tokens": 30, "pad_to_max_tokens": True},
    {"output_mode": "tf_idf"},
    {"output_mode": "tf_idf", "ngrams": 2, "max_tokens": 7},
)


def lines():
    for options in TEXT:
        yield "TextVectorization", options, LINES, [*LINES, "the unknown DOG"]
    words = {"vocabulary": ["the", "cat"]}
    yield "TextVectorization", words, None, [[line] for line in LINES]
    yield "TextVectorization", words | {"split": None, "ngrams": 2}, None, [["the", "cat", "x"], ["cat", "", "the"]]
    yield "TextVectorization", words | {"split": None, "output_mode": "count"}, None, [["the", "The"], ["cat", ""]]
    yield "TextVectorization", words, None, "The cat and the dog"
    yield "TextVectorization", words | {"output_mode": "tf_idf", "idf_weights": [0.5, 2.0]}, None, LINES


def run(number, layer, options, adapt, x):
    several = {"ngrams": tuple(options["ngrams"])} if isinstance(options.get("ngrams"), list) else {}
    made = getattr(L, layer)(**options | several)
    if adapt is not None:
        ragged = layer == "Discretization" and isinstance(adapt[0], list) and len({*map(len, adapt)}) > 1
        made.adapt([np.array(one) for one in adapt] if ragged else np.array(adapt))
    given = [tf.constant(one) for one in x] if layer == "HashedCrossing" else np.array(x)
    y = np.asarray(made(given))
    y = [one.decode() for one in y.ravel()] if y.dtype == object else y.ravel().tolist()
    case = {
        "id": f"{number} {layer} {options.get('output_mode', '')}",
        "layer": layer,
        "options": options,
        "adapt": adapt,
        "x": x,
    }
    shape = list(np.shape(made(given)))
    found = {"vocabulary": made.get_vocabulary()} if hasattr(made, "get_vocabulary") else {}
    found |= {"boundaries": made.bin_boundaries} if layer == "Discretization" else {}
    return case | {"y": y, "shape": shape} | {key: np.array(value).tolist() for key, value in found.items()}


TABLE = {
    "size": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5],
    "scaled": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "normal": [1.0, 2.0, 3.0, 4.0, 5.0, 7.0],
    "binned": [0.0, 0.5, 1.0, 1.5, 7.0, 8.0],
    "rooms": [0, 1, 2, 3, 3, 2],
    "code": [4, 4, 5, 6, 2**30, -7],
    "town": ["Ulm", "Bonn", "Ulm", "Köln", "Kiel", "Bonn"],
    "street": ["x", "y", "z", "x", "", "y"],
}
FEATURES = {
    "size": ["float", {}],
    "scaled": ["float_rescaled", {"scale": 2.0, "offset": 1.0}],
    "normal": ["float_normalized", {}],
    "binned": ["float_discretized", {"num_bins": 3}],
    "rooms": ["integer_categorical", {"max_tokens": 4, "num_oov_indices": 2}],
    "code": ["integer_hashed", {"num_bins": 4}],
    "town": ["string_categorical", {}],
    "street": ["string_hashed", {"num_bins": 5}],
}
CROSSES = [[["town", "rooms"], 9], [["code", "street"], 6], [["binned", "town"], 5]]


def space(mode):
    features = {name: getattr(F, kind)(**options) for name, (kind, options) in FEATURES.items()}
    made = F(features, crosses=[F.cross(names, size) for names, size in CROSSES], output_mode=mode)
    made.adapt(tf.data.Dataset.from_tensor_slices(TABLE))
    return made


def text_of(length):
    """Deterministic bytes."""
    return bytes((31 * i * i + 7 * length) % 256 for i in range(length))


def hashes():
    lengths = [*range(70), 80, 127, 128, 129, 191, 192, 193, 256, 257, 500]
    texts = [text_of(length) for length in lengths]
    rows = [tf.constant(np.frombuffer(text, np.uint8)[None]) for text in texts]
    farmhash = [int.from_bytes(tf.fingerprint(row).numpy().tobytes(), "little") for row in rows]
    siphash = tf.strings.to_hash_bucket_strong(texts, 2**62, key=[133, 137]).numpy().tolist()
    return {"lengths": lengths, "farmhash": farmhash, "siphash_133_137_modulo_2_62": siphash}


def main():
    cases = [run(number, *case) for number, case in enumerate([*lookups(), *others(), *lines()])]
    concat, separate = space("concat"), space("dict")
    concat.save(FOLDER / "files" / "tables.keras")
    spaces = {
        "table": TABLE,
        "features": FEATURES,
        "crosses": CROSSES,
        "concat": concat(TABLE).numpy().tolist(),
        "dict": {name: value.numpy().tolist() for name, value in separate(TABLE).items()},
        "row": concat({name: values[1] for name, values in TABLE.items()}).numpy().tolist(),
    }
    meta = {"producer": "make_tables.py", "keras": keras.__version__, "tensorflow": tf.__version__, "numpy": np.__version__}
    content = {"meta": meta, "cases": cases, "feature_space": spaces, "hashes": hashes()}
    (FOLDER / "tables.json").write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
