"""The check script for machines with a GPU: its logic runs on the CPU, and without a GPU it says why it cannot."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from minikeras.arrays import probe

pytestmark = pytest.mark.slow
SCRIPT = pathlib.Path(__file__).parent / "gpu_check.py"


def run(*arguments, check):
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parent.parent)}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], env=environment, capture_output=True, text=True, check=check, timeout=300
    )


def test_all_checks_pass_against_the_cpu_itself(tmp_path):
    run("--device", "CPU:0", "--out", str(tmp_path / "report.json"), check=True)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["training_agrees_with_the_cpu"]["largest difference"] == 0.0
    assert report["step_times"]["small"] > 0


@pytest.mark.skipif(probe().works, reason="there is a GPU")
def test_without_a_gpu_it_fails_and_names_the_reason():
    outcome = run(check=False)
    assert outcome.returncode == 1
    assert probe().reason in outcome.stdout
