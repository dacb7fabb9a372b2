"""Contractions: NumPy's own spellings, dtypes, errors, and what the table's tests do not reach."""

import warnings

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.testing import gradcheck, gradgradcheck

random = np.random.default_rng(0)
A, B, V = random.normal(size=(2, 3)), random.normal(size=(3, 4)), random.normal(size=3)

# Calls of NumPy's functions, each with a tensor in place of A or V.
CALLS = {
    "matmul": lambda a, v: np.matmul(a, v),
    "operator": lambda a, v: a @ v,
    "reflected": lambda a, v: A @ v + np.sum(a, axis=1),
    "dot": lambda a, v: np.dot(a, b=v),
    "method": lambda a, v: a.dot(v),
    "inner": lambda a, v: np.inner(v, a),
    "outer": lambda a, v: np.outer(a, v),
    "tensordot": lambda a, v: np.tensordot(a, v, axes=(1, 0)),
    "tensordot-array": lambda a, v: np.tensordot(a, v, np.array([[-1], [0]])),
    "vdot": lambda a, v: np.vdot(a[0], v),
    "vecdot": lambda a, v: np.vecdot(a, v),
    "vecdot-axis": lambda a, v: np.vecdot(a * v, A, axis=0),
    "kron": lambda a, v: np.kron(v, a),
    "cross": lambda a, v: np.cross(a, b=v, axis=-1),
    "cross-axes": lambda a, v: np.cross(v, a, 0, 1, 0),
    "convolve": lambda a, v: np.convolve(a[0], v, mode="same"),
    "convolve-number": lambda a, v: np.convolve(a[0], v, 1),
    "correlate": lambda a, v: np.correlate(a[1], v, "full"),
    "einsum": lambda a, v: np.einsum("ij,j", a, v, optimize=True),
    "einsum-lists": lambda a, v: np.einsum(a, [0, 1], v, [1]),
    "einsum-lists-out": lambda a, v: np.einsum(a, [..., 40], v, [40], [...]),
    "einsum-swapped": lambda a, v: np.einsum(v, [7], a, (3, 7), (7, 3)),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_numpys_own_names(call):
    want = call(A, V)
    got = call(mg.tensor(A, requires_grad=True), mg.tensor(V))
    assert isinstance(got, mg.Tensor)
    assert got.requires_grad
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)
    gradcheck(call, [A, V])


@pytest.mark.parametrize("name", ["matmul", "dot", "inner", "outer", "vdot", "vecdot", "kron", "cross", "convolve",
                                  "correlate", "tensordot"])  # fmt: skip
def test_dtypes_are_numpys(name):
    extra = {"axes": 1} if name == "tensordot" else {}
    numbers = [1, 2, 3], [3, 0, 5]
    for first in (bool, np.int8, np.uint16, np.int64, np.float32, np.float64):
        for second in (bool, np.int32, np.float32, np.float64):
            if name == "cross" and first is second is bool:
                continue  # NumPy subtracts no bools
            a, b = (np.array(n, t) for n, t in zip(numbers, (first, second), strict=True))
            want = getattr(np, name)(a, b, **extra)
            got = getattr(mg, name)(mg.tensor(a), b, **extra)
            assert got.dtype == want.dtype, (first, second)
            np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("name", ["matmul", "dot", "outer", "vecdot"])
def test_results_go_where_out_says(name):
    function, square = getattr(mg, name), A[:, :2]
    want = function(square, square).numpy()
    a, target = mg.tensor(square, requires_grad=True), mg.zeros(want.shape)
    assert function(a, square, out=target) is target
    np.testing.assert_array_equal(target.numpy(), want)
    target.sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), mg.grad(lambda a: mg.sum(function(a, square)))(square))


def test_einsum_into_a_target():
    target, a = mg.zeros((2, 4)), mg.tensor(A, requires_grad=True)
    for call in (lambda: mg.einsum("ij,jk", a, B, out=target), lambda: np.einsum(a, [0, 1], B, [1, 2], out=target)):
        assert call() is target
        np.testing.assert_allclose(target.numpy(), A @ B)
    assert mg.einsum("ij,j", a, V, dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "ij,jk->ki", "ij,jk", "ij,jk->"])
def test_large_einsum(subscripts):
    """Of a size where it goes through BLAS, the gradients too."""
    a, b = random.normal(size=(45, 60)), random.normal(size=(60, 70))
    want = np.einsum(subscripts, a, b)
    value, gradients = mg.value_and_grad(lambda a, b: mg.sum(mg.einsum(subscripts, a, b) ** 2), (0, 1))(a, b)
    assert value == pytest.approx(np.sum(want**2), rel=1e-12)
    full = np.broadcast_to(want, (45, 70)) if want.ndim == 0 else want.T if subscripts.endswith("ki") else want
    for got, expected in zip(gradients, (2 * full @ b.T, 2 * a.T @ full), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("active", [0, 1])
def test_einsum_keeps_only_what_the_other_operand_needs(active):
    tensors = [mg.tensor(A, requires_grad=active == 0), mg.tensor(V, requires_grad=active == 1)]
    out = mg.einsum("ij,j->i", *tensors)
    tensors[active]._array[...] = np.nan
    out._array[...] = np.nan
    out.backward(np.ones(2))
    want = np.broadcast_to(V, A.shape) if active == 0 else A.sum(0)
    np.testing.assert_allclose(tensors[active].grad.numpy(), want)


@pytest.mark.parametrize(
    ("shapes", "axes"),
    [(((2,), (2,)), {}), (((4, 2), (3,)), {}), (((4, 3), (2,)), {}), (((2,), (4, 3)), {}),
     (((2, 4), (4, 2)), {"axisa": 0}), (((2, 4), (3, 4)), {"axis": 0}), (((5, 1, 2), (4, 3)), {"axisc": 0}),
     (((5, 1, 2), (4, 2)), {})],
)  # fmt: skip
def test_cross_products_of_the_plane(shapes, axes):
    a, b = (random.normal(size=s) for s in shapes)
    with pytest.warns(DeprecationWarning, match="2-dimensional"):
        got = mg.cross(a, b, **axes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        np.testing.assert_allclose(got.numpy(), np.cross(a, b, **axes), rtol=1e-14)
        gradcheck(lambda a, b: mg.cross(a, b, **axes), [a, b])
        gradgradcheck(lambda a, b: mg.cross(a, b, **axes) ** 2, [a, b])


def test_products_that_are_not_finite_are_silent():
    value, gradient = mg.value_and_grad(lambda x: mg.dot(mg.log(x), np.array([0.0, 1.0])))(np.array([0.0, 2.0]))
    assert np.isnan(value)
    np.testing.assert_array_equal(gradient, [0.0, 0.5])


REFUSED = [
    (lambda: mg.matmul(A, A), mg.ShapeError, r"matmul: .*\n.*\(2, 3\); float64, shape \(2, 3\)"),
    (lambda: mg.dot(A, A), mg.ShapeError, r"dot: shapes \(2,3\) and \(2,3\)"),
    (lambda: mg.inner(A, B), mg.ShapeError, r"inner: .*\n.*\(2, 3\); float64, shape \(3, 4\)"),
    (lambda: mg.tensordot(A, B), mg.ShapeError, r"tensordot: .*\n.*\(2, 3\); float64, shape \(3, 4\)"),
    (lambda: mg.tensordot(A, B, ([5], [0])), mg.RangeError, r"tensordot: axes \(\[5\], \[0\]\) are out of range for 2"),
    (lambda: mg.tensordot(A, B, 3), mg.RangeError, "tensordot: axes 3 are out of range"),
    (lambda: mg.vdot(A, B), mg.ShapeError, r"vdot: .*\n.*\(2, 3\); float64, shape \(3, 4\)"),
    (lambda: mg.vecdot(A, B), mg.ShapeError, r"vecdot: .*\n.*\(2, 3\); float64, shape \(3, 4\)"),
    (lambda: mg.cross(A, B), mg.ShapeError, r"cross: incompatible dimensions for cross product \(dimension must"),
    (lambda: mg.cross(A, 2.0), mg.ShapeError, "cross: At least one array has zero dimension"),
    (lambda: mg.convolve(A, V), mg.ShapeError, "convolve: object too deep"),
    (lambda: mg.convolve(V, []), mg.ShapeError, "convolve: v cannot be empty"),
    (lambda: mg.convolve(V, V, "middle"), mg.ShapeError, "convolve: mode must be one of 'valid', 'same', or 'full'"),
    (lambda: mg.correlate([], V), mg.ShapeError, "correlate: first array argument cannot be empty"),
    (lambda: mg.einsum("ij,jk", A, A), mg.ShapeError, r"einsum: .*\n.*\(2, 3\); float64, shape \(2, 3\)"),
    (lambda: mg.einsum(A, [0, -1]), mg.DTypeError, r"einsum: expected .*got float64, shape \(2, 3\); \[0, -1\]"),
    (lambda: mg.einsum(A), mg.DTypeError, "einsum: expected subscripts as text, or operands each followed by"),
    (lambda: mg.dot(mg.tensor(A), 1j), mg.DTypeError, "dot: complex"),
    (lambda: mg.kron([mg.tensor(V)], V), mg.DTypeError, "kron: got a list of tensors"),
    (lambda: np.matmul(mg.tensor(A), V, axis=0), mg.DTypeError, "np.matmul with axis="),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_what_does_not_fit_is_named(call, error, text):
    with pytest.raises(error, match=text):
        call()
