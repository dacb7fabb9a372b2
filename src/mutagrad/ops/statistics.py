"""Ops that describe many elements by a few, and all that skips nan: spread, order statistics; written with ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DTypeError, RangeError, ShapeError
from . import reduction
from .elementwise import equal, isnan, logical_and, logical_not, maximum, multiply, positive, square
from .elementwise import where as select
from .entry import Composite, Entry
from .indexing import sort, take_along_axis
from .movement import astype, broadcast_to, expand_dims, reshape, transpose
from .reduction import axes_of, cast, counted, euclidean, floating, stop_gradient, tensor

TABLE: dict[str, Entry] = {}


def _statistic(call: str, doc: str, numpy: Any, function: Any, example: tuple[str, str], **rule: Any) -> None:
    made = Composite(call, doc, numpy=numpy, function=function, example=example, **{"operands": ("a",), **rule})
    TABLE[made.name] = made


def _numbers(a: Any, where: Any) -> Any:
    """Where `a` is a number, and not masked out."""
    return logical_and(logical_not(isnan(a)), where)


# Spread


def _spread(name: str, root: bool = False, skip: bool = False) -> Callable[..., Any]:
    def spread(
        a: Any, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: bool = False, *, where: Any = True,
        mean: Any = None, correction: Any = None,
    ) -> Any:  # fmt: skip
        if correction is not None:
            if ddof:
                raise ShapeError(f"{name}: ddof and correction are two names of one number; give one of them.")
            ddof = correction
        a = floating(cast(a, dtype))
        if skip:
            where = _numbers(a, where)
        if mean is None:
            if root:
                # Counted from the least element, since rounding in the mean would make equal elements deviate.
                a = a - reduction.min(stop_gradient(a), axis=axis, keepdims=True, initial=math.inf, where=where)
            mean = reduction.mean(a, axis=axis, keepdims=True, where=where)
        deviation = a - mean
        if where is not True:
            deviation = reduction.chosen(name, deviation, where, 0)
        count = counted(name, a, a.dtype, axis, keepdims, where) - ddof
        # NumPy divides by max(count, 0): nan or inf then, never a negative variance.
        count = maximum(count, 0) if hasattr(count, "dtype") else float(count if count > 0 else 0)
        if root:
            out = euclidean(deviation, axis=axis, keepdims=keepdims) / count**0.5
        else:
            out = reduction.sum(square(deviation), axis=axis, keepdims=keepdims) / count
        return select(count > 0, out, math.nan) if skip else out

    return spread


_SPREAD = "(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=None, correction=None)"
_EQUAL = "the derivative at equal elements is 0"

_statistic(
    f"var{_SPREAD}", "Variance over axes; divides by n - ddof.", np.var, _spread("var"),
    ("mg.var(mg.tensor([1.0, 3.0])).item()", "1.0"),
)  # fmt: skip
_statistic(
    f"std{_SPREAD}", "Standard deviation over axes, the root of the variance.", np.std, _spread("std", root=True),
    ("mg.grad(mg.std)(np.ones(3)).tolist()", "[0.0, 0.0, 0.0]"), conventions=_EQUAL,
)  # fmt: skip
_statistic(
    f"nanvar{_SPREAD}", "Variance over axes, nan skipped.", np.nanvar, _spread("nanvar", skip=True),
    ("mg.nanvar(mg.tensor([1.0, np.nan, 3.0])).item()", "1.0"),
)  # fmt: skip
_statistic(
    f"nanstd{_SPREAD}", "Standard deviation over axes, nan skipped.", np.nanstd,
    _spread("nanstd", root=True, skip=True), ("mg.nanstd(mg.tensor([1.0, np.nan, 3.0])).item()", "1.0"),
    conventions=_EQUAL,
)  # fmt: skip


def _ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return reduction.max(a, axis=axis, keepdims=keepdims) - reduction.min(a, axis=axis, keepdims=keepdims)


_statistic(
    "ptp(a, axis=None, out=None, keepdims=False)", "Largest minus smallest element over axes.", np.ptp, _ptp,
    ("mg.ptp(mg.tensor([1.0, 5.0, 2.0])).item()", "4.0"), conventions="ties share the gradient evenly",
)  # fmt: skip


def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    a = tensor(a)
    if weights is None:
        total: Any = counted("average", a, None, axis, keepdims, True)
        out = reduction.mean(a, axis=axis, keepdims=keepdims)
    else:
        weights = _weights(a, axis, tensor(weights))
        total = reduction.sum(weights, axis=axis, keepdims=keepdims)
        if reduction.any(equal(total, 0)).item():
            raise ZeroDivisionError("average: the weights sum to zero.")
        out = reduction.sum(multiply(a, weights), axis=axis, keepdims=keepdims) / total
    return (out, positive(broadcast_to(astype(total, out.dtype), out.shape))) if returned else out


def _weights(a: Any, axis: Any, weights: Any) -> Any:
    """The weights, of the elements or of the positions along axes, as they broadcast to `a`."""
    axes = axes_of(axis, a.ndim, "average")
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise DTypeError(f"average: weights of shape {weights.shape} for an array of shape {a.shape} need axis=.")
    order = [i % a.ndim for i in (axis if isinstance(axis, tuple | list) else (axis,))]
    if weights.shape != tuple(a.shape[i] for i in order):
        raise ShapeError(f"average: weights of shape {weights.shape} do not fit shape {a.shape} along axis {axis}.")
    weights = transpose(weights, [order.index(i) for i in axes])
    return reshape(weights, tuple(n if i in axes else 1 for i, n in enumerate(a.shape)))


_statistic(
    "average(a, axis=None, weights=None, returned=False, *, keepdims=False)",
    "Weighted mean over axes; with returned=True also the sum of the weights.", np.average, _average,
    ("mg.average(mg.tensor([1.0, 4.0]), weights=[2, 1]).item()", "2.0"),
)  # fmt: skip

# Order


class _Ordered:
    """An array sorted along its reduced axes, which stand first as one; nan last.

    Parameters
    ----------
    skip : bool
        Count numbers only.
    """

    def __init__(self, name: str, a: Any, axis: Any, skip: bool) -> None:
        self.axes = axes_of(axis, a.ndim, name)
        rest = [i for i in range(a.ndim) if i not in self.axes]
        self.shape = tuple(a.shape[i] for i in rest)
        n = math.prod(a.shape[i] for i in self.axes)
        self.values = sort(reshape(transpose(a, [*self.axes, *rest]), (n, *self.shape)), 0)
        self.skip = skip or a.dtype.kind != "f"
        # How many there are: an array that broadcasts to the shape.
        self.count = np.full((1,) * len(rest), n)
        if skip:
            self.count = n - np.asarray(reduction.sum(isnan(self.values), axis=0).numpy())

    def at(self, index: np.ndarray) -> Any:
        """The elements at an index whose last axes broadcast to the shape."""
        lead = index.shape[: index.ndim - len(self.shape)]
        index = index.reshape(math.prod(lead), *index.shape[len(lead) :])
        return reshape(take_along_axis(self.values, index, 0), (*lead, *self.shape))

    def finished(self, out: Any, keepdims: bool) -> Any:
        """The result, nan where there was one that must not be skipped."""
        if not self.skip:
            last = self.values[-1]
            out = select(isnan(last), last, out)
        lead = out.ndim - len(self.shape)
        return expand_dims(out, tuple(lead + i for i in self.axes)) if keepdims else out


def _median(name: str, skip: bool = False) -> Callable[..., Any]:
    def median(a: Any, axis: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
        a = floating(a)
        if a.size == 0:
            return reduction.mean(a, axis=axis, keepdims=keepdims)
        ordered = _Ordered(name, a, axis, skip)
        low, high = np.maximum(ordered.count - 1, 0) // 2, ordered.count // 2
        out = ordered.at(low)
        if (low != high).any():
            out = (out + ordered.at(high)) / 2
        return ordered.finished(out, keepdims)

    return median


_PICKED = "among equal elements one gets the gradient, by the sorted order"

_statistic(
    "median(a, axis=None, out=None, overwrite_input=False, keepdims=False)",
    "Median over axes; nan if there is one. The input is not overwritten.", np.median, _median("median"),
    ("mg.median(mg.tensor([1.0, 9.0, 2.0])).item()", "2.0"), conventions=_PICKED,
)  # fmt: skip
_statistic(
    "nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=False)",
    "Median over axes, nan skipped. The input is not overwritten.", np.nanmedian, _median("nanmedian", skip=True),
    ("mg.nanmedian(mg.tensor([1.0, np.nan, 2.0])).item()", "1.5"), conventions=_PICKED,
)  # fmt: skip

# The methods that pick one element and do not interpolate.
_DISCRETE = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")


def _positions(name: str, q: np.ndarray, method: str, count: np.ndarray) -> np.ndarray:
    """Where each quantile stands among so many sorted elements."""
    out = np.zeros(q.shape + count.shape)
    for n in np.unique(count[count > 0]):
        try:
            # The quantile of the indices is the index of the quantile, by whatever method.
            out[..., count == n] = np.quantile(np.arange(float(n)), q, method=method)[..., None]  # type: ignore[call-overload]
        except ValueError as error:
            raise ShapeError(f"{name}: {str(error).rstrip('.')}.") from None
    return out


def _quantile(name: str, per: int, skip: bool) -> Callable[..., Any]:
    def quantile(
        a: Any, q: Any, axis: Any = None, overwrite_input: bool = False, method: str = "linear",
        keepdims: bool = False, *, weights: Any = None,
    ) -> Any:  # fmt: skip
        if weights is not None:
            raise DTypeError(f"{name}: weights= is not supported.")
        if getattr(q, "requires_grad", False):
            raise DTypeError(f"{name}: q must be constant, there is no derivative by it; pass q.detach().")
        a = tensor(a)
        weak = type(q) in (int, float) and a.dtype.kind == "f"
        q = np.true_divide(q.numpy() if hasattr(q, "requires_grad") else q, per)
        ordered = _Ordered(name, a, axis, skip)
        if len(ordered.values) == 0:
            raise RangeError(f"{name}: an empty array, shape {a.shape}, has none along axis {axis}.")
        position = _positions(name, q, method, ordered.count)
        index = np.floor(position).astype(np.intp)
        low = ordered.at(index)
        if method in _DISCRETE:
            return ordered.finished(low, keepdims)
        high = ordered.at(np.minimum(index + 1, np.maximum(ordered.count - 1, 0)))
        gap = high - low
        share = (position - index).astype(a.dtype if weak else q.dtype)
        # From the nearer end, as NumPy does.
        out = select(share < 0.5, low + gap * share, high - gap * (1 - share))
        return ordered.finished(out, keepdims)

    return quantile


for _name, _per, _skip, _called, _shown in (
    ("quantile", 1, False, np.quantile, 0.5),
    ("percentile", 100, False, np.percentile, 50),
    ("nanquantile", 1, True, np.nanquantile, 0.5),
    ("nanpercentile", 100, True, np.nanpercentile, 50),
):
    _statistic(
        f"{_name}(a, q, axis=None, out=None, overwrite_input=False, method='linear', keepdims=False, *, weights=None)",
        f"The q-th {_name.removeprefix('nan')} over axes, q in [0, {_per}], by any of NumPy's methods; "
        + ("nan is skipped." if _skip else "nan if there is one."),
        _called, _quantile(_name, _per, _skip), (f"mg.{_name}(mg.tensor([1.0, 2.0, 4.0]), {_shown}).item()", "2.0"),
        conventions=_PICKED,
    )  # fmt: skip

# What skips nan: as what it is named after, of the numbers alone


def _filled(op: Any, value: float) -> Callable[..., Any]:
    def function(a: Any, *args: Any, **given: Any) -> Any:
        a = tensor(a)
        return op(select(isnan(a), value, a) if a.dtype.kind == "f" else a, *args, **given)

    return function


def _nanmean(a: Any, *args: Any, where: Any = True, **given: Any) -> Any:
    return reduction.mean(a, *args, where=_numbers(a, where), **given)


def _extreme(op: Any, value: float) -> Callable[..., Any]:
    def function(
        a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Any:  # fmt: skip
        a = tensor(a)
        out = _filled(op, value)(a, axis=axis, keepdims=keepdims, initial=initial, where=where)
        if initial is None and a.dtype.kind == "f":
            out = select(reduction.all(isnan(a), axis=axis, keepdims=keepdims), math.nan, out)
        return out

    return function


_TOTAL = "(a, axis=None, dtype=None, out=None, keepdims=False, initial={}, where=True)"
_LARGEST = "(a, axis=None, out=None, keepdims=False, initial=None, where=True)"
_RUNNING = "(a, axis=None, dtype=None, out=None)"
_ABSENT = "nan gets no gradient"

for _call, _doc, _numpy, _function, _result in (
    ("nansum" + _TOTAL.format(0), "Sum over axes, nan taken as 0.", np.nansum, _filled(reduction.sum, 0), "3.0"),
    ("nanprod" + _TOTAL.format(1), "Product over axes, nan taken as 1.", np.nanprod, _filled(reduction.prod, 1), "2.0"),
    ("nanmean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True)",
     "Arithmetic mean over axes, nan skipped; nan where nothing is left.", np.nanmean, _nanmean, "1.5"),
    (f"nanmax{_LARGEST}", "Largest element over axes, nan skipped; nan where nothing is left.", np.nanmax,
     _extreme(reduction.max, -math.inf), "2.0"),
    (f"nanmin{_LARGEST}", "Smallest element over axes, nan skipped; nan where nothing is left.", np.nanmin,
     _extreme(reduction.min, math.inf), "1.0"),
    (f"nancumsum{_RUNNING}", "Running sum, nan taken as 0.", np.nancumsum, _filled(reduction.cumsum, 0),
     "[1.0, 1.0, 3.0]"),
    (f"nancumprod{_RUNNING}", "Running product, nan taken as 1.", np.nancumprod, _filled(reduction.cumprod, 1),
     "[1.0, 1.0, 2.0]"),
):  # fmt: skip
    _statistic(
        _call, _doc, _numpy, _function, conventions=_ABSENT,
        example=(f"mg.{_call.partition('(')[0]}(mg.tensor([1.0, np.nan, 2.0])).tolist()", _result),
    )  # fmt: skip
