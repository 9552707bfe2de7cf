"""Each example runs as a user would run it, and its last number is what it should be."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


def run(name, tmp_path):
    """The standard output of an example, started in an empty folder."""
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent), "MPLBACKEND": "Agg", "MINIKERAS_OFFLINE": "1"}
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True).stdout


def last_number(text, pattern):
    return float(re.findall(pattern, text)[-1])


def test_fashion_mnist_is_learned_in_five_epochs(tmp_path):
    output = run("fit_fashion_mnist.py", tmp_path)
    accuracy = last_number(output, r"test accuracy: ([\d.]+)")
    assert accuracy >= (0.86 if "60,000 images" in output else 0.80)


def test_the_custom_loop_gives_the_weights_of_fit_bit_for_bit(tmp_path):
    assert last_number(run("custom_training_loop.py", tmp_path), r"weights and fit's: ([\d.e-]+)") == 0.0


def test_the_regression_reaches_the_level_of_the_noise(tmp_path):
    output = run("regression.py", tmp_path)
    assert last_number(output, r"validation loss ([\d.]+)") < 0.014
    assert last_number(output, r"from the sine: ([\d.]+)") < 0.06


def test_the_tour_of_the_tape_prints_the_derivatives_of_the_formulas(tmp_path):
    output = run("gradient_tape_tour.py", tmp_path)
    assert "at 3: 27.0 18.0" in output
    assert last_number(output, r"counts: ([\d.]+) = cos") == pytest.approx(0.2837, abs=5e-5)


def test_every_example_is_run_here():
    text = pathlib.Path(__file__).read_text()
    assert all(f'"{path.name}"' in text for path in EXAMPLES.glob("*.py"))


def test_every_example_fits_on_one_screen():
    assert all(len(path.read_text().splitlines()) <= 60 for path in EXAMPLES.glob("*.py"))
