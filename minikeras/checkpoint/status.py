"""What `restore` returns: questions about what was restored."""

from __future__ import annotations

from typing import Any

from .graph import Graph
from .restoring import Restoration, listed

COUNTER = "save_counter"


class LoadStatus:
    """The result of `Checkpoint.restore`; each question returns the status itself, so that they can be chained."""

    def __init__(self, restoration: Restoration, root: Any) -> None:
        self._restoration, self._root = restoration, root

    def _unmatched(self) -> list[str]:
        """Paths of objects that have got no value."""
        if self._restoration.due:
            self._restoration.visit(("", self._root))
        leaves = Graph(("", self._root)).leaves
        return [path for path, leaf in leaves.items() if path != COUNTER and not self._restoration.is_done(leaf)]

    def assert_existing_objects_matched(self) -> LoadStatus:
        """Every Variable there is by now has got its value from the checkpoint; an AssertionError names those that have not."""
        self._require(existing=self._unmatched(), unused=[])
        return self

    def assert_consumed(self) -> LoadStatus:
        """As `assert_existing_objects_matched`, and every saved value has found its place."""
        existing = self._unmatched()  # which may find places
        self._require(existing, sorted(self._restoration.due - {COUNTER}))
        return self

    def assert_nontrivial_match(self) -> LoadStatus:
        """At least one value has found its place."""
        self._unmatched()
        if not set(self._restoration.used) - {COUNTER}:
            self._require([], sorted(self._restoration.due) or ["nothing at all"])
        return self

    def expect_partial(self) -> LoadStatus:
        """Say nothing about saved values that are never used."""
        self._restoration.quiet = True
        return self

    def _require(self, existing: list[str], unused: list[str]) -> None:
        self._restoration.quiet = True
        if existing or unused:
            lines = [f"restore from '{self._restoration.source}': objects and values do not match."]
            lines += listed("objects without a value", existing) + listed("values without an object", unused)
            raise AssertionError("\n".join(lines))


class NothingLoaded:
    """The result of `restore(None)`: no checkpoint, so nothing matches, which is no error until it is asked."""

    def assert_consumed(self) -> NothingLoaded:
        """Raises AssertionError."""
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed

    def expect_partial(self) -> NothingLoaded:
        """Nothing to silence."""
        return self
