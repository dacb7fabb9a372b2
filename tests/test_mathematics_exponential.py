"""The exponential family's kernels: error bounds against mpmath, special values against NumPy, packed code."""

import math
import re
from pathlib import Path

import mpmath
import numba
import numpy as np
import pytest
from mpmath import mp, mpf

from mutagrad.mathematics import exponential, logarithm, special

TABLE = exponential.TABLE | logarithm.TABLE | special.TABLE
BINARY = ("power", "logaddexp")
DTYPES = [np.float64, np.float32]
CASES = pytest.mark.parametrize("name", TABLE)
BOTH = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)


def _log1pexp(x):
    return mp.log1p(mp.exp(-abs(x))) + max(x, 0)


EXACT = {
    "exp2": lambda x: mp.power(2, x),
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "log2": lambda x: mp.log(x) / mp.log(2),
    "softplus": _log1pexp,
    "logaddexp": lambda x, y: y + _log1pexp(x - y),
    "arcsinh": mp.asinh,
    "arccosh": mp.acosh,
    "arctanh": mp.atanh,
    "power": lambda x, y: mp.power(abs(x), y) * (-1 if x < 0 and y % 2 == 1 else 1),
    "cbrt": lambda x: mp.cbrt(abs(x)) * mp.sign(x),
}
REFERENCE = {
    "sigmoid": lambda x: np.where(x < 0, np.exp(-abs(x)), 1) / (1 + np.exp(-abs(x))),
    "softplus": lambda x: np.logaddexp(x, np.zeros_like(x)),
    "erf": lambda x: np.array([math.erf(v) for v in x], x.dtype),
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
    "arctanh": [(-1, 1), (-1, 1)],
    "erf": [(-6, 6), (-4, 4)],
}
DOMAIN = {"log": 0, "log2": 0, "log10": 0, "log1p": -1, "arccosh": 1}
_kernels = {}


def kernel(dtype):
    """Every function in one kernel, a loop each: compiled together they take half the time."""
    if dtype not in _kernels:
        scope, lines = {}, ["def kernel(which, x, y, out):"]
        for i, (name, entry) in enumerate(TABLE.items()):
            function = entry.fast if dtype == np.float64 else entry.single
            scope[name] = numba.njit(error_model="numpy", fastmath={"contract"}, forceinline=True)(function)
            call = f"{name}(x[i], y[i])" if name in BINARY else f"{name}(x[i])"
            lines += [f"    if which == {i}:", "        for i in range(out.shape[0]):", f"            out[i] = {call}"]
        exec("\n".join(lines), scope)
        _kernels[dtype] = numba.njit(error_model="numpy", fastmath={"contract"})(scope["kernel"])
    return _kernels[dtype]


def compute(name, x, y=None):
    out = np.empty_like(x)
    kernel(x.dtype.type)(list(TABLE).index(name), x, x if y is None else y, out)
    return out


def reference(name, *args):
    with np.errstate(all="ignore"):
        return (REFERENCE.get(name) or getattr(np, name))(*args)


def bound(name, dtype):
    return TABLE[name].ulp + (dtype == np.float32)


def ulps(got, exact, dtype, size=0):
    """The distance in ulps of the exact result, or of `size` if that is larger; inf stands for 2**1024 (2**128)."""
    info = np.finfo(dtype)
    most, least, bits = int(info.maxexp), int(info.minexp), int(info.nmant)
    top = mpmath.ldexp(1, most)
    exact = min(max(exact, -top), top)
    got = (top if got > 0 else -top) if np.isinf(got) else mpf(float(got))
    _, e = mpmath.frexp(max(abs(exact), abs(size)))
    return float(mpmath.ldexp(abs(got - exact), bits - min(max(e - 1, least), most - 1)))


def awkward(dtype):
    """Edges of the format, of overflow and underflow, and neighbours of simple numbers."""
    info = np.finfo(dtype)
    simple = np.array([0.5, 1, 2, 3, 10, 2**0.5, 0.5**0.5, math.log(2) / 2, math.log(2), math.e, 100], dtype)
    edges = [math.log(2) * k for k in (info.maxexp, info.minexp, info.minexp - info.nmant - 1)]
    edges += [info.maxexp, info.minexp, info.minexp - info.nmant, math.log(2) * (info.maxexp + 1)]
    edges = np.array(edges, dtype)
    format_ = np.array([info.smallest_subnormal, 3 * info.smallest_subnormal, info.tiny, info.eps, info.max], dtype)
    x = np.concatenate([simple, edges, format_])
    x = np.concatenate([x, np.nextafter(x, dtype(0)), np.nextafter(x, info.max)])
    return np.concatenate([x, -x])


@np.errstate(all="ignore")
def points(name, dtype, count, seed=1):
    """Awkward points, the usual range, all magnitudes, and random bit patterns, in the function's domain."""
    random = np.random.default_rng(seed)
    low, high = USUAL.get(name, [(-20, 20)] * 2)[dtype == np.float32]
    bits = random.integers(0, 2 ** (8 * dtype().itemsize), count // 4, dtype=f"u{dtype().itemsize}").view(dtype)
    near = random.uniform(-1, 1, count // 4)
    magnitude = np.exp(random.uniform(-40, 5, count // 4)) * random.choice([-1, 1], count // 4)
    x = np.concatenate([awkward(dtype), bits, random.uniform(low, high, count // 4), near, 1 + near / 8, magnitude])
    x = x.astype(dtype)
    if name in DOMAIN:
        x = np.where(x < DOMAIN[name], -x, x)
        x = x[x > DOMAIN[name]]
    return x[np.isfinite(x) & ((abs(x) < 1) if name == "arctanh" else True)]


@np.errstate(all="ignore")
def pairs(name, dtype, count, seed=1):
    random = np.random.default_rng(seed)
    most = 750 if dtype == np.float64 else 108
    if name == "logaddexp":
        x = random.uniform(-3, 3, count)
        x, y = x, -x * random.uniform(0, 1, count) - random.uniform(0, 2, count)
        wide = random.uniform(-most, most, (2, count // 4))
        x, y = np.concatenate([x, wide[0]]), np.concatenate([y, wide[1]])
    else:
        x = np.concatenate([np.exp(random.uniform(-most, most, count // 2)), random.uniform(0.5, 2, count // 2)])
        x = np.concatenate([x, 1 + random.uniform(-1e-3, 1e-3, count // 4)]).astype(dtype)
        x = np.where((x > 0) & np.isfinite(x) & (x != 1), x, dtype(3))
        # x**y from the least subnormal to overflow
        y = random.uniform(-most, 0.96 * most, len(x)) / np.log(x.astype(np.float64))
        whole = random.integers(-40, 40, (2, count // 4)).astype(dtype)
        x, y = np.concatenate([x, whole[0]]), np.concatenate([y, whole[1]])
        x, y = x[x != 0], y[x != 0]
    x, y = x.astype(dtype), y.astype(dtype)
    return x, y


@BOTH
@CASES
def test_error_bound(name, dtype):
    args = pairs(name, dtype, 1500) if name in BINARY else (points(name, dtype, 1500),)
    got = compute(name, *args)
    exact = EXACT.get(name) or getattr(mp, name)
    worst = (0.0, ())
    with mp.workprec(110):
        for value, *xs in zip(got, *args, strict=True):
            # Further out the results are those of 10**4 (or the function grows slowly), and mpmath takes long.
            steep = name in ("exp", "exp2", "expm1", "sinh", "cosh", "sigmoid", "softplus")
            numbers = [mpf(float(np.clip(x, -1e4, None if name == "softplus" else 1e4) if steep else x)) for x in xs]
            size = max(xs) if name == "logaddexp" else 0
            worst = max(worst, (ulps(value, exact(*numbers), dtype, size), tuple(xs)))
    assert worst[0] <= bound(name, dtype), worst


@BOTH
@CASES
def test_special_values(name, dtype):
    info = np.finfo(dtype)
    some = [0.0, info.smallest_subnormal, info.tiny, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, info.max, np.inf]
    x = np.array([sign * v for v in some for sign in (1, -1)] + [np.nan], dtype)
    args = (np.repeat(x, len(x)), np.tile(x, len(x))) if name in BINARY else (x,)
    got, want = compute(name, *args), reference(name, *args)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=4 * info.eps, atol=0)
    sure = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[sure], np.signbit(want)[sure])


@BOTH
def test_every_loop_is_packed_and_calls_nothing(dtype):
    compute("exp", np.ones(1, dtype))
    (text,) = kernel(dtype).inspect_llvm().values()
    assert len(re.findall(r"^vector\.body\d*:", text, re.MULTILINE)) == len(TABLE)
    called = set(re.findall(r"\bcall [^@\n]*@\"?([\w.$]+)", text))
    assert not {c for c in called if not c.startswith(("llvm.", "NRT_", "Py", "numba_")) and "kernel" not in c}
    if dtype == np.float32:
        assert "double" not in text


@BOTH
def test_exact_results(dtype):
    k = np.arange(-140, 127).astype(dtype)
    np.testing.assert_array_equal(compute("exp2", k), np.ldexp(dtype(1), k.astype(int)))
    np.testing.assert_array_equal(compute("log2", np.ldexp(dtype(1), k.astype(int))), k)
    base, exponent = (a.ravel().astype(dtype) for a in np.meshgrid(np.arange(-30, 31), np.arange(0, 5)))
    np.testing.assert_array_equal(compute("power", base, exponent), base.astype(int) ** exponent.astype(int))
    cubes = np.arange(-200, 201).astype(dtype)
    np.testing.assert_array_equal(compute("cbrt", cubes**3), cubes)


@BOTH
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "erf"])
def test_saturating_functions_stay_within_one(name, dtype):
    assert np.max(abs(compute(name, np.linspace(0, 50, 200_001).astype(dtype)))) == 1


@BOTH
@CASES
def test_numpy_validation_set(name, dtype):
    path = Path(np.__file__).parent / "_core" / "tests" / "data" / f"umath-validation-set-{name}.csv"
    if not path.exists():
        pytest.skip(f"this NumPy brings no validation set for {name}")
    rows = [line.split(",") for line in path.read_text().splitlines() if line.startswith(f"np.{dtype.__name__},")]
    if not rows:
        pytest.skip(f"NumPy's validation set for {name} has no {dtype.__name__}")
    width = f"u{dtype().itemsize}"
    x, want = (np.array([int(row[i], 16) for row in rows], width).view(dtype) for i in (1, 2))
    got = compute(name, x)
    # The set's results are themselves rounded.
    finite = np.isfinite(want) & np.isfinite(got)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    error = abs(got[finite].astype(np.longdouble) - want[finite]) / np.spacing(abs(want[finite]))
    assert error.max() <= bound(name, dtype) + 0.5


@pytest.mark.slow
@BOTH
@CASES
def test_error_bound_densely(name, dtype):
    """Against extended precision (x86 only) for float64, against float64 for float32."""
    wide = np.longdouble if dtype == np.float64 else np.float64
    if (name == "erf" and dtype == np.float64) or np.finfo(wide).nmant < np.finfo(dtype).nmant + 8:
        pytest.skip("nothing more precise to compare with here")
    count = 2**20 if dtype == np.float64 else 2**24
    args = pairs(name, dtype, count) if name in BINARY else (points(name, dtype, count),)
    for i in range(0, len(args[0]), 2**20):
        part = [a[i : i + 2**20] for a in args]
        got, want = compute(name, *part), reference(name, *(a.astype(wide) for a in part))
        with np.errstate(all="ignore"):
            rounded = want.astype(dtype)
            size = np.maximum(abs(want), abs(np.maximum(*part))) if name == "logaddexp" else abs(want)
            finite = np.isfinite(rounded) & np.isfinite(got)
            _, e = np.frexp(size[finite])
            info = np.finfo(dtype)
            unit = np.ldexp(wide(1), np.maximum(e - 1, info.minexp) - info.nmant)
            error = abs(got[finite] - want[finite]) / unit
        worst = np.argmax(error)
        assert error[worst] <= bound(name, dtype), [a[finite][worst] for a in part]
        np.testing.assert_allclose(got[~finite], rounded[~finite], rtol=8 * info.eps)
