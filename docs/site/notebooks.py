"""Notebooks as pages: the text, the code and what it printed and drew when the notebook was last executed."""

from __future__ import annotations

import html
import json
import pathlib
import re
from base64 import b64encode
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Notebook(File):
    """A file whose page is written from its cells."""

    def is_documentation_page(self) -> bool:
        return True

    @property
    def content_string(self) -> str:
        text = pathlib.Path(self.abs_src_path or "").read_text(encoding="utf-8")
        return markdown(json.loads(text), self.name)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        files.remove(file)
        files.append(Notebook(file.src_uri, config.docs_dir, config.site_dir, config.use_directory_urls))
    return files


def markdown(notebook: dict[str, Any], name: str) -> str:
    """The text of a page; below its title stands where the notebook can be had."""
    written = "\n\n".join(cell_text(cell) for cell in notebook["cells"])
    title, _, rest = written.partition("\n")
    return f"{title}\n\n*This page is the notebook `docs/tutorials/{name}.ipynb`.*\n{rest}\n"


def cell_text(cell: dict[str, Any]) -> str:
    source = joined(cell["source"])
    if cell["cell_type"] != "code":
        return source
    return "\n\n".join([f"```python\n{source}\n```", *filter(None, map(output_text, cell["outputs"]))])


def output_text(output: dict[str, Any]) -> str:
    """The richest form that a page can show; empty for one it cannot, as a live widget."""
    if output["output_type"] == "stream":
        return printed(joined(output["text"]))
    if output["output_type"] == "error":
        return printed("\n".join(output["traceback"]))
    data = output["data"]
    for kind in ("image/svg+xml", "image/png"):
        if kind in data:
            return f'<img src="data:{kind};base64,{encoded(joined(data[kind]))}" alt="{figure_text(data)}">'
    if "text/html" in data:
        return f'<div class="notebook-output" data-search-exclude>{unindented(joined(data["text/html"]))}</div>'
    return printed(joined(data.get("text/plain", "")))


def encoded(drawing: str) -> str:
    """In base 64; a PNG is kept so already."""
    return b64encode(drawing.encode()).decode() if drawing.lstrip().startswith("<") else drawing.replace("\n", "")


def figure_text(data: dict[str, Any]) -> str:
    return html.escape(joined(data.get("text/plain", "a figure")))


def printed(text: str) -> str:
    """As a terminal shows it: of a line that was written over with carriage returns, the last state."""
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in ESCAPES.sub("", text).rstrip().split("\n")]
    return "```text\n" + "\n".join(lines) + "\n```" if text.strip() else ""


def unindented(markup: str) -> str:
    """A block of HTML ends at an empty line in Markdown, and an indented line after one is code."""
    return "\n".join(line.strip() for line in markup.splitlines() if line.strip())


def joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)
