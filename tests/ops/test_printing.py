"""`tf.print` writes values as TensorFlow does, once for each run."""

import io
import sys

import pytest

import minikeras as tf


def printed(*inputs, **options):
    stream = io.StringIO()
    tf.print(*inputs, output_stream=stream, **options)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("inputs", "options", "text"),
    [
        (("a", 1, 2.5), {}, "a 1 2.5\n"),
        ((tf.constant([1.0, 2.5]),), {}, "[1 2.5]\n"),
        ((tf.constant(True), tf.constant("word")), {}, "1 word\n"),
        ((tf.range(10),), {}, "[0 1 2 ... 7 8 9]\n"),
        ((tf.range(10),), {"summarize": -1}, "[0 1 2 3 4 5 6 7 8 9]\n"),
        ((tf.range(7),), {"summarize": 1, "end": ""}, "[0 ... 6]"),
        ((tf.constant([[1, 2], [3, 4]]),), {}, "[[1 2]\n [3 4]]\n"),
        (({"b": tf.Variable(1.0), "a": (tf.constant([2]), "x")},), {}, "{'b': 1, 'a': ([2], 'x')}\n"),
        ((tf.constant(1), tf.constant(2)), {"sep": ", "}, "1, 2\n"),
    ],
)
def test_what_is_printed(inputs, options, text):
    assert printed(*inputs, **options) == text


def test_it_goes_to_stderr_unless_told_otherwise(capsys, tmp_path):
    tf.print("here")
    assert capsys.readouterr() == ("", "here\n")
    tf.print("there", output_stream=sys.stdout)
    assert capsys.readouterr() == ("there\n", "")
    for _ in range(2):
        tf.print("line", output_stream=f"file://{tmp_path}/log")
    assert (tmp_path / "log").read_text() == "line\nline\n"


@pytest.mark.parametrize("jit_compile", [None, True])
def test_a_compiled_function_prints_in_each_run(jit_compile):
    stream = io.StringIO()

    @tf.function(jit_compile=jit_compile)
    def double(x):
        tf.print("x =", x, output_stream=stream)
        tf.print("done", output_stream=stream)
        return 2.0 * x

    for value in (1.0, 2.0, 3.0):
        double(tf.constant(value))
    lines = stream.getvalue().splitlines()
    assert lines[-6:] == ["x = 1", "done", "x = 2", "done", "x = 3", "done"]
    assert len(lines) == 6
    assert double.replays == 2


def test_printing_is_no_part_of_a_derivative():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        printed(y)
    assert tape.gradient(y, x).numpy() == 6.0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (tf.constant(["a", "b"]), '["a" "b"]'),
        ([tf.constant("s"), 2.5], '["s", 2.5]'),
        (tf.constant([1 / 3, 0.5, 1e10, 123456789.0]), "[0.333333343 0.5 1e+10 123456792]"),
        (tf.constant(0.1, tf.float64), "0.1"),
        (tf.constant([[[1, 2], [3, 4]]]), "[[[1 2]\n  [3 4]]]"),
    ],
)
def test_text_and_digits_are_tensorflows(value, text):
    assert printed(value, summarize=-1) == text + "\n"


def test_a_stream_that_is_no_stream_is_refused():
    with pytest.raises(ValueError, match="file://"):
        tf.print(1, output_stream="stdout")
