"""From the instructions of a program to nodes, and to the order in which a step happens whole or not at all.

Python's preparation comes first: checks, numbers of a step, draws. Then come kernels, products and copies. Those that write
Variables come behind the last instruction that could fail, so they may write in place; counters change right before them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core import Record, Variable, Write, assigned, namespace, operations, read_variable
from ....layout import Layout
from ...ir import Program, Slot, outputs_of, slots_in
from ...passes.forward_state import only_counts, touched
from ...planning import aliases_of
from ...variable_storage import assign_flat, columns_of, flats_of, flatten, part, read_flat, variables_of
from ..numpy.lowering import Kernel
from .lt import KINDS, MatrixProduct
from .nodes import CopyNode, Emitter, LaunchNode, Node, ProductNode


class Unsupported(Exception):
    """A program that cannot be carried out by graphs, with the reason."""


class Home(NamedTuple):
    """Variables that lie in one piece of memory: one alone, or one column of flattened ones in the order of a layout.

    `slot` has their values at the beginning of a run.
    """

    variables: tuple[Variable, ...]
    layout: Layout
    slot: Slot

    @property
    def places(self) -> list[tuple[int, int]]:
        """The keys of the Variables, each with its byte offset."""
        size = int(self.layout.dtype.itemsize)
        return [(one.key, start * size) for one, start in zip(self.variables, self.layout.starts, strict=True)]


class NodeSchedule:
    """The nodes of a program, in order.

    Args:
        program: over NumPy's slots.
        hosted: keys of slots whose values are on the host.
        keys: for new slots.
        refused: products that cublasLt does not carry out.

    Attributes:
        first, last: the calls of Python before all nodes, and right before those that write Variables.
        nodes: in order; a `Kernel` among them stands between two graphs.
        views: by key, the slot in whose memory another one begins, and the byte offset.
        inside: by key, the flat array in which a result is written, and the byte offset.
        exported: for each result of the program that is a slot, the one whose value leaves.
    """

    def __init__(
        self, program: Program, hosted: Collection[int], keys: Iterator[int], refused: Collection[MatrixProduct] = ()
    ) -> None:
        self.first: list[Kernel] = []
        self.last: list[Kernel] = []
        self.nodes: list[Node] = []
        self.views: dict[int, tuple[Slot, int]] = {}
        self.inside: dict[int, tuple[Slot, int]] = {}
        self.exported: list[Slot] = []
        self.hosted, self._emitter, self._keys, self._refused = hosted, Emitter(keys), keys, refused
        self._turned: dict[int, Slot] = {}
        """Matrices that are transposes of others, as long as only products read them."""
        self._early = {slot.key for slot in program.slots() if slot.array is not None} | {x.key for x in program.arguments}
        self._present: dict[int, tuple[Slot, int]] = {}
        """By the key of a Variable the slot in whose memory its present value begins, and the byte offset."""
        self._homes: dict[tuple[int, ...], Home] = {}
        """The homes by the keys of their Variables."""
        self._changed: set[int] = set()
        """Keys of Variables that a call assigns."""
        for record in program.records:
            if "layout" in record.params and variables_of(record):
                for column in columns_of(record):
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
    def homes(self) -> list[Home]:
        """The homes of Variables, in the order of their places."""
        return list(self._homes.values())

    def assigns(self, home: Home) -> bool:
        """True if a home is assigned, in whole or in part."""
        return self._parts(home) != (home.slot, [])

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
        kernels = self._emitter.kernels(plain)
        if kernels is None:
            self._call(plain)
        elif kernels:
            self.nodes.append(LaunchNode(kernels, plain))

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
        homes = [home.slot.key for home in self.homes]
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

    def _home(self, variables: Sequence[Variable], layout: Layout | None = None) -> Home:
        keys = tuple([variable.key for variable in variables])
        if keys not in self._homes:
            if self._present.keys() & {*keys}:
                raise Unsupported("a Variable is read by itself and as part of a flat array")
            array = variables[0].array
            shape = tuple(array.shape) if layout is None else (layout.size,)
            home = Home(tuple(variables), layout or Layout([shape], array.dtype), self.slot(shape, array.dtype))
            self._homes[keys] = home
            self._hold(home, home.slot)
        return self._homes[keys]

    def _hold(self, home: Home, whole: Slot) -> None:
        """Let the Variables of a home have their present values in a slot, as their layout has them."""
        self._present.update({key: (whole, start) for key, start in home.places})

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
        for column, y in zip(columns_of(record), record.outputs, strict=True):
            self.views[y.key] = self._whole(self._home(column, record.params["layout"])), 0

    def _parts(self, home: Home) -> tuple[Slot, list[tuple[Slot, int]]]:
        """The present value of a home; values that single Variables were assigned since, with their byte offsets."""
        parts = [(*self._present[key], start) for key, start in home.places]
        whole = next((x for x, start, to in parts if start == to and x.bytes == home.slot.bytes), home.slot)
        return whole, [(slot, to) for slot, _, to in parts if slot is not whole]

    def _whole(self, home: Home) -> Slot:
        """The present value of a home; values assigned to single Variables are copied into it."""
        present, parts = self._parts(home)
        if not parts:
            return present
        whole = self.slot(present.shape, present.dtype)
        self.nodes += [CopyNode(present, whole), *[CopyNode(value, whole, start) for value, start in parts]]
        self._hold(home, whole)
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
        for column, value in zip(columns_of(record), flats_of(record), strict=True):
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
        homes = {home.slot.key for home in self.homes}
        parts = [(home, *self._parts(home)) for home in self.homes]
        wholes = homes | {self.root(value)[0].key for _, value, _ in parts}
        pieces = [(home, self._apart(value, wholes), start) for home, _, some in parts for value, start in some]
        values = [(home, self._apart(value, homes)) for home, value, _ in parts if value.key not in homes]
        self.nodes += [CopyNode(value, home.slot) for home, value in values if not self._in_place(value, home.slot)]
        self.nodes += [CopyNode(value, home.slot, start) for home, value, start in pieces]

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
        node, later = self.nodes[made[0]], self.nodes[made[0] + 1 :]
        if any(isinstance(one, Kernel) for one in (node, *later)):
            return False
        if any(self.root(x)[0] is home for one in later for x in one.operands) or not self._may_write(node, source, home):
            return False
        self.views[source.key] = home, 0
        return True

    def _may_write(self, node: Node, result: Slot, home: Slot) -> bool:
        """True if a node may write a result into memory that it may read."""
        reads = [(place, self.root(x)[1]) for place, x in enumerate(node.operands) if self.root(x)[0] is home]
        return all(not start and place in aliases_of(node, result.key) for place, start in reads)


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
