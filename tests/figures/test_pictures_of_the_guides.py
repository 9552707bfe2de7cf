"""The pictures in the guides are those which their code draws."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")
import matplotlib.image as images

ROOT = pathlib.Path(__file__).parents[2]
PICTURES = sorted(path.name for path in (ROOT / "docs" / "figures").glob("*.png"))
COARSE = 8
CLOSE = 0.02
TIMED = ("compare.png", "levenberg_marquardt.png", "per_layer.png")
"""Their right halves have seconds on an axis, which no two runs share; numbers there move the left halves by a few pixels."""


def coarse(path):
    """A picture in squares of 8 by 8 pixels, from 0 to 1: another version of a font or of a layout makes no difference."""
    pixels = images.imread(path)[..., :3]
    height, width = (length // COARSE * COARSE for length in pixels.shape[:2])
    return pixels[:height, :width].reshape(height // COARSE, COARSE, width // COARSE, COARSE, 3).mean(axis=(1, 3))


def difference(one, other):
    """The mean difference where at least one of two pictures is not white."""
    drawn = (one < 1.0 - CLOSE).any(-1) | (other < 1.0 - CLOSE).any(-1)
    return float(np.abs(one - other)[drawn].mean())


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A folder of pictures made now."""
    folder = tmp_path_factory.mktemp("pictures")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    command = [sys.executable, str(ROOT / "docs" / "figures" / "make.py"), str(folder)]
    subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_the_one_that_its_guide_draws(drawn, name):
    kept, made = coarse(ROOT / "docs" / "figures" / name), coarse(drawn / name)
    assert kept.shape == made.shape
    width, close = (kept.shape[1] // 2 - 3, 3 * CLOSE) if name in TIMED else (kept.shape[1], CLOSE)
    assert difference(kept[:, :width], made[:, :width]) < close, "draw it anew: python docs/figures/make.py"


@pytest.mark.slow
def test_every_picture_is_drawn_and_shown(drawn):
    guides = "\n".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    shown = re.findall(r"!\[[^]]+\]\((?:\.\./)*figures/([^)]+)\)", guides)
    assert sorted(path.name for path in drawn.iterdir()) == sorted(set(shown)) == PICTURES


def test_the_comparison_tells_different_pictures_apart():
    folder = ROOT / "docs" / "figures"
    assert difference(coarse(folder / "rows_apart.png"), coarse(folder / "rows_mixed.png")) > CLOSE
    assert difference(coarse(folder / "hessian.png"), coarse(folder / "model_hessian.png")) > CLOSE
