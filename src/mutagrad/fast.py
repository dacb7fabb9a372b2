"""Fast paths: `elementwise` without ceremony for scalars and contiguous arrays of one shape.

They decide nothing: whatever is not the common case goes to `record.elementwise`. Each op gets functions of
its own, so that what does not change is at hand, and objects are filled in line, since a constructor's call
costs as much as the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from sys import _getframe
from typing import Any

import numpy as np
from numpy import empty as _empty

from . import record, run
from .buffers import lock
from .modes import recording, tick
from .node import Node, TensorState, born, node_of
from .operands import SCALAR_TYPES, resolve
from .ops import Elementwise
from .record import elementwise, inside, internal, keep, site
from .run import FLOAT64, MANY

# What an operator takes beside a tensor; anything else gets its own say.
KNOWN = (TensorState, float, int, np.ndarray, np.generic, list, tuple)


def _prepare(entry: Elementwise, kinds: tuple[str, ...], taken: str = "") -> tuple[Any, ...] | None:
    """The fast case of these kinds of operands, or None; "w" stands for a Python float.

    `taken` marks with "=" the operands whose place the result takes; the code then gets the result only, and every
    array as a vector.

    It is the code, the result's kind and dtype, which operands are arrays (bit 1 for the first, 2 for the
    second, 4 if they have several axes), and the plans by which operands are tracked, None where the op has no
    derivative.
    """
    found = [k for k in kinds if k != "w"]
    if "" in kinds or not found or len({k[0] for k in found}) > 1:
        return None
    letter = found[0][0]
    dtype = SCALAR_TYPES[letter + "0"]
    if resolve(entry, tuple(float if k == "w" else dtype for k in kinds))[0] is not dtype:
        return None
    ranks = {k[-1] for k in kinds if k[-1] in "1n"}
    if len(ranks) > 1:
        return None
    rank = ranks.pop() if ranks else "0"
    flat = [k[-1] in "1n" for k in kinds]
    if taken and not flat[0]:
        return None  # a number is no place
    letters = "".join("a" if a else "s" for a in flat)
    letters = "".join(t if t == "=" else k for t, k in zip(taken.ljust(len(letters)), letters, strict=True))
    call: Callable[..., Any]
    if entry.python is not None and letter == "d" and not any(flat):
        call = entry.python
    else:
        outs, depth = ("a", 1) if any(flat) else ("", None)
        call = run.variant(run.forward_kernel(entry), letter, outs, letters, depth, entry.kernels, bool(taken))
    plans = None
    if entry.differentiable:
        plans = [entry.plan(tuple(bool(m & 1 << k) for k in range(len(kinds)))) for m in range(1 << len(kinds))]
    arrays = sum(1 << k for k, a in enumerate(flat) if a)
    if rank == "n":
        arrays |= 4
        if not taken:
            call = _flattened(call)
    return call, letter + rank, dtype, arrays, plans


def case_of(entry: Elementwise, kinds: Any) -> tuple[Any, ...] | None:
    """The fast case of a kind, or of a pair of kinds, prepared when it is first asked for."""
    if kinds not in entry.fast:
        entry.fast[kinds] = _prepare(entry, (kinds,) if isinstance(kinds, str) else kinds)
    return entry.fast[kinds]


def case_in_place(entry: Elementwise, kinds: tuple[str, ...], taken: str) -> tuple[Any, ...] | None:
    """The fast case where the result takes the place of the operands marked with "="."""
    key = (taken, *kinds)
    if key not in entry.fast:
        entry.fast[key] = _prepare(entry, kinds, taken)
    return entry.fast[key]


def _flattened(call: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel of contiguous vectors, called with contiguous arrays of any rank."""

    def flat(*operands: Any) -> None:
        call(*[a if type(a) is float else a.reshape(-1) for a in operands])

    return flat


# How a result is written into a tensor that `out=` names: (operands, target, where) -> target.
Into = Callable[[tuple[Any, ...], Any, Any], Any]


def unary_of(entry: Elementwise, depth: int = 1, into: Into | None = None) -> Callable[..., Any]:
    """The function of one tensor that runs and records an op; the user calls it from `depth` frames above."""
    fasts = entry.fast

    def unary(x: Any, out: Any = None, *, where: Any = True) -> Any:
        if (out is not None or where is not True) and into is not None:
            return into((x,), out, where)
        try:
            call, kind, dtype, arrays, plans = fasts[x._kind]
        except (KeyError, AttributeError, TypeError):
            fast = case_of(entry, x._kind) if isinstance(x, TensorState) else None
            if fast is None:
                return elementwise(entry, x)
            call, kind, dtype, arrays, plans = fast
        # The node is read before the memory is found to be nobody else's: no write can have come between.
        node = x._node
        array = x._array
        kept: tuple[Any, ...] = ()
        if not arrays:
            if array is not None:
                return _in_memory(entry, fasts[x._kind], (x,))
            given = x._value
            value = call(given)
            memory = None
            shape: tuple[int, ...] = ()
        else:
            size = len(array)
            if arrays > 3 or x._place is not None:
                return _in_memory(entry, fasts[x._kind], (x,))
            shape = (size,)
            if size < MANY:
                memory = _empty(size) if dtype is FLOAT64 else _empty(size, dtype)
                call(memory, array)
            else:
                memory = run.filled(entry, call, shape, dtype, (array,))
            value = None
        t = record.Tensor()
        t._place = None
        t._window = None
        t._holder = None
        t._node = None
        t._array = memory
        t._value = value
        t._kind = kind
        t._born = number = tick()
        if node is None or plans is None or not recording.get():
            return t
        plan = plans[1]
        mask = plan.mask
        if not arrays:
            kept = (given,) if mask == 1 else (value,) if mask == 2 else (given, value) if mask else ()
        elif mask:
            if mask == 1:
                window = x._window
                kept = ((window and window.kept) or keep(x),)
            else:
                kept = (keep(t),) if mask == 2 else (keep(x), keep(t))
        # Still nobody else's, now that what is kept has been noted? Else value and node may belong to two writes.
        if arrays and x._place is not None:
            return elementwise(entry, x)
        t._node = n = Node()
        n.params = None
        n.holder = None
        n.entry = entry
        n.plan = plan
        n.number = number
        n.shape = shape
        n.dtype = dtype
        n.inputs = (node,)
        n.kept = kept
        if arrays and mask:
            frame = _getframe(depth)
            code = frame.f_code
            if internal.get(code.co_filename, True):
                frame = _outside(frame)
                code = frame.f_code
            n.code = code
            n.instruction = frame.f_lasti
        else:
            # Numbers are kept by value: no refusal will ever name this node.
            n.code = None
            n.instruction = 0
        if node.inputs is None:
            n.release()
        return t

    return unary


def binary_of(
    entry: Elementwise, depth: int = 1, operator: bool = False, into: Into | None = None
) -> Callable[..., Any]:
    """The function of two operands that runs and records an op; as an operator it leaves strangers to themselves."""
    pairs: dict[str, dict[str, Any]] = {}

    def binary(x: Any, y: Any, out: Any = None, *, where: Any = True) -> Any:
        if (out is not None or where is not True) and into is not None:
            return into((x, y), out, where)
        tensor = record.Tensor
        kx = x._kind if type(x) is tensor else "w" if type(x) is float else _kind(x)
        ky = y._kind if type(y) is tensor else "w" if type(y) is float else _kind(y)
        try:
            fast = pairs[kx][ky]
        except KeyError:
            if operator and not (isinstance(x, KNOWN) and isinstance(y, KNOWN)):
                return NotImplemented
            fast = case_of(entry, (kx, ky))
            if fast is None:
                return elementwise(entry, x, y)
            pairs.setdefault(kx, {})[ky] = fast
        call, kind, dtype, arrays, plans = fast
        nx = ny = None
        kept: tuple[Any, ...] = ()
        # Each node is read before the memory is found to be nobody else's: no write can have come between.
        if not arrays:
            if kx == "w":
                vx = x
            else:
                nx = x._node
                if x._array is not None:
                    return _in_memory(entry, fast, (x, y))
                vx = x._value
            if ky == "w":
                vy = y
            else:
                ny = y._node
                if y._array is not None:
                    return _in_memory(entry, fast, (x, y))
                vy = y._value
            value = call(vx, vy)
            memory = None
            shape: tuple[int, ...] = ()
        else:
            if arrays > 3:
                return _in_memory(entry, fast, (x, y))
            if arrays == 3:
                nx, ny = x._node, y._node
                if x._place is not None or y._place is not None:
                    return _in_memory(entry, fast, (x, y))
                vx, vy = x._array, y._array
                size = len(vx)
                if len(vy) != size:
                    return elementwise(entry, x, y)
            elif arrays == 1:
                nx = x._node
                vx, vy = x._array, y
                if ky != "w":
                    ny, vy = y._node, y._value
                if x._place is not None or (ky != "w" and y._array is not None):
                    return _in_memory(entry, fast, (x, y))
                size = len(vx)
            else:
                ny = y._node
                vx, vy = x, y._array
                if kx != "w":
                    nx, vx = x._node, x._value
                if y._place is not None or (kx != "w" and x._array is not None):
                    return _in_memory(entry, fast, (x, y))
                size = len(vy)
            value = None
            shape = (size,)
            if size < MANY:
                memory = _empty(size) if dtype is FLOAT64 else _empty(size, dtype)
                call(memory, vx, vy)
            else:
                memory = run.filled(entry, call, shape, dtype, (vx, vy))
        t = record.Tensor()
        t._place = None
        t._window = None
        t._holder = None
        t._node = None
        t._array = memory
        t._value = value
        t._kind = kind
        t._born = number = tick()
        if (nx is None and ny is None) or plans is None or not recording.get():
            return t
        plan = plans[2] if nx is None else plans[1] if ny is None else plans[3]
        mask = plan.mask
        if not arrays:
            if mask == 3:
                kept = (vx, vy)
            elif mask:
                kept = (vx,) if mask == 1 else (vy,) if mask == 2 else _given(mask, vx, vy, value)
        elif mask:
            if arrays == 3 and mask == 3:
                wx, wy = x._window, y._window
                kept = ((wx and wx.kept) or keep(x), (wy and wy.kept) or keep(y))
            else:
                kx_ = keep(x) if mask & 1 and arrays & 1 else vx
                ky_ = keep(y) if mask & 2 and arrays & 2 else vy
                kept = _given(mask, kx_, ky_, keep(t) if mask & 4 else None)
        # As in `unary`.
        if (arrays & 1 and x._place is not None) or (arrays & 2 and y._place is not None):
            return elementwise(entry, x, y)
        t._node = n = Node()
        n.params = n.holder = None
        n.entry, n.plan, n.number, n.shape, n.dtype, n.inputs, n.kept = (
            entry,
            plan,
            number,
            shape,
            dtype,
            (nx, ny),
            kept,
        )
        if arrays and mask:
            frame = _getframe(depth)
            code = frame.f_code
            if internal.get(code.co_filename, True):
                frame = _outside(frame)
                code = frame.f_code
            n.code = code
            n.instruction = frame.f_lasti
        else:
            # Numbers are kept by value: no refusal will ever name this node.
            n.code = None
            n.instruction = 0
        if (nx is None or nx.inputs is None) and (ny is None or ny.inputs is None):
            n.release()
        return t

    return binary


def _kind(x: Any) -> str:
    """The kind of a subclass of Tensor; "" for everything else."""
    return x._kind if isinstance(x, TensorState) else ""


def _given(mask: int, *values: Any) -> tuple[Any, ...]:
    """The values whose bits are set."""
    return tuple([v for k, v in enumerate(values) if mask & 1 << k])


def _in_memory(entry: Elementwise, fast: tuple[Any, ...], operands: tuple[Any, ...]) -> Any:
    """The same for operands that others see or have written: node, value and what is kept are read together."""
    call, kind, dtype, arrays, plans = fast
    values, nodes = [], []
    recorded = plans is not None and recording.get()
    with lock:
        for k, a in enumerate(operands):
            tensor = isinstance(a, TensorState)
            nodes.append(node_of(a) if recorded and tensor else None)
            if tensor:
                values.append(a._array if arrays & 1 << k else a._value if a._array is None else a._array.item())
            else:
                values.append(a)
        if not arrays:
            t = record.make(None, call(*values), kind, None, tick())
        else:
            shapes = {v.shape for k, v in enumerate(values) if arrays & 1 << k}
            if len(shapes) > 1:
                return elementwise(entry, *operands)
            shape = shapes.pop()
            if math.prod(shape) < MANY:
                out = _empty(shape, dtype)
                call(out, *values)
            else:
                (out,) = run.elementwise(run.forward_kernel(entry), entry.kernels, values, shape, dtype)
            t = record.make(out, None, kind, None, tick())
        plan = plans[sum(1 << k for k, n in enumerate(nodes) if n is not None)] if recorded else None
        if plan is None or not any(n is not None for n in nodes):
            return t
        kept = tuple(
            [keep(t) if p < 0 else keep(operands[p]) if arrays & 1 << p else values[p] for p in plan.positions]
        )
        shape = () if t._array is None else t._array.shape
        t._node = born(entry, tuple(nodes), kept, plan, None, shape, dtype, site(3))
        t._born = t._node.number
    return t


def _outside(frame: Any) -> Any:
    """The innermost frame outside the library."""
    while inside(frame.f_code) and frame.f_back is not None:
        frame = frame.f_back
    return frame
