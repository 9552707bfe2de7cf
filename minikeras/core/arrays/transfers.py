"""What is copied between host and device, for those who count it. The two ways are `to_device` and `to_numpy`."""

from __future__ import annotations

from typing import Self


class Transfers:
    """Copies between the memory of the host and that of devices within a `with` block, in all threads.

    Attributes:
        to_device, to_host: how many copies there were.
        bytes_to_device, bytes_to_host: how much they moved.
    """

    def __init__(self) -> None:
        self.to_device = self.to_host = self.bytes_to_device = self.bytes_to_host = 0

    def __enter__(self) -> Self:
        counters.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        counters.remove(self)

    def __repr__(self) -> str:
        there, back = (f"{n} of {size:,} bytes" for n, size in self._both())
        return f"<Transfers to devices: {there}, to the host: {back}>"

    def _both(self) -> tuple[tuple[int, int], tuple[int, int]]:
        return (self.to_device, self.bytes_to_device), (self.to_host, self.bytes_to_host)


counters: list[Transfers] = []
"""Those that count at this moment."""


def note_to_device(size: int) -> None:
    """A copy of so many bytes to a device."""
    for one in counters:
        one.to_device += 1
        one.bytes_to_device += size


def note_to_host(size: int) -> None:
    """A copy of so many bytes to the host."""
    for one in counters:
        one.to_host += 1
        one.bytes_to_host += size
