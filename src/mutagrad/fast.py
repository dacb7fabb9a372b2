"""Fast paths: `elementwise` without ceremony for scalars and contiguous one-dimensional arrays.

They decide nothing: whatever is not the common case goes to `record.elementwise`. Objects are filled in
line rather than by their constructors, since a constructor's call costs as much as the kernel.
"""

from __future__ import annotations

from sys import _getframe
from typing import Any

from numpy import empty as _empty

from . import record, run
from .buffers import lock
from .modes import recording, tick
from .node import Node, TensorState, node_of
from .operands import SCALAR_TYPES, resolve
from .ops import Elementwise
from .record import elementwise, inside, internal, keep
from .run import FLOAT64

_new = object.__new__


def _prepare(entry: Elementwise, key: Any) -> tuple[Any, ...] | None:
    """The fast case of these kinds of operands, or None; "w" stands for a Python float.

    It is the code, the result's kind and dtype, which operands are arrays (bit 1 for the first, 2 for the
    second), and the plans by which operands are tracked, None where the op has no derivative.
    """
    kinds = (key,) if isinstance(key, str) else key
    found = [k for k in kinds if k != "w"]
    if "" in kinds or not found or len({k[0] for k in found}) > 1:
        return None
    letter = found[0][0]
    dtype = SCALAR_TYPES[letter + "0"]
    if resolve(entry, tuple(float if k == "w" else dtype for k in kinds))[0] is not dtype:
        return None
    flat = [k[-1] == "1" for k in kinds]
    letters = "".join("a" if a else "s" for a in flat)
    call = run.variant(run.forward_kernel(entry), letter, letters, 0 if any(flat) else None, entry.kernels)
    plans = None
    if entry.differentiable:
        plans = [entry.plan(tuple(bool(m & 1 << k) for k in range(len(kinds)))) for m in range(1 << len(kinds))]
    arrays = sum(1 << k for k, a in enumerate(flat) if a)
    fast = entry.fast[key] = (call, letter + ("1" if any(flat) else "0"), dtype, arrays, plans)
    return fast


def unary(entry: Elementwise, x: Any, locked: bool = False) -> Any:
    """`elementwise` for one tensor; the common cases without ceremony."""
    fast = entry.fast.get(x._kind)
    if fast is None:
        fast = _prepare(entry, x._kind)
        if fast is None:
            return elementwise(entry, x)
    call, kind, dtype, arrays, plans = fast
    t = _new(record.Tensor)
    t._place = t._window = t._holder = t._node = None
    t._kind = kind
    t._born = number = tick()
    if not arrays:
        # The node is read before the array is found missing: no write can have come between.
        node = x._node
        if x._array is not None:
            node, given = _together(x)
        else:
            given = x._value
        t._array = None
        t._value = value = call(given)
        if node is None or plans is None or not recording.get():
            return t
        shape: tuple[int, ...] = ()
        plan = plans[1]
        kept = tuple([value if p < 0 else given for p in plan.positions])
    else:
        array = x._array
        shape = array.shape
        t._value = None
        t._array = out = _empty(shape) if dtype is FLOAT64 else _empty(shape, dtype)
        if plans is None or not recording.get():
            call(out, array)
            return t
        plan = plans[1]
        own = x._place is None
        if not own and not locked:
            with lock:
                return unary(entry, x, True)
        node = x._node if own else node_of(x)
        call(out, array)
        if node is None:
            return t
        kept = _keep_all(plan.positions, (x, t))
        if own and x._place is not None:
            return elementwise(entry, x)
    t._node = n = _new(Node)
    n.params = n.holder = None
    n.entry, n.plan, n.number, n.shape, n.dtype, n.inputs, n.kept = entry, plan, number, shape, dtype, (node,), kept
    frame = _getframe(2)
    if internal.get(frame.f_code, True):
        frame = _outside(frame)
    n.code, n.instruction = frame.f_code, frame.f_lasti
    if node.inputs is None:
        n.release()
    return t


def binary(entry: Elementwise, x: Any, y: Any, locked: bool = False) -> Any:
    """`elementwise` for two operands; the common cases without ceremony."""
    kx = x._kind if isinstance(x, TensorState) else "w" if type(x) is float else ""
    ky = y._kind if isinstance(y, TensorState) else "w" if type(y) is float else ""
    fast = entry.fast.get((kx, ky))
    if fast is None:
        fast = _prepare(entry, (kx, ky))
        if fast is None:
            return elementwise(entry, x, y)
    call, kind, dtype, arrays, plans = fast
    t = _new(record.Tensor)
    t._place = t._window = t._holder = t._node = None
    t._kind = kind
    t._born = number = tick()
    nx = ny = None
    if not arrays:
        # Each node is read before the array is found missing: no write can have come between.
        vx, vy = x, y
        if kx != "w":
            nx = x._node
            if x._array is not None:
                nx, vx = _together(x)
            else:
                vx = x._value
        if ky != "w":
            ny = y._node
            if y._array is not None:
                ny, vy = _together(y)
            else:
                vy = y._value
        t._array = None
        t._value = value = call(vx, vy)
        if (nx is None and ny is None) or plans is None or not recording.get():
            return t
        shape: tuple[int, ...] = ()
        plan = plans[(nx is not None) + 2 * (ny is not None)]
        given = (vx, vy, value)
        kept = tuple([given[p] for p in plan.positions]) if plan.positions else ()
    else:
        vx = x._array if arrays & 1 else x if kx == "w" else x.item()
        vy = y._array if arrays & 2 else y if ky == "w" else y.item()
        shape = vx.shape if arrays & 1 else vy.shape
        if arrays == 3 and vy.shape != shape:
            return elementwise(entry, x, y)
        t._value = None
        t._array = out = _empty(shape) if dtype is FLOAT64 else _empty(shape, dtype)
        if plans is None or not recording.get():
            call(out, vx, vy)
            return t
        # The lock is needed where a write may come between: not for memory that nobody else has seen or
        # written, as long as that is still so when what is kept has been noted.
        own = (kx == "w" or x._place is None) and (ky == "w" or y._place is None)
        if not own and not locked:
            with lock:
                return binary(entry, x, y, True)
        if kx != "w":
            nx = x._node if x._place is None else node_of(x)
        if ky != "w":
            ny = y._node if y._place is None else node_of(y)
        call(out, vx, vy)
        if nx is None and ny is None:
            return t
        plan = plans[(nx is not None) + 2 * (ny is not None)]
        kept = _keep_all(plan.positions, (x if arrays & 1 else vx, y if arrays & 2 else vy, t))
        if own and ((kx != "w" and x._place is not None) or (ky != "w" and y._place is not None)):
            return elementwise(entry, x, y)
    t._node = n = _new(Node)
    n.params = n.holder = None
    n.entry, n.plan, n.number, n.shape, n.dtype, n.inputs, n.kept = entry, plan, number, shape, dtype, (nx, ny), kept
    frame = _getframe(2)
    if internal.get(frame.f_code, True):
        frame = _outside(frame)
    n.code, n.instruction = frame.f_code, frame.f_lasti
    if (nx is None or nx.inputs is None) and (ny is None or ny.inputs is None):
        n.release()
    return t


def _keep_all(positions: tuple[int, ...], sources: tuple[Any, ...]) -> tuple[Any, ...]:
    """`record.keep` of the sources at these positions; mostly they are kept already, or numbers."""
    kept = []
    for p in positions:
        source = sources[p]
        if type(source) is float:
            kept.append(source)
            continue
        window = source._window
        if window is not None and source._place is None and window.kept is not None:
            kept.append(window.kept)
        else:
            kept.append(keep(source))
    return tuple(kept)


def _together(x: Any) -> tuple[Node | None, float]:
    """Node and value of a scalar that lies in memory."""
    with lock:
        return node_of(x), x._array.item()


def _outside(frame: Any) -> Any:
    """The innermost frame outside the library."""
    while inside(frame.f_code) and frame.f_back is not None:
        frame = frame.f_back
    return frame
