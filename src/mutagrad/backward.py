"""The reverse sweep: cotangents from a result to the leaves, in the order of the nodes' numbers.

It works on plain arrays and floats; with `graph` it works on tensors and is recorded, so that it
differentiates again. Broadcasting and casts are undone here, once, on the edge to each input.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from . import modes, record, run
from .buffers import Kept, Window, lock
from .errors import DTypeError, GradientError, ShapeError, describe
from .modes import Switch
from .node import Holder, Node, TensorState, node_of
from .operands import dtype_of, operand, raw, shape_of
from .ops import OPS, Elementwise, Plan, Reduction, Structural
from .ops.entry import Contraction, Indexing, Movement
from .ops.indexing import added, getitem, put
from .ops.movement import astype
from .ops.window import Layout, window, write
from .record import kept_value

RELEASED = (
    "backward() reached a part of the graph that an earlier backward() has released. "
    "Pass retain_graph=True to the earlier one, or compute the result again."
)


def _widened(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that broadcasting from `target` to `shape` added or stretched."""
    extra = len(shape) - len(target)
    if extra < 0:
        return ()
    stretched = (a + extra for a, n in enumerate(target) if n == 1 and shape[a + extra] != 1)
    return (*range(extra), *stretched)


def sum_to(c: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Undo a broadcast: sum over the axes that were stretched or added."""
    axes = _widened(c.shape, shape)
    return c.sum(axis=axes, keepdims=True).reshape(shape) if axes else c.reshape(shape)


class Sweep:
    """One reverse sweep.

    Parameters
    ----------
    graph : bool
        Work on tensors and record.
    floor : int
        Nodes numbered below it are left alone: nothing wanted lies behind them.
    """

    def __init__(self, graph: bool = False, floor: int = 0) -> None:
        self.graph, self.floor = graph, floor
        self.slots: dict[Node, list[Any]] = {}
        self.heap: list[tuple[int, Node]] = []
        self.visited: list[Node] = []
        self.found: dict[Node, list[Any]] = {}
        self.left = False  # whether a cotangent was for a node below the floor

    def run(self, wanted: Iterable[Node] = ()) -> None:
        """Sweep until nothing is left; cotangents of `wanted` nodes and of holders end up in `found`."""
        with np.errstate(all="ignore"):  # what overflows or is nan is so silently, as in the kernels
            self._run(set(wanted))

    def _run(self, stop: set[Node]) -> None:
        heap, slots = self.heap, self.slots
        while heap:
            _, node = heapq.heappop(heap)
            slot = slots.pop(node)
            if node in stop or node.holder is not None:
                self.found[node] = slot
                if node in stop or node.entry is None:
                    continue
                # Delivered and handed on: neither may change it any more.
                slot = [slot[0], False]
            inputs, kept, params = node.inputs, node.kept, node.params
            if node.inputs is None:
                raise GradientError(RELEASED)
            self.visited.append(node)
            if node.entry is None:
                continue
            g = slot[0]
            if isinstance(g, np.ndarray) and node.shape == ():
                g = g.item()
            pull = _PULL[type(node.entry)] if self.graph else _IN_PLACE.get(node.entry) or _PULL[type(node.entry)]
            if self.graph or (kept and pull is not _pull_elementwise):
                with lock:
                    pull(self, node, g, slot[1], inputs, kept, params)
            else:
                pull(self, node, g, slot[1], inputs, kept, params)

    def add(self, node: Node | None, c: Any, owned: bool = False) -> None:
        """Add a cotangent to a node's; `owned` says that nobody else refers to the array."""
        if node is None or node.number < self.floor:
            self.left = self.left or node is not None
            return
        if self.graph:
            c = _edge(c, node)
        elif isinstance(c, np.ndarray):
            if c.shape != node.shape:
                summed = sum_to(c, node.shape)
                # A mere reshape still shares memory with whatever c is.
                c, owned = summed, owned or summed.size < c.size
            if c.dtype != node.dtype:
                c, owned = c.astype(node.dtype), True
            if c.ndim == 0:
                c = c.item()
        slot = self.slots.get(node)
        if slot is None:
            self.slots[node] = [c, owned]
            heapq.heappush(self.heap, (-node.number, node))
        elif self.graph:
            slot[0] = _add(slot[0], c)
        elif slot[1] and isinstance(slot[0], np.ndarray):
            np.add(slot[0], c, out=slot[0])
        else:
            slot[0], slot[1] = slot[0] + c, True

    def owned(self, node: Node, layout: Layout | None = None) -> np.ndarray:
        """The node's cotangent as an array of its own, to be added to in place; zeros if there is none yet."""
        slot = self.slots.get(node)
        if slot is None:
            array = np.zeros(node.shape, node.dtype) if layout is None else layout.fresh(node.dtype)
            self.slots[node] = [array, True]
            heapq.heappush(self.heap, (-node.number, node))
            return array
        slot[0] = own(slot[0], slot[1], layout, node.dtype)
        slot[1] = True
        return slot[0]


def own(c: Any, owned: bool, layout: Layout | None, dtype: Any) -> np.ndarray:
    """`c` as an array nobody else refers to, lying as the layout asks; itself where it is that already."""
    if isinstance(c, np.ndarray) and owned:
        if layout is None or layout.fits(c):
            return c
        if c.strides == layout.strides and c.base is not None and c.base.nbytes == layout.span:  # type: ignore[union-attr]
            return c
    c = np.asarray(c, dtype)
    return c.copy() if layout is None else layout.arranged(c)


def _add(a: Any, b: Any) -> Any:
    return OPS["add"](a, b)


def _edge(c: Any, node: Node) -> Any:
    """`sum_to` and cast, on tensors."""
    shape = shape_of(c)
    if shape != node.shape:
        axes = _widened(shape, node.shape)
        if axes:
            c = OPS["sum"](c, axis=axes, keepdims=True)
        c = OPS["reshape"](c, node.shape)
    return c if dtype_of(c) == node.dtype else astype(c, node.dtype)


# How each kind hands its cotangent on


def _pull_elementwise(sweep: Sweep, node: Node, g: Any, owned: bool, inputs: Any, kept: Any, params: Any) -> None:
    plan: Plan = node.plan
    if sweep.graph:
        args = [_kept_tensor(node, p, k, inputs) for p, k in zip(plan.positions, kept, strict=True)]
        for i, e in enumerate(plan.outputs):
            if e is not None and inputs[i] is not None:
                sweep.add(inputs[i], g if run.passes(e) else plan.derived(i)(g, *args))
        return
    kernel, served = run.pull_kernel(plan)
    passing = [i for i, e in enumerate(plan.outputs) if e is not None and i not in served]
    if kernel is not None:
        moved = True
        while moved:
            values = [kept_value(k) for k in kept]
            outs = run.elementwise(kernel, plan.kernels, [g, *values], node.shape, node.dtype)
            # Another thread may have moved a kept value meanwhile, to write where it stood.
            moved = any(kept_value(k) is not v for k, v in zip(kept, values, strict=True))
        for i, c in zip(served, outs, strict=True):
            sweep.add(inputs[i], c, True)
    alone = owned and len(passing) == 1
    for i in passing:
        sweep.add(inputs[i], g, alone)


def _kept_tensor(node: Node, position: int, k: Any, inputs: Any) -> Any:
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


def _pull_reduction(sweep: Sweep, node: Node, g: Any, owned: bool, inputs: Any, kept: Any, full: Any) -> None:
    plan: Plan = node.plan
    (x,) = inputs
    output = plan.outputs[0]
    assert output is not None
    if sweep.graph:
        args = []
        for name, k in zip(plan.keep, kept, strict=True):
            if name in plan.entry.operands:
                args.append(_kept_tensor(node, 0, k, inputs))
            elif name == "out":
                args.append(OPS["reshape"](_kept_tensor(node, -1, k, inputs), full))
            else:
                args.append(k)
        c = OPS["reshape"](g, full)
        if not run.passes(output):
            c = plan.derived(0)(c, *args)
        sweep.add(x, OPS["broadcast_to"](c, x.shape))
        return
    c = np.asarray(g, node.dtype).reshape(full)
    if not run.passes(output):
        args = [c]
        for name, k in zip(plan.keep, kept, strict=True):
            value = kept_value(k)
            args.append(np.asarray(value, node.dtype).reshape(full) if name == "out" else value)
        shape = np.broadcast_shapes(*(a.shape for a in args if isinstance(a, np.ndarray)))
        kernel, _ = run.pull_kernel(plan)
        assert kernel is not None
        c = np.asarray(run.elementwise(kernel, plan.kernels, args, shape, node.dtype)[0])
    sweep.add(
        x,
        c if c.shape == x.shape else np.broadcast_to(c, x.shape),
        c is not g and c.shape == x.shape and c.base is None,
    )


def _pull_structural(sweep: Sweep, node: Node, g: Any, owned: bool, inputs: Any, kept: Any, params: Any) -> None:
    entry: Structural = node.entry
    if not isinstance(params, dict):
        params = {"geometry": params, "shapes": [x.shape if x is not None else None for x in inputs]}
    if not sweep.graph:
        g = record.new(np.asarray(g, node.dtype))
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
            values[name] = _with_node(k, node.dtype, source if sweep.graph else None)
    if entry.variadic:
        values[entry.operands[0]] = [values.get(j) for j in range(len(inputs))]
        rules: list[Any] = [entry.adjoints] * len(inputs)
        reads = [entry.reads["*"]] * len(inputs)
    else:
        rules = [entry.adjoints.get(o) for o in entry.operands]
        reads = [entry.reads.get(o, ()) for o in entry.operands]
    for i, (x, rule, read) in enumerate(zip(inputs, rules, reads, strict=True)):
        if x is not None and rule is not None:
            c = rule(*(i if r == "i" else values[r] for r in read))
            sweep.add(x, c if sweep.graph else raw(c))


_PULL: dict[type, Callable[..., None]] = {
    Elementwise: _pull_elementwise,
    Reduction: _pull_reduction,
    Movement: _pull_structural,
    Indexing: _pull_structural,
    Contraction: _pull_structural,
}


# Reads and writes of part of a memory work in place on the base's cotangent, so n small ones cost n


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
        sweep.add(value, seen.copy(), True)
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


_IN_PLACE: dict[Any, Callable[..., None]] = {
    window: _pull_window, write: _pull_write, getitem: _pull_getitem, put: _pull_put, added: _pull_added
}  # fmt: skip


# Entry points


def seed(t: Any, gradient: Any, what: str) -> Any:
    """The first cotangent, checked against the result it belongs to."""
    shape, dtype = shape_of(t), dtype_of(t)
    if gradient is None:
        if shape != () and np.prod(shape) != 1:
            raise GradientError(
                f"{what} of a tensor of shape {shape} needs a gradient of that shape; "
                "reduce the result to a scalar first, e.g. with .sum(), or pass gradient=."
            )
        return np.ones(shape, dtype) if shape else 1.0
    given = operand(gradient, what)
    value = np.asarray(raw(given))
    if value.shape != shape:
        raise ShapeError(f"{what}: the gradient has shape {value.shape}, the tensor {shape}.")
    if value.dtype.kind not in "fiub":
        raise DTypeError(f"{what}: the gradient must be real numbers, got {describe(value)}.")
    return given if isinstance(given, TensorState) else value


def start(sweep: Sweep, t: Any, gradient: Any) -> None:
    """Put the first cotangent on the node of `t`."""
    node = node_of(t)
    assert node is not None
    if sweep.graph:
        c = gradient if isinstance(gradient, TensorState) else record.new(np.array(gradient, dtype_of(t)))
    else:
        c = np.asarray(raw(gradient), dtype_of(t))
    sweep.add(node, c)


def backward(t: Any, gradient: Any = None, retain_graph: bool = False, create_graph: bool = False) -> None:
    """Compute the gradients of the leaves that `t` depends on, and add them to their `.grad`; all or nothing."""
    node = node_of(t)
    if node is None:
        raise GradientError(
            "backward() of a tensor that is not tracked: nothing it was computed from requires grad "
            "(or recording was off). Create a leaf with requires_grad=True."
        )
    first = seed(t, gradient, "backward()")
    sweep = Sweep(graph=create_graph)
    with Switch(modes.recording, create_graph):
        start(sweep, t, first)
        sweep.run()
        with lock, np.errstate(all="ignore"):
            # By holder: a leaf that was frozen and unfrozen has two nodes and one `.grad`.
            fresh: dict[Holder, Any] = {}
            for n, slot in sweep.found.items():
                assert n.holder is not None
                fresh[n.holder] = _accumulated(n, slot, create_graph, fresh.get(n.holder, n.holder.grad))

            def deliver() -> None:
                for holder, grad in fresh.items():
                    holder.grad = grad
                if not (retain_graph or create_graph):
                    for n in sweep.visited:
                        if n.entry is not None:
                            n.release()

            try:
                deliver()
            except BaseException:
                deliver()
                raise


def _accumulated(node: Node, slot: Sequence[Any], graph: bool, old: Any) -> Any:
    """The new `.grad`: what was there plus what came, in memory of its own."""
    value, owned = slot
    if graph:
        return OPS["positive"](value) if old is None else _add(old, value)
    if old is not None:
        return (
            record.new(np.asarray(raw(old)) + value)
            if node.shape
            else record.new(np.asarray(raw(old) + value, node.dtype))
        )
    return record.new(own(value, owned and node.entry is None, None, node.dtype))
