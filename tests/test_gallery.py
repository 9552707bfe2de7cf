"""Pages of the gallery show the examples as they are; tests/test_examples.py compares what they print."""

import importlib.util
import pathlib
import re

import pytest

pytest.importorskip("matplotlib")

ROOT = pathlib.Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "gallery"
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
ANEW = "make it anew: python docs/gallery/make.py"
LARGEST = 60_000


@pytest.fixture(scope="module")
def make():
    """The script that makes the pages."""
    spec = importlib.util.spec_from_file_location("gallery_make", FOLDER / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_page_shows_the_example_as_it_is(make, name):
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    printed = re.search(r"^It prints:\n\n```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1]
    assert text == make.page(name, printed), f"{ANEW} {name}"


def test_the_index_shows_all_examples(make):
    assert sorted(name for examples in make.GALLERY.values() for name in examples) == EXAMPLES
    assert (FOLDER / "index.md").read_text(encoding="utf-8") == make.index(), ANEW


def test_every_example_that_draws_has_its_figure_and_all_have_thumbnails():
    drawing = {name for name in EXAMPLES if "savefig" in (ROOT / "examples" / f"{name}.py").read_text()}
    assert {path.stem for path in FOLDER.glob("*.png")} == drawing
    assert sorted(path.stem for path in (FOLDER / "thumbnails").glob("*.png")) == EXAMPLES


def test_pictures_are_small():
    sizes = {path.relative_to(FOLDER).as_posix(): path.stat().st_size for path in FOLDER.rglob("*.png")}
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}
    assert sum(sizes.values()) < 1_500_000
