"""Programs about leaves, kept values, and ops that need their own old value."""

import numpy as np
from scenarios import EITHER, EXACT, LEAF, M33, N33, W3, X3, scenario

# A: leaves that require grad


@scenario("A01", LEAF, x=X3)
def unary_method_on_a_leaf(xp, x):
    with xp.write(x):
        x.sin_()
    return x * x


@scenario("A04", x=X3)
def leaf_updated_before_any_use(xp, x):
    with xp.no_grad(), xp.write(x):
        x *= 2.0
    return x * x


@scenario("A06", x=X3)
def leaf_updated_after_an_op_that_kept_nothing(xp, x):
    y = x + 1.0
    with xp.no_grad(), xp.write(x):
        x += 1.0
    return y


@scenario("A10", EITHER, x=X3)
def detached_alias_of_a_kept_leaf_written(xp, x):
    y = x * x
    alias = x.detach()
    with xp.write(x, y, recorded=False):
        alias += 1.0
    return y


@scenario("A11", LEAF, x=X3, y=W3)
def out_into_a_leaf(xp, x, y):
    with xp.write(x):
        np.sin(y, out=x)
    return x * x, y


@scenario("A12", LEAF, x=X3)
def leaf_zeroed(xp, x):
    with xp.write(x):
        x.zero_()
    return (x + 1.0) ** 2


@scenario("A14", EITHER, x=X3)
def step_between_two_losses_of_one_leaf(xp, x):
    first, second = x * x, 2.0 * (x * x)
    xp.backward(first)
    with xp.no_grad(), xp.write(x, second):
        x -= np.array([0.1, 0.2, 0.3])
    xp.backward(second)


@scenario("A15", x=X3)
def two_training_steps(xp, x):
    xp.backward(x * x)
    with xp.no_grad(), xp.write(x):
        x -= 0.1
    xp.backward(x * x)


@scenario("A16", EITHER, x=X3)
def requires_grad_off_then_written_then_on(xp, x):
    y = x * x
    x.requires_grad = False
    with xp.write(x, y, recorded=False):
        x += 1.0
    x.requires_grad = True
    return y


@scenario("A17", EITHER, x=X3)
def requires_grad_off_after_use(xp, x):
    y = x * x
    with xp.write(y):
        x.requires_grad = False
    return y


@scenario("A18", LEAF, s=2.0)
def scalar_leaf_incremented(xp, s):
    with xp.write(s):
        s += 1.0
    return s * s


# B and C: a value is written after an op used it


def written_after_use(identity, title, sound, use, write, **leaves):
    """Enter `t = x + 0; y = use(t, ...); write(t, y)`; the first leaf is copied, so that it may be written."""

    def program(xp, **given):
        first, *others = given.values()
        t = first + 0.0
        y = use(xp, t, *others)
        with xp.write(t, y):
            write(t, y)
        return y

    program.__name__ = title.replace(" ", "_")
    scenario(identity, sound, **leaves)(program)


def _input(change):
    return lambda t, y: change(t)


def _result(change):
    return lambda t, y: change(y)


def _increment(t):
    t += 1.0


def _double(t):
    t *= 2.0


def _zero(t):
    t.zero_()


for identity, title, use, write, leaves in [
    ("B01", "factor of multiply", lambda xp, t, w: t * w, _input(_increment), {"x": X3, "w": W3}),
    ("B02", "input of sin", lambda xp, t: xp.sin(t), _input(_zero), {"x": X3}),
    ("B05", "base of a power", lambda xp, t: t**3, _input(_double), {"x": X3}),
    ("B07", "divisor", lambda xp, t, x: x / t, _input(_double), {"w": W3, "x": X3}),
    ("B08", "dividend", lambda xp, t, w: t / w, _input(_increment), {"x": X3, "w": W3}),
    ("B11", "result of sigmoid", lambda xp, t: xp.sigmoid(t), _result(_double), {"x": X3}),
    ("B12", "result of tanh", lambda xp, t: xp.tanh(t), _result(_increment), {"x": X3}),
    ("B13", "result of relu", lambda xp, t: xp.relu(t), _result(_increment), {"x": [-0.5, 0.7, 1.2]}),
    ("B14", "factor of matmul", lambda xp, t, b: t @ b, _input(_increment), {"a": M33, "b": N33}),
    ("B18", "input of max squared", lambda xp, t: xp.max(t) ** 2, _input(_zero), {"x": X3}),
    ("B23", "input of prod", lambda xp, t: xp.prod(t), _input(_increment), {"x": X3}),
    ("B24", "input of cumprod", lambda xp, t: xp.cumprod(t), _input(_increment), {"x": X3}),
    ("B25", "input of log", lambda xp, t: xp.log(t), _input(_increment), {"x": X3}),
    ("B26", "input of absolute", lambda xp, t: abs(t), _input(_zero), {"x": [-0.5, 0.7, 1.2]}),
    ("B28", "input of logsumexp", lambda xp, t: xp.logsumexp(t) ** 2, _input(_increment), {"x": X3}),
    (
        "B29",
        "first operand of arctan2",
        lambda xp, t, b: xp.arctan2(t, b),
        _input(_increment),
        {"a": X3, "b": W3},
    ),
    ("B31", "operand of maximum", lambda xp, t, b: xp.maximum(t, b), _input(_zero), {"a": X3, "b": W3}),
    ("B35", "both factors of a square", lambda xp, t: t * t, _input(_increment), {"x": X3}),
    ("B36", "result of a reciprocal", lambda xp, t: 1.0 / t, _result(_double), {"x": X3}),
]:
    written_after_use(identity, title, EITHER, use, write, **leaves)

for identity, title, use, write, leaves in [
    ("B16", "input of max along an axis", lambda xp, t: xp.max(t, axis=1), _input(_zero), {"a": M33}),
    ("B19", "input of sort", lambda xp, t: xp.sort(t), _input(_zero), {"x": [0.7, 0.3, 1.2]}),
    ("C01", "result of add", lambda xp, t: t + 1.0, _result(_increment), {"x": X3}),
    ("C02", "input of a multiple", lambda xp, t: t * 2.0, _input(_increment), {"x": X3}),
    ("C04", "input of sum", lambda xp, t: xp.sum(t), _input(_double), {"x": X3}),
    ("C05", "input of cumsum", lambda xp, t: xp.cumsum(t), _input(_double), {"x": X3}),
]:
    written_after_use(identity, title, EXACT, use, write, **leaves)


@scenario("B17", EITHER, a=M33)
def indices_of_the_largest_written(xp, a):
    t = a + 0.0
    y, where = xp.max(t, axis=1), xp.argmax(t, axis=1)
    with xp.write(where, y):
        where[:] = 0
    return y


@scenario("B32", EITHER, x=X3)
def index_array_written(xp, x):
    index = xp.tensor([2, 0, 1])
    y = x[index]
    with xp.write(index, y):
        index[0] = 0
    return y


@scenario("B33", EITHER, x=X3)
def mask_written(xp, x):
    mask = xp.tensor([True, False, True])
    y = x[mask]
    with xp.write(mask, y):
        mask[:] = xp.tensor([False, True, True])
    return y


@scenario("B34", EITHER, x=X3)
def constant_factor_written(xp, x):
    constant = xp.tensor(W3)
    y = x * constant
    with xp.write(constant, y):
        constant += 1.0
    return y


@scenario("C07", x=X3, w=W3)
def both_terms_of_a_sum_zeroed(xp, x, w):
    a, b = x + 0.0, w + 0.0
    y = a + b
    with xp.write(a, y):
        a.zero_()
    with xp.write(b, y):
        b.zero_()
    return y


@scenario("C08", x=X3)
def mean_subtracted_in_place(xp, x):
    t = x + 0.0
    mean = xp.mean(t)
    with xp.write(t):
        t -= mean
    return t


@scenario("C10", x=X3)
def losses_added_up_in_place(xp, x):
    loss = xp.sum(x * x) * 0.0
    for i in range(5):
        term = xp.sum(x * x) * float(i)
        with xp.write(loss):
            loss += term
    return loss


# D: ops that need their own old value, and chains of them


def in_place(identity, name, x):
    """Enter `t = x + 0; t.name_()`."""

    def program(xp, x):
        t = x + 0.0
        with xp.write(t):
            getattr(t, f"{name}_")()
        return t

    program.__name__ = f"{name}_in_place"
    scenario(identity, x=x)(program)


for number, name in enumerate(
    ("sin", "exp", "log", "sqrt", "tanh", "sigmoid", "relu", "abs", "square", "reciprocal"), 1
):
    if number not in (4, 9):
        in_place(f"D{number:02}", name, [-0.5, 0.7, 1.2] if name in ("relu", "abs") else X3)


@scenario("D11", EITHER, x=X3, w=W3)
def chain_of_four(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        t.sin_()
    with xp.write(t):
        t.exp_()
    with xp.write(t):
        t *= w
    with xp.write(t):
        t += 1.0
    return t


@scenario("D14", x=X3, w=W3)
def divided_by_a_tracked_value(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        t /= w
    return t


@scenario("D16", EITHER, x=X3, w=W3)
def sine_in_place_after_a_product_kept_it(xp, x, w):
    t = x + 0.0
    z = t * w
    with xp.write(t, z):
        t.sin_()
    return z, t


@scenario("D17", EITHER, x=X3)
def softmax_by_hand(xp, x):
    t = x + 0.0
    with xp.write(t):
        t -= xp.max(t)
    with xp.write(t):
        t.exp_()
    with xp.write(t):
        t /= xp.sum(t)
    return t


@scenario("D21", EITHER, x=X3)
def relu_in_place_on_a_sigmoid(xp, x):
    h = xp.sigmoid(x)
    with xp.write(h):
        h.relu_()
    return h


@scenario("D22", x=X3, w=W3)
def power_with_a_tracked_exponent(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        t **= w
    return t
