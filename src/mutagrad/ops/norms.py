"""Norms, and sums of exponentials: written with other ops."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError
from . import reduction
from .elementwise import absolute, equal, exp, isfinite, log, not_equal, power
from .elementwise import where as select
from .entry import Composite, Entry
from .movement import astype, squeeze
from .reduction import axes_of, euclidean, floating, stop_gradient

TABLE: dict[str, Entry] = {}


def _composite(call: str, doc: str, **rule: Any) -> None:
    made = Composite(call, doc, **rule)
    TABLE[made.name] = made


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = floating(x)
    axes = axes_of(axis, x.ndim, "norm")
    if ord is None or (ord == 2 and len(axes) == 1) or (ord == "fro" and len(axes) == 2):
        return euclidean(x, axis=axis, keepdims=keepdims)
    if len(axes) not in (1, 2):
        raise ShapeError(f"norm: with ord= expected a vector or a matrix, or axis= naming one or two axes, got {axes}.")
    if len(axes) == 1:
        out = _of_vectors(x, ord, axes)
    else:
        rows, columns = axes if axis is None else [i % x.ndim for i in axis]
        out = _of_matrices(x, ord, rows, columns)
    return out if keepdims else squeeze(out, axes)


def _of_matrices(x: Any, ord: Any, rows: int, columns: int) -> Any:
    """The largest or smallest sum of absolute values along one axis."""
    if ord not in (1, -1, inf, -inf):
        raise DTypeError(f"norm: ord={ord!r} of a matrix is not supported; None, 'fro', 1, -1, inf and -inf are.")
    along, over = (rows, columns) if abs(ord) == 1 else (columns, rows)
    totals = reduction.sum(absolute(x), axis=along, keepdims=True)
    return _extreme(totals, ord, over)


def _extreme(a: Any, ord: Any, axis: Any) -> Any:
    """The largest element, or the smallest for a negative order; 0 and inf of no elements."""
    if a.size == 0:
        return (reduction.max if ord > 0 else reduction.min)(a, axis, keepdims=True, initial=0 if ord > 0 else inf)
    return (reduction.max if ord > 0 else reduction.min)(a, axis, keepdims=True)


def _of_vectors(x: Any, ord: Any, axes: Any) -> Any:
    if not isinstance(ord, int | float | np.number):
        raise DTypeError(f"norm: ord={ord!r} of a vector is not supported; a number, inf and -inf are.")
    if ord == 0:
        return reduction.sum(astype(not_equal(x, 0), x.dtype), axis=axes, keepdims=True)
    size = absolute(x)
    if abs(ord) == inf:
        return _extreme(size, ord, axes)
    if ord == 1:
        return reduction.sum(size, axis=axes, keepdims=True)
    return _power(reduction.sum(_power(size, float(ord)), axis=axes, keepdims=True), 1 / float(ord))


def _power(x: Any, exponent: float) -> Any:
    """x**exponent for x >= 0, whose derivative at 0 is 0."""
    if exponent < 0:
        return power(x, exponent)
    zero = equal(x, 0)
    return select(zero, 0, power(select(zero, 1, x), exponent))


_composite(
    "norm(x, ord=None, axis=None, keepdims=False)",
    "Vector or matrix norm, by default the square root of the sum of squares over all axes.",
    example=("mg.norm(mg.tensor([3.0, -4.0])).item()", "5.0"), numpy=np.linalg.norm, function=_norm,
    conventions="the derivative at 0 is 0; ties share the gradient evenly; ord=0 counts, and has none",
)  # fmt: skip


def _shift(x: Any, axis: Any) -> Any:
    # Nothing has no largest element, and no elements to shift.
    least = -inf if 0 in np.shape(x) else None
    top = stop_gradient(reduction.max(x, axis=axis, keepdims=True, initial=least))
    return select(isfinite(top), top, 0.0)


def _logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    top = _shift(x, axis)
    out = log(reduction.sum(exp(x - top), axis=axis, keepdims=True)) + top
    return out if keepdims else squeeze(out, axes_of(axis, out.ndim, "logsumexp"))


_composite(
    "logsumexp(x, axis=None, keepdims=False)", "log(sum(exp(x))) without overflow.",
    example=("mg.logsumexp(mg.tensor([-1000.0, -1000.0])).item()", "-999.3068528194401"), function=_logsumexp,
    numpy=lambda x, axis=None, keepdims=False: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
)  # fmt: skip


def _softmax(x: Any, axis: Any = -1) -> Any:
    e = exp(x - _shift(x, axis))
    return e / reduction.sum(e, axis=axis, keepdims=True)


_composite(
    "softmax(x, axis=-1)", "exp(x) / sum(exp(x)) along axes, without overflow.",
    example=("mg.softmax(mg.tensor([1.0, 1.0])).tolist()", "[0.5, 0.5]"), function=_softmax,
    numpy=lambda x, axis=-1: np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True),
)  # fmt: skip


def _log_softmax(x: Any, axis: Any = -1) -> Any:
    shifted = x - _shift(x, axis)
    return shifted - log(reduction.sum(exp(shifted), axis=axis, keepdims=True))


_composite(
    "log_softmax(x, axis=-1)", "log(softmax(x)) along axes, without overflow.",
    example=("mg.log_softmax(mg.tensor([1000.0, 0.0])).tolist()", "[0.0, -1000.0]"), function=_log_softmax,
    numpy=lambda x, axis=-1: x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True)),
)  # fmt: skip
