"""The index of the search: small, since every page loads it, and so that a name finds its page.

Of a page of the API reference it holds the name, the first paragraph and the names of methods; of other pages all but the code.
"""

from __future__ import annotations

import html
import json
import pathlib
import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig

BLOCK = re.compile(r"<pre>.*?</pre>", re.DOTALL)
PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
FORMULA = re.compile(r"\\\(.*?\\\)|\\\[.*?\\\]")
TAG = re.compile(r"<[^>]+>")
SECTION, SUMMARY = 1000, 120
"""Characters that are kept of a section, and of the first paragraph about a name."""
GUIDES = 3.0
"""The weight of a guide, beside 1 of other pages and of functions."""
HEADINGS = {"Methods", "Inherited", "Modules", "Classes", "Functions", "Constants"}


def on_post_build(config: MkDocsConfig) -> None:
    path = pathlib.Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    index["docs"] = shortened(index["docs"])
    path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def shortened(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: dict[str, dict[str, Any]] = {}
    for document in documents:
        page, _, section = document["location"].partition("#")
        if not page.startswith("api/"):
            text = plain(BLOCK.sub("", document["text"]))
            boost = {"boost": GUIDES} if page.startswith("guides/") and page != "guides/" else {}
            kept[document["location"]] = document | {"text": cut(text, SECTION), **boost}
        elif not section:
            paragraphs = map(plain, PARAGRAPH.findall(BLOCK.sub("", document["text"]))[1:])
            first = next((text for text in paragraphs if not text.startswith("Also tf.")), "")
            summary = f"{document['title']} {cut(first, SUMMARY)}"
            title = document["title"].rpartition(".")[2]
            kept[page] = document | {"title": title, "text": summary, "boost": weight(title)}
        elif document["title"] not in HEADINGS:
            kept[page]["text"] += f" {document['title']}"
    return list(kept.values())


def cut(text: str, characters: int) -> str:
    """Up to the last whole word within so many characters."""
    return text if len(text) <= characters else text[:characters].rpartition(" ")[0]


def weight(name: str) -> float:
    """Who looks for `Newton` means the class of that name rather than `GaussNewton` or a function with `newton` in its name."""
    words = re.findall(r"[A-Z][a-z0-9]*", name)
    return max(1.0, 4.0 / len(words)) if words else 1.0


def plain(text: str) -> str:
    """Without tags; what looked like one in the text stays escaped."""
    words = " ".join(FORMULA.sub(" ", html.unescape(TAG.sub(" ", text))).split())
    return html.escape(re.sub(r" (?=[.,:;])", "", words), quote=False)
