"""From a docstring to Markdown: paragraphs, sections of arguments, formulas, examples.

A line that ends with a colon and is followed by an indented one, as `Args:`, begins a section. An indented block after an
empty line is a formula or a piece of text that keeps its lines, and `>>>` begins an example, which ends at an empty line.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Callable, Collection

from formulas import as_latex, rendered

CODE = re.compile(r"(`[^`\n]+`)")
SPECIAL = re.compile(r"([\\*_\[\]#~$|{}])")
ENTRY = re.compile(r"(\*{0,2}[A-Za-z_][\w.]*(?:,\s+\*{0,2}[A-Za-z_][\w.]*)*): (.+)", re.DOTALL)

Link = Callable[[str], str | None]
"""From a name in backticks to the address of its page, or None."""


def markdown(docstring: str, link: Link, words: Collection[str] = ()) -> str:
    """With the names of arguments, `words`, read as factors in formulas: `(H + damping I) s`."""
    return "\n\n".join(block_text(block, link, words) for block in blocks(docstring))


def blocks(docstring: str) -> list[list[str]]:
    """The lines between empty ones; an example or formula with empty lines inside is several blocks."""
    found: list[list[str]] = [[]]
    for line in docstring.strip().split("\n"):
        begins = line.startswith(">>> ") and found[-1] and not found[-1][-1].startswith((">>> ", "... "))
        if not line.strip() or (begins and not found[-1][0].startswith(">>> ")):
            found.append([])
        if line.strip():
            found[-1].append(line.rstrip())
    return [block for block in found if block]


def block_text(block: list[str], link: Link, words: Collection[str]) -> str:
    if block[0].startswith(">>> "):
        return fenced("pycon", block)
    if block[0].startswith("    "):
        return formula(block, words)
    if block[0].endswith(":") and len(block) > 1 and block[1].startswith("    "):
        return section(block[0], block[1:], link)
    return inline("\n".join(block), link, words)


def fenced(language: str, lines: list[str]) -> str:
    return "\n".join([f"```{language}", *lines, "```"])


def formula(lines: list[str], words: Collection[str]) -> str:
    """Rendered where every line of it can be read as one, else as it is written."""
    lines = textwrap.dedent("\n".join(lines)).split("\n")
    latex = [as_latex(line, words) for line in lines]
    if not all(latex):
        return fenced("text", lines)
    return "\n".join(f'<div class="arithmatex">{as_entities("[", line or "", "]")}</div>' for line in latex)


def section(title: str, lines: list[str], link: Link) -> str:
    """A definition list where each entry names something, else a paragraph."""
    entries = re.split(r"\n(?!\s)", textwrap.dedent("\n".join(lines)))
    named = [ENTRY.fullmatch(entry) for entry in entries]
    heading = f"{inline(title.rstrip(':'), link)}\n{{ .section }}"
    if not all(named):
        return f"{heading}\n\n{inline(textwrap.dedent(chr(10).join(lines)), link)}"
    texts = [(flat(entry[1]), flat(entry[2])) for entry in named if entry]
    items = [f"`{name}`\n:   {inline(text, link)}" for name, text in texts]
    return f"{heading}\n\n" + "\n\n".join(items)


def flat(text: str) -> str:
    return " ".join(text.split())


def inline(text: str, link: Link, words: Collection[str] | None = None) -> str:
    """Text whose only markup are backticks, and names in them that have a page; given `words`, with formulas rendered."""
    parts = CODE.split(text)
    return "".join(code(part, link) if part.startswith("`") else prose(part, words) for part in parts)


def prose(text: str, words: Collection[str] | None) -> str:
    if words is None or text.startswith("Source: "):
        return escaped(text)
    return "".join(math_span(part) if math else escaped(part) for math, part in rendered(text, words))


def math_span(latex: str) -> str:
    return f'<span class="arithmatex">{as_entities("(", latex, ")")}</span>'


def as_entities(opening: str, latex: str, closing: str) -> str:
    """Between delimiters, and so written that Markdown sees no markup in it."""
    return re.sub(r"[^a-zA-Z0-9\s]", lambda found: f"&#{ord(found[0])};", f"\\{opening}{latex}\\{closing}")


def code(part: str, link: Link) -> str:
    target = link(part.strip("`"))
    return f"[{part}]({target})" if target else part


def escaped(text: str) -> str:
    return SPECIAL.sub(r"\\\1", html.escape(text, quote=False))
