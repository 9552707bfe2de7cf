"""FeatureSpace: rows of numbers from the columns of a table, as Keras makes them (tests/golden/make_tables.py)."""

import pathlib

import numpy as np
import pytest
from golden_numbers import golden

import minikeras as tf

L, F = tf.keras.layers, tf.keras.utils.FeatureSpace
GOLDEN = golden("tables")["feature_space"]
TABLE = GOLDEN["table"]
FILE = pathlib.Path(__file__).parent.parent / "golden" / "files" / "tables.keras"


def space(**options):
    features = {name: getattr(F, kind)(**given) for name, (kind, given) in GOLDEN["features"].items()}
    return F(features, crosses=[F.cross(names, size) for names, size in GOLDEN["crosses"]], **options)


def adapted(**options):
    made = space(**options)
    made.adapt(TABLE)
    return made


def data(batch=None):
    rows = tf.data.Dataset.from_tensor_slices(TABLE)
    return rows if batch is None else rows.batch(batch)


ADAPT_TO = {
    "columns": lambda: TABLE,
    "rows": data,
    "batches": lambda: data(4),
    "pairs": lambda: tf.data.Dataset.from_tensor_slices((TABLE, np.arange(6))).batch(4),
    "a data frame": lambda: pytest.importorskip("pandas").DataFrame(TABLE),
}


@pytest.mark.parametrize("form", ADAPT_TO)
def test_rows_are_keras_s_whatever_it_was_adapted_to(form):
    made = space()
    made.adapt(ADAPT_TO[form]())
    made.adapt(ADAPT_TO[form]())
    np.testing.assert_allclose(made(TABLE).numpy(), GOLDEN["concat"], rtol=1e-6, atol=1e-6)


def test_one_row_gives_one_row():
    made = adapted()
    row = {name: values[1] for name, values in TABLE.items()}
    np.testing.assert_allclose(made(row).numpy(), GOLDEN["row"], rtol=1e-6, atol=1e-6)
    unbatched = np.stack([x.numpy() for x in data().map(made)])
    np.testing.assert_allclose(unbatched, GOLDEN["concat"], rtol=1e-6, atol=1e-6)
    batched = np.concatenate([x.numpy() for x in data(4).map(made)])
    np.testing.assert_array_equal(batched, unbatched)


def test_a_dict_holds_each_feature_for_itself():
    made = adapted(output_mode="dict")
    found = made(TABLE)
    assert list(found) == list(GOLDEN["dict"])
    for name, expected in GOLDEN["dict"].items():
        np.testing.assert_allclose(found[name].numpy(), expected, rtol=1e-6, atol=1e-6)
    single = made({name: values[0] for name, values in TABLE.items()})
    assert {name: x.shape for name, x in single.items()} == {name: x.shape[1:] for name, x in found.items()}


def test_features_may_be_named_by_their_kind():
    made = F({"rooms": "integer_hashed", "binned": "float_discretized", "size": "float_rescaled"}, hashing_dim=7)
    made.adapt({name: TABLE[name] for name in ("rooms", "binned", "size")})
    assert made({name: TABLE[name] for name in ("rooms", "binned", "size")}).shape == (6, 7 + 32 + 1)
    assert made.preprocessors["rooms"].num_bins == 7


def test_layers_of_your_choice_are_features_too():
    features = {
        "town": F.feature("string", L.StringLookup(vocabulary=["Ulm"], output_mode="multi_hot"), "float"),
        "normal": F.feature("float32", L.Normalization(mean=4.0, variance=4.0), "float"),
        "rooms": F.feature("int32", L.IntegerLookup(vocabulary=[2, 3]), "one_hot"),
        "binned": F.float_discretized(None, bin_boundaries=[1.0, 2.0]),
    }
    made = F(features)  # nothing is left to adapt
    found = made({name: TABLE[name] for name in features})
    np.testing.assert_array_equal(found.numpy()[1], [1, 0, 0, -1, 1, 0, 0, 1, 0])


def test_lines_of_text_are_a_feature(tmp_path):
    made = F({"text": F.feature("string", L.TextVectorization(output_mode="tf_idf"), "float")})
    data = {"text": ["1st string", "2nd string", "3rd string"]}
    made.adapt(data)
    assert made(data).shape == (3, 5)
    made.save(tmp_path / "lines.keras")
    np.testing.assert_array_equal(tf.keras.models.load_model(tmp_path / "lines.keras")(data).numpy(), made(data).numpy())


def test_it_is_the_entrance_of_a_model_that_is_trained_and_saved(tmp_path):
    made = adapted()
    model = tf.keras.Model(made.get_inputs(), L.Dense(1)(made.get_encoded_features()))
    model.compile("adam", "mse")
    columns = {name: np.array(values) for name, values in TABLE.items()}
    losses = model.fit(columns, np.arange(6.0), epochs=3, verbose=0).history["loss"]
    assert losses[-1] < losses[0] and model._trainer.steps["train_step"].recordings == 1
    expected = model.predict(columns, verbose=0)
    np.testing.assert_allclose(model.layers[-1](made(TABLE)).numpy(), expected, rtol=1e-5)
    model.save(tmp_path / "m.keras")
    np.testing.assert_array_equal(tf.keras.models.load_model(tmp_path / "m.keras").predict(columns, verbose=0), expected)


def test_a_model_may_take_its_rows_from_a_dataset():
    made = adapted()
    model = tf.keras.Model(made.get_encoded_features(), L.Dense(1)(made.get_encoded_features()))
    model.compile("sgd", "mse")
    rows = tf.data.Dataset.from_tensor_slices((TABLE, np.arange(6.0))).map(lambda x, y: (made(x), y)).batch(3)
    assert np.isfinite(model.fit(rows, verbose=0).history["loss"]).all()


def test_files_of_keras_and_of_this_package_are_read(tmp_path):
    theirs = tf.keras.models.load_model(FILE)
    np.testing.assert_allclose(theirs(TABLE).numpy(), GOLDEN["concat"], rtol=1e-6, atol=1e-6)
    theirs.save(tmp_path / "again.keras")
    again = tf.keras.models.load_model(tmp_path / "again.keras")
    np.testing.assert_array_equal(again(TABLE).numpy(), theirs(TABLE).numpy())
    assert again.preprocessors["town"].get_vocabulary() == theirs.preprocessors["town"].get_vocabulary()
    assert again.get_encoded_features().shape == (None, len(GOLDEN["row"]))


def test_one_that_was_not_adapted_is_saved_as_such(tmp_path):
    space().save(tmp_path / "fresh.keras")
    with pytest.raises(ValueError, match="You need to call `.adapt"):
        tf.keras.models.load_model(tmp_path / "fresh.keras")(TABLE)


REFUSED = {
    "no features": (lambda: F({}), "cannot be None or empty"),
    "a kind": (lambda: F({"a": "floats"}), r"features\['a'\]`. Expected one of .*'float_discretized'"),
    "a mode": (lambda: F({"a": "float"}, output_mode="list"), "Invalid value for argument `output_mode`"),
    "a mode of a feature": (lambda: F.feature("int32", L.Hashing(3), "hot"), "Invalid value for argument `output_mode`"),
    "crosses without a size": (
        lambda: F({"a": "integer_hashed", "b": "integer_hashed"}, crosses=[("a", "b")], crossing_dim=None),
        "`crossing_dim` should be specified",
    ),
    "crosses of nothing": (lambda: F({"a": "integer_hashed"}, crosses=[("a", "b")]), "should be present .* unknown: .'b'"),
    "a call before adapt": (lambda: space()(TABLE), "You need to call `.adapt"),
    "features before adapt": (lambda: space().get_encoded_features(), "You need to call `.adapt"),
    "a column that is missing": (
        lambda: space().adapt({"size": TABLE["size"]}),
        "needs the columns .* to adapt to, found .'size'.",
    ),
    "a Dataset without names": (
        lambda: space().adapt(tf.data.Dataset.from_tensor_slices([1.0])),
        "a Dataset of dicts of columns, found",
    ),
    "an empty Dataset": (
        lambda: space().adapt(tf.data.Dataset.from_tensor_slices(TABLE).take(0)),
        r"needs the columns .* to adapt to, found \[\]",
    ),
    "other data to adapt to": (
        lambda: space().adapt([1, 2]),
        "called on a tf.data.Dataset, a data frame or a dict",
    ),
    "an array": (lambda: adapted()(np.ones(3)), "can only be called with a dict"),
    "other columns": (lambda: adapted()(TABLE | {"price": [1.0] * 6}), r"unknown: \['price'\]. Leave out what is no feature"),
    "missing columns": (lambda: adapted()({"size": [1.0]}), r"missing: \['binned', 'code'"),
    "integers in a row": (
        lambda: F({"a": F.integer_hashed(3, output_mode="int")}).get_inputs(),
        "'a' has not been encoded .*Consider using `output_mode='dict'`",
    ),
    "rows of floats": (
        lambda: F({"a": F.feature("float32", L.Identity(), "one_hot")}).get_inputs(),
        "preprocessor should return an integer dtype",
    ),
    "rows of any length": (
        lambda: F({"a": F.feature("int32", L.Identity(), "one_hot")}).get_inputs(),
        "the dimensionality of its output space is not known",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_used_is_refused_with_advice(what):
    call, message = REFUSED[what]
    with pytest.raises(ValueError, match=message):
        call()
