"""The largest error of each function in ulp, against mpmath, and NumPy's on the same points.

The functions are those of the table of scalar mathematics, called as users do (`mg.sin(array)`), in both dtypes. A
share of the points are random bit patterns, some lie in every binade of the format, a share where the function is
neither constant nor out of range, for periodic ones a share next to multiples of pi/2, and the rest are awkward by
hand: the edges of the format, of overflow and underflow, neighbours of simple numbers, huge arguments. The error is in
units of the last place at the exact result (for `logaddexp` at the larger operand, if that is larger, since the
sum may vanish); infinity stands for the first power of two that is out of range. "stated" is the bound the table
promises. "specials" counts disagreements with NumPy on signed zeros, infinities and nan, signs included.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import mpmath
import numpy as np
from mpmath import mp, mpf

import mutagrad as mg
from mutagrad.mathematics import angles, exponential, logarithm, special, trigonometric
from perf import tables
from perf.tables import Row, Table

MATHEMATICS = trigonometric.TABLE | angles.TABLE | exponential.TABLE | logarithm.TABLE | special.TABLE
DTYPES = ["float64", "float32"]
PERIODIC = ("sin", "cos", "tan")
# Where results no longer change, or are long out of range, and mpmath would take its time.
STEEP = ("exp", "exp2", "expm1", "sinh", "cosh", "tanh", "sigmoid", "erf")


def _log1pexp(x: Any) -> Any:
    return mp.log1p(mp.exp(-abs(x))) + max(x, 0)


def _power(x: Any, y: Any) -> Any:
    if x == 0 or y == 0:
        return x**y if y >= 0 else mp.inf
    size = abs(x)
    # Far out of range on either side.
    exponent = y * mp.log(size)
    value = mp.exp(max(min(exponent, 10_000), -10_000)) if abs(exponent) > 9_999 else mp.power(size, y)
    return -value if x < 0 and y % 2 == 1 else value


EXACT: dict[str, Callable[..., Any]] = {
    "arcsin": mp.asin,
    "arccos": mp.acos,
    "arctan": mp.atan,
    "arctan2": mp.atan2,
    "arcsinh": mp.asinh,
    "arccosh": mp.acosh,
    "arctanh": mp.atanh,
    "exp2": lambda x: mp.power(2, x),
    "log2": lambda x: mp.log(x) / mp.log(2),
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "softplus": _log1pexp,
    "logaddexp": lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))),
    "power": _power,
    "cbrt": lambda x: mp.cbrt(abs(x)) * mp.sign(x),
}
# How a NumPy user writes what NumPy has not; it has no erf.
NUMPY: dict[str, Callable[..., Any] | None] = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(0, x),
    "erf": None,
}
BINARY = ("arctan2", "hypot", "power", "logaddexp")
# Closed intervals where the functions are real; elsewhere they are nan, which NumPy's must be too.
DOMAIN = {
    **dict.fromkeys(("log", "log2", "log10"), (0, math.inf)),
    **dict.fromkeys(("arcsin", "arccos", "arctanh"), (-1, 1)),
    "log1p": (-1, math.inf),
    "arccosh": (1, math.inf),
}
# Where a function is neither constant nor out of range, in float64 and in float32.
USUAL = {
    "exp": [(-746, 710), (-104, 89)],
    "exp2": [(-1076, 1025), (-150, 129)],
    "expm1": [(-40, 711), (-20, 90)],
    "sinh": [(-711, 711), (-90, 90)],
    "cosh": [(-711, 711), (-90, 90)],
    "tanh": [(-20, 20), (-10, 10)],
    "sigmoid": [(-746, 40), (-104, 18)],
    "softplus": [(-746, 40), (-104, 18)],
    "erf": [(-6, 6), (-4, 4)],
    **{name: [(-1, 1), (-1, 1)] for name in ("arcsin", "arccos", "arctanh")},
}


# Points


def patterns(random: Any, dtype: Any, count: int) -> np.ndarray:
    """Random bits; all that is not finite is left out."""
    bits = random.integers(0, 2 ** (8 * dtype().itemsize), count, f"u{dtype().itemsize}").view(dtype)
    return bits[np.isfinite(bits)]


def binades(random: Any, dtype: Any, count: int) -> np.ndarray:
    """So many numbers, spread over all binades of the format, of both signs; the subnormal ones too."""
    info = np.finfo(dtype)
    exponents = np.arange(info.minexp - info.nmant, info.maxexp)
    exponents = np.resize(random.permutation(exponents), max(count, 1))
    values = np.ldexp(random.uniform(1, 2, exponents.size), exponents)
    return _cast(values * random.choice([-1.0, 1.0], exponents.size), dtype)


def awkward(dtype: Any) -> np.ndarray:
    """The edges of the format, of overflow and underflow, simple numbers, huge ones, and their neighbours."""
    info = np.finfo(dtype)
    simple = [0.5, 1, 2, 3, 10, 100, 2**0.5, 0.5**0.5, math.log(2) / 2, math.log(2), math.e, math.pi, 1e5, 1e15, 1e22]
    edges = [math.log(2) * k for k in (info.maxexp, info.maxexp + 1, info.minexp, info.minexp - info.nmant - 1)]
    edges += [float(k) for k in (info.maxexp, info.minexp, info.minexp - info.nmant)]
    least = float(info.smallest_subnormal)
    edges += [least, 3 * least, float(info.tiny), float(info.eps), float(info.eps) ** 0.5, float(info.max)]
    x = _cast(np.array(simple + edges), dtype)
    x = np.concatenate([x, np.nextafter(x, dtype(0)), np.nextafter(x, info.max)])
    return np.concatenate([x, -x])


def quarters(random: Any, dtype: Any, count: int) -> np.ndarray:
    """Next to multiples of pi/2: the first ones, some of each size, and that for which the format is worst."""
    n = np.concatenate([np.arange(1, count // 4), np.exp(random.uniform(0, 45, count // 4)).round()])
    near = _cast(n * (math.pi / 2), dtype)
    worst = math.ldexp(6381956970095103, 797) if dtype is np.float64 else math.ldexp(16367173, 72)
    return np.concatenate([near, np.nextafter(near, dtype(0)), np.nextafter(-near, dtype(0)), [dtype(worst)]])


@np.errstate(all="ignore")
def points(name: str, dtype: Any, count: int, random: Any) -> tuple[np.ndarray, ...]:
    """About so many places for a function, in its domain."""
    single = dtype is np.float32
    if name in BINARY:
        return pairs(name, dtype, count, random)
    low, high = USUAL.get(name, [(-20, 20)] * 2)[single]
    parts = [awkward(dtype), patterns(random, dtype, count // 4), binades(random, dtype, count // 4)]
    parts += [random.uniform(low, high, count // 4), random.uniform(-1, 1, count // 8)]
    # Next to 1, where logarithms and inverse functions lose most.
    parts.append(1 + random.choice([-1, 1], count // 8) * np.exp(random.uniform(-36, -1, count // 8)))
    if name in PERIODIC:
        parts.append(quarters(random, dtype, count // 4))
    x = np.concatenate([_cast(p, dtype) for p in parts])
    low, high = DOMAIN.get(name, (-math.inf, math.inf))
    x = np.where((x < low) | (x > high), -x, x)
    return (x[np.isfinite(x) & (x >= low) & (x <= high)],)


def pairs(name: str, dtype: Any, count: int, random: Any) -> tuple[np.ndarray, ...]:
    """Operands of all sizes, half of them near each other in size; for powers also those with a usual result."""
    few = max(1, int(count**0.5 / 4))
    some = random.permutation(awkward(dtype))[: 2 * few]
    x, y = (a.ravel() for a in np.meshgrid(some, some))
    free = [np.concatenate([patterns(random, dtype, count // 8), binades(random, dtype, count // 8)]) for _ in "xy"]
    n = min(map(len, free))
    x, y = np.concatenate([x, free[0][:n], free[0][:n]]), np.concatenate([y, free[1][:n], free[0][:n] * dtype(1.25)])
    most = 745 if dtype is np.float64 else 103
    a = random.uniform(-3, 3, count // 4)
    b = -a * random.uniform(0, 1, a.size) - random.uniform(0, 2, a.size)
    if name == "power":
        a = np.concatenate([np.exp(random.uniform(-most, most, count // 4)), random.uniform(0.5, 2, count // 4)])
        a = np.where(a == 1, 3, a)
        b = random.uniform(-most, 0.96 * most, a.size) / np.log(a)
    elif name == "logaddexp":
        a, b = np.concatenate([[a, b], random.uniform(-most, most, (2, count // 4))], axis=1)
    x, y = (np.concatenate([u, _cast(v, dtype)]) for u, v in ((x, a), (y, b)))
    if name == "power":
        # Negative numbers only to whole powers.
        x = np.where((x < 0) & (y != np.floor(y)), -x, x)
    kept = np.isfinite(x) & np.isfinite(y) & (x != 0) & (y != 0)
    return x[kept], y[kept]


def _cast(values: Any, dtype: Any) -> np.ndarray:
    """In the dtype; numbers out of its range stay at its edge."""
    info = np.finfo(dtype)
    return np.clip(values, float(info.min), float(info.max)).astype(dtype)


def specials(name: str, dtype: Any) -> tuple[np.ndarray, ...]:
    """Signed zeros, infinities, nan, and some numbers."""
    info = np.finfo(dtype)
    some = [0.0, info.smallest_subnormal, 0.5, 1.0, 2.0, 3.0, info.max, np.inf]
    x = np.array([*some, *(-v for v in some), np.nan], dtype)
    return tuple(a.ravel() for a in np.meshgrid(x, x)) if name in BINARY else (x,)


# Errors


class Error:
    """The largest error of one implementation over the points, and where."""

    def __init__(self, dtype: Any) -> None:
        info = np.finfo(dtype)
        self.bits, self.least, self.most = int(info.nmant), int(info.minexp), int(info.maxexp)
        self.top = mpmath.ldexp(1, self.most)
        self.worst, self.at = 0.0, 0
        self.wrong = 0

    def see(self, i: int, got: float, exact: Any, size: Any) -> None:
        """Compare the i-th result."""
        if math.isnan(got):
            self.wrong += 1
            return
        exact = min(max(exact, -self.top), self.top)
        off = abs((self.top if got > 0 else -self.top) - exact) if math.isinf(got) else abs(mpf(got) - exact)
        if off:
            exponent = mpmath.frexp(max(abs(exact), abs(size)))[1] - 1
            ulps = float(mpmath.ldexp(off, self.bits - min(max(exponent, self.least), self.most - 1)))
            if ulps > self.worst:
                self.worst, self.at = ulps, i


def disagreements(got: np.ndarray, want: np.ndarray) -> int:
    """How many of the results that are special in NumPy are others here; ordinary ones are only compared in sign."""
    special = ~np.isfinite(want) | (want == 0)
    same = np.where(special, (got == want) | (np.isnan(got) & np.isnan(want)), np.isfinite(got))
    signs = np.isnan(want) | (np.signbit(got) == np.signbit(want))
    return int(np.count_nonzero(~(same & signs)))


@np.errstate(all="ignore")
def measure(name: str, kind: str, given: argparse.Namespace) -> Row:
    """The row of one function and dtype."""
    dtype = getattr(np, kind)
    random = np.random.default_rng([given.seed, list(MATHEMATICS).index(name)])
    args = points(name, dtype, given.samples, random)
    op, rival = getattr(mg, name), NUMPY.get(name, getattr(np, name, None))
    ours = op(*args).numpy()
    theirs = None if rival is None else rival(*args)
    exact = EXACT.get(name) or getattr(mp, name)
    own, other = Error(dtype), Error(dtype)
    with mp.workprec(given.precision):
        for i, xs in enumerate(zip(*(a.tolist() for a in args), strict=True)):
            numbers = [mpf(min(max(x, -1e4), 1e4) if name in STEEP else x) for x in xs]
            if name == "softplus":
                numbers = [max(numbers[0], mpf(-1e4))]
            want = exact(*numbers)
            size = max(xs) if name == "logaddexp" else 0
            own.see(i, float(ours[i]), want, size)
            if theirs is not None:
                other.see(i, float(theirs[i]), want, size)
    row: Row = {"function": name, "dtype": kind, "points": len(args[0]), "ulp": own.worst}
    row["stated"] = MATHEMATICS[name].ulp + (kind == "float32")
    row["within"] = own.worst <= row["stated"] and own.wrong == 0
    row["at"] = ", ".join(float(a[own.at]).hex() for a in args)
    row["about"] = ", ".join(f"{a[own.at]:.6g}" for a in args)
    row["nan"] = own.wrong
    if theirs is not None:
        row["numpy_ulp"] = other.worst
        row["numpy_about"] = ", ".join(f"{a[other.at]:.6g}" for a in args)
        if name not in NUMPY:
            edges = specials(name, dtype)
            row["specials"] = disagreements(op(*edges).numpy(), rival(*edges))
    return row


COLUMNS = {
    "function": ("function", ""),
    "dtype": ("dtype", ""),
    "points": ("points", ",d"),
    "ulp": ("ulp", ".4g"),
    "stated": ("stated", ".1f"),
    "within": ("within", ""),
    "numpy_ulp": ("numpy", ".4g"),
    "nan": ("wrongly nan", "d"),
    "specials": ("specials", "d"),
    "about": ("worst at", ""),
    "numpy_about": ("numpy's worst at", ""),
}


def main() -> None:
    parser = tables.options(__doc__)
    parser.add_argument("--functions", type=tables.several(str, MATHEMATICS), default=list(MATHEMATICS))
    parser.add_argument("--dtypes", type=tables.several(str, DTYPES), default=DTYPES)
    parser.add_argument("--samples", type=tables.whole, help="points for each function and dtype (12000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--precision", type=int, default=130, help="bits that mpmath works with (130)")
    given = parser.parse_args()
    given.samples = given.samples or (40 if given.quick else 12_000)
    rows = [measure(*case, given) for case in itertools.product(given.functions, given.dtypes)]
    tables.publish(__file__, [Table("Largest error in ulp", COLUMNS, rows)], given)


if __name__ == "__main__":
    main()
