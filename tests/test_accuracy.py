"""Derivatives near corners against the same formulas in sixty figures and more, and what holds at the corners."""

import math

import mpmath as mp
import numpy as np
import pytest

import mutagrad as mg

EPS = float(np.finfo(np.float64).eps)


def sinc_slope(x):
    return mp.cospi(x) / x - mp.sincpi(x) / x


def logistic(x):
    return 1 / (1 + mp.exp(-x))


def bell(x):
    return 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)


ROOT_POINTS = [-1 + 1e-12, -0.6, 1e-9, 1 - 1e-9]
# By name: the first and the second derivative, and the points: where a plain formula would cancel or overflow.
ONE = {
    "sinc": (sinc_slope, lambda x: -(mp.pi**2) * mp.sincpi(x) - 2 * sinc_slope(x) / x,
             [1e-100, 1e-9, -1e-4, 0.01, 0.3, -0.4999, 0.5, 0.5001, 0.9, 2.3]),
    "softplus": (logistic, lambda x: logistic(x) * logistic(-x), [-700.0, -40.0, -1e-9, 0.0, 1.0, 30.0]),
    "expm1": (mp.exp, mp.exp, [-1e-12, 0.0, 1e-9, -3.0, 5.0]),
    "log1p": (lambda x: 1 / (1 + x), lambda x: -1 / (1 + x)**2, [-1 + 1e-12, -1e-12, 0.0, 1e-9, 1e10]),
    "erf": (bell, lambda x: -2 * x * bell(x), [0.0, 1e-9, -0.5, 3.0]),
    "arccosh": (lambda x: 1 / mp.sqrt(x * x - 1), lambda x: -x / (x * x - 1)**1.5, [1 + 1e-14, 1.5, 1e90, 1e180]),
    "arcsinh": (lambda x: 1 / mp.sqrt(x * x + 1), lambda x: -x / (x * x + 1)**1.5, [0.0, 1e-9, -3.0, 1e90, 1e180]),
    "arcsin": (lambda x: 1 / mp.sqrt(1 - x * x), lambda x: x / (1 - x * x)**1.5, ROOT_POINTS),
    "arccos": (lambda x: -1 / mp.sqrt(1 - x * x), lambda x: -x / (1 - x * x)**1.5, ROOT_POINTS),
    "arctanh": (lambda x: 1 / (1 - x * x), lambda x: 2 * x / (1 - x * x)**2, ROOT_POINTS),
    "tanh": (lambda x: mp.sech(x)**2, lambda x: -2 * mp.tanh(x) * mp.sech(x)**2, [1e-9, -0.5]),
    "cbrt": (lambda x: abs(x)**(mp.mpf(-2) / 3) / 3, lambda x: -2 * x * abs(x)**(mp.mpf(-8) / 3) / 9,
             [1e-100, -0.3, 27.0, -1e100]),
    "exp2": (lambda x: mp.log(2) * mp.mpf(2)**x, lambda x: mp.log(2)**2 * mp.mpf(2)**x, [-900.0, 0.0, 1e-9, 900.0]),
    "log2": (lambda x: 1 / x / mp.log(2), lambda x: -1 / x**2 / mp.log(2), [1e-100, 1.0, 1e100]),
    "log10": (lambda x: 1 / x / mp.log(10), lambda x: -1 / x**2 / mp.log(10), [1e-100, 1.0, 1e100]),
}  # fmt: skip
# Of two operands: the derivatives by the first.
TWO = {
    "logaddexp": (lambda x, y: logistic(x - y), lambda x, y: logistic(x - y) * logistic(y - x),
                  [(0.0, 0.0), (600.0, 600.25), (-1e3, -1e3), (-3.0, 40.0), (1000.0, 0.0), (-1000.0, 0.0)]),
    "logaddexp2": (lambda x, y: 1 / (1 + mp.mpf(2)**(y - x)),
                   lambda x, y: mp.log(2) / (1 + mp.mpf(2)**(y - x)) / (1 + mp.mpf(2)**(x - y)),
                   [(0.0, 0.0), (900.0, 900.25), (-3.0, 40.0)]),
    "hypot": (lambda x, y: x / mp.hypot(x, y), lambda x, y: y * y / mp.hypot(x, y)**3,
              [(3.0, 4.0), (1e-200, 1e-200), (1e200, 1e200), (1e-9, 1.0)]),
    "arctan2": (lambda y, x: x / (x * x + y * y), lambda y, x: -2 * x * y / (x * x + y * y)**2,
                [(1e-100, 1e-100), (1e180, 1e180), (-1e-9, 1.0), (1.0, -1e-9)]),
}  # fmt: skip


# Their derivatives are one plus what is kept: near nothing, only the absolute error is small.
ABSOLUTE = ("expm1", "softplus")


@pytest.mark.parametrize(("order", "dtype"), [(1, np.float64), (2, np.float64), (1, np.float32)])
@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_derivatives_near_corners(name, order, dtype):
    *exact, points = (ONE | TWO)[name]
    eps, tiny, largest = (float(getattr(np.finfo(dtype), n)) for n in ("eps", "tiny", "max"))
    for point in points:
        given = np.atleast_1d(point)
        with np.errstate(over="ignore"):
            at = given.astype(dtype)
        inside = (given == 0) | ((abs(at) >= tiny) & (abs(at) <= largest))
        if not inside.all() or (abs(at) == 1).any() > (abs(given) == 1).any():
            continue  # in float32 it is a corner itself, or out of range
        with mp.workdps(500):
            want = exact[order - 1](*map(mp.mpf, at.tolist()))
        if not tiny <= abs(want) <= largest:
            continue
        function = getattr(mg, name)
        for _ in range(order):
            function = mg.grad(lambda x, *rest, inner=function: mg.sum(inner(x, *rest)))
        got = float(function(*at[:, None])[0])
        error = abs(got - want) / eps / (max(1, abs(want)) if name in ABSOLUTE else abs(want))
        assert error <= 10, f"{name}, derivative {order} at {at}: {got}, not {mp.nstr(want, 20)}"


def gradients(function, *args):
    return mg.grad(function, range(len(args)))(*args)


def test_sinc_at_zero():
    first = mg.grad(mg.sinc)
    second, third = mg.grad(first), mg.grad(mg.grad(first))
    assert first(0.0) == third(0.0) == 0
    assert second(0.0) == pytest.approx(-(math.pi**2) / 3, rel=2 * EPS)
    with mp.workdps(60):
        for x in (1e-3, 0.25, -0.4999, 0.5001, 1.5):
            t = mp.mpf(x)
            slope, bend = sinc_slope(t), ONE["sinc"][1](t)
            want = -(mp.pi**2) * slope - 2 * bend / t + 2 * slope / t**2
            assert abs(third(x) - want) <= 1e-14 * abs(want)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_sums_of_exponentials_at_infinity(name):
    op, inf = getattr(mg, name), math.inf
    assert gradients(op, 0.0, 2000.0) == (0, 1)
    assert gradients(op, 0.0, -2000.0) == (1, 0)
    for x, y, want in ((inf, inf, 0.5), (-inf, -inf, 0.5), (inf, 1.0, 1), (inf, -inf, 1), (-inf, 3.0, 0)):
        assert gradients(op, x, y) == (want, 1 - want)
    assert mg.grad(mg.grad(op))(2.5, 2.5) == pytest.approx((math.log(2) if name == "logaddexp2" else 1) / 4)


@pytest.mark.parametrize("op", [mg.hypot, mg.arctan2], ids=["hypot", "arctan2"])
def test_at_the_origin(op):
    assert gradients(op, 0.0, 0.0) == (0, 0)
    assert mg.grad(lambda x: mg.grad(op)(x, 0.0) * 1.0)(0.0) == 0
    x, y = np.array([0.0, 3.0]), np.array([0.0, 4.0])
    chosen = lambda x, y: mg.sum(mg.where(x > 0, op(x, y), 0.0) ** 2)
    for g in gradients(chosen, x, y):
        assert g[0] == 0
        assert np.isfinite(g).all()


def test_cube_root_at_zero():
    assert mg.grad(mg.cbrt)(0.0) == math.inf
    assert mg.grad(lambda x: mg.cbrt(x) * 0.0)(0.0) == 0


@pytest.mark.parametrize(
    ("op", "x", "y", "value", "by_y"),
    [
        (mg.remainder, -17.0, 5.0, 3.0, 4.0),
        (mg.fmod, -17.0, 5.0, -2.0, 3.0),
        (mg.remainder, 17.0, -5.0, -3.0, 4.0),
        (mg.fmod, 17.0, -5.0, 2.0, 3.0),
        # 1 / 0.1 rounds up to 10, and yet 0.1 fits in only 9 times.
        (mg.remainder, 1.0, 0.1, math.fmod(1.0, 0.1), -9.0),
        (mg.fmod, 1.0, 0.1, math.fmod(1.0, 0.1), -9.0),
        (mg.remainder, -1.0, math.inf, math.inf, 1.0),
        (mg.fmod, -1.0, math.inf, -1.0, 0.0),
    ],
)
def test_remainders(op, x, y, value, by_y):
    assert op(x, y).item() == value
    assert gradients(op, x, y) == (1, by_y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide", "hypot", "logaddexp", "copysign", "heaviside"])
def test_pairs_of_special_points_are_numpys(name, dtype):
    points = [0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 3.0, 1e-30, 1e30, -1e30, math.inf, -math.inf, math.nan, -17.0, 5.0]
    x, y = (a.ravel() for a in np.meshgrid(np.array(points, dtype), np.array(points, dtype)))
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
    got = getattr(mg, name)(x, y).numpy()
    np.testing.assert_allclose(got, want, rtol=4 * np.finfo(dtype).eps, atol=0)
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


def test_selections_pass_nan_over():
    x, y = np.array([1.0, math.nan, 2.0, math.nan, 2.0]), np.array([math.nan, 3.0, 2.0, math.nan, 5.0])
    for op, last in ((mg.fmax, [0, 1]), (mg.fmin, [1, 0])):
        by_x, by_y = gradients(lambda x, y, op=op: mg.sum(op(x, y)), x, y)
        assert np.transpose([by_x, by_y]).tolist() == [[1, 0], [0, 1], [0.5, 0.5], [1, 0], last]


def test_sign_and_numbers_replaced():
    x = np.array([2.0, -2.0, 0.0, 2.0])
    by_x, by_y = gradients(lambda x, y: mg.sum(mg.copysign(x, y)), x, np.array([1.0, 1.0, 1.0, -0.0]))
    assert by_x.tolist() == [1, -1, 0, -1]
    assert by_y.tolist() == [0, 0, 0, 0]
    x = np.array([1.0, math.nan, math.inf, -math.inf], np.float32)
    np.testing.assert_array_equal(mg.nan_to_num(x).numpy(), np.nan_to_num(x))
    np.testing.assert_array_equal(
        np.nan_to_num(mg.tensor(x), nan=7.0, neginf=1.0), np.nan_to_num(x, nan=7.0, neginf=1.0)
    )
    assert mg.grad(lambda x: mg.sum(mg.nan_to_num(x) * 3.0))(x).tolist() == [3, 0, 0, 0]
    for whole in (np.arange(3), np.array([True, False])):
        assert mg.nan_to_num(whole).numpy().dtype == whole.dtype


@pytest.mark.parametrize("equal_nan", [False, True])
def test_isclose(equal_nan):
    values = np.array([0.0, 1.0, 1.0 + 1e-6, math.inf, -math.inf, math.nan])
    got = mg.isclose(values[:, None], mg.tensor(values), equal_nan=equal_nan)
    np.testing.assert_array_equal(got.numpy(), np.isclose(values[:, None], values, equal_nan=equal_nan))
