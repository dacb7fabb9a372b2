"""Programs about loops, cut history, memory shared with NumPy, and backward."""

import numpy as np
from scenarios import EITHER, REFUSED, W3, X3, X4, scenario
from scenarios_numpy import weights

# J: loops


@scenario("J01", EITHER, x=X3)
def many_small_steps(xp, x):
    t = x + 0.0
    with xp.write(t):
        for _ in range(1000):
            t += xp.sin(t) * 0.001
    return t


@scenario("J02", x=X3)
def many_factors(xp, x):
    t = x + 0.0
    with xp.write(t):
        for _ in range(1000):
            t *= 1.001
    return t


@scenario("J05", EITHER, x=X4)
def multiplicative_recurrence(xp, x):
    t = x + 0.0
    for i in range(1, 4):
        with xp.write(t):
            t[i] = t[i] * t[i - 1]
    return t


@scenario("J06", x=X3, w=[1.01, 0.99, 1.02])
def many_tracked_factors(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        for _ in range(200):
            t *= w
    return t


# K: history cut in place


@scenario("K01", EITHER, x=X3, w=W3)
def detached_in_place_after_an_op_kept_it(xp, x, w):
    t = x + 0.0
    y = t * w
    with xp.write(y):
        t.detach_()
    return y


@scenario("K03", REFUSED, x=X3)
def requires_grad_off_on_a_computed_tensor(xp, x):
    t = x + 0.0
    with xp.write(t):
        t.requires_grad_(False)
    return t


@scenario("K05", x=X3)
def detached_in_place_for_later_uses_only(xp, x):
    t = x + 0.0
    y = t + 0.0
    with xp.write(y):
        t.detach_()
    return y, xp.constant(t)


# L: memory shared with NumPy


@scenario("L01", EITHER, x=X3, shared=True)
def array_of_a_kept_leaf_written(xp, x):
    y = x * x
    array = xp.memory("x")
    with xp.write(array, y):
        array[:] = 9.0
    return y


@scenario("L02", EITHER, x=X3)
def numpy_view_of_a_kept_value_written(xp, x):
    t = x + 0.0
    y = t * t
    with xp.write(t, y):
        t.numpy()[:] = 9.0
    return y


@scenario("L04", EITHER, x=X3)
def raw_operand_written(xp, x):
    array = np.array(W3)
    y = x * array
    with xp.write(array, y):
        array[:] = 9.0
    return y


@scenario("L07", EITHER, x=0.7)
def large_shared_constant_written(xp, x):
    array = np.linspace(0.0, 1.0, 4096)
    y = xp.sin(x * xp.asarray(array))
    with xp.write(array, y):
        array[:] = 0.0
    return xp.sum(y)


@scenario("L08", EITHER, x=X3)
def dlpack_alias_written(xp, x):
    t = x + 0.0
    y = t * t
    with xp.write(t, y, recorded=False):
        np.from_dlpack(t.detach())[:] = 9.0
    return y


# M: around backward


@scenario("M01", x=X3, w=W3)
def written_after_backward(xp, x, w):
    t = x + 0.0
    xp.backward(t * w)
    with xp.write(t):
        t += 1.0


@scenario("M03", EITHER, x=X3)
def leaf_written_between_two_backwards(xp, x):
    y = x * x
    xp.backward(y, retain_graph=True)
    with xp.no_grad(), xp.write(x, y):
        x += 1.0
    xp.backward(y)


@scenario("M05", x=X3, reference=lambda x: 3 * x * x)
def gradient_doubled_between_two_backwards(xp, x):
    xp.backward(x * x)
    with xp.write(x):
        x.grad *= 2.0
    xp.backward(x * x)


@scenario("M07", x=X3, w=W3, reference=lambda x, w: 5 * x + w)
def one_of_two_equal_gradients_written(xp, x, w):
    xp.backward(x + w)
    with xp.write(x, w, w.grad):
        x.grad *= 5.0


@scenario("M08", x=X3)
def cotangent_written_after_backward(xp, x):
    cotangent = xp.ones(3)
    xp.backward(x + 0.0, cotangent)
    with xp.write(cotangent):
        cotangent *= 7.0


@scenario("M10", x=X3, reference=lambda x: weights((3,)) * np.cos(x))
def second_derivative_through_a_sine_in_place(xp, x):
    t = x + 0.0
    with xp.write(t):
        t.sin_()
    xp.backward(t, create_graph=True)
    gradient, x.grad = x.grad, None
    xp.backward(gradient)


@scenario("M11", x=X3, w=W3, reference=lambda x, w: (weights((3,)) * 3 * x**2 * w**3) ** 2)
def second_derivative_through_a_product_in_place(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        t *= w
    xp.backward(t * t * t, create_graph=True)
    gradient, x.grad, w.grad = x.grad, None, None
    xp.backward(gradient * gradient)


@scenario("M12", x=X3, reference=lambda x: weights((3,)) * 6 * x * x)
def gradient_written_then_differentiated(xp, x):
    xp.backward(x * x * x, create_graph=True)
    gradient, x.grad = x.grad, None
    with xp.write(gradient):
        gradient *= 2.0
    xp.backward(gradient)


@scenario("M13", x=X3)
def computed_value_doubled_under_no_grad(xp, x):
    t = x + 0.0
    with xp.no_grad(), xp.write(t):
        t *= 2.0
    return t * t
