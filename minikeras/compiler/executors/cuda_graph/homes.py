"""Homes of Variables while programs of a device read and assign them: one piece of memory, updated in place.

A graph has fixed addresses, so a Variable's array is a view of that memory. Values that Python assigns are copied there before
the next run. A Tensor that shares a present value keeps it: the memory then belongs to the Tensor, and the Variables move.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

from ....core import Variable
from ....core.ownership import Owned
from ....core.variable import are_held
from ....layout import Layout
from ....types import Array
from .device import CuPyDevice, Memory
from .preparation import rounded


class Home(NamedTuple):
    """Variables that lie in one piece of memory: one alone, or one column of flattened ones in the order of a layout."""

    variables: tuple[Variable, ...]
    layout: Layout

    @classmethod
    def of(cls, variable: Variable) -> Home:
        """The home of one Variable."""
        array = variable.array
        return cls((variable,), Layout([tuple(array.shape)], array.dtype))

    @property
    def keys(self) -> list[int]:
        """The keys of the Variables."""
        return [variable.key for variable in self.variables]

    @property
    def bytes(self) -> int:
        """The size of its memory in bytes."""
        return int(self.layout.size * self.layout.dtype.itemsize)


class Block:
    """Memory for some homes, with the arrays that their Variables hold."""

    def __init__(self, device: CuPyDevice, homes: Sequence[Home]) -> None:
        self.variables = [variable for home in homes for variable in home.variables]
        self._homes, self._numbers = homes, {variable.key: number for number, variable in enumerate(self.variables)}
        starts = list(itertools.accumulate([rounded(home.bytes) for home in homes], initial=0))
        self.bytes = starts[-1]
        memory = device.memory(self.bytes)
        self.addresses = [memory.address + start for start in starts[:-1]]
        arrays = [*_arrays(device, memory, homes, starts), memory.root]
        del memory  # so that only lasting references are counted next
        self._owned = Owned(arrays)
        _block_of.update(zip(map(id, arrays), itertools.repeat(self, len(self.variables)), strict=False))

    def place(self, home: Home) -> int | None:
        """The address of a home, if it is in this block, or a Variable of such a home."""
        for own, address in zip(self._homes, self.addresses, strict=True):
            if own.keys == home.keys and own.layout.starts == home.layout.starts:
                return address
            if len(home.keys) == 1 and home.keys[0] in own.keys:
                return address + own.layout.starts[own.keys.index(home.keys[0])] * own.layout.dtype.itemsize
        return None

    def piece(self, variable: Variable) -> Array:
        """The array of a Variable."""
        return self._owned.arrays[self._numbers[variable.key]]

    def are_held(self) -> bool:
        """True if all its Variables hold their arrays."""
        return are_held(self._owned.arrays, self.variables)

    def fits(self, homes: Sequence[Home]) -> bool:
        """True if it is memory for exactly these homes, and nothing refers to it."""
        own = [(home.keys, home.layout.starts) for home in self._homes]
        return own == [(home.keys, home.layout.starts) for home in homes] and not self._owned.is_shared

    @property
    def is_seen(self) -> bool:
        """True if anything refers to it beside its Variables: a Tensor, a view, another Variable."""
        held = sum(map(operator.is_, self._owned.arrays, [variable.array for variable in self.variables]))
        return not self._owned.is_shared_by(held)


def _arrays(device: CuPyDevice, memory: Memory, homes: Sequence[Home], starts: Sequence[int]) -> list[Array]:
    """The arrays of Variables over memory in which homes begin at these bytes."""
    return [
        device.array(memory, start + own * home.layout.dtype.itemsize, shape, home.layout.dtype)
        for home, start in zip(homes, starts, strict=False)
        for own, shape in zip(home.layout.starts, home.layout.shapes, strict=True)
    ]


_block_of: WeakValueDictionary[int, Block] = WeakValueDictionary()
"""The blocks by the identity of their arrays, which live as long."""


class Homes:
    """The homes of a program's Variables. Its methods need joined streams.

    Args:
        device: where they are.
        homes: of all Variables that the program reads or assigns.
        written: the numbers of those that it assigns.

    Attributes:
        addresses: the present ones of the homes.
        moves: the number of changes of these.
    """

    def __init__(self, device: CuPyDevice, homes: Sequence[Home], written: Collection[int]) -> None:
        self._device, self._homes, self._written = device, homes, written
        self._of: list[Block] = []
        """For each home the block that it is in."""
        self._blocks: list[Block] = []
        self._spare: Block | None = None
        """The block that was left last because it was seen: two take turns if that happens again and again."""
        self.addresses: list[int] = []
        self.moves = 0

    def begin(self) -> None:
        """Ensure that Variables lie at these addresses, and that nothing else sees their changes there."""
        if not self.moves:
            self._settle()
        elif not all([block.are_held() for block in self._blocks]):
            self._take_in()
        if fresh := self._seen(self._written):
            self._settle(fresh)

    def _seen(self, numbers: Collection[int]) -> set[int]:
        """Those of some homes whose memory something else refers to."""
        blocks = {id(self._of[number]): self._of[number] for number in numbers}
        seen = {key for key, block in blocks.items() if block.is_seen}
        return {number for number in numbers if id(self._of[number]) in seen} if seen else set()

    def keep(self) -> Callable[[], None]:
        """Copy all values; the function returned restores them."""
        copies = [(block, self._device.memory(block.bytes)) for block in self._blocks]
        for block, memory in copies:
            self._device.copy(memory.address, block.addresses[0], block.bytes)

        def bring_back() -> None:
            for block, memory in copies:
                self._device.copy(block.addresses[0], memory.address, block.bytes)

        return bring_back

    def _take_in(self) -> None:
        """Copy the values assigned since; move to the memory of another program that has adopted Variables."""
        stale = [
            (number, variable)
            for number, home in enumerate(self._homes)
            for variable in home.variables
            if variable.array is not self._of[number].piece(variable)
        ]
        if any(id(variable.array) in _block_of for _, variable in stale):
            self._settle()
        elif fresh := self._seen({number for number, _ in stale}):
            self._settle(fresh)
        else:
            for number, variable in stale:
                self._take(variable, self._of[number].piece(variable))

    def _settle(self, fresh: Collection[int] = ()) -> None:
        """Use the memory in which the Variables lie; Variables without any, and `fresh` homes, get new memory."""
        blocks: list[Block | None] = []
        """For each home the block in which it is already."""
        for number, home in enumerate(self._homes):
            block, *others = [_block_of.get(id(variable.array)) for variable in home.variables]
            alone = block is not None and all(one is block for one in others) and block.place(home) is not None
            blocks.append(block if alone and number not in fresh else None)
        missing = [home for home, block in zip(self._homes, blocks, strict=True) if block is None]
        if missing:
            spare, self._spare = self._spare, next((self._of[number] for number in fresh), None)
            made = spare if spare is not None and spare.fits(missing) else Block(self._device, missing)
            blocks = [made if block is None else block for block in blocks]
            for variable in made.variables:
                self._take(variable, made.piece(variable))
        self._of = [block for block in blocks if block is not None]
        self._blocks = list({id(block): block for block in self._of}.values())
        places = [block.place(home) for home, block in zip(self._homes, self._of, strict=True)]
        self.addresses = [place for place in places if place is not None]
        self.moves += 1

    def _take(self, variable: Variable, piece: Array) -> None:
        """Let a Variable hold its piece, with its present value."""
        array = self._device.contiguous(variable.array)
        self._device.copy(self._device.address(piece), self._device.address(array), array.nbytes)
        variable.array = piece
