"""Ops that sum products; values through BLAS, as NumPy has it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import DTypeError, describe
from .entry import Composite, Contraction, Entry
from .indexing import scatter
from .movement import broadcast_to, concatenate, expand_dims, matrix_transpose, moveaxis, ravel, reshape, transpose
from .reduction import sum

TABLE: dict[str, Entry] = {}


def contraction(call: str, doc: str, **rule: Any) -> Contraction:
    made = Contraction(call, doc, **rule)
    TABLE[made.name] = made
    return made


def _folded(c: Any, ndim: int) -> Any:
    """Sum over the axes that broadcasting put in front; the edge would not find them once the others are moved."""
    return sum(c, tuple(range(c.ndim - ndim))) if c.ndim > ndim else c


# Products of matrices and along axes


def _matmul_x1(g: Any, x2: Any, x1_shape: Any) -> Any:
    if x2.ndim == 1:
        return expand_dims(g, -1) * x2
    if len(x1_shape) == 1:
        return matmul(x2, expand_dims(g, -1))[..., 0]
    return matmul(g, matrix_transpose(x2))


def _matmul_x2(g: Any, x1: Any, x2_shape: Any) -> Any:
    if x1.ndim == 1:
        return g * x1 if len(x2_shape) == 1 else expand_dims(x1, -1) * expand_dims(g, -2)
    if len(x2_shape) <= 2:
        # One product over all rows of the stack, instead of a stack of products that the edge would add up.
        rows = range(x1.ndim - 1)
        return tensordot(x1, g, (rows, rows))
    return matmul(matrix_transpose(x1), g)


matmul = contraction(
    "matmul(x1, x2, /, out=None)", "Matrix product, with NumPy's rules for vectors and stacks.",
    example=("mg.matmul(mg.eye(2), mg.tensor([3.0, 4.0])).tolist()", "[3.0, 4.0]"), operands=("x1", "x2"),
    ufunc=np.matmul, adjoints={"x1": _matmul_x1, "x2": _matmul_x2},
)  # fmt: skip


def _factor(g: Any, other: Any, ndim: int, mine: list[int], theirs: list[int], first: bool) -> Any:
    """The cotangent of one factor of a tensordot: g with the other factor, over the axes that came from that one."""
    free = [k for k in range(ndim) if k not in mine]
    rest = [k for k in range(other.ndim) if k not in theirs]
    made = tensordot(g, other, (range(len(free), g.ndim) if first else range(len(rest)), rest))
    order = free + [mine[theirs.index(k)] for k in sorted(theirs)]
    return transpose(made, [order.index(k) for k in range(ndim)])


def _summed(axes: Any, a_ndim: int, b_ndim: int) -> tuple[list[int], list[int]]:
    """The axes of either operand that tensordot sums over."""
    first, second = axes if np.iterable(axes) else (range(-axes, 0), range(axes))
    return [int(k) % a_ndim for k in np.atleast_1d(first)], [int(k) % b_ndim for k in np.atleast_1d(second)]


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    try:
        return np.tensordot(a, b, axes)
    except IndexError:
        raise IndexError(f"axes {axes} are out of range for {a.ndim} and {b.ndim} dimensions") from None


def _tensordot_a(g: Any, b: Any, a_shape: Any, axes: Any) -> Any:
    mine, theirs = _summed(axes, len(a_shape), b.ndim)
    return _factor(g, b, len(a_shape), mine, theirs, True)


def _tensordot_b(g: Any, a: Any, b_shape: Any, axes: Any) -> Any:
    theirs, mine = _summed(axes, a.ndim, len(b_shape))
    return _factor(g, a, len(b_shape), mine, theirs, False)


tensordot: Contraction = contraction(
    "tensordot(a, b, axes=2)", "Sum of products over pairs of axes: that many, or two lists of them.",
    example=("mg.tensordot(mg.ones((2, 3)), mg.ones((3, 2)), axes=([1, 0], [0, 1])).item()", "6.0"),
    operands=("a", "b"), numpy=np.tensordot, compute=_tensordot, method=False,
    adjoints={"a": _tensordot_a, "b": _tensordot_b},
)  # fmt: skip


def _dot_axes(a_ndim: int, b_ndim: int) -> Any:
    return ([-1], [max(b_ndim - 2, 0)]) if a_ndim and b_ndim else 0


def _dot_a(g: Any, b: Any, a_shape: Any) -> Any:
    if 0 < len(a_shape) <= 2 and 0 < b.ndim <= 2:
        return _matmul_x1(g, b, a_shape)
    return _tensordot_a(g, b, a_shape, _dot_axes(len(a_shape), b.ndim))


def _dot_b(g: Any, a: Any, b_shape: Any) -> Any:
    if 0 < a.ndim <= 2 and 0 < len(b_shape) <= 2:
        return _matmul_x2(g, a, b_shape)
    return _tensordot_b(g, a, b_shape, _dot_axes(a.ndim, len(b_shape)))


dot = contraction(
    "dot(a, b, out=None)", "Sum of products over the last axis of a and the last but one of b.",
    example=("mg.dot(mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0])).item()", "11.0"), operands=("a", "b"),
    numpy=np.dot, adjoints={"a": _dot_a, "b": _dot_b},
)  # fmt: skip


def _inner_axes(a_ndim: int, b_ndim: int) -> Any:
    return ([-1], [-1]) if a_ndim and b_ndim else 0


inner = contraction(
    "inner(a, b, /)", "Sum of products over the last axis of both.",
    example=("mg.inner(mg.ones((2, 3)), mg.arange(3.0)).tolist()", "[3.0, 3.0]"), operands=("a", "b"), numpy=np.inner,
    adjoints={
        "a": lambda g, b, a_shape: _tensordot_a(g, b, a_shape, _inner_axes(len(a_shape), b.ndim)),
        "b": lambda g, a, b_shape: _tensordot_b(g, a, b_shape, _inner_axes(a.ndim, len(b_shape))),
    },
    method=False,
)  # fmt: skip

outer = contraction(
    "outer(a, b, out=None)", "Product of every element of a with every element of b.",
    example=("mg.outer(mg.arange(1.0, 3.0), mg.arange(3.0)).tolist()", "[[0.0, 1.0, 2.0], [0.0, 2.0, 4.0]]"),
    operands=("a", "b"), numpy=np.outer, method=False,
    adjoints={
        "a": lambda g, b, a_shape: reshape(matmul(g, ravel(b)), a_shape),
        "b": lambda g, a, b_shape: reshape(matmul(ravel(a), g), b_shape),
    },
)  # fmt: skip

vdot = contraction(
    "vdot(a, b, /)", "Sum of products of all elements, both operands flattened.",
    example=("mg.vdot(mg.ones((2, 2)), mg.arange(4.0)).item()", "6.0"), operands=("a", "b"), numpy=np.vdot,
    adjoints={"a": lambda g, b, a_shape: reshape(g * b, a_shape), "b": lambda g, a, b_shape: reshape(g * a, b_shape)},
    method=False,
)  # fmt: skip


def _vecdot_pull(g: Any, other: Any, shape: Any, axis: int) -> Any:
    return moveaxis(_folded(expand_dims(g, -1) * moveaxis(other, axis, -1), len(shape)), -1, axis)


vecdot = contraction(
    "vecdot(x1, x2, /, out=None, *, axis=-1)", "Sum of products along an axis, the others broadcast.",
    example=("mg.vecdot(mg.ones((2, 3)), mg.arange(3.0)).tolist()", "[3.0, 3.0]"), operands=("x1", "x2"),
    ufunc=np.vecdot, method=False,
    adjoints={
        "x1": lambda g, x2, x1_shape, axis: _vecdot_pull(g, x2, x1_shape, axis),
        "x2": lambda g, x1, x2_shape, axis: _vecdot_pull(g, x1, x2_shape, axis),
    },
)  # fmt: skip


def _kron_pull(g: Any, other: Any, shape: Any, first: bool) -> Any:
    ndim = max(len(shape), other.ndim)
    mine, theirs = ((1,) * (ndim - len(s)) + tuple(s) for s in (shape, other.shape))
    pairs = zip(mine, theirs, strict=True) if first else zip(theirs, mine, strict=True)
    blocks = reshape(g, [n for pair in pairs for n in pair])
    return reshape(tensordot(blocks, reshape(other, theirs), (range(first, 2 * ndim, 2), range(ndim))), shape)


kron = contraction(
    "kron(a, b)", "Kronecker product: b in blocks, each times an element of a.",
    example=("mg.kron(mg.arange(1.0, 3.0), mg.ones(2)).tolist()", "[1.0, 1.0, 2.0, 2.0]"), operands=("a", "b"),
    numpy=np.kron, method=False,
    adjoints={
        "a": lambda g, b, a_shape: _kron_pull(g, b, a_shape, True),
        "b": lambda g, a, b_shape: _kron_pull(g, a, b_shape, False),
    },
)  # fmt: skip


# Products of vectors in space


def _in_space(x: Any) -> Any:
    """Vectors of the plane as vectors of space."""
    if x.shape[-1] == 3:
        return x
    return concatenate([x, np.zeros((*x.shape[:-1], 1), x.dtype)], axis=-1)


def _cross_pull(g: Any, other: Any, shape: Any, axes: Any, first: bool) -> Any:
    mine, theirs, axisc = axes
    other = moveaxis(other, theirs, -1)
    if shape[mine] == other.shape[-1] == 2:
        g = concatenate([np.zeros((*g.shape, 2), g.dtype), expand_dims(g, -1)], axis=-1)
    else:
        g = moveaxis(g, axisc, -1)
    other = _in_space(other)
    made = cross(other, g) if first else cross(g, other)
    return moveaxis(_folded(made[..., : shape[mine]], len(shape)), -1, mine)


def _cross_a(g: Any, b: Any, a_shape: Any, axisa: int, axisb: int, axisc: int, axis: Any) -> Any:
    axes = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
    return _cross_pull(g, b, a_shape, axes, True)


def _cross_b(g: Any, a: Any, b_shape: Any, axisa: int, axisb: int, axisc: int, axis: Any) -> Any:
    axes = (axisb, axisa, axisc) if axis is None else (axis, axis, axis)
    return _cross_pull(g, a, b_shape, axes, False)


cross: Contraction = contraction(
    "cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None)", "Cross product of the vectors along an axis.",
    example=("mg.cross(mg.tensor([1.0, 0.0, 0.0]), mg.tensor([0.0, 1.0, 0.0])).tolist()", "[0.0, 0.0, 1.0]"),
    operands=("a", "b"), numpy=np.cross, adjoints={"a": _cross_a, "b": _cross_b}, method=False,
)  # fmt: skip


# Sliding products


def _whole(g: Any, shapes: tuple[Any, Any], mode: Any, left: int) -> tuple[Any, bool]:
    """The cotangent of what lies in reach, and whether that is every overlap rather than the complete ones only.

    In the mode "same" it is filled up with zeros, `left` of them on the left.
    """
    if mode in ("valid", 0):
        return g, False
    if mode in ("full", 2):
        return g, True
    right = math.prod(shapes[0]) + math.prod(shapes[1]) - 1 - g.shape[0] - left
    return concatenate([np.zeros(left, g.dtype), g, np.zeros(right, g.dtype)]), True


def _mode(whole: bool, shape: Any, other: Any) -> str:
    """The mode that brings the cotangent of an operand of that shape to its size."""
    return "full" if not whole and math.prod(shape) >= math.prod(other.shape) else "valid"


def _convolve_pull(g: Any, other: Any, shape: Any, mode: Any) -> Any:
    if other.shape == () or shape == ():  # convolve takes a number as a vector of one; correlate does not
        size = (math.prod(shape),)
        return reshape(_convolve_pull(g, reshape(other, (-1,)), size, mode), shape)
    g, whole = _whole(g, (shape, other.shape), mode, (min(math.prod(shape), math.prod(other.shape)) - 1) // 2)
    return correlate(g, other, _mode(whole, shape, other))


convolve = contraction(
    "convolve(a, v, mode=\"full\")", "Sum of products of a with v reversed, at every shift.",
    example=("mg.convolve(mg.arange(1.0, 4.0), mg.tensor([0.0, 1.0])).tolist()", "[0.0, 1.0, 2.0, 3.0]"),
    operands=("a", "v"), numpy=np.convolve, method=False,
    adjoints={
        "a": lambda g, v, a_shape, mode: _convolve_pull(g, v, a_shape, mode),
        "v": lambda g, a, v_shape, mode: _convolve_pull(g, a, v_shape, mode),
    },
)  # fmt: skip


def _correlate_left(a_shape: Any, v_shape: Any) -> int:
    # NumPy lets the longer one stand still, and reverses the result where that is v.
    n, m = math.prod(a_shape), math.prod(v_shape)
    return (m - 1) // 2 if n >= m else n // 2


def _correlate_a(g: Any, v: Any, a_shape: Any, mode: Any) -> Any:
    g, whole = _whole(g, (a_shape, v.shape), mode, _correlate_left(a_shape, v.shape))
    return convolve(g, v, _mode(whole, a_shape, v))


def _correlate_v(g: Any, a: Any, v_shape: Any, mode: Any) -> Any:
    g, whole = _whole(g, (a.shape, v_shape), mode, _correlate_left(a.shape, v_shape))
    return correlate(a, g, _mode(whole, v_shape, a))


correlate: Contraction = contraction(
    "correlate(a, v, mode=\"valid\")", "Sum of products of a with v, at every shift.",
    example=("mg.correlate(mg.arange(1.0, 4.0), mg.tensor([0.0, 1.0])).tolist()", "[2.0, 3.0]"),
    operands=("a", "v"), numpy=np.correlate, adjoints={"a": _correlate_a, "v": _correlate_v}, method=False,
)  # fmt: skip


# Einstein's convention


def explicit(subscripts: str, ndims: list[int]) -> tuple[list[str], str]:
    """Write einsum subscripts with an output and without ellipses: "...i,i" -> ["Ai", "i"], "A"."""
    subscripts = subscripts.replace(" ", "")
    left, arrow, out = subscripts.partition("->")
    terms = left.split(",")
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in subscripts]
    widest = max((n - len(t) + 3 for t, n in zip(terms, ndims, strict=True) if "..." in t), default=0)
    dots = "".join(spare[:widest])
    full = [
        t.replace("...", dots[widest - (n - len(t) + 3) :] if "..." in t else "")
        for t, n in zip(terms, ndims, strict=True)
    ]
    if not arrow:
        labels = sorted(c for c in set(left) - {",", "."} if left.count(c) == 1)
        return full, dots + "".join(labels)
    return full, out.replace("...", dots)


def _einsum_adjoint(g: Any, i: int, operands: Any, shapes: Any, subscripts: str) -> Any:
    """The cotangent of one operand: einsum of g with the others, output and operand trading places."""
    terms, out = explicit(subscripts, [len(s) for s in shapes])
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, n in zip(term, shape, strict=True):
            sizes[label] = n if sizes.get(label, 1) == 1 else sizes[label]
    mine = "".join(dict.fromkeys(terms[i]))
    others = [j for j in range(len(terms)) if j != i]
    known = set(out).union(*(terms[j] for j in others))
    seen = "".join(label for label in mine if label in known)
    inputs = ",".join([out, *(terms[j] for j in others)])
    pulled = _einsum(f"{inputs}->{seen}", g, *(operands[j] for j in others))
    # A label that only this operand has was summed away: its cotangent is the same along that axis.
    pulled = pulled[tuple(slice(None) if label in seen else None for label in mine)]
    pulled = broadcast_to(pulled, tuple(sizes[label] for label in mine))
    if mine == terms[i]:
        return pulled
    # A repeated label reads a diagonal; of one element where the operand is stretched along it.
    index = {}
    for label, n in zip(terms[i], shapes[i], strict=True):
        spread = [sizes[label] if other == label else 1 for other in mine]
        index[label] = (np.arange(sizes[label]) % max(n, 1)).reshape(spread)
    return scatter(pulled, shapes[i], tuple(index[label] for label in terms[i]))


def _einsum_value(*operands: Any, subscripts: str, optimize: Any) -> Any:
    # Small products are over before a path through BLAS is found.
    large = len(operands) > 2 or math.prod(o.size for o in operands) > 1 << 21
    return np.einsum(subscripts, *operands, optimize=optimize or large)


_einsum: Contraction = Contraction(
    "einsum(subscripts, *operands, dtype=None, optimize=False)", "", operands=("*operands",), compute=_einsum_value,
    adjoints=_einsum_adjoint,
)  # fmt: skip

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SPELT: dict[Any, str] = {**dict(enumerate(_LETTERS)), Ellipsis: "..."}


def _spelt(arguments: Any) -> tuple[str, Any]:
    """NumPy's other form, operands each followed by its axes in numbers, as subscripts and operands."""
    operands, axes = arguments[: len(arguments) // 2 * 2 : 2], arguments[1::2]
    out = arguments[-1:] if len(arguments) % 2 else ()
    if not all(isinstance(each, list | tuple) and all(k in _SPELT for k in each) for each in (*axes, *out)):
        got = "; ".join(repr(a) if isinstance(a, list | tuple) else describe(a) for a in arguments)
        raise DTypeError(
            "einsum: expected subscripts as text, or operands each followed by a list of axes numbered "
            f"from 0 to {len(_LETTERS) - 1}, got {got}."
        )
    terms = ["".join(_SPELT[k] for k in each) for each in (*axes, *out)]
    return ",".join(terms[: len(axes)]) + "".join("->" + term for term in terms[len(axes) :]), operands


def _einsum_forms(subscripts: Any, *operands: Any, dtype: Any = None, optimize: Any = False) -> Any:
    if not isinstance(subscripts, str):
        subscripts, operands = _spelt((subscripts, *operands))
    return _einsum(subscripts, *operands, dtype=dtype, optimize=optimize)


einsum = Composite(
    "einsum(subscripts, *operands, out=None, dtype=None, optimize=False)",
    "Sum of products by Einstein's convention, subscripts as text or as lists of numbers.",
    example=("mg.einsum('ii', mg.eye(3)).item()", "3.0"), operands=("*operands",), numpy=np.einsum,
    function=_einsum_forms, method=False,
)  # fmt: skip
TABLE["einsum"] = einsum
