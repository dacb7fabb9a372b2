"""Values and gradients at corners that people reported trouble with elsewhere, each as it came and in variants."""

import numpy as np
import pytest

import mutagrad as mg


def logistic(x):
    return 1.0 / (1.0 + mg.exp(-x))


# By name: a program, its arguments, its value, its gradients.
CORNERS = {
    # Deviations of equal numbers, tails of logaddexp, remainders of negative numbers.
    "std-equal": (lambda x: mg.std(x), [[1.0, 1.0, 1.0]], 0, [[0, 0, 0]]),
    "std-alone": (lambda x: mg.std(x), [[3.0]], 0, [[0]]),
    "std-scalar": (lambda x: mg.std(x), [3.0], 0, [0]),
    "std-columns": (
        lambda x: mg.sum(mg.std(x, axis=0)), [[[1.0, 2.0], [1.0, 4.0]]], 1, [[[0, -0.5], [0, 0.5]]]
    ),
    "std-rows-kept": (
        lambda x: mg.sum(mg.std(x, axis=1, keepdims=True)), [[[1.0, 1.0], [2.0, 4.0]]], 1, [[[0, 0], [-0.5, 0.5]]]
    ),
    "std-ddof": (lambda x: mg.std(x, ddof=1), [[2.0, 2.0]], 0, [[0, 0]]),
    "std-numpy": (lambda x: np.std(x, axis=(0, 1)), [[[1.0, 1.0], [1.0, 1.0]]], 0, [[[0, 0], [0, 0]]]),
    "softplus": (lambda x: mg.sum(mg.logaddexp(0.0, x)), [[1000.0, -1000.0, 0.0]], 1000 + np.log(2), [[1, 0, 0.5]]),
    "softplus-turned": (lambda x: mg.sum(np.logaddexp(x, 0.0)), [[1000.0, -1000.0]], 1000, [[1, 0]]),
    "softplus-scalar": (lambda x: mg.logaddexp(0.0, x), [1000.0], 1000, [1]),
    "logaddexp-both": (
        lambda x, y: mg.sum(mg.logaddexp(x, y)), [[3.0, -3.0], [3.0, -3.0]], 2 * np.log(2),
        [[0.5, 0.5], [0.5, 0.5]],
    ),
    "logaddexp-infinite": (lambda x, y: mg.logaddexp(x, y), [-np.inf, 1.0], 1, [0, 1]),
    "remainder": (lambda x, y: mg.remainder(x, y), [-17.0, 5.0], 3, [1, 4]),
    "fmod": (lambda x, y: mg.fmod(x, y), [-17.0, 5.0], -2, [1, 3]),
    "remainder-negative-divisor": (lambda x, y: x % y, [17.0, -5.0], -3, [1, 4]),
    "fmod-negative-divisor": (lambda x, y: np.fmod(x, y), [17.0, -5.0], 2, [1, 3]),
    "remainder-arrays": (
        lambda x, y: mg.sum(mg.remainder(x, y)), [[-17.0, 17.0, 3.0], [5.0]], 8, [[1, 1, 1], [4 - 3 + 0]]
    ),
    "fmod-arrays": (lambda x, y: mg.sum(mg.fmod(x, y)), [[-17.0, 17.0, 3.0], [5.0]], 3, [[1, 1, 1], [3 - 3 + 0]]),
    "remainder-numpy": (lambda x: mg.sum(np.remainder(x, 5.0)), [[-17.0, 17.0]], 5, [[1, 1]]),
    # The slope of the branch not taken is infinite.
    "where-log": (lambda x: mg.sum(mg.where(x > 1.0, mg.log(x), x - 1.0)), [[0.0, 3.0]], np.log(3) - 1, [[1, 1 / 3]]),
    "where-reciprocal": (lambda x: mg.sum(mg.where(x > 0.0, 1.0 / x, 0.0)), [[0.0, -1.0, 2.0]], 0.5, [[0, 0, -0.25]]),
    "where-sqrt": (lambda x: mg.sum(mg.where(x < 2.0, 3.0 * x, mg.sqrt(x))), [[0.0, 9.0]], 3, [[3, 1 / 6]]),
    "where-sqrt-scalar": (lambda x: mg.where(x > 0.0, mg.sqrt(x), 0.0), [0.0], 0, [0]),
    "where-power": (lambda x: mg.sum(mg.where(x > 0.0, x**0.5, 0.0)), [[0.0, 4.0]], 2, [[0, 0.25]]),
    "where-log-sqrt": (lambda x: mg.sum(mg.where(x > 0.0, mg.log(mg.sqrt(x)), 0.0)), [[0.0, 1.0]], 0, [[0, 0.5]]),
    "where-quotient": (
        lambda x, y: mg.sum(mg.where(y != 0.0, x / y, 0.0)), [[1.0, 2.0], [0.0, 4.0]], 0.5, [[0, 0.25], [0, -0.125]]
    ),
    "where-exp": (lambda x: mg.sum(mg.where(x < 700.0, mg.exp(x), x)), [[1000.0, 0.0]], 1001, [[1, 1]]),
    "where-row": (
        lambda x: mg.sum(mg.where(x > 0.0, mg.cumsum(mg.log(x)), 0.0)), [[1.0, 0.0]], 0, [[1, 0]]
    ),
    "picked-sqrt": (lambda x: mg.sum(mg.sqrt(x)[x > 0.0]), [[0.0, 4.0]], 2, [[0, 0.25]]),
    # The length of nothing.
    "norm": (lambda x: mg.norm(x), [[0.0, 0.0, 0.0]], 0, [[0, 0, 0]]),
    "norm-squared": (lambda x: mg.norm(x) ** 2 + 3.0 * x[0], [[0.0, 0.0, 0.0]], 0, [[3, 0, 0]]),
    "norm-rows": (
        lambda x: mg.sum(mg.norm(x, axis=1)), [[[0.0, 0.0], [3.0, 4.0]]], 5, [[[0, 0], [0.6, 0.8]]]
    ),
    "norm-numpy": (lambda x: np.linalg.norm(x, axis=(0, 1)), [[[0.0, 0.0], [0.0, 0.0]]], 0, [[[0, 0], [0, 0]]]),
    "norm-scalar": (lambda x: mg.norm(x), [0.0], 0, [0]),
    # Powers of zero, to the power zero, of what is negative.
    "power-constants": (lambda x: mg.sum(x ** mg.array([0.0, 1.0, 2.0, 3.0])), [[0.0] * 4], 1, [[0, 1, 0, 0]]),
    "power-whole": (lambda x: mg.sum(x ** np.array([0, 1, 2, 3])), [[0.0] * 4], 1, [[0, 1, 0, 0]]),
    "power-both": (lambda x, q: x**q, [0.0, 2.0], 0, [0, 0]),
    "power-zero-zero": (lambda x, q: x**q, [0.0, 0.0], 1, [0, 0]),
    "power-zero-one": (lambda x, q: mg.sum(x**q), [[0.0], [1.0]], 0, [[1], [0]]),
    "power-negative": (lambda x: mg.sum(x ** mg.array([2.0, 3.0])), [[-2.0, -2.0]], -4, [[-4, 12]]),
    "power-scalar": (lambda x: x**3 + x**1 + x**0, [-2.0], -9, [13]),
    "power-column": (lambda x: mg.sum(x[:, None] ** np.arange(4)), [[0.0, 2.0]], 16, [[1, 17]]),
    "power-base-zero": (lambda q: mg.sum(mg.array([0.0, 2.0]) ** q), [2.0], 4, [4 * np.log(2)]),
    # Ties share.
    "maximum-itself": (lambda x: mg.maximum(x, x), [2.0], 2, [1]),
    "minimum-itself": (lambda x: mg.sum(mg.minimum(x, x)), [[2.0, 3.0]], 5, [[1, 1]]),
    "max-stacked": (lambda x: mg.max(mg.stack([x, x, x])), [2.0], 2, [1]),
    "maximum-opposite": (lambda x: mg.maximum(x, -x), [0.0], 0, [0]),
    "max-opposite": (lambda x: mg.max(mg.stack([x, -x])), [0.0], 0, [0]),
    "clip-bounds": (lambda x: mg.sum(mg.clip(x, -1.0, 1.0)), [[-1.0, 1.0, 2.0]], 1, [[1, 1, 0]]),
    "max-everywhere": (lambda x: mg.max(x), [[[1.0, 1.0], [1.0, 1.0]]], 1, [[[0.25, 0.25], [0.25, 0.25]]]),
    "max-rows": (
        lambda x: 0.5 * mg.mean(mg.max(x, axis=1)), [[[1.0, 1.0, 0.0], [0.0, 2.0, 1.0]]], 0.75,
        [[[0.125, 0.125, 0], [0, 0.25, 0]]],
    ),
    "range": (lambda x: mg.max(x) - mg.min(x), [[1.0, 1.0]], 0, [[0, 0]]),
    # Products with zeros.
    "prod-zero": (lambda x: mg.prod(x), [[3.0, 0.0, 5.0, -2.0]], 0, [[0, -30, 0, 0]]),
    "prod-zeros": (lambda x: mg.prod(x), [[3.0, 0.0, 0.0, 5.0]], 0, [[0, 0, 0, 0]]),
    "prod-rows": (lambda x: mg.sum(mg.prod(x, axis=1)), [[[0.0, 2.0], [3.0, 4.0]]], 12, [[[2, 0], [4, 3]]]),
    "prod-axes": (lambda x: mg.prod(x, axis=(0, 1)), [[[0.0, 2.0], [3.0, 4.0]]], 0, [[[24, 0], [0, 0]]]),
    "prod-scalar": (lambda x: mg.prod(x), [0.0], 0, [1]),
    "cumprod-zero": (lambda x: mg.sum(mg.cumprod(x)), [[2.0, 0.0, 3.0]], 2, [[1, 8, 0]]),
    # The spread of what is equal, or alone.
    "var-alone": (lambda x: mg.var(x), [[3.0]], 0, [[0]]),
    "var-columns": (lambda x: mg.sum(mg.var(x, axis=0)), [[[1.0, 2.0], [1.0, 4.0]]], 1, [[[0, -1], [0, 1]]]),
    # exp overflows on the way to something finite.
    "logistic": (lambda x: mg.sum(logistic(x)), [[-1000.0, 1000.0]], 1, [[0, 0]]),
    "logistic-scalar": (logistic, [-1000.0], 0, [0]),
    "logistic-power": (lambda x: mg.sum((1.0 + mg.exp(-x)) ** -1), [[-1000.0, 0.0]], 0.5, [[0, 0.25]]),
    "softplus-by-hand": (
        lambda x: mg.sum(mg.log1p(mg.exp(-mg.abs(x))) + mg.maximum(x, 0.0)), [[1000.0, -1000.0]], 1000, [[1, 0]]
    ),
    "logsumexp": (lambda x: mg.logsumexp(x), [[1000.0, -1000.0]], 1000, [[1, 0]]),
    "cosh": (lambda x: mg.sum(1.0 / mg.cosh(x)), [[1000.0, -1000.0]], 0, [[0, 0]]),
    # The angle at the origin is left out afterwards.
    "angle-picked": (
        lambda x, y: mg.mean(mg.arctan2(y, x)[[0, 2]]), [[3.0, 0.0, 1.0], [4.0, 0.0, 2.0]], 1.01722196789785,
        [[-0.08, 0, -0.2], [0.06, 0, 0.1]],
    ),
    "angle-masked": (
        lambda x, y: mg.sum(mg.arctan2(y, x)[np.array([True, False])]), [[3.0, 0.0], [4.0, 0.0]], np.arctan2(4, 3),
        [[-0.16, 0], [0.12, 0]],
    ),
    "angle-weighted": (
        lambda p: mg.sum(mg.arctan2(p[:, 1], p[:, 0]) * np.array([1.0, 0.0])), [[[3.0, 4.0], [0.0, 0.0]]],
        np.arctan2(4, 3), [[[-0.16, 0.12], [0, 0]]],
    ),
    "angle-sliced": (
        lambda x, y: mg.sum(mg.arctan2(y, x)[:1]), [[3.0, 0.0], [4.0, 0.0]], np.arctan2(4, 3), [[-0.16, 0], [0.12, 0]]
    ),
    # Slices that pick one element, repeats.
    "long-steps": (
        lambda x: mg.sum(x[1:4:3]) * 7.0 + mg.sum(x[3::-5]) * 2.0 + mg.sum(x[0:5:5] * x[4:]),
        [[1.0, 2.0, 3.0, 4.0, 5.0]], 27, [[5, 7, 0, 2, 1]],
    ),
    "repeats": (
        lambda x: mg.sum(x[::-2] * np.arange(1.0, 4.0)) + mg.sum(x[[1, 1, -1, 1]] * np.arange(10.0, 50.0, 10.0)),
        [[1.0, 2.0, 3.0, 4.0, 5.0]], 304, [[3, 70, 2, 0, 31]],
    ),
    # Nothing, and a single number.
    "empty-running-sum": (lambda x: mg.sum(mg.cumsum(x, axis=1)), [[[], [], []]], 0, [[[], [], []]]),
    "empty-broadcast": (lambda b: mg.sum(b[:, None] + mg.zeros((3, 0))), [[1.0, 2.0, 3.0]], 0, [[0, 0, 0]]),
    "empty-product": (lambda x: mg.sum(mg.prod(x, axis=1)), [[[], [], []]], 3, [[[], [], []]]),
    "empty-contraction": (lambda x: mg.sum(mg.tensordot(x, x, axes=([1], [1]))), [[[], [], []]], 0, [[[], [], []]]),
    "empty-matrix": (lambda x: mg.sum(x @ mg.zeros((0, 2))), [[[], [], []]], 0, [[[], [], []]]),
    "empty-joined": (
        lambda x: mg.sum(mg.concatenate([x, mg.ones((3, 1))], axis=1)), [[[], [], []]], 3, [[[], [], []]]
    ),
    "no-axes-mean": (lambda x: mg.sum(mg.mean(x, axis=())), [[1.0, 2.0, 4.0]], 7, [[1, 1, 1]]),
    "no-axes-max": (lambda x: mg.sum(mg.max(x, axis=())), [[1.0, 2.0]], 3, [[1, 1]]),
    "no-axes-var": (lambda x: mg.sum(mg.var(x, axis=())), [[1.0, 2.0]], 0, [[0, 0]]),
    "no-dimension": (lambda x: mg.sum(x) * mg.max(x), [3.0], 9, [6]),
    "no-dimension-views": (lambda x: x.reshape(1, 1)[0, 0] * x[()] * mg.prod(x), [2.0], 8, [12]),
    # A stretched operand's gradient has its own shape.
    "einsum-stretched": (
        lambda x, y: mg.sum(mg.einsum("ij,j->i", x, y) ** 2), [[[-1.25, 0.5, -0.5], [1.25, 0.25, -0.75]], [5.0]],
        53.125, [[[-62.5] * 3, [37.5] * 3], [21.25]],
    ),
}  # fmt: skip


def corners():
    return pytest.mark.parametrize("corner", CORNERS.values(), ids=list(CORNERS))


def given(args, dtype):
    return [np.array(a, dtype) if isinstance(a, list) else a for a in args]


@corners()
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_corner_transformed(corner, dtype):
    program, args, value, gradients = corner
    found, got = mg.value_and_grad(program, range(len(args)))(*given(args, dtype))
    eps = 10 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, value, rtol=eps, atol=eps)
    for a, g, want in zip(args, got, gradients, strict=True):
        assert np.shape(g) == np.shape(want)
        assert type(g) is float if isinstance(a, float) else g.dtype == dtype
        np.testing.assert_allclose(g, want, rtol=eps, atol=eps)


@corners()
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_corner_on_the_tape(corner, dtype):
    program, args, value, gradients = corner
    leaves = [mg.tensor(a, dtype=dtype, requires_grad=True) for a in args]
    found = program(*leaves)
    found.backward()
    eps = 10 * np.finfo(dtype).eps
    np.testing.assert_allclose(found.item(), value, rtol=eps, atol=eps)
    for leaf, want in zip(leaves, gradients, strict=True):
        assert leaf.grad.dtype == dtype
        assert leaf.grad.shape == np.shape(want)
        np.testing.assert_allclose(leaf.grad.numpy(), want, rtol=eps, atol=eps)


@pytest.mark.parametrize("whole", [np.array([1, 2, 3]), np.array([1, 2, 3], np.int8), np.array([1, 2, 3], np.uint64)])
def test_whole_numbers_have_gradients_that_are_not(whole):
    gradient = mg.grad(lambda x: mg.sum(x * x / 4.0))(whole)
    assert gradient.dtype == np.float64
    np.testing.assert_array_equal(gradient, [0.5, 1.0, 1.5])
    with pytest.raises(mg.DTypeError, match="require"):
        mg.tensor(whole, requires_grad=True)


# Contractions and indices


VECTOR, STACK = np.array([-1.25, 0.5, -0.5, 1.25]), np.arange(24.0).reshape(2, 3, 4) % 7 / 4 - 0.75
FLAT = np.array([[-1.25, 0.5, -0.5], [1.25, 0.25, -0.75]])

# By program: the other spelling of its result, from which finite differences are exact, being quadratic.
CONTRACTIONS = {
    "stack-vector": (lambda a, v: a @ v, [STACK, VECTOR]),
    "vector-stack": (lambda v, a: v @ a, [VECTOR[:3], STACK]),
    "unusual-axes": (lambda x, y: np.tensordot(x, y, axes=([1, 0], [0, 2])), [FLAT, STACK.transpose(1, 2, 0)]),
    "negative-axes": (lambda x, y: np.tensordot(x, y, axes=([-1, -3], [-1, 0])), [STACK, STACK[:, 0]]),
    "dot-stacks": (lambda x, y: np.dot(x, y), [STACK, STACK.transpose(0, 2, 1)]),
    "dot-stack-vector": (lambda x, y: np.dot(x, y), [STACK, VECTOR]),
    "inner-stacks": (lambda x, y: np.inner(x, y), [STACK, STACK[:, 1:]]),
    "outer-matrices": (lambda x, y: np.outer(x, y), [FLAT, STACK[0]]),
    "kron-stretched": (lambda x, y: np.kron(x, y), [FLAT, VECTOR]),
    "cross-stretched": (lambda x, y: np.cross(x, y), [STACK.transpose(0, 2, 1), FLAT[:, None]]),
    "convolved": (lambda x, y: np.convolve(x, y, "same"), [VECTOR, FLAT[0]]),
    "einsum-both-stretched": (lambda x, y: np.einsum("ij,jk->ik", x, y), [FLAT[:, :1], STACK[0]]),
    "einsum-repeated": (lambda x, y: np.einsum("iij,j", x, y), [STACK[:, :2], VECTOR[:1]]),
    "einsum-dots": (lambda x, y: np.einsum("...j,j->...", x, y), [STACK, VECTOR[:1]]),
    "matmul-stretched": (lambda x, y: np.matmul(x, y), [STACK[:1], STACK.transpose(0, 2, 1)]),
}  # fmt: skip


def differences(function, x):
    """The gradient of a quadratic function by central differences, which are exact for it."""
    out = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[at] = 0.5
        out[at] = function(x + step) - function(x - step)
    return out


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_contraction(name):
    program, args = CONTRACTIONS[name]
    loss = lambda *a: (program(*a) ** 2).sum()
    value, gradients = mg.value_and_grad(loss, (0, 1))(*args)
    assert value == pytest.approx(loss(*args), rel=1e-14)
    leaves = [mg.tensor(a, requires_grad=True) for a in args]
    loss(*leaves).backward()
    for k, (leaf, gradient) in enumerate(zip(leaves, gradients, strict=True)):
        want = differences(lambda x, k=k: loss(*args[:k], x, *args[k + 1 :]), args[k])
        assert gradient.shape == args[k].shape
        np.testing.assert_allclose(gradient, want, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(leaf.grad.numpy(), gradient)


@pytest.mark.parametrize(
    "key",
    [
        np.s_[1, :, [0, 3, 0]], np.s_[[0, 1], :, [0, 3]], np.s_[..., [1, 1]], np.s_[[1], None, :, [2, 2]],
        np.s_[::-1, [2, 0], 1], np.s_[0, [True, False, True], :], np.s_[:, None, [0, 0, 2]],
        np.s_[[[0], [1]], [[0, 1]]],
        np.s_[1, 1:, ::-3], np.s_[..., ::-2], np.s_[-1, ..., [-1, 0]], np.s_[:, np.array([], int)], np.s_[:, ::5, ::7],
        np.s_[[0, 1], 1, [0, 0]], np.s_[0, :, [[0, 1], [1, 1]]], np.s_[STACK > 0],
    ],
    ids=str,
)  # fmt: skip
def test_mixed_index(key):
    def loss(x):
        picked = x[key]
        return (picked * np.arange(1.0, picked.size + 1).reshape(picked.shape)).sum()

    want = differences(loss, STACK)
    value, gradient = mg.value_and_grad(loss)(STACK)
    assert value == pytest.approx(loss(STACK), rel=1e-14)
    np.testing.assert_allclose(gradient, want, atol=1e-12)
    leaf = mg.tensor(STACK, requires_grad=True)
    loss(leaf).backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), gradient)


@pytest.mark.parametrize(("sign", "x"), [(s, x) for s in (1, -1) for x in (1e5, 1e9, 1e10, 1e22, 1e300)])
def test_sine_of_huge_arguments(sign, x):
    x *= sign
    for argument in (x, np.array([x, 1.5 * x])):
        value, gradient = mg.value_and_grad(lambda x: mg.sum(mg.sin(x)))(argument)
        np.testing.assert_allclose(value, np.sum(np.sin(argument)), rtol=1e-12)
        np.testing.assert_allclose(gradient, np.cos(argument), rtol=1e-12)
