"""Ops that pick, scatter, find or order elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError
from .elementwise import greater, less, where
from .entry import NO_DERIVATIVE, Composite, Entry, Indexing
from .movement import astype

TABLE: dict[str, Entry] = {}


def _add(entry: Any) -> Any:
    TABLE[entry.name] = entry
    return entry


def indexing(call: str, doc: str, **rule: Any) -> Indexing:
    return _add(Indexing(call, doc, **rule))


def _declared(call: str, doc: str, numpy: Any, example: tuple[str, str], **rule: Any) -> Indexing:
    return indexing(call, doc, numpy=numpy, example=example, conventions=NO_DERIVATIVE, **rule)


def _scatter(g: np.ndarray, shape: tuple[int, ...], key: Any) -> np.ndarray:
    out = np.zeros(shape, g.dtype)
    np.add.at(out, key, g)
    return out


# What basic indexing reads is a view and has the window's derivative; this entry serves the other keys.
getitem = indexing(
    "getitem(x, key)", "The elements that an index names.", compute=lambda x, key: x[key], private=True,
    adjoints={"x": lambda g, x_shape, key: scatter(g, x_shape, key)},
)  # fmt: skip

scatter: Indexing = indexing(
    "scatter(x, shape, key)", "Zeros with x added at an index, repeated indices accumulating.", private=True,
    compute=_scatter, adjoints={"x": lambda g, key: getitem(g, key)},
)  # fmt: skip


# The element that a repeated index writes last wins, and only it has a gradient: `winners` marks it.
put: Indexing = indexing(
    "setitem(x, value, key, winners)", "x with elements replaced.", operands=("x", "value"), private=True,
    adjoints={
        "x": lambda g, key: put(g, 0.0, key, None),
        "value": lambda g, key, winners: getitem(g, key) if winners is None else where(winners, getitem(g, key), 0.0),
    },
    compute=lambda x, value, key, winners: _replaced(x, value, key),
)  # fmt: skip


def _replaced(x: np.ndarray, value: Any, key: Any) -> np.ndarray:
    out = x.copy()
    out[key] = value
    return out


def _added(x: np.ndarray, value: Any, key: Any, winners: Any) -> np.ndarray:
    out = x.copy()
    np.add.at(out, key, value)
    return out


added = indexing(
    "add_at(x, value, key, winners)", "x with values added at an index.", operands=("x", "value"), private=True,
    compute=_added, adjoints={"x": lambda g: g, "value": lambda g, key: getitem(g, key)},
)  # fmt: skip


def _returned(g: Any, shape: tuple[int, ...], pick: Callable[[np.ndarray], Any]) -> Any:
    """The cotangent of what `pick` picks, back where it came from: asked of the elements' places, `pick` tells."""
    size = math.prod(shape)
    return scatter(g, (size,), (pick(np.arange(size).reshape(shape)),)).reshape(shape)


# Readers

take = indexing(
    "take(a, indices, axis=None, out=None, mode='raise')",
    "The elements that indices name along an axis, of the flattened input by default.",
    example=("mg.take(mg.tensor([5.0, 7.0]), [1, 1, 0]).tolist()", "[7.0, 7.0, 5.0]"), operands=("a",), numpy=np.take,
    compute=lambda a, indices, axis, mode: np.take(a, indices, axis, mode=mode),
    adjoints={"a": lambda g, a_shape, indices, axis, mode: _returned(
        g, a_shape, lambda at: np.take(at, indices, axis, mode=mode)
    )},
    conventions="an index out of range is refused by mode 'raise', taken modulo the length by 'wrap', and moved to "
    "the nearest end by 'clip', where negative ones, too, mean the first element",
)  # fmt: skip

take_along_axis = indexing(
    "take_along_axis(arr, indices, axis=-1)", "Pick by an index array along an axis.",
    example=("mg.take_along_axis(mg.tensor([5.0, 7.0]), np.array([1, 1]), 0).tolist()", "[7.0, 7.0]"),
    operands=("arr",), numpy=np.take_along_axis,
    compute=lambda arr, indices, axis: np.take_along_axis(arr, np.asarray(indices), axis),
    adjoints={"arr": lambda g, arr_shape, indices, axis: _returned(
        g, arr_shape, lambda at: np.take_along_axis(at, np.asarray(indices), axis)
    )},
)  # fmt: skip

compress = indexing(
    "compress(condition, a, axis=None, out=None)",
    "The slices along an axis where a condition holds; by default the elements of the flattened input.",
    example=("mg.compress([True, False, True], mg.arange(3)).tolist()", "[0, 2]"), operands=("a",), numpy=np.compress,
    compute=lambda a, condition, axis: np.compress(condition, a, axis),
    adjoints={"a": lambda g, a_shape, condition, axis: _returned(
        g, a_shape, lambda at: np.compress(condition, at, axis)
    )},
)  # fmt: skip

extract = indexing(
    "extract(condition, arr)", "The elements where a condition of the same size holds, in one row.",
    example=("mg.extract([False, True], mg.tensor([5.0, 7.0])).tolist()", "[7.0]"), operands=("arr",),
    numpy=np.extract, compute=lambda arr, condition: np.extract(condition, arr),
    adjoints={"arr": lambda g, arr_shape, condition: _returned(g, arr_shape, lambda at: np.extract(condition, at))},
)  # fmt: skip

choose = indexing(
    "choose(a, choices, out=None, mode='raise')", "Each element from the choice that an integer array names there.",
    example=("mg.choose([1, 0], [mg.zeros(2), mg.ones(2)]).tolist()", "[1.0, 0.0]"), operands=("*choices",),
    numpy=np.choose, compute=lambda choices, a, mode: np.choose(a, choices, mode=mode),
    adjoints=lambda g, i, a, mode, shapes: where(np.take(np.arange(len(shapes)), a, mode=mode) == i, g, 0.0),
    conventions="keeps a copy of the integers", method=False,
)  # fmt: skip


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ShapeError(
            f"select: expected as many conditions as choices and at least one, got {len(condlist)} conditions "
            f"and {len(choicelist)} choices."
        )
    out = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        dtype = getattr(condition, "dtype", None) or np.asarray(condition).dtype
        if dtype != np.bool_:
            raise DTypeError(f"select: the conditions must be bool, got {dtype}; compare, as in x > 0.")
        out = where(condition, choice, out)
    return out


select = _add(Composite(
    "select(condlist, choicelist, default=0)", "Each element from the first choice whose condition holds there.",
    example=("mg.select([np.array([True, False])], [mg.ones(2)], -1.0).tolist()", "[1.0, -1.0]"),
    operands=("*choicelist",), numpy=np.select, function=_select, method=False,
))  # fmt: skip


# Order


def _in_order(a: np.ndarray, order: np.ndarray, axis: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    picked = a.ravel()[order] if axis is None else np.take_along_axis(a, order, axis)
    return picked, {"order": order}


def _out_of_order(g: Any, order: Any, a_shape: Any, axis: Any) -> Any:
    return _returned(g, a_shape, lambda at: np.take_along_axis(at, order, axis))


sort = indexing(
    "sort(a, axis=-1)", "Sorted along an axis; equal elements keep their order.",
    example=("mg.sort(mg.tensor([3.0, 1.0, 2.0])).tolist()", "[1.0, 2.0, 3.0]"), operands=("a",), numpy=np.sort,
    compute=lambda a, axis=-1: _in_order(a, np.argsort(a, axis=axis, kind="stable"), axis),
    adjoints={"a": _out_of_order}, method=False,
    conventions="keeps the permutation, so the input may be overwritten; the method `sort` sorts in place, as NumPy's",
)  # fmt: skip

argsort = _declared(
    "argsort(a, axis=-1)", "The permutation that sorts; equal elements keep their order.", np.argsort,
    ("mg.argsort(mg.tensor([3.0, 1.0, 2.0])).tolist()", "[1, 2, 0]"), operands=("a",),
    compute=lambda a, axis=-1: np.argsort(a, axis=axis, kind="stable"),
)  # fmt: skip

partition = indexing(
    "partition(a, kth, axis=-1)",
    "Ordered so far along an axis that the kth element stands where sorting puts it, no larger one before it.",
    example=("mg.partition(mg.tensor([3.0, 1.0, 2.0]), 0)[0].item()", "1.0"), operands=("a",), numpy=np.partition,
    compute=lambda a, kth, axis=-1: _in_order(a, np.argpartition(a, kth, axis), axis),
    adjoints={"a": _out_of_order}, method=False,
    conventions="keeps the permutation, so the input may be overwritten; how the rest is ordered is not promised",
)  # fmt: skip

argpartition = _declared(
    "argpartition(a, kth, axis=-1)", "The permutation that partitions.", np.argpartition,
    ("mg.argpartition(mg.tensor([3.0, 1.0, 2.0]), 0)[0].item()", "1"), operands=("a",),
    compute=lambda a, kth, axis=-1: np.argpartition(a, kth, axis),
)  # fmt: skip

# The second serves one flag at a time.
_uniques = Indexing(
    "unique(ar, axis, equal_nan)", "Each value once.", operands=("ar",), private=True,
    compute=lambda ar, axis, equal_nan: _with_places(np.unique(ar, True, axis=axis, equal_nan=equal_nan)),
    adjoints={"ar": lambda g, ar_shape, first, axis: _returned(g, ar_shape, lambda at: np.take(at, first, axis))},
)  # fmt: skip

_unique_part = Indexing(
    "unique(ar, return_index, return_inverse, return_counts, axis, equal_nan)", "What one flag asks for.",
    operands=("ar",), private=True, compute=lambda ar, **asked: np.unique(ar, **asked)[1],
)  # fmt: skip


def _with_places(found: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    values, first = found
    return values, {"first": first}


def _unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
) -> Any:
    asked = np.diag([return_index, return_inverse, return_counts]).tolist()
    more = [_unique_part(ar, *flags, axis, equal_nan) for flags in asked if any(flags)]
    values = _uniques(ar, axis, equal_nan)
    return (values, *more) if more else values


unique = _add(Composite(
    "unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True)",
    "Each value once, sorted; with flags a tuple, the further parts being integers.",
    example=("mg.unique(mg.tensor([3.0, 1.0, 3.0])).tolist()", "[1.0, 3.0]"), operands=("ar",), numpy=np.unique,
    function=_unique, conventions="the gradient goes to the first occurrence of each value",
))  # fmt: skip

# Places and membership

argwhere = _declared(
    "argwhere(a)", "The places of the elements that are not zero, one a row.", np.argwhere,
    ("mg.argwhere(mg.eye(2)).tolist()", "[[0, 0], [1, 1]]"), operands=("a",),
)  # fmt: skip

flatnonzero = _declared(
    "flatnonzero(a)", "The places of the elements that are not zero, in the flattened input.", np.flatnonzero,
    ("mg.flatnonzero(mg.eye(2)).tolist()", "[0, 3]"), operands=("a",),
)  # fmt: skip


def _nonzero(a: Any) -> Any:
    rows = argwhere(a)
    if not rows.shape[1]:
        raise ShapeError("nonzero: a tensor without axes has no places; reshape it to (1,) first.")
    return tuple([rows[:, k] for k in range(rows.shape[1])])


nonzero = _add(Composite(
    "nonzero(a)", "The places of the elements that are not zero, one tensor an axis: an index for them.",
    example=("[i.tolist() for i in mg.nonzero(mg.eye(2))]", "[[0, 1], [0, 1]]"), operands=("a",), numpy=np.nonzero,
    function=_nonzero, differentiable=False, conventions=NO_DERIVATIVE,
))  # fmt: skip

searchsorted = _declared(
    "searchsorted(a, v, side='left', sorter=None)", "Where values would be inserted into a sorted row.",
    np.searchsorted, ("mg.searchsorted(mg.arange(4), [0.5, 2.0]).tolist()", "[1, 2]"), operands=("a", "v"),
)  # fmt: skip

digitize = _declared(
    "digitize(x, bins, right=False)", "The bins that values fall into.", np.digitize,
    ("mg.digitize(mg.tensor([0.5, 2.0]), [0.0, 1.0]).tolist()", "[1, 2]"), operands=("x", "bins"),
)  # fmt: skip

isin = _declared(
    "isin(element, test_elements, assume_unique=False, invert=False)", "Whether elements are among others.", np.isin,
    ("mg.isin(mg.arange(3), [0, 2]).tolist()", "[True, False, True]"), operands=("element", "test_elements"),
)  # fmt: skip

_counts = Indexing("bincount(x, minlength)", "How often.", private=True, compute=lambda x, minlength: np.bincount(
    x, minlength=minlength
))  # fmt: skip


def _bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    counts = _counts(x, minlength)
    if weights is None:
        return counts
    if np.shape(weights) != np.shape(x):
        raise ShapeError(f"bincount: weights of shape {np.shape(weights)} do not fit x of shape {np.shape(x)}.")
    return scatter(astype(weights, np.dtype(float)), counts.shape, (astype(x, np.dtype(np.intp)),))


bincount = _add(Composite(
    "bincount(x, /, weights=None, minlength=0)", "How often each integer occurs, or the sum of its weights.",
    example=("mg.bincount([0, 2, 2], mg.tensor([1.0, 2.0, 3.0])).tolist()", "[1.0, 0.0, 5.0]"),
    operands=("x", "weights"), numpy=np.bincount, function=_bincount,
    conventions="differentiable by the weights, which are summed in float64, as NumPy does",
))  # fmt: skip

# Interpolation


def _segments(x: np.ndarray, xp: np.ndarray, period: Any) -> tuple[Any, ...]:
    """Where each x falls: its segment's lower and upper knot, and whether it is inside of the segments at all, or
    beyond the last; then how far x and these knots have to be moved to stand in one period.
    """
    at, knots, order = x, xp, np.arange(xp.size)
    if period is not None:
        period = abs(period)
        at, folded = x % period, xp % period
        order = np.argsort(folded)
        order = np.concatenate([order[-1:], order, order[:1]])
        knots = folded[order] + np.array([-period, *[0] * xp.size, period])
    last = knots.size - 1
    # A knot belongs to the segment on its right, the last one to that on its left.
    k = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, max(last - 1, 0))
    above = np.minimum(k + 1, last)
    low, high = order[k], order[above]
    inside = (knots[0] <= at) & (at <= knots[last]) & (knots[k] < knots[above])
    return low, high, inside, at >= knots[last], at - x, knots[k] - xp[low], knots[above] - xp[high]


def _interp_parts(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, ...]:
    """The slope at x, the weight of the upper knot, and both knots."""
    low, high, inside, beyond, moved, low_moved, high_moved = _segments(x.numpy(), xp.numpy(), period)
    width = where(inside, xp[high] - xp[low] + (high_moved - low_moved), 1.0)
    weight = where(inside, (x - xp[low] + (moved - low_moved)) / width, 1.0 * beyond)
    return where(inside, (fp[high] - fp[low]) / width, 0.0), weight, low, high


def _by_x(g: Any, x: Any, xp: Any, fp: Any, period: Any) -> Any:
    return g * _interp_parts(x, xp, fp, period)[0]


def _by_xp(g: Any, x: Any, xp: Any, fp: Any, period: Any) -> Any:
    slope, weight, low, high = _interp_parts(x, xp, fp, period)
    pulled = -g * slope
    return scatter(pulled * (1.0 - weight), xp.shape, (low,)) + scatter(pulled * weight, xp.shape, (high,))


def _by_fp(g: Any, x: Any, xp: Any, fp: Any, period: Any) -> Any:
    _, weight, low, high = _interp_parts(x, xp, fp, period)
    return scatter(g * (1.0 - weight), fp.shape, (low,)) + scatter(g * weight, fp.shape, (high,))


_interpolated = Indexing(
    "interp(x, xp, fp, period)", "Piecewise linear.", operands=("x", "xp", "fp"), private=True,
    compute=lambda x, xp, fp, period: np.interp(x, xp, fp, period=period),
    adjoints={"x": _by_x, "xp": _by_xp, "fp": _by_fp},
)  # fmt: skip


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    out = _interpolated(x, xp, fp, period)
    if period is None and left is not None:
        out = where(less(x, getitem(xp, 0)), left, out)
    if period is None and right is not None:
        out = where(greater(x, getitem(xp, -1)), right, out)
    return out


interp = _add(Composite(
    "interp(x, xp, fp, left=None, right=None, period=None)",
    "The piecewise linear function through the points (xp, fp), xp increasing, at x.",
    example=("mg.interp([0.5, 9.0], [0.0, 1.0], mg.tensor([2.0, 4.0])).tolist()", "[3.0, 4.0]"),
    operands=("x", "xp", "fp", "left", "right"), numpy=np.interp, function=_interp,
    conventions="at a knot the derivative by x is the slope on its right, at the last knot the slope on its left; "
    "outside it is 0 and the gradient goes to the end's fp, or to left or right; computed in float64, as NumPy does",
))  # fmt: skip
