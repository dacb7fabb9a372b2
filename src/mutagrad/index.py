"""Indexing, read and write, with NumPy's full rules."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from . import judge
from .buffers import lock, overlap
from .errors import MutagradError
from .modes import recording
from .node import Node, Place, TensorState, born, node_of
from .operands import array_of, dtype_spec, in_words, operand, raw
from .ops import Entry
from .ops.indexing import added, put
from .ops.indexing import getitem as pick
from .ops.window import Geometry, dense_layout, window
from .record import apply_structural, new, new_scalar, nodes_of, site, view_of
from .run import FLOATS
from .write import Write, assign, fitted, target_array

# Indexing


def _is_basic(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        p is None
        or p is Ellipsis
        or isinstance(p, slice)
        or (isinstance(p, int | np.integer) and not isinstance(p, bool))
        for p in parts
    )


def plain_key(key: Any) -> Any:
    """An index without tensors; its arrays are copies, so a later change of them does not reach the graph."""
    if type(key) is int:
        return key
    if isinstance(key, tuple):
        return tuple([plain_part(k) for k in key])
    return plain_part(key)


def plain_part(part: Any) -> Any:
    if type(part) is int or part is Ellipsis or part is None:
        return part
    if isinstance(part, TensorState):
        # A tensor without axes stands for a number, whose index gives a view; an array's, in NumPy, gives a copy.
        part = raw(part)
        if isinstance(part, np.ndarray) and part.ndim == 0:
            part = part.item()
    elif isinstance(part, slice):
        ends = part.start, part.stop, part.step
        if all(e is None or type(e) is int for e in ends):
            return part
        return slice(*map(plain_part, ends))
    elif isinstance(part, list | tuple | range):
        made = np.array([plain_part(p) for p in part])
        return made.astype(np.intp) if made.size == 0 else plain_part(made)
    if isinstance(part, np.ndarray):
        # Places and offsets are computed with it, which a narrow integer could not hold.
        return part.astype(np.intp if part.dtype.kind in "iu" else part.dtype)
    return part if isinstance(part, bool | np.bool_) or not hasattr(part, "__index__") else operator.index(part)


def _see(array: np.ndarray, key: Any) -> np.ndarray:
    """The elements a basic index names, always as a view."""
    return array[(*(key if isinstance(key, tuple) else (key,)), *(() if _has_dots(key) else (Ellipsis,)))]


def _has_dots(key: Any) -> bool:
    return any(p is Ellipsis for p in (key if isinstance(key, tuple) else (key,)))


def getitem(t: Any, key: Any) -> Any:
    """`t[key]`: a view for a basic index, else a copy."""
    array = array_of(t)
    try:
        key = plain_key(key)
        if not _is_basic(key):
            return apply_structural(pick, [t], {"key": key})
        if _names_one(key, array.ndim):
            return _element(t, array, key if isinstance(key, tuple) else (key,))
        return view_of(t, _see(array, key))
    except MutagradError:
        raise
    except (IndexError, ValueError, TypeError) as error:
        raise in_words(pick, [t], error) from None


def _names_one(key: Any, ndim: int) -> bool:
    """Whether a basic index is an integer for every axis."""
    parts = key if isinstance(key, tuple) else (key,)
    return len(parts) == ndim and all(isinstance(p, int | np.integer) for p in parts)


def _element(t: Any, array: np.ndarray, key: tuple[int, ...]) -> Any:
    """One element: a number of its own, as in NumPy, where a later write to the array does not reach it."""
    if array.dtype not in FLOATS:
        return new(np.asarray(array[key]))
    with lock:
        value = array[key].item()
        node = node_of(t) if recording.get() else None
        if node is None:
            return new_scalar(value, array.dtype)
        based = t._place is not None and array is t._place.array
        layout = t._place.layout()[0] if based else dense_layout(array.shape, array.itemsize)
        start = layout.start + sum(
            (k + n if k < 0 else k) * s for k, n, s in zip(key, array.shape, layout.strides, strict=True)
        )
        geometry = Geometry(layout, (), (), int(start))
        return new_scalar(value, array.dtype, born(window, (node,), (), None, geometry, (), array.dtype, (None, 0)))


def setitem(target: Any, key: Any, value: Any, op: str = "setitem") -> Any:
    """`target[key] = value`."""
    here = site(2)
    array = target_array(target, op)
    try:
        key = plain_key(key)
        basic = _is_basic(key)
        seen = _see(array, key) if basic else array[key]
    except (IndexError, ValueError, TypeError) as error:
        raise in_words(op, [target], error) from None
    if basic:
        return assign(op, target, seen, value, here)
    return write_at(op, target, key, seen, value, here, put)


def add_at(target: Any, indices: Any, value: Any) -> Any:
    """Add `value` at `indices` in place, repeated indices accumulating, as `np.add.at` does.

    Parameters
    ----------
    target : Tensor
        Written in place, under the in-place contract.
    indices : index
        Whatever indexes `target`.
    value : array_like
        Broadcasts to `target[indices]`.

    Raises
    ------
    InplaceError
        If the contract refuses the write; nothing was changed.
    RangeError
        If an index is out of range.

    Examples
    --------
    >>> import mutagrad as mg
    >>> t = mg.zeros(3)
    >>> mg.add_at(t, [0, 0, 2], mg.tensor([1.0, 2.0, 3.0]))
    tensor([3., 0., 3.], dtype=float64)
    """
    here = site(2)
    array = target_array(target, "add_at")
    try:
        key = plain_key(indices)
        seen = np.asarray(array[key])
    except (IndexError, ValueError, TypeError) as error:
        raise in_words(added, [target], error) from None
    return write_at("add_at", target, key, seen, value, here, added)


def write_at(op: str, target: Any, key: Any, seen: np.ndarray, value: Any, here: judge.Site, entry: Entry) -> Any:
    """Write at an advanced index; `seen` is what stands there, which also proves the index."""
    value = operand(value, op)
    array = target._array
    with lock:
        plain = fitted(op, raw(value), dtype_spec(value), seen, here, False)
        task = Write(op, target, array, here)
        place = task.place
        task.hits = lambda kept: overlap(kept, array) and _marked(place, array, key, kept)
        nodes = nodes_of([target, value]) if task.recorded else None
        tracked = nodes is not None and nodes[1] is not None
        if seen.size == 0:
            judge.writable(op, array, here)
            return target
        moved = task.judge(tracked)
        winners = _winners(array.shape, key, seen.shape) if entry is put and tracked else None

        def node_after() -> Node | None:
            if nodes is None:
                return None
            params = {"shapes": [array.shape, plain.shape], "key": key, "winners": winners}
            return born(entry, tuple(nodes), (), (), params, array.shape, array.dtype, here)

        function = np.add.at if entry is added else operator.setitem
        # A copy always, so a value that shares memory with the target is read before it is written.
        task.commit(moved, function, (array, key, plain.astype(array.dtype)), node_after)
    return target


def _marked(place: Place, array: np.ndarray, key: Any, kept: np.ndarray) -> bool:
    """Whether an advanced index touches a kept window, element by element."""
    if kept.dtype != array.dtype:
        return True
    if not place.covers(kept):
        return True
    seen = place.geometry(kept)
    marks = seen.base.fresh(array.dtype)
    place.geometry(array).of(marks)[key] = 1
    return bool(seen.of(marks).any())


def _winners(shape: tuple[int, ...], key: Any, window: tuple[int, ...]) -> np.ndarray | None:
    """1 where a write by this index lasts, 0 where a later one of the same index overwrites it; None: no repeats."""
    parts = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(p, np.ndarray) and p.dtype != np.bool_ and p.size > 1 for p in parts):
        return None
    if len(parts) == 1:
        # One index array: which rows it names says it all, however large they are.
        rows = np.asarray(parts[0])
        names, marks = rows % shape[0], rows.shape + (1,) * (len(window) - rows.ndim)
    elif len(parts) == len(shape) and all(isinstance(p, np.ndarray) and p.dtype == np.intp for p in parts):
        names, marks = np.asarray(np.ravel_multi_index(parts, shape, mode="wrap")), window
    else:
        names, marks = np.arange(int(np.prod(shape))).reshape(shape)[key], window
    flat = names.ravel()
    _, last = np.unique(flat[::-1], return_index=True)
    if last.size == flat.size:
        return None
    lasting = np.zeros(flat.size)
    lasting[flat.size - 1 - last] = 1.0
    return lasting.reshape(marks)
