"""Lines of a loop: what stands wrong in one is put right, and nothing else is touched; loops are packed."""

import re

import mpmath
import numpy as np
import pytest

import mutagrad as mg
from mutagrad import codegen, compile, expr, run, totals
from mutagrad.ops import OPS

DTYPES = [np.float64, np.float32]
BOTH = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.__name__)
LENGTHS = [1, 255, 257, 1000]
HUGE = [1e22, -1e22, 1e300, 3e5, np.inf, -np.inf, np.nan]


def exact(name, x):
    """The function of a number as it is in its dtype."""
    if not np.isfinite(x):
        return np.nan
    with mpmath.workprec(1200):
        return float(getattr(mpmath, name)(mpmath.mpf(float(x))))


@BOTH
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("n", LENGTHS)
def test_a_huge_argument_is_right_and_spoils_no_neighbour(name, n, dtype):
    function = getattr(mg, name)
    x = np.linspace(-3, 3, n).astype(dtype)
    usual = function(x).numpy()
    with np.errstate(over="ignore"):
        huge = np.array(HUGE, dtype)
    for k, value in enumerate(huge):
        at = (37 * k) % n
        given = x.copy()
        given[at] = value
        target = mg.tensor(given)
        getattr(target, f"{name}_")()
        for found in (function(given).numpy(), target.numpy(), function(np.stack([given] * 3, axis=1)[:, 1]).numpy()):
            others = np.arange(n) != at
            np.testing.assert_array_equal(found[others], usual[others])
            np.testing.assert_allclose(found[at], exact(name, value), rtol=3 * np.finfo(dtype).eps)


@BOTH
@pytest.mark.parametrize("n", LENGTHS)
def test_a_zero_cotangent_meets_infinite_partials(n, dtype):
    """The zero rule, element by element: neighbours keep their bits, and a nan of the data stays one."""
    x = np.linspace(0.5, 2, n).astype(dtype)
    usual = mg.grad(lambda x: mg.sum(mg.sqrt(x) * x))(x)
    for at in {0, n // 2, n - 1}:
        given = x.copy()
        given[at] = 0.0
        found = mg.grad(lambda x: mg.sum(mg.where(x > 0, mg.sqrt(x), 0.0) * x))(given)
        others = np.arange(n) != at
        np.testing.assert_array_equal(found[others], usual[others])
        assert found[at] == 0
        given[at] = np.nan
        found = mg.grad(lambda x: mg.sum(mg.sqrt(x) * x))(given)
        np.testing.assert_array_equal(found[others], usual[others])
        assert np.isnan(found[at])


@BOTH
def test_a_guarded_product_decides_a_selection(dtype):
    """Its nan does not reach the result, and yet the result is wrong."""
    g, x = expr.name("g"), expr.name("x")
    kernel = codegen.Kernel("choice", ["g", "x"], [OPS["where"](expr.zmul(g, 1 / x) >= 0, 1, -1)])
    given = [np.array([0, 0, 1, -1], dtype), np.array([0, 1, 0, 2], dtype)]
    assert run.elementwise(kernel, {}, given, (4,), np.dtype(dtype))[0].tolist() == [1, 1, 1, -1]


@BOTH
def test_a_line_computed_again_counts_once_in_a_total(dtype):
    x = expr.name("x")
    root = OPS["where"](x > 0, OPS["sqrt"](x), 0)
    (slope,) = expr.pull(root, expr.name("g"), ["x"])
    kernel = codegen.Kernel("roots", ["x", "g"], [slope], [codegen.Total(slope, OPS["sum"])])
    values = np.linspace(0.5, 2, 2 * codegen.PART).astype(dtype)
    values[[3, 300, 1500]] = 0
    (slopes,), (total,) = totals.fused(kernel, {}, [values, 1.0], values.shape, values.dtype)
    with np.errstate(divide="ignore"):
        want = np.where(values > 0, 0.5 / np.sqrt(values), 0)
    np.testing.assert_allclose(slopes, want, rtol=1e-6)
    np.testing.assert_allclose(total, want.sum(dtype=np.float64), rtol=1e-6)


@BOTH
@pytest.mark.parametrize("n", [7, 1000, 10_000])
def test_fused_is_bit_for_bit_what_its_parts_give(n, dtype):
    x, y = (np.random.default_rng(n).normal(size=n).astype(dtype) for _ in range(2))

    def program(mg, x, y):
        return mg.sin(x) * y - mg.exp(-(x * x)) * mg.tanh(y) + x * y

    symbols = expr.name("x"), expr.name("y")
    body = program(type("Symbols", (), OPS), *symbols)
    kernel = codegen.Kernel("parts", ["x", "y", "g"], [body, *expr.pull(body, expr.name("g"), ["x", "y"])])
    (value, by_x, by_y), _ = totals.fused(kernel, {}, [x, y, 0.5], x.shape, x.dtype)
    a, b = mg.tensor(x, requires_grad=True), mg.tensor(y, requires_grad=True)
    out = program(mg, a, b)
    out.backward(np.full(n, 0.5, dtype))
    np.testing.assert_array_equal(value, out.numpy())
    np.testing.assert_array_equal(by_y, b.grad.numpy())
    np.testing.assert_allclose(by_x, a.grad.numpy(), rtol=1e-5 if dtype == np.float32 else 1e-14)


def test_a_name_that_two_threads_made_at_once():
    """Each then has its own, and finds the derivative by either."""
    name = expr.name("met_at_once")
    body = OPS["sin"](name)
    del expr._interned[type(name.value), repr(name.value)]
    assert expr.name("met_at_once") is not name
    (slope,) = expr.pull(body, expr.const(1.0), ["met_at_once"])
    assert slope is OPS["cos"](name)


def loops(kernel, dtype, outs, kinds):
    """The machine code of a flat variant, compiled anew."""
    function, source = kernel.source(dtype, outs, kinds, 1, False)
    namespace = {}
    exec(source, namespace)
    array = compile.array(dtype, 1, True)
    dispatcher = namespace[function]
    dispatcher.compile(tuple([array] * (len(kernel.totals) + len(outs) + len(kinds))))
    (text,) = dispatcher.inspect_asm().values()
    return text.partition("cpython")[0] if "cpython" in text.partition("\n\t.p2align")[2] else text


@pytest.mark.parametrize("dtype", "df")
def test_a_fused_loop_is_packed(dtype):
    x, a = expr.name("x"), expr.name("a")
    body = OPS["sin"](x) * a + x * x
    pulled = expr.pull(body, expr.const(1.0), ["x", "a"])
    kernel = codegen.Kernel("packed", ["x", "a"], pulled, [codegen.Total(body, OPS["sum"])])
    text = loops(kernel, dtype, "aa", "aa")
    packed = "pd" if dtype == "d" else "ps"
    for instruction in ("mul", "add"):
        assert re.search(rf"\bv?{instruction}{packed}\b|\bvf\w*add\w*{packed}\b", text), instruction
    assert text.count("_careful_") <= 8, "the C way is for doubtful elements only"


@BOTH
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((1000,), None), ((300_000,), None), ((3, 50_000), 1), ((50_000, 3), 0), ((500, 60), None), ((40, 50, 60), 1)],
)
def test_sums_are_as_exact_as_pairwise_ones(dtype, shape, axis):
    """Root mean square errors beside NumPy's own, which is pairwise along memory and one by one across it."""
    rng = np.random.default_rng(3)
    ours, theirs = [], []
    for _ in range(50):
        x = rng.uniform(0, 1, shape).astype(dtype)
        want = x.astype(np.longdouble).sum(axis=axis)
        ours.append((mg.sum(x, axis=axis).numpy() - want) / want)
        theirs.append((x.sum(axis=axis) - want) / want)
    assert np.sqrt(np.mean(np.square(ours))) <= 1.4 * np.sqrt(np.mean(np.square(theirs)))
