"""Pages of source text with an anchor for each line, to which links out of `docs/` and the API pages lead."""

from __future__ import annotations

import html
import pathlib
import posixpath
import re
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

ROOT = pathlib.Path(__file__).parent.parent.parent
FOLDERS = ("datasets/LICENSES", "examples", "minikeras")
TEMPLATE = (pathlib.Path(__file__).parent / "source.html").read_text(encoding="utf-8")
COPIES = {"CHANGELOG.md": "changelog.md"}
"""Documents of the repository that are pages here."""
LINK = re.compile(r"(?<=\]\()(?!\w+:)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, copy in COPIES.items():
        files.append(File.generated(config, copy, content=(ROOT / name).read_text(encoding="utf-8")))
    for path in source_files():
        files.append(File.generated(config, address(path), content=page(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files outside `docs/` work in the repository as they are written; here they lead to the pages of source."""
    here = posixpath.dirname(page.file.src_uri)
    written_in = "" if page.file.src_uri in COPIES.values() else posixpath.join("docs", here)

    def followed(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(written_in, link[1]))
        if not (ROOT / target).exists():
            return link[1]
        inside = target.removeprefix("docs/")
        return posixpath.relpath(inside if inside != target else COPIES.get(target) or address(ROOT / target), here or ".")

    return LINK.sub(followed, markdown)


def source_files() -> Iterator[pathlib.Path]:
    """Python files and licences, and the folders they lie in."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if (path.is_dir() and path.name != "__pycache__") or path.suffix in (".py", ".txt"):
                yield path
        yield ROOT / folder


def address(path: pathlib.Path) -> str:
    """Where the page of a file or folder lies on the site."""
    relative = path.relative_to(ROOT).as_posix()
    return f"source/{relative}/index.html" if path.is_dir() else f"source/{relative}.html"


def page(path: pathlib.Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    up = "../" * (address(path).count("/"))
    return TEMPLATE.format(name=name, up=up, body=listing(path) if path.is_dir() else highlighted(path))


def listing(folder: pathlib.Path) -> str:
    inside = sorted(path for path in source_files() if path.parent == folder)
    links = (f'<li><a href="{one.name}{"/" if one.is_dir() else ".html"}">{html.escape(one.name)}</a></li>' for one in inside)
    return f"<ul>{''.join(links)}</ul>"


def highlighted(path: pathlib.Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return f"<pre>{html.escape(text)}</pre>"
    return highlight(text, PythonLexer(), HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True))
