"""The index of the search: small, since every page loads it, and so that a name finds its page.

Of a page of the API reference it holds the name, the first paragraph, the names of methods and the words in the name; of other
pages all but the code. A method whose name no page has is found by itself: `fit` leads to `Model.fit`.
"""

from __future__ import annotations

import bisect
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
BETWEEN_WORDS = re.compile(r"_|(?<=[a-z])(?=[A-Z])")
SECTION, SUMMARY = 700, 100
"""Characters that are kept of a section, and of the first paragraph about a name."""
WHOLE = "keras-coverage/"
"""The page that names what is not here; of it all is kept."""
GUIDES, METHODS = 3.0, 4.0
"""The weights of a guide and of a method, beside 1 of other pages and of functions."""
PREFIX = 3.0
"""The factor for a name that begins others: who looks for `Adam` does not mean `Adamax`, though rarer words count more."""
HEADINGS = {"Methods", "Inherited", "Modules", "Classes", "Functions", "Constants"}


def on_post_build(config: MkDocsConfig) -> None:
    path = pathlib.Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    index["docs"] = shortened(index["docs"])
    path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def shortened(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: dict[str, dict[str, Any]] = {}
    methods: dict[str, dict[str, Any]] = {}
    for document in documents:
        page, _, section = document["location"].partition("#")
        if not page.startswith("api/"):
            text = plain(BLOCK.sub("", document["text"]))
            boost = {"boost": GUIDES} if page.startswith("guides/") and page != "guides/" else {}
            kept[document["location"]] = document | {"text": text if page == WHOLE else cut(text, SECTION), **boost}
        elif not section:
            paragraphs = map(plain, PARAGRAPH.findall(BLOCK.sub("", document["text"]))[1:])
            first = next((text for text in paragraphs if not text.startswith("Also tf.")), "").lstrip(" ,.:;")
            title = document["title"].rpartition(".")[2]
            summary = f"{document['title']} {cut(first, SUMMARY)}{words_in(title)}"
            kept[page] = document | {"title": title, "text": summary, "boost": weight(title)}
        elif document["title"] not in HEADINGS:
            kept[page]["text"] += f" {document['title']}"
            shortest = min(document, methods.get(document["title"], document), key=lambda one: len(one["location"]))
            methods[document["title"]] = shortest
    pages = {document["title"] for document in kept.values()}
    named = [method | {"text": "", "boost": METHODS} for name, method in methods.items() if name not in pages]
    kept |= {method["location"]: method for method in named}
    prefer_exact([document for document in kept.values() if document["location"].startswith("api/")])
    return list(kept.values())


def prefer_exact(documents: list[dict[str, Any]]) -> None:
    """A name counts more than those that it begins."""
    titles = sorted(document["title"].lower() for document in documents)
    for document in documents:
        title = document["title"].lower()
        after = bisect.bisect_right(titles, title)
        if after < len(titles) and titles[after].startswith(title):
            document["boost"] *= PREFIX


def cut(text: str, characters: int) -> str:
    """Up to the last whole word within so many characters."""
    return text if len(text) <= characters else text[:characters].rpartition(" ")[0]


def words_in(name: str) -> str:
    """`SeparableConv2D` is found by `conv` as well."""
    words = BETWEEN_WORDS.split(name)
    return " " + " ".join(words) if len(words) > 1 else ""


def weight(name: str) -> float:
    """Who looks for `Newton` means the class of that name rather than `GaussNewton` or a function with `newton` in its name."""
    words = re.findall(r"[A-Z][a-z0-9]*", name)
    return max(1.0, 4.0 / len(words)) if words else 1.0


def plain(text: str) -> str:
    """Without tags; what looked like one in the text stays escaped."""
    words = " ".join(FORMULA.sub(" ", html.unescape(TAG.sub(" ", text))).split())
    return html.escape(re.sub(r" (?=[.,:;])|:(?= ?\.)", "", words), quote=False)
