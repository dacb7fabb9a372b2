"""Further programs: single elements, scalars, loops, and buffers that become tracked."""

import numpy as np
from scenarios import EITHER, M23, M33, W2, W3, W4, X3, X4, X5, X6, scenario
from scenarios_numpy import weights

# Elements and scalars


@scenario("X300", x=X3, w=W3)
def element_view_written_by_many_ops(xp, x, w):
    t = x + 0.0
    element = t[1, ...]
    with xp.write(t):
        element *= w[0]
    with xp.write(t):
        element.sin_()
    with xp.write(t):
        element += t[2]
    return t * t, element


@scenario("X301", x=X4)
def elements_doubled_one_by_one(xp, x):
    t = x + 0.0
    for i in range(4):
        element = t[i, ...]
        with xp.write(t):
            element *= 2.0
    return t * t


@scenario("X302", x=X4)
def elements_added_into_a_scalar(xp, x):
    total = xp.zeros(())
    for element in list(x):
        with xp.write(total):
            total += element * element
    return total


@scenario("X303", EITHER, x=X4)
def product_of_elements_in_a_scalar(xp, x):
    total = xp.ones(())
    for element in list(x):
        with xp.write(total):
            total *= element
    return total


@scenario("X303b", x=X3, w=W3)
def number_read_from_an_array_is_a_copy(xp, x, w):
    t = x * w
    number = t[1]
    with xp.write(t):
        number *= 3.0
    with xp.write(number):
        t[1] = 0.5
    return t * t, number * w


@scenario("X304", EITHER, x=X3, w=W3)
def element_read_before_and_after_its_write(xp, x, w):
    t = x + 0.0
    element = t[1]
    y = element * w
    with xp.write(t, y):
        t[1] = 3.0 * w[2]
    return y, element * w, t


@scenario("X305", EITHER, x=X3)
def scalar_seen_by_two_names(xp, x):
    s = xp.sum(x)
    alias = s
    y = s * x
    with xp.write(s, y):
        s += 1.0
    return y, alias * s


@scenario("X306", x=X3, w=W2)
def scalar_overwritten_in_every_way(xp, x, w):
    s = xp.sum(x)
    with xp.write(s):
        s.fill_(w[0])
    y = s + 0.0
    with xp.write(s):
        s[...] = w[1]
    with xp.write(s):
        s[()] *= 2.0
    with xp.write(s):
        s.copy_(s * 3.0)
    return y, s


@scenario("X307", x=X3)
def views_of_a_scalar(xp, x):
    s = xp.sum(x)
    v, row = s[...], s.reshape(1)
    with xp.write(s):
        v *= 2.0
    with xp.write(s):
        row[0] += 1.0
    return s * s, v, row


@scenario("X308", EITHER, x=X3)
def detached_alias_of_a_scalar(xp, x):
    s = xp.sum(x)
    y = s * s
    alias = s.detach()
    with xp.write(s, y, recorded=False):
        alias += 1.0
    return y, s


@scenario("X309", EITHER, x=X3, w=2.0)
def ufunc_out_into_a_scalar(xp, x, w):
    s = xp.sum(x)
    with xp.write(s):
        np.sin(w, out=s)
    with xp.write(s):
        np.multiply(s, s, out=s)
    with xp.write(s):
        np.sum(x * s, out=s)
    return s


@scenario("X310", x=X4)
def running_sum_by_elements(xp, x):
    t = x + 0.0
    for i in range(1, 4):
        with xp.write(t):
            t[i] += t[i - 1]
    return t * t


@scenario("X311", EITHER, x=X4, w=W2)
def linear_recurrence_into_a_buffer(xp, x, w):
    a = xp.zeros(6)
    a[0], a[1] = x[0], x[1]
    for i in range(2, 6):
        with xp.write(a):
            a[i] = a[i - 1] * w[0] + a[i - 2] * w[1]
    return a


@scenario("X312", EITHER, x=X3, w=W4)
def horner_in_place(xp, x, w):
    total = xp.zeros(3)
    for i in range(4):
        with xp.write(total):
            total *= x
        with xp.write(total):
            total += w[i]
    return total


@scenario("X313", x=X6, k=0.1)
def heat_equation_by_slices(xp, x, k):
    u = x + 0.0
    for _ in range(4):
        with xp.write(u):
            u[1:-1] += k * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return u * u


@scenario("X314", EITHER, x=X6, k=0.3)
def upwind_scheme_without_a_copy(xp, x, k):
    u = x + 0.0
    for _ in range(3):
        with xp.write(u):
            u[1:] -= k * u[1:] * (u[1:] - u[:-1])
    return u


@scenario("X315", EITHER, a=M33, b=W3)
def gaussian_elimination(xp, a, b):
    m, r = a + 0.0, b + 0.0
    for j in range(3):
        for i in range(j + 1, 3):
            factor = m[i, j] / m[j, j]
            with xp.write(m):
                m[i] -= factor * m[j]
            with xp.write(r):
                r[i] -= factor * r[j]
    return m, r


@scenario("X316", x=X5, resumes=False)
def bubble_sort(xp, x):
    t = x + 0.0
    for end in range(4, 0, -1):
        for i in range(end):
            if t[i] > t[i + 1]:
                lower = t[i + 1].clone()
                with xp.write(t):
                    t[i + 1] = t[i]
                with xp.write(t):
                    t[i] = lower
    return t * weights((5,))


@scenario("X317", EITHER, x=X3)
def newton_iteration_in_place(xp, x):
    y = xp.ones(3)
    for _ in range(5):
        with xp.write(y):
            y += x / y
        with xp.write(y):
            y *= 0.5
    return y * x


@scenario("X318", x=X3, w=W3)
def moving_average(xp, x, w):
    mean = xp.zeros(3)
    for i in range(5):
        with xp.write(mean):
            mean *= 0.9
        with xp.write(mean):
            mean += 0.1 * (x * w + float(i))
    return mean


@scenario("X319", x=X3)
def buffer_reused_by_linear_steps(xp, x):
    buffer, total = xp.zeros(3), xp.zeros(())
    for i in range(4):
        with xp.write(buffer):
            buffer[...] = x * float(i)
        with xp.write(total):
            total += xp.sum(buffer)
    return total


@scenario("X320", EITHER, x=X3, w=W3)
def buffer_reused_by_products(xp, x, w):
    buffer, total = xp.zeros(3), 0.0
    for i in range(4):
        with xp.write(buffer):
            buffer[...] = x * float(i)
        total = total + buffer * w
    return total


@scenario("X321", x=X3, w=W3)
def ring_buffer(xp, x, w):
    ring = xp.zeros((2, 3))
    ring[0] = x
    for i in range(4):
        with xp.write(ring):
            ring[(i + 1) % 2] = ring[i % 2] * 0.5 + w
    return ring * ring


@scenario("X322", EITHER, x=X4)
def power_by_repeated_squaring(xp, x):
    t = x + 0.0
    for _ in range(3):
        with xp.write(t):
            t *= t
    return t


@scenario("X323", EITHER, x=X3, w=W3)
def swap_by_arithmetic(xp, x, w):
    a, b = x + 0.0, w + 0.0
    with xp.write(a):
        a += b
    with xp.write(b):
        np.subtract(a, b, out=b)
    with xp.write(a):
        a -= b
    return a * a, b * b * b


@scenario("X324", a=M23)
def rows_swapped_through_a_copy(xp, a):
    t = a + 0.0
    row = t[0].clone()
    with xp.write(t):
        t[0] = t[1]
    with xp.write(t):
        t[1] = row
    return t * t


@scenario("X325", a=M33)
def rows_swapped_by_index(xp, a):
    t = a + 0.0
    with xp.write(t):
        t[[0, 2]] = t[[2, 0]]
    return t * t


@scenario("X326", EITHER, x=X3, w=W3)
def overlapping_windows_of_a_signal(xp, x, w):
    signal = xp.zeros(7)
    for i in range(4):
        with xp.write(signal):
            signal[i : i + 3] += x * w
        with xp.write(signal):
            signal[i + 1] *= x[0]
    return signal


# Untracked targets become tracked


@scenario("X330", w=W3)
def view_chain_of_a_buffer_that_became_tracked(xp, w):
    a = xp.zeros((2, 3))
    row = a.reshape(6)[3:]
    element = a[1, 1, ...]
    with xp.write(a):
        row += w
    return a * a, element * row


@scenario("X331", w=W3)
def element_of_a_buffer_became_tracked(xp, w):
    a = xp.ones(3)
    element = a[1, ...]
    with xp.write(a):
        element *= w[0]
    return a * a


@scenario("X332", w=W3)
def tracked_then_constant_again(xp, w):
    a = xp.zeros(3)
    with xp.write(a):
        a[0] = w[0]
    with xp.write(a):
        a[0] = 1.0
    return a * w


@scenario("X333", w=W3)
def buffer_tracked_then_zeroed(xp, w):
    a = xp.zeros(3)
    with xp.write(a):
        a.copy_(w)
    with xp.write(a):
        a.zero_()
    return a + w


@scenario("X334", EITHER, x=X3, w=W3)
def kept_constant_became_tracked(xp, x, w):
    a = xp.ones(3)
    y = a * x
    with xp.write(a, y):
        a += w
    return y, a * x


@scenario("X335", x=X3, w=W3)
def buffer_written_by_two_leaves_in_turn(xp, x, w):
    a = xp.zeros(6)
    with xp.write(a):
        a[::2] = x
    with xp.write(a):
        a[1::2] = w
    with xp.write(a):
        a[2:5] += x
    return a * a


@scenario("X336", x=X3)
def full_like_and_zeros_like_as_buffers(xp, x):
    a, b = xp.zeros_like(x), xp.full_like(x, 2.0)
    with xp.write(a):
        a[...] = x
    with xp.write(b):
        b *= a
    return a, b
