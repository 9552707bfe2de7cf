"""A nav entry that ends in `/` takes in the pages of that folder, in the order and the sections of its `index.md`."""

from __future__ import annotations

import pathlib
import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

PAGES = {".md", ".ipynb"}
HEADING_OR_LINK = re.compile(r"^## (?P<heading>.+)$|\]\((?P<page>[^/#)]+)\)", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = [expanded(item, pathlib.Path(config.docs_dir)) for item in config.nav or []]
    return config


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page that is alone under its tab needs no list of pages beside it, and the first one no contents either."""
    if page.parent is None:
        page.meta["hide"] = ["navigation", "toc"] if page.is_homepage else ["navigation"]
    return markdown


def expanded(item: Any, docs: pathlib.Path) -> Any:
    if isinstance(item, dict):
        return {title: expanded(inside, docs) for title, inside in item.items()}
    if isinstance(item, list):
        return [expanded(one, docs) for one in item]
    return pages(docs, item) if (docs / item).is_dir() else item


def pages(docs: pathlib.Path, folder: str) -> list[Any]:
    """The index, then its sections; pages to which it has no link are omitted, which `--strict` complains of."""
    names = {path.name for path in (docs / folder).iterdir() if path.suffix in PAGES} - {"index.md"}
    found: list[Any] = [f"{folder}index.md"]
    section = found
    for match in HEADING_OR_LINK.finditer((docs / folder / "index.md").read_text(encoding="utf-8")):
        if match["heading"]:
            section = []
            found.append({match["heading"]: section})
        elif match["page"] in names:
            names.remove(match["page"])
            section.append(folder + match["page"])
    return [one for one in found if isinstance(one, str) or any(one.values())]
