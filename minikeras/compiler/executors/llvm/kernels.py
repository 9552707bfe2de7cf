"""Kernels: instructions of a program as functions in LLVM's language.

A kernel depends on formulas and dtypes, not on sizes, so programs share kernels: sizes, places and numbers are its operands.

    i64 kernel(ptr operands, ptr addresses, i64 part, i64 parts)

It carries out one of `parts` parts of its work and returns 0, or 1 if an index lies outside its row. `operands` are integers of
64 bits; those that stand for arrays are places in `addresses`. All arrays are C-contiguous. Most are nests (`loop_ir`).
"""

from __future__ import annotations

from typing import Any

from .functions import Instructions, Value, function_text

ALIGN = 16
"""Parts of a row begin at a multiple of so many elements, so that they share no cache line."""


def load_operand(to: Instructions, number: int) -> Value:
    """An operand of the kernel."""
    return to.add(f"load i64, ptr {to.add(f'getelementptr i64, ptr %o, i64 {number}')}")


def load_address(to: Instructions, number: int) -> Value:
    """The address of the array whose place an operand is."""
    return to.add(f"load ptr, ptr {to.add(f'getelementptr ptr, ptr %a, i64 {load_operand(to, number)}')}")


def part_of(to: Instructions, count: Value, align: int) -> tuple[Value, Value]:
    """The first of a part of `count`, and the one after its last; all but the last part end at a multiple of `align`."""

    def bound(part: Value) -> Value:
        at = to.add(f"sdiv i64 {to.add(f'mul i64 {count}, {part}')}, %parts")
        return to.add(f"and i64 {at}, {-align}") if align > 1 else at

    following = to.add("add i64 %part, 1")
    is_last = to.add(f"icmp eq i64 {following}, %parts")
    return bound("%part"), to.add(f"select i1 {is_last}, i64 {count}, i64 {bound(following)}")


class EachKernel:
    """A kernel for each member of a stack; parts are members.

    Its operands are the number of members, for each array its place and the bytes by which it moves on from member to member,
    then the operands of the kernel, to which arrays are known by their numbers here.

    Args:
        kernel: of one member.
        arrays: the number of its arrays.
    """

    def __init__(self, kernel: Any, arrays: int) -> None:
        self.kernel, self._arrays, self.multiplies = kernel, arrays, kernel.multiplies

    def text(self, name: str) -> str:
        """The function, and before it that of the kernel."""
        to, count = Instructions(), self._arrays
        bases = [(load_address(to, 1 + 2 * number), load_operand(to, 2 + 2 * number)) for number in range(count)]
        own = to.add(f"getelementptr i64, ptr %o, i64 {1 + 2 * count}")
        start, stop = part_of(to, load_operand(to, 0), 1)
        places = to.add(f"alloca [{count} x ptr]")
        with to.loop(start, stop) as member:
            for number, (base, stride) in enumerate(bases):
                moved = to.add(f"getelementptr i8, ptr {base}, i64 {to.add(f'mul i64 {member.index}, {stride}')}")
                to.do(f"store ptr {moved}, ptr {to.add(f'getelementptr ptr, ptr {places}, i64 {number}')}")
            status = to.add(f"call i64 @{name}_each(ptr {own}, ptr {places}, i64 0, i64 1)")
            with to.when(to.add(f"icmp ne i64 {status}, 0")):
                to.do("ret i64 1")
        kernel = self.kernel.text(f"{name}_each")
        inner = kernel.replace(f"define i64 @{name}_each(", f"define internal i64 @{name}_each(")
        return f"{inner}\n{function_text(f'i64 @{name}(ptr %o, ptr %a, i64 %part, i64 %parts)', to, 'i64 0')}"
