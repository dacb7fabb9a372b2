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
    if entry.python is not None and letter == "d" and not any(flat):
        call = entry.python
    else:
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
        if x._array is None:
            given = x._value
        else:
            node, given = _together(x)
        t._array = None
        t._value = value = call(given)
        if node is None or plans is None or not recording.get():
            return t
        shape: tuple[int, ...] = ()
        plan = plans[1]
        mask = plan.mask
        kept = (given,) if mask == 1 else (value,) if mask == 2 else (given, value) if mask else ()
    else:
        array = x._array
        shape = array.shape
        t._value = None
        t._array = out = _empty(shape) if dtype is FLOAT64 else _empty(shape, dtype)
        if plans is None or not recording.get():
            call(out, array)
            return t
        # The lock is needed where a write may come between: not for memory that nobody else has seen or
        # written, as long as that is still so when what is kept has been noted.
        own = x._place is None
        if not own and not locked:
            with lock:
                return unary(entry, x, True)
        node = x._node if own else node_of(x)
        call(out, array)
        if node is None:
            return t
        plan = plans[1]
        mask = plan.mask
        if not mask:
            kept = ()
        elif mask == 1:
            window = x._window
            kept = (window.kept or keep(x) if own and window is not None else keep(x),)
        else:
            kept = (keep(t),) if mask == 2 else (keep(x), keep(t))
        if own and x._place is not None:
            return elementwise(entry, x)
    t._node = n = _new(Node)
    n.params = n.holder = None
    n.entry, n.plan, n.number, n.shape, n.dtype, n.inputs, n.kept = entry, plan, number, shape, dtype, (node,), kept
    frame = _getframe(2)
    code = frame.f_code
    if internal.get(code, True):
        frame = _outside(frame)
        code = frame.f_code
    n.code, n.instruction = code, frame.f_lasti
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
    kept: tuple[Any, ...] = ()
    nx = ny = None
    if not arrays:
        # Each node is read before the array is found missing: no write can have come between.
        if kx == "w":
            vx = x
        else:
            nx = x._node
            if x._array is None:
                vx = x._value
            else:
                nx, vx = _together(x)
        if ky == "w":
            vy = y
        else:
            ny = y._node
            if y._array is None:
                vy = y._value
            else:
                ny, vy = _together(y)
        t._array = None
        t._value = value = call(vx, vy)
        if (nx is None and ny is None) or plans is None or not recording.get():
            return t
        shape: tuple[int, ...] = ()
        plan = plans[(nx is not None) + 2 * (ny is not None)]
        mask = plan.mask
        if mask == 3:
            kept = (vx, vy)
        else:
            kept = () if not mask else (vx,) if mask == 1 else (vy,) if mask == 2 else _given(mask, vx, vy, value)
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
        # As in `unary`.
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
        mask = plan.mask
        if own and arrays == 3 and mask == 3:
            wx, wy = x._window, y._window
            kept = ((wx and wx.kept) or keep(x), (wy and wy.kept) or keep(y))
        elif mask:
            kept = _given(
                mask,
                keep(x) if mask & 1 and arrays & 1 else vx,
                keep(y) if mask & 2 and arrays & 2 else vy,
                keep(t) if mask & 4 else None,
            )
        if own and ((kx != "w" and x._place is not None) or (ky != "w" and y._place is not None)):
            return elementwise(entry, x, y)
    t._node = n = _new(Node)
    n.params = n.holder = None
    n.entry, n.plan, n.number, n.shape, n.dtype, n.inputs, n.kept = entry, plan, number, shape, dtype, (nx, ny), kept
    frame = _getframe(2)
    code = frame.f_code
    if internal.get(code, True):
        frame = _outside(frame)
        code = frame.f_code
    n.code, n.instruction = code, frame.f_lasti
    if (nx is None or nx.inputs is None) and (ny is None or ny.inputs is None):
        n.release()
    return t


def _given(mask: int, *values: Any) -> tuple[Any, ...]:
    """The values whose bits are set."""
    return tuple([v for k, v in enumerate(values) if mask & 1 << k])


def _together(x: Any) -> tuple[Node | None, float]:
    """Node and value of a scalar that lies in memory."""
    with lock:
        return node_of(x), x._array.item()


def _outside(frame: Any) -> Any:
    """The innermost frame outside the library."""
    while inside(frame.f_code) and frame.f_back is not None:
        frame = frame.f_back
    return frame
