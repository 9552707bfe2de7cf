"""The tutorials are notebooks that run, and what they show is what they printed when they were written.

After a change that is meant, run them anew, store what they show, and look at it:

    python tests/test_tutorials.py && git diff docs/tutorials
"""

import json
import os
import pathlib
import re
import sys
from typing import Any

import pytest

FOLDER = pathlib.Path(__file__).parent.parent / "docs" / "tutorials"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
SECONDS = re.compile(r"in \d+\.\d s|\d+s - \d+[mu]?s/step")
SECONDS_EACH = 300
"""In which each cell has ended, however busy the machine is."""
RELATIVE, ABSOLUTE = 0.1, 0.03
"""How far a number may be off: other processors round differently, and training carries that on."""


def executed(notebook: Any) -> Any:
    """The notebook with the outputs of a new kernel, without what differs from run to run."""
    from nbclient import NotebookClient

    surroundings = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    client = NotebookClient(
        notebook,
        timeout=SECONDS_EACH,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(FOLDER)}},
    )
    own = {"PYTHONPATH": str(FOLDER.parent.parent), "COLUMNS": "100", "OPENBLAS_NUM_THREADS": "1"}
    client.execute(env=surroundings | own)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if one.get("data") != {}]  # a bar that was taken away
    notebook.metadata = {name: notebook.metadata[name] for name in ("kernelspec", "language_info")}
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def shown(cell: Any) -> list[tuple[str, str]]:
    """The outputs of a cell: the kind of each, and its text where it has one. Of a picture only that it is there."""
    found = []
    for output in cell.get("outputs", ()):
        if output.get("name") == "stderr":  # where matplotlib tells which fonts a machine lacks
            continue
        if output["output_type"] == "stream":
            found.append((output["name"], SECONDS.sub("in 0.0 s", "".join(output["text"]))))
        else:
            data = output["data"]
            kind = next(kind for kind in ("image/png", "text/html", "text/plain") if kind in data)
            found.append((kind, "" if kind == "image/png" else "".join(data[kind])))
    return found


def is_close(text: str, stored: str, numbers_vary: bool) -> bool:
    """Whether two texts are the same but for numbers, and these about the same."""
    if [*NUMBER.split(text)] != [*NUMBER.split(stored)]:
        return numbers_vary and NUMBER.sub("", " ".join(text.split())) == NUMBER.sub("", " ".join(stored.split()))
    pairs = zip(NUMBER.findall(text), NUMBER.findall(stored), strict=True)
    return numbers_vary or all(float(a) == pytest.approx(float(b), rel=RELATIVE, abs=ABSOLUTE) for a, b in pairs)


@pytest.mark.host
@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")  # of Jupyter
def test_a_tutorial_runs_and_shows_what_it_showed_when_it_was_written(path):
    nbformat = pytest.importorskip("nbformat")
    stored = nbformat.read(path, as_version=4)
    fresh = executed(nbformat.read(path, as_version=4))
    for cell, before in zip(fresh.cells, stored.cells, strict=True):
        found, expected = shown(cell), shown(before)
        assert [kind for kind, _ in found] == [kind for kind, _ in expected], before.source
        vary = "numbers-vary" in before.metadata.get("tags", ())
        for (kind, text), (_, old) in zip(found, expected, strict=True):
            assert is_close(text, old, vary), f"{before.source}\n\n{kind} was\n{old}\n\nand is\n{text}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_tutorial_is_stored_as_it_was_run(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    counts = [cell["execution_count"] for cell in cells if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1)), "run it from top to bottom: python tests/test_tutorials.py"
    assert cells[0]["cell_type"] == "markdown" and cells[0]["source"][0].startswith("# ")
    assert path.stat().st_size < 400_000 and "widget" not in path.read_text(encoding="utf-8")


def test_numbers_are_compared_with_tolerance_and_words_are_not():
    assert is_close("loss 0.51, accuracy 0.90", "loss 0.5, accuracy 0.9", False)
    assert not is_close("loss 0.7", "loss 0.5", False) and is_close("loss 0.7", "loss 0.5", True)
    assert not is_close("cost 0.5", "loss 0.5", False) and not is_close("cost 0.5", "loss 0.5", True)


def write_anew() -> None:
    import nbformat

    for path in [pathlib.Path(name) for name in sys.argv[1:]] or NOTEBOOKS:
        nbformat.write(executed(nbformat.read(path, as_version=4)), path)


if __name__ == "__main__":
    write_anew()
