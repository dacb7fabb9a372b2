"""Ops that combine elements along axes, at once or running."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import fastmath
from ..errors import DTypeError, RangeError, ShapeError, describe
from .elementwise import add, declared, equal, guarded_product, maximum, minimum, multiply, not_equal, sqrt
from .elementwise import where as select
from .entry import NO_DERIVATIVE, Composite, Contraction, Entry, Indexing, Reduction
from .movement import astype, broadcast_to, concatenate, expand_dims, flip, moveaxis, reshape, transpose

TABLE: dict[str, Entry] = {}


def _add(entry: Any) -> Any:
    TABLE[entry.name] = entry
    return entry


stop_gradient = declared("stop_gradient(x)", "x, as a constant.", forward="{0}", like=np.positive, private=True)


def axes_of(axis: Any, ndim: int, name: str) -> tuple[int, ...]:
    """Normalised axes, checked."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple | list) else (axis,)
    axes = []
    for a in given:
        try:
            a = a.__index__()
        except (AttributeError, TypeError):
            raise DTypeError(f"{name}: axis must be an integer or a tuple of them, got {describe(a)}.") from None
        if ndim == 0 and a in (0, -1):  # as NumPy reduces a number
            continue
        if not -ndim <= a < ndim:
            raise RangeError(f"{name}: axis {a} is out of range for {ndim} dimension{'s' * (ndim != 1)}.")
        axes.append(a % ndim)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: axis {axis} names one axis twice.")
    return tuple(sorted(axes))


def tensor(a: Any) -> Any:
    """The operand as a tensor."""
    return a if hasattr(a, "requires_grad") else expand_dims(a, ())


def floating(a: Any) -> Any:
    """The operand as a tensor of floats."""
    a = tensor(a)
    return astype(a, np.float64) if a.dtype.kind in "iub" else a


def cast(a: Any, dtype: Any) -> Any:
    """The operand in the dtype that the caller asked for."""
    return a if dtype is None else astype(a, dtype)


def chosen(name: str, a: Any, where: Any, value: float) -> Any:
    """The operand with `value` where it is masked out."""
    out = select(where, a, value)
    if out.shape != np.shape(a):
        raise ShapeError(f"{name}: a mask of shape {np.shape(where)} does not broadcast to shape {np.shape(a)}.")
    return out


def merged(name: str, merge: Any, out: Any, initial: Any) -> Any:
    """The result with the initial value merged into it."""
    if np.ndim(initial):
        raise ShapeError(f"{name}: initial must be a scalar, got shape {np.shape(initial)}.")
    return merge(out, astype(initial, out.dtype) if hasattr(initial, "dtype") else initial)


def _ties(x: np.ndarray, out: np.ndarray, axis: Any) -> dict[str, np.ndarray]:
    ties = x == out
    none = out != out
    if none.any():
        ties |= (x != x) & none
    return {"ties": ties, "count": np.count_nonzero(ties, axis=axis, keepdims=True).astype(out.dtype)}


sum = _add(Reduction(
    "sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=0, where=True)", "Sum over axes.",
    numpy=np.sum, also=(np.add.reduce,), init=0.0, combine=lambda acc, x: acc + x, merge=add,
    partial=lambda: 1,
))  # fmt: skip


def counted(name: str, a: Any, dtype: Any, axis: Any, keepdims: bool, where: Any) -> Any:
    """How many elements each result combines: a float where that is one for all, else a tensor of `dtype`."""
    shape = np.shape(a)
    if where is True:
        return float(math.prod([shape[i] for i in axes_of(axis, len(shape), name)]))
    ones = broadcast_to(select(where, 1, 0), shape)
    return sum(astype(ones, dtype), axis=axis, keepdims=keepdims)


def _mean_where(a: Any, axis: Any, keepdims: bool, where: Any) -> Any:
    total = sum(a, axis=axis, keepdims=keepdims, where=where)
    return total / counted("mean", a, total.dtype, axis, keepdims, where)


mean = _add(Reduction(
    "mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=True)", "Arithmetic mean over axes.",
    numpy=np.mean, init=0.0, combine=lambda acc, x: acc + x, finish=lambda acc, n: acc / n,
    partial=lambda n: 1 / n, masked=_mean_where, like=np.true_divide,
))  # fmt: skip

max = _add(Reduction(
    "max(a, axis=None, out=None, keepdims=False, initial=None, where=True)",
    "Largest element over axes; nan if there is one.", numpy=np.max, also=(np.amax, np.maximum.reduce),
    init=-math.inf, combine=lambda acc, x: maximum(acc, x), empty=False, aux=_ties,
    partial=lambda ties, count: select(ties, 1 / count, 0), merge=maximum, aliases=("amax",),
    conventions="ties share the gradient evenly; keeps the mask of ties, so the input may be overwritten",
))  # fmt: skip

min = _add(Reduction(
    "min(a, axis=None, out=None, keepdims=False, initial=None, where=True)",
    "Smallest element over axes; nan if there is one.", numpy=np.min, also=(np.amin, np.minimum.reduce),
    init=math.inf, combine=lambda acc, x: minimum(acc, x), empty=False, aux=_ties,
    partial=lambda ties, count: select(ties, 1 / count, 0), merge=minimum, aliases=("amin",),
    conventions="ties share the gradient evenly; keeps the mask of ties, so the input may be overwritten",
))  # fmt: skip

# The public norm, of all orders, is written with it.
euclidean = Reduction(
    "norm(a, axis=None, keepdims=False)", "The square root of the sum of squares over axes.", private=True,
    numpy=lambda a, axis, keepdims: np.sqrt(np.sum(np.square(a), axis=axis, keepdims=keepdims)),
    init=0.0, element=lambda x: x * x, combine=lambda acc, x: acc + x, finish=lambda acc, n: sqrt(acc), like=np.sqrt,
    partial=lambda a, out: select(equal(out, 0), 0, a / out), squared=lambda a: 2 * a,
)  # fmt: skip


def _choose(call: str, doc: str, numpy: Any, example: tuple[str, str], **rule: Any) -> Any:
    return _add(Indexing(
        call, doc, operands=("a",), numpy=numpy, conventions=NO_DERIVATIVE, example=example, **rule
    ))  # fmt: skip


argmax = _choose(
    "argmax(a, axis=None, out=None, *, keepdims=False)", "Index of the first largest element.", np.argmax,
    ("mg.argmax(mg.tensor([1.0, 3.0, 2.0])).item()", "1"),
)  # fmt: skip
argmin = _choose(
    "argmin(a, axis=None, out=None, *, keepdims=False)", "Index of the first smallest element.", np.argmin,
    ("mg.argmin(mg.tensor([1.0, 3.0, 2.0])).item()", "0"),
)  # fmt: skip
nanargmax = _choose(
    "nanargmax(a, axis=None, out=None, *, keepdims=False)", "Index of the first largest element that is not nan.",
    np.nanargmax, ("mg.nanargmax(mg.tensor([1.0, np.nan, 2.0])).item()", "2"),
)  # fmt: skip
nanargmin = _choose(
    "nanargmin(a, axis=None, out=None, *, keepdims=False)", "Index of the first smallest element that is not nan.",
    np.nanargmin, ("mg.nanargmin(mg.tensor([np.nan, 3.0, 2.0])).item()", "2"),
)  # fmt: skip
any = _choose(
    "any(a, axis=None, out=None, keepdims=False, *, where=True)", "Whether an element is true.", np.any,
    ("mg.any(mg.tensor([0.0, 2.0])).item()", "True"), also=(np.logical_or.reduce,),
)  # fmt: skip
all = _choose(
    "all(a, axis=None, out=None, keepdims=False, *, where=True)", "Whether every element is true.", np.all,
    ("mg.all(mg.tensor([0.0, 2.0])).item()", "False"), also=(np.logical_and.reduce,),
)  # fmt: skip
count_nonzero = _choose(
    "count_nonzero(a, axis=None, *, keepdims=False)", "How many elements are not zero.", np.count_nonzero,
    ("mg.count_nonzero(mg.tensor([0.0, 2.0])).item()", "1"),
)  # fmt: skip

# Running sums and products

cumsum: Contraction = _add(Contraction(
    "cumsum(a, axis=None, dtype=None, out=None)", "Running sum along an axis, of the flattened input by default.",
    example=("mg.cumsum(mg.tensor([1.0, 2.0, 3.0])).tolist()", "[1.0, 3.0, 6.0]"), operands=("a",),
    numpy=np.cumsum, also=(np.add.accumulate,), formula="g, summed from the end",
    adjoints={"a": lambda g, a_shape, axis: reshape(
        flip(cumsum(flip(g, axis=axis or 0), axis=axis or 0), axis=axis or 0), a_shape
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


# y[i] = a[i] * y[i - 1] + b[i] along the last axis, y[-1] = 0, the product guarded: zero where y[i - 1] is. Its
# adjoint is a recurrence again, so products with zeros differentiate exactly, to any order, without a division.
recurrence = _add(Contraction(
    "recurrence(a, b)", "Linear recurrence along the last axis.", operands=("a", "b"), private=True,
    kernel=fastmath.recurrence,
    adjoints={
        "a": lambda g, a, out: guarded_product(_backwards(g, a), _previous(out)),
        "b": lambda g, a: _backwards(g, a),
    },
))  # fmt: skip


def _cumprod_adjoint(g: Any, a: Any, a_shape: Any, axis: Any) -> Any:
    """The cotangent s[i] * (product of what stands before i), where s is the recurrence's adjoint."""
    if axis is None or a.ndim == 0:
        return reshape(_cumprod_adjoint(g, reshape(a, (-1,)), None, 0), a_shape)
    if a.shape[axis] == 0:
        return g
    a = moveaxis(a, axis, -1)
    return moveaxis(guarded_product(_backwards(moveaxis(g, axis, -1), a), _before(a)), -1, axis)


cumprod = _add(Contraction(
    "cumprod(a, axis=None, dtype=None, out=None)", "Running product along an axis, of the flattened input by default.",
    example=("mg.cumprod(mg.tensor([1.0, 2.0, 3.0])).tolist()", "[1.0, 2.0, 6.0]"), operands=("a",),
    formula="g times the products of the others, summed from the end",
    numpy=np.cumprod, also=(np.multiply.accumulate,), adjoints={"a": _cumprod_adjoint},
    conventions="exact also where elements are zero",
))  # fmt: skip


def _before(x: Any) -> Any:
    """For each element the product of those before it, along the last axis."""
    return concatenate([_constant(x, 1), cumprod(x[..., :-1], axis=-1)], axis=-1)


def _product_adjoint(g: Any, a: Any, a_shape: Any, axis: Any, keepdims: bool) -> Any:
    axes = axes_of(axis, a.ndim, "prod")
    if not keepdims:
        g = expand_dims(g, axes)
    if math.prod(a_shape) == 0:
        return broadcast_to(g, a_shape) * a
    rest = [i for i in range(a.ndim) if i not in axes]
    order = [*rest, *axes]
    moved = transpose(a, order)
    flat = reshape(moved, (*(a_shape[i] for i in rest), -1))
    others = _before(flat) * flip(_before(flip(flat, axis=-1)), axis=-1)
    others = transpose(reshape(others, moved.shape), [order.index(i) for i in range(a.ndim)])
    return guarded_product(g, others)


_product = Contraction(
    "prod(a, axis=None, keepdims=False)", "Product over axes.", operands=("a",), private=True, numpy=np.prod,
    adjoints={"a": _product_adjoint},
)  # fmt: skip


def _prod(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Any:
    a = cast(a, dtype)
    if where is not True:
        a = chosen("prod", a, where, 1)
    out = _product(a, axis=axis, keepdims=keepdims)
    return out if initial is None else merged("prod", multiply, out, initial)


prod = _add(Composite(
    "prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=1, where=True)", "Product over axes.",
    example=("mg.grad(mg.prod)(np.array([2.0, 0.0, 3.0])).tolist()", "[0.0, 6.0, 0.0]"), operands=("a",),
    numpy=np.prod, also=(np.multiply.reduce,), function=_prod, conventions="exact also where elements are zero",
))  # fmt: skip

# Differences and areas


def _pair(a: Any, axis: int) -> tuple[Any, Any]:
    """Each element along an axis but the first, and the one before it."""
    before = (slice(None),) * axis
    return a[(*before, slice(1, None))], a[(*before, slice(None, -1))]


def _along(name: str, a: Any, axis: Any) -> int:
    if a.ndim == 0:
        raise ShapeError(f"{name}: expected an array with at least one axis, got a number.")
    (found,) = axes_of(axis, a.ndim, name)
    return found


def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    a = tensor(a)
    axis = _along("diff", a, axis)
    if n < 0:
        raise ShapeError(f"diff: n must not be negative, got {n}.")
    if n == 0:
        return a
    one = tuple(1 if i == axis else m for i, m in enumerate(a.shape))
    parts = [p if p is None or np.ndim(p) else broadcast_to(p, one) for p in (prepend, a, append)]
    if prepend is not None or append is not None:
        a = concatenate([p for p in parts if p is not None], axis=axis)
    for _ in range(n):
        later, earlier = _pair(a, axis)
        a = not_equal(later, earlier) if a.dtype.kind == "b" else later - earlier
    return a


diff = _add(Composite(
    "diff(a, n=1, axis=-1, prepend=None, append=None)", "Differences of neighbours along an axis, n times.",
    operands=("a", "prepend", "append"), numpy=np.diff, function=_diff,
    example=("mg.diff(mg.tensor([1.0, 4.0, 9.0])).tolist()", "[3.0, 5.0]"),
))  # fmt: skip


def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = tensor(y)
    axis = _along("trapezoid", y, axis)
    if x is not None:
        x = tensor(x)
        dx = diff(x, axis=axis if x.ndim > 1 else -1)
        if x.ndim == 1:
            dx = reshape(dx, tuple(-1 if i == axis else 1 for i in range(y.ndim)))
    later, earlier = _pair(y, axis)
    return sum(dx * (later + earlier) / 2.0, axis=axis)


trapezoid = _add(Composite(
    "trapezoid(y, x=None, dx=1.0, axis=-1)", "Area under the points (x, y), by the trapezoidal rule.",
    operands=("y", "x", "dx"), numpy=np.trapezoid, function=_trapezoid,
    example=("mg.trapezoid(mg.tensor([1.0, 3.0]), dx=0.5).item()", "1.0"),
))  # fmt: skip
