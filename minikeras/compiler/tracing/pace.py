"""How many steps are carried out in a row before Python looks at what goes on."""

from __future__ import annotations

SECONDS = 0.02
"""What they take together: what is done once for all costs little, and an interrupt is answered soon."""
GROWTH = 4
"""Each time at most so many times as many: the first steps may not be like those that follow."""


class Pace:
    """A number of steps that follows the time they take, at least 1.

    >>> pace = Pace()
    >>> for _ in range(3):
    ...     pace.took(pace.steps, 0.005 * pace.steps)
    >>> pace.steps
    4
    """

    def __init__(self) -> None:
        self.steps = 1

    def took(self, steps: int, seconds: float) -> None:
        """So many steps took so long."""
        fitting = int(SECONDS * steps / max(seconds, 1e-9))
        self.steps = max(1, min(fitting, GROWTH * self.steps))
