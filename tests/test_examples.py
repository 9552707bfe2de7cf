"""Each example runs as a user would run it, and its last number is what it should be."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"
GALLERY = EXAMPLES.parent / "docs" / "gallery"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
FACTOR, CLOSE = 3.0, 0.05
UNSTEADY = {
    "compare_optimizers": "it prints seconds",
    "optuna_search": "another processor may rank the trials otherwise",
    "sweep_digits": "another processor may rank the runs otherwise",
}
"""Examples whose numbers are not compared with those of their pages, and why."""


def run(name, tmp_path):
    """The standard output of an example, started in an empty folder; it is what the page of the gallery shows."""
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent), "MPLBACKEND": "Agg", "MINIKERAS_OFFLINE": "1"}
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(
        command, env={**environment, "COLUMNS": "100"}, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
    )
    if "fashion_mnist" not in (EXAMPLES / name).read_text() or "the shipped subset" in done.stderr:
        compare_with_page(name.removesuffix(".py"), done.stdout)
    return done.stdout


def compare_with_page(name, printed):
    """Words are equal, and numbers close to those that another machine printed."""
    page = (GALLERY / f"{name}.md").read_text(encoding="utf-8")
    shown = re.search(r"^It prints:\n\n```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1]
    words = [" ".join(NUMBER.sub("#", text).replace("─", "").split()) for text in (shown, printed)]
    assert words[0] == words[1], f"make the page anew: python docs/gallery/make.py {name}"
    if name not in UNSTEADY:
        pairs = zip(*(NUMBER.findall(text) for text in (shown, printed)), strict=True)
        apart = [pair for pair in pairs if not are_close(*(float(number.replace(",", "")) for number in pair))]
        assert not apart, f"make the page anew: python docs/gallery/make.py {name}"


def are_close(one, other):
    return abs(one - other) <= CLOSE or max(one, other) <= FACTOR * min(one, other)


def last_number(text, pattern):
    return float(re.findall(pattern, text)[-1])


@pytest.mark.slow
def test_fashion_mnist_is_learned_in_five_epochs(tmp_path):
    output = run("fit_fashion_mnist.py", tmp_path)
    accuracy = last_number(output, r"test accuracy: ([\d.]+)")
    assert accuracy >= (0.86 if "60,000 images" in output else 0.80)


def test_the_custom_loop_gives_the_weights_of_fit_bit_for_bit(tmp_path):
    assert last_number(run("custom_training_loop.py", tmp_path), r"weights and fit's: ([\d.e-]+)") == 0.0


@pytest.mark.slow
def test_an_lstm_forecasts_better_than_the_last_value(tmp_path):
    error, repeated = map(
        float, re.findall(r"error ([\d.]+), of repeating the last value ([\d.]+)", drawn("forecast_lstm", tmp_path))[0]
    )
    assert error < 0.6 * repeated


@pytest.mark.slow
def test_a_gru_reads_negations(tmp_path):
    assert last_number(drawn("read_text_gru", tmp_path), r"([\d.]+) of 200 texts") >= 0.97


@pytest.mark.slow
def test_augmentation_makes_up_for_images_that_are_missing(tmp_path):
    plain, augmented = map(float, re.findall(r"test accuracy ([\d.]+)", drawn("augment_images", tmp_path)))
    assert augmented > plain + 0.02


@pytest.mark.slow
def test_the_regression_reaches_the_level_of_the_noise(tmp_path):
    output = drawn("regression", tmp_path)
    assert last_number(output, r"validation loss ([\d.]+)") < 0.014
    assert last_number(output, r"from the sine: ([\d.]+)") < 0.06


def test_the_tour_of_the_tape_prints_the_derivatives_of_the_formulas(tmp_path):
    output = run("gradient_tape_tour.py", tmp_path)
    assert "at 3: 27.0 18.0" in output
    assert last_number(output, r"counts: ([\d.]+) = cos") == pytest.approx(0.2837, abs=5e-5)


@pytest.mark.slow
def test_a_loop_that_was_killed_goes_on_to_the_same_weights(tmp_path):
    pytest.importorskip("safetensors")
    output = drawn("resume_training", tmp_path)
    assert "ended with -9; 14 steps" in output
    assert last_number(output, r"after going on: ([\d.e-]+)") == 0.0


def drawn(name, tmp_path):
    """As `run`, for an example that saves a figure of its name."""
    output = run(f"{name}.py", tmp_path)
    assert (tmp_path / f"{name}.png").stat().st_size > 5000
    return output


@pytest.mark.slow
def test_the_newton_step_of_the_optimizer_is_the_one_by_hand(tmp_path):
    output = run("newton_on_one_kernel.py", tmp_path)
    assert (tmp_path / "newton_hessian.png").stat().st_size > 5000
    assert last_number(output, r"the optimizer's: ([\d.e+-]+)") < 1e-5
    before, after = re.search(r"loss ([\d.]+) -> ([\d.]+)", output).groups()
    assert float(after) < 0.2 * float(before)


@pytest.mark.slow
def test_newton_solves_logistic_regression_in_twelve_steps(tmp_path):
    assert last_number(drawn("newton_logistic_regression", tmp_path), r"below 1e-8 after (\d+) steps") <= 12


@pytest.mark.slow
def test_levenberg_marquardt_reaches_a_lower_loss_than_adam(tmp_path):
    assert last_number(drawn("levenberg_marquardt", tmp_path), r"Levenberg-Marquardt: ([\d.]+)") > 20


@pytest.mark.slow
def test_a_frozen_first_layer_costs_accuracy(tmp_path):
    output = drawn("per_layer_learning_rates", tmp_path)
    assert 0.03 < last_number(output, r"behind training all: ([\d.]+)") < 0.2
    assert last_number(output, r"Adam below, SGD head +([\d.]+)") > 0.78


@pytest.mark.slow
def test_updates_of_layers_by_hand_are_those_of_fit(tmp_path):
    assert last_number(run("per_layer_updates.py", tmp_path), r"fit's: ([\d.e-]+)") == 0.0


@pytest.mark.slow
def test_frozen_layers_stay_and_are_trained_again(tmp_path):
    output = drawn("freezing_layers", tmp_path)
    assert last_number(output, r"base moved by ([\d.e-]+)") == 0.0
    assert last_number(output, r"all again .*: ([\d.]+)") > 0.01
    assert last_number(output, r"test accuracy: ([\d.]+)") > 0.93


@pytest.mark.slow
def test_a_penalty_on_the_input_gradient_makes_it_smaller(tmp_path):
    assert last_number(drawn("input_gradient_regularization", tmp_path), r"divides it by ([\d.]+)") > 1.6


@pytest.mark.slow
def test_a_few_large_eigenvalues_are_most_of_the_hessian(tmp_path):
    assert last_number(drawn("hessian_spectrum", tmp_path), r"largest eigenvalues at the end: ([\d.]+)") > 0.8


def test_a_compiled_step_has_the_losses_of_the_eager_one_bit_for_bit(tmp_path):
    output = run("compiled_step.py", tmp_path)
    assert "= loop(" in output and "2 recordings, 113 replays, 0 eager calls" in output
    assert last_number(output, r"differs from the eager one: (\d+)") == 0.0
    before, after = re.search(r"loss ([\d.]+) -> ([\d.]+)", output).groups()
    assert float(after) < 0.5 * float(before)


@pytest.mark.slow
def test_a_transformer_over_columns_tells_tumours_apart(tmp_path):
    assert last_number(run("table_transformer.py", tmp_path), r"test accuracy: ([\d.]+)") >= 0.95


def test_a_cross_tells_where_and_when_ice_cream_sells(tmp_path):
    output = run("tabular_features.py", tmp_path)
    assert last_number(output, r"alone ([\d.]+)") < 0.55
    assert last_number(output, r"with their cross: ([\d.]+)") > 0.96


@pytest.mark.slow
def test_a_step_of_levenberg_marquardt_is_worth_many_of_adams(tmp_path):
    output = drawn("compare_optimizers", tmp_path)
    assert last_number(output, r"one of Levenberg-Marquardt: (\d+)") > 10
    assert "first layer" in output and "seconds" in output


@pytest.mark.slow
def test_a_search_goes_on_where_its_file_stands(tmp_path):
    pytest.importorskip("optuna")
    first = run("optuna_search.py", tmp_path)
    second = run("optuna_search.py", tmp_path)
    assert first.startswith("0 trials were in the file, 12 are new") and second.startswith("12 trials were in the file, 0 are")
    assert first.splitlines()[1:] == second.splitlines()[1:] and last_number(first, r"test accuracy: ([\d.]+)") > 0.93


@pytest.mark.slow
def test_a_sweep_finds_the_rate_and_width_that_tell_digits_apart(tmp_path):
    output = drawn("sweep_digits", tmp_path)
    assert "96 runs, mean and deviation" in output and "the same table after going on: True" in output
    assert last_number(output, r"test accuracy: ([\d.]+)") > 0.94


def test_every_example_is_run_here():
    text = pathlib.Path(__file__).read_text()
    assert all(f'"{path.name}"' in text or f'drawn("{path.stem}"' in text for path in EXAMPLES.glob("*.py"))


def test_every_example_fits_on_one_screen():
    assert all(len(path.read_text().splitlines()) <= 60 for path in EXAMPLES.glob("*.py"))


@pytest.mark.slow
def test_an_ensemble_disagrees_where_there_are_no_data(tmp_path):
    output = drawn("ensemble_uncertainty", tmp_path)
    assert last_number(output, r"near data: ([\d.]+)") > 0.9
    assert last_number(output, r"to that at -2: ([\d.]+)") > 3.0


@pytest.mark.slow
def test_a_network_that_knows_poissons_equation_finds_its_solution(tmp_path):
    assert last_number(drawn("physics_informed", tmp_path), r"relative error: ([\d.e-]+)") < 1e-3


@pytest.mark.slow
def test_a_layer_with_ten_times_the_rate_moves_further_and_a_frozen_one_not_at_all(tmp_path):
    output = drawn("per_layer_heat_map", tmp_path)
    assert last_number(output, r"the first layer moves ([\d.]+)") > 2
    assert last_number(output, r"frozen +first ([\d.]+)") == 0.0


@pytest.mark.slow
def test_one_step_from_mamls_first_weights_learns_a_sine(tmp_path):
    errors = re.search(r"MAML ([\d.]+), trained on all sines ([\d.]+)", drawn("maml_sines", tmp_path)).groups()
    assert float(errors[0]) < 0.3 * float(errors[1])


def test_every_gradient_that_is_none_is_explained(tmp_path):
    output = run("why_none.py", tmp_path)
    assert "explained: 6 of 6" in output
    reasons = ("not_watched", "left_through_numpy", "non_differentiable_op", "stopped", "integer_dtype", "not_trainable")
    assert re.findall(r"^  (\w+):", output, re.MULTILINE) == list(reasons)


@pytest.mark.slow
def test_two_ranks_reach_the_accuracy_of_one(tmp_path):
    pytest.importorskip("mpi4py")
    alone = run("data_parallel.py", tmp_path)
    launcher = [sys.executable, "-m", "minikeras.distribute.run", "-n", "2", str(EXAMPLES / "data_parallel.py")]
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent), "MINIKERAS_OFFLINE": "1"}
    both = subprocess.run(launcher, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    assert last_number(alone, r"test accuracy: ([\d.]+)") > 0.95
    assert "ranks: 2" in both.stdout and both.stdout.replace("ranks: 2", "ranks: 1") == alone
