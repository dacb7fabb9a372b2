"""Fast paths: `elementwise` without ceremony for scalars held by value and contiguous one-dimensional arrays.

They decide nothing: whatever is not the common case goes to `record.elementwise`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import record, run
from .buffers import lock
from .modes import recording, tick
from .node import Node, TensorState, node_of
from .operands import SCALAR_TYPES, dtype_of, resolve
from .ops import Elementwise
from .record import elementwise, keep

# Fast paths


def unary(entry: Elementwise, x: Any) -> Any:
    """`elementwise` for one tensor; the common cases without ceremony."""
    kind = x._kind
    call = entry.fast.get(kind)
    if call is None:
        if kind == "" or resolve(entry, (dtype_of(x),))[0] is not dtype_of(x):
            return elementwise(entry, x)
        call = entry.fast[kind] = run.variant(
            run.forward_kernel(entry), kind[0], "s" if kind[1] == "0" else "a", None if kind[1] == "0" else 0,
            entry.kernels,
        )  # fmt: skip
    node = x._node if x._place is None else node_of(x)
    if not (node is not None and entry.differentiable and recording.get()):
        node = None
    if kind[1] == "0":
        value = call(x._value)
        if node is None:
            return record.Tensor(None, value, kind, None, tick())
        plan = entry.plan((True,))
        number = tick()
        frame = _user_frame()
        made = Node(
            entry, (node,), tuple(value if p < 0 else x._value for p in plan.positions), plan, None, number, (),
            SCALAR_TYPES[kind], frame.f_code, frame.f_lasti,
        )  # fmt: skip
        if node.inputs is None:
            made.release()
        return record.Tensor(None, value, kind, made, number)
    array = x._array
    out = np.empty(array.shape, array.dtype)
    if node is None:
        call(out, array)
        return record.Tensor(out, None, kind, None, tick())
    plan = entry.plan((True,))
    number = tick()
    t = record.Tensor(out, None, kind, None, number)
    frame = _user_frame()
    with lock:
        call(out, array)
        kept = tuple([keep(t) if p < 0 else keep(x) for p in plan.positions])
    t._node = made = Node(
        entry, (node,), kept, plan, None, number, array.shape, array.dtype, frame.f_code, frame.f_lasti
    )
    if node.inputs is None:
        made.release()
    return t


def _user_frame() -> Any:
    """The frame of the user's call, two or more above; cheap where it is the third."""
    frame = sys._getframe(2)
    while record.internal.get(frame.f_code, _unknown) is not False:
        code = frame.f_code
        if code not in record.internal:
            record.internal[code] = code.co_filename.startswith(record.PACKAGE)
            continue
        if frame.f_back is None:
            break
        frame = frame.f_back
    return frame


_unknown = None


def binary(entry: Elementwise, x: Any, y: Any) -> Any:
    """`elementwise` for two operands; the common cases without ceremony."""
    kx = x._kind if isinstance(x, TensorState) else "w" if type(x) is float else ""
    ky = y._kind if isinstance(y, TensorState) else "w" if type(y) is float else ""
    fast = entry.fast.get((kx, ky))
    if fast is None:
        fast = _prepare(entry, kx, ky)
        if fast is None:
            return elementwise(entry, x, y)
    call, kind, scalar_x, scalar_y = fast
    nx = ny = None
    if entry.differentiable and recording.get():
        if kx != "w":
            nx = x._node if x._place is None else node_of(x)
        if ky != "w":
            ny = y._node if y._place is None else node_of(y)
    vx = x if kx == "w" else x._value if scalar_x else x._array
    vy = y if ky == "w" else y._value if scalar_y else y._array
    if kind[1] == "0":
        value = call(vx, vy)
        if nx is None and ny is None:
            return record.Tensor(None, value, kind, None, tick())
        plan = entry.plan((nx is not None, ny is not None))
        kept = tuple([(vx, vy, value)[p] for p in plan.positions])
        number = tick()
        frame = _user_frame()
        made = Node(entry, (nx, ny), kept, plan, None, number, (), SCALAR_TYPES[kind], frame.f_code, frame.f_lasti)
        if (nx is None or nx.inputs is None) and (ny is None or ny.inputs is None):
            made.release()
        return record.Tensor(None, value, kind, made, number)
    if scalar_x:
        shape = vy.shape
    else:
        shape = vx.shape
        if not scalar_y and vy.shape != shape:
            return elementwise(entry, x, y)
    out = np.empty(shape, vy.dtype if scalar_x else vx.dtype)
    if nx is None and ny is None:
        call(out, vx, vy)
        return record.Tensor(out, None, kind, None, tick())
    plan = entry.plan((nx is not None, ny is not None))
    number = tick()
    t = record.Tensor(out, None, kind, None, number)
    frame = _user_frame()
    if plan.positions:
        with lock:
            call(out, vx, vy)
            kept = tuple(
                [
                    keep(t) if p < 0 else (vx if scalar_x else keep(x)) if p == 0 else (vy if scalar_y else keep(y))
                    for p in plan.positions
                ]
            )
    else:
        call(out, vx, vy)
        kept = ()
    t._node = made = Node(entry, (nx, ny), kept, plan, None, number, shape, out.dtype, frame.f_code, frame.f_lasti)
    if (nx is None or nx.inputs is None) and (ny is None or ny.inputs is None):
        made.release()
    return t


def _prepare(entry: Elementwise, kx: str, ky: str) -> Any:
    """The fast path of a pair of kinds: code, result's kind, which operands are scalars. None: there is none."""
    kinds = [k for k in (kx, ky) if k != "w"]
    if "" in (kx, ky) or not kinds or len({k[0] for k in kinds}) > 1:
        return None
    dtype = SCALAR_TYPES[kinds[0][0] + "0"]
    specs = tuple(float if k == "w" else dtype for k in (kx, ky))
    if resolve(entry, specs)[0] is not dtype:
        return None
    scalar_x, scalar_y = kx[-1] in "w0", ky[-1] in "w0"
    scalar = scalar_x and scalar_y
    letters = ("s" if scalar_x else "a") + ("s" if scalar_y else "a")
    call = run.variant(run.forward_kernel(entry), kinds[0][0], letters, None if scalar else 0, entry.kernels)
    found = call, kinds[0][0] + ("0" if scalar else "1"), scalar_x, scalar_y
    entry.fast[kx, ky] = found
    return found
