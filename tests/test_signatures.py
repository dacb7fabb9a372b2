"""Names, argument names, their order and defaults are NumPy's, and NumPy's own functions reach ours."""

import inspect

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.ops import OPS, Elementwise

# NumPy's parameters that ours lack: they choose a memory layout, an algorithm, a subclass, or a cast.
LEFT_OUT = {
    "order", "subok", "casting", "kind", "stable", "like", "copy", "device", "signature", "overwrite_input",
    "extobj", "args", "kwargs", "correction", "mean", "weights", "optimize", "axes", "returned", "sorted",
}  # fmt: skip
# Where the names differ on purpose: NumPy hides these operands in *operands.
OTHERWISE = {"einsum"}


def numpys(name):
    if name == "norm":
        return np.linalg.norm
    return getattr(np, name, None)


ENTRIES = {name: entry for name, entry in OPS.items() if numpys(name) is not None}


def signature(function):
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


@pytest.mark.parametrize("name", sorted(set(ENTRIES) - OTHERWISE))
def test_signatures_are_numpys(name):
    ours, theirs = inspect.signature(getattr(mg, name)), numpys(name)
    if isinstance(theirs, np.ufunc):
        operands = [p for n, p in ours.parameters.items() if n not in ("out", "where", "axis")]
        assert len(operands) == theirs.nin
        assert all(p.default is p.empty for p in operands)
        return
    known = signature(theirs)
    if known is None:
        pytest.skip("NumPy does not tell its signature")
    mine = list(ours.parameters)
    if isinstance(ENTRIES[name], Elementwise):
        # NumPy's has none where it is no ufunc; ours does as ufuncs do.
        mine = [n for n in mine if n not in ("out", "where")]
    rest = [n for n in known.parameters if n in mine]
    assert mine == rest, f"ours are {ours}, NumPy's {known}"
    missing = set(known.parameters) - set(mine)
    missing -= {*ENTRIES[name].keywords, *ours.parameters}
    assert missing <= LEFT_OUT, f"{missing - LEFT_OUT} are missing of {known}"
    for n, p in known.parameters.items():
        if n in mine:
            got = ours.parameters[n]
            same = p.default is np._NoValue or p.default is got.default or p.default == got.default
            assert same, f"{n}={got.default} is {p.default} in NumPy"
            wider = (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            assert got.kind is p.kind or {got.kind, p.kind} <= set(wider), f"{n} is {got.kind}, NumPy's {p.kind}"
            assert not (p.kind is p.KEYWORD_ONLY and got.kind is not p.kind)


@pytest.mark.parametrize("name", sorted(n for n, e in ENTRIES.items()))
def test_numpys_function_is_that_of_the_table(name):
    """The reference is found by name, and dispatches here by itself."""
    from mutagrad.ops import BY_NUMPY

    function = numpys(name)
    assert BY_NUMPY.get(function) is OPS[name], f"np.{name}"


def test_constants_are_numpys():
    for name in ("pi", "e", "inf", "nan", "newaxis", "float32", "float64", "int64", "bool_"):
        assert getattr(mg, name) is getattr(np, name)
        assert name in dir(mg)


def test_arguments_at_their_defaults_are_accepted_and_others_refused_by_name():
    t = mg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    assert np.ravel(t, order="C").shape == (6,)
    assert np.sort(t, kind="stable").requires_grad
    with pytest.raises(mg.DTypeError, match=r"np\.ravel with order='F' is not supported"):
        np.ravel(t, order="F")
    with pytest.raises(mg.DTypeError, match=r"np\.linalg\.det is not supported on tensors; use \.numpy\(\)"):
        np.linalg.det(t)


def test_outer_of_a_ufunc():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([[4.0, 5.0]])
    t, u = mg.tensor(x, requires_grad=True), mg.tensor(y, requires_grad=True)
    got = np.multiply.outer(t, u)
    np.testing.assert_array_equal(got.numpy(), np.multiply.outer(x, y))
    got.sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), np.full(3, 9.0))
    np.testing.assert_array_equal(u.grad.numpy(), np.full((1, 2), 6.0))
    np.testing.assert_array_equal(np.subtract.outer(x, u.detach()).numpy(), np.subtract.outer(x, y))


def test_methods_are_numpys():
    """Every method that arrays have for an op of the table, tensors have."""
    for name, entry in ENTRIES.items():
        of_first = next(iter(entry.signature.parameters)) == entry.operands[0]
        if hasattr(np.ndarray, name) and of_first:
            assert hasattr(mg.Tensor, name), name
