"""The graph between the inputs and the outputs of a functional model: found once, put in order once, run at every call.

A KerasTensor leads back to the call that made it. Walking back from the outputs finds all calls; laid out in order they are a
plan: for each call the registers of its arguments, those of its results, and those that no later call reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ... import nest
from ...core import Tensor, cached_property, convert_to_tensor, warn_caller
from ...errors import ShapeError
from ...functions.elementwise import cast
from ...types import TensorLike
from ..layers.core import InputLayer, entrance
from ..layers.inputs import of_rank, only_tensor
from ..symbolic import KerasTensor, Node, nodes_of
from ..symbolic.operation import Operation


class Register(int):
    """The position of a value in a run; in arguments it stands for the value that will be there."""


class PlannedCall(NamedTuple):
    """One call of the plan, with Registers in the place of values.

    Attributes:
        source: the register of its only argument; None if the call is not that simple.
        targets: registers of the results.
        spent: registers that no later call reads.
    """

    operation: Any
    source: int | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    targets: tuple[int, ...]
    spent: tuple[int, ...]


class Index(NamedTuple):
    """The number of each tensor among the inputs, the calls of each operation by its `id`, and the place of each node there."""

    begins: dict[tuple[int, int], int]
    calls: dict[int, list[Node]]
    numbers: dict[int, int]


class LayerGraph:
    """Layers between KerasTensors.

    Attributes:
        inputs, outputs: as given; inputs that other layers made are replaced by entrances of their own.
        begins: the inputs as they were given, in flattening order.
        nodes: the calls, in an order in which they can be made.
        operations: what is called, entrances included, by depth: the most calls away from the outputs first, as in Keras.

    Raises:
        ValueError: if something is no KerasTensor, an output depends on an input that is not given, or a name is used twice.
    """

    def __init__(self, inputs: Any, outputs: Any) -> None:
        for role, structure in (("inputs", inputs), ("outputs", outputs)):
            for leaf in nest.flatten(structure):
                if not isinstance(leaf, KerasTensor):
                    raise ValueError(
                        f"All `{role}` values must be KerasTensors, made by keras.Input and by calling layers on it. Received: "
                        f"{role}={structure!r:.200} including invalid value {leaf!r:.80} of type {type(leaf)}."
                    )
        cut = nest.flatten(inputs)
        given = Counter(one.key for one in cut)
        for one in cut:
            if given[one.key] > 1:
                raise ValueError(f"The input '{one.name}' is given {given[one.key]} times; every input may occur once.")
        entrances = [
            one
            if isinstance(one.node.operation, InputLayer)
            else entrance(InputLayer(batch_shape=one.shape, dtype=one.dtype, name=f"{one.name}_input"))
            for one in cut
        ]
        self.inputs, self.outputs = nest.pack(inputs, entrances), outputs
        self.begins = tuple(cut)
        self.nodes, visited = _walked(_symbols(outputs), self._positions())
        self.operations = self._by_depth([one.node.operation for one in entrances], visited)
        self._check_names()
        self._lay_out(entrances)

    def __getstate__(self) -> dict[str, Any]:
        """The calls first, each after those it needs: a copy that began at the outputs would recurse through all of them."""
        return {"nodes": self.nodes, **{name: value for name, value in vars(self).items() if name != "_index"}}

    def _positions(self) -> dict[tuple[int, int], int]:
        """The number, among the inputs, of each tensor with which the graph begins."""
        return {x.key: position for position, x in enumerate(self.begins)}

    # Order ------------------------------------------------------------------------------------------------------------

    def _by_depth(self, entrances: list[Any], visited: dict[Any, int]) -> tuple[Any, ...]:
        """Operations sorted by the longest way to an output, then by when the walk met them."""
        depth_of: dict[int, int] = {}
        deepest: dict[Any, int] = {}
        entrance_of = {x.key: entrance for x, entrance in zip(self.begins, entrances, strict=True)}
        for node in reversed(self.nodes):
            depth = max(depth_of.get(node.number, 0), deepest.get(node.operation, 0))
            deepest[node.operation] = depth
            for x in node.inputs:
                entrance = entrance_of.get(x.key)
                if entrance is not None:
                    deepest[entrance] = max(deepest.get(entrance, 0), depth + 1)
                else:
                    depth_of[x.node.number] = max(depth_of.get(x.node.number, 0), depth + 1)
        for position, entrance in enumerate(entrances):
            deepest.setdefault(entrance, 0)
            visited.setdefault(entrance, visited.get(("input", position), -1))
        return tuple(sorted(deepest, key=lambda operation: (-deepest[operation], visited[operation])))

    def _check_names(self) -> None:
        name, count = Counter(operation.name for operation in self.operations).most_common(1)[0]
        if count > 1:
            raise ValueError(
                f'The name "{name}" is used {count} times in the model. All operation names should be unique. Give one of the '
                "layers another `name`."
            )

    def _lay_out(self, entrances: list[KerasTensor]) -> None:
        registers = {key: Register(position) for key, position in self._positions().items()}
        self._expected = [(one.node.operation, one.shape, one.dtype) for one in entrances]
        self._only = isinstance(self.inputs, KerasTensor)
        calls = []
        for node in self.nodes:
            targets = [
                registers.setdefault((node.number, position), Register(len(registers))) for position in range(len(node.specs))
            ]
            args, kwargs = nest.map_structure(
                lambda leaf: registers[leaf.key] if isinstance(leaf, KerasTensor) else leaf, (node.args, node.kwargs)
            )
            calls.append((node, args, kwargs, tuple(targets), [registers[x.key] for x in node.inputs]))
        self._result = nest.map_structure(lambda x: registers[x.key], only_one(self.outputs))
        self._size = len(registers)
        needed = set(nest.flatten(self._result))
        steps = []
        for node, args, kwargs, targets, sources in reversed(calls):
            simple = not kwargs and len(args) == 1 and isinstance(args[0], Register) and node.structure == 0
            spent = tuple({int(register) for register in (*sources, *targets)} - needed)
            needed.update(sources)
            steps.append(PlannedCall(node.operation, args[0] if simple else None, args, kwargs, targets, spent))
        self._plan = tuple(reversed(steps))

    # Running ----------------------------------------------------------------------------------------------------------

    def run(self, inputs: Any) -> Any:
        """The outputs for tensors that are nested like the inputs."""
        values: list[Any] = [None] * self._size
        if self._only and type(inputs) is Tensor:
            values[0] = self._fitting(0, inputs)
        else:
            for position, value in enumerate(self._flat(inputs)):
                values[position] = self._fitting(position, value)
        for operation, source, args, kwargs, targets, spent in self._plan:
            if source is not None:
                values[targets[0]] = operation(values[source])
            else:
                _store(operation(*_filled(args, values), **_filled(kwargs, values)), targets, values)
            for register in spent:
                values[register] = None
        return values[self._result] if type(self._result) is Register else _filled(self._result, values)

    def _fitting(self, position: int, value: Any) -> Any:
        """One input, of the shape and dtype that it was declared with."""
        entrance, wanted, dtype = self._expected[position]
        if value is None:
            if entrance.optional:
                return None
            raise ValueError(
                f"The input '{entrance.name}' is not optional, but None was passed. Please provide a valid tensor."
            )
        if isinstance(value, (list, tuple, dict)):
            value = only_tensor(f"Input '{entrance.name}' of the model", value)
        value = of_rank(value, wanted)
        shape = value.array.shape
        sizes = zip(wanted[1:], shape[1:], strict=False)  # the batch size is free
        if len(shape) != len(wanted) or any([size not in (None, found) for size, found in sizes]):
            hint = f" A single row needs the batch axis: shape {(1, *shape)}." if shape == wanted[1:] else ""
            raise ShapeError(f"Input '{entrance.name}' was declared with shape {wanted} and is given shape {shape}.{hint}")
        return value if value.array.dtype == dtype.numpy else cast(value, dtype)

    def _flat(self, given: Any) -> list[Any]:
        """The inputs in order; for a dict given to inputs that are no dict, by their names."""
        wanted = self.inputs
        ends = wanted if isinstance(wanted, (list, tuple)) else [wanted]
        if self._only and isinstance(given, (list, tuple)) and len(given) == 1:
            return list(given)
        if isinstance(given, Mapping) and all(isinstance(one, KerasTensor) for one in ends):
            names = [one.name for one in ends]
            return [given[name] for name in names] if self._holds(given, names) else self._refuse(given)
        if not self._only and len(self._expected) == 1 and isinstance(given, Tensor):
            return [given]
        if isinstance(given, Mapping) and isinstance(wanted, Mapping) and self._holds(given, wanted):
            given = {name: given[name] for name in wanted}
        try:
            return nest.flatten_up_to(wanted, given)
        except ValueError:
            return self._refuse(given)

    def _holds(self, given: Mapping[str, Any], wanted: Collection[str]) -> bool:
        """True if a dict holds all inputs; others that it holds are left out with a warning."""
        if not given.keys() >= set(wanted):
            return False
        if extra := sorted(given.keys() - set(wanted), key=str):
            warn_caller(
                f"The structure of `inputs` doesn't match the expected structure: {extra} are no inputs of the model, so they "
                f"are left out. It has {sorted(wanted)}."
            )
        return True

    def _refuse(self, given: Any) -> list[Any]:
        names = nest.map_structure(lambda one: one.name, self.inputs)
        wanted = set(self.inputs if isinstance(self.inputs, Mapping) else nest.flatten(names))
        difference = ""
        if isinstance(given, Mapping):
            missing, extra = sorted(wanted - set(given)), sorted(set(given) - wanted, key=str)
            difference = (f" Missing: {missing}." if missing else "") + (f" Not known: {extra}." if extra else "")
        found = nest.map_structure(lambda one: None if one is None else f"shape {tuple(one.shape)}", given)
        raise ValueError(
            f"The structure of `inputs` doesn't match the expected structure. Expected: {names}. Received: {found}.{difference}"
        )

    # Looking ----------------------------------------------------------------------------------------------------------

    @cached_property
    def _index(self) -> Index:
        """The Index of the graph; a copy of the graph, whose calls have other numbers, makes its own."""
        calls: dict[int, list[Node]] = {}
        for node in sorted(self.nodes, key=lambda node: node.number):
            calls.setdefault(id(node.operation), []).append(node)
        numbers = {node.number: position for nodes in calls.values() for position, node in enumerate(nodes)}
        return Index(self._positions(), calls, numbers)

    def calls_of(self, operation: Any) -> list[Node]:
        """The calls of one layer within this graph, in the order in which they were made; for an entrance, its own."""
        return nodes_of(operation) if isinstance(operation, InputLayer) else self._index.calls[id(operation)]

    def place(self, x: KerasTensor) -> tuple[Any, int, int]:
        """The origin of a KerasTensor of this graph: the layer, the number of its call, and the number of the result."""
        position = self._index.begins.get(x.key)
        if position is not None:
            return self._expected[position][0], 0, 0
        return x.node.operation, self._index.numbers[x.node.number], x.position


def _walked(outputs: list[KerasTensor], cut: Mapping[tuple[int, int], int]) -> tuple[list[Node], dict[Any, int]]:
    """The calls between inputs and outputs, each after those it depends on, and when each operation was first met."""
    order: list[Node] = []
    visited: dict[Any, int] = {}
    done: set[int] = set()
    stack: list[tuple[Node, Iterator[KerasTensor]]] = []

    def enter(x: KerasTensor, called: Node | None) -> None:
        if x.key in cut:
            visited.setdefault(("input", cut[x.key]), len(visited))
        elif isinstance(x.node.operation, InputLayer):
            where = "among the outputs" if called is None else f"at operation '{called.operation.name}'"
            fine = [node.operation.name for node in order]
            raise ValueError(
                f"Graph disconnected: cannot find parent for tensor {x} {where}: it is an Input that is not among the inputs "
                f"of the model. Add it: Model(inputs=[..., {x.name}], ...). The following previous operations were accessed "
                f"without issue: {fine}."
            )
        elif x.node.number not in done:
            done.add(x.node.number)
            visited.setdefault(x.node.operation, len(visited))
            stack.append((x.node, iter(_symbols([x.node.args, x.node.kwargs]))))

    for output in outputs:
        enter(output, None)
        while stack:
            node, remaining = stack[-1]
            following = next(remaining, None)
            if following is None:
                order.append(node)
                stack.pop()
            else:
                enter(following, node)
    return order, visited


def _symbols(structure: Any) -> list[KerasTensor]:
    """The KerasTensors of a nest with dicts in the order of their sorted keys, which decides the order of weights in Keras."""
    if isinstance(structure, Mapping):
        keys = sorted(structure) if all(isinstance(key, str) for key in structure) else list(structure)
        return [x for key in keys for x in _symbols(structure[key])]
    if isinstance(structure, (list, tuple)):
        return [x for element in structure for x in _symbols(element)]
    return [structure] if isinstance(structure, KerasTensor) else []


def only_one(structure: Any) -> Any:
    """A list of one as that one: a model with one output gives it as it is."""
    return structure[0] if isinstance(structure, (list, tuple)) and len(structure) == 1 else structure


def _store(results: Any, targets: tuple[int, ...], values: list[Any]) -> None:
    """Put results into their registers; a function, so that no local variable of the run keeps them alive."""
    for target, value in zip(targets, nest.flatten(results), strict=True):
        values[target] = value


def _filled(value: Any, values: list[Any]) -> Any:
    """Arguments of a call, with values in the place of Registers."""
    return nest.map_structure(lambda leaf: values[leaf] if type(leaf) is Register else leaf, value)


class Function(Operation):
    """The computation from some KerasTensors to others, to be done again with new values.

    Args:
        inputs: a KerasTensor, or a nest of them.
        outputs: what was computed from them, a KerasTensor or a nest of them.
        name: made up if None.

    Raises:
        ValueError: if an output needs an input that is not given.

    >>> x = tf.keras.Input((2,))
    >>> print(tf.keras.Function(x, 2.0 * x)(tf.constant([[1.0, 3.0]])).numpy())
    [[2. 6.]]
    """

    is_described = True

    def __init__(self, inputs: Any, outputs: Any, name: str | None = None) -> None:
        super().__init__(name)
        for role, structure in (("inputs", inputs), ("outputs", outputs)):
            if not nest.flatten(structure):
                raise ValueError(f"Function: `{role}` cannot be empty.")
        self._graph = LayerGraph(inputs, outputs)

    @property
    def operations(self) -> list[Any]:
        """The layers and operations, entrances included."""
        return list(self._graph.operations)

    @property
    def inputs(self) -> list[Any]:
        """The KerasTensors that it begins with."""
        return nest.flatten(self._graph.inputs)

    @property
    def outputs(self) -> list[Any]:
        """The KerasTensors that it leads to."""
        return nest.flatten(self._graph.outputs)

    def call(self, inputs: TensorLike) -> Any:
        """The outputs for values that are nested like the inputs."""
        results = self._graph.run(nest.map_structure(convert_to_tensor, inputs))
        return nest.pack(self._graph.outputs, nest.flatten(results))
