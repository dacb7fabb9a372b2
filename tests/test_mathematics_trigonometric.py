"""The trigonometric kernels: error bounds against mpmath, special values against NumPy, packed code."""

import re
from pathlib import Path

import mpmath
import numba
import numpy as np
import pytest

import mutagrad as mg
from mutagrad.mathematics import angles, reduction, trigonometric

TABLE = trigonometric.TABLE | angles.TABLE
EXACT = {
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "arcsin": mpmath.asin,
    "arccos": mpmath.acos,
    "arctan": mpmath.atan,
    "arctan2": mpmath.atan2,
    "hypot": mpmath.hypot,
}
DTYPES = [np.float64, np.float32]
BINARY = ("arctan2", "hypot")
PERIODIC = ("sin", "cos", "tan")
CASES = pytest.mark.parametrize("name", TABLE)
BOTH = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
_loops = {}


def jit(function):
    return numba.njit(error_model="numpy", fastmath={"contract"})(function)


def form(name, dtype):
    entry = TABLE[name]
    return entry.fast if dtype == np.float64 else entry.single


def loop(name, dtype):
    """The fast form over arrays, nothing else."""
    function = form(name, dtype)
    if (name, dtype) not in _loops:

        def unary(out, x):
            for i in range(out.shape[0]):
                out[i] = function(x[i])

        def binary(out, x, y):
            for i in range(out.shape[0]):
                out[i] = function(x[i], y[i])

        _loops[name, dtype] = jit(binary if name in BINARY else unary)
    return _loops[name, dtype]


def evaluate(name, dtype, *args):
    """What a user gets."""
    return getattr(mg, name)(*(np.ascontiguousarray(a, dtype) for a in args)).numpy()


def ulps(got, exact, dtype):
    """The error of `got` in units of the last place that `dtype` has at the exact value."""
    info = np.finfo(dtype)
    _, exponent = mpmath.frexp(exact)
    unit = mpmath.ldexp(1, max(exponent - 1 - info.nmant, info.minexp - info.nmant))
    return float(abs(mpmath.mpf(float(got)) - exact) / unit)


def patterns(rng, dtype, n):
    """Floats of every size: random bits."""
    integer = np.int64 if dtype == np.float64 else np.int32
    info = np.iinfo(integer)
    x = rng.integers(info.min, info.max, n, integer, endpoint=True).view(dtype)
    return x[np.isfinite(x)]


def points(name, dtype):
    rng = np.random.default_rng(list(TABLE).index(name))
    info = np.finfo(dtype)
    tiny = [info.smallest_subnormal, 7 * info.smallest_subnormal, info.tiny, 1e-20, info.eps, info.eps**0.5]
    awkward = np.array([*tiny, 0.5, 1.0, 2.0, 3.0, 1e22, info.max], dtype)
    awkward = np.concatenate([awkward, np.nextafter(awkward, dtype(0)), np.nextafter(awkward, dtype(1))])
    bits = patterns(rng, dtype, 500)
    if name in PERIODIC:
        limit = trigonometric.LIMIT if dtype == np.float64 else float(trigonometric.LIMIT_32)
        quarters = np.concatenate([np.arange(1, 100), rng.integers(1, int(limit / 2), 200)])
        near = (quarters * (np.pi / 4)).astype(dtype)
        hard = np.array([6381956970095103 * 2.0**797 if dtype == np.float64 else 16367173 * 2.0**72, limit], dtype)
        usual = [rng.uniform(-8, 8, 700), rng.uniform(-limit, limit, 300), near, np.nextafter(near, dtype(9e9)), hard]
    elif name in ("arcsin", "arccos"):
        bits, awkward = bits[np.abs(bits) <= 1], awkward[awkward <= 1]
        usual = [rng.uniform(-1, 1, 1000), rng.uniform(0.4, 0.6, 200), 1 - 10 ** rng.uniform(-16, 0, 300)]
    else:
        usual = [rng.uniform(-4, 4, 1000), 10 ** rng.uniform(-12, 12, 300)]
    x = np.concatenate([np.asarray(u, dtype) for u in usual] + [awkward, -awkward, bits])
    if name not in BINARY:
        return (x,)
    # Half the partners are of like size, the other half of any.
    y = rng.permutation(x)
    with np.errstate(over="ignore", under="ignore"):
        y[::2] = np.clip(x[::2] * rng.uniform(-4, 4, x[::2].size).astype(dtype), info.min, info.max)
    return x, y


@BOTH
@CASES
def test_error_bound_against_mpmath(name, dtype):
    args = points(name, dtype)
    got = evaluate(name, dtype, *args)
    bound = TABLE[name].ulp + (dtype == np.float32)
    largest = mpmath.mpf(float(np.finfo(dtype).max))
    with mpmath.workprec(160):
        for value, *row in zip(got, *args, strict=True):
            if name == "arctan2" and not any(row):
                continue  # the sign of zero decides
            exact = EXACT[name](*(mpmath.mpf(float(a)) for a in row))
            if abs(exact) > largest:
                assert np.isinf(value), row
            else:
                assert ulps(value, exact, dtype) <= bound, (row, value)


def specials(name, dtype):
    info = np.finfo(dtype)
    values = [0.0, info.smallest_subnormal, info.tiny, 0.5, 1.0, 1 + info.eps, 2.0, 0.75 * info.max, info.max, np.inf]
    values = np.array([*values, *(-v for v in values), np.nan], dtype)
    if name in BINARY:
        return tuple(a.ravel() for a in np.meshgrid(values, values))
    return (values,)


@BOTH
@CASES
def test_special_values_are_numpys(name, dtype):
    args = specials(name, dtype)
    got = evaluate(name, dtype, *args)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(*args)
    assert got.dtype == dtype
    exact = ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_array_equal(got[exact], expected[exact])
    np.testing.assert_allclose(got[~exact], expected[~exact], rtol=2 * np.finfo(dtype).eps, atol=0)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(expected[numbers]))


@BOTH
@pytest.mark.parametrize("name", PERIODIC)
def test_beyond_fires_for_huge_arguments_only(name, dtype):
    entry = TABLE[name]
    predicate = entry.beyond if dtype == np.float64 else entry.beyond_single
    beyond = jit(lambda x: predicate(x))
    usual = 1e6 if dtype == np.float64 else 1e4
    assert not any(beyond(dtype(x)) for x in (0.0, usual, -usual, np.nan))
    assert all(beyond(dtype(x)) for x in (1e22, -1e22, np.inf, -np.inf))


def test_digits_of_two_over_pi():
    words = [int(word) for word in reduction.TWO_OVER_PI]
    with mpmath.workprec(2000):
        digits = int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** (64 * (len(words) - 1))))
    assert digits == sum(word << 64 * i for i, word in enumerate(reversed(words)))


@BOTH
@CASES
def test_loops_are_packed_and_call_nothing(name, dtype):
    args = points(name, dtype)
    function = loop(name, dtype)
    function(np.empty(args[0].size, dtype), *args)
    (signature,) = function.signatures
    assembly = function.inspect_asm(signature)
    body = assembly[: assembly.index(".size")]
    word = "double" if dtype == np.float64 else "float"
    llvm = function.inspect_llvm(signature)
    llvm = llvm[llvm.index("define ") : llvm.index("\n}")]
    assert re.search(rf"= (call|fmul|fadd|select).*<\d+ x {word}>", llvm)
    assert not re.search(r"call \w+ @(a?(sin|cos|tan)2?|hypot|sqrt)f?\(", llvm)
    assert "call" not in body
    if dtype == np.float32:
        assert "double" not in llvm


@BOTH
def test_sine_and_cosine_share_their_work(dtype):
    sin, cos = form("sin", dtype), form("cos", dtype)

    @jit
    def both(s, c, x):
        for i in range(x.shape[0]):
            x_i = x[i]
            s[i], c[i] = sin(x_i), cos(x_i)

    x = np.linspace(-9, 9, 1001, dtype=dtype)
    s, c = np.empty_like(x), np.empty_like(x)
    both(s, c, x)
    np.testing.assert_array_equal(s, evaluate("sin", dtype, x))
    np.testing.assert_array_equal(c, evaluate("cos", dtype, x))

    def multiplications(function):
        return len(re.findall(r"call.*llvm.fma|fmul", function.inspect_llvm(function.signatures[0])))

    assert multiplications(both) == multiplications(loop("sin", dtype))


def validation_set(name):
    path = Path(np._core.__file__).parent / "tests" / "data" / f"umath-validation-set-{name}.csv"
    if not path.exists():
        pytest.skip("this NumPy comes without its validation sets")
    for line in path.read_text().splitlines():
        if line.startswith("np.float"):
            kind, argument, result, _ = line.split(",")
            yield np.dtype(kind.removeprefix("np.")).type, int(argument, 16), int(result, 16)


@pytest.mark.parametrize("name", [n for n in TABLE if n not in BINARY])
def test_numpys_validation_set(name):
    rows = list(validation_set(name))
    for dtype, integer in ((np.float64, np.uint64), (np.float32, np.uint32)):
        x, expected = (np.array([r[k] for r in rows if r[0] == dtype], integer).view(dtype) for k in (1, 2))
        got = evaluate(name, dtype, x)
        bound = TABLE[name].ulp + (dtype == np.float32)
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(got[~finite], expected[~finite])
        # The reference is rounded, by half an ulp at most.
        unit = np.spacing(np.abs(expected[finite]))
        assert np.all(np.abs(got[finite] - expected[finite]) <= (bound + 0.5) * unit)


def dense(name, dtype, rng, n):
    if name in PERIODIC:
        limit = trigonometric.LIMIT if dtype == np.float64 else float(trigonometric.LIMIT_32)
        near = np.arange(1, n) % int(limit / 2) * (np.pi / 2)
        ranges = [rng.uniform(-20, 20, n), rng.uniform(-limit, limit, n), near, patterns(rng, dtype, n)]
    elif name in ("arcsin", "arccos"):
        x = patterns(rng, dtype, n)
        ranges = [rng.uniform(-1, 1, n), rng.uniform(0.4, 0.6, n), x[np.abs(x) <= 1]]
    else:
        ranges = [rng.uniform(-4, 4, n), patterns(rng, dtype, n)]
    x = np.concatenate([np.asarray(r, dtype) for r in ranges])
    with np.errstate(over="ignore", under="ignore"):
        return (x, (x * rng.uniform(-4, 4, x.size)).astype(dtype)) if name in BINARY else (x,)


@pytest.mark.slow
@BOTH
@CASES
def test_error_bound_densely(name, dtype):
    """Against the C library, in a precision at least eleven bits higher."""
    wide = np.longdouble if dtype == np.float64 else np.float64
    info = np.finfo(dtype)
    if np.finfo(wide).nmant < info.nmant + 11:
        pytest.skip("no long double here that is longer than a double")
    rng = np.random.default_rng(1)
    n = 10**6 if dtype == np.float64 else 2**23
    args = dense(name, dtype, rng, n)
    got = evaluate(name, dtype, *args).astype(wide)
    exact = getattr(np, name)(*(a.astype(wide) for a in args))
    _, exponent = np.frexp(exact)
    unit = np.ldexp(wide(1), np.maximum(exponent - 1 - info.nmant, info.minexp - info.nmant))
    inside = np.abs(exact) <= info.max
    error = np.abs(got[inside] - exact[inside]) / unit[inside]
    worst = int(np.argmax(error))
    assert error[worst] <= TABLE[name].ulp + (dtype == np.float32), [a[inside][worst] for a in args]
    assert np.all(np.isnan(got[~inside]) == np.isnan(exact[~inside]))


def test_every_function_has_a_single_precision_form_and_a_careful_one_if_it_has_a_limit():
    for name, entry in TABLE.items():
        assert entry.fast.__name__ == name
        assert entry.single.__name__.startswith(name)
        assert (entry.beyond is None) == (entry.beyond_single is None) == (entry.careful is None)
