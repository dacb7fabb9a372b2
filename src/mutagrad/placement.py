"""NumPy's functions that write at places: put and its kin. Each names places and values; one gate writes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import judge
from .errors import DTypeError, RangeError, ShapeError
from .index import plain_part, write_at
from .operands import dtype_spec, in_words, operand, raw
from .ops import OPS
from .ops.indexing import getitem
from .ops.indexing import put as put_entry
from .ops.reduction import axes_of
from .record import site
from .write import assign, fitted, target_array


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values in place at indices of the flattened target.

    Parameters
    ----------
    a : Tensor
        Written in place, under the in-place contract.
    ind : array_like of int
        Places in the flattened target; of repeated ones the last wins, and only it has a gradient.
    v : array_like
        One value a place, repeated where it is shorter; what is left over is not read.
    mode : {"raise", "wrap", "clip"}
        What becomes of an index out of range: an error, taken modulo the size, or moved to the nearest end.

    Raises
    ------
    InplaceError
        If the contract refuses the write; nothing was changed.
    RangeError
        If an index is out of range; nothing was changed.

    Examples
    --------
    >>> import mutagrad as mg
    >>> t = mg.zeros((2, 2))
    >>> mg.put(t, [0, -1], [1.0, 2.0])
    >>> t.tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    here = site(2)
    array = target_array(a, "put")
    places = _places("put", ind, array.size, mode)
    _spread("put", a, array, places, np.arange(places.size), v, here)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Write values in place at an index array along an axis: what `take_along_axis` reads.

    Parameters
    ----------
    arr : Tensor
        Written in place, under the in-place contract.
    indices : array_like of int
        As many axes as `arr`; the others broadcast. Of repeated indices the last wins, and only it has a gradient.
    values : array_like
        Broadcasts to the places.
    axis : int or None
        None means the flattened target.

    Raises
    ------
    InplaceError
        If the contract refuses the write; nothing was changed.
    RangeError, ShapeError
        If an index is out of range, or shapes do not fit; nothing was changed.

    Examples
    --------
    >>> import mutagrad as mg
    >>> t = mg.zeros((2, 3))
    >>> mg.put_along_axis(t, [[2], [0]], 1.0, axis=1)
    >>> t.tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    op, here = "put_along_axis", site(2)
    array = target_array(arr, op)
    given = np.asarray(plain_part(indices))
    if given.dtype.kind not in "iu":
        raise RangeError(f"{op}: the indices must be integers, got {given.dtype}.")
    if given.ndim != (1 if axis is None else array.ndim):
        raise ShapeError(f"{op}: indices of shape {given.shape} do not fit axis={axis} of shape {array.shape}.")
    if axis is None:
        key = np.unravel_index(_places(op, given, array.size), array.shape)
    else:
        key = np.ogrid[tuple(map(slice, array.shape))]
        chosen = axes_of(axis, array.ndim, op)[0]
        key = (*key[:chosen], given, *key[chosen + 1 :])
    try:
        seen = np.asarray(array[key])
    except (IndexError, ValueError) as error:
        raise in_words(op, [arr, indices], error) from None
    write_at(op, arr, key, seen, values, here, put_entry)


def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Write in place where a mask holds, each place from the same place of the values.

    Parameters
    ----------
    a : Tensor
        Written in place, under the in-place contract.
    mask : array_like of bool
        Of the target's size.
    values : array_like
        Repeated up to the target's size where they are fewer. `place` takes them one after another instead.

    Raises
    ------
    InplaceError
        If the contract refuses the write; nothing was changed.
    ShapeError
        If the mask is of another size; nothing was changed.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> t = mg.zeros(4)
    >>> mg.putmask(t, [True, False, True, True], [1.0, 2.0])
    >>> t.tolist()
    [1.0, 0.0, 1.0, 2.0]
    """
    here = site(2)
    array = target_array(a, "putmask")
    places = _marked("putmask", array, mask)
    _spread("putmask", a, array, places, places, values, here)


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write in place where a mask holds, one value after another.

    Parameters
    ----------
    arr : Tensor
        Written in place, under the in-place contract.
    mask : array_like of bool
        Of the target's size.
    vals : array_like
        Repeated where they are fewer than the places. `putmask` takes each from its own place instead.

    Raises
    ------
    InplaceError
        If the contract refuses the write; nothing was changed.
    ShapeError
        If the mask is of another size, or there is no value; nothing was changed.

    Examples
    --------
    >>> import numpy as np, mutagrad as mg
    >>> t = mg.zeros(4)
    >>> mg.place(t, [True, False, True, True], [1.0, 2.0])
    >>> t.tolist()
    [1.0, 0.0, 2.0, 1.0]
    """
    here = site(2)
    array = target_array(arr, "place")
    places = _marked("place", array, mask)
    if places.size and not np.size(raw(vals)):
        raise ShapeError("place: expected at least one value, got none.")
    _spread("place", arr, array, places, np.arange(places.size), vals, here)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write the main diagonal in place.

    Parameters
    ----------
    a : Tensor
        Written in place, under the in-place contract; at least two axes, of equal length where there are more.
    val : array_like
        One value an element of the diagonal, repeated where there are fewer.
    wrap : bool
        Begin the diagonal again below the square part of a tall matrix.

    Raises
    ------
    InplaceError
        If the contract refuses the write; nothing was changed.
    ShapeError
        If the target has no such diagonal.

    Examples
    --------
    >>> import mutagrad as mg
    >>> t = mg.zeros((2, 2))
    >>> mg.fill_diagonal(t, [1.0, 2.0])
    >>> t.tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    here = site(2)
    array = target_array(a, "fill_diagonal")
    shape, ndim = array.shape, array.ndim
    if ndim < 2 or (ndim > 2 and len(set(shape)) > 1):
        raise ShapeError(f"fill_diagonal: expected two axes, or more of equal length, got shape {shape}.")
    end = array.size if wrap or ndim > 2 else min(array.size, shape[1] ** 2)
    places = np.arange(0, end, sum(math.prod(shape[k:]) for k in range(1, ndim + 1)))
    _spread("fill_diagonal", a, array, places, np.arange(places.size), val, here)


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Overwrite in place, with broadcasting, everywhere or where a mask holds.

    Parameters
    ----------
    dst : Tensor
        Written in place, under the in-place contract.
    src : array_like
        Broadcasts to the target's shape.
    casting : {"no", "equiv", "safe", "same_kind", "unsafe"}
        Which casts are accepted. The contract's limit is "same_kind", so "unsafe" accepts no more than that.
    where : array_like of bool
        Broadcasts to the target's shape; elsewhere the target stays, value and gradient.

    Raises
    ------
    InplaceError
        If the contract refuses the write; nothing was changed.
    DTypeError, ShapeError
        If the cast is not accepted, or shapes do not broadcast; nothing was changed.

    Examples
    --------
    >>> import mutagrad as mg
    >>> t = mg.zeros(3)
    >>> mg.copyto(t, 7.0, where=[True, False, True])
    >>> t.tolist()
    [7.0, 0.0, 7.0]
    """
    op, here = "copyto", site(2)
    array = target_array(dst, op)
    src = operand(src, op)
    plain = fitted(op, raw(src), dtype_spec(src), array, here, False)
    try:
        accepted = np.can_cast(plain.dtype, array.dtype, casting)  # type: ignore[arg-type]
    except (ValueError, TypeError) as error:
        raise in_words(op, [dst, src], error) from None
    if not accepted:
        raise DTypeError(f"{op}: casting={casting!r} does not allow {plain.dtype} values in a {array.dtype} target.")
    if where is True:
        assign(op, dst, array, src, here)
        return
    mask = np.asarray(raw(operand(where, op)))
    try:
        mask = np.broadcast_to(mask.astype(bool), array.shape)
    except ValueError:
        raise ShapeError(f"{op}: where of shape {mask.shape} does not broadcast to {array.shape}.") from None
    if plain.ndim:
        src = getitem(OPS["broadcast_to"](OPS["reshape"](src, plain.shape), array.shape), mask)
    write_at(op, dst, mask, array[mask], src, here, put_entry)


def _places(op: str, indices: Any, size: int, mode: str = "raise") -> np.ndarray:
    """Indices of a row of that size as places counted from its start."""
    given = np.asarray(plain_part(indices))
    if given.dtype.kind not in "iub":
        raise DTypeError(f"{op}: the indices must be integers, got {given.dtype}.")
    given = given.ravel().astype(np.intp)
    if mode not in ("raise", "wrap", "clip"):
        raise ShapeError(f"{op}: mode must be 'raise', 'wrap' or 'clip', got {mode!r}.")
    outside = given[(given < -size) | (given >= size)]
    if outside.size and (mode == "raise" or not size):
        raise RangeError(f"{op}: index {outside[0]} is out of range for {size} elements.")
    if mode == "clip":
        return np.clip(given, 0, size - 1)
    return given % size if given.size else given


def _marked(op: str, array: np.ndarray, mask: Any) -> np.ndarray:
    """The places where a mask of the target's size holds."""
    found = np.asarray(raw(operand(mask, op)))
    if found.size != array.size:
        raise ShapeError(f"{op}: a mask of shape {found.shape} has not the size of the target, shape {array.shape}.")
    return np.flatnonzero(found)


def _spread(
    op: str, target: Any, array: np.ndarray, places: np.ndarray, numbers: np.ndarray, values: Any, here: judge.Site
) -> None:
    """Write at places of the flattened target; `numbers` says which of the values, counted on and on, each gets."""
    values = operand(values, op)
    row = raw(values)
    if isinstance(row, np.ndarray) and row.ndim:
        if not row.size:
            places = numbers = places[:0]
        values = getitem(OPS["ravel"](values), (numbers % max(row.size, 1),))
    if array.ndim:
        key = np.unravel_index(places, array.shape)
        write_at(op, target, key, np.asarray(array[key]), values, here, put_entry)
    elif places.size:
        assign(op, target, array, values[-1] if np.shape(values) else values, here)
