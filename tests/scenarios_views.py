"""Programs about views, aliases, shapes and dtypes."""

import numpy as np
from scenarios import EITHER, M23, M33, N33, REFUSED, W2, W3, W4, X3, X4, X5, X6, scenario

FACTORS = np.array([[1.0, -1.1], [1.7, -1.7], [2.5, -2.3]])

# E: an untracked target becomes tracked


@scenario("E02", w=W3)
def tracked_element_put_into_a_buffer(xp, w):
    a = xp.zeros(3)
    with xp.write(a):
        a[1] = w[0]
    return a * a


@scenario("E03", w=W3)
def earlier_view_of_a_buffer_that_became_tracked(xp, w):
    a = xp.zeros(3)
    v = a[0:2]
    with xp.write(a, v):
        a += w
    return v * v


@scenario("E04", w=W3)
def base_of_a_view_that_became_tracked(xp, w):
    a = xp.zeros(3)
    v = a[0:2]
    with xp.write(a):
        v += w[0:2]
    return a * a


@scenario("E05", w=W3, x=X3)
def tracked_value_added_under_no_grad(xp, w, x):
    a = xp.ones(3)
    with xp.no_grad(), xp.write(a):
        a += w
    return a * x


@scenario("E06", w=W3)
def tracked_value_copied_into_a_buffer(xp, w):
    a = xp.zeros(3)
    with xp.write(a):
        a.copy_(w)
    return a * a


@scenario("E07", w=W3, x=X4)
def buffer_filled_in_a_loop(xp, w, x):
    a = xp.zeros(4)
    for i in range(4):
        with xp.write(a):
            a[i] = w[0] * x[i]
    return a


# F: shapes


@scenario("F01", REFUSED, x=X3, y=M23)
def target_would_have_to_grow(xp, x, y):
    t = x + 0.0
    with xp.write(t):
        t += y
    return t


@scenario("F04", REFUSED, x=X4, y=W3)
def value_too_long_for_the_slice(xp, x, y):
    t = x + 0.0
    with xp.write(t):
        t[0:2] = y
    return t


@scenario("F06", x=X3, s=2.0)
def scalar_into_a_whole_array(xp, x, s):
    t = x + 0.0
    with xp.write(t):
        t[:] = s
    return t * t


@scenario("F07", x=X3, y=W3)
def other_name_sees_an_augmented_assignment(xp, x, y):
    t = x + 0.0
    alias = t
    with xp.write(t):
        t += y
    return alias


@scenario("F08", REFUSED, x=X3, y=W3)
def array_added_into_a_scalar(xp, x, y):
    s = xp.sum(x)
    with xp.write(s):
        s += y
    return s


# G: dtypes


@scenario("G02", x=X3.astype(np.float32), y=W3, tolerance=1e-5)
def float64_added_into_float32(xp, x, y):
    t = x + 0
    with xp.write(t):
        t += y
    return t * t


@scenario("G03", REFUSED, w=W3)
def integer_leaf(xp, w):
    a = xp.tensor([1, 2, 3])
    with xp.write(a):
        a = xp.tensor(a, requires_grad=True)
    return a * w


@scenario("G05", REFUSED, w=W3)
def tracked_value_added_into_a_mask(xp, w):
    mask = xp.tensor([True, False, True])
    with xp.write(mask):
        mask += w
    return w * w


@scenario("G06", REFUSED, w=W3)
def fraction_put_among_integers(xp, w):
    index = xp.tensor([0, 1, 2])
    with xp.write(index):
        index[0] = 1.7
    return w * w


# H: views


@scenario("H01", x=X4)
def view_of_a_base_written_later(xp, x):
    t = x + 0.0
    v = t[0:2]
    with xp.write(t):
        t *= 2.0
    return v * v


@scenario("H02", x=X4)
def base_of_a_view_written(xp, x):
    t = x + 0.0
    v = t[0:2]
    with xp.write(t):
        v *= 2.0
    return t * t


@scenario("H03", x=X4)
def two_overlapping_views_written(xp, x):
    t = x + 0.0
    left, right = t[0:3], t[1:4]
    with xp.write(t):
        left *= 2.0
    with xp.write(t):
        right *= 3.0
    return t * t


@scenario("H06", a=M23)
def transpose_written(xp, a):
    t = a + 0.0
    v = t.T
    with xp.write(t):
        v *= FACTORS
    return t * t


@scenario("H07", REFUSED, x=X4)
def broadcast_view_written(xp, x):
    t = x + 0.0
    v = xp.broadcast_to(t, (3, 4))
    with xp.write(t):
        v += 1.0
    return v


@scenario("H08", EITHER, x=X4)
def view_taken_under_no_grad_written_while_recording(xp, x):
    t = x + 0.0
    with xp.no_grad():
        v = t[0:2]
    with xp.write(t):
        v *= 2.0
    return t * t


@scenario("H09", a=M33, w=W3)
def diagonal_written(xp, a, w):
    t = a + 0.0
    d = xp.diagonal(t)
    with xp.write(t):
        d *= w
    return t * t


@scenario("H10", a=M23)
def reshape_written(xp, a):
    t = a + 0.0
    v = t.reshape(3, 2)
    with xp.write(t):
        v *= FACTORS
    return t * t


@scenario("H14", x=X4, w=W2)
def write_beside_a_kept_view(xp, x, w):
    t = x + 0.0
    y = t[0:2] * w
    with xp.write(t, y):
        t[3] = 9.0
    return y


@scenario("H15", EITHER, x=X4, w=W4)
def view_of_a_kept_base_written(xp, x, w):
    t = x + 0.0
    y = t * w
    v = t[0:2]
    with xp.write(t, y):
        v += 1.0
    return y


@scenario("H18", a=M23)
def one_of_the_rows_written(xp, a):
    t = a + 0.0
    first, _ = list(t)
    with xp.write(t):
        first *= 2.0
    return t * t


@scenario("H19", x=X4)
def detached_alias_doubled(xp, x):
    t = x + 0.0
    alias = t.detach()
    with xp.write(t, recorded=False):
        alias *= 2.0
    return t


@scenario("H23", x=X4, w=W4)
def squeezed_view_written(xp, x, w):
    t = x + 0.0
    v = xp.squeeze(t.reshape(1, 4))
    with xp.write(t):
        v *= w
    return t * t


@scenario("H25", x=X4, w=W2)
def view_outlives_its_base(xp, x, w):
    v = (x * 2.0)[0:2]
    with xp.write(v):
        v *= w
    return v * v


@scenario("H27", x=X4)
def view_used_before_and_after_a_write(xp, x):
    t = x + 0.0
    v = t[0:2]
    z = v + 0.0
    with xp.write(t, z):
        t *= 2.0
    return z * z, v * v


@scenario("H28", x=X4, w=W2)
def view_written_then_base_written(xp, x, w):
    t = x + 0.0
    v = t[1:3]
    with xp.write(t):
        v *= w
    with xp.write(t):
        t.sin_()
    return v


@scenario("H29", a=M23, w=W3)
def row_written(xp, a, w):
    t = a + 0.0
    row = t[1]
    with xp.write(t):
        row *= w
    return t * t


@scenario("H30", x=X4, w=W2)
def augmented_slice(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        t[0:2] *= w
    return t * t


@scenario("H31", x=X4)
def base_written_under_a_broadcast_view(xp, x):
    t = x + 0.0
    wide = xp.broadcast_to(t, (3, 4))
    with xp.write(t):
        t *= 2.0
    return wide * wide


@scenario("H32", a=M23)
def ravel_of_a_transpose_is_a_copy(xp, a):
    t = a + 0.0
    row = xp.ravel(t.T)
    with xp.write(t, row):
        row *= 2.0
    return t * t


@scenario("H33", x=X5, w=W2)
def view_of_a_view_of_a_view_written(xp, x, w):
    t = x + 0.0
    v = t[0:4]
    u = v[1:4]
    q = u[0:2]
    with xp.write(t):
        q *= w
    return v * v, u


# I: operands that share memory with the target


@scenario("I01", x=X3)
def multiplied_by_itself(xp, x):
    t = x + 0.0
    with xp.write(t):
        t *= t
    return t


@scenario("I02", x=X3)
def added_to_itself(xp, x):
    t = x + 0.0
    with xp.write(t):
        t += t
    return t * t


@scenario("I03", x=X4)
def reverse_added(xp, x):
    t = x + 0.0
    with xp.write(t):
        t += t[::-1]
    return t * t


@scenario("I04", x=X4)
def shifted_view_added(xp, x):
    t = x + 0.0
    with xp.write(t):
        t[1:] += t[:-1]
    return t * t


@scenario("I05", a=M33)
def overwritten_by_its_transpose(xp, a):
    t = a + 0.0
    with xp.write(t):
        t[:] = t.T
    return t * t


@scenario("I08", a=M33)
def first_row_subtracted(xp, a):
    t = a + 0.0
    with xp.write(t):
        t -= t[0]
    return t * t


@scenario("I09", a=M33)
def divided_by_its_first_column(xp, a):
    t = a + 0.0
    with xp.write(t):
        t /= t[:, 0:1]
    return t * t


@scenario("I10", EITHER, a=M33, b=N33)
def matmul_out_is_its_factor(xp, a, b):
    t = a + 0.0
    with xp.write(t):
        np.matmul(t, b, out=t)
    return t


@scenario("I12", x=X3)
def divided_by_its_sum(xp, x):
    t = x + 0.0
    with xp.write(t):
        t /= xp.sum(t)
    return t * t


@scenario("I14", a=M33)
def multiplied_by_its_transpose(xp, a):
    t = a + 0.0
    with xp.write(t):
        t *= t.T
    return t


@scenario("I16", a=M33)
def first_column_subtracted(xp, a):
    t = a + 0.0
    with xp.write(t):
        t -= t[:, 0:1]
    return t * t


@scenario("I17", x=X6)
def odd_places_copied_to_even_places(xp, x):
    t = x + 0.0
    with xp.write(t):
        t[0:5:2] = t[1:6:2]
    return t * t


@scenario("I19", x=M33)
def untracked_column_added(xp, x):
    constant = xp.tensor(N33)
    with xp.write(constant):
        constant += constant[:, 0:1]
    return constant * x
