"""A nav entry that ends in `/` takes in the pages of that folder: `index.md` first, the others sorted by their file names."""

from __future__ import annotations

import pathlib
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

PAGES = {".md", ".ipynb"}


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


def pages(docs: pathlib.Path, folder: str) -> list[str]:
    files = [path for path in (docs / folder).iterdir() if path.suffix in PAGES]
    files.sort(key=lambda path: (path.stem != "index", path.name))
    return [path.relative_to(docs).as_posix() for path in files]
