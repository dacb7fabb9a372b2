"""Python's operators beyond arithmetic: whole-number division, remainders, rounding to integers."""

import math
import operator

import numpy as np
import pytest

import mutagrad as mg

VALUES = np.array([-17.0, 7.5, 3.0, -0.25])
WHOLE = np.array([-17, 7, 3, 0])
OTHERS = [5, -2.5, np.array([5.0, -2.0, 0.75, 3.0]), np.float64(4.0)]
BINARY = [operator.floordiv, operator.mod, divmod]


def same(got, want):
    for g, w in zip(
        got if isinstance(want, tuple) else (got,), want if isinstance(want, tuple) else (want,), strict=True
    ):
        assert isinstance(g, mg.Tensor)
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(g.numpy(), w)


@pytest.mark.parametrize("values", [VALUES, VALUES.astype(np.float32), WHOLE, VALUES[0]], ids=str)
@pytest.mark.parametrize("operate", BINARY)
def test_division_by_whole_numbers(operate, values):
    for other in OTHERS:
        same(operate(mg.tensor(values), other), operate(values, other))
        same(operate(other, mg.tensor(values) + 1), operate(other, values + 1))
        same(operate(mg.tensor(values), mg.tensor(other)), operate(values, np.asarray(other)))
    for zero in (0, 0.0):
        with np.errstate(all="ignore"):
            same(operate(mg.tensor(values), zero), operate(np.asarray(values), zero))
    with pytest.raises(TypeError, match="unsupported operand"):
        operate(mg.tensor(values), "5")
    with pytest.raises(TypeError, match="unsupported operand"):
        operate("5.", mg.tensor(values)) if operate is not operator.mod else operate({}, mg.tensor(values))


def test_gradients_of_remainders():
    x, y = mg.tensor([-17.0, 17.0], requires_grad=True), mg.tensor([5.0, -5.0], requires_grad=True)
    (x % y).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([1, 1], [4, 4])
    quotient, left = divmod(x, y)
    assert not quotient.requires_grad
    assert left.requires_grad
    assert np.divmod(x, y)[1].requires_grad
    assert not (7.0 // x).requires_grad
    assert mg.grad(lambda y: 7.0 % y)(2.5) == -2


@pytest.mark.parametrize("operate", [operator.ifloordiv, operator.imod])
def test_augmented_forms(operate):
    x, y = mg.tensor(VALUES, requires_grad=True), mg.tensor(np.full(4, 2.5), requires_grad=True)
    t = x * 1.0
    seen = t[1:]
    result = operate(t, y)
    assert result is t
    want = operate(VALUES.copy(), np.full(4, 2.5))
    np.testing.assert_array_equal(t.numpy(), want)
    np.testing.assert_array_equal(seen.numpy(), want[1:])
    (t * t + x).sum().backward()
    if operate is operator.imod:
        np.testing.assert_array_equal(x.grad.numpy(), 2 * want + 1)
        np.testing.assert_array_equal(y.grad.numpy(), -2 * want * (VALUES // 2.5))
    else:
        assert x.grad.tolist() == [1, 1, 1, 1]
        assert y.grad is None
    with mg.testing.unchanged(x), pytest.raises(mg.InplaceError, match="leaf that requires grad"):
        operate(x, 2.0)
    whole = mg.tensor(WHOLE)
    operate(whole, 3)
    np.testing.assert_array_equal(whole.numpy(), operate(WHOLE.copy(), 3))
    with mg.testing.unchanged(whole), pytest.raises(TypeError, match="same kind"):
        operate(whole, 2.5)


@pytest.mark.parametrize("function", [math.floor, math.ceil, math.trunc, round])
def test_integers_of_one_element(function):
    for value in (2.5, -2.5, 3.49, 1e20, 4):
        for t in (mg.tensor(value), mg.tensor([value]), mg.tensor(float(value), requires_grad=True)):
            assert type(function(t)) is int
            assert function(t) == function(value)
    with pytest.raises(mg.ShapeError, match=rf"integer of one element.*\(4,\); use \.{function.__name__}\(\)"):
        function(mg.tensor(VALUES))
    with pytest.raises(ValueError, match="NaN"):
        function(mg.tensor(math.nan))


def test_round_to_decimals_is_numpys():
    for digits in (0, 1, -1, np.int64(2)):
        same(round(mg.tensor(VALUES * 1.37), digits), np.round(VALUES * 1.37, digits))
        same(mg.tensor(WHOLE).round(digits), np.round(WHOLE, digits))
    same(np.round(mg.tensor(VALUES * 1.37), 1), np.round(VALUES * 1.37, 1))
    same(round(mg.tensor(np.float32(2.345)), 2), np.round(np.float32(2.345), 2))
    t = mg.zeros(4)
    assert np.round(mg.tensor(VALUES * 1.37), 1, out=t) is t
    np.testing.assert_array_equal(t.numpy(), np.round(VALUES * 1.37, 1))
    with pytest.raises(mg.DTypeError, match="round"):
        mg.round(VALUES, 1.5)
