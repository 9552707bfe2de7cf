"""Makes the pages of the gallery: runs each example, and writes its page, its figure, a thumbnail and the index.

    python docs/gallery/make.py [NAME ...]

With names it makes these pages alone, and the index. Needs matplotlib, and what the examples need.
"""

import ast
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

os.environ.setdefault("MPLBACKEND", "Agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
EXAMPLES = ROOT / "examples"

GALLERY = {
    "Train": {
        "fit_fashion_mnist": ("Fashion-MNIST with `fit`", "training"),
        "regression": ("A noisy sine", "training"),
        "custom_training_loop": ("A custom training loop", "training"),
        "freezing_layers": ("Freezing layers", "per-layer"),
        "resume_training": ("Resume after a kill", "saving"),
        "tabular_features": ("Columns of text and numbers", "tables"),
        "table_transformer": ("A transformer over columns", "layers"),
        "augment_images": ("Images changed at random", "images"),
        "forecast_lstm": ("A time series with an LSTM", "sequences"),
        "read_text_gru": ("Text with a GRU", "sequences"),
    },
    "Differentiate": {
        "gradient_tape_tour": ("A tour of the gradient tape", "gradients"),
        "why_none": ("Why is my gradient None?", "explaining-gradients"),
        "physics_informed": ("A physics-informed network", "advanced-gradients"),
        "maml_sines": ("MAML on sines", "gradients"),
        "input_gradient_regularization": ("A penalty on input gradients", "gradients"),
        "hessian_spectrum": ("The Hessian's spectrum during training", "derivatives"),
    },
    "Optimize": {
        "levenberg_marquardt": ("Levenberg-Marquardt against Adam", "second-order"),
        "newton_logistic_regression": ("Newton on logistic regression", "second-order"),
        "newton_on_one_kernel": ("Newton on one kernel", "second-order"),
        "per_layer_heat_map": ("What each layer learned", "per-layer"),
        "per_layer_learning_rates": ("A learning rate for each layer", "per-layer"),
        "per_layer_updates": ("Updates of layers by hand", "per-layer"),
    },
    "Experiment": {
        "compare_optimizers": ("Optimizers compared", "experiments"),
        "sweep_digits": ("A sweep of 96 runs", "experiments"),
        "ensemble_uncertainty": ("Uncertainty by an ensemble", "experiments"),
        "optuna_search": ("A search by Optuna", "experiments"),
    },
    "Speed": {
        "compiled_step": ("A compiled step", "compiled-steps"),
        "data_parallel": ("Data parallelism", "distribution"),
    },
}
"""The sections of the index; each example has a title and a guide."""

PAGE = """# {title}

{about}

{figure}It prints:

```text
{printed}```

Run it: `python -m minikeras.examples {name}`. The guide is [{guide_title}](../guides/{guide}.md).

```python title="{name}.py"
{code}```
"""
COLOURS = 128
THUMBNAIL = (280, 160)
BORDERS = ("┌", "├", "└", "│")
LINES_OF_THUMBNAIL, LETTERS_OF_THUMBNAIL = 8, 46


def code_of(name: str) -> str:
    return (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")


def about(name: str) -> str:
    """The docstring of an example."""
    return ast.get_docstring(ast.parse(code_of(name))) or ""


def run(name: str, folder: pathlib.Path) -> str:
    """What an example prints, started in a folder where its figure goes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MINIKERAS_OFFLINE": "1", "COLUMNS": "100"}
    line = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")]
    return subprocess.run(line, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


def page(name: str, printed: str) -> str:
    """The page of an example."""
    title, guide = next(examples[name] for examples in GALLERY.values() if name in examples)
    guide_title = (HERE.parent / "guides" / f"{guide}.md").read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    figure = f"![{title.replace('`', '')}]({name}.png)\n\n" if (HERE / f"{name}.png").exists() else ""
    return PAGE.format(
        title=title,
        about=about(name),
        figure=figure,
        printed=printed,
        name=name,
        guide=guide,
        guide_title=guide_title,
        code=code_of(name),
    )


def index() -> str:
    """A table for each section: thumbnails, and what there is to see."""
    parts = ["# Gallery", "Each page shows an example, its figure and what it prints. All of them run in seconds."]
    for section, examples in GALLERY.items():
        parts += [f"## {section}", "| figure | example |\n|---|---|"]
        for name, (title, _) in examples.items():
            picture = f"[![{title.replace('`', '')}](thumbnails/{name}.png)]({name}.md)"
            sentence = " ".join(about(name).partition("\n\n")[0].split())
            parts[-1] += f"\n| {picture} | [{title}]({name}.md)<br>{sentence} |"
    return "\n\n".join(parts) + "\n"


def save(picture: Image.Image, path: pathlib.Path) -> None:
    """Write a picture with few colours: a third of the bytes, and the eye sees no difference."""
    picture.convert("RGB").quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
        path, optimize=True
    )


def text_picture(printed: str) -> Image.Image:
    """The end of what an example prints, in the place of a figure."""
    lines = [line for line in printed.splitlines() if not line.startswith(BORDERS)]
    shown = [part for line in lines for part in textwrap.wrap(line, LETTERS_OF_THUMBNAIL)][-LINES_OF_THUMBNAIL:]
    figure = plt.figure(figsize=(THUMBNAIL[0] / 100, THUMBNAIL[1] / 100), dpi=200)
    figure.text(0.03, 0.5, "\n".join(shown), family="monospace", fontsize=6.5, va="center", linespacing=1.5)
    figure.canvas.draw()
    picture = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
    plt.close(figure)
    return picture


def thumbnail(picture: Image.Image) -> Image.Image:
    """A small picture of one size for all, on white."""
    small = picture.convert("RGB")
    small.thumbnail(THUMBNAIL, Image.Resampling.LANCZOS)
    whole = Image.new("RGB", THUMBNAIL, "white")
    whole.paste(small, ((THUMBNAIL[0] - small.width) // 2, (THUMBNAIL[1] - small.height) // 2))
    return whole


def make(name: str) -> None:
    """Run an example and write its page and pictures."""
    with tempfile.TemporaryDirectory() as folder:
        printed = run(name, pathlib.Path(folder))
        pictures = list(pathlib.Path(folder).glob("*.png"))
        shown = Image.open(pictures[0]).convert("RGB") if pictures else text_picture(printed)
        if pictures:
            save(shown, HERE / f"{name}.png")
    (HERE / "thumbnails").mkdir(exist_ok=True)
    save(thumbnail(shown), HERE / "thumbnails" / f"{name}.png")
    (HERE / f"{name}.md").write_text(page(name, printed), encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:] or [name for examples in GALLERY.values() for name in examples]:
        make(name)
        print(HERE / f"{name}.md")
    (HERE / "index.md").write_text(index(), encoding="utf-8")
