"""Every Python block in the README and the guides runs, and prints what the document says it prints."""

import contextlib
import importlib.util
import io
import pathlib
import re
import tomllib

import numpy as np
import pytest
from slow import mostly_slow

import minikeras

ROOT = pathlib.Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GALLERY = ROOT / "docs" / "gallery"  # test_examples.py runs what is shown there
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)

FENCED = re.compile(r"^([^\n]*)\n+```([a-z][^\n]*)\n.*?^```$", re.MULTILINE | re.DOTALL)
"""The line before a fenced block and its language."""


def blocks(document):
    """Pairs of code and expected output (None if the document shows none)."""
    return [(match[1], match[2] or None) for match in BLOCK.finditer(document.read_text())]


def needed(code):
    """What else has to be installed for a block to run: its first line says so, '# needs torch, jax'."""
    first = code.partition("\n")[0]
    return first.removeprefix("# needs ").split(", ") if first.startswith("# needs ") else []


@pytest.fixture
def numpy_random_state():
    """`set_random_seed` reaches NumPy's global state, as in Keras; the document may, the test run may not."""
    state = np.random.get_state()
    yield
    np.random.set_state(state)


DEAR = ("ecosystem", "experiments", "per-layer", "second-order")
"""Guides that take seconds: the slow run has them, the plain one the tests of what they explain."""
RUN = [d for d in DOCUMENTS if blocks(d) and GALLERY not in d.parents]


@pytest.mark.parametrize(
    "document", mostly_slow(RUN, *(d for d in RUN if d.stem not in DEAR)), ids=lambda d: d.relative_to(ROOT).as_posix()
)
def test_every_block_runs_and_prints_what_the_document_shows(document, numpy_random_state, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")  # of the terminal: how wide tables may be
    namespace = {}
    minikeras.keras.utils.clear_session()  # automatic names start afresh, as they do for a reader of this document
    for code, expected in blocks(document):
        if any(importlib.util.find_spec(name) is None for name in needed(code)):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, document.name, "exec"), namespace)
        if expected is not None:
            assert printed.getvalue() == expected
    namespace.clear()  # its functions refer to it, and it to them


def test_every_block_of_code_is_run_or_says_why_not():
    """Python is run above, examples in the gallery by test_examples.py, commands by `.ci/run` if they are marked so."""
    unmarked = []
    for document in DOCUMENTS:
        text = document.read_text()
        for before, language in FENCED.findall(text):
            marked = re.match(r"<!-- (run: \w+|not run: .+) -->$", before)
            of_the_gallery = document.parent == GALLERY and language.startswith("python title=")
            if language not in ("text", "python") and not marked and not of_the_gallery:
                unmarked.append(f"{document.relative_to(ROOT)}: {language}")
        assert len(re.findall(r"^ *```python$", text, re.MULTILINE)) == len(blocks(document)), document
    assert not unmarked, unmarked


def test_the_readme_names_only_extras_that_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = set(re.findall(r"\.\[(\w+)\]", (ROOT / "README.md").read_text()))
    assert named and named <= set(project["optional-dependencies"])


def test_ci_runs_each_block_of_the_readme_in_an_environment_of_its_own():
    blocks_of_commands = re.findall(r"^<!-- run: (\w+) -->$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert sorted(blocks_of_commands) == sorted(re.findall(r"^apart (\w+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE))


def test_every_file_that_the_documents_link_to_exists():
    for document in DOCUMENTS:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_five_short_files_are_enough_to_understand_a_gradient():
    """The list in the architecture names them with their lines, give or take ten."""
    stated = re.findall(r"^\| `(\w+\.py)` \| (\d+) \|", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
    lines = {name: len((ROOT / "minikeras" / "core" / name).read_text().splitlines()) for name, _ in stated}
    assert len(lines) == 5 and sum(lines.values()) < 900
    assert all(abs(lines[name] - int(count)) <= 10 for name, count in stated), lines


def test_the_readme_example_has_at_most_twelve_lines_of_code():
    first, _ = blocks(ROOT / "README.md")[0]
    assert len([line for line in first.splitlines() if line.strip()]) <= 12
