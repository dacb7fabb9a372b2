"""The reverse sweep: cotangents from a result to the leaves, in the order of the nodes' numbers.

It works on plain arrays and floats; with `graph` it works on tensors and is recorded, so that it
differentiates again. Broadcasting and casts are undone here, once, on the edge to each input.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import modes, pool, record
from .buffers import lock
from .errors import DTypeError, GradientError, ShapeError, describe
from .node import Holder, Node, TensorState, node_of
from .operands import dtype_of, operand, raw, shape_of
from .ops import OPS
from .ops.movement import astype
from .ops.window import Layout
from .pulls import IN_PLACE, PULL, SQUARES, own, pull_elementwise, squared

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
            if node.entry in SQUARES and (through := squared(node)) is not None:
                self.visited.append(inputs[0])
                node, inputs, kept, params = through, through.inputs, through.kept, through.params
            pull = PULL[type(node.entry)] if self.graph else IN_PLACE.get(node.entry) or PULL[type(node.entry)]
            if self.graph or (kept and pull is not pull_elementwise):
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
            slot[0], slot[1] = _sum(slot[0], c), True

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


def _sum(a: Any, b: Any) -> Any:
    """The sum of two cotangents, in memory of its own."""
    if isinstance(a, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and b.flags.c_contiguous:
        return np.add(a, b, out=pool.empty(b.shape, b.dtype))
    return a + b


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
    before = modes.recording.set(create_graph)
    try:
        start(sweep, t, first)
        sweep.run()
        with lock:
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
    finally:
        modes.recording.reset(before)


def _accumulated(node: Node, slot: Sequence[Any], graph: bool, old: Any) -> Any:
    """The new `.grad`: what was there plus what came, in memory of its own."""
    value, owned = slot
    if graph:
        return OPS["positive"](value) if old is None else _add(old, value)
    if old is not None:
        with np.errstate(all="ignore"):
            total = _sum(np.asarray(raw(old)), value) if node.shape else np.asarray(raw(old) + value, node.dtype)
        return record.new(total)
    return record.new(own(value, owned and node.entry is None, None, node.dtype))
