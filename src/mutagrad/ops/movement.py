"""Ops that rearrange the elements of one array, views where NumPy's are, and those that join arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .entry import Entry, Movement

TABLE: dict[str, Entry] = {}


def movement(call: str, doc: str, **rule: Any) -> Movement:
    made = Movement(call, doc, **rule)
    TABLE[made.name] = made
    return made


# Another shape


def _back(g: Any, a_shape: Any) -> Any:
    return reshape(g, a_shape)


reshape = movement(
    "reshape(a, /, shape)", "The same elements in another shape; a view where NumPy gives one.",
    example=("mg.reshape(mg.arange(6), (2, 3)).tolist()", "[[0, 1, 2], [3, 4, 5]]"), numpy=np.reshape,
    view=True, adjoints={"a": _back},
)  # fmt: skip

ravel = movement(
    "ravel(a)", "The elements in one row; a view where NumPy gives one.",
    example=("mg.ravel(mg.eye(2)).tolist()", "[1.0, 0.0, 0.0, 1.0]"), numpy=np.ravel, view=True,
    adjoints={"a": _back},
)  # fmt: skip

squeeze = movement(
    "squeeze(a, axis=None)", "Drop axes of length 1; a view.", view=True, numpy=np.squeeze,
    example=("mg.squeeze(mg.zeros((1, 3, 1))).shape", "(3,)"),
)  # fmt: skip

expand_dims = movement(
    "expand_dims(a, axis)", "Add axes of length 1; a view.", view=True, numpy=np.expand_dims,
    example=("mg.expand_dims(mg.zeros(3), 0).shape", "(1, 3)"),
)  # fmt: skip

broadcast_to = movement(
    "broadcast_to(array, shape)", "Stretch to a larger shape; a read-only view.", view=True, numpy=np.broadcast_to,
    example=("mg.broadcast_to(mg.arange(2), (2, 2)).tolist()", "[[0, 1], [0, 1]]"),
)  # fmt: skip

# What a composite was given, as a tensor: a view of a tensor, a copy of anything else.
whole = movement("whole(a)", "a itself; a view.", compute=lambda a: a[...], view=True, private=True)

_AT_LEAST = {1: np.atleast_1d, 2: np.atleast_2d, 3: np.atleast_3d}
atleast = movement(
    "atleast(a, ndim)", "At least that many axes; a view.", compute=lambda a, ndim: _AT_LEAST[ndim](a),
    view=True, private=True,
)  # fmt: skip

# Another order of axes

transpose = movement(
    "transpose(a, axes=None)", "Permute the axes; a view.", view=True, numpy=np.transpose, aliases=("permute_dims",),
    example=("mg.transpose(mg.zeros((2, 3))).shape", "(3, 2)"),
)  # fmt: skip

matrix_transpose = movement(
    "matrix_transpose(x, /)", "Exchange the last two axes; a view.", view=True, numpy=np.matrix_transpose,
    example=("mg.matrix_transpose(mg.zeros((4, 2, 3))).shape", "(4, 3, 2)"),
)  # fmt: skip

swapaxes = movement(
    "swapaxes(a, axis1, axis2)", "Exchange two axes; a view.", view=True, numpy=np.swapaxes,
    example=("mg.swapaxes(mg.zeros((2, 3, 4)), 0, 2).shape", "(4, 3, 2)"),
)  # fmt: skip

moveaxis = movement(
    "moveaxis(a, source, destination)", "Axes moved to other places, the rest in their order; a view.", view=True,
    numpy=np.moveaxis, example=("mg.moveaxis(mg.zeros((2, 3, 4)), 0, -1).shape", "(3, 4, 2)"),
)  # fmt: skip

rollaxis = movement(
    "rollaxis(a, axis, start=0)", "One axis moved to stand before another; a view.", view=True,
    numpy=np.rollaxis, example=("mg.rollaxis(mg.zeros((2, 3, 4)), 2).shape", "(4, 2, 3)"),
)  # fmt: skip

flip = movement(
    "flip(m, axis=None)", "Reverse axes; a view.", view=True, numpy=np.flip,
    example=("mg.flip(mg.arange(3)).tolist()", "[2, 1, 0]"),
)  # fmt: skip

flipud = movement(
    "flipud(m)", "Reverse the first axis; a view.", view=True, numpy=np.flipud,
    example=("mg.flipud(mg.eye(2)).tolist()", "[[0.0, 1.0], [1.0, 0.0]]"),
)  # fmt: skip

fliplr = movement(
    "fliplr(m)", "Reverse the second axis; a view.", view=True, numpy=np.fliplr,
    example=("mg.fliplr(mg.eye(2)).tolist()", "[[0.0, 1.0], [1.0, 0.0]]"),
)  # fmt: skip

rot90 = movement(
    "rot90(m, k=1, axes=(0, 1))", "Turn by 90 degrees k times, from the first axis towards the second; a view.",
    view=True, numpy=np.rot90, example=("mg.rot90(mg.tensor([[1, 2], [3, 4]])).tolist()", "[[2, 4], [1, 3]]"),
)  # fmt: skip


def _unrolled(g: Any, shift: Any, axis: Any) -> Any:
    return roll(g, -np.asarray(shift, np.intp), axis)


roll = movement(
    "roll(a, shift, axis=None)", "Elements shifted along axes, those pushed out coming in at the other end.",
    example=("mg.roll(mg.arange(4), 1).tolist()", "[3, 0, 1, 2]"), numpy=np.roll, adjoints={"a": _unrolled},
    conventions="without an axis the flattened elements move and the shape stays",
)  # fmt: skip

# Diagonals and triangles

diagonal = movement(
    "diagonal(a, offset=0, axis1=0, axis2=1)", "The diagonal of two axes; a writable view.",
    example=("mg.diagonal(mg.eye(2)).tolist()", "[1.0, 1.0]"), numpy=np.diagonal, view=True,
)  # fmt: skip

diagflat = movement(
    "diagflat(v, k=0)", "A matrix with the flattened elements on its k-th diagonal, zeros elsewhere.",
    example=("mg.diagflat(mg.tensor([[1.0, 2.0]])).tolist()", "[[1.0, 0.0], [0.0, 2.0]]"), numpy=np.diagflat,
    adjoints={"v": lambda g, v_shape, k: reshape(diagonal(g, k), v_shape)},
)  # fmt: skip

triu: Movement = movement(
    "triu(m, k=0)", "The upper triangle of the last two axes, zeros below the k-th diagonal.",
    example=("mg.triu(mg.ones((2, 2))).tolist()", "[[1.0, 1.0], [0.0, 1.0]]"), numpy=np.triu,
    adjoints={"m": lambda g, k: triu(g, k)},
)  # fmt: skip

tril: Movement = movement(
    "tril(m, k=0)", "The lower triangle of the last two axes, zeros above the k-th diagonal.",
    example=("mg.tril(mg.ones((2, 2))).tolist()", "[[1.0, 0.0], [1.0, 1.0]]"), numpy=np.tril,
    adjoints={"m": lambda g, k: tril(g, k)},
)  # fmt: skip

# Joined


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
    "Join along an axis; axis=None joins the flattened inputs.", aliases=("concat",),
    example=("mg.concatenate([mg.ones(1), mg.zeros(2)]).tolist()", "[1.0, 0.0, 0.0]"), operands=("*arrays",),
    numpy=np.concatenate, adjoints=_piece, method=False,
)  # fmt: skip


def _slice(g: Any, i: int, axis: int) -> Any:
    key: list[Any] = [slice(None)] * g.ndim
    key[axis] = i
    return g[tuple(key)]


stack = movement(
    "stack(arrays, axis=0, out=None, *, dtype=None)", "Join along a new axis.", operands=("*arrays",), numpy=np.stack,
    example=("mg.stack([mg.ones(2), mg.zeros(2)]).tolist()", "[[1.0, 1.0], [0.0, 0.0]]"), adjoints=_slice,
    method=False,
)  # fmt: skip

# The cotangent is cast back on the edge to the operand.
astype = movement(
    "astype(x, to)", "The same values in another dtype.", compute=lambda x, to: x.astype(to), private=True,
    adjoints={"x": lambda g: g},
)  # fmt: skip
