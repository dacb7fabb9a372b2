"""Ops that rearrange elements: views where NumPy's are."""

from __future__ import annotations

from typing import Any

import numpy as np

from .entry import Entry, Movement

TABLE: dict[str, Entry] = {}


def movement(call: str, doc: str, **rule: Any) -> Movement:
    made = Movement(call, doc, **rule)
    TABLE[made.name] = made
    return made


def _back(g: Any, x_shape: Any) -> Any:
    return reshape(g, x_shape)


reshape = movement(
    "reshape(x, shape)", "The same elements in another shape; a view where NumPy gives one.",
    example=("mg.reshape(mg.arange(6), (2, 3)).tolist()", "[[0, 1, 2], [3, 4, 5]]"), numpy=np.reshape,
    view=True, adjoints={"x": _back},
)  # fmt: skip

ravel = movement(
    "ravel(x)", "The elements in one row; a view where NumPy gives one.",
    example=("mg.ravel(mg.eye(2)).tolist()", "[1.0, 0.0, 0.0, 1.0]"), numpy=np.ravel, view=True,
    adjoints={"x": _back},
)  # fmt: skip

transpose = movement(
    "transpose(x, axes=None)",
    "Permute the axes; a view.",
    example=("mg.transpose(mg.zeros((2, 3))).shape", "(3, 2)"),
    numpy=np.transpose,
    view=True,
)
squeeze = movement(
    "squeeze(x, axis=None)",
    "Drop axes of length 1; a view.",
    example=("mg.squeeze(mg.zeros((1, 3, 1))).shape", "(3,)"),
    numpy=np.squeeze,
    view=True,
)
expand_dims = movement(
    "expand_dims(x, axis)",
    "Add axes of length 1; a view.",
    example=("mg.expand_dims(mg.zeros(3), 0).shape", "(1, 3)"),
    numpy=np.expand_dims,
    view=True,
)
flip = movement(
    "flip(x, axis=None)",
    "Reverse axes; a view.",
    example=("mg.flip(mg.arange(3)).tolist()", "[2, 1, 0]"),
    numpy=np.flip,
    view=True,
)

broadcast_to = movement(
    "broadcast_to(x, shape)",
    "Stretch to a larger shape; a read-only view.",
    example=("mg.broadcast_to(mg.arange(2), (2, 2)).tolist()", "[[0, 1], [0, 1]]"),
    numpy=np.broadcast_to,
    view=True,
)

diagonal = movement(
    "diagonal(x, offset=0, axis1=0, axis2=1)", "The diagonal of two axes; a writable view.",
    example=("mg.diagonal(mg.eye(2)).tolist()", "[1.0, 1.0]"), numpy=np.diagonal,
    view=True,
)  # fmt: skip


def _piece(g: Any, i: int, shapes: Any, axis: Any) -> Any:
    if axis is None:
        start = sum(int(np.prod(s)) for s in shapes[:i])
        return reshape(g[start : start + int(np.prod(shapes[i]))], shapes[i])
    start = sum(s[axis] for s in shapes[:i])
    key = [slice(None)] * g.ndim
    key[axis] = slice(start, start + shapes[i][axis])
    return g[tuple(key)]


concatenate = movement(
    "concatenate(arrays, /, axis=0, out=None, *, dtype=None)",
    "Join along an axis; axis=None joins the flattened inputs.",
    example=("mg.concatenate([mg.ones(1), mg.zeros(2)]).tolist()", "[1.0, 0.0, 0.0]"), operands=("*arrays",),
    numpy=np.concatenate, adjoints=_piece, method=False,
)  # fmt: skip


def _slice(g: Any, i: int, axis: int) -> Any:
    key: list[Any] = [slice(None)] * g.ndim
    key[axis] = i
    return g[tuple(key)]


stack = movement(
    "stack(arrays, axis=0, out=None, *, dtype=None)",
    "Join along a new axis.",
    example=("mg.stack([mg.ones(2), mg.zeros(2)]).tolist()", "[[1.0, 1.0], [0.0, 0.0]]"),
    operands=("*arrays",),
    numpy=np.stack,
    adjoints=_slice,
    method=False,
)

# The cotangent is cast back on the edge to the operand.
astype = movement(
    "astype(x, to)", "The same values in another dtype.", compute=lambda x, to: x.astype(to), private=True,
    adjoints={"x": lambda g: g},
)  # fmt: skip
