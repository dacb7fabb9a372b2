"""The recorded graph: nodes, and the place of a memory's current value in it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .buffers import Buffer, Window, lock
from .modes import tick
from .ops.window import Geometry, Layout, window


class Node:
    """One recorded op.

    Attributes
    ----------
    entry : Entry or None
        The op; None for a leaf or an argument of a transform.
    inputs : tuple of (Node or None), or None
        The nodes of its operands, None for an operand without one. None as a whole: released.
    kept : tuple
        The values that the derivative reads: Kept windows, Python floats, private arrays.
    plan, params
        What the derivative is, and the op's static parameters.
    number : int
        Running number; an op has a higher one than its inputs.
    shape, dtype
        Of the result; a cotangent is brought to them on the edge.
    code, instruction
        Where the user called the op, decoded only for an error.
    holder : Holder or None
        Where the sweep delivers the gradient: for leaves and retained tensors.
    """

    __slots__ = (
        "code", "dtype", "entry", "holder", "inputs", "instruction", "kept", "number", "params", "plan", "shape"
    )  # fmt: skip

    code: Any
    dtype: Any
    entry: Any
    holder: Holder | None
    inputs: Any
    instruction: int
    kept: Any
    number: int
    params: Any
    plan: Any
    shape: Any

    def release(self) -> None:
        """Let go of what backward needed; a further backward through this node is an error."""
        self.inputs, self.kept, self.params = None, (), None


if sys.version_info >= (3, 13):  # pragma: no cover
    # There freeing a long chain recurses on the C stack and overflows small thread stacks.
    def _free(self: Node) -> None:
        stack = [self.inputs]
        self.inputs = None
        while stack:
            nodes = stack.pop()
            if nodes and sys.getrefcount(nodes) <= 2:
                for n in nodes:
                    # Held by the tuple, the loop variable and the call: nobody else will free it later.
                    if n is not None and sys.getrefcount(n) <= 3:
                        stack.append(n.inputs)
                        n.inputs = None

    Node.__del__ = _free  # type: ignore[attr-defined]


def new_node(
    entry: Any, inputs: Any, kept: Any, plan: Any, params: Any, shape: Any, dtype: Any, at: tuple[Any, int] = (None, 0)
) -> Node:
    """A new node. The class has no constructor of its own, since that would cost as much as all its fields."""
    made = Node()
    made.entry, made.inputs, made.kept, made.plan, made.params = entry, inputs, kept, plan, params
    made.number, made.shape, made.dtype = tick(), shape, dtype
    made.code, made.instruction = at
    made.holder = None
    return made


def born(
    entry: Any,
    inputs: tuple[Node | None, ...],
    kept: Any,
    plan: Any,
    params: Any,
    shape: Any,
    dtype: Any,
    at: tuple[Any, int],
) -> Node:
    """A new node; of released inputs it is born released."""
    made = new_node(entry, inputs, kept, plan, params, shape, dtype, at)
    if all(n is None or n.inputs is None for n in inputs):
        made.release()
    return made


class Holder:
    """Holds `.grad` for a leaf that requires grad (`leaf`), or for a tensor that retains it."""

    __slots__ = ("grad", "leaf")

    def __init__(self, leaf: bool = False) -> None:
        self.grad: Any = None
        self.leaf = leaf


class Place:
    """Where a memory's current value stands in the graph; a base and its views share one.

    `array` is the base's own window, `node` the base's node (None while untracked), `number` counts moves.
    A `detached` place shares its bytes with another place and none of its history.
    """

    __slots__ = ("__weakref__", "_layout", "array", "buffer", "detached", "node", "number")

    def __init__(self, buffer: Buffer, array: np.ndarray, node: Node | None, detached: bool = False) -> None:
        self.buffer, self.array, self.node, self.detached = buffer, array, node, detached
        self.number = 0
        self._layout: tuple[Layout, int] | None = None

    def covers(self, array: np.ndarray) -> bool:
        """Whether a window lies within the base's memory."""
        if not array.size:
            return True
        seen = self.geometry(array)
        back = forth = seen.start
        for size, stride in zip(array.shape, array.strides, strict=True):
            back += min(stride, 0) * (size - 1)
            forth += max(stride, 0) * (size - 1)
        return back >= 0 and forth + array.itemsize <= seen.base.span

    def widen(self, array: np.ndarray) -> None:
        """Make a larger array the base; nothing may be tracked yet."""
        self.array, self._layout = array, None
        self.number += 1

    def layout(self) -> tuple[Layout, int]:
        """How the base lies in memory, and the address of its first byte."""
        if self._layout is None:
            base = self.array
            low = high = 0
            for n, stride in zip(base.shape, base.strides, strict=True):
                if n and stride < 0:
                    low += (n - 1) * stride
                elif n:
                    high += (n - 1) * stride
            span = high - low + base.itemsize if base.size else 0
            self._layout = Layout(base.shape, base.strides, span, -low), base.ctypes.data + low
        return self._layout

    def geometry(self, array: np.ndarray) -> Geometry:
        """How a view lies in the base."""
        layout, address = self.layout()
        start = array.ctypes.data - address if array.size else 0
        return Geometry(layout, array.shape, array.strides, start)


class TensorState:
    """What a tensor is made of; its methods stand in `tensors`.

    Attributes
    ----------
    _array : ndarray or None
        The window on the memory. None for a scalar nobody has viewed or written: `_value` holds it.
    _value : float or None
    _kind : str
        "d1" for contiguous one-dimensional arrays, "dn" for those of more axes, "d0" for scalars, "f1", "fn", "f0"
        likewise, else "": which fast path serves.
    _node, _number
        The node of the value, and where there is a place the move of it that the node belongs to.
    _place : Place or None
        None as long as no other tensor shares the memory and nothing was written.
    _window : Window or None
        Made when the value is first kept.
    _holder : Holder or None
        Where `.grad` is, for leaves and retained tensors.
    _born : int
        Running number of its making.
    """

    __slots__ = (
        "__weakref__", "_array", "_born", "_holder", "_kind", "_node", "_number", "_place", "_value", "_window"
    )  # fmt: skip

    _array: np.ndarray | None
    _value: float | None
    _kind: str
    _node: Node | None
    _number: int
    _place: Place | None
    _window: Window | None
    _holder: Holder | None
    _born: int

    @property
    def _leaf(self) -> bool:
        """Whether this is a leaf that requires grad."""
        return self._holder is not None and self._holder.leaf


def kind_of(array: np.ndarray) -> str:
    """The `_kind` of a tensor on an array."""
    if array.dtype.char in "df" and array.flags.c_contiguous:
        return array.dtype.char + ("0", "1", "n")[min(array.ndim, 2)]
    return ""


def node_of(t: TensorState) -> Node | None:
    """The node of a tensor's current value; a view derives it anew if its memory was written since."""
    place = t._place
    if place is None or place.number == t._number:
        return t._node
    with lock:  # node and number change together
        base = place.node
        if base is None:
            t._node = None
        elif t._array is place.array:
            t._node = base
        else:
            array = t._array
            assert array is not None
            t._node = born(window, (base,), (), None, place.geometry(array), array.shape, array.dtype, (None, 0))
        t._number = place.number
        return t._node
