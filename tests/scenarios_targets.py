"""Programs about `out=`, masks, index arrays, swaps, overwriting, errors and threads."""

import numpy as np
from scenarios import EITHER, M23, M33, REFUSED, W2, W3, X3, X4, scenario

# N: out=


@scenario("N01", x=X3)
def out_into_a_buffer(xp, x):
    buffer = xp.zeros(3)
    with xp.write(buffer):
        np.sin(x, out=buffer)
    return buffer


@scenario("N03", x=X3)
def out_is_the_input(xp, x):
    t = x + 0.0
    with xp.write(t):
        np.sin(t, out=t)
    return t


@scenario("N04", REFUSED, x=X3)
def out_of_another_shape(xp, x):
    buffer = xp.zeros(5)
    with xp.write(buffer):
        np.sin(x, out=buffer)
    return x * x


@scenario("N07", EITHER, x=X4, w=W3)
def out_is_the_input_shifted(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        np.add(t[:-1], w, out=t[1:])
    return t * t


@scenario("N08", x=X3, w=W3, z=[5.0, 6.0, 7.0])
def out_where_a_mask_holds(xp, x, w, z):
    t = z + 0.0
    with xp.write(t):
        np.multiply(x, w, out=t, where=np.array([True, False, True]))
    return t


@scenario("N09", EITHER, x=X3, w=W3, z=[5.0, 6.0, 7.0])
def out_into_a_kept_value(xp, x, w, z):
    t = z + 0.0
    y = t * w
    with xp.write(t, y):
        np.sin(x, out=t)
    return y, t


# O: masks and index arrays


@scenario("O02", x=X3, w=W2)
def tracked_values_under_a_mask(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        t[xp.tensor([True, False, True])] = w
    return t * t


@scenario("O03", x=X3)
def masked_fill(xp, x):
    t = x + 0.0
    with xp.write(t):
        t.masked_fill_(xp.tensor([True, False, True]), 3.0)
    return t * t


@scenario("O05", EITHER, x=X3, w=2.5)
def mask_of_an_assignment_written(xp, x, w):
    t = x + 0.0
    mask = xp.tensor([True, False, True])
    t[mask] = w
    with xp.write(mask, t):
        mask[:] = xp.tensor([False, True, False])
    return t * t


@scenario("O07", REFUSED, x=X3)
def mask_of_another_length(xp, x):
    t = x + 0.0
    with xp.write(t):
        t[xp.tensor([True, False, True, True])] = 0.0
    return t


@scenario("O08", EITHER, x=X3)
def raw_index_array_written(xp, x):
    index = np.array([2, 0])
    y = x[index]
    with xp.write(index, y):
        index[:] = 1
    return y


@scenario("O09", EITHER, x=X3)
def index_list_written(xp, x):
    index = [2, 0]
    y = x[index]
    with xp.write(y):
        index[:] = [1, 1]
    return y


# P: repeated indices


@scenario("P01", x=X3, w=W3)
def repeated_indices_accumulate(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        xp.add_at(t, xp.tensor([0, 0, 2]), w)
    return t * t


@scenario("P02", EITHER, x=X3, w=W2)
def last_of_a_repeated_index_wins(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        t[xp.tensor([0, 0])] = w
    return t * t


@scenario("P05", EITHER, a=M33, w=M23)
def last_of_a_repeated_row_wins(xp, a, w):
    t = a + 0.0
    with xp.write(t):
        t[xp.tensor([1, 1])] = w
    return t * t


# Q: swaps and moves


@scenario("Q02", a=M23)
def rows_swapped_through_views(xp, a):
    t = a + 0.0
    with xp.write(t):
        t[0], t[1] = t[1], t[0]
    return t * t


@scenario("Q03", x=X4)
def slice_moved_down(xp, x):
    t = x + 0.0
    with xp.write(t):
        t[0:2] = t[1:3]
    return t * t


@scenario("Q04", x=X4)
def slice_moved_up(xp, x):
    t = x + 0.0
    with xp.write(t):
        t[1:3] = t[0:2]
    return t * t


# R: overwriting


@scenario("R01", x=X3)
def zeroing_cuts_the_gradient(xp, x):
    t = x + 0.0
    with xp.write(t):
        t.zero_()
    return (t + 1.0) ** 2


@scenario("R02", x=X3)
def filling_cuts_the_gradient(xp, x):
    t = x + 0.0
    with xp.write(t):
        t.fill_(5.0)
    return t * t


@scenario("R05", EITHER, x=X3, w=W3)
def kept_value_zeroed(xp, x, w):
    t = x + 0.0
    y = t * w
    with xp.write(t, y):
        t.zero_()
    return y


@scenario("R06", x=X3.astype(np.float32), w=W3, tolerance=1e-5)
def float64_copied_into_float32(xp, x, w):
    t = x + 0
    with xp.write(t):
        t.copy_(w)
    return t * t


@scenario("R07", x=X4)
def part_zeroed(xp, x):
    t = x + 0.0
    with xp.write(t):
        t[0:2] = 0.0
    return t * t


@scenario("R09", x=X4)
def part_filled_through_a_view(xp, x):
    t = x + 0.0
    v = t[0:2]
    with xp.write(t):
        v.fill_(5.0)
    return t * t


# S: one tensor twice in an expression


@scenario("S01", x=X3, resumes=False)
def sum_with_itself_incremented(xp, x):
    t = x + 0.0
    with xp.write(t):
        z = t + t.add_(1.0)
    return z * z


@scenario("S02", x=X3, resumes=False)
def product_with_itself_doubled(xp, x):
    t = x + 0.0
    with xp.write(t):
        z = t * t.multiply_(2.0)
    return z


@scenario("S03", EITHER, x=X3, w=W3, resumes=False)
def product_with_a_factor_doubled_meanwhile(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        z = (t * w) * t.multiply_(2.0)
    return z


# T: errors leave the graph as it was


@scenario("T01", REFUSED, x=X3, w=W3)
def failed_write_does_not_disturb_a_kept_value(xp, x, w):
    t = x + 0.0
    y = t * w
    with xp.write(t, y):
        t += np.ones(7)
    return y


@scenario("T02", REFUSED, x=X4, w=W2)
def assignment_with_an_index_out_of_range(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        t[xp.tensor([0, 99])] = w
    return t


@scenario("T03", REFUSED, x=X4, w=W3)
def addition_with_an_index_out_of_range(xp, x, w):
    t = x + 0.0
    with xp.write(t):
        xp.add_at(t, xp.tensor([0, 1, 99]), w)
    return t


# U: changed and changed back


@scenario("U01", EITHER, x=[0.5, 0.25, 1.5], w=W3)
def incremented_and_decremented(xp, x, w):
    t = x + 0.0
    y = t * w
    with xp.write(t, y):
        t += 1.0
    with xp.write(t, y):
        t -= 1.0
    return y


@scenario("U02", EITHER, x=X3, w=W3)
def overwritten_with_the_same_number(xp, x, w):
    t = x + 0.0
    y = t * w
    with xp.write(t, y):
        t[0] = X3[0]
    return y


@scenario("U03", x=X3, w=W3)
def empty_write(xp, x, w):
    t = x + 0.0
    y = t * w
    with xp.write(t, y):
        t[0:0] = 1.0
    return y


# V: threads


@scenario("V01", EITHER, x=X3, w=W3)
def kept_value_written_in_another_thread(xp, x, w):
    t = x + 0.0
    y = t * w
    with xp.write(t, y):
        xp.in_threads(lambda: t.add_(1.0))
    return y


@scenario("V03", EITHER, x=X3, w=W3)
def one_tensor_written_by_two_threads(xp, x, w):
    t = x + 0.0

    def add():
        for _ in range(1000):
            t.add_(w)

    with xp.write(t):
        xp.in_threads(add, add)
    return t


@scenario("V04", x=X3)
def backward_in_two_threads_through_a_shared_part(xp, x):
    h = x * x
    first, second = h + 0.0, h + 0.0
    with xp.write(h):
        xp.in_threads(lambda: xp.backward(first, retain_graph=True), lambda: xp.backward(second, retain_graph=True))
