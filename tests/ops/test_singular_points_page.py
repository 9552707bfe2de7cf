"""The guide to singular points is true: its conventions are evaluated, and its big table is written by this file.

After a change that is meant:

    python tests/ops/test_singular_points_page.py && git diff docs/guides/singular-points.md
"""

import pathlib
import re

import numpy as np
import pytest

import minikeras as tf

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "guides" / "singular-points.md"
NAMES = {"tf": tf, "math": tf.math, "nn": tf.nn, "inf": np.inf, "nan": np.nan}
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|", re.MULTILINE)
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"

FUNCTIONS = """
    tf.abs(x); tf.sign(x); tf.square(x); tf.sqrt(x); math.rsqrt(x); math.reciprocal(x); 1 / x; x ** 0.0; x ** 0.5; x ** 3
    x ** -1.0; 0.0 ** x; 2.0 ** x; tf.exp(x); math.expm1(x); math.log(x); math.log1p(x)
    tf.sin(x); tf.cos(x); tf.tan(x); tf.asin(x); tf.acos(x); tf.atan(x); tf.atan2(x, 0 * c); tf.atan2(0 * c, x); tf.atan2(c, x)
    tf.sinh(x); tf.cosh(x); tf.tanh(x); tf.asinh(x); tf.acosh(x); tf.atanh(x); math.erf(x); math.erfc(x)
    tf.sigmoid(x); nn.softplus(x); math.log_sigmoid(x); nn.softsign(x); nn.relu(x); nn.relu6(x); nn.leaky_relu(x); nn.elu(x)
    nn.selu(x); nn.gelu(x); nn.silu(x)
    math.xlogy(x, c); math.xlogy(c, x); math.xlogy(0 * c, x); math.xlog1py(c, x); math.xdivy(c, x); math.divide_no_nan(c, x)
    math.divide_no_nan(x, 0 * c); math.multiply_no_nan(x, 0 * c); math.floormod(x, 3 * c)
    tf.maximum(x, 0.0); tf.minimum(x, 0.0); tf.clip_by_value(x, -1.0, 1.0); tf.where(x > 0, math.log(x), 0.0); math.angle(x)
    tf.norm(tf.stack([x, 0 * c])); math.reduce_std(tf.stack([x, 0 * c])); tf.reduce_prod(tf.stack([x, 0 * c]))
    tf.reduce_logsumexp(tf.stack([x, 0 * c])); tf.reduce_max(tf.stack([x, 0 * c])); nn.softmax(tf.stack([x, 0 * c]))[0]
    tf.clip_by_norm(tf.stack([x, 0 * c]), 1.0)[0]; math.l2_normalize(tf.stack([x, 0 * c]))[0]
"""
POINTS = {"0": 0.0, "inf": np.inf, "-inf": -np.inf, "nan": np.nan, "smallest": 5e-324, "largest": np.finfo("float64").max}


def functions():
    return [text.strip() for line in FUNCTIONS.strip().splitlines() for text in line.split(";")]


def value_and_slope(text, point):
    """A function written as an expression of x, at a point, and the gradient of its sum. `c` is the number 1."""
    x = tf.constant(point, "float64")
    with np.errstate(all="ignore"), tf.GradientTape() as tape:
        tape.watch(x)
        y = eval(text, {**NAMES, "x": x, "c": tf.constant(1.0, "float64")})
    return y.numpy(), tape.gradient(y, x, unconnected_gradients="zero").numpy()


def conventions():
    """The rows of the first tables: expression, point, value, slope."""
    return ROW.findall(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("text", "point", "value", "slope"), conventions(), ids=lambda text: text)
def test_a_convention_is_what_the_page_says(text, point, value, slope):
    found = value_and_slope(text, eval(point, dict(NAMES)))
    for number, written in zip(found, (value, slope), strict=True):
        np.testing.assert_allclose(number, eval(written, dict(NAMES)), rtol=1e-4, atol=1e-12)


def test_the_page_has_conventions():
    assert len(conventions()) > 30


def shown(number):
    """Four digits; no sign on a zero."""
    return "0" if number == 0 else f"{number:.4g}"


def table():
    """The big table in Markdown."""
    lines = [f"| f(x) | {' | '.join(POINTS)} |", "|---" * (len(POINTS) + 1) + "|"]
    for text in functions():
        cells = [" / ".join(map(shown, value_and_slope(text, point))) for point in POINTS.values()]
        lines.append(f"| `{text}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def parts():
    """The page before, in and after the big table."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    inside, after = rest.split(END)
    return before, inside, after


def test_the_big_table_is_up_to_date():
    assert parts()[1] == table(), "if this is meant, run this file and read the difference"


def test_a_negative_zero_is_a_zero():
    """Only poles, and angles, which have a cut there, tell the sides apart."""
    apart = {text for text in functions() if any(map(differs, value_and_slope(text, 0.0), value_and_slope(text, -0.0)))}
    logarithms = {"tf.sqrt(x)", "math.log(x)", "math.xlogy(c, x)"}
    powers = {"1 / x", "math.reciprocal(x)", "math.rsqrt(x)", "x ** -1.0", "math.xdivy(c, x)"}
    assert apart == logarithms | powers | {"tf.atan2(0 * c, x)", "math.angle(x)"}


def differs(a, b):
    return not np.array_equal(a, b, equal_nan=True)


if __name__ == "__main__":
    before, _, after = parts()
    PAGE.write_text(before + BEGIN + table() + END + after, encoding="utf-8")
    print(f"{PAGE}: {len(functions())} functions at {len(POINTS)} points")
