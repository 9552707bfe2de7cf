"""Every public name of Keras is here, elsewhere, or left out for a reason; the page that says so is made from this test.

After a change that is meant, write the page anew and read its difference:

    python tests/test_keras_coverage.py && git diff docs/keras-coverage.md
"""

import functools
import pathlib
import sys
from collections import Counter, defaultdict

import minikeras
from minikeras import absent

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parent / "docs" / "keras-coverage.md"
NAMES = [name for name in (HERE / "golden" / "keras_names.txt").read_text().splitlines() if not name.startswith("#")]
THERE, ELSEWHERE, OUT = "there", "elsewhere", "out of scope"
_REASONS = ("There is no", "There are no", "It is Keras's own", "One process", "Code of other", "Models keep their own")
"""How advice begins that gives a reason; any other advice names what is here instead."""


@functools.cache
def settled(name: str) -> tuple[str, str]:
    """Whether a name is there, elsewhere or out of scope, or nothing of these (""), and what is said to who asks for it."""
    parts, found = name.split("."), minikeras
    for position, part in enumerate(parts):
        try:
            found = getattr(found, part)
        except AttributeError:
            advice = absent.advice(".".join(["minikeras", *parts[:position]]), part)
            return (OUT if advice.startswith(_REASONS) else ELSEWHERE if advice else ""), advice
    return THERE, ""


def module_of(name: str) -> str:
    parts = name.split(".")
    return "keras" if len(parts) == 2 else ".".join(parts[:2])


def page() -> str:
    """The document: counts by module, then what is not there, with what to do."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    advised: dict[str, list[str]] = defaultdict(list)
    for name in NAMES:
        status, advice = settled(name)
        counts[module_of(name)][status] += 1
        if status != THERE:
            advised[advice].append(name.removeprefix("keras."))
    total = sum(counts.values(), Counter())
    whole = {module for module, count in counts.items() if not count[THERE] and len(count) == 1}
    lines = [
        "# Which of Keras's names are here",
        "",
        f"Keras 3.15.1 has {len(NAMES)} public names. {total[THERE]} are here under the same name "
        f"({100 * total[THERE] // len(NAMES)} %), {total[ELSEWHERE]} elsewhere, {total[OUT]} are out of scope. "
        "Asking for one of these says what stands below. A test makes this page.",
        "",
        "| module | names | there | elsewhere | out of scope |",
        "|---|---|---|---|---|",
        *(
            f"| `{module}` | {count.total()} | {count[THERE]} | {count[ELSEWHERE]} | {count[OUT]} |"
            for module, count in sorted(counts.items())
        ),
        "",
        "## Not under their own name",
        "",
        "| names | what to do |",
        "|---|---|",
        *(f"| {', '.join(f'`{name}`' for name in listed(names, whole))} | {advice} |" for advice, names in advised.items()),
    ]
    return "\n".join(lines) + "\n"


def listed(names: list[str], whole: set[str]) -> list[str]:
    """The names, with one pattern for those of a module of which nothing is there."""
    return sorted({f"{name.partition('.')[0]}.*" if f"keras.{name.partition('.')[0]}" in whole else name for name in names})


def test_every_name_of_keras_is_settled() -> None:
    assert [name for name in NAMES if not settled(name)[0]] == []


def test_at_least_four_fifths_are_there() -> None:
    assert sum(settled(name)[0] == THERE for name in NAMES) >= 0.8 * len(NAMES)


def test_the_page_says_what_is_true() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tests/test_keras_coverage.py"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}: {len(NAMES)} names\n")
