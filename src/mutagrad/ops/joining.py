"""Ops that join arrays, cut them apart, repeat their elements and border them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from .entry import Composite, Entry, Movement
from .indexing import scatter
from .movement import astype, atleast, broadcast_to, concatenate, diagonal, moveaxis, ravel, reshape, transpose, whole
from .reduction import sum

TABLE: dict[str, Entry] = {}


def _movement(call: str, doc: str, **rule: Any) -> Movement:
    made = Movement(call, doc, **rule)
    TABLE[made.name] = made
    return made


def _composite(call: str, doc: str, function: Callable[..., Any], **rule: Any) -> Composite:
    made = Composite(call, doc, function=function, **rule)
    TABLE[made.name] = made
    return made


# Cut apart: lists of views


def _cuts(n: int, sections: Any, even: bool) -> list[Any]:
    """Where the pieces of n elements begin and end: one bound more than pieces."""
    if np.ndim(sections):
        return [0, *sections, n]
    count = int(sections)
    if count <= 0:
        raise ValueError(f"the number of sections must be positive, got {count}")
    if even and n % count:
        raise ValueError(f"{n} elements do not divide into {count} equal sections; array_split makes unequal ones")
    each, longer = divmod(n, count)
    return [k * each + min(k, longer) for k in range(count + 1)]


def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0, even: bool = False) -> list[Any]:
    a = whole(ary)
    axis = normalize_axis_index(axis, a.ndim)
    cuts = _cuts(a.shape[axis], indices_or_sections, even)
    before = (slice(None),) * axis
    return [a[(*before, slice(*ends))] for ends in itertools.pairwise(cuts)]


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    return _array_split(ary, indices_or_sections, axis, even=True)


def _along(axis: int, least: int) -> Callable[..., Any]:
    """Split along an axis, or the last where there are fewer."""

    def function(ary: Any, indices_or_sections: Any) -> list[Any]:
        ndim = np.ndim(ary)
        if ndim < least:
            raise ValueError(f"expected at least {least} dimension{'s' * (least > 1)}, got {ndim}")
        return _split(ary, indices_or_sections, min(axis, ndim - 1))

    return function


split = _composite(
    "split(ary, indices_or_sections, axis=0)", "A list of equal parts along an axis, or of those between indices; "
    "views.", _split, example=("[p.tolist() for p in mg.split(mg.arange(4), 2)]", "[[0, 1], [2, 3]]"),
    numpy=np.split, method=False,
)  # fmt: skip

array_split = _composite(
    "array_split(ary, indices_or_sections, axis=0)", "As `split`, where equal parts cannot be had the first are "
    "longer by one; views.", _array_split, numpy=np.array_split, method=False,
    example=("[p.tolist() for p in mg.array_split(mg.arange(3), 2)]", "[[0, 1], [2]]"),
)  # fmt: skip

hsplit = _composite(
    "hsplit(ary, indices_or_sections)", "Split along the second axis, the only one of a vector; views.",
    _along(1, 1), example=("[p.tolist() for p in mg.hsplit(mg.eye(2), 2)]", "[[[1.0], [0.0]], [[0.0], [1.0]]]"),
    numpy=np.hsplit, method=False,
)  # fmt: skip

vsplit = _composite(
    "vsplit(ary, indices_or_sections)", "Split along the first of two or more axes; views.", _along(0, 2),
    example=("[p.tolist() for p in mg.vsplit(mg.eye(2), 2)]", "[[[1.0, 0.0]], [[0.0, 1.0]]]"),
    numpy=np.vsplit, method=False,
)  # fmt: skip

dsplit = _composite(
    "dsplit(ary, indices_or_sections)", "Split along the third axis; views.", _along(2, 3), numpy=np.dsplit,
    example=("[p.shape for p in mg.dsplit(mg.zeros((1, 2, 4)), 2)]", "[(1, 2, 2), (1, 2, 2)]"), method=False,
)  # fmt: skip

unstack = _composite(
    "unstack(x, /, *, axis=0)", "A tuple of the parts along an axis, which they lose; views.",
    lambda x, axis=0: tuple(moveaxis(x, axis, 0)), numpy=np.unstack,
    example=("[p.tolist() for p in mg.unstack(mg.eye(2))]", "[[1.0, 0.0], [0.0, 1.0]]"),
    conventions="of a vector the parts are numbers, which are no views, as in NumPy",
)  # fmt: skip

# Seen with more axes, or in a common shape


def _each(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


atleast_1d = _composite(
    "atleast_1d(*arys)", "A number as a vector of one; a view. Several arguments give a tuple.",
    lambda *arys: _each([atleast(a, 1) for a in arys]), operands=("*arys",), numpy=np.atleast_1d, method=False,
    example=("mg.atleast_1d(mg.tensor(2.0)).tolist()", "[2.0]"),
)  # fmt: skip

atleast_2d = _composite(
    "atleast_2d(*arys)", "A vector as a row; a view. Several arguments give a tuple.",
    lambda *arys: _each([atleast(a, 2) for a in arys]), operands=("*arys",), numpy=np.atleast_2d, method=False,
    example=("mg.atleast_2d(mg.arange(2)).tolist()", "[[0, 1]]"),
)  # fmt: skip

atleast_3d = _composite(
    "atleast_3d(*arys)", "A vector (n) as (1, n, 1), a matrix (m, n) as (m, n, 1); a view. Several arguments give a "
    "tuple.", lambda *arys: _each([atleast(a, 3) for a in arys]), operands=("*arys",), numpy=np.atleast_3d,
    example=("mg.atleast_3d(mg.arange(2)).shape", "(1, 2, 1)"), method=False,
)  # fmt: skip


def _broadcast_arrays(*args: Any) -> Any:
    shape = np.broadcast_shapes(*map(np.shape, args))
    return tuple(broadcast_to(a, shape) for a in args)


broadcast_arrays = _composite(
    "broadcast_arrays(*args)", "A tuple of the arguments stretched to their common shape; views, read-only where "
    "stretched.", _broadcast_arrays, operands=("*args",), numpy=np.broadcast_arrays, method=False,
    example=("[a.shape for a in mg.broadcast_arrays(mg.zeros(2), mg.zeros((3, 1)))]", "[(3, 2), (3, 2)]"),
)  # fmt: skip


def _meshgrid(*xi: Any, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing must be 'xy' or 'ij', got {indexing!r}")
    axes = list(range(len(xi)))
    if indexing == "xy":
        axes[:2] = axes[1::-1]
    grids = [reshape(x, [-1 if a == b else 1 for b in range(len(xi))]) for a, x in zip(axes, xi, strict=True)]
    return tuple(astype(x, x.dtype) for x in (grids if sparse else _broadcast_arrays(*grids)))


meshgrid = _composite(
    "meshgrid(*xi, sparse=False, indexing='xy')", "A tuple of the coordinates of a grid, from those along its axes.",
    _meshgrid, operands=("*xi",), numpy=np.meshgrid, method=False,
    example=("[x.tolist() for x in mg.meshgrid(mg.arange(2), mg.arange(2))]", "[[[0, 1], [0, 1]], [[0, 0], [1, 1]]]"),
    conventions="each of the results has memory of its own",
)  # fmt: skip

# Joined

vstack = _composite(
    "vstack(tup, *, dtype=None)", "Join along the first axis, vectors being rows.",
    lambda tup, dtype=None: concatenate([atleast(a, 2) for a in tup], 0, dtype=dtype), operands=("*tup",),
    example=("mg.vstack([mg.ones(2), mg.zeros(2)]).tolist()", "[[1.0, 1.0], [0.0, 0.0]]"), numpy=np.vstack,
    method=False,
)  # fmt: skip


def _hstack(tup: Any, dtype: Any = None) -> Any:
    arrays = [atleast(a, 1) for a in tup]
    return concatenate(arrays, 0 if arrays and arrays[0].ndim == 1 else 1, dtype=dtype)


hstack = _composite(
    "hstack(tup, *, dtype=None)", "Join along the second axis, vectors along their only one.", _hstack,
    example=("mg.hstack([mg.ones(1), mg.zeros(2)]).tolist()", "[1.0, 0.0, 0.0]"), operands=("*tup",),
    numpy=np.hstack, method=False,
)  # fmt: skip

dstack = _composite(
    "dstack(tup)", "Join along the third axis, vectors being (1, n, 1), matrices (m, n, 1).",
    lambda tup: concatenate([atleast(a, 3) for a in tup], 2), operands=("*tup",), numpy=np.dstack, method=False,
    example=("mg.dstack([mg.ones(2), mg.zeros(2)]).tolist()", "[[[1.0, 0.0], [1.0, 0.0]]]"),
)  # fmt: skip


def _column(a: Any) -> Any:
    a = whole(a)
    return a if a.ndim > 1 else transpose(atleast(a, 2))


column_stack = _composite(
    "column_stack(tup)", "Join along the second axis, vectors being columns.",
    lambda tup: concatenate([_column(a) for a in tup], 1), operands=("*tup",), numpy=np.column_stack, method=False,
    example=("mg.column_stack([mg.ones(2), mg.zeros(2)]).tolist()", "[[1.0, 0.0], [1.0, 0.0]]"),
)  # fmt: skip


def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return concatenate([ravel(arr), ravel(values)] if axis is None else [arr, values], 0 if axis is None else axis)


append = _composite(
    "append(arr, values, axis=None)", "The values after those of arr, along an axis or all flattened.", _append,
    example=("mg.append(mg.ones(1), mg.zeros(2)).tolist()", "[1.0, 0.0, 0.0]"), operands=("arr", "values"),
    numpy=np.append, method=False,
)  # fmt: skip

# Repeated, bordered, put in and left out. An op that only moves elements says where each came from when it moves
# their numbers instead.


def _numbers(shape: tuple[int, ...], start: int = 0) -> np.ndarray:
    return np.arange(start, start + math.prod(shape)).reshape(shape)


def _sent_back(g: Any, shape: tuple[int, ...], moved: np.ndarray) -> Any:
    """The cotangent of an operand of that shape, whose elements went where `moved` has their numbers."""
    return reshape(scatter(ravel(g), (math.prod(shape),), moved.ravel()), shape)


def _unrepeated(g: Any, a_shape: Any, repeats: Any, axis: Any) -> Any:
    if np.ndim(repeats):
        return _sent_back(g, a_shape, np.repeat(_numbers(a_shape), repeats, axis))
    shape, axis = ((math.prod(a_shape),), 0) if axis is None else (a_shape, axis % len(a_shape))
    apart = reshape(g, (*shape[: axis + 1], int(repeats), *shape[axis + 1 :]))
    return reshape(sum(apart, axis=axis + 1), a_shape)


repeat = _movement(
    "repeat(a, repeats, axis=None)", "Each element several times over, along an axis or flattened.",
    example=("mg.repeat(mg.arange(3), [2, 0, 1]).tolist()", "[0, 0, 2]"), numpy=np.repeat,
    adjoints={"a": _unrepeated},
)  # fmt: skip


def _untiled(g: Any, A_shape: Any, reps: Any) -> Any:
    times = tuple(np.atleast_1d(reps))
    ndim = max(len(times), len(A_shape))
    pairs = zip((1,) * (ndim - len(times)) + times, (1,) * (ndim - len(A_shape)) + A_shape, strict=True)
    apart = reshape(g, [n for pair in pairs for n in pair])
    return reshape(sum(apart, axis=tuple(range(0, 2 * ndim, 2))), A_shape)


tile = _movement(
    "tile(A, reps)", "The whole array several times over, along each axis.", numpy=np.tile,
    example=("mg.tile(mg.arange(2), (2, 2)).tolist()", "[[0, 1, 0, 1], [0, 1, 0, 1]]"), adjoints={"A": _untiled},
)  # fmt: skip

_BORDERS = ("constant", "edge", "reflect", "symmetric", "wrap")


def _pad(array: np.ndarray, pad_width: Any, mode: Any, kwargs: dict[str, Any]) -> np.ndarray:
    if mode not in _BORDERS:
        raise ValueError(f"mode {mode!r} is not supported; {', '.join(_BORDERS)} are")
    if kwargs.get("reflect_type", "even") != "even":
        raise ValueError(f"reflect_type={kwargs['reflect_type']!r} is not supported; 'even' is")
    return np.pad(array, pad_width, mode, **kwargs)


def _unpadded(g: Any, array_shape: Any, pad_width: Any, mode: Any, kwargs: dict[str, Any]) -> Any:
    if mode != "constant":
        return _sent_back(g, array_shape, np.pad(_numbers(array_shape), pad_width, mode, **kwargs))
    # NumPy knows how a width may be written: where it puts a single element, ours begin.
    begin = np.argwhere(np.pad(np.ones((1,) * len(array_shape), bool), pad_width))[0]
    return g[tuple(slice(b, b + n) for b, n in zip(begin, array_shape, strict=True))]


pad = _movement(
    "pad(array, pad_width, mode='constant', **kwargs)", "A border around the elements: `constant_values`, or "
    "elements from the edge, reflected or from the other side.", compute=_pad, numpy=np.pad,
    example=("mg.pad(mg.arange(3), 1, mode='edge').tolist()", "[0, 0, 1, 2, 2]"), adjoints={"array": _unpadded},
    conventions="modes constant, edge, reflect, symmetric, wrap; constant_values are numbers, without gradient",
)  # fmt: skip

delete = _movement(
    "delete(arr, obj, axis=None)", "Without the elements that an index names, along an axis or flattened.",
    example=("mg.delete(mg.arange(4), [0, 2]).tolist()", "[1, 3]"), numpy=np.delete, method=False,
    adjoints={
        "arr": lambda g, arr_shape, obj, axis: _sent_back(g, arr_shape, np.delete(_numbers(arr_shape), obj, axis))
    },
)  # fmt: skip


def _inserted(arr_shape: Any, values_shape: Any, obj: Any, axis: Any) -> np.ndarray:
    """The numbers of all elements where insert puts them, those of `values` following those of `arr`."""
    return np.insert(_numbers(arr_shape), obj, _numbers(values_shape, math.prod(arr_shape)), axis)


def _from_insert(g: Any, arr_shape: Any, values_shape: Any, obj: Any, axis: Any) -> Any:
    both = (math.prod(arr_shape) + math.prod(values_shape),)
    return _sent_back(g, both, _inserted(arr_shape, values_shape, obj, axis))


insert = _movement(
    "insert(arr, obj, values, axis=None)", "With values put in before the elements that an index names, along an axis "
    "or flattened.", operands=("arr", "values"), numpy=np.insert, method=False,
    example=("mg.insert(mg.arange(3), 1, 7).tolist()", "[0, 7, 1, 2]"),
    compute=lambda arr, values, obj, axis: np.insert(arr, obj, values, axis),
    adjoints={
        "arr": lambda g, arr_shape, values_shape, obj, axis: reshape(
            _from_insert(g, arr_shape, values_shape, obj, axis)[: math.prod(arr_shape)], arr_shape
        ),
        "values": lambda g, arr_shape, values_shape, obj, axis: reshape(
            _from_insert(g, arr_shape, values_shape, obj, axis)[math.prod(arr_shape) :], values_shape
        ),
    },
)  # fmt: skip

# Diagonals

_diagonal_matrix = _movement(
    "diagonal_matrix(v, k)", "A matrix with v on its k-th diagonal.", compute=np.diag, private=True,
    adjoints={"v": lambda g, k: diagonal(g, k)},
)  # fmt: skip


def _diag(v: Any, k: int = 0) -> Any:
    ndim = np.ndim(v)
    if ndim not in (1, 2):
        raise ValueError(f"expected one or two dimensions, got {ndim}")
    return _diagonal_matrix(v, k) if ndim == 1 else diagonal(v, k)


diag = _composite(
    "diag(v, k=0)", "The k-th diagonal of a matrix, a view; of a vector, the matrix with that diagonal.", _diag,
    example=("mg.diag(mg.tensor([1.0, 2.0])).tolist()", "[[1.0, 0.0], [0.0, 2.0]]"), numpy=np.diag,
)  # fmt: skip


def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    return sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


trace = _composite(
    "trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None)", "Sum along the diagonal of two axes.", _trace,
    example=("mg.trace(mg.eye(3)).item()", "3.0"), numpy=np.trace,
)  # fmt: skip
