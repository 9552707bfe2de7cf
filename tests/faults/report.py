"""A line of the table: what was done how often, and what came of it."""

from typing import NamedTuple


class Row(NamedTuple):
    """One result.

    Attributes:
        test: what was done.
        count: how often.
        bad: how many of these went wrong.
        note: further figures.
    """

    test: str
    count: int
    bad: int
    note: str = ""

    def markdown(self) -> str:
        """As a line of a table."""
        return f"| {self.test} | {self.count:,} | {self.bad:,} | {self.note} |"


HEADER = "| test | tries | bad | |\n|---|---|---|---|"
