"""Ops that combine elements along axes, at once or running."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import fastmath
from .elementwise import declared, equal, exp, isfinite, isnan, log, sqrt, square, where
from .entry import NO_DERIVATIVE, Composite, Contraction, Entry, Indexing, Reduction
from .movement import broadcast_to, concatenate, expand_dims, flip, reshape, transpose

TABLE: dict[str, Entry] = {}


def _add(entry: Any) -> Any:
    TABLE[entry.name] = entry
    return entry


stop_gradient = declared("stop_gradient(x)", "x, as a constant.", forward="{0}", like=np.positive, private=True)


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return tuple(a % ndim for a in (axis if isinstance(axis, tuple | list) else (axis,)))


def _ties(x: np.ndarray, out: np.ndarray, axis: Any) -> dict[str, np.ndarray]:
    ties = (x == out) | ((x != x) & (out != out))
    return {"ties": ties, "count": np.sum(ties, axis=axis, keepdims=True, dtype=out.dtype)}


sum = _add(Reduction(
    "sum(x, axis=None, keepdims=False)", "Sum over axes.", numpy=np.sum, init=0.0, additive=True,
    combine=lambda acc, x: acc + x, partial=lambda: 1,
))  # fmt: skip

mean = _add(Reduction(
    "mean(x, axis=None, keepdims=False)", "Arithmetic mean over axes.", numpy=np.mean, init=0.0, additive=True,
    combine=lambda acc, x: acc + x, finish=lambda acc, n: acc / n, partial=lambda n: 1 / n, like=np.true_divide,
))  # fmt: skip

max = _add(Reduction(
    "max(x, axis=None, keepdims=False)", "Largest element over axes; nan if there is one.", numpy=np.max,
    init=-math.inf, combine=lambda acc, x: where((x > acc) | isnan(x), x, acc), empty=False, aux=_ties,
    partial=lambda ties, count: where(ties, 1 / count, 0), aliases=("amax",),
    conventions="ties share the gradient evenly; keeps the mask of ties, so the input may be overwritten",
))  # fmt: skip

min = _add(Reduction(
    "min(x, axis=None, keepdims=False)", "Smallest element over axes; nan if there is one.", numpy=np.min,
    init=math.inf, combine=lambda acc, x: where((x < acc) | isnan(x), x, acc), empty=False, aux=_ties,
    partial=lambda ties, count: where(ties, 1 / count, 0), aliases=("amin",),
    conventions="ties share the gradient evenly; keeps the mask of ties, so the input may be overwritten",
))  # fmt: skip

norm = _add(Reduction(
    "norm(x, axis=None, keepdims=False)", "Euclidean norm: the square root of the sum of squares over axes.",
    numpy=lambda x, axis=None, keepdims=False: np.sqrt(np.sum(np.square(x), axis=axis, keepdims=keepdims)),
    init=0.0, additive=True, combine=lambda acc, x: acc + x * x, finish=lambda acc, n: sqrt(acc), like=np.sqrt,
    partial=lambda x, out: where(equal(out, 0), 0, x / out), conventions="the derivative at 0 is 0",
))  # fmt: skip


def _var(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
    deviation = x - mean(x, axis=axis, keepdims=True)
    count = math.prod(deviation.shape[a] for a in _axes(axis, deviation.ndim)) - ddof
    # NumPy divides by max(count, 0): nan or inf then, never a negative variance.
    return sum(square(deviation), axis=axis, keepdims=keepdims) / float(count if count > 0 else 0)


var = _add(Composite(
    "var(x, axis=None, ddof=0, keepdims=False)", "Variance over axes; divides by n - ddof.",
    example=("mg.var(mg.tensor([1.0, 3.0])).item()", "1.0"), numpy=np.var,
    function=_var,
))  # fmt: skip


def _shift(x: Any, axis: Any) -> Any:
    shape = np.shape(x)
    # Of nothing there is no largest; the sum of nothing is a zero of the right shape.
    largest = max if all(shape[a] for a in _axes(axis, len(shape))) else sum
    top = stop_gradient(largest(x, axis=axis, keepdims=True))
    return where(isfinite(top), top, 0.0)


def _logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    top = _shift(x, axis)
    out = log(sum(exp(x - top), axis=axis, keepdims=True)) + top
    if keepdims:
        return out
    kept = [s for a, s in enumerate(out.shape) if a not in _axes(axis, out.ndim)]
    return reshape(out, tuple(kept))


logsumexp = _add(Composite(
    "logsumexp(x, axis=None, keepdims=False)", "log(sum(exp(x))) without overflow.",
    example=("mg.logsumexp(mg.tensor([-1000.0, -1000.0])).item()", "-999.3068528194401"), function=_logsumexp,
    numpy=lambda x, axis=None, keepdims=False: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
))  # fmt: skip


def _softmax(x: Any, axis: Any = -1) -> Any:
    e = exp(x - _shift(x, axis))
    return e / sum(e, axis=axis, keepdims=True)


softmax = _add(Composite(
    "softmax(x, axis=-1)", "exp(x) / sum(exp(x)) along axes, without overflow.",
    example=("mg.softmax(mg.tensor([1.0, 1.0])).tolist()", "[0.5, 0.5]"), function=_softmax,
    numpy=lambda x, axis=-1: np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True),
))  # fmt: skip


def _choose(call: str, doc: str, numpy: Any, example: tuple[str, str]) -> Any:
    return _add(Indexing(call, doc, numpy=numpy, conventions=NO_DERIVATIVE, example=example))


argmax = _choose(
    "argmax(x, axis=None, keepdims=False)", "Index of the first largest element.", np.argmax,
    ("mg.argmax(mg.tensor([1.0, 3.0, 2.0])).item()", "1"),
)  # fmt: skip
argmin = _choose(
    "argmin(x, axis=None, keepdims=False)", "Index of the first smallest element.", np.argmin,
    ("mg.argmin(mg.tensor([1.0, 3.0, 2.0])).item()", "0"),
)  # fmt: skip

# Running sums and products

cumsum: Contraction = _add(Contraction(
    "cumsum(x, axis=None)", "Running sum along an axis, of the flattened input by default.",
    example=("mg.cumsum(mg.tensor([1.0, 2.0, 3.0])).tolist()", "[1.0, 3.0, 6.0]"), numpy=np.cumsum,
    adjoints={"x": lambda g, x_shape, axis: reshape(
        flip(cumsum(flip(g, axis=axis or 0), axis=axis or 0), axis=axis or 0), x_shape
    )},
))  # fmt: skip


def _constant(x: Any, value: float) -> np.ndarray:
    """One value in place of the first along the last axis; not x * 0, which is nan where x is not finite."""
    return np.full(x[..., :1].shape, value, x.dtype)


def _previous(y: Any) -> Any:
    """y shifted by one along the last axis, zero coming in."""
    return concatenate([_constant(y, 0), y[..., :-1]], axis=-1)


def _following(a: Any) -> Any:
    return concatenate([a[..., 1:], _constant(a, 0)], axis=-1)


def _backwards(g: Any, a: Any) -> Any:
    """The recurrence's own adjoint: s[i] = g[i] + a[i + 1] * s[i + 1]."""
    return flip(recurrence(flip(_following(a), axis=-1), flip(g, axis=-1)), axis=-1)


# y[i] = a[i] * y[i - 1] + b[i] along the last axis, y[-1] = 0. Its adjoint is a recurrence again, so products
# with zeros differentiate exactly, to any order, without a division.
recurrence = _add(Contraction(
    "recurrence(a, b)", "Linear recurrence along the last axis.", operands=("a", "b"), private=True,
    kernel=fastmath.recurrence,
    adjoints={"a": lambda g, a, out: _backwards(g, a) * _previous(out), "b": lambda g, a: _backwards(g, a)},
))  # fmt: skip


def _last(x: Any, axis: int) -> Any:
    order = [a for a in range(x.ndim) if a != axis % x.ndim] + [axis % x.ndim]
    return transpose(x, order)


def _unlast(x: Any, axis: int) -> Any:
    order = list(range(x.ndim - 1))
    order.insert(axis % x.ndim, x.ndim - 1)
    return transpose(x, order)


def _cumprod_adjoint(g: Any, x: Any, x_shape: Any, axis: Any) -> Any:
    """The cotangent s[i] * (product of what stands before i), where s is the recurrence's adjoint."""
    if axis is None:
        return reshape(_cumprod_adjoint(g, reshape(x, (-1,)), None, 0), x_shape)
    if x.shape[axis] == 0:
        return g
    a = _last(x, axis)
    return _unlast(_backwards(_last(g, axis), a) * _before(a), axis)


cumprod = _add(Contraction(
    "cumprod(x, axis=None)", "Running product along an axis, of the flattened input by default.",
    example=("mg.cumprod(mg.tensor([1.0, 2.0, 3.0])).tolist()", "[1.0, 2.0, 6.0]"),
    numpy=np.cumprod, adjoints={"x": _cumprod_adjoint}, conventions="exact also where elements are zero",
))  # fmt: skip


def _before(x: Any) -> Any:
    """For each element the product of those before it, along the last axis."""
    return concatenate([_constant(x, 1), cumprod(x[..., :-1], axis=-1)], axis=-1)


def _prod_adjoint(g: Any, x: Any, x_shape: Any, axis: Any, keepdims: bool) -> Any:
    axes = _axes(axis, x.ndim)
    if not keepdims:
        g = expand_dims(g, axes)
    if math.prod(x_shape) == 0:
        return broadcast_to(g, x_shape) * x
    rest = [a for a in range(x.ndim) if a not in axes]
    order = [*rest, *axes]
    moved = transpose(x, order)
    flat = reshape(moved, (*(x_shape[a] for a in rest), -1))
    others = _before(flat) * flip(_before(flip(flat, axis=-1)), axis=-1)
    return g * transpose(reshape(others, moved.shape), [order.index(a) for a in range(x.ndim)])


prod = _add(Contraction(
    "prod(x, axis=None, keepdims=False)", "Product over axes.",
    example=("mg.grad(mg.prod)(np.array([2.0, 0.0, 3.0])).tolist()", "[0.0, 6.0, 0.0]"),
    numpy=np.prod, adjoints={"x": _prod_adjoint},
    conventions="exact also where elements are zero",
))  # fmt: skip
