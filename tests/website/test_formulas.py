"""Formulas as docstrings have them, in LaTeX; prose stays prose."""

import importlib.util
import pathlib

import pytest

SOURCE = pathlib.Path(__file__).parents[2] / "docs" / "site" / "formulas.py"
spec = importlib.util.spec_from_file_location("formulas", SOURCE)
assert spec is not None and spec.loader is not None
formulas = importlib.util.module_from_spec(spec)
spec.loader.exec_module(formulas)


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("x / (1 + |x|)", r"\frac{x}{1 + \left| x \right|}"),
        ("ln(x + sqrt(x**2 - 1))", r"\ln\left( x + \sqrt{{x}^{2} - 1} \right)"),
        ("J^T H J", r"{J}^{T} \, H \, J"),
        ("e**-x", r"{e}^{-x}"),
        ("x**(-1/2)", r"{x}^{-\frac{1}{2}}"),
        ("y_pred - y_true", r"y_{\text{pred}} - y_{\text{true}}"),
        ("max(x, 0)", r"\max\left( x, 0 \right)"),
        ("y[x[i]] = i", r"{y}_{{x}_{i}} = i"),
        ("gamma(x) + gamma x", r"\Gamma\left( x \right) + \gamma \, x"),
        ("l1 sum |x|", r"l_{1} \, \sum \left| x \right|"),
        ("(k + 1)!", r"\left( k + 1 \right)!"),
        ("x / y, or 0 where y = 0", r"\frac{x}{y}\text{, or }\text{0}\text{ where }y = 0"),
        ("w <- w + a s", r"w \leftarrow w + a \, s"),
    ],
)
def test_a_formula_is_read(text: str, latex: str | None) -> None:
    assert formulas.as_latex(text) == latex


@pytest.mark.parametrize(
    "prose",
    [
        "the Gauss-Newton matrix",
        "n-grams and true/false",
        "shape (batch, window * channels)",
        "sections 3.1-3.4",
        "rows scaled to sum 1",
        "x is NaN",
        "an image (a picture)",
        "50 % of (",
    ],
)
def test_prose_is_none(prose: str) -> None:
    assert formulas.as_latex(prose) is None


def test_names_of_arguments_are_factors() -> None:
    step = "(H + damping I) s = -g"
    assert formulas.as_latex(step) is None
    assert formulas.as_latex(step, {"damping"}) == r"\left( H + \text{damping} \, I \right) \, s = -g"


def test_text_beside_a_formula_stays() -> None:
    assert formulas.rendered("Variance: mean(x), of rows") == [
        (False, "Variance"),
        (False, ": "),
        (True, r"\operatorname{mean}\left( x \right)"),
        (False, ", "),
        (False, "of rows"),
    ]
