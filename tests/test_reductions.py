"""What the cases of the table cannot say of reductions: parameters, writing into, corners, NumPy's other names."""

import tracemalloc
import warnings

import numpy as np
import pytest
from cases_reduction import CASES, M23, M34, MASK, N23, T234

import mutagrad as mg
from mutagrad.ops import OPS, Reduction
from mutagrad.testing import gradcheck, gradgradcheck

REDUCTIONS = sorted({e.name for e in OPS.values() if isinstance(e, Reduction)})
WRITTEN = sorted(n for n in {*REDUCTIONS, *CASES} if "out" in OPS[n].public.parameters)


def leaf(values):
    return mg.tensor(values, requires_grad=True)


def quiet(function, *args, **kwargs):
    """What NumPy gives, without what it warns of."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(function(*args, **kwargs))


def same(name, *args, rtol=1e-14, **kwargs):
    got = getattr(mg, name)(*args, **kwargs).numpy()
    want = quiet(OPS[name].numpy, *args, **kwargs)
    np.testing.assert_allclose(got, want, rtol=rtol, err_msg=f"{name}{args}{kwargs}")
    assert got.dtype == want.dtype
    assert got.shape == want.shape


# Parameters


@pytest.mark.parametrize("name", REDUCTIONS)
def test_mask_initial_value_and_dtype(name):
    function, known = getattr(mg, name), OPS[name].public.parameters
    initial = {"initial": 0.25} if "initial" in known else {}
    for options in ({"axis": 1}, {"axis": (0, 1), "keepdims": True}, {"axis": -1, "keepdims": True}, {}):
        for mask in (MASK, MASK[0], MASK[:, :1], False, np.True_, [[True], [False]]):
            where = {"where": mask, **initial}
            same(name, M23, **options, **where)
            same(name, M23.astype(np.float32), **options, **where, rtol=1e-6)
            same(
                name, np.arange(6).reshape(2, 3), **options, **{k: 7 if k == "initial" else v for k, v in where.items()}
            )
        same(name, M23, **options, **initial)
    masked = lambda a: function(a, axis=1, where=MASK, **initial)
    gradcheck(masked, [M23])
    gradgradcheck(lambda a: masked(a) ** 2, [M23])
    x = leaf(M23.astype(np.float32))
    got = function(x, axis=1, where=mg.tensor(MASK), **initial)
    got.sum().backward()
    assert got.dtype == x.grad.dtype == np.float32
    with_nan = np.where(MASK, M23, np.nan)
    gradient = mg.grad(lambda a: mg.sum(masked(a)))(with_nan)
    np.testing.assert_array_equal(gradient, mg.grad(lambda a: mg.sum(masked(a)))(M23))
    assert not gradient[~MASK].any()
    if "dtype" in known:
        for dtype in (np.float32, np.float64, np.int64):
            same(name, T234, axis=1, dtype=dtype)
            same(name, np.arange(6), dtype=dtype)
        assert function(M23, 0, np.float32).dtype == np.float32
        gradcheck(lambda a: function(a, axis=0, dtype=np.float64), [M23])


def test_initial_value_is_differentiable():
    for name in ("sum", "max", "min", "prod"):
        function = getattr(mg, name)
        gradcheck(lambda a, i: function(a, axis=0, initial=i), [M23, np.array(0.1)])
    i = leaf(np.float32(2))
    (mg.sum(np.ones(3, np.float32), initial=i) * 3.0).backward()
    assert i.grad.item() == 3
    assert i.grad.dtype == np.float32
    assert mg.sum(mg.ones(3, dtype=np.float32), initial=np.float64(0.5)).dtype == np.float32
    np.testing.assert_array_equal(mg.max(np.zeros((2, 0)), axis=1, initial=-1.0).numpy(), [-1, -1])
    np.testing.assert_array_equal(mg.min(np.zeros((0, 2)), axis=0, initial=9).numpy(), [9, 9])
    np.testing.assert_array_equal(mg.grad(lambda i: mg.max(np.zeros(0), initial=i))(3.0), 1.0)


def test_what_does_not_fit_is_said():
    refusals = [
        (lambda: mg.max(M23, where=MASK), mg.ShapeError, "max: where= needs initial="),
        (lambda: mg.sum(M23[:1], where=MASK), mg.ShapeError, "sum: a mask of shape"),
        (lambda: mg.prod(M23[:1], where=MASK), mg.ShapeError, "prod: a mask of shape"),
        (lambda: mg.sum(M23, initial=[1.0, 2.0]), mg.ShapeError, "initial must be a scalar"),
        (lambda: mg.sum(M23, axis=2), mg.RangeError, "axis 2 is out of range"),
        (lambda: mg.sum(M23, 0, axis=0), mg.DTypeError, "multiple values"),
        (lambda: mg.max(M23, dtype=float), mg.DTypeError, "dtype"),
        (lambda: mg.sum(M23, dtype=complex), mg.DTypeError, "complex numbers"),
        (lambda: mg.std(M23, dtype=complex), mg.DTypeError, "complex numbers"),
        (lambda: mg.cumsum(M23, dtype=complex), mg.DTypeError, "complex numbers"),
        (lambda: mg.norm(T234, 1), mg.ShapeError, "one or two axes"),
        (lambda: mg.norm(M23, 2), mg.DTypeError, "ord=2 of a matrix"),
        (lambda: mg.norm(M23, "fro", 0), mg.DTypeError, "ord='fro' of a vector"),
        (lambda: mg.quantile(M23, 1.5), mg.ShapeError, "quantile: Quantiles must be in"),
        (lambda: mg.quantile(M23, 0.5, method="smooth"), mg.ShapeError, "smooth"),
        (lambda: mg.quantile(M23, leaf(0.5)), mg.DTypeError, "q must be constant"),
        (lambda: mg.quantile(M23, 0.5, weights=M23), mg.DTypeError, "weights"),
        (lambda: mg.quantile(np.zeros((0, 3)), 0.5, axis=0), mg.RangeError, "empty"),
        (lambda: mg.median(M23, axis=3), mg.RangeError, "median: axis 3"),
        (lambda: mg.average(M23, weights=[1.0, 2.0]), mg.DTypeError, "need axis="),
        (lambda: mg.average(M23, 1, weights=[1.0, 2.0]), mg.ShapeError, "do not fit"),
        (lambda: mg.average([1.0, 2.0], weights=[1.0, -1.0]), ZeroDivisionError, "sum to zero"),
        (lambda: mg.diff(3.0), mg.ShapeError, "at least one axis"),
        (lambda: mg.diff(M23, -1), mg.ShapeError, "negative"),
        (lambda: mg.var(M23, ddof=1, correction=1), mg.ShapeError, "ddof and correction"),
        (lambda: mg.nanargmax([np.nan]), mg.ShapeError, "nanargmax"),
        (lambda: mg.sum([leaf(1.0)]), mg.DTypeError, "list of tensors"),
        (lambda: mg.median([leaf(1.0)]), mg.DTypeError, "list of tensors"),
    ]
    for refused, kind, match in refusals:
        with pytest.raises(kind, match=match):
            refused()


# Methods, NumPy's functions, and out=


def test_methods_take_numpys_arguments():
    x, mask = leaf(M23), mg.tensor(MASK)
    np.testing.assert_allclose(x.sum(axis=0, where=mask).numpy(), M23.sum(axis=0, where=MASK))
    np.testing.assert_allclose(x.max(0, initial=1.0).numpy(), M23.max(0, initial=1.0))
    np.testing.assert_allclose(x.std(ddof=1).numpy(), M23.std(ddof=1))
    out = mg.zeros(3)
    assert x.sum(axis=0, out=out) is out
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.ones((2, 3)))


def test_ufuncs_reduce_and_accumulate():
    x = leaf(M23)
    for ufunc in (np.add, np.multiply, np.maximum, np.minimum):
        for options in ({}, {"axis": None}, {"axis": (0, 1), "keepdims": True}, {"axis": 1, "initial": 0.5},
                        {"where": MASK, "initial": 0.5}):  # fmt: skip
            got = ufunc.reduce(x, **options)
            assert got.requires_grad
            np.testing.assert_allclose(got.numpy(), ufunc.reduce(M23, **options), rtol=1e-15)
    assert np.add.reduce(x, dtype=np.float32).dtype == np.float32
    for ufunc in (np.add, np.multiply):
        out = mg.zeros((2, 3))
        assert ufunc.accumulate(x, 1, out=out) is out
        assert out.requires_grad
        np.testing.assert_allclose(out.numpy(), ufunc.accumulate(M23, 1))
        np.testing.assert_allclose(ufunc.accumulate(x).numpy(), ufunc.accumulate(M23))
    for ufunc in (np.logical_or, np.logical_and):
        np.testing.assert_array_equal(ufunc.reduce(x > 0).numpy(), ufunc.reduce(M23 > 0))
        assert not ufunc.reduce(x).requires_grad
    assert np.amax(x, axis=0).requires_grad
    assert np.quantile(x, [0.2, 0.4], axis=1).shape == (2, 2)
    np.testing.assert_allclose(np.nanvar(x, ddof=1).numpy(), np.nanvar(M23, ddof=1))


@pytest.mark.parametrize("name", WRITTEN)
def test_results_are_written_under_the_contract(name):
    """`out` takes value and history, in any place of the call; what is needed still is refused, and nothing changes."""
    function, entry = getattr(mg, name), OPS[name]
    more = (0.3,) if "q" in entry.public.parameters else ()
    value = entry.numpy(M34, *more, axis=1)
    ours, theirs = leaf(M34), leaf(M34)
    out = mg.zeros(value.shape, dtype=value.dtype)
    assert function(ours * 1.0, *more, axis=1, out=out) is out
    want = entry(theirs * 1.0, *more, axis=1)
    np.testing.assert_array_equal(out.numpy(), want.numpy())
    assert out.version == 1
    assert out.requires_grad == want.requires_grad
    position = list(entry.public.parameters).index("out")
    defaults = [p.default for p in entry.public.parameters.values()]
    placed = mg.zeros(value.shape, dtype=value.dtype)
    given = [M34, *more, *defaults[1 + len(more) : position], placed]
    given[1 + len(more)] = 1
    assert function(*given) is placed
    np.testing.assert_array_equal(placed.numpy(), out.numpy())
    called = mg.zeros(value.shape, dtype=value.dtype)
    entry.numpy(mg.tensor(M34), *more, axis=1, out=called)
    np.testing.assert_array_equal(called.numpy(), out.numpy())
    wrong = mg.zeros((7,), dtype=value.dtype)
    with mg.testing.unchanged(wrong), pytest.raises(mg.ShapeError, match="shape"):
        function(M34, *more, axis=1, out=wrong)
    if not want.requires_grad:
        return
    (out * out).sum().backward()
    (want * want).sum().backward()
    np.testing.assert_array_equal(ours.grad.numpy(), theirs.grad.numpy())
    with mg.testing.unchanged(ours), pytest.raises(mg.InplaceError, match="leaf"):
        function(mg.tensor(M34), *more, axis=1, out=ours[:, 0] if value.ndim == 1 else ours)
    # Into the operand's own memory: it is read as it was.
    x, copy = leaf(M34), leaf(M34)
    t, u = x * 1.0, copy * 1.0
    named = {"q": more[0]} if more else {}
    function(a=t, **named, axis=1, out=t[:, 0] if value.ndim == 1 else t)
    u = u if value.ndim == 1 else u * 0.0
    result = entry(copy * 1.0, *more, axis=1)
    if value.ndim == 1:
        u[:, 0] = result
    else:
        u = result
    np.testing.assert_array_equal(t.numpy(), u.numpy())
    (t * t).sum().backward()
    (u * u).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), copy.grad.numpy(), rtol=1e-15)


def test_masked_write_of_a_reduction_masks_the_operand():
    x, out = leaf(M23), mg.full(2, 9.0)
    mg.sum(x, axis=1, where=MASK, out=out)
    np.testing.assert_allclose(out.numpy(), M23.sum(axis=1, where=MASK))
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), MASK)


def test_an_initial_value_in_the_targets_own_memory_is_read_as_it_was():
    x, y = leaf(M23), leaf([2.0, 5.0])
    t = y * 1.0
    mg.prod(x, axis=1, initial=t[0], out=t)
    np.testing.assert_allclose(t.numpy(), 2 * M23.prod(axis=1))
    t.sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), [M23.prod(axis=1).sum(), 0])
    np.testing.assert_allclose(x.grad.numpy(), 2 * M23.prod(axis=1, keepdims=True) / M23)


@pytest.mark.parametrize("name", ["prod", "norm", "cumprod"])
def test_what_a_reduction_keeps_is_protected(name):
    x = leaf(M23)
    t = x * 1.0
    y = getattr(mg, name)(t)
    with mg.testing.unchanged(t), pytest.raises(mg.InplaceError, match="still needed"):
        t += 1.0
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), mg.grad(lambda a: mg.sum(getattr(mg, name)(a)))(M23))


# Corners


def test_nothing_nan_and_infinity_as_numpy():
    rows = [
        [1.0, np.nan, 2.0],
        [np.nan] * 3,
        [np.inf, 1.0, 3.0],
        [-np.inf, np.inf, 1.0],
        [np.inf] * 3,
        [2.0, 5.0, -4.0],
    ]
    x = np.array(rows)
    plain = """std var nanstd nanvar median nanmedian nansum nanprod nanmean nanmax nanmin ptp sum mean max min prod
        norm any all count_nonzero""".split()
    for name in plain:
        for axis in (None, 0, 1, (0, 1), ()):
            if not (name == "norm" and axis == ()):
                same(name, x, axis=axis)
                same(name, x.astype(np.float32)[[1, 5]], axis=axis, rtol=1e-6)
    for name in ("cumsum", "cumprod", "nancumsum", "nancumprod", "diff"):
        same(name, x, axis=1)
    for name in ("quantile", "nanquantile"):
        for method in ("linear", "lower", "higher", "midpoint", "nearest", "weibull"):
            same(name, x, [0.25, 0.6], axis=1, method=method)
            same(name, x, 0.6, axis=0, method=method)
    for order in (1, 3, np.inf, -np.inf, 0, -1):
        same("norm", x, order, axis=1)
    for name in ("std", "var", "nanstd", "nanvar"):
        same(name, x[[0, 2, 5]], axis=1, ddof=3)
        same(name, np.zeros((0, 2)), axis=0)
    for name in ("median", "nanmedian", "nanmean", "nansum", "nanprod", "prod"):
        same(name, np.zeros((0, 2)), axis=0)
        same(name, np.zeros((0, 2)), axis=1)
    for order in (1, 3, 0, None):
        same("norm", np.zeros(0), order)
    for name in ("ptp", "nanmax"):
        with pytest.raises(mg.ShapeError, match="empty"):
            getattr(mg, name)(np.zeros(0))


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanstd", "nanvar", "nanmax", "nanmin", "nanmedian"])
def test_nan_that_is_skipped_gets_no_gradient(name):
    function = getattr(mg, name)
    gradient = mg.grad(lambda a: mg.sum(function(a, axis=1)))(N23)
    assert gradient[0, 1] == 0
    assert np.isfinite(gradient).all()
    named = getattr(mg, name.removeprefix("nan"))
    rest = mg.grad(lambda a: named(a))(N23[0, [0, 2]])
    np.testing.assert_allclose(gradient[0, [0, 2]], rest)


def test_products_do_not_multiply_zero_by_nan():
    for bad in (np.nan, np.inf):
        x = np.array([2.0, 3.0, bad])
        np.testing.assert_array_equal(mg.grad(lambda a: mg.cumprod(a)[0])(x), [1, 0, 0])
        np.testing.assert_array_equal(mg.grad(lambda a: mg.cumprod(a)[:2].sum())(x), [4, 2, 0])
        np.testing.assert_array_equal(mg.grad(lambda a: mg.cumprod(a)[0])(np.append(x, 4.0)), [1, 0, 0, 0])
        rows = np.array([[2.0, 3.0], [bad, 0.0]])
        np.testing.assert_array_equal(mg.grad(lambda a: mg.prod(a, axis=1)[0])(rows), [[3, 2], [0, 0]])
        second = mg.jacobian(mg.grad(lambda a: mg.cumprod(a)[1]))(x)
        np.testing.assert_array_equal(second, [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    gradient = mg.grad(lambda a: mg.cumprod(a)[2])(np.array([np.nan, 2.0, 3.0]))
    np.testing.assert_array_equal(gradient, [6, np.nan, np.nan])


def test_equal_elements_have_no_deviation():
    for x in (np.ones(3), np.full(3, 0.1), np.full((2, 7), 1e9 + 0.1), np.array([3.0]), np.array(3.0)):
        assert mg.std(x).item() == 0
        np.testing.assert_array_equal(mg.grad(mg.std)(x), np.zeros_like(x))
        np.testing.assert_array_equal(mg.grad(mg.nanstd)(x), np.zeros_like(x))
        assert np.isfinite(mg.jacobian(mg.grad(mg.std))(x)).all()
    some = np.array([[0.1, 0.1, 0.1], [1.0, 2.0, 4.0]])
    gradient = mg.grad(lambda a: mg.sum(mg.std(a, axis=1)))(some)
    np.testing.assert_array_equal(gradient[0], np.zeros(3))
    np.testing.assert_allclose(gradient[1], mg.grad(mg.std)(some[1]))


def test_norms_at_zero_have_derivative_zero():
    for order in (None, 1, 2, 3, 1.5, 0.5, np.inf):
        np.testing.assert_array_equal(mg.grad(lambda a: mg.norm(a, order))(np.zeros(3)), np.zeros(3))
        gradient = mg.grad(lambda a: mg.norm(a, order))(np.array([3.0, 0.0, -4.0]))
        assert gradient[1] == 0
        assert np.isfinite(gradient).all()
    for order in (1, -1, np.inf, -np.inf, "fro"):
        np.testing.assert_array_equal(mg.grad(lambda a: mg.norm(a, order))(np.zeros((2, 3))), np.zeros((2, 3)))
    gradcheck(lambda a: mg.norm(a, 3), [np.array([1.0, 0.0, -2.0])])
    gradgradcheck(lambda a: mg.norm(a, 3), [np.array([1.0, 0.5, -2.0])])


def test_running_ops_make_a_vector_of_a_number():
    for name in ("cumsum", "cumprod"):
        assert getattr(mg, name)(2.5, axis=0).shape == (1,)
        assert mg.grad(lambda a: getattr(mg, name)(a, axis=0)[0])(2.5) == 1


def test_extremes_of_single_precision():
    x = leaf(np.array([1, 3, 3], np.float32))
    (x.max() + x.min()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.array([1, 0.5, 0.5], np.float32))


def test_average_returns_its_weights():
    x = leaf(M23)
    out, total = mg.average(x, axis=0, weights=[1.0, 3.0], returned=True)
    want = np.average(M23, axis=0, weights=[1.0, 3.0], returned=True)
    np.testing.assert_allclose(out.numpy(), want[0])
    np.testing.assert_array_equal(total.numpy(), want[1])
    out, total = mg.average(x, axis=1, returned=True)
    np.testing.assert_array_equal(total.numpy(), [3, 3])
    assert out.requires_grad


def test_single_precision_stays_so():
    x = M34.astype(np.float32)
    for name in ("std", "var", "median", "nanmedian", "ptp", "average", "norm", "nanmean", "nanstd", "nanmax", "prod",
                 "logsumexp", "softmax", "log_softmax", "diff", "trapezoid"):  # fmt: skip
        assert getattr(mg, name)(x).dtype == np.float32, name
    for name in ("quantile", "nanquantile"):
        assert getattr(mg, name)(x, 0.3).dtype == np.float32
        for q in ([0.3], np.float64(0.3)):
            assert getattr(mg, name)(x, q).dtype == getattr(np, name)(x, q).dtype == np.float64
    assert mg.norm(x[0], 3).dtype == mg.norm(x, 1).dtype == mg.std(x, where=x > 0).dtype == np.float32


def test_sums_of_exponentials_of_nothing():
    x = mg.tensor(np.zeros((2, 0)), requires_grad=True)
    assert mg.softmax(x, axis=1).shape == (2, 0)
    assert mg.log_softmax(x, axis=0).shape == (2, 0)
    np.testing.assert_array_equal(mg.logsumexp(x, axis=1).numpy(), [-np.inf, -np.inf])
    assert mg.logsumexp(x, axis=0).shape == (0,)
    mg.softmax(x, axis=1).sum().backward()
    assert x.grad.shape == (2, 0)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "norm"])
@pytest.mark.parametrize("shape", [(1024,), (1025,), (70_000,), (1_100_000,), (2, 5000), (3, 700, 2), (4, 3, 40, 5)])
def test_parts_of_parts(name, shape):
    """Many parts, and parts of those: no place is combined twice or left out, and none is filled up with zeros."""
    x = -1.0 - np.random.default_rng(5).random(shape)
    reference = np.linalg.norm if name == "norm" else getattr(np, name)
    for axis in (None, *range(len(shape))):
        want = np.sqrt(np.sum(x * x, axis=axis)) if name == "norm" else reference(x, axis=axis)
        np.testing.assert_allclose(getattr(mg, name)(x, axis=axis).numpy(), want, rtol=1e-14)
    for axes in [(0, 2), (0, 1), (1, 3), (0, 3), (0, 1, 3)]:
        if len(shape) > max(axes) and name != "norm":
            np.testing.assert_allclose(getattr(mg, name)(x, axis=axes).numpy(), reference(x, axis=axes), rtol=1e-14)


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2), (1, 3), ()])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1), (3, 2, 1, 0)])
@pytest.mark.parametrize("stretched", [(1,), (0, 2), (3,)])
def test_results_of_stretched_arrays_lie_as_numpys(axis, order, stretched):
    x = np.arange(120.0).reshape([(2, 3, 4, 5)[d] for d in order]).transpose(np.argsort(order))
    ones = tuple(slice(0, 1) if d in stretched else slice(None) for d in range(4))
    x = np.broadcast_to(x[ones], x.shape)
    for name in ("sum", "max"):
        want, found = getattr(np, name)(x, axis=axis), getattr(mg, name)(x, axis=axis).numpy()
        np.testing.assert_array_equal(found, want)
        assert found.strides == want.strides


@pytest.mark.parametrize("name", ["sum", "mean", "max", "norm"])
def test_all_of_a_large_window_is_not_copied(name):
    x = np.random.default_rng(1).normal(size=(400, 700))
    for window in (x[:, :600], x[:, :600].T, x[::2, ::-1], x[:, ::2], np.broadcast_to(x[:1], (400, 700))):
        reference = np.linalg.norm if name == "norm" else getattr(np, name)
        np.testing.assert_allclose(getattr(mg, name)(window).numpy(), reference(window), rtol=1e-12)
    window = mg.tensor(x)[:, :600]
    getattr(mg, name)(window)
    tracemalloc.start()
    try:
        getattr(mg, name)(window)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()
