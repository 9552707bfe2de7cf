"""Limits of a download, the record of what failed, and how the user is told."""

import sys
from collections.abc import Iterable
from typing import NamedTuple


class Attempt(NamedTuple):
    """A place that was tried, and why it did not help."""

    place: str
    reason: str


OFFLINE = Attempt("download", "MINIKERAS_OFFLINE is set")


def tried(attempts: Iterable[Attempt]) -> list[str]:
    """The lines of an error message that list attempts, each once."""
    return [f"  {attempt.place}: {attempt.reason}" for attempt in dict.fromkeys(attempts)]


class Policy(NamedTuple):
    """Limits of a download.

    Args:
        connect_seconds: Bound for connecting to one mirror; two silent mirrors therefore cost 20 s at most.
        read_seconds: Bound for each read.
        total_seconds: Bound for one transfer; less than `files.durable.STALE_SECONDS`.
        rounds: How often the list of mirrors is gone through.
        pause_seconds: Wait between rounds.
        loopback_http: Allow plain http to this machine. For tests only.
    """

    connect_seconds: float = 10.0
    read_seconds: float = 20.0
    total_seconds: float = 1800.0
    rounds: int = 3
    pause_seconds: float = 1.0
    loopback_http: bool = False


DEFAULT_POLICY = Policy()


def announce(message: str) -> None:
    """Tell the user, in one line on stderr, what would otherwise be a silent wait or a silent substitution."""
    print(f"minikeras: {message}", file=sys.stderr, flush=True)
