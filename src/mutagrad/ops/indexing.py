"""Ops that pick, scatter or order elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .elementwise import where
from .entry import NO_DERIVATIVE, Entry, Indexing

TABLE: dict[str, Entry] = {}


def indexing(call: str, doc: str, **rule: Any) -> Indexing:
    made = Indexing(call, doc, **rule)
    TABLE[made.name] = made
    return made


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


def along(indices: np.ndarray, shape: tuple[int, ...], axis: int) -> tuple[np.ndarray, ...]:
    """The index that `take_along_axis` stands for."""
    axis %= len(shape)
    key = []
    for a, n in enumerate(shape):
        spread = [1] * len(shape)
        spread[a] = n
        key.append(indices if a == axis else np.arange(n).reshape(spread))
    return tuple(key)


def _take_along_adjoint(g: Any, x_shape: Any, indices: Any, axis: Any) -> Any:
    indices = np.asarray(indices)
    if axis is None:
        return scatter(g, (int(np.prod(x_shape)),), (indices,)).reshape(x_shape)
    return scatter(g, x_shape, along(indices, x_shape, axis))


take_along_axis = indexing(
    "take_along_axis(x, indices, axis=-1)", "Pick by an index array along an axis.",
    example=("mg.take_along_axis(mg.tensor([5.0, 7.0]), np.array([1, 1]), 0).tolist()", "[7.0, 7.0]"),
    numpy=np.take_along_axis, compute=lambda x, indices, axis: np.take_along_axis(x, np.asarray(indices), axis),
    adjoints={"x": _take_along_adjoint},
)  # fmt: skip


def _sort(x: np.ndarray, axis: Any = -1) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    order = np.argsort(x, axis=axis, kind="stable")
    if axis is None:
        return x.ravel()[order], {"order": order}
    picked = np.empty_like(x)
    picked[...] = np.take_along_axis(x, order, axis)
    return picked, {"order": order}


sort = indexing(
    "sort(x, axis=-1)", "Sorted along an axis; equal elements keep their order.",
    example=("mg.sort(mg.tensor([3.0, 1.0, 2.0])).tolist()", "[1.0, 2.0, 3.0]"), compute=_sort, numpy=np.sort,
    adjoints={"x": lambda g, order, x_shape, axis: _take_along_adjoint(g, x_shape, order, axis)},
    conventions="keeps the permutation, so the input may be overwritten", method=False,
)  # fmt: skip

argsort = indexing(
    "argsort(x, axis=-1)", "The permutation that sorts; equal elements keep their order.",
    example=("mg.argsort(mg.tensor([3.0, 1.0, 2.0])).tolist()", "[1, 2, 0]"), numpy=np.argsort,
    compute=lambda x, axis=-1: np.argsort(x, axis=axis, kind="stable"), conventions=NO_DERIVATIVE,
)  # fmt: skip
