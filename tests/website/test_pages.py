"""The pages as files: every public name has one, every link leads somewhere, nothing comes from elsewhere."""

import functools
import pathlib
import re
import urllib.parse
from html import unescape

import pytest

pytestmark = pytest.mark.site
ROOT = pathlib.Path(__file__).parents[2]
NAMES = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8").split()
LOADED = re.compile(
    r'<(?:script|img|iframe|source)\b[^>]*?\bsrc="([^"]+)"|<link\b(?=[^>]*(?:stylesheet|icon))[^>]*?\bhref="([^"]+)"'
)
LINK = re.compile(r'<a\b[^>]*?\bhref="([^"]+)"')
ANCHOR = re.compile(r'\b(?:id|name)="?([^"\s>]+)')


def pages(site: pathlib.Path) -> list[pathlib.Path]:
    return sorted(site.rglob("*.html"))


@functools.lru_cache(maxsize=8)
def text(page: pathlib.Path) -> str:
    return page.read_text(encoding="utf-8")


@functools.cache
def anchors(page: pathlib.Path) -> frozenset[str]:
    return frozenset(unescape(name) for name in ANCHOR.findall(text(page)))


def target(site: pathlib.Path, page: pathlib.Path, link: str) -> pathlib.Path:
    path = urllib.parse.unquote(link)
    file = site / path.lstrip("/") if path.startswith("/") else page.parent / path
    return (file / "index.html" if file.is_dir() or path.endswith("/") else file).resolve()


def test_every_public_name_has_a_page_that_names_it(site: pathlib.Path) -> None:
    missing = []
    for dotted in NAMES:
        name = "tf" + dotted.removeprefix("minikeras")
        module, _, last = name.rpartition(".")
        page = site / "api" / "/".join(module.split(".")[1:]) / "index.html"
        row = re.search(rf'<td>(?:<a href="([^"]+)"><code>{last}</code></a>|<span id="{name.replace(".", "-")}">)', text(page))
        is_module = (site / "api" / "/".join(name.split(".")[1:]) / "index.html").exists() and row is None
        written = name if is_module else None
        if row is not None and row[1]:
            written = unescape(re.sub(r"<[^>]+>", "", text(target(site, page, row[1]))))
        if (row is None and not is_module) or (written is not None and name not in written):
            missing.append(name)
    assert not missing, missing


def test_arguments_attributes_and_errors_are_lists(site: pathlib.Path) -> None:
    run_on = re.compile(r'<p class="section">(Args|Attributes|Raises)</p>\s*<p>')
    assert not [page.parent.relative_to(site) for page in pages(site / "api") if run_on.search(text(page))]


def test_every_link_leads_to_a_page_and_a_place_in_it(site: pathlib.Path) -> None:
    broken = []
    for page in pages(site):
        for link in set(LINK.findall(text(page))):
            path, _, place = unescape(link).partition("#")
            if re.match(r"\w+:", path):
                continue
            found = target(site, page, path) if path else page
            if not found.is_file() or (place and found.suffix == ".html" and urllib.parse.unquote(place) not in anchors(found)):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert not broken, broken[:20]


def test_nothing_is_loaded_from_elsewhere(site: pathlib.Path) -> None:
    for page in pages(site):
        for loaded in {one or other for one, other in LOADED.findall(text(page))}:
            assert not re.match(r"(?!data:)\w+:|//", loaded), f"{page.relative_to(site)} loads {loaded}"
            assert loaded.startswith("data:") or target(site, page, loaded.partition("?")[0]).is_file(), f"{page}: {loaded}"
