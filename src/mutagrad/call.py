"""One call of a function under differentiation, and the nests of arrays that go in and come out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from . import pool, record
from .backward import Sweep, own, seed, start
from .errors import DTypeError, ShapeError, describe
from .forward import between, push
from .modes import Switch, recording, tick, transform
from .node import Node, TensorState, new_node, node_of
from .operands import dtype_of, operand, raw, shape_of
from .ops import OPS
from .ops.movement import astype
from .run import FLOATS

# Trees: tuples, lists and dicts of arrays


def leaves(tree: Any) -> Iterator[Any]:
    """The arrays of a nest of tuples, lists and dicts, in order."""
    if isinstance(tree, tuple | list):
        for branch in tree:
            yield from leaves(branch)
    elif isinstance(tree, dict):
        for key in tree:
            yield from leaves(tree[key])
    elif tree is not None:
        yield tree


def rebuild(tree: Any, values: Iterator[Any]) -> Any:
    """The same nest around other values."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(rebuild(branch, values) for branch in tree))
    if isinstance(tree, tuple | list):
        return type(tree)(rebuild(branch, values) for branch in tree)
    if isinstance(tree, dict):
        return {key: rebuild(branch, values) for key, branch in tree.items()}
    return None if tree is None else next(values)


class Call:
    """One call of a function under differentiation: its private arguments, its result, its graph."""

    def __init__(
        self,
        what: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Any,
        argnums: Any,
        aux: bool = False,
        beside: Sequence[Any] = (),
    ):
        self.what = what
        numbers = positions(what, argnums, len(args))
        self.given = [args[k] for k in numbers]
        self.single = not isinstance(argnums, Sequence)
        plain = list(leaves(self.given))
        self.tensors = any(isinstance(a, TensorState) for a in plain)
        tracked = any(isinstance(a, TensorState) and node_of(a) is not None for a in (*plain, *beside))
        # Inside another transform, or with tracked arguments, the gradient is differentiated again.
        self.graph = recording.get() and (transform.get() is not None or tracked)
        self.floor = tick()
        self.nodes: list[Node] = []
        private = [self._argument(a) for a in plain]
        values = iter(private)
        inside = list(args)
        for k, tree in zip(numbers, self.given, strict=True):
            inside[k] = rebuild(tree, values)
        with Switch(transform, self.floor), Switch(recording, True):
            result = function(*inside, **kwargs)
        self.aux = None
        if aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise DTypeError(
                    f"{what}: with has_aux=True the function must return (value, aux), got {describe(result)}."
                )
            result, self.aux = result
        self.result = result

    def _argument(self, value: Any) -> Any:
        given = operand(value, self.what)
        outer = node_of(given) if isinstance(given, TensorState) and self.graph else None
        array = _copy(raw(given), dtype_of(given) if isinstance(given, TensorState) else None)
        if array.dtype.kind in "iu":
            array = array.astype(np.float64)
        if array.dtype not in FLOATS:
            raise DTypeError(
                f"{self.what}: arguments must be float64 or float32 (or whole numbers), got {describe(value)}."
            )
        entry = None if outer is None else OPS["positive"]
        plan = None if entry is None else entry.plan((True,))
        made = new_node(entry, () if outer is None else (outer,), (), plan, None, array.shape, array.dtype)
        self.nodes.append(made)
        if array.ndim == 0:
            return record.new_scalar(array.item(), array.dtype, made)
        return record.new(array, made)

    def pull(self, outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        """The cotangents of all arguments, mirrored as they were given."""
        recorded = recording.get()
        sweep = Sweep(graph=self.graph, floor=self.floor)
        with Switch(recording, self.graph):
            for t, c in zip(outputs, cotangents, strict=True):
                if isinstance(t, TensorState) and node_of(t) is not None:
                    start(sweep, t, seed(t, c, self.what))
            sweep.run(self.nodes)
            given = list(leaves(self.given))
            if sweep.left and not self.graph and recorded and self.tensors:
                # The gradient depends on tracked tensors from outside; as a Tensor it must say so.
                self.graph = True
                return self.pull(outputs, cotangents)
            return [
                self._mirror(node, sweep.found.get(node), like) for node, like in zip(self.nodes, given, strict=True)
            ]

    def _mirror(self, node: Node, slot: Any, like: Any) -> Any:
        if self.graph:
            return record.new(np.zeros(node.shape, node.dtype)) if slot is None else OPS["positive"](slot[0])
        array = np.zeros(node.shape, node.dtype) if slot is None else own(slot[0], slot[1], None, node.dtype)
        if isinstance(like, TensorState):
            return record.new(array)
        return array if isinstance(like, np.ndarray | list) else array.item()

    def push(self, outputs: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """The tangents of the results, given those of all arguments, mirrored as the arguments were given."""
        given = {}
        for node, t in zip(self.nodes, tangents, strict=True):
            t = operand(t, self.what)
            if np.shape(raw(t)) != node.shape:
                raise ShapeError(f"{self.what}: a tangent has shape {np.shape(raw(t))}, its argument {node.shape}.")
            made = t if isinstance(t, TensorState) else record.new(np.array(t, node.dtype))
            given[node] = made if dtype_of(made) == node.dtype else astype(made, node.dtype)
        ends = [node_of(t) if isinstance(t, TensorState) else None for t in outputs]
        nodes, left = between([e for e in ends if e is not None], self.floor)
        # As for gradients: what depends on tracked tensors from outside must say so.
        outside = left and recording.get() and self.tensors
        graph = self.graph or outside
        push(given, nodes, graph)
        out = []
        for t, e in zip(outputs, ends, strict=True):
            found = None if e is None else given.get(e)
            if found is None:
                found = record.new(np.zeros(np.shape(raw(t)), dtype_of(t) if isinstance(t, TensorState) else None))
            out.append(found if graph else self.value(found))
        return out

    def trees(self, values: Sequence[Any]) -> Any:
        """Gradients in the shape of the arguments that were asked for."""
        found = iter(values)
        trees = [rebuild(tree, found) for tree in self.given]
        return trees[0] if self.single else tuple(trees)

    def value(self, t: Any) -> Any:
        """A result as the caller wants it: a Tensor where tensors went in, else plain numbers."""
        if not isinstance(t, TensorState) or self.graph:
            return t
        if self.tensors:
            return record.new(_copy(raw(t), dtype_of(t)))
        return np.asarray(raw(t)).item() if shape_of(t) == () else _copy(raw(t))


def _copy(value: Any, dtype: Any = None) -> np.ndarray:
    """A value as a new array."""
    if type(value) is np.ndarray and value.flags.c_contiguous:
        return pool.copy(value)
    return np.array(value, dtype)


def positions(what: str, argnums: Any, count: int | None) -> list[int]:
    """The arguments to differentiate by, counted from the front; without `count` only their kind is checked."""
    try:
        numbers = [operator.index(k) for k in (argnums if isinstance(argnums, Sequence) else [argnums])]
    except TypeError:
        raise DTypeError(f"{what}: argnums must be an integer or a sequence of them, got {argnums!r}.") from None
    if count is None:
        return numbers
    for k in numbers:
        if not -count <= k < count:
            raise DTypeError(f"{what}: argnums {argnums} asks for argument {k}, the call has {count} positional.")
    found = [k % count for k in numbers]
    if len(set(found)) != len(found):
        raise DTypeError(f"{what}: argnums {argnums} names one argument twice.")
    return found


def parts(what: str, value: Any, cotangent: Any) -> Iterator[Any]:
    """The parts of a cotangent or tangent, in the order of those of the value it belongs to."""
    if isinstance(value, dict):
        if not isinstance(cotangent, dict) or value.keys() != cotangent.keys():
            raise ShapeError(f"{what}: expected a dict of {list(value)}, got {describe(cotangent)}.")
        for key in value:
            yield from parts(what, value[key], cotangent[key])
    elif isinstance(value, tuple | list):
        if not isinstance(cotangent, tuple | list) or len(value) != len(cotangent):
            raise ShapeError(
                f"{what}: expected a {type(value).__name__} of {len(value)} parts, got {describe(cotangent)}."
            )
        for v, c in zip(value, cotangent, strict=True):
            yield from parts(what, v, c)
    elif value is not None:
        yield cotangent
