"""Ops that make whole numbers of others, divide by whole numbers, replace what is no number, or compare roughly."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from .. import fastmath
from .elementwise import NONZERO, REALS, copysign, equal, isnan, not_equal, where
from .entry import NO_DERIVATIVE, Composite, Elementwise, Entry, Indexing

TABLE: dict[str, Entry] = {}


def _add(entry: Any) -> Any:
    TABLE[entry.name] = entry
    return entry


def declared(call: str, doc: str, **rule: Any) -> Any:
    """An op declared non-differentiable."""
    return _add(Elementwise(call, doc, differentiable=False, conventions=NO_DERIVATIVE, **rule))


# Whole numbers

floor = declared(
    "floor(x)", "The largest whole number not above x.", ufunc=np.floor, forward=fastmath.floor,
    example=("mg.floor(mg.tensor([1.5, -1.5])).tolist()", "[1.0, -2.0]"),
)  # fmt: skip

ceil = declared(
    "ceil(x)", "The smallest whole number not below x.", ufunc=np.ceil, forward=fastmath.ceil,
    example=("mg.ceil(mg.tensor([1.5, -1.5])).tolist()", "[2.0, -1.0]"),
)  # fmt: skip

trunc = declared(
    "trunc(x)", "The whole number next to x towards zero.", ufunc=np.trunc, forward=fastmath.trunc, aliases=("fix",),
    example=("mg.trunc(mg.tensor([1.5, -1.5])).tolist()", "[1.0, -1.0]"),
)  # fmt: skip

rint = declared(
    "rint(x)", "The nearest whole number, the even one of two.", ufunc=np.rint, forward=fastmath.rint,
    example=("mg.rint(mg.tensor([1.4, 2.5])).tolist()", "[1.0, 2.0]"),
)  # fmt: skip

# The number of decimals is NumPy's to interpret, so it is no elementwise operand.
round = _add(Indexing(
    "round(a, decimals=0, out=None)", "The nearest number with so many decimals, the even one of two.", operands=("a",),
    numpy=np.round, aliases=("around",), inplace=True, conventions=NO_DERIVATIVE,
    example=("mg.round(mg.tensor([0.375, 2.5]), 2).tolist()", "[0.38, 2.5]"),
))  # fmt: skip

# Division by whole numbers

fmod: Elementwise = _add(Elementwise(
    "fmod(x, y)", "x - y * trunc(x / y), of the sign of x.", ufunc=np.fmod, forward=fastmath.fmod, cost=10,
    partials=lambda x, y: (1, -rint((x - fmod(x, y)) / y)), domain=(REALS, NONZERO),
    sample=((2.1, 2.4), ((-1.9, -1.4), (1.4, 1.9))),
    conventions="the derivative at multiples of y is that beside them, where x / y is farther from 0",
    example=("mg.fmod(mg.tensor([-17.0, 17.0]), 5.0).tolist()", "[-2.0, 2.0]"),
))  # fmt: skip


def _floor_divide(x: Any, y: Any) -> Any:
    """The quotient that belongs to the remainder, also where x / y rounds up to the next whole number."""
    left = fmod(x, y)
    whole = rint((x - left) / y)
    floored = where(not_equal(left, 0) & not_equal(left < 0, y < 0), whole - 1, whole)
    return where(equal(y, 0), x / y, where(equal(floored, 0), copysign(0, x / y), floored))


floor_divide = declared(
    "floor_divide(x, y)", "The largest whole number not above x / y.", ufunc=np.floor_divide, expression=_floor_divide,
    example=("mg.floor_divide(mg.tensor([-17.0]), 5.0).tolist()", "[-4.0]"),
)  # fmt: skip


def _remainder(x: Any, y: Any) -> Any:
    left = fmod(x, y)
    return where(equal(left, 0), copysign(0, y), where(not_equal(left < 0, y < 0), left + y, left))


remainder = _add(Elementwise(
    "remainder(x, y)", "x - y * floor(x / y), of the sign of y.", ufunc=np.remainder, expression=_remainder, cost=10,
    partials=lambda x, y: (1, -floor_divide(x, y)), domain=(REALS, NONZERO),
    sample=((2.1, 2.4), ((-1.9, -1.4), (1.4, 1.9))), aliases=("mod",),
    conventions="the derivative at multiples of y is that beside them, where x / y is larger",
    example=("mg.remainder(mg.tensor([-17.0, 17.0]), 5.0).tolist()", "[3.0, 2.0]"),
))  # fmt: skip

# No numbers, and nearly equal ones


def _nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    dtype = getattr(x, "dtype", None) or np.asarray(x).dtype
    if dtype.kind in "iub":
        return where(True, x, x)
    ends = np.finfo(dtype)
    above = float(ends.max) if posinf is None else posinf
    below = float(ends.min) if neginf is None else neginf
    return where(isnan(x), nan, where(equal(x, inf), above, where(equal(x, -inf), below, x)))


nan_to_num = _add(Composite(
    "nan_to_num(x, nan=0.0, posinf=None, neginf=None)",
    "x with nan and the infinities replaced, these by the largest numbers where nothing else is said.",
    function=_nan_to_num, numpy=np.nan_to_num, inplace=True,
    conventions="the derivative is 0 where an element is replaced",
    example=("mg.nan_to_num(mg.tensor([1.0, np.nan, np.inf]), posinf=9.0).tolist()", "[1.0, 0.0, 9.0]"),
))  # fmt: skip

isclose = _add(Indexing(
    "isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False)", "abs(a - b) <= atol + rtol * abs(b).",
    operands=("a", "b"), numpy=np.isclose, conventions=NO_DERIVATIVE,
    example=("mg.isclose(mg.tensor([1.0, 1.1]), 1.0 + 1e-9).tolist()", "[True, False]"),
))  # fmt: skip
