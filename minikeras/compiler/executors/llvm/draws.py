"""Kernels of draws: Philox4x32-10 as in `nn_ops/philox4x32.py`, with the same bits, many blocks at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....nn_ops.philox4x32 import INCREMENTS, MULTIPLIERS, ROUNDS
from .functions import Instructions, Value, constant, type_of
from .kernels import load_address, load_operand, part_of

LOW = (1 << 32) - 1
BLOCKS = 128
"""Blocks whose words are made before any is looked at: 2 KB, which stay in the nearest cache."""
GROUP = ", !llvm.access.group !1"


class NextKeyKernel:
    """The keys of the draws that follow. Its operands are the places of out and the keys, and the number of keys, at least 1.

    Args:
        dtype: of the keys, unsigned integers.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._kind = f"i{8 * dtype.itemsize}"

    def text(self, name: str) -> str:
        """The function."""
        to, kind = Instructions(), self._kind
        out, keys, count = load_address(to, 0), load_address(to, 1), load_operand(to, 2)

        def move_on(index: Value) -> None:
            for number in range(2):
                place = to.add(f"add i64 {to.add(f'shl i64 {index}, 1')}, {number}")
                word = to.add(f"load {kind}, ptr {_at(to, kind, keys, place)}{GROUP}")
                word = to.add(f"add {kind} {word}, {number}")
                to.do(f"store {kind} {word}, ptr {_at(to, kind, out, place)}{GROUP}")

        _loop(to, "key", "entry", count, move_on)
        to.do("ret i64 0")
        return "\n".join([f"define i64 @{name}(ptr %o, ptr %a, i64 %part, i64 %parts) {{", "entry:", *to.lines, "}"])


class DrawKernel:
    """A mask of dropout, or uniform numbers. Its operands are the places of out and the key, the number of elements, and for a
    mask the least 16 bits that are kept and what takes their place, as bits of float64. For a part of a larger draw there is
    one more: the element of that one which comes first.

    Args:
        key: dtype of the key.
        dtype: of the result, float32 or float64.
        is_mask: whether it is a mask.
        is_part: whether it is a part.
    """

    def __init__(self, key: np.dtype[Any], dtype: np.dtype[Any], is_mask: bool, is_part: bool = False) -> None:
        self._key, self._dtype, self._is_mask, self._is_part = key, dtype, is_mask, is_part
        self._bits = 16 if is_mask else 8 * dtype.itemsize
        """Of one element."""

    def text(self, name: str) -> str:
        """The function: for each chunk a loop over blocks, which makes words, and one over elements, which reads them."""
        to, per_block, blocks = Instructions(), 128 // self._bits, BLOCKS + self._is_part
        per_chunk = BLOCKS * per_block
        out, key = load_address(to, 0), load_address(to, 1)
        start, stop = part_of(to, load_operand(to, 2), per_chunk)
        begin, before = self._beginning(to, per_block)
        words = to.add(f"alloca [{2 * blocks} x i64], align 64")
        x1, y1, keys = self._begin(to, key)
        element = self._element(to)
        to.do("br label %chunk")
        to.label("chunk")
        to.do(f"%at = phi i64 [ {start}, %entry ], [ %after, %next ]")
        to.do(f"br i1 {to.add(f'icmp slt i64 %at, {stop}')}, label %begin, label %done")
        to.label("begin")
        first = begin(to.add(f"udiv i64 %at, {per_block}"))
        _loop(to, "block", "begin", str(blocks), lambda index: _write_block(to, words, index, first, x1, y1, keys))
        count = to.intrinsic("smin", "i64", to.add(f"sub i64 {stop}, %at"), str(per_chunk))

        def write(index: Value) -> None:
            raw = to.add(f"load i{self._bits}, ptr {_at(to, f'i{self._bits}', words, before(index))}{GROUP}")
            place = _at(to, type_of(self._dtype), out, to.add(f"add i64 %at, {index}"))
            to.do(f"store {type_of(self._dtype)} {element(raw)}, ptr {place}{GROUP}")

        _loop(to, "element", "block.done", count, write)
        to.do("br label %next")
        to.label("next")
        to.do(f"%after = add i64 %at, {per_chunk}")
        to.do("br label %chunk")
        to.label("done")
        to.do("ret i64 0")
        lines = [f"define i64 @{name}(ptr %o, ptr %a, i64 %part, i64 %parts) {{", "entry:", *to.lines, "}"]
        return "\n".join([*sorted(to.declared), *lines])

    def _beginning(self, to: Instructions, per_block: int) -> tuple[Callable[[Value], Value], Callable[[Value], Value]]:
        """What gives the number of a block in the whole draw, and the place of an element among the words."""
        if not self._is_part:
            return lambda block: block, lambda element: element
        start = load_operand(to, 5 if self._is_mask else 3)
        begin, before = to.add(f"udiv i64 {start}, {per_block}"), to.add(f"urem i64 {start}, {per_block}")
        return lambda block: to.add(f"add i64 {block}, {begin}"), lambda element: to.add(f"add i64 {element}, {before}")

    def _begin(self, to: Instructions, key: Value) -> tuple[Value, Value, list[tuple[Value, Value]]]:
        """The two words of the position, and the words of the key in each round."""
        kind = f"i{8 * self._key.itemsize}"
        seed, position = [to.add(f"load {kind}, ptr {_at(to, kind, key, number)}") for number in range(2)]
        if kind == "i32":
            seed, position = to.add(f"zext i32 {seed} to i64"), to.add(f"zext i32 {position} to i64")
        own = [_low(to, seed), _high(to, seed)]
        keys = [
            [_low(to, to.add(f"add i64 {word}, {n * step & LOW}")) for n in range(ROUNDS)]
            for word, step in zip(own, INCREMENTS, strict=True)
        ]
        return _low(to, position), _high(to, position), list(zip(*keys, strict=True))

    def _element(self, to: Instructions) -> Any:
        """What makes an element of its bits."""
        kind = type_of(self._dtype)
        if not self._is_mask:
            own, scale = (24, 2.0**-24) if kind == "float" else (53, 2.0**-53)
            shifted = f"i{self._bits}", self._bits - own

            def uniform(raw: Value) -> Value:
                whole = to.add(f"lshr {shifted[0]} {raw}, {shifted[1]}")
                return to.add(f"fmul {kind} {to.add(f'uitofp {shifted[0]} {whole} to {kind}')}, {constant(scale, kind)}")

            return uniform
        least = to.add(f"trunc i64 {load_operand(to, 3)} to i32")
        exact = to.add(f"bitcast i64 {load_operand(to, 4)} to double")
        scale_of = to.add(f"fptrunc double {exact} to float") if kind == "float" else exact

        def mask(raw: Value) -> Value:
            kept = to.add(f"icmp uge i32 {to.add(f'zext i16 {raw} to i32')}, {least}")
            return to.add(f"select i1 {kept}, {kind} {scale_of}, {kind} 0.0")

        return mask


def _loop(to: Instructions, name: str, before: str, count: Value, body: Callable[[Value], None]) -> None:
    """A loop that LLVM vectorizes; `count` is at least 1."""
    to.do(f"br label %{name}")
    to.label(name)
    to.do(f"%{name}.i = phi i64 [ 0, %{before} ], [ %{name}.n, %{name} ]")
    body(f"%{name}.i")
    to.do(f"%{name}.n = add nuw nsw i64 %{name}.i, 1")
    to.do(f"br i1 {to.add(f'icmp slt i64 %{name}.n, {count}')}, label %{name}, label %{name}.done, !llvm.loop !0")
    to.label(f"{name}.done")


def _write_block(to: Instructions, words: Value, index: Value, first: Value, x1: Value, y1: Value, keys: Any) -> None:
    """The four words of one block, two in each 64 bits."""
    number = to.add(f"add i64 {first}, {index}")
    x, y = [_low(to, number), x1], [_high(to, number), y1]
    products: list[Value] = []
    for key in keys:
        products = [to.add(f"mul i64 {one}, {factor}") for one, factor in zip(x, MULTIPLIERS, strict=True)][::-1]
        mixed = [to.add(f"xor i64 {_high(to, product)}, {other}") for product, other in zip(products, y, strict=True)]
        x = [to.add(f"xor i64 {one}, {word}") for one, word in zip(mixed, key, strict=True)]
        y = [_low(to, product) for product in products]
    place = to.add(f"shl i64 {index}, 1")
    for number_of, (one, product) in enumerate(zip(x, products, strict=True)):
        pair = to.add(f"or i64 {one}, {to.add(f'shl i64 {product}, 32')}")
        to.do(f"store i64 {pair}, ptr {_at(to, 'i64', words, to.add(f'or i64 {place}, {number_of}'))}{GROUP}")


def _at(to: Instructions, kind: str, array: Value, index: Value | int) -> Value:
    return to.add(f"getelementptr {kind}, ptr {array}, i64 {index}")


def _low(to: Instructions, x: Value) -> Value:
    return to.add(f"and i64 {x}, {LOW}")


def _high(to: Instructions, x: Value) -> Value:
    return to.add(f"lshr i64 {x}, 32")
