"""Columns of tables: what they may be, where the layers work, what is refused."""

import json
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_one_test import in_one_test

import minikeras as tf
from minikeras.errors import InvalidArgumentError, LoadError

L = tf.keras.layers
TOWNS = ["Ulm", "Bonn", "Ulm", "Köln"]
FORMS = {
    "a list": TOWNS,
    "an array": np.array(TOWNS),
    "an array of objects": np.array(TOWNS, object),
    "bytes": np.array([town.encode() for town in TOWNS], object),
    "a tensor": tf.constant(TOWNS),
}


def lookup(**options):
    return L.StringLookup(vocabulary=["Bonn", "Köln", "Ulm"], **options)


@pytest.mark.parametrize("form", FORMS)
def test_a_column_may_be_anything_that_holds_text(form):
    assert lookup()(FORMS[form]).numpy().tolist() == [3, 1, 3, 2]
    adapted = L.StringLookup()
    adapted.adapt(FORMS[form])
    assert adapted.get_vocabulary() == ["[UNK]", "Ulm", "Köln", "Bonn"]


@pytest.mark.parametrize("dtype", [object, "category", "string"])
def test_columns_of_data_frames_are_columns(dtype):
    pandas = pytest.importorskip("pandas")
    column = pandas.Series(TOWNS, dtype=dtype)
    assert lookup()(column).numpy().tolist() == [3, 1, 3, 2]
    assert L.IntegerLookup(vocabulary=[7])(pandas.Series([7, 8], dtype=object)).numpy().tolist() == [1, 0]
    missing = pandas.Series([*TOWNS, None], dtype=object)
    with pytest.raises(ValueError, match=r"that holds NoneType, str is no tensor.*column.fillna\(''\)"):
        lookup()(missing)
    assert lookup()(missing.fillna("")).numpy().tolist() == [3, 1, 3, 2, 0]


def test_one_text_is_a_column_without_axes():
    assert lookup()("Köln").numpy() == 2
    assert lookup(output_mode="one_hot")("Köln").shape == (1, 4)


LAYERS = {
    "StringLookup": lambda: lookup(output_mode="one_hot"),
    "Hashing": lambda: L.Hashing(5, output_mode="one_hot"),
    "HashedCrossing": lambda: L.HashedCrossing(6, "one_hot"),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_gives_the_same_in_a_dataset(name):
    layer = LAYERS[name]()
    columns = (TOWNS, [1, 2, 3, 4])
    call = (lambda a, b: layer([a, b])) if name == "HashedCrossing" else lambda a, b: layer(a)
    expected = call(*columns).numpy()
    data = tf.data.Dataset.from_tensor_slices(columns).batch(3).map(call)
    np.testing.assert_array_equal(np.concatenate(list(data.as_numpy_iterator())), expected)


NUMBERS = {
    "CategoryEncoding": (lambda: L.CategoryEncoding(9, "count"), [[1, 2], [8, 2]]),
    "weights": (lambda: L.CategoryEncoding(9, "count"), [[1, 2], [8, 2]]),
    "Discretization": (lambda: L.Discretization([0.0, 2.0], output_mode="multi_hot"), [[1.0, 2.0], [-8.0, 2.0]]),
    "IntegerLookup": (lambda: L.IntegerLookup(vocabulary=[1, 2], mask_token=8, output_mode="count"), [[1, 2], [8, 2]]),
    "inverse": (lambda: L.IntegerLookup(vocabulary=[10, 20], invert=True), [[1, 2], [8, 2]]),
    "Hashing": (lambda: L.Hashing(5, output_mode="one_hot"), [[1, 2], [8, 2]]),
    "StringLookup": (lambda: lookup(output_mode="multi_hot"), [["Ulm", "Bonn"], ["", "Ulm"]]),
    "TextVectorization": (lambda: L.TextVectorization(vocabulary=["a"], output_mode="count"), ["a b", "a"]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_layer_runs_on_every_device(name, device):
    make, values = NUMBERS[name]
    options = {"count_weights": tf.ones([2, 2])} if name == "weights" else {}
    y = make()(tf.constant(values), **options)
    assert type(y.array) is type(tf.constant([1.0]).array)
    if name != "StringLookup" and name != "TextVectorization":
        crossed = L.HashedCrossing(5, "one_hot")([tf.constant([1, 2]), tf.constant(["a", "b"])])
        assert type(crossed.array) is type(y.array)


# In models ---------------------------------------------------------------------------------------------------------------


def model(**options):
    town, rooms, size = (tf.keras.Input((1,), dtype=dtype, name=dtype) for dtype in ("string", "int32", "float32"))
    features = [
        lookup(output_mode="one_hot")(town),
        L.HashedCrossing(6, "one_hot")([town, rooms]),
        L.Discretization([0.5], output_mode="one_hot")(size),
        L.Flatten()(L.Embedding(4, 2)(lookup(name="places")(town))),
    ]
    made = tf.keras.Model({"string": town, "int32": rooms, "float32": size}, L.Dense(1)(L.Concatenate()(features)))
    made.compile("adam", "mse", **options)
    return made


def table(rows=24):
    rng = np.random.default_rng(0)
    columns = {"string": rng.choice(TOWNS, rows), "int32": rng.integers(0, 9, rows), "float32": rng.random(rows, np.float32)}
    return columns, (columns["string"] == "Ulm").astype("float32")


@pytest.mark.parametrize("options", [{"jit_compile": "auto"}, {"jit_compile": True}], ids=str)
def test_compiled_steps_take_text_and_give_the_numbers_of_eager_ones(options):
    x, y = table()
    losses = []
    for one in ({"run_eagerly": True}, options):
        trained = model(**one)
        trained.set_weights([np.full(weight.shape, 0.1, "float32") for weight in trained.get_weights()])
        losses.append(trained.fit(x, y, batch_size=4, epochs=3, shuffle=False, verbose=0).history["loss"])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)
    step = trained._trainer.steps["train_step"]
    assert step.recordings == 1 and step.replays >= 16, step


def test_a_recorded_step_sees_another_vocabulary():
    x, y = table()
    trained = model(jit_compile=True)
    trained.fit(x, y, batch_size=4, verbose=0)
    before = trained.predict(x, verbose=0)
    trained.get_layer("places").set_vocabulary(["Ulm", "Bonn", "Köln"])
    after = trained.predict(x, verbose=0)
    assert not np.allclose(before, after)
    np.testing.assert_allclose(after, trained({name: tf.constant(column) for name, column in x.items()}).numpy(), rtol=1e-5)
    trained.fit(x, y, batch_size=4, verbose=0)
    assert trained._trainer.steps["train_step"].recordings == 2


def test_functions_of_text_are_recorded_but_not_those_that_give_elements_of_it():
    layer = lookup()
    places = tf.function(lambda x: layer(tf.reshape(x, (2, -1))))
    first = tf.function(lambda x: layer(x[0]))
    for column in (TOWNS, TOWNS[::-1], ["", "Bonn", "Bonn", "Ulm"]):
        expected = layer(column).numpy()
        np.testing.assert_array_equal(places(tf.constant(column)).numpy(), expected.reshape(2, 2))
        assert first(tf.constant(column)).numpy() == expected[0]
    assert (places.recordings, places.replays) == (1, 2)
    assert first.replays == 0


def test_results_of_text_are_computed_eagerly():
    places = tf.keras.Sequential([tf.keras.Input((2,), dtype="int64"), lookup(invert=True)])
    assert places.predict(np.array([[1, 2], [3, 0]]), verbose=0).tolist() == [["Bonn", "Köln"], ["Ulm", "[UNK]"]]


def test_models_that_take_text_are_trained_on_columns_and_frames():
    pandas = pytest.importorskip("pandas")
    x, y = table()
    trained = model()
    history = trained.fit(dict(pandas.DataFrame(x)), y, validation_split=0.25, epochs=1, verbose=0).history
    assert np.isfinite(history["val_loss"]).all()
    frame = pandas.DataFrame(x)
    np.testing.assert_array_equal(trained.predict(frame, verbose=0), trained.predict(x, verbose=0))
    assert np.isfinite(trained.fit(frame, y, validation_data=(frame, y), verbose=0).history["val_loss"]).all()
    assert trained.predict_on_batch(x).shape == (24, 1) == trained.predict(iter([x]), verbose=0).shape
    assert np.isfinite([trained.train_on_batch(x, y), trained.test_on_batch(x, y), trained.evaluate(x, y, verbose=0)]).all()
    words = tf.keras.Sequential([tf.keras.Input((2,), dtype="string"), lookup(output_mode="multi_hot"), L.Dense(1)])
    assert words.predict([["Ulm", "Bonn"], ["", "Ulm"]], verbose=0).shape == (2, 1)
    with pytest.raises(ValueError, match="that holds NoneType, str"):
        trained.predict(x | {"string": np.array(["Ulm"] * 23 + [None], object)}, verbose=0)


@pytest.mark.parametrize("kind", [L.StringLookup, L.TextVectorization])
def test_a_layer_is_saved_with_the_vocabulary_that_took_the_place_of_the_first(kind, tmp_path):
    layer = kind(vocabulary=["a", "b"])
    layer.set_vocabulary(["x", "y", "z"])
    assert kind.from_config(layer.get_config()).get_vocabulary() == layer.get_vocabulary()
    (tmp_path / "v.txt").write_text("q\nr", encoding="utf-8")
    layer.set_vocabulary(tmp_path / "v.txt")  # then the file of a model holds it beside the configuration
    layer.save_assets(tmp_path)
    twin = kind.from_config(layer.get_config())
    twin.load_assets(tmp_path)
    assert twin.get_vocabulary() == layer.get_vocabulary()


def test_a_model_is_saved_with_its_vocabularies(tmp_path):
    x, y = table()
    learned = L.StringLookup(output_mode="tf_idf", name="learned")
    learned.adapt([["Ulm", "Bonn"], ["Ulm", ""]])
    trained = tf.keras.Sequential([tf.keras.Input((2,), dtype="string"), learned, L.Dense(1)])
    trained.save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        assert archive.read("assets/layers/string_lookup/vocabulary.txt").decode() == "[UNK]\nUlm\nBonn\n"
    loaded = tf.keras.models.load_model(tmp_path / "m.keras")
    assert loaded.get_layer("learned").get_vocabulary() == ["[UNK]", "Ulm", "Bonn", ""]
    words = [["Ulm", ""], ["Bonn", "new"]]
    np.testing.assert_array_equal(loaded.predict(words, verbose=0), trained.predict(words, verbose=0))


@pytest.mark.parametrize("change", [lambda text: text + b"\nBerlin", lambda text: b"\xff", lambda text: b"[UNK]\nUlm\nUlm"])
def test_a_vocabulary_that_does_not_fit_is_an_error_of_the_file(tmp_path, change):
    learned = L.StringLookup(output_mode="one_hot")
    learned.adapt(["Ulm", "Bonn"])
    tf.keras.Sequential([tf.keras.Input((1,), dtype="string"), learned]).save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    place = "assets/layers/string_lookup/vocabulary.txt"
    members[place] = change(members[place])
    with zipfile.ZipFile(tmp_path / "m.keras", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(LoadError, match="assets/layers/string_lookup/.*load_assets raised"):
        tf.keras.models.load_model(tmp_path / "m.keras")


HUGE = 10**13
HOSTILE = {
    "CategoryEncoding": {"num_tokens": HUGE},
    "Hashing": {"num_bins": HUGE, "output_mode": "count"},
    "IntegerLookup": {"vocabulary": [1], "max_tokens": HUGE, "pad_to_max_tokens": True, "output_mode": "one_hot"},
    "Discretization": {"num_bins": HUGE, "output_mode": "one_hot"},
}


@pytest.mark.parametrize("options", [{"num_oov_indices": HUGE}, {"output_mode": "tf_idf", "idf_weights": [1.0]}], ids=str)
def test_tokens_that_only_a_number_in_a_file_asks_for_are_refused(options):
    from minikeras.files import limits

    config = {"vocabulary": ["a"], "max_tokens": HUGE, "pad_to_max_tokens": True, **options}
    with limits.loading(limits.Budget.of_file(0, 1000, None)), pytest.raises(LoadError, match="asks for tokens of"):
        L.StringLookup.from_config(config)


@pytest.mark.parametrize("name", HOSTILE)
def test_sizes_of_a_file_are_not_made_while_it_is_loaded(tmp_path, name):
    made = tf.keras.Sequential([tf.keras.Input((3,), dtype="int32"), getattr(L, name)(**HOSTILE[name])])
    made.save(tmp_path / "m.keras")
    assert tf.keras.models.load_model(tmp_path / "m.keras").output_shape[-1] == HUGE


# Vocabularies ------------------------------------------------------------------------------------------------------------


def test_a_vocabulary_comes_from_a_file_with_a_token_in_each_line(tmp_path):
    (tmp_path / "v.txt").write_text("Ulm\nKöln\n", encoding="utf-8")
    layer = L.StringLookup(vocabulary=str(tmp_path / "v.txt"))
    assert layer.get_vocabulary() == ["[UNK]", "Ulm", "Köln"]
    assert layer.get_config()["vocabulary"] is None
    (tmp_path / "n.txt").write_text("12\n-3")
    assert L.IntegerLookup(vocabulary=tmp_path / "n.txt").get_vocabulary() == [-1, 12, -3]
    with pytest.raises(ValueError, match="a configuration may not name a vocabulary file"):
        L.StringLookup.from_config({"vocabulary": str(tmp_path / "v.txt")})


def test_tokens_with_line_breaks_are_refused_where_a_file_would_break_them(tmp_path):
    layer = L.StringLookup()
    layer.adapt(["a\u2028b", "c"])
    with pytest.raises(ValueError, match="has a line break"):
        layer.save_assets(tmp_path)


def test_adapt_takes_batches_from_datasets_and_generators():
    def words():
        while True:
            yield ["cat", "dog"]
            yield np.array([["cat"], ["bird"]])

    layer = L.StringLookup()
    layer.adapt(words(), steps=4)
    assert layer.get_vocabulary() == ["[UNK]", "cat", "dog", "bird"]
    labelled = tf.data.Dataset.from_tensor_slices((["a", "b", "b"], [0, 1, 1])).batch(2)
    layer.adapt(labelled)
    assert layer.get_vocabulary() == ["[UNK]", "b", "a"]
    bins = L.Discretization(num_bins=2)
    bins.adapt(tf.data.Dataset.range(10).batch(5), steps=1)
    assert bins.bin_boundaries == [pytest.approx(1.5)]


def test_a_row_keeps_its_length_once_the_layer_was_called():
    layer = L.StringLookup(output_mode="count")
    layer.adapt(["a", "b"])
    layer.adapt(["a", "b", "c"])
    assert layer(["a"]).shape == (4,)
    with pytest.raises(RuntimeError, match="the vocabulary size cannot be changed after the layer is called"):
        layer.set_vocabulary(["a"])
    assert layer.get_vocabulary() == ["[UNK]", "c", "b", "a"]


@given(st.lists(st.text(), min_size=1, max_size=8, unique=True))
def test_looking_back_undoes_looking_up(tokens):
    tokens = [token for token in tokens if token != "[UNK]"] or ["a"]
    there, back = L.StringLookup(vocabulary=tokens), L.StringLookup(vocabulary=tokens, invert=True)
    assert back(there(tokens)).numpy().tolist() == tokens


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8), st.integers(1, 100))
def test_an_integer_has_the_bin_of_its_digits(values, bins):
    layer = L.Hashing(bins)
    found = layer(np.array(values)).numpy()
    np.testing.assert_array_equal(found, layer(list(map(str, values))).numpy())
    assert (found >= 0).all() and (found < bins).all()


# Lines of text ----------------------------------------------------------------------------------------------------------


@tf.keras.saving.register_keras_serializable("tables")
def without_digits(lines):
    return np.char.replace(lines, "7", "")


@tf.keras.saving.register_keras_serializable("tables")
def by_commas(lines):
    return [line.split(",") for line in lines.tolist()]


def test_functions_standardize_and_split_lines(tmp_path):
    layer = L.TextVectorization(standardize=without_digits, split=by_commas, vocabulary=["a b", "c"])
    assert layer(["a b,c7", "x"]).numpy().tolist() == [[2, 3], [1, 0]]
    made = tf.keras.Sequential([tf.keras.Input((1,), dtype="string"), layer])
    made.save(tmp_path / "m.keras")
    assert tf.keras.models.load_model(tmp_path / "m.keras")(tf.constant([["c,7c"]])).numpy().tolist() == [[3, 3]]


def test_lines_are_learned_from_datasets_and_saved(tmp_path):
    layer = L.TextVectorization(output_mode="tf_idf", ngrams=2)
    lines = tf.data.Dataset.from_tensor_slices((["The cat", "the dog"], [0, 1]))
    layer.adapt(lines.batch(1))
    assert layer.get_vocabulary(include_special_tokens=False)[0] == "the"
    made = tf.keras.Sequential([tf.keras.Input((1,), dtype="string"), layer, L.Dense(1)])
    made.save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        names = [name.removeprefix("assets/layers/text_vectorization/") for name in archive.namelist()]
    assert {"vocabulary.txt", "_lookup_layer/vocabulary.txt"} <= set(names)
    again = tf.keras.models.load_model(tmp_path / "m.keras")
    words = np.array([["the cat"], ["a dog"]])
    np.testing.assert_array_equal(again.predict(words, verbose=0), made.predict(words, verbose=0))


def test_models_of_lines_are_trained(caplog):
    layer = L.TextVectorization(output_mode="multi_hot", vocabulary=["good", "bad"])
    model = tf.keras.Sequential([tf.keras.Input((1,), dtype="string"), layer, L.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(0.1), "mse")
    losses = model.fit(["good one", "bad one"] * 4, [1.0, -1.0] * 4, batch_size=4, epochs=30, verbose=0).history["loss"]
    assert losses[-1] < 0.1 * losses[0]
    assert "runs eagerly: a result of text" in caplog.text


# What is refused ---------------------------------------------------------------------------------------------------------

REFUSED = {
    "half a bin": (lambda: L.Hashing(2.5), TypeError, "num_bins must be a whole number"),
    "half a token": (lambda: L.CategoryEncoding(2.5), TypeError, "num_tokens must be a whole number"),
    "half a place": (lambda: L.StringLookup(num_oov_indices=1.5), TypeError, "num_oov_indices must be a whole number"),
    "half a size": (lambda: L.TextVectorization(2.5), TypeError, "max_tokens must be a whole number"),
    "half a length": (lambda: L.TextVectorization(output_sequence_length=2.5), TypeError, "must be a whole number"),
    "a mask that is no text": (lambda: lookup(mask_token=3), TypeError, "mask_token must be a text or None, found 3"),
    "text for unknown ones": (lambda: L.IntegerLookup(oov_token="x"), TypeError, "oov_token must be a whole number or None"),
    "tokens between integers": (lambda: L.IntegerLookup(vocabulary=[1.5]), ValueError, "integers of 64 bits is needed"),
    "a token of 65 bits": (lambda: L.IntegerLookup(vocabulary=[2**63]), ValueError, "integers of 64 bits is needed"),
    "text to encode": (lambda: L.CategoryEncoding(5)(["3"]), TypeError, "takes integers, found string"),
    "a boundary that is NaN": (lambda: L.Discretization([np.nan]), ValueError, "must increase"),
    "n-grams of no length": (lambda: L.TextVectorization(ngrams=()), ValueError, "ngrams must be a positive integer"),
    "a sparse result": (lambda: lookup(output_mode="count", sparse=True), ValueError, "sparse=True is not available"),
    "sparse integers": (lambda: L.Hashing(3, sparse=True), ValueError, "`sparse` may only be true if `output_mode`"),
    "a mode": (lambda: L.CategoryEncoding(3, "hot"), ValueError, "Invalid value for argument `output_mode`"),
    "no number of tokens": (lambda: L.CategoryEncoding(), ValueError, "num_tokens must be set to use this layer"),
    "no tokens at all": (lambda: L.CategoryEncoding(0), ValueError, "num_tokens must be at least 1"),
    "an integer too large": (lambda: L.CategoryEncoding(3)([3]), InvalidArgumentError, "in the range 0 <= values < num_tokens"),
    "weights that do not count": (
        lambda: L.CategoryEncoding(3)([1], count_weights=[0.5]),
        ValueError,
        "`count_weights` is not used",
    ),
    "text for integers": (lambda: L.IntegerLookup(vocabulary=[1])(["a"]), TypeError, "takes integers, found string"),
    "integers for text": (lambda: lookup()([1]), TypeError, "takes text, found int32.*Use IntegerLookup"),
    "NaN": (lambda: L.IntegerLookup(vocabulary=[1])([1.0, np.nan]), ValueError, "holds NaN or infinity"),
    "an unknown token without a place": (lambda: lookup(num_oov_indices=0)(["x"]), InvalidArgumentError, "OOV values ..x.."),
    "a repeated token": (lambda: L.StringLookup(vocabulary=["a", "a"]), ValueError, "at least one repeated term.*'a'"),
    "a mask inside": (lambda: L.StringLookup(vocabulary=["a", ""], mask_token=""), ValueError, "reserved mask token"),
    "nothing": (lambda: L.StringLookup(vocabulary=[]), ValueError, "Cannot set an empty vocabulary"),
    "a table": (lambda: L.StringLookup(vocabulary=[["a"]]), ValueError, "A vocabulary has one axis"),
    "too many tokens": (lambda: L.StringLookup(2, vocabulary=["a", "b"]), ValueError, "larger than the maximum vocab size"),
    "no such file": (lambda: L.StringLookup(vocabulary="nowhere.txt"), ValueError, "nowhere.txt does not exist"),
    "one token at most": (lambda: L.StringLookup(1), ValueError, "max_tokens must be at least 2"),
    "padding to nothing": (lambda: L.StringLookup(pad_to_max_tokens=True), ValueError, "must set `max_tokens`"),
    "fewer than no places": (lambda: L.StringLookup(num_oov_indices=-1), ValueError, "num_oov_indices must be at least 0"),
    "rows of texts": (lambda: lookup(invert=True, output_mode="count"), ValueError, "must be `'int'` when `invert`"),
    "no unknown token": (lambda: lookup(invert=True, oov_token=None), ValueError, "an `oov_token` is needed"),
    "weights in another mode": (lambda: lookup(idf_weights=[1.0]), ValueError, "only be set if `output_mode` is `'tf_idf'`"),
    "no weights": (lambda: lookup(output_mode="tf_idf"), ValueError, "`idf_weights` argument must also be provided"),
    "other weights": (
        lambda: lookup(output_mode="tf_idf", idf_weights=[1.0]),
        ValueError,
        "must be the same length as vocabulary",
    ),
    "a method": (lambda: L.IntegerLookup(oov_method="md5"), ValueError, "oov_method must be"),
    "salt without hash": (lambda: L.IntegerLookup(salt=1), ValueError, "only be used when `oov_method='farmhash'`"),
    "another dtype": (lambda: L.IntegerLookup(vocabulary_dtype="int32"), ValueError, "Only `vocabulary_dtype='int64'`"),
    "no vocabulary yet": (lambda: L.StringLookup()(["a"]), RuntimeError, "you must set the vocabulary"),
    "a given vocabulary": (lambda: lookup().adapt(["a"]), ValueError, "after setting a static vocabulary"),
    "no data": (lambda: L.StringLookup().adapt([""][:0]), ValueError, "there is no data"),
    "no bins": (lambda: L.Hashing(0), ValueError, "num_bins must be at least 1"),
    "salt": (lambda: L.Hashing(2, salt=[1]), ValueError, "can only be a tuple of size 2"),
    "float places": (lambda: L.Hashing(2, dtype="float32"), ValueError, "should be an integer type"),
    "a mask of another kind": (lambda: L.Hashing(2, mask_value="")([1]), TypeError, "cannot be found among int32 values"),
    "one column": (lambda: L.HashedCrossing(3)([[1]]), ValueError, "at least two inputs"),
    "no columns": (lambda: L.HashedCrossing(3)(np.array(1)), ValueError, "should be called on a list"),
    "columns of floats": (lambda: L.HashedCrossing(3)([[1.0], [1.0]]), ValueError, "integer or string dtype"),
    "wide columns": (lambda: L.HashedCrossing(3)([np.ones((2, 2), int)] * 2), ValueError, "inputs should have shape"),
    "columns of two lengths": (lambda: L.HashedCrossing(3)([[1], [1, 2]]), ValueError, "should have equal shape"),
    "boundaries and bins": (lambda: L.Discretization([1.0], 2), ValueError, "Both `num_bins` and `bin_boundaries`"),
    "neither": (lambda: L.Discretization(), ValueError, "either `num_bins` or `bin_boundaries`"),
    "falling boundaries": (lambda: L.Discretization([1.0, 0.0]), ValueError, "must increase"),
    "a call before adapt": (lambda: L.Discretization(num_bins=3)([1.0]), ValueError, "call `adapt.dataset.` before"),
    "boundaries that are given": (lambda: L.Discretization([1.0]).adapt([2.0]), ValueError, "Cannot adapt a Discretization"),
    "intervals of text": (lambda: L.Discretization([1.0])(["a"]), TypeError, "takes numbers, found string"),
    "ragged rows": (lambda: L.TextVectorization(ragged=True), ValueError, "ragged=True is not available"),
    "a standard": (lambda: L.TextVectorization(standardize="upper"), ValueError, "standardize must be a function or one of"),
    "a split": (lambda: L.TextVectorization(split="words"), ValueError, "split must be a function or one of"),
    "no tokens together": (lambda: L.TextVectorization(ngrams=(0,)), ValueError, "ngrams must be a positive integer"),
    "one of no tokens": (lambda: L.TextVectorization(ngrams=0), ValueError, "ngrams must be a positive integer"),
    "a length of counts": (
        lambda: L.TextVectorization(output_mode="count", output_sequence_length=3),
        ValueError,
        "for output_mode 'int' only",
    ),
    "several lines in a row": (
        lambda: L.TextVectorization(vocabulary=["a"])([["a", "b"]]),
        ValueError,
        "the input rank must be 1 or the last shape dimension",
    ),
    "numbers for lines": (lambda: L.TextVectorization(vocabulary=["a"])([1]), TypeError, "takes text, found int32"),
    "an error bound": (lambda: L.Discretization(num_bins=2, epsilon=0), ValueError, "epsilon must be above 0"),
    "data with NaN": (lambda: L.Discretization(num_bins=2).adapt([np.nan]), ValueError, "holds NaN or infinity"),
}


@in_one_test(what=REFUSED)
def test_what_a_layer_cannot_use_is_refused_with_advice(what):
    call, kind, message = REFUSED[what]
    with pytest.raises(kind, match=message):
        call()


def test_configurations_are_plain_data():
    layer = L.IntegerLookup(vocabulary=np.array([3, 4]), output_mode="tf_idf", idf_weights=np.array([0.5, 1.0]))
    config = json.loads(json.dumps(layer.get_config()))
    assert (config["vocabulary"], config["idf_weights"], config["vocabulary_dtype"]) == ([3, 4], [0.5, 1.0], "int64")
    np.testing.assert_array_equal(L.IntegerLookup.from_config(config)([3, 9]).numpy(), layer([3, 9]).numpy())


@pytest.mark.parametrize(
    ("lookup", "dtype", "rows"),
    [
        (lambda: L.StringLookup(vocabulary=["a", "b"], mask_token=None, num_oov_indices=0), "string", [["b"], ["a"]]),
        (lambda: L.IntegerLookup(vocabulary=[5, 7], mask_token=None, num_oov_indices=0), "int64", [[7], [5]]),
    ],
)
def test_a_lookup_without_places_for_unknown_tokens_may_be_part_of_a_layer(lookup, dtype, rows):
    class Embedded(L.Layer):
        def __init__(self):
            super().__init__()
            self.lookup, self.table = lookup(), L.Embedding(2, 1, weights=[[1.0], [2.0]])

        def call(self, x):
            return self.table(self.lookup(x))

    x = tf.keras.Input((1,), dtype=dtype)
    model = tf.keras.Model(x, Embedded()(x))
    assert model.predict(np.array(rows), verbose=0).ravel().tolist() == [2.0, 1.0]
    with pytest.raises(InvalidArgumentError, match="all inputs should be in vocabulary"):
        model.predict(np.array(rows) * 2 if dtype == "int64" else np.array([["c"]]), verbose=0)


@pytest.mark.parametrize("kind", ["U", "S", "O"])
def test_text_of_a_dataset_is_text_however_numpy_holds_it(kind):
    words, numbers = np.array(["A", "B", "A"]).astype(kind), np.array([101, 101, 102])
    data = tf.data.Dataset.from_tensor_slices((words, numbers)).batch(3)
    crossed = next(iter(data.map(lambda *columns: tf.keras.layers.HashedCrossing(5)(columns))))
    np.testing.assert_array_equal(crossed, tf.keras.layers.HashedCrossing(5)((["A", "B", "A"], numbers)))
    lookup = tf.keras.layers.StringLookup(vocabulary=["A", "B"])
    np.testing.assert_array_equal(next(iter(data.map(lambda column, _: lookup(column)))), [1, 2, 1])
