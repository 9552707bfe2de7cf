"""Products with epilogues: a bias and a ReLU in the forward pass, gradients of both in the backward pass. Each saves a node."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from ....core import Record, operations
from ...ir import Slot, outputs_of, slots_in
from ...loop_ir.expression import DTYPES
from ...loop_ir.groups import group
from ...loops import elementwise_body
from ...planning import DEVICE_ALIGNMENT
from .lt import Epilogue, MatrixProduct, epilogue_of, mask_width
from .nodes import LaunchNode, Node, ProductNode
from .schedule import NodeSchedule


def add_epilogues(schedule: NodeSchedule, refused: Collection[MatrixProduct]) -> None:
    """Fuse products with the kernels behind or beside them, except into products that are refused."""
    for node in list(schedule.nodes):
        if isinstance(node, LaunchNode):
            _join_bias(schedule, node, refused)
            _join_gradient(schedule, node, refused)
            _join_relu_gradient(schedule, node, refused)


def _join_bias(schedule: NodeSchedule, node: LaunchNode, refused: Collection[MatrixProduct]) -> None:
    """y = x @ w, then y + b or relu(y + b)."""
    shape, body = elementwise_body(node.record, DTYPES)
    epilogue = epilogue_of(body)
    if epilogue is None or len(shape) != 2 or len(node.operands) != 2 or len(node.results) != 1:
        return
    for y, bias in (node.operands, node.operands[::-1]):
        at = _maker(schedule, y)
        if at is None or y.shape != shape or bias.shape not in (shape[1:], (1, *shape[1:])) or not _is_aligned(schedule, bias):
            continue
        product = schedule.nodes[at]
        joined = product.product._replace(epilogue=epilogue)
        alone = _readers(schedule, y) == [node] and schedule.may_join(y) and schedule.may_join(node.results[0], True)
        if not alone or product.product.epilogue is not Epilogue.NONE or joined in refused or node.results[0].dtype != y.dtype:
            continue
        joint = product._replace(product=joined, y=node.results[0], bias=bias)
        schedule.nodes[schedule.nodes.index(node)] = joint  # where the bias is known
        del schedule.nodes[at]
        return


def _join_gradient(schedule: NodeSchedule, node: LaunchNode, refused: Collection[MatrixProduct]) -> None:
    """dw = x^T @ dy, and the sum of dy over its rows."""
    record = node.record
    if (
        record.primitive is not operations.reduce_sum
        or len(node.operands) != 1
        or not schedule.may_join(node.results[-1], True)
    ):
        return
    (dy,), gradient = node.operands, record.outputs
    if len(dy.shape) != 2 or tuple(axis % 2 for axis in record.params["axes"]) != (0,) or not _is_aligned(schedule, gradient):
        return
    for at, product in enumerate(schedule.nodes):
        if not isinstance(product, ProductNode) or product.b.key != dy.key or product.product.b_is_transposed:
            continue
        joined = product.product._replace(epilogue=Epilogue.BIAS_GRADIENT)
        late = all(schedule.nodes.index(one) > at for one in _readers(schedule, gradient))
        if product.product.epilogue is Epilogue.NONE and joined not in refused and late and gradient.dtype == dy.dtype:
            schedule.nodes[at] = product._replace(product=joined, gradient=gradient)
            schedule.nodes.remove(node)
            return


class _ReluGradient(NamedTuple):
    """d = g where y > 0, else 0; and the sum of d over its rows."""

    y: Slot
    g: Slot
    d: Slot
    sum: Slot | None


def _relu_gradient(record: Record) -> _ReluGradient | None:
    """The parts of an instruction that is a ReLU's gradient; None for any other."""
    first, *rest = record.params["members"] if record.primitive is group else [record]
    shape, body = elementwise_body(first, DTYPES)
    if body is None or len(shape) != 2 or len(body.inputs) != 2 or len(body.outputs) != 1 or body.numbers:
        return None
    zeros = {register for register, number in body.literals if number == 0}
    greater, where = body.steps if len(body.steps) == 2 else (None, None)
    if greater is None or where is None or (greater.function, where.function) != ("greater", "where"):
        return None
    (y, bound), (condition, g, other) = greater.operands, where.operands
    if {bound, other} - zeros or condition != greater.register or {y, g} != {0, 1} or body.outputs != (where.register,):
        return None
    slots, (d,) = slots_in(first.inputs), outputs_of(first)
    sums = [one for one in rest if one.primitive is operations.reduce_sum and one.params["axes"] in ((-2,), (0,))]
    if len(sums) != len(rest) or len(sums) > 1 or any(one.inputs[0].key != d.key for one in sums):
        return None
    return _ReluGradient(slots[y], slots[g], d, sums[0].outputs if sums else None)


def _join_relu_gradient(schedule: NodeSchedule, node: LaunchNode, refused: Collection[MatrixProduct]) -> None:
    """Let the forward product keep a mask of its ReLU, and the product that computes the gradient read it."""
    found = _relu_gradient(node.record)
    if found is None or len({x.dtype for x in slots_in(found)}) > 1:
        return
    forward, backward = _maker(schedule, found.y), _maker(schedule, found.g)
    if forward is None or backward is None or (found.sum is not None and not _is_aligned(schedule, found.sum)):
        return
    first, last = schedule.nodes[forward], schedule.nodes[backward]
    after = Epilogue.MASKED if found.sum is None else Epilogue.MASKED_BIAS_GRADIENT
    kept, masked = first.product._replace(epilogue=Epilogue.RELU_MASK_BIAS), last.product._replace(epilogue=after)
    plain = first.product.epilogue in (Epilogue.RELU_BIAS, kept.epilogue) and last.product.epilogue is Epilogue.NONE
    alone = _readers(schedule, found.g) == [node] and schedule.may_join(found.g)
    if not plain or not alone or {kept, masked} & {*refused} or not all(schedule.may_join(y, True) for y in node.results):
        return
    mask = first.mask or schedule.slot((kept.rows, mask_width(kept.columns) // 8), np.dtype(np.uint8))
    schedule.nodes[forward] = first._replace(product=kept, mask=mask)
    schedule.nodes[schedule.nodes.index(node)] = last._replace(product=masked, y=found.d, gradient=found.sum, mask=mask)
    del schedule.nodes[backward]


def _maker(schedule: NodeSchedule, y: Slot) -> int | None:
    """The position of the product that writes a slot."""
    return next((at for at, node in enumerate(schedule.nodes) if isinstance(node, ProductNode) and node.y.key == y.key), None)


def _readers(schedule: NodeSchedule, y: Slot) -> list[Node]:
    """The nodes that read memory of a slot."""
    return [node for node in schedule.nodes for x in node.operands if schedule.root(x)[0].key == y.key]


def _is_aligned(schedule: NodeSchedule, x: Slot) -> bool:
    """True if a slot begins at an aligned address."""
    source, start = schedule.root(x)
    return (start + schedule.inside.get(source.key, (None, 0))[1]) % DEVICE_ALIGNMENT == 0
