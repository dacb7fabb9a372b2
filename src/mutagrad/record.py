"""The graph builder: runs an op and records its node. Writes into existing tensors stand in `write`."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Sequence
from types import CodeType
from typing import Any

import numpy as np

from . import pool, run, totals
from .buffers import Buffer, Kept, LockedKept, Window, lock, writable_alias
from .errors import DTypeError, MutagradError, RangeError, ShapeError, describe
from .modes import policy_in_force, recording, tick
from .node import Node, Place, TensorState, born, kind_of, node_of
from .operands import (
    array_of,
    as_array,
    bind,
    broadcast,
    cast,
    check_dtype,
    dtype_of,
    in_words,
    operand,
    operands_of,
    raw,
    shape_of,
    static,
    stretched,
)
from .ops import Composite, Elementwise, Plan, Reduction, Structural, recorders
from .ops.elementwise import positive, where
from .ops.entry import Contraction, Indexing, Movement
from .ops.indexing import nonzero
from .ops.movement import astype
from .ops.reduction import axes_of, chosen, merged
from .run import FLOATS

# The class of tensors; set by `tensors`, which stands below.
Tensor: Any = TensorState

PACKAGE = os.path.dirname(__file__) + os.sep
PROGRAMS = ("__main__.py", "nist.py")
# By file: whether it is the library's own. A code object as key would be hashed anew, all its bytecode, each time.
internal: dict[str, bool] = {}


def inside(code: CodeType) -> bool:
    """Whether code is the library's own; the main job counts as a user's program."""
    path = code.co_filename
    found = internal.get(path)
    if found is None:
        found = internal[path] = path.startswith(PACKAGE) and os.path.basename(path) not in PROGRAMS
    return found


def site(depth: int = 1) -> tuple[CodeType, int]:
    """The innermost position outside the library: where the user called."""
    frame = sys._getframe(depth)
    while inside(frame.f_code) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def make(array: Any, value: Any, kind: str, node: Any, born: int) -> Any:
    """A tensor of these parts; the class has no constructor, since that would cost as much as all its fields."""
    t = Tensor()
    t._array, t._value, t._kind, t._node, t._born = array, value, kind, node, born
    t._place = t._window = t._holder = None
    return t


def new(array: np.ndarray, node: Node | None = None) -> Any:
    """A tensor on an array of its own; a scalar is held by value."""
    if array.ndim == 0 and array.dtype in FLOATS:
        return new_scalar(array.item(), array.dtype, node)
    return make(array, None, kind_of(array), node, tick() if node is None else node.number)


def new_scalar(value: float, dtype: np.dtype[Any], node: Node | None = None) -> Any:
    """A scalar tensor held by value."""
    return make(None, value, FLOATS[dtype] + "0", node, tick() if node is None else node.number)


def result(value: Any, dtype: np.dtype[Any], node: Node | None = None) -> Any:
    """A tensor from what a kernel gave: a float or an array."""
    return new_scalar(value, dtype, node) if isinstance(value, float) else new(value, node)


def place_of(t: Any) -> Place:
    """The tensor's place; made when its memory is first shared or written."""
    if t._place is None:
        array = array_of(t)
        with lock:
            if t._place is not None:
                return t._place
            buffer = Buffer(array, t._born)
            place = Place(buffer, array, t._node)
            if t._window is not None and t._window.kept is not None:
                buffer.register(t._window)
            if t._leaf:
                buffer.add_leaf(t)
            t._number, t._place = 0, place
    return t._place


def view_of(t: Any, array: np.ndarray) -> Any:
    """A tensor on a window of another's memory."""
    place = place_of(t)
    if not array.flags.writeable and array_of(t).flags.writeable and not stretched(array):
        array = writable_alias(array)
    view = make(array, None, kind_of(array), None, t._born)
    view._place = place
    view._number = -1
    return view


def keep(t: Any) -> Any:
    """What a node holds of a tensor's value: a Kept window, or the number itself for a scalar."""
    if t._array is None:
        return t._value
    if t._array.ndim == 0:
        return t._array.item()
    window, place = t._window, t._place
    kept = None if window is None else window.kept
    if kept is None:
        # Under the lock, since who makes a place for this memory registers the window that is there.
        with lock:
            place = t._place
            if t._window is None or t._window.kept is None:
                t._window = Window(t._array, "by default" if policy_in_force() == "preserve" else "")
                if place is not None:
                    return _registered(t, t._window)
            kept = t._window.kept
    return LockedKept(kept, place.buffer) if place is not None and place.buffer.shared else kept


def _registered(t: Any, window: Window) -> Any:
    # Held here while it is entered, since entering may drop windows that nobody holds.
    kept, buffer = window.kept, t._place.buffer
    buffer.register(window)
    return LockedKept(kept, buffer) if buffer.shared and kept is not None else kept


def keep_written(t: Any) -> Any:
    """What a node holds of the result that it has just written in place: it gives way to the next write."""
    return _registered(t, Window(t._array, "always"))


def kept_value(k: Any) -> Any:
    """The array or number that a node kept."""
    return k.array if isinstance(k, Kept) else k


def elementwise(entry: Elementwise, *args: Any, **kwargs: Any) -> Any:
    """Run and record an elementwise op on any operands."""
    if entry is where and len(args) == 1 and not kwargs:
        return nonzero(args[0])
    operands, (compute, out_dtype) = operands_of(entry, args, kwargs, entry.name)
    recorded = compute is not None and entry.differentiable and recording.get()
    at = site(2) if recorded else None
    # While recording, values and nodes are read together: no write may come between.
    with lock if recorded else _FREE:
        values = [raw(a) for a in operands]
        shape = broadcast(entry.name, values)
        if compute is None:
            return _by_numpy(entry, operands, values, shape, out_dtype)
        values = [cast(v, compute, mask=o in entry.masks) for v, o in zip(values, entry.operands, strict=True)]
        nodes = nodes_of(operands) if recorded else None
        made = result(run.elementwise(run.forward_kernel(entry), entry.kernels, values, shape, compute)[0], compute)
        if nodes is not None and at is not None:
            plan = entry.plan(tuple(n is not None for n in nodes))
            attach(made, entry, nodes, kept_of(plan, operands, values, made), plan, None, at)
    return made


_FREE = contextlib.nullcontext()


def attach(
    made: Any, entry: Any, nodes: Sequence[Node | None], kept: Any, plan: Any, params: Any, at: tuple[CodeType, int]
) -> None:
    """Give a freshly computed tensor its node."""
    made._node = node = born(entry, tuple(nodes), kept, plan, params, shape_of(made), dtype_of(made), at)
    made._born = node.number


def kept_of(plan: Plan, operands: Sequence[Any], values: Sequence[Any], made: Any) -> tuple[Any, ...]:
    """What the node keeps: windows of tensors, copies of raw arrays, numbers."""
    return tuple(keep(made) if p == -1 else keep_operand(operands[p], values[p]) for p in plan.positions)


def keep_operand(source: Any, value: Any) -> Any:
    """Keep one operand, given what the user passed and the value the kernel read."""
    if not isinstance(value, np.ndarray):
        return value
    if isinstance(source, TensorState):
        # A value that was cast is private already.
        return keep(source) if value is source._array else value
    return pool.copy(value) if np.may_share_memory(value, source) else value


def nodes_of(operands: Sequence[Any]) -> list[Node | None] | None:
    """The operands' nodes; None if no operand is tracked."""
    nodes = [node_of(a) if isinstance(a, TensorState) else None for a in operands]
    return nodes if any(n is not None for n in nodes) else None


def _by_numpy(
    entry: Elementwise, operands: Sequence[Any], values: Sequence[Any], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Any:
    """Integers, bools and comparisons: values only, by NumPy's own ufunc."""
    try:
        if entry.ufunc is not None:
            with np.errstate(all="ignore"):
                return new(np.asarray(entry.ufunc(*values)))
        if dtype.kind == "f":  # float16 has no kernel of its own
            single = np.dtype(np.float32)
            wide = [cast(v, single, mask=o in entry.masks) for v, o in zip(values, entry.operands, strict=True)]
            value = run.elementwise(run.forward_kernel(entry), entry.kernels, wide, shape, single)[0]
            return new(np.asarray(value, dtype))
        if entry.numpy is not None:
            # What was left at its default is left to NumPy.
            given = [None if v is d else v for v, d in zip(values, entry.defaults, strict=True)]
            return new(np.asarray(entry.numpy(*given), dtype))
        return new(np.maximum(values[0], 0))  # relu of integers
    except (ValueError, TypeError, OverflowError) as error:
        raise in_words(entry, operands, error) from None


_AXIS, _KEEPDIMS = frozenset(("axis", "keepdims")), frozenset(("keepdims",))


def reduction(entry: Reduction, *args: Any, **kwargs: Any) -> Any:
    """Run and record a reduction; a mask and an initial value become ops before and after it."""
    if len(args) == 1 and not kwargs and type(args[0]) is Tensor and entry.aux is None:
        made = _total(entry, args[0])
        if made is not None:
            return made
    if args and len(args) <= 2 and kwargs.keys() <= (_AXIS if len(args) == 1 else _KEEPDIMS):
        return _reduced(entry, *args, **kwargs)
    bound = bind(entry, args, kwargs)
    x = operand(bound.pop(entry.operands[0]), entry.name)
    axis, keepdims = bound.pop("axis"), bound.pop("keepdims")
    given = {p: v for p, v in bound.items() if v is not entry.signature.parameters[p].default}
    if given.get("dtype") is not None:
        x = astype(x, given["dtype"])
    values = as_array(x)
    if values.dtype.kind in "iub" and entry.like is not None and "dtype" not in given:
        x = astype(x, np.float64)
    elif values.dtype not in FLOATS:
        return _reduced_by_numpy(entry, values, axis, keepdims, {p: raw(v) for p, v in given.items()})
    initial, where = given.get("initial"), given.get("where", True)
    if where is not True:
        if entry.masked is not None:
            return entry.masked(x, axis, keepdims, where)
        if initial is None and not entry.empty:
            raise ShapeError(f"{entry.name}: where= needs initial=, the result where no element is left.")
        x = chosen(entry.name, x, where, entry.init)
    if initial is None:
        return _reduced(entry, x, axis, keepdims)
    return merged(entry.name, entry.merge, _reduced(entry, x, axis, keepdims, empty=True), initial)


def _total(entry: Reduction, x: Any) -> Any:
    """`_reduced` without ceremony: over all elements of a contiguous array that nobody else sees or has written."""
    # The node is read before the memory is found to be nobody else's: no write can have come between.
    node, kind = x._node, x._kind
    if x._place is not None or len(kind) != 2 or kind[1] == "0" or not x._array.size:
        return None
    array = x._array
    value = totals.reduce(entry, array, tuple(range(array.ndim)))
    assert isinstance(value, float)
    made = make(None, value, kind[0] + "0", None, tick())
    if node is None or not recording.get():
        return made
    plan = entry.plan
    kept: tuple[Any, ...] = ()
    at: Any = (None, 0)
    if plan.keep:
        kept = tuple([float(array.size) if k == "n" else value if k == "out" else keep(x) for k in plan.keep])
        at = site(2)
    # Still nobody else's, now that all is read and noted? Else value and node may belong to two writes.
    if x._place is not None:
        return None
    made._node = born(entry, (node,), kept, plan, (1,) * array.ndim, (), array.dtype, at)
    made._born = made._node.number
    return made


def _reduced_by_numpy(entry: Reduction, value: np.ndarray, axis: Any, keepdims: bool, given: dict[str, Any]) -> Any:
    """Integers and half precision: values only, by NumPy's own function."""
    axes = axes_of(axis, value.ndim, entry.name)
    try:
        return new(np.asarray(entry.numpy(value, axis=axes, keepdims=bool(keepdims), **given)))
    except (ValueError, TypeError, OverflowError) as error:
        raise in_words(entry, [value], error) from None


def _reduced(entry: Reduction, x: Any, axis: Any = None, keepdims: bool = False, empty: bool = False) -> Any:
    """Reduce all elements; `empty` says that there may be none."""
    x = operand(x, entry.name)
    recorded = recording.get() and isinstance(x, TensorState)
    at = site(2)
    with lock if recorded else _FREE:
        value = as_array(x)
        axes = axes_of(axis, value.ndim, entry.name)
        count = math.prod([value.shape[a] for a in axes])
        if count == 0 and not (entry.empty or empty):
            raise ShapeError(f"{entry.name}: an empty array, shape {value.shape}, has none along axis {axis}.")
        if value.dtype not in FLOATS:
            if entry.like is None or value.dtype.kind not in "iub":
                return _reduced_by_numpy(entry, value, axes, keepdims, {})
            value = value.astype(np.float64)
        dtype = value.dtype
        out = totals.reduce(entry, value, axes)
        if keepdims:
            out = np.expand_dims(np.asarray(out, dtype), axes)
        made = result(out, dtype)
        node = node_of(x) if recorded else None
        if node is not None:
            plan = entry.plan
            full = tuple([1 if a in axes else n for a, n in enumerate(value.shape)])
            aux = {}
            if entry.aux is not None:
                aux = entry.aux(value, as_array(made).reshape(full), axes)
            held = {"n": float(count), **aux}
            kept = tuple(
                [held[k] if k in held else keep(made) if k == "out" else keep_operand(x, value) for k in plan.keep]
            )
            attach(made, entry, (node,), kept, plan, full, at)
    return made


# Movement, indexing, contraction


def structural(entry: Structural, *args: Any, **kwargs: Any) -> Any:
    """Run and record an op that gives its adjoint."""
    bound = bind(entry, args, kwargs)
    if entry.variadic:
        xs: Any = bound.pop(entry.operands[0])
        if isinstance(xs, TensorState | np.ndarray):
            xs = list(iter(xs))  # type: ignore[arg-type]
        if not isinstance(xs, list | tuple):
            raise DTypeError(f"{entry.name}: expected a sequence of tensors, got {describe(xs)}.")
        operands = [operand(a, entry.name) for a in xs]
    else:
        operands = [operand(bound.pop(o), entry.name) for o in entry.operands]
    params = {p: static(v) for p, v in bound.items()}
    dtype = params.pop("dtype", None)
    if dtype is not None:
        operands = [astype(a, dtype) for a in operands]
    return apply_structural(entry, operands, params)


def apply_structural(entry: Structural, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run and record, with operands and parameters told apart."""
    if entry.view and isinstance(operands[0], TensorState):
        base = array_of(operands[0])
        with lock:
            try:
                seen = entry.compute(base, **params)
            except (ValueError, TypeError, IndexError, OverflowError) as error:
                raise in_words(entry, operands, error) from None
            if not isinstance(seen, np.ndarray):
                # NumPy makes a number of a 0-d array here, which shares no memory.
                return elementwise(positive, operands[0]) if base.dtype in FLOATS else new(np.asarray(seen))
            if seen is base:
                return view_of(operands[0], base.view())
            if seen.base is not None and (seen is base or seen.base is base or seen.base is base.base):
                return view_of(operands[0], seen)
    with lock, np.errstate(all="ignore"):  # what overflows or is nan is so silently, as in the kernels
        nodes = nodes_of(operands) if recording.get() and entry.differentiable else None
        values = [as_array(a) for a in operands]
        try:
            if entry.kernel is not None:
                value: Any = run.scan(entry, values)
            else:
                value = entry.compute(*([values] if entry.sequence else values), **params)
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            raise in_words(entry, operands, error) from None
        value, aux = value if isinstance(value, tuple) else (value, {})
        value = np.asarray(value)
        if value.dtype not in FLOATS:
            check_dtype(value.dtype, entry.name)  # a parameter may have asked for another
        if any(value is v or (value.base is not None and np.may_share_memory(value, v)) for v in values):
            # NumPy gave a raw array or an operand back, or a view of one: the result has memory of its own.
            value = pool.copy(value)
        made = new(value)
        if nodes is None or value.dtype not in FLOATS:
            return made
        assert entry.adjoints, f"{entry.name} made a copy where it must make a view"
        names, kept = _structural_kept(entry, operands, values, nodes, aux, made)
        shapes = [v.shape for v in values]
        at = site(2)
        attach(made, entry, nodes, kept, names, params.get("geometry", {"shapes": shapes, **params}), at)
    return made


def _structural_kept(
    entry: Structural,
    operands: Sequence[Any],
    values: Sequence[np.ndarray],
    nodes: Sequence[Any],
    aux: Any,
    made: Any,
) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Names and values that the adjoints of the active operands read."""
    names: list[Any] = []
    kept: list[Any] = []
    if entry.variadic:
        if entry.operands[0] in entry.reads["*"]:
            active = [i for i, n in enumerate(nodes) if n is not None]
            for j, (source, value) in enumerate(zip(operands, values, strict=True)):
                names.append(j)
                kept.append(keep_operand(source, value) if any(i != j for i in active) else None)
        return tuple(names), tuple(kept)
    read = {r for o, n in zip(entry.operands, nodes, strict=True) if n is not None for r in entry.reads.get(o, ())}
    for o, source, value in zip(entry.operands, operands, values, strict=True):
        if o in read:
            names.append(o)
            kept.append(keep_operand(source, value))
    if "out" in read:
        names.append("out")
        kept.append(keep(made))
    for name, value in aux.items():
        if name in read:
            names.append(name)
            kept.append(value)
    return tuple(names), tuple(kept)


def composite(entry: Composite, *args: Any, **kwargs: Any) -> Any:
    """Run an op that is written with other ops; what its parts complain of, it says in its own name."""
    try:
        return entry.function(*args, **kwargs)
    except (ShapeError, DTypeError, RangeError) as error:
        part, _, said = str(error).partition(": ")
        if not part.isidentifier():
            raise
        raise type(error)(f"{entry.name}: {said}") from None
    except MutagradError:
        raise
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        bind(entry, args, kwargs)  # a call that does not fit is said so
        raise in_words(entry, [], error) from None


recorders[Elementwise] = elementwise
recorders[Composite] = composite
recorders[Reduction] = reduction
recorders[Movement] = recorders[Indexing] = recorders[Contraction] = structural
