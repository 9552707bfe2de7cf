"""The API reference: a page for each public function and class, made from its docstring, and one for each module.

The names are those of `tests/public_names.txt`, as users write them, with `tf` for `minikeras`. Many functions are made from
rows of tables when the package is imported, so the objects themselves are asked, not their files.
"""

from __future__ import annotations

import functools
import inspect
import posixpath
import re
from typing import Any

import docstrings
import signatures
import sources
from catalogue import FOLDER, Catalogue, Entry, anchor, module_path
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Navigation, Section

INDEX = """# API reference

Every public name, `tf` being `minikeras`. Examples take `import minikeras as tf` for granted; a test runs each of them.

| module | what is in it |
|---|---|
"""


@functools.cache
def catalogue() -> Catalogue:
    return Catalogue()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The nav's entry `api/` becomes the tree of modules."""
    config.nav = [{title: nav() if item == FOLDER else item for title, item in one.items()} for one in config.nav or []]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    known = catalogue()
    for name in known.modules:
        files.append(File.generated(config, module_path(name), content=module_page(known, name)))
    for entry in {entry.path: entry for entry in known.entries.values()}.values():
        text = object_page(known, entry)
        files.append(File.generated(config, entry.path, content=text, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """The page of an object lies in its module, although the nav ends with modules: it would be too long with all."""
    pages = {file.src_uri: file.page for file in files.documentation_pages()}
    for entry in catalogue().entries.values():
        module = pages[module_path(entry.module)]
        page = pages[entry.path]
        assert module is not None and page is not None
        page.parent = module.parent if isinstance(module.parent, Section) and module.is_index else module
    return nav


def nav() -> list[Any]:
    modules = catalogue().modules

    def branch(name: str) -> dict[str, Any]:
        inside = [one for one in modules if one.rpartition(".")[0] == name]
        return {name.rpartition(".")[2]: [module_path(name), *map(branch, inside)] if inside else module_path(name)}

    return branch("tf")["tf"]


def module_page(known: Catalogue, name: str) -> str:
    here = module_path(name)
    link = known.link(here, name)
    parts = [f"# {breakable(name)}"] if name != "tf" else [INDEX + module_rows(known, here), "## tf"]
    if name != "tf":
        parts.append(docstrings.inline(module_text(known.modules[name]), link))
        inside = [one for one in known.modules if one.rpartition(".")[0] == name]
        parts += table("Modules", [(one, module_text(known.modules[one])) for one in inside], link)
    members = known.members[name]
    entries = [one for one in members if one in known.entries]
    for title, wanted in (("Classes", True), ("Functions", False)):
        chosen = [one for one in entries if isinstance(known.entries[one].value, type) is wanted]
        parts += table(title, [(one, first_line(known.entries[one].value)) for one in chosen], link)
    parts += constants(known, [one for one in members if one in known.constants])
    return "\n\n".join(parts)


def module_rows(known: Catalogue, here: str) -> str:
    rows = [
        row(name, name, module_text(module), known.link(here, "tf")) for name, module in known.modules.items() if name != "tf"
    ]
    return "\n".join(rows)


def table(title: str, members: list[tuple[str, str]], link: docstrings.Link) -> list[str]:
    """A line for each name: what its docstring says first."""
    if not members:
        return []
    return [
        f"## {title}",
        "\n".join(["| name | |", "|---|---|", *(row(name, name.rpartition(".")[2], text, link) for name, text in members)]),
    ]


def row(name: str, shown: str, text: str, link: docstrings.Link) -> str:
    return f"| [`{shown}`]({link(name)}) | {docstrings.inline(text, link)} |"


def module_text(module: Any) -> str:
    """The first sentence of its docstring, without the name; what follows is for those who change the module."""
    sentence = re.split(r"\.(?:\s|$)", re.sub(r"^[`\w.]+: ", "", inspect.getdoc(module) or ""), maxsplit=1)[0]
    return sentence[:1].upper() + " ".join(sentence[1:].split()) + "."


def constants(known: Catalogue, names: list[str]) -> list[str]:
    if not names:
        return []
    rows = [f'| <span id="{anchor(name)}"></span>`{name}` | `{signatures.shown(known.constants[name])}` |' for name in names]
    return ["## Constants", "\n".join(["| name | value |", "|---|---|", *rows])]


def first_line(value: Any) -> str:
    """The first sentence, or the first paragraph where it is short."""
    paragraph = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    return paragraph if len(paragraph) <= 160 else paragraph.partition(". ")[0]


def object_page(known: Catalogue, entry: Entry) -> str:
    link = known.link(entry.path, entry.module)
    parts = [f"# {breakable(entry.name)}", f"{trail(entry, link)}{place_text(entry.value, entry.path)}\n{{ .trail }}"]
    if len(entry.names) > 1:
        parts.append("Also " + ", ".join(f"`{name}`" for name in entry.names[1:]) + ".")
    parts.append(docstrings.fenced("python", [signatures.call(entry.name, entry.value)]))
    parts.append(docstrings.markdown(inspect.getdoc(entry.value) or "", link, signatures.arguments(entry.value)))
    if isinstance(entry.value, type):
        parts += class_parts(known, entry, link)
    return "\n\n".join(parts)


def trail(entry: Entry, link: docstrings.Link) -> str:
    return f"[{entry.module}]({link(entry.module)}) · "


def breakable(name: str) -> str:
    """A long name may break after its dots, and between its words, on a narrow screen."""
    return re.sub(r"(?<=\.)|(?<=[a-z])(?=[A-Z])", "<wbr>", name)


def class_parts(known: Catalogue, entry: Entry, link: docstrings.Link) -> list[str]:
    """The methods that the class defines itself, and where the others come from."""
    own, inherited = methods(known, entry.value)
    parts = []
    if own:
        parts.append("## Methods")
    for name, method in own.items():
        parts += [f"### {name}", *method_parts(name, method, link)]
    rows = [base_row(known, base, names, link) for base, names in inherited.items()]
    return [*parts, "## Inherited", "\n".join(["| from | |", "|---|---|", *rows])] if rows else parts


def base_row(known: Catalogue, base: type, names: list[str], link: docstrings.Link) -> str:
    page = link(next(entry.name for entry in known.entries.values() if entry.value is base))
    return f"| [`{base.__name__}`]({page}) | {', '.join(f'[`{name}`]({page}#{name.lower()})' for name in names)} |"


def method_parts(name: str, method: Any, link: docstrings.Link) -> list[str]:
    text = docstrings.markdown(inspect.getdoc(method) or "", link)
    if isinstance(method, property):
        return ["*property*", text]
    function = method.__func__ if isinstance(method, classmethod | staticmethod) else method
    shown = docstrings.fenced("python", [signatures.call(name, function)])
    kind = type(method).__name__
    return [shown, *([f"*{kind}*"] if kind in ("classmethod", "staticmethod") else []), text]


def methods(known: Catalogue, kind: type) -> tuple[dict[str, Any], dict[type, list[str]]]:
    """Documented public methods and properties of a class: its own, and the names of those of its bases."""
    own: dict[str, Any] = {}
    inherited: dict[type, list[str]] = {}
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("minikeras"):
            continue
        for name, value in vars(base).items():
            documented = inspect.isroutine(value) or isinstance(value, property | classmethod | staticmethod)
            if name in seen or name.startswith("_") or not documented:
                continue
            seen.add(name)
            if base is kind or not known.is_public(base):
                own[name] = value
            else:
                inherited.setdefault(base, []).append(name)
    return own, inherited


def place_text(value: Any, here: str) -> str:
    """A link to the line of the source."""
    found = signatures.place(value)
    if found is None:
        return ""
    file, line = found
    address = posixpath.relpath(sources.address(file), posixpath.dirname(here))
    return f"[{file.relative_to(sources.ROOT).as_posix()}]({address}#L-{line})"
