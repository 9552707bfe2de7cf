"""From the instructions of a program to nodes, and to the order in which a step happens whole or not at all.

Python's preparation comes first: checks, numbers of a step, draws. Then come kernels, products and copies. Those that write
Variables come behind the last instruction that could fail, so they may write in place; counters change right before them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from ....core import Record, Variable
from ....core.arrays import namespace
from ....core.effects import Write
from ....core.registry import operations
from ....core.variable import assigned, read_variable
from ....layout import Layout
from ...ir import Program, Slot, outputs_of, slots_in
from ...passes.forward_state import only_counts, touched
from ...planning import assign_flat, flats_of, flatten, part, read_flat, variables_of
from ..numpy.lowering import Kernel
from .homes import Home
from .lt import KINDS, MatrixProduct
from .nodes import CopyNode, CudaKernel, LaunchNode, Node, ProductNode

Generator = Callable[[Record], Sequence[CudaKernel] | None]
"""A function from an instruction to its kernels; None if there are none."""


class Unsupported(Exception):
    """A program that cannot be carried out by graphs, with the reason."""


class NodeSchedule:
    """The nodes of a program, in order.

    Args:
        program: over NumPy's slots.
        hosted: keys of slots whose values are on the host.
        keys: for new slots.
        generate: writes kernels.
        refused: products that cublasLt does not carry out.

    Attributes:
        first, last: the calls of Python before all nodes, and right before those that write Variables.
        nodes: in order; a `Kernel` among them stands between two graphs.
        homes: of the Variables, and `home_slots` for their values.
        views: by key, the slot in whose memory another one begins, and the byte offset.
        inside: by key, the flat array in which a result is written, and the byte offset.
        exported: for each result of the program that is a slot, the one whose value leaves.
    """

    def __init__(
        self,
        program: Program,
        hosted: Collection[int],
        keys: Iterator[int],
        generate: Generator,
        refused: Collection[MatrixProduct] = (),
    ) -> None:
        self.first: list[Kernel] = []
        self.last: list[Kernel] = []
        self.nodes: list[Node] = []
        self.homes: list[Home] = []
        self.home_slots: list[Slot] = []
        self.views: dict[int, tuple[Slot, int]] = {}
        self.inside: dict[int, tuple[Slot, int]] = {}
        self.exported: list[Slot] = []
        self.hosted, self._generate, self._keys, self._refused = hosted, generate, keys, refused
        self._turned: dict[int, Slot] = {}
        """Matrices that are transposes of others, as long as only products read them."""
        self._early = {slot.key for slot in program.slots() if slot.array is not None} | {x.key for x in program.arguments}
        self._present: dict[int, tuple[Slot, int]] = {}
        """By the key of a Variable the slot in whose memory its present value begins, and the byte offset."""
        self._held: dict[tuple[int, ...], int] = {}
        """By the keys of its Variables the number of a home."""
        self._changed: set[int] = set()
        """Keys of Variables that a call assigns."""
        for record in program.records:
            if "layout" in record.params and variables_of(record):
                for column in _columns(record):
                    self._home(column, record.params["layout"])
        for record in program.records:
            self._lower(record)
        self._leave([x for x in program.results if isinstance(x, Slot)])

    def root(self, x: Slot) -> tuple[Slot, int]:
        """The slot in whose memory another one begins, and the byte offset."""
        start = 0
        while x.key in self.views:
            x, more = self.views[x.key]
            start += more
        return x, start

    @property
    def written(self) -> set[int]:
        """The numbers of homes that are assigned, in whole or in part."""
        return {number for number, home in enumerate(self.home_slots) if self._parts(number) != (home, [])}

    @property
    def segments(self) -> list[list[Node]]:
        """The nodes between two calls; the calls are those of `self.calls`."""
        found: list[list[Node]] = [[]]
        for node in self.nodes:
            if isinstance(node, Kernel):
                found.append([])
            else:
                found[-1].append(node)
        return found

    @property
    def calls(self) -> list[Kernel]:
        """The calls of Python between two segments."""
        return [node for node in self.nodes if isinstance(node, Kernel)]

    # Instructions -----------------------------------------------------------------------------------------------------------

    def _lower(self, record: Record) -> None:
        rule = _RULES.get(record.primitive)
        if record.primitive is assigned:
            hosted = namespace(record.inputs[0].array) is np
        else:
            hosted = any(y.key in self.hosted for y in outputs_of(record))
        if hosted:  # it makes a value on the host, or assigns one to a Variable there
            self._on_host(record)
        elif rule is not None:
            rule(self, record)
        elif record.primitive.effect:
            self._effect(record)
        else:
            self._compute(record)

    def _on_host(self, record: Record) -> None:
        if not all(x.key in self._early for x in slots_in(record.inputs)):
            raise Unsupported(f"{record.primitive.name} brings a value of the device to the host")
        (self.last if record.primitive is assigned else self.first).append(Kernel(record))
        self._early |= {y.key for y in outputs_of(record)}

    def _compute(self, record: Record) -> None:
        plain = Record(record.primitive, list(map(self._plain, record.inputs)), record.params, record.outputs)
        kernels = self._generate(plain)
        if kernels is None:
            self._call(plain)
        elif kernels:
            self.nodes.append(LaunchNode(kernels, [plain]))

    def _plain(self, x: Any) -> Any:
        """A contiguous operand: a transposed matrix is written out unless a product reads it."""
        if not isinstance(x, Slot) or x.key not in self._turned:
            return x
        self._compute(Record(operations.transpose, [self._turned.pop(x.key)], {"perm": (-1, -2)}, x))
        return x

    def slot(self, shape: Any, dtype: Any) -> Slot:
        """A new slot."""
        return Slot(next(self._keys), shape, dtype)

    def _effect(self, record: Record) -> None:
        if only_counts(record) and all(x.shape is None or x.key in self._early for x in slots_in(record.inputs)):
            self.last.append(Kernel(record))
            return
        keys = touched(record)
        if keys is None:
            raise Unsupported(f"{record.primitive.name} may read or assign any Variable")
        homes = [home.key for home in self.home_slots]
        pending = {key for key, (slot, _) in self._present.items() if slot.key not in homes}
        if keys & (pending | self._changed):
            raise Unsupported(f"{record.primitive.name} reads what was assigned before")
        self._call(record)
        if record.primitive.writes:
            self._changed |= keys

    def _call(self, record: Record) -> None:
        """Let Python carry an instruction out: before all nodes if it needs none of their results."""
        call = Kernel(Record(record.primitive, list(map(self._plain, record.inputs)), record.params, record.outputs))
        if all(self.root(x)[0].key in self._early for x in slots_in(call.operands)):
            self.first.append(call)
            self._early |= {y.key for y in call.results}
            return
        self.nodes.append(call)

    # Variables --------------------------------------------------------------------------------------------------------------

    def _home(self, variables: Sequence[Variable], layout: Layout | None = None) -> int:
        keys = tuple([variable.key for variable in variables])
        if keys not in self._held:
            if any(set(keys) & set(known) for known in self._held):
                raise Unsupported("a Variable is read by itself and as part of a flat array")
            self._held[keys] = len(self.homes)
            array = variables[0].array
            shape = tuple(array.shape) if layout is None else (layout.size,)
            self.homes.append(Home(tuple(variables), layout or Layout([shape], array.dtype)))
            self.home_slots.append(self.slot(shape, array.dtype))
            self._hold(len(self.homes) - 1, self.home_slots[-1])
        return self._held[keys]

    def _hold(self, number: int, whole: Slot) -> None:
        """Let the Variables of a home have their present values in a slot, as their layout has them."""
        home = self.homes[number]
        self._present.update(zip(home.keys, [(whole, start) for start in home.starts], strict=True))

    def _read(self, record: Record) -> None:
        (variable,), y = record.inputs, record.outputs
        if variable.key in self._changed:
            raise Unsupported(f"{variable.name} is read after a call that may have assigned it")
        self.views[y.key] = self._held_by(variable)

    def _held_by(self, variable: Variable) -> tuple[Slot, int]:
        """The slot in whose memory the present value of a Variable begins, and the byte offset."""
        if variable.key not in self._present:
            self._home([variable])
        return self._present[variable.key]

    def _read_flat(self, record: Record) -> None:
        for column, y in zip(_columns(record), record.outputs, strict=True):
            self.views[y.key] = self._whole(self._home(column, record.params["layout"])), 0

    def _parts(self, number: int) -> tuple[Slot, list[tuple[Slot, int]]]:
        """The present value of a home; values that single Variables were assigned since, with their byte offsets."""
        own, home = self.home_slots[number], self.homes[number]
        parts = [(*self._present[key], start) for key, start in zip(home.keys, home.starts, strict=True)]
        whole = next((slot for slot, start, to in parts if start == to and slot.bytes == own.bytes), own)
        return whole, [(slot, to) for slot, _, to in parts if slot is not whole]

    def _whole(self, number: int) -> Slot:
        """The present value of a home; values assigned to single Variables are copied into it."""
        present, parts = self._parts(number)
        if not parts:
            return present
        whole = self.slot(present.shape, present.dtype)
        self.nodes += [CopyNode(present, whole), *[CopyNode(value, whole, start) for value, start in parts]]
        self._hold(number, whole)
        return whole

    def _assign(self, record: Record) -> None:
        variable, value = record.inputs
        if variable.key in self._changed:
            raise Unsupported(f"{variable.name} is assigned after a call that may have assigned it")
        if not isinstance(value, Slot) or record.params["conversion"] is not Write.ASSIGN:
            raise Unsupported(f"{variable.name} is assigned a value of another shape or dtype")
        self._held_by(variable)  # it has a home by now
        self._present[variable.key] = self._plain(value), 0

    def _assign_flat(self, record: Record) -> None:
        for column, value in zip(_columns(record), flats_of(record), strict=True):
            self._hold(self._home(column, record.params["layout"]), value)

    # Memory -----------------------------------------------------------------------------------------------------------------

    def _view(self, record: Record) -> None:
        x, y = record.inputs[0], record.outputs
        start = record.params["start"] * y.dtype.itemsize if record.primitive is part else 0
        self.views[y.key] = self._plain(x), start

    def _transpose(self, record: Record) -> None:
        x, y = record.inputs[0], record.outputs
        if len(x.shape) != 2 or record.params["perm"] != (-1, -2):
            self._compute(record)
        elif x.key in self._turned:
            self.views[y.key] = self._turned[x.key], 0
        else:
            self._turned[y.key] = x

    def _flatten(self, record: Record) -> None:
        """A flat array: nodes write their results for it alone directly into it."""
        whole, layout = record.outputs, record.params["layout"]
        whole = whole[0] if type(whole) is tuple else whole
        made = {y.key for node in self.nodes if not isinstance(node, Kernel) for y in node.results}
        for x, start in zip(record.inputs, layout.starts, strict=True):
            x, at = self._plain(x), start * layout.dtype.itemsize
            source, inner = self.root(x)
            free = source.key in made and source.key not in self.inside and not inner and source.bytes == x.bytes
            if x.dtype != layout.dtype:
                raise Unsupported("gradients of several dtypes in one flat array")
            if free and list(record.inputs).count(x) == 1:
                self.inside[source.key] = whole, at
            else:
                self.nodes.append(CopyNode(x, whole, at))

    def _product(self, record: Record) -> None:
        a, b, y = *record.inputs[:2], record.outputs
        flat = isinstance(a, Slot) and isinstance(b, Slot) and len(a.shape) == len(b.shape) == 2
        if not flat or not a.dtype == b.dtype == y.dtype or y.dtype.name not in KINDS or 0 in (*a.shape, *b.shape):
            self._compute(record)
            return
        (rows, columns), depth = y.shape, a.shape[1]
        product = MatrixProduct(rows, columns, depth, a.key in self._turned, b.key in self._turned, y.dtype)
        if product in self._refused:
            self._compute(record)
        else:
            self.nodes.append(ProductNode(product, self._turned.get(a.key, a), self._turned.get(b.key, b), y))

    # The end ----------------------------------------------------------------------------------------------------------------

    def may_join(self, x: Slot, moves: bool = False) -> bool:
        """True if the memory of a value is its own, or with `moves` if another node may write it."""
        if moves:
            return x.key not in self.views
        held = [self.root(value)[0].key for value, _ in self._present.values()]
        return x.key not in self.inside and x.key not in held and x.key not in self._leaving

    @property
    def _leaving(self) -> set[int]:
        """Keys of the slots in whose memory results of the program lie."""
        return {self.root(x)[0].key for x in self.exported}

    def commit(self) -> None:
        """Write the new values of Variables, in place where that is safe."""
        homes, parts = {slot.key for slot in self.home_slots}, list(map(self._parts, range(len(self.homes))))
        wholes = homes | {self.root(value)[0].key for value, _ in parts}
        pieces = [
            (number, start, self._apart(value, wholes)) for number, (_, some) in enumerate(parts) for value, start in some
        ]
        values = {number: self._apart(value, homes) for number, (value, _) in enumerate(parts) if value.key not in homes}
        for number, value in values.items():
            if not self._in_place(value, self.home_slots[number]):
                self.nodes.append(CopyNode(value, self.home_slots[number]))
        self.nodes += [CopyNode(value, self.home_slots[number], start) for number, start, value in pieces]

    def _leave(self, results: Sequence[Slot]) -> None:
        """Let each result be the value of a node that nothing else takes, or a copy made before any Variable is written."""
        made = {y.key for node in self.nodes if not isinstance(node, Kernel) for y in node.results}
        for x in results:
            if x.key in self.hosted:
                self.exported.append(x)
                continue
            source, start = self.root(self._plain(x))
            alone = source.key in made and not start and source.bytes == x.bytes and source.key not in self.inside
            if alone:
                self.exported.append(x)
                continue
            copy = self.slot(x.shape, x.dtype)
            self.nodes.append(CopyNode(x, copy))
            self.exported.append(copy)

    def _apart(self, value: Slot, others: Collection[int]) -> Slot:
        """A value, or a copy, that no commit overwrites before another one reads it: it lies outside the memory of `others`."""
        if self.root(value)[0].key not in others:
            return value
        copy = self.slot(value.shape, value.dtype)
        self.nodes.append(CopyNode(value, copy))
        return copy

    def _in_place(self, value: Slot, home: Slot) -> bool:
        """Let the node that makes a value write it into the Variable's home: it is the last one that reads the old value."""
        source, start = self.root(value)
        made = [place for place, node in enumerate(self.nodes) if any(y.key == source.key for y in node.results)]
        taken = source.key in self.inside or source.key in self._leaving
        if len(made) != 1 or start or taken or source.bytes != home.bytes:
            return False
        (at,) = made
        node, later = self.nodes[at], self.nodes[at + 1 :]
        if isinstance(node, Kernel) or any(isinstance(one, Kernel) for one in later):
            return False
        if any(self.root(x)[0] is home for one in later for x in one.operands):
            return False
        if not self._may_write(node, source, home):
            return False
        self.views[source.key] = home, 0
        return True

    def _may_write(self, node: Node, result: Slot, home: Slot) -> bool:
        """True if a node may write a result into memory that it may read."""
        reads = [self.root(x) for x in node.operands if self.root(x)[0] is home]
        if not reads:
            return True
        if not isinstance(node, LaunchNode) or len(node.kernels) > 1 or any(start for _, start in reads):
            return False
        (kernel,) = node.kernels
        number = [y.key for y in kernel.outputs].index(result.key)
        allowed = kernel.may_alias[number] if kernel.may_alias else ()
        return all(place in allowed for place, x in enumerate(kernel.inputs) if self.root(x)[0] is home)


def _columns(record: Record) -> list[list[Variable]]:
    """Flattened Variables, column by column."""
    variables, count = variables_of(record), len(record.params["layout"].shapes)
    return [variables[start : start + count] for start in range(0, len(variables), count)]


_RULES: dict[Any, Callable[[NodeSchedule, Record], None]] = {
    read_variable: NodeSchedule._read,
    assigned: NodeSchedule._assign,
    read_flat: NodeSchedule._read_flat,
    assign_flat: NodeSchedule._assign_flat,
    flatten: NodeSchedule._flatten,
    part: NodeSchedule._view,
    operations.reshape: NodeSchedule._view,
    operations.transpose: NodeSchedule._transpose,
    operations.matrix_product: NodeSchedule._product,
}
