"""Every numbered behaviour of the tape has a test that names it, or is described as different."""

import pathlib
import re

TESTS = pathlib.Path(__file__).parents[1]
DIFFERENCES = TESTS.parent / "docs" / "differences-from-tensorflow.md"
NUMBER = re.compile(r"\bT(\d{1,3})\b(?:\s*(?:-|to)\s*T(\d{1,3})\b)?")
BEHAVIOURS = set(range(1, 136))


def named(text):
    """The numbers that a text names, ranges included."""
    return {n for first, last in NUMBER.findall(text) for n in range(int(first), int(last or first) + 1)}


def test_every_behaviour_has_a_test_or_is_described_as_different():
    """T1 to T135; this file, which names them all, does not count."""
    files = [path for path in TESTS.rglob("test_*.py") if path != pathlib.Path(__file__)]
    covered = set().union(*(named(path.read_text(encoding="utf-8")) for path in files))
    missing = sorted(BEHAVIOURS - covered - named(DIFFERENCES.read_text(encoding="utf-8")))
    assert not missing, f"no test and no difference names {missing}"


def test_no_number_is_named_that_does_not_exist():
    """A typing error in a number would hide that a behaviour is not covered."""
    for path in (*TESTS.glob("guides/test_*.py"), *TESTS.glob("derivatives/*.py"), DIFFERENCES):
        assert named(path.read_text(encoding="utf-8")) <= BEHAVIOURS, path.name
