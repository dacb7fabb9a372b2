"""How each kind of op hands its cotangent on to its inputs, in a reverse sweep.

Reads and writes of part of a memory work in place on the base's cotangent, so that n small ones cost n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import pool, record, run
from .buffers import Kept, Window
from .node import Node, new_node
from .operands import raw
from .ops import OPS, Elementwise, Plan, Reduction, Structural
from .ops.elementwise import multiply, power, square
from .ops.entry import Contraction, Indexing, Movement
from .ops.indexing import added, getitem, put
from .ops.window import Layout, window, write
from .record import kept_value

# The sweep itself stands below.
Sweep = Any


def own(c: Any, owned: bool, layout: Layout | None, dtype: Any) -> np.ndarray:
    """`c` as an array nobody else refers to, lying as the layout asks; itself where it is that already."""
    if isinstance(c, np.ndarray) and owned:
        if layout is None or layout.fits(c):
            return c
        if c.strides == layout.strides and c.base is not None and c.base.nbytes == layout.span:  # type: ignore[union-attr]
            return c
    c = np.asarray(c, dtype)
    return pool.copy(c) if layout is None else layout.arranged(c)


def pull_elementwise(sweep: Sweep, node: Node, g: Any, owned: bool, inputs: Any, kept: Any, params: Any) -> None:
    plan: Plan = node.plan
    if sweep.graph:
        args = [kept_tensor(node, p, k, inputs) for p, k in zip(plan.positions, kept, strict=True)]
        for i, e in enumerate(plan.outputs):
            if e is not None and inputs[i] is not None:
                sweep.add(inputs[i], g if run.passes(e) else plan.derived(i)(g, *args))
        return
    kernel, served, passing = run.pull_kernel(plan)
    if kernel is not None:
        moved = True
        while moved:
            values = [k.array if isinstance(k, Kept) else k for k in kept]
            outs = run.elementwise(kernel, plan.kernels, [g, *values], node.shape, node.dtype)
            # Another thread may have moved a kept value meanwhile, to write where it stood.
            moved = False
            for k, v in zip(kept, values, strict=True):
                if isinstance(k, Kept) and k.array is not v:
                    moved = True
        for i, c in zip(served, outs, strict=True):
            sweep.add(inputs[i], c, True)
    alone = owned and len(passing) == 1
    for i in passing:
        sweep.add(inputs[i], g, alone)


def kept_tensor(node: Node, position: int, k: Any, inputs: Any) -> Any:
    """A kept value as a tensor with the node it had."""
    source = node if position == -1 else inputs[position]
    return _with_node(k, node.dtype, source)


def _with_node(k: Any, dtype: Any, source: Node | None) -> Any:
    """A kept value as a tensor; what keeps that tensor again shares the Kept, so the judge knows of it."""
    value = kept_value(k)
    if isinstance(value, np.ndarray):
        made = record.new(value, source)
        if isinstance(k, Kept) and made._array is not None:
            made._window = Window(value, kept=k)
        return made
    if source is None:
        return value
    return record.new_scalar(value, dtype, source)


def kept_tensors(node: Node, inputs: Any, kept: Any, full: Any) -> list[Any]:
    """What a reduction kept, as tensors with the nodes they had; its result with the reduced axes."""
    args = []
    for name, k in zip(node.plan.keep, kept, strict=True):
        if name in node.entry.operands:
            args.append(kept_tensor(node, 0, k, inputs))
        elif name == "out":
            args.append(OPS["reshape"](kept_tensor(node, -1, k, inputs), full))
        else:
            args.append(k)
    return args


def _pull_reduction(sweep: Sweep, node: Node, g: Any, owned: bool, inputs: Any, kept: Any, full: Any) -> None:
    plan: Plan = node.plan
    (x,) = inputs
    output = plan.outputs[0]
    assert output is not None
    if sweep.graph:
        args = kept_tensors(node, inputs, kept, full)
        c = OPS["reshape"](g, full)
        if not run.passes(output):
            c = plan.derived(0)(c, *args)
        sweep.add(x, OPS["broadcast_to"](c, x.shape))
        return
    if type(g) is float and run.passes(output):
        sweep.add(x, stretched(np.array(g, node.dtype), x.shape))
        return
    c = np.asarray(g, node.dtype).reshape(full)
    if not run.passes(output):
        args = [c]
        for name, k in zip(plan.keep, kept, strict=True):
            value = kept_value(k)
            args.append(np.asarray(value, node.dtype).reshape(full) if name == "out" else value)
        shape = np.broadcast_shapes(*(a.shape for a in args if isinstance(a, np.ndarray)))
        kernel, _, _ = run.pull_kernel(plan)
        assert kernel is not None
        c = np.asarray(run.elementwise(kernel, plan.kernels, args, shape, node.dtype)[0])
    if c.shape == x.shape:
        sweep.add(x, c, c is not g and c.base is None)
    elif c.size == 1:
        sweep.add(x, stretched(c, x.shape))
    else:
        sweep.add(x, np.broadcast_to(c, x.shape))


def stretched(c: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """One number as an array of that shape, as `np.broadcast_to` makes it in many times the time."""
    made = np.ndarray(shape, c.dtype, c, 0, (0,) * len(shape))
    made.flags.writeable = False
    return made


def _pull_structural(sweep: Sweep, node: Node, g: Any, owned: bool, inputs: Any, kept: Any, params: Any) -> None:
    if not sweep.graph:
        g = record.new(np.asarray(g, node.dtype))
    for x, c in adjoints(node, g, inputs, kept, params, sweep.graph):
        sweep.add(x, c if sweep.graph else raw(c))


def adjoints(node: Node, g: Any, inputs: Any, kept: Any, params: Any, graph: bool) -> Iterator[tuple[Node, Any]]:
    """A structural node's tracked inputs and their cotangents, given that of its result as a tensor."""
    entry: Structural = node.entry
    if not isinstance(params, dict):
        params = {"geometry": params, "shapes": [x.shape if x is not None else None for x in inputs]}
    values: dict[Any, Any] = {**params, "g": g}
    for o, shape in zip(entry.operands, params["shapes"], strict=False):
        values[f"{o}_shape"] = shape
    for name, k in zip(node.plan or (), kept, strict=True):
        if k is None:
            continue
        source = node if name == "out" else None
        if isinstance(name, int):
            source = inputs[name]
        elif name in entry.operands:
            source = inputs[entry.operands.index(name)]
        value = kept_value(k)
        if name not in entry.operands and name != "out" and not isinstance(name, int):
            values[name] = value
        else:
            k = k if isinstance(k, Kept) else np.asarray(value, node.dtype if name == "out" else None)
            values[name] = _with_node(k, node.dtype, source if graph else None)
    if entry.variadic:
        values[entry.operands[0]] = [values.get(j) for j in range(len(inputs))]
        rules: list[Any] = [entry.adjoints] * len(inputs)
        reads = [entry.reads["*"]] * len(inputs)
    else:
        rules = [entry.adjoints.get(o) for o in entry.operands]
        reads = [entry.reads.get(o, ()) for o in entry.operands]
    for i, (x, rule, read) in enumerate(zip(inputs, rules, reads, strict=True)):
        if x is not None and rule is not None:
            yield x, rule(*(i if r == "i" else values[r] for r in read))


PULL: dict[type, Callable[..., None]] = {
    Elementwise: pull_elementwise,
    Reduction: _pull_reduction,
    Movement: _pull_structural,
    Indexing: _pull_structural,
    Contraction: _pull_structural,
}


def _pull_window(sweep: Sweep, node: Node, g: Any, owned: bool, inputs: Any, kept: Any, geometry: Any) -> None:
    (base,) = inputs
    if base.number < sweep.floor:
        sweep.left = True
        return
    array = sweep.owned(base, geometry.base)
    seen = geometry.narrow().of(array)
    seen += geometry.folded(np.asarray(g))


def _pull_write(sweep: Sweep, node: Node, g: Any, owned: bool, inputs: Any, kept: Any, geometry: Any) -> None:
    base, value = inputs
    array = own(g, owned, geometry.base, node.dtype)
    seen = geometry.of(array)
    if value is not None:
        sweep.add(value, pool.copy(seen), True)
    if base is not None:
        seen[...] = 0
        sweep.add(base, array, True)


def _pull_getitem(sweep: Sweep, node: Node, g: Any, owned: bool, inputs: Any, kept: Any, params: Any) -> None:
    (x,) = inputs
    if x.number < sweep.floor:
        sweep.left = True
    else:
        np.add.at(sweep.owned(x), params["key"], g)


def _pull_put(sweep: Sweep, node: Node, g: Any, owned: bool, inputs: Any, kept: Any, params: Any) -> None:
    x, value = inputs
    array = own(g, owned, None, node.dtype)
    if value is not None:
        c = np.array(array[params["key"]])
        winners = params["winners"]
        sweep.add(value, c if winners is None else np.where(winners, c, 0), True)
    if x is not None:
        array[params["key"]] = 0
        sweep.add(x, array, True)


def _pull_added(sweep: Sweep, node: Node, g: Any, owned: bool, inputs: Any, kept: Any, params: Any) -> None:
    x, value = inputs
    sweep.add(value, np.array(np.asarray(g)[params["key"]]), True)
    sweep.add(x, g, owned)


IN_PLACE: dict[Any, Callable[..., None]] = {
    window: _pull_window, write: _pull_write, getitem: _pull_getitem, put: _pull_put, added: _pull_added
}  # fmt: skip


# A square hands its cotangent through what it squares, where that is smooth though its root is not: the second
# derivative of norm(x)**2 at 0 is 2, yet that of norm there, times the square's slope of 0, is lost.


def squared(node: Node) -> Node | None:
    """For a node that squares its input: a node in its stead that says so in one step; None if there is no such."""
    entry, inputs = node.entry, node.inputs
    assert inputs is not None
    if entry is multiply:
        if inputs[0] is not inputs[1]:
            return None
    elif entry is power and (inputs[1] is not None or type(node.kept[-1]) is not float or node.kept[-1] != 2):
        return None
    root = inputs[0]
    if root is None or root.inputs is None or root.holder is not None or getattr(root.entry, "squared", None) is None:
        return None
    plan: Plan = root.entry.squared_plan(tuple(n is not None for n in root.inputs))
    held = dict(zip(root.plan.keep, root.kept, strict=True))
    if any(n not in held for n in plan.keep):
        return None
    kept = tuple(held[n] for n in plan.keep)
    made = new_node(root.entry, root.inputs, kept, plan, root.params, root.shape, root.dtype)
    made.number = root.number
    return made


SQUARES = frozenset({square, multiply, power})
