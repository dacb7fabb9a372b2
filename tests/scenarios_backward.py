"""Further programs: backward, second derivatives, failures in between, and threads."""

import numpy as np
from scenarios import EITHER, LEAF, M23, M33, REFUSED, W2, W3, W4, X3, X4, X5, X6, scenario
from scenarios_numpy import weights

# Around backward


@scenario("X370", EITHER, x=X3, w=W3)
def computed_value_written_between_two_backwards(xp, x, w):
    t = x + 0.0
    y = t * w
    xp.backward(y, retain_graph=True)
    with xp.write(t, y):
        t += 1.0
    xp.backward(y)


@scenario("X371", x=X3, w=W3)
def released_part_keeps_nothing(xp, x, w):
    t = x + 0.0
    xp.backward(t * w)
    with xp.write(t):
        t *= 2.0
    with xp.write(t):
        t[1] = 0.0


@scenario("X372", EITHER, x=X3, w=W3)
def one_of_two_results_released(xp, x, w):
    t = w + 0.0
    y, z = t * x, t * x * x
    xp.backward(x * 2.0)
    with xp.write(t, y, z):
        t += 1.0
    return y, z


@scenario("X373", x=X3, reference=lambda x: 2.0 * x)
def retained_gradient_is_that_of_the_value_then(xp, x):
    t = x * 1.0
    t.retain_grad()
    early = t
    with xp.write(t):
        t *= 2.0
    xp.backward(t)
    np.testing.assert_allclose(early.grad.numpy(), 2.0 * weights((3,)))


@scenario("X374", x=X4, w=W2)
def backward_from_a_view_of_a_written_base(xp, x, w):
    t = x + 0.0
    v = t[1:3]
    with xp.write(t):
        t *= 2.0
    with xp.write(t):
        v *= w
    xp.backward(v * v)


@scenario("X375", EITHER, x=X3)
def backward_from_the_target_of_a_write(xp, x):
    y = x * x
    with xp.write(y):
        y[...] = xp.sin(y) * 1.0
    xp.backward(y)


@scenario("X376", x=X3, reference=lambda x: weights((3,)) * np.exp(x))
def second_derivative_through_exp_in_place(xp, x):
    t = x + 0.0
    with xp.write(t):
        t.exp_()
    xp.backward(t, create_graph=True)
    gradient, x.grad = x.grad, None
    with xp.write(t, gradient):
        gradient += 1.0
    xp.backward(gradient)


@scenario("X377", x=X4, w=W2, reference=lambda x, w: 2.0 * w * weights((4,))[[0, 2]])
def second_derivative_through_an_indexed_write(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        t[[0, 2]] = w
    xp.backward(t * t, create_graph=True)
    gradient, x.grad, w.grad = w.grad, None, None
    xp.backward(gradient)


@scenario("X378", x=X3)
def gradient_holder_written_between_backwards(xp, x):
    cotangent = np.ones(3)
    xp.backward(x * x, cotangent, retain_graph=True)
    with xp.write(cotangent):
        cotangent[:] = 5.0
    xp.backward(x * x, cotangent)


@scenario("X379", x=X3, w=W3, reference=lambda x, w: 2.0 * x * np.array([0.0, 1.0, 1.0]) + x * w)
def part_of_a_gradient_zeroed_through_a_view(xp, x, w):
    xp.backward(2.0 * x)
    with xp.write(x):
        x.grad[:1].zero_()
    xp.backward(x * w)


# Errors in between


@scenario("X380", REFUSED, x=X4, w=W4)
def several_failures_leave_the_program_intact(xp, x, w):
    t = x + 0.0
    y = t + w
    with xp.write(t, y):
        t += np.ones(3)
    with xp.write(t, y):
        t[[0, 9]] = 1.0
    with xp.write(t, y):
        t[0] = 1j
    with xp.write(t, y):
        np.add(t, w, out=y[:2])
    t *= 2.0
    return y, t


@scenario("X381", LEAF, x=X4, w=W4)
def refused_leaf_is_used_on(xp, x, w):
    y = x * w
    with xp.write(x, y):
        x *= 2.0
    with xp.write(x, y):
        x[1:] = w[1:]
    return y, x * w


@scenario("X382", REFUSED, x=X4)
def operand_raises_while_it_is_made(xp, x):
    t = x + 0.0
    with xp.write(t):
        t[1:3] += xp.sin(t[1:3]) + np.ones(5)
    return t * t


# Threads


@scenario("X390", x=X6)
def disjoint_parts_written_by_two_threads(xp, x):
    t = x + 0.0

    def scale(part, factor):
        for _ in range(50):
            part *= factor

    with xp.write(t):
        xp.in_threads(lambda: scale(t[:3], 1.01), lambda: scale(t[3:], 0.99))
    return t


@scenario("X391", x=X3, w=W3)
def results_computed_and_dropped_while_another_thread_writes(xp, x, w):
    t = x + 0.0
    buffer = xp.zeros(3)

    def compute():
        for _ in range(100):
            xp.exp(x * w)

    def write():
        for _ in range(100):
            buffer.copy_(x)

    with xp.write(buffer):
        xp.in_threads(compute, write)
    return t * buffer


@scenario("X392", x=X3)
def other_thread_records_although_this_one_does_not(xp, x):
    t = x + 0.0
    with xp.no_grad():
        y = t * 2.0
        with xp.write(t):
            t += 1.0
    with xp.write(t):
        xp.in_threads(lambda: t.multiply_(3.0))
    return t * t + xp.constant(y)


@scenario("X393", x=X5, a=M33, b=M23)
def many_small_writes_to_one_memory(xp, x, a, b):
    t = xp.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            with xp.write(t):
                t[i, j] = a[j, i] * x[i]
            with xp.write(t):
                t[i, : j + 1] += b[0, : j + 1]
    return t * t
