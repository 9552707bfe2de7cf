"""`tf.strings`: the expected values are TensorFlow 2.21's, whose bytes are text here."""

import numpy as np
import pytest

import minikeras as tf

S = tf.strings
CASES = {
    "lower": (lambda: S.lower("ÀB"), "Àb"),
    "lower of all letters": (lambda: S.lower("ÀB", encoding="utf-8"), "àb"),
    "upper": (lambda: S.upper(["ab", "é"]), ["AB", "é"]),
    "strip": (lambda: tf.strings.strip([" \t\u00a0a b\n "]), ["\u00a0a b"]),
    "length": (lambda: S.length(["héé", "a", ""]), [5, 1, 0]),
    "length in characters": (lambda: S.length(["héé", "a"], unit="UTF8_CHAR"), [3, 1]),
    "join": (lambda: S.join(["a", ["b", "c"], "d"], separator="-"), ["a-b-d", "a-c-d"]),
    "join of one": (lambda: S.join(["a"]), "a"),
    "join of none": (lambda: S.join([]), ""),
    "split": (lambda: S.split("a b  c"), ["a", "b", "c"]),
    "split at commas": (lambda: S.split("a,b,,c", sep=","), ["a", "b", "", "c"]),
    "split at most": (lambda: S.split("a b c d", maxsplit=2), ["a", "b", "c d"]),
    "split at spaces": (lambda: S.split(" a b ", sep=" "), ["", "a", "b", ""]),
    "split of nothing": (lambda: S.split("", sep=","), [""]),
    "split of nothing at white space": (lambda: S.split(""), []),
    "regex_replace": (lambda: S.regex_replace("Text with tags.<br />more", "<[^>]+>", " "), "Text with tags. more"),
    "regex_replace once": (lambda: S.regex_replace("aab", "a", "x", replace_global=False), "xab"),
    "regex_replace by groups": (lambda: S.regex_replace("ab", "(a)(b)", r"\2\1\0"), "baab"),
    "regex_replace of ASCII": (lambda: S.regex_replace("é1²", r"\w", "x"), "éx²"),
    "regex_replace by a sign": (lambda: S.regex_replace("a  b", r"\s+", "$"), "a$b"),
    "regex_full_match": (lambda: S.regex_full_match(["ab", "abc", "a\n"], "a."), [True, False, False]),
    "to_number": (lambda: S.to_number(["3.5", " 3 ", "1e3", "-inf"]), [3.5, 3.0, 1000.0, -np.inf]),
    "to_number of integers": (lambda: S.to_number(["1", "-2"], tf.int32), [1, -2]),
    "format": (lambda: S.format("{} x {}", (tf.range(1, 9), 2.5)), "[1 2 3 ... 6 7 8] x 2.5"),
    "format of text": (lambda: S.format("{}", tf.constant("a")), '"a"'),
    "format of rows": (lambda: S.format("{}", tf.constant([[1, 2], [3, 4]])), "[[1 2]\n [3 4]]"),
    "format of bools": (lambda: S.format("{}", tf.constant([True])), "[1]"),
    "format with other marks": (lambda: S.format("t: %t!", tf.range(10), placeholder="%t", summarize=2), "t: [0 1 ... 8 9]!"),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_tensorflows(name):
    call, expected = CASES[name]
    assert np.asarray(call().numpy()).tolist() == expected


def test_results_have_tensorflows_dtypes():
    assert [S.lower("a").dtype, S.length("a").dtype, S.regex_full_match("a", "a").dtype] == [tf.string, tf.int32, tf.bool]
    assert [S.to_number("1").dtype, S.to_number("1", tf.int64).dtype, S.split("a").dtype] == [tf.float32, tf.int64, tf.string]
    assert S.lower(np.zeros((0, 2), object).astype(str)).shape == (0, 2)


def test_arrays_lists_and_bytes_are_text():
    for given in (["Ab"], np.array(["Ab"]), np.array(["Ab"], object), tf.constant(["Ab"]), [b"Ab"]):
        assert S.lower(given).numpy().tolist() == ["ab"]


def test_several_texts_are_split_into_lists():
    assert [row.numpy().tolist() for row in S.split(["a b", "c"])] == [["a", "b"], ["c"]]
    assert [[part.numpy().tolist() for part in row] for row in S.split([["a b"], [""]])] == [[["a", "b"]], [[]]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: S.lower(1), "lower: needs text, found int32"),
        (lambda: S.lower("a", encoding="latin"), "encoding must be"),
        (lambda: S.length("a", unit="X"), "unit must be"),
        (lambda: S.join([["a"], ["b", "c"]]), "needs one shape"),
        (lambda: S.join([1, 2]), "join: needs text"),
        (lambda: S.to_number("x"), "'x' is no number of dtype float32"),
        (lambda: S.to_number("1.5", tf.int32), "no number of dtype int32"),
        (lambda: S.to_number("3000000000", tf.int32), "no number of dtype int32"),
        (lambda: S.to_number("1_0", tf.int32), "no number"),
        (lambda: S.to_number("3", tf.int8), "found int8"),
        (lambda: S.format("a {}", [1, 2]), "1 places for 2 tensors"),
    ],
)
def test_mistakes_are_answered(call, message):
    with pytest.raises((ValueError, TypeError, tf.errors.InvalidArgumentError), match=message):
        call()


def test_what_is_not_there_is_explained():
    with pytest.raises(AttributeError, match=r"tf\.data\.Dataset\.map"):
        _ = S.unicode_decode


def test_a_recording_repeats_functions_whose_results_are_no_text():
    number = tf.function(lambda text: S.to_number(text) + 1.0)
    assert [float(number(tf.constant(text))) for text in ("1", "2.5")] == [2.0, 3.5] and number.replays == 1
    size = tf.function(lambda text: S.length(S.strip(text)))  # the text between them is not recorded
    assert [int(size(tf.constant(text))) for text in (" a", "bc ")] == [1, 2] and size.eager_calls == 2


def test_a_dataset_of_lines_becomes_numbers():
    rows = tf.data.Dataset.from_tensor_slices(["1,2", "3,4"]).map(lambda line: S.to_number(S.split(line, ",")))
    assert [row.numpy().tolist() for row in rows] == [[1.0, 2.0], [3.0, 4.0]]


def test_texts_are_vectorized_by_functions_of_strings():
    """As the tutorials on text standardize and split."""

    def standardize(lines):
        return S.regex_replace(S.regex_replace(S.lower(lines), "<br />", " "), "[!.,]", "")

    layer = tf.keras.layers.TextVectorization(standardize=standardize, split=S.split, output_sequence_length=4)
    layer.adapt(["The cat.<br />The dog!", "a CAT"])
    assert layer.get_vocabulary() == ["", "[UNK]", "the", "cat", "dog", "a"]
    assert layer(["the<br />dog, A"]).numpy().tolist() == [[2, 4, 5, 0]]
