"""Forward mode: tangents pushed along a recorded graph, from the arguments to the results.

It needs no rules of its own. A cotangent is a linear function of the cotangent it is pulled from; element by
element that function, given a tangent instead, is the tangent's share, and where an op gives an adjoint the
adjoint's own adjoint takes the tangent along. Everything is computed with ops, so it differentiates again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import record, run
from .backward import RELEASED, Sweep, start
from .buffers import lock
from .errors import GradientError
from .modes import Switch, recording
from .node import Node, TensorState, new_node, node_of
from .operands import dtype_of, shape_of
from .ops import OPS, Elementwise, Reduction
from .ops.movement import astype
from .pulls import SQUARES, adjoints, kept_tensor, kept_tensors, squared


def between(outputs: Iterable[Node], floor: int) -> tuple[list[Node], bool]:
    """The nodes that `outputs` depend on, in the order of their making, and whether some are older than `floor`.

    Those that are older stay out.
    """
    seen: set[Node] = set()
    left = False
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        if node.number < floor:
            left = True
            continue
        if node.inputs is None:
            raise GradientError(RELEASED)
        seen.add(node)
        stack.extend(n for n in node.inputs if n is not None)
    return sorted(seen, key=lambda n: n.number), left


def push(tangents: dict[Node, Any], nodes: Sequence[Node], graph: bool) -> None:
    """Extend `tangents`, given those of the arguments' nodes, to all of `nodes` that depend on them.

    With `graph` the tangents are tracked by what they depend on.
    """
    with Switch(recording, graph), np.errstate(all="ignore"):
        for node in nodes:
            if node in tangents or node.entry is None:
                continue
            said = (squared(node) if node.entry in SQUARES else None) or node
            given = [None if n is None else tangents.get(n) for n in said.inputs or ()]
            if all(t is None for t in given):
                continue
            rule = _RULES.get(type(said.entry), _structural)
            with lock:  # what the node keeps is read at once: another thread may move it
                found = rule(said, [None if t is None else _cast(t, node.dtype) for t in given], graph)
            if found is not None:
                tangents[node] = found if shape_of(found) == node.shape else OPS["broadcast_to"](found, node.shape)


def _cast(t: Any, dtype: Any) -> Any:
    return t if dtype_of(t) == dtype else astype(t, dtype)


def _elementwise(node: Node, given: Sequence[Any], graph: bool) -> Any:
    total = None
    args = [kept_tensor(node, p, k, node.inputs) for p, k in zip(node.plan.positions, node.kept, strict=True)]
    for i, (e, t) in enumerate(zip(node.plan.outputs, given, strict=True)):
        if e is not None and t is not None:
            share = t if run.passes(e) else node.plan.derived(i)(t, *args)
            total = share if total is None else OPS["add"](total, share)
    return total


def _reduction(node: Node, given: Sequence[Any], graph: bool) -> Any:
    (t,) = given
    full = node.params
    args = kept_tensors(node, node.inputs, node.kept, full)
    share = t if run.passes(node.plan.outputs[0]) else node.plan.derived(0)(t, *args)
    axes = tuple(a for a, n in enumerate(full) if n == 1)
    return OPS["reshape"](OPS["sum"](share, axis=axes), node.shape)


def _structural(node: Node, given: Sequence[Any], graph: bool) -> Any:
    # The point does not matter, since an adjoint is linear in its cotangent.
    probe = record.new(np.zeros(node.shape, node.dtype))
    probe._node = origin = new_node(None, (), (), None, None, node.shape, node.dtype)
    sweep = Sweep(graph=graph, floor=origin.number)
    with Switch(recording, True):
        pulled = list(adjoints(node, probe, node.inputs, node.kept, node.params, graph))
    by_node = dict(zip(node.inputs, given, strict=True))
    for x, c in pulled:
        if by_node[x] is not None and isinstance(c, TensorState) and node_of(c) is not None:
            start(sweep, c, _shaped(by_node[x], shape_of(c)))
    sweep.run([origin])
    slot = sweep.found.get(origin)
    if slot is None:
        return None
    return slot[0] if graph else record.new(np.array(slot[0], node.dtype))


def _shaped(t: Any, shape: tuple[int, ...]) -> Any:
    """The tangent as the adjoint's result lies, which may have been stretched from the input."""
    return t if shape_of(t) == shape else OPS["broadcast_to"](t, shape)


_RULES = {Elementwise: _elementwise, Reduction: _reduction}
