"""Forward mode, Hessians and their products, and how transforms compose."""

import numpy as np
import pytest

import mutagrad as mg

random = np.random.default_rng(3)


def rosenbrock(x):
    return mg.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def mutating(x):
    """Writes of every kind between ops that keep and ops that do not."""
    x[1:] *= x[:-1]
    x.sin_()
    x[[0, 0]] = x[1] * 2.0
    y = mg.zeros((2, 3))
    y[0] = mg.sort(x)
    y[1, ::-1] = mg.exp(x) @ mg.stack([x, x * x, mg.cumsum(x)])
    y -= mg.mean(y, axis=0)
    return mg.concatenate([y, mg.max(y, axis=1, keepdims=True)], axis=1).T


POINT, DIRECTION = np.array([1.3, 0.7, 0.8]), np.array([1.0, -2.0, 0.5])


def test_jvp_is_the_derivative_along_a_line():
    value, tangent = mg.jvp(mutating, (POINT,), (DIRECTION,))
    np.testing.assert_array_equal(value, mutating(mg.tensor(POINT)).numpy())
    h = 1e-6
    ends = [mutating(mg.tensor(POINT + s * h * DIRECTION)).numpy() for s in (1, -1)]
    np.testing.assert_allclose(tangent, (ends[0] - ends[1]) / (2 * h), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(tangent, mg.jacobian(mutating)(POINT) @ DIRECTION, rtol=1e-13, atol=1e-13)


def test_jvp_mirrors_its_arguments():
    f = lambda x, y: {"sum": mg.sum(x) * y["scale"], "same": x, "none": 3.0}
    value, tangent = mg.jvp(f, (POINT, {"scale": 2.0}), (DIRECTION, {"scale": 1.0}))
    assert value == {"sum": 2 * POINT.sum(), "same": value["same"], "none": 3.0}
    assert tangent["sum"] == pytest.approx(2 * DIRECTION.sum() + POINT.sum(), rel=1e-15)
    np.testing.assert_array_equal(tangent["same"], DIRECTION)
    assert tangent["none"] == 0.0
    assert type(tangent["sum"]) is float
    assert type(tangent["same"]) is np.ndarray
    single = mg.jvp(mg.exp, (POINT.astype(np.float32),), (DIRECTION,))[1]
    assert single.dtype == np.float32
    inside = mg.jvp(mg.exp, (mg.tensor(POINT),), (mg.tensor(DIRECTION),))[1]
    assert isinstance(inside, mg.Tensor)
    assert not inside.requires_grad


def test_jvp_of_what_depends_on_tensors_from_outside_is_tracked():
    t = mg.tensor(2.0, requires_grad=True)
    _, tangent = mg.jvp(lambda x: x * x * t, (mg.tensor(3.0),), (mg.tensor(1.0),))
    tangent.backward()
    assert (tangent.item(), t.grad.item()) == (12.0, 6.0)
    v = mg.tensor(1.0, requires_grad=True)
    mg.jvp(lambda x: x**3, (2.0,), (v,))[1].backward()
    assert v.grad.item() == 12.0


def test_jvp_refuses_what_does_not_fit():
    with pytest.raises(mg.ShapeError, match=r"jvp\(\): a tangent has shape \(2,\), its argument \(3,\)"):
        mg.jvp(mg.sin, (POINT,), (np.ones(2),))
    with pytest.raises(mg.ShapeError, match="2 parts"):
        mg.jvp(mg.add, (POINT, POINT), (POINT,))
    with pytest.raises(mg.DTypeError, match="primals must be a tuple"):
        mg.jvp(mg.sin, POINT, DIRECTION)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hessian_vector_product(dtype):
    point, vector = POINT.astype(dtype), DIRECTION.astype(dtype)
    product = mg.hvp(rosenbrock)(point, vector)
    np.testing.assert_allclose(product, [2790.0, -1600.0, 660.0], rtol=1e-12 if dtype == np.float64 else 1e-5)
    assert product.dtype == dtype
    np.testing.assert_allclose(mg.hessian(rosenbrock)(point) @ vector, product, rtol=1e-5)


def test_hessian_by_several_arguments():
    f = lambda a, b: a * a * b + b**3
    assert mg.hessian(f, (0, 1))(2.0, 3.0) == ((6.0, 4.0), (4.0, 18.0))
    assert mg.hvp(f, (0, 1))(2.0, 3.0, (1.0, 10.0)) == (46.0, 184.0)
    assert mg.hvp(f, 1)(2.0, 3.0, 1.0) == 18.0
    by_matrix = mg.hessian(lambda m: mg.sum(m @ m @ m))(random.normal(size=(2, 2)))
    assert by_matrix.shape == (2, 2, 2, 2)
    np.testing.assert_allclose(by_matrix, by_matrix.transpose(2, 3, 0, 1), rtol=1e-12, atol=1e-12)


def test_nested_derivatives_do_not_mix():
    assert mg.grad(lambda x: x * mg.grad(lambda y: x * y * y)(3.0))(2.0) == 24.0
    push = lambda f, x: mg.jvp(f, (x,), (1.0,))[1]
    assert push(lambda x: x * push(lambda y: x * y * y, 3.0), 2.0) == 24.0
    assert push(lambda x: x * push(lambda y: x + y, 3.0), 2.0) == 1.0
    assert mg.grad(lambda x: x * push(lambda y: x * y * y, 3.0))(2.0) == 24.0


@pytest.mark.parametrize("order", range(4))
def test_forward_and_reverse_compose(order):
    total = lambda x: mg.sum(mutating(x) ** 2)
    along = lambda f: lambda x: mg.jvp(f, (x,), (DIRECTION,))[1]
    reverse = lambda f: lambda x: mg.sum(mg.grad(f)(x) * DIRECTION)
    first = along(total) if order & 1 else reverse(total)
    second = along(first) if order & 2 else reverse(first)
    h = 1e-5
    want = (mg.grad(total)(POINT + h * DIRECTION) - mg.grad(total)(POINT - h * DIRECTION)) @ DIRECTION / (2 * h)
    np.testing.assert_allclose(np.asarray(second(POINT)), want, rtol=1e-7)


# Squares of what is not smooth

ZERO = np.zeros(3)
SQUARES = {
    "norm": lambda x: mg.norm(x) ** 2 + 3.0 * x[0],
    "square": lambda x: mg.square(mg.norm(x)) + 3.0 * x[0],
    "power": lambda x: mg.power(mg.norm(x), 2) + 3.0 * x[0],
    "of rows": lambda x: mg.sum(mg.norm(mg.stack([x, x]), axis=1) ** 2) / 2 + 3.0 * x[0],
    "absolute": lambda x: mg.sum(mg.abs(x) ** 2) + 3.0 * x[0],
    "root": lambda x: mg.sqrt(mg.sum(x * x)) ** 2 + 3.0 * x[0],
}


@pytest.mark.parametrize("name", SQUARES)
def test_a_square_is_smooth_where_its_root_is_not(name):
    f = SQUARES[name]
    np.testing.assert_array_equal(mg.grad(f)(ZERO), [3.0, 0.0, 0.0])
    np.testing.assert_array_equal(mg.hessian(f)(ZERO), 2 * np.eye(3))
    np.testing.assert_array_equal(mg.hvp(f)(ZERO, DIRECTION), 2 * DIRECTION)
    along = lambda x: mg.jvp(f, (x,), (DIRECTION,))[1]
    assert mg.jvp(along, (ZERO,), (DIRECTION,))[1] == 2 * DIRECTION @ DIRECTION
    np.testing.assert_allclose(mg.grad(f)(POINT), 2 * POINT + [3.0, 0.0, 0.0], rtol=1e-15)


def test_a_square_with_its_root_used_elsewhere():
    def f(x):
        n = mg.norm(x)
        return n * n + mg.sin(n)

    n = np.linalg.norm(POINT)
    np.testing.assert_allclose(mg.grad(f)(POINT), POINT * (2 + np.cos(n) / n), rtol=1e-14)
    x = mg.tensor(POINT, requires_grad=True)
    root = mg.norm(x)
    root.retain_grad()
    (root**2).backward()
    assert root.grad.item() == pytest.approx(2 * n)
    np.testing.assert_allclose(x.grad.numpy(), 2 * POINT, rtol=1e-15)
    x.grad = None
    root = mg.norm(x)
    (root**2).backward()
    with pytest.raises(mg.GradientError, match="released"):
        root.backward()
